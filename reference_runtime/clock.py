"""The wall clock, by which everything that is due is written down, and how it is noticed that somebody has set it.

Somebody may set it by an hour, and what was due in a second is due in an hour, or has been for an hour. Real time tells: it
goes on evenly, also while the machine sleeps, as long as the machine is not started anew. A clock that was set back while no
server was up is noticed by work that began later than now (`Store.mend_hours`); one that was set ahead then cannot be told
from one that went on.
"""

from __future__ import annotations

import time

#: Less than this is the clock being adjusted, or the time between two looks.
STEP_NS = 100_000_000
_REAL = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Steps:
    """The steps by which the wall clock is set, from the first look on."""

    def __init__(self) -> None:
        self._ahead_ns = self._read()

    def step_ns(self) -> int:
        """By how many nanoseconds the clock has been set since this was asked last; negative when it was set back."""
        step_ns = self._read() - self._ahead_ns
        if abs(step_ns) < STEP_NS:
            return 0
        self._ahead_ns += step_ns
        return step_ns

    def _read(self) -> int:
        """How far the wall clock is ahead of real time."""
        return time.time_ns() - time.clock_gettime_ns(_REAL)

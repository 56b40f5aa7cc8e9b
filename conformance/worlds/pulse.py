"""The pulse of the kit's own machine: who is late to a beat has stood still, and so may have everybody else on it.

Times in a history are those at which the kit saw something. On a machine that is too busy everything is seen later than it
happened, and happens later than it could: judges allow for what is lost so (`Facts.lost_ns`).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from typing import Final

import attrs
import trio

from scenarios.history import Closed, History, Stalled

_BEAT_NS: Final = 10_000_000
#: A beat this late tells something; an idle machine is late by a fraction of it.
_LATE_NS: Final = 20_000_000
#: Stalls kept of one run; who stands still for longer than that has other problems.
STALLS_MAX: Final = 10_000


class Pulse:
    """Counts how often, and for how long, the kit stood still while it is beating."""

    def __init__(self) -> None:
        self.stalls: list[Stalled] = []
        self.lost_ns = 0

    @contextlib.contextmanager
    def beating(self) -> Iterator[None]:
        """In this block stalls are counted."""
        scope = trio.CancelScope()
        trio.lowlevel.spawn_system_task(self._beat, scope)
        try:
            yield
        finally:
            scope.cancel()

    async def _beat(self, scope: trio.CancelScope) -> None:
        with scope:
            while len(self.stalls) < STALLS_MAX:
                due_ns = time.monotonic_ns() + _BEAT_NS
                await trio.sleep(_BEAT_NS / 1e9)
                if (now_ns := time.monotonic_ns()) > due_ns + _LATE_NS:
                    self.stalls.append(Stalled(now_ns, now_ns - due_ns))
                    self.lost_ns += now_ns - due_ns


def with_stalls(history: History, stalls: Sequence[Stalled]) -> History:
    """The history with the stalls of its time among its events, each before whatever came later."""
    events = history.events
    last = events[-1:] if events and isinstance(events[-1], Closed) else ()  # nothing follows the end
    rest = events[: len(events) - len(last)]
    until_ns = events[-1].at_ns if events else 0
    told = [one for one in stalls if one.at_ns <= until_ns]
    merged = sorted((*rest, *told), key=lambda event: event.at_ns)  # stable, and the events are in order already
    return attrs.evolve(history, events=(*merged, *last))

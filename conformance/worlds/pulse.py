"""The pulse of the kit's own machine: who is late to a beat has stood still, and so may have everybody else on it.

Times in a history are those at which the kit saw something. On a machine that is too busy everything is seen later than it
happened, and happens later than it could: judges allow for what is lost so (`Facts.lost_ns`). Those times are of a clock that
nobody sets; a harness may go by the wall clock, and where that is set meanwhile nothing can be said of it.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import attrs
import trio

from scenarios.history import Closed, History, Stalled
from simkit.errors import ExitCode, Problem, SimkitError

_BEAT_NS: Final = 10_000_000
#: A beat this late tells something; an idle machine is late by a fraction of it.
_LATE_NS: Final = 20_000_000
#: A wall clock that goes another way by so much from one beat to the next was set; slewing one takes seconds for that.
_STEP_NS: Final = 5_000_000
#: Stalls kept of one run; who stands still for longer than that has other problems.
STALLS_MAX: Final = 10_000


class Pulse:
    """Counts how often, and for how long, the kit stood still while it is beating, and by how much the wall clock was set at
    most: forth and back again is no less than forth.
    """

    def __init__(self, wall_ns: Callable[[], int] = time.time_ns) -> None:
        self.stalls: list[Stalled] = []
        self.lost_ns = 0
        self.stepped_ns = 0
        self._wall_ns = wall_ns
        self._apart_ns: int | None = None
        self._due_ns: int | None = None

    @contextlib.contextmanager
    def beating(self) -> Iterator[None]:
        """In this block stalls are counted."""
        scope = trio.CancelScope()
        trio.lowlevel.spawn_system_task(self._beat, scope)
        try:
            yield
        finally:
            scope.cancel()

    def look(self) -> None:
        """Take in how late the next beat is by now. Whoever goes by `lost_ns` looks first: after a stall everybody wakes at
        once, and the beat may be the last of them.
        """
        now_ns = time.monotonic_ns()
        if self._due_ns is None or now_ns <= self._due_ns + _LATE_NS or len(self.stalls) >= STALLS_MAX:
            return
        self.stalls.append(Stalled(now_ns, now_ns - self._due_ns))
        self.lost_ns += now_ns - self._due_ns
        self._due_ns = now_ns

    def demand_steady(self) -> None:
        """Raise SimkitError where the wall clock was set: who goes by it was early or late through no fault of its own."""
        if self.stepped_ns:
            raise SimkitError(
                Problem(
                    "clock-stepped",
                    f"the wall clock of this machine was set by {self.stepped_ns / 1e6:+.0f} ms while the run went on",
                    "process world",
                    "a clock that is slewed, if at all",
                    "certify again once the clock is right; does a time service step it?",
                    ExitCode.INTERNAL,
                )
            )

    async def _beat(self, scope: trio.CancelScope) -> None:
        try:
            with scope:
                while True:
                    self._due_ns = time.monotonic_ns() + _BEAT_NS
                    await trio.sleep(_BEAT_NS / 1e9)
                    self.look()
                    self._compare()
        finally:
            self._due_ns = None

    def _compare(self) -> None:
        """Has the wall clock gone another way than the one that nobody sets?"""
        before_ns, wall_ns, after_ns = time.monotonic_ns(), self._wall_ns(), time.monotonic_ns()
        if after_ns - before_ns > _STEP_NS:
            return  # we were interrupted between the two
        apart_ns = wall_ns - before_ns
        if self._apart_ns is not None and abs(apart_ns - self._apart_ns) > _STEP_NS:
            self.stepped_ns = max(self.stepped_ns, apart_ns - self._apart_ns, key=abs)
        self._apart_ns = apart_ns


def with_stalls(history: History, stalls: Sequence[Stalled]) -> History:
    """The history with the stalls of its time among its events, each before whatever came later."""
    events = history.events
    last = events[-1:] if events and isinstance(events[-1], Closed) else ()  # nothing follows the end
    rest = events[: len(events) - len(last)]
    until_ns = events[-1].at_ns if events else 0
    told = [one for one in stalls if one.at_ns <= until_ns]
    merged = sorted((*rest, *told), key=lambda event: event.at_ns)  # stable, and the events are in order already
    return attrs.evolve(history, events=(*merged, *last))

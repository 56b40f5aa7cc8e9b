"""A run that is watched: the same run again, and beside its trace what only a drawing needs.

Watching changes nothing: the strategy is asked what it would be asked anyway, the tape gives what it would give, and what
is told beside the trace (`Trace.aside`) is no part of its digest.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from simkit.strategy import Fifo, Strategy, TaskView
from simkit.tape import Journal, Site, Tape
from simkit.watching import watched

if TYPE_CHECKING:
    from simkit.case import Case
    from simkit.host import Host
    from simkit.world import Outcome, World

T = TypeVar("T")


@attrs.frozen
class Known:
    """What was seen beside the trace. Tasks by number."""

    names: Mapping[int, str] = attrs.field(factory=dict)
    owners: Mapping[int, str | None] = attrs.field(factory=dict)  # "host/name#pid"; None for the outside
    #: Departures where they were met: entries of the trace before it, site, value.
    drawn: tuple[tuple[int, Site, int], ...] = ()


class Watch:
    """Watches one run: `watch.run(main, tape=…, strategy=…)`, and then `watch.known`."""

    def __init__(self) -> None:
        self.known = Known()
        self._names: dict[int, str] = {}
        self._owners: dict[int, str | None] = {}

    def run(
        self, main: Callable[[World], Awaitable[T]], *, tape: Tape, strategy: Strategy | None = None, **options: Any
    ) -> Outcome[T]:
        """As `simkit.run`, with the same outcome and the same digest."""
        from simkit.world import run

        with watched(self):
            return run(main, tape=tape, strategy=self.strategy(strategy), **options)

    def replay(self, case: Case, main: Callable[[World], Awaitable[T]], **options: Any) -> Outcome[T]:
        """Run a case of the simulated world again, by its schedule as far as that fits; options as for `simkit.run`."""
        from simkit.shrinking import LooseSchedule

        return self.run(main, tape=case.tape(), strategy=LooseSchedule(case.schedule), **options)

    def strategy(self, strategy: Strategy | None) -> Strategy:
        """`strategy` (None: first come, first served), seen at every step."""
        return _Watched(Fifo() if strategy is None else strategy, self._names, self._owners)

    # ---- for `simkit.watching`

    def begins(self, world: World) -> None:
        """Ask for what is told beside the trace, and for the places of choices."""
        trace, tape = world.trace, world.tape
        trace.asides = []
        if tape.journal is None:
            tape.journal = Journal()
            tape.guided = True
        tape.journal.moment = trace.__len__

    def starts(self, host: Host) -> None:
        """It is in the trace."""

    def loses_power(self, host: Host) -> None:
        """It is in the trace."""

    def ends(self, world: World, outcome: Outcome[Any]) -> None:
        """Keep where the departures were."""
        journal = world.tape.journal
        visits = [] if journal is None else journal.sites
        departures = outcome.departures
        drawn = tuple((one.moment, one.site, departures[one.site]) for one in visits if one.site in departures)
        self.known = Known(self._names, self._owners, drawn)


class _Watched:
    """Asks the strategy, and notes whose the step is."""

    every_step = True

    def __init__(self, strategy: Strategy, names: dict[int, str], owners: dict[int, str | None]) -> None:
        self._strategy = strategy
        self._every_step = bool(getattr(strategy, "every_step", False))
        self._names = names
        self._owners = owners
        self.finish: Callable[[int], object] = getattr(strategy, "finish", _nothing)

    def pick(self, runnable: Sequence[TaskView], step: int) -> int:
        """As the strategy."""
        index = self._strategy.pick(runnable, step) if self._every_step or len(runnable) > 1 else 0
        if 0 <= index < len(runnable):
            view = runnable[index]
            self._names.setdefault(view.number, view.name)
            self._owners.setdefault(view.number, view.process)
        return index


def _nothing(_steps: int) -> None:
    """For strategies that have no say at the end."""

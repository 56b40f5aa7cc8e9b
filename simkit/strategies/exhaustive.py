"""Every schedule there is, depth first; and every schedule with at most so many delays of the default order.

`Exhaustive` is stateless search: a run repeats the choices of the last one up to the deepest that has an alternative left,
takes that, and goes on with the first everywhere (Godefroid: Model Checking for Programming Languages using VeriSoft,
POPL 1997, without its reductions; for these see `reduced`).

`DelayBounded` follows Emmi, Qadeer, Rakamarić: Delay-Bounded Scheduling (POPL 2011): the default order runs a task until
it blocks and then the next one round; a delay skips the one whose turn it is. Bounds 0, 1, 2, … are tried in turn, each
schedule once. Where it deviates: the default order is by task number, starting anew from 0 when it has come round; a task
that has gone on for so long while others could is taken for one that spins, and the next one has its turn.

Both need a program that does the same in every run, and say so when it does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from simkit.errors import ExitCode, Problem, SimkitError
from simkit.strategies.base import ROOT
from simkit.strategy import Strategy, TaskView
from simkit.tape import Stream
from simkit.world import Outcome


class Exhaustive:
    """Every schedule, each once."""

    name = "exhaustive"
    same_world = True
    systematic = True

    def __init__(self) -> None:
        self._chosen: list[int] = []
        self._counts: list[int] = []
        self._at = 0
        self._left = True

    def begin(self, stream: Stream) -> Strategy | None:
        """Start the next run."""
        self._at = 0
        return self if self._left else None

    def pick(self, runnable: Sequence[TaskView], step: int) -> int:
        """As `index`."""
        return self.index(len(runnable), step)

    def index(self, count: int, step: int) -> int:
        """Return the choice of the last run, or the first one where that ended."""
        at = self._at
        self._at = at + 1
        if at < len(self._chosen):
            if self._counts[at] != count:
                raise changed(step, f"{self._counts[at]} runnable tasks", f"{count}")
            return self._chosen[at]
        self._chosen.append(0)
        self._counts.append(count)
        return 0

    def end(self, outcome: Outcome[Any]) -> None:
        """Go back to the deepest choice that has an alternative left."""
        chosen, counts = self._chosen, self._counts
        while chosen and chosen[-1] + 1 == counts[-1]:
            chosen.pop()
            counts.pop()
        self._left = bool(chosen)
        if chosen:
            chosen[-1] += 1


#: Steps that a task goes on in the default order of `DelayBounded` while others could run.
_PATIENCE = 200
#: Where a run leaves the default order: (decision, delays), by decision.
Departures = tuple[tuple[int, int], ...]


@attrs.frozen
class _Done:
    """A run that was made, and how many were runnable at each of its decisions."""

    departures: Departures
    widths: tuple[int, ...]

    def children(self, delays: int) -> Iterator[Departures]:
        """The same with so many delays at one later decision."""
        first = self.departures[-1][0] + 1 if self.departures else 0
        for decision in range(first, len(self.widths)):
            if delays < self.widths[decision]:
                yield (*self.departures, (decision, delays))


class DelayBounded:
    """Every schedule with at most `delays_max` delays, those with fewer first; each once."""

    same_world = True
    systematic = True
    every_step = True  # whose turn it is depends on every step

    def __init__(self, delays_max: int = 2) -> None:
        self.name = f"delays{delays_max}"
        self._done: list[list[_Done]] = [[] for _ in range(delays_max + 1)]
        self._plans = self._every_plan()
        self._delays: dict[int, int] = {}

    def _every_plan(self) -> Iterator[Departures]:
        yield ()
        for total in range(1, len(self._done)):
            for before in range(total):
                for done in self._done[before]:
                    yield from done.children(total - before)

    @property
    def with_one_delay(self) -> int:
        """How many schedules have a single delay; known once the first run, which has none, was made."""
        return sum(width - 1 for done in self._done[0] for width in done.widths)

    def begin(self, stream: Stream) -> Strategy | None:
        """Start the next run."""
        plan = next(self._plans, None)
        if plan is None:
            return None
        self._plan = plan
        self._delays = dict(plan)
        self._widths: list[int] = []
        self._current = ROOT
        self._patience = _PATIENCE
        return self

    def pick(self, runnable: Sequence[TaskView], step: int) -> int:
        """Return the one whose turn it is, after this decision's delays."""
        numbers = [task.number for task in runnable]
        if len(numbers) == 1:
            self._current = numbers[0]
            return 0
        delays = self._delays.get(len(self._widths), 0)
        if delays >= len(numbers):
            raise changed(step, f"more than {delays} runnable tasks", f"{len(numbers)}")
        self._widths.append(len(numbers))
        current = self._current
        first = current if self._patience > 0 else current + 1
        ring = sorted(numbers, key=lambda number: (number < first, number))
        self._current = ring[delays]
        self._patience = self._patience - 1 if self._current == current else _PATIENCE
        return numbers.index(self._current)

    def end(self, outcome: Outcome[Any]) -> None:
        """Keep the run, for others that delay once more."""
        self._done[sum(delays for _, delays in self._plan)].append(_Done(self._plan, tuple(self._widths)))


def changed(step: int, expected: str, got: str) -> SimkitError:
    """The error for a program that does not repeat itself."""
    return SimkitError(
        Problem(
            "program-changed",
            f"the program did not repeat itself: {expected} in an earlier run with the same schedule, now {got}",
            f"step {step}",
            "a program whose runs differ by their schedule only",
            "move state that outlives a run into the program function, and whatever is random onto the tape",
            ExitCode.TARGET,
        )
    )

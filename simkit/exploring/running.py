"""Makes the runs of an exploration, here or elsewhere, within its budget, and enters them in its book."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, cast

import attrs

from simkit._options import need_seconds, need_whole
from simkit.exploring.book import LIVENESS, Book, Page
from simkit.exploring.jobs import Job, Ran, Task, do
from simkit.parallel import Crew

__all__ = ["SHARES", "Budget", "Runner"]

T = TypeVar("T")
#: How the runs that are left are divided between the stages that are left.
SHARES = {"singles": 8, "pairs": 5, "delays": 2, "portfolio": 3, "mutations": 2, LIVENESS: 1}
#: Short runs that go to a process together.
_BATCH = 8


@attrs.frozen
class Budget:
    """How much an exploration may do.

    A bound on time makes the place of the cut-off depend on the machine; all else is the same each time.
    """

    runs: int = 1000
    #: On the wall, for the stages together, and for each finding's shrink; looked at between runs.
    seconds: float | None = None
    #: Runs to shrink each finding; 0: it is left as it was found.
    shrink: int = 200
    #: Runs to explain each shrunk finding; 0: it is not explained.
    explain: int = 0

    def __attrs_post_init__(self) -> None:
        need_whole("budget: runs (the default run is made twice)", self.runs, 2)
        need_whole("budget: shrink", self.shrink, 0)
        need_whole("budget: explain", self.explain, 0)
        if self.seconds is not None:
            need_seconds("budget: seconds", self.seconds)


class Runner:
    """Makes runs, and knows how many may still be made."""

    def __init__(self, task: Task, budget: Budget, crew: Crew, clock: Callable[[], float]) -> None:
        self.task = task
        self.book = Book()
        self.pages: dict[str, Page] = {}
        self._budget = budget
        self._crew = crew
        self._clock = clock
        self._begun = clock()
        self._stages: list[str] = []

    def divide(self, stages: Sequence[str]) -> None:
        """These stages are to come, in this order."""
        self._stages = list(stages)

    def allot(self, stage: str) -> int:
        """How many runs `stage` may make, as the next one of those to come."""
        rest = self._stages[self._stages.index(stage) :]
        return max(0, self.left * SHARES[stage] // sum(SHARES[one] for one in rest))

    @property
    def left(self) -> int:
        """Runs that may still be made."""
        return self._budget.runs - self.book.runs

    def is_late(self) -> bool:
        """Whether time is up."""
        seconds = self._budget.seconds
        return seconds is not None and self._clock() - self._begun >= seconds

    def page(self, stage: str) -> Page:
        """The counts of a stage."""
        return self.pages.setdefault(stage, Page(stage))

    def enter(self, ran: Ran) -> Ran:
        """Count a run that was made; a healed one is of the stage of its own."""
        self.book.enter(ran, self.page(LIVENESS if ran.healed else ran.stage))
        return ran

    def make(self, jobs: Iterable[Job]) -> list[Ran]:
        """Make these runs, in their order, as long as there is time."""
        return self.gather(do, jobs, _BATCH)

    def gather(self, function: Callable[[Task, T], Any], items: Iterable[T], batch: int = 1) -> list[Ran]:
        """As `make`, of what `function` gives: a run or several."""
        found: list[Ran] = []
        if self.is_late():
            return found
        for given in self._crew.map(functools.partial(function, self.task), items, batch=batch):
            runs = cast("list[Ran]", given if isinstance(given, list) else [given])
            found += map(self.enter, runs)
            if self.is_late():
                break
        return found

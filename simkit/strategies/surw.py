"""SURW, the selectively uniform random walk: uniform over the interleavings of the steps that matter.

Zhao, Wolff, Mathur, Roychoudhury: Selectively Uniform Concurrency Testing (ASPLOS 2025). Each run selects some steps of
interest, here all accesses to one shared resource drawn at random. The next task to take one is drawn with the number of
steps of interest that each still has before it, itself and its children to come, so that every order of them is equally
likely; until it is there, all other tasks may go on, but not with a step of interest.

Where this deviates: counts are averages over the runs so far, not of one profiling run; steps between are ordered by
random priorities, which tasks keep in half of the runs and draw anew at each step in the others; half of the runs select
places in the program instead of a resource, one that several tasks come to, or any two, and where nothing is declared
all do, but for a fourth, which selects every step (the paper's URW); where a drawn task is blocked and nobody else may go
on, another is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence

from simkit.strategies.base import ROOT, Sampler, Waiting
from simkit.strategies.knowledge import PLACE, Knowledge, Path
from simkit.strategy import TaskView

#: Weights are multiplied by this, so that averages below one count.
_SCALE = 16
_NOBODY = -1


class SURW(Sampler):
    """Selectively uniform random walk."""

    name = "surw"
    needs_probe = True

    def __init__(self, knowledge: Knowledge | None = None) -> None:
        super().__init__(knowledge)
        self.knowledge.wants_counts()

    def start(self) -> None:
        """Select what matters in this run."""
        self._selected = self._select()
        self._mattering: dict[int, bool] = {}
        if self._selected is None or any(label.startswith(PLACE) for label in self._selected):
            self.needs_places()
        self._left = self._expected()
        self._weights: dict[int, int] = {}
        self._priorities: dict[int, float] = {}
        self._intended = _NOBODY
        self._steady = self.draw() < 0.5

    def _select(self) -> frozenset[str] | None:
        """Labels of the steps of interest; None for all steps."""
        counts = self.knowledge.counts
        if counts is None or not counts.runs:
            return None
        resources = counts.resources()
        if resources and self.draw() < 0.5:
            return frozenset((self._one_of(resources),))
        busy = counts.places(users_min=2)
        if busy and self.draw() < 0.5:
            return frozenset((self._one_of(busy),))
        places = counts.places(users_min=1)
        if not places or (not resources and self.draw() < 0.5):
            return None
        return frozenset((self._one_of(places), self._one_of(places)))

    def _one_of(self, labels: list[str]) -> str:
        return labels[int(self.draw() * len(labels))]

    def _expected(self) -> dict[Path, int]:
        """Steps of interest of each task together with its children to come, times the scale."""
        counts = self.knowledge.counts
        expected: dict[Path, int] = {}
        if counts is None or not counts.runs:
            return expected
        for label in counts.totals if self._selected is None else sorted(self._selected):
            for path, total in counts.totals.get(label, {}).items():
                weight = total * _SCALE // counts.runs
                for depth in range(len(path) + 1):
                    expected[path[:depth]] = expected.get(path[:depth], 0) + weight
        return expected

    def met(self, tasks: Sequence[TaskView], parent: int) -> None:
        """New tasks take their share from their parent; the intention may pass to one of them."""
        for task in tasks:
            self._priorities[task.number] = self.draw()
            weight = self._weights[task.number] = self._left.get(self.record.paths[task.number], 0)
            if parent in self._weights:
                self._weights[parent] = max(0, self._weights[parent] - weight)
        if self._intended == parent and parent in self._weights:
            self._intend([parent, *(task.number for task in tasks)])

    def looked(self, task: TaskView) -> Waiting:
        """Look, and see whether it matters."""
        waiting = super().looked(task)
        self._mattering[waiting.number] = waiting.number != ROOT and self._matters(waiting)
        return waiting

    def choose(self, runnable: Sequence[TaskView]) -> int:
        """Return the first in priority of those that may go on; where none may, intend another of them."""
        if self._intended == _NOBODY:
            self._intend(list(self._weights))
        intended, mattering, priorities = self._intended, self._mattering, self._priorities
        first, highest = -1, -1.0
        for index, task in enumerate(runnable):
            number = task.number
            if (number == intended or not mattering[number]) and priorities[number] > highest:
                first, highest = index, priorities[number]
        if first < 0:
            self._intend([task.number for task in runnable], least=1)
            return next(index for index, task in enumerate(runnable) if task.number == self._intended)
        return first

    def taken(self, waiting: Waiting, runnable: Sequence[TaskView]) -> None:
        """Count the step, and when it mattered intend the next."""
        number = waiting.number
        if not self._steady:
            self._priorities[number] = self.draw()
        if self._mattering[number]:
            self._weights[number] = max(0, self._weights[number] - _SCALE)
            self._intended = _NOBODY

    def _intend(self, numbers: Sequence[int], least: int = 0) -> None:
        weights = [max(least, self._weights[number]) for number in numbers]
        self._intended = numbers[self.likely(weights)] if sum(weights) > 0 else _NOBODY

    def _matters(self, waiting: Waiting) -> bool:
        selected = self._selected
        if selected is None:
            return bool(waiting.labels)
        if waiting.labels:
            return not selected.isdisjoint(waiting.labels)
        return any(effect.competes and effect.resource in selected for effect in waiting.declared)

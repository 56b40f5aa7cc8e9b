"""POS: every pending step has a random priority, drawn anew for those that race with the step that is taken.

Yuan, Yang, Gu: Partial Order Aware Concurrency Sampling (CAV 2018).

Where this deviates: a race is what the declared footprints say (`simkit.step`, `simkit.touch`); an undeclared step races
with nothing and keeps its priority until it is taken, which is the paper's basic variant; the run ends with a fair suffix.
"""

from __future__ import annotations

from collections.abc import Sequence

from simkit.effects import dependent
from simkit.strategies.base import Sampler, Waiting
from simkit.strategies.knowledge import Knowledge
from simkit.strategy import TaskView


class POS(Sampler):
    """Partial order sampling."""

    name = "pos"

    def __init__(self, knowledge: Knowledge | None = None) -> None:
        super().__init__(knowledge)
        self.priorities: dict[int, float] = {}

    def start(self) -> None:
        """Forget the priorities of the last run."""
        self.priorities.clear()

    def choose(self, runnable: Sequence[TaskView]) -> int:
        """Return the first in priority."""
        priorities = [self.priority(task.number) for task in runnable]
        return priorities.index(max(priorities))

    def priority(self, number: int) -> float:
        """The priority of the pending step of a task."""
        priority = self.priorities.get(number)
        if priority is None:
            priority = self.priorities[number] = self.draw()
        return priority

    def taken(self, waiting: Waiting, runnable: Sequence[TaskView]) -> None:
        """Draw anew for the task's next step, and for every pending step that races with this one."""
        self.priorities.pop(waiting.number, None)
        footprint = waiting.footprint
        if not footprint:
            return
        for task in runnable:
            if task.number != waiting.number and dependent(footprint, self.look(task).declared):
                self.priorities.pop(task.number, None)

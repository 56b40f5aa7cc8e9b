"""PCT: random priorities, lowered at a few random steps, so that each fault of depth d has a guaranteed chance.

Burckhardt, Kothari, Musuvathi, Nagarakatte: A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs
(ASPLOS 2010). A fault that needs d ordered events among n tasks and k steps is found with a chance of at least
1 / (n k^(d-1)) a run.

Where this deviates: k is measured, by a probe run and every run since, not given; steps of the kernel's root task are not
counted, since no order depends on them; a task that declares that it spins falls behind all others, as in Shuttle; the
run ends with a fair suffix.
"""

from __future__ import annotations

from collections.abc import Sequence

from simkit.strategies.base import ROOT, Sampler, Waiting
from simkit.strategies.knowledge import Knowledge
from simkit.strategy import TaskView


class PCT(Sampler):
    """Probabilistic concurrency testing at one depth (1: order of tasks alone; each more is one pre-emption)."""

    needs_probe = True

    def __init__(self, depth: int = 3, knowledge: Knowledge | None = None) -> None:
        super().__init__(knowledge)
        if depth < 1:
            raise ValueError(f"the depth of PCT is 1 or more, not {depth}")
        self.depth = depth
        self.name = f"pct{depth}"

    def start(self) -> None:
        """Draw the steps at which the running task falls behind."""
        length = max(1, self.knowledge.length)
        self._changes = {1 + int(self.draw() * length) for _ in range(self.depth - 1)}
        self._priorities: dict[int, float] = {ROOT: 2.0}
        self._floor = 0.0
        self._count = 0

    def met(self, tasks: Sequence[TaskView], parent: int) -> None:
        """Draw initial priorities, all above those of tasks that fell behind."""
        for task in tasks:
            self._priorities.setdefault(task.number, self.draw())

    def choose(self, runnable: Sequence[TaskView]) -> int:
        """Return the first in priority, lowering it when its time has come."""
        index = self._first(runnable)
        if self._count + 1 in self._changes:
            self._changes.discard(self._count + 1)
            self._fall(runnable[index].number)
            index = self._first(runnable)
        return index

    def taken(self, waiting: Waiting, runnable: Sequence[TaskView]) -> None:
        """Count the step."""
        if waiting.number != ROOT:
            self._count += 1
        if waiting.declared and waiting.declared[0].kind == "spin":
            self._fall(waiting.number)

    def _first(self, runnable: Sequence[TaskView]) -> int:
        priorities = [self._priorities[task.number] for task in runnable]
        return priorities.index(max(priorities))

    def _fall(self, number: int) -> None:
        self._floor -= 1.0
        self._priorities[number] = self._floor

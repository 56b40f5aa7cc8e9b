"""A strategy that follows a schedule as far as it fits, and goes on by default where it does not.

The default continuation: the running task goes on; when it cannot, the runnable task with the lowest number runs. A task
that has gone on for `PATIENCE` steps by default gives way to the next one, so that a task which spins while it waits for
another does not spin for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import attrs

from simkit.strategy import Segment, TaskView

#: Steps that a task takes in a row by default while others could run.
PATIENCE = 200


@attrs.frozen
class Move:
    """A point at which the schedule left the default continuation."""

    step: int  # of the run, from 0
    task: int  # who took it
    instead_of: int  # who would have taken it by default
    preempts: bool  # whether that was the running task, which could have gone on
    lowest: int  # the lowest number that could have been taken instead of it


class LooseSchedule:
    """Follows segments; one whose task cannot run is given up, and after the last the default continuation goes on.

    Args:
        plan: segments `(task number, steps)`, from a recorded schedule or made up.
    """

    every_step = True

    def __init__(self, plan: Iterable[Sequence[int]] = ()) -> None:
        self._plan: list[Segment] = [(task, steps) for task, steps in plan]
        self._at = 0
        self._left = self._plan[0][1] if self._plan else 0
        self._running = -1
        self._patience = PATIENCE
        #: Where it departed from the default, in order.
        self.moves: list[Move] = []
        #: Who took the steps.
        self.steps: list[int] = []

    def pick(self, runnable: Sequence[TaskView], step: int) -> int:
        """Return the index of the task that the plan, or else the default, wants."""
        return self.pick_number([task.number for task in runnable], step)

    def pick_number(self, numbers: list[int], step: int) -> int:
        """As `pick`, by the numbers of the runnable tasks."""
        default = self._default(numbers)
        wanted = self._wanted(numbers)
        task = default if wanted is None else wanted
        if task != default:
            others = (number for number in numbers if number != default)
            self.moves.append(Move(len(self.steps), task, default, default == self._running, min(others)))
        alone = len(numbers) == 1
        self._patience = self._patience - 1 if task == self._running and not alone else PATIENCE
        self._running = task
        self.steps.append(task)
        return numbers.index(task)

    def _wanted(self, numbers: list[int]) -> int | None:
        while self._at < len(self._plan):
            task = self._plan[self._at][0]
            if self._left > 0 and task in numbers:
                self._left -= 1
                return task
            self._at += 1
            self._left = self._plan[self._at][1] if self._at < len(self._plan) else 0
        return None

    def _default(self, numbers: list[int]) -> int:
        running = self._running
        if running not in numbers:
            return min(numbers)
        if self._patience > 0:
            return running
        later = [number for number in numbers if number > running]
        return min(later or numbers)

    def plan(self) -> tuple[Segment, ...]:
        """The part of the schedule that was taken in fact and that the default would not give: up to the last move."""
        if not self.moves:
            return ()
        taken: list[list[int]] = []
        for task in self.steps[: self.moves[-1].step + 1]:
            if taken and taken[-1][0] == task:
                taken[-1][1] += 1
            else:
                taken.append([task, 1])
        return tuple((task, steps) for task, steps in taken)


class DrawnOrder(LooseSchedule):
    """Every runnable task is equally likely, at every step; its `plan`, followed loosely, is the same run again.

    Args:
        uniform: gives numbers from 0 up to 1, without 1.
    """

    def __init__(self, uniform: Callable[[], float]) -> None:
        super().__init__()
        self._uniform = uniform

    def _wanted(self, numbers: list[int]) -> int | None:
        return numbers[int(self._uniform() * len(numbers))]

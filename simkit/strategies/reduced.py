"""Every schedule that can make a difference: exhaustive search with source sets and sleep sets.

Abdulla, Aronis, Jonsson, Sagonas: Optimal Dynamic Partial Order Reduction (POPL 2014), the algorithm called Source-DPOR;
sleep sets are Godefroid's (1996). After each run its races are sought, pairs of dependent steps that nothing else orders;
for each, a run that reverses it is planned, unless one that starts in an equivalent way is planned or done. A task whose
next step was tried at some point sleeps there until a dependent step has been taken.

Where this deviates: it is stateless, and races are sought at the end of a run, not during it; what a step touches is what
it declared. A step that declared nothing depends on every other, so that nothing is missed and little is saved, unless
the program is said to declare all it shares (`declared=True`): then such a step touches nothing. A wake-up orders the
step that woke and the step that was woken. Needs a program that does the same in every run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from simkit.effects import EVERYTHING, Footprint
from simkit.effects import dependent as _dependent
from simkit.strategies._races import Order, Step
from simkit.strategies.base import RedundantError
from simkit.strategies.exhaustive import changed
from simkit.strategy import Strategy, TaskView
from simkit.tape import Stream
from simkit.world import Outcome


@attrs.define
class _Point:
    """A state on the way of the current run, and what to do there besides."""

    step: Step
    #: Tasks to try here, in the order of being planned; those tried are the first `tried`.
    planned: list[int]
    #: Tasks whose next step need not be tried here, with its footprint.
    sleep: dict[int, Footprint]


class Reduced:
    """Every schedule up to the order of independent steps."""

    name = "reduced"
    same_world = True
    systematic = True
    every_step = True

    def __init__(self, *, declared: bool = False) -> None:
        self._undeclared: Footprint = () if declared else EVERYTHING
        self._points: list[_Point] = []
        self._order = Order()
        self._prefix = 0  # so many points are repeated
        self._left = True

    def begin(self, stream: Stream) -> Strategy | None:
        """Start the next run."""
        self._at = 0
        self._sleep: dict[int, Footprint] = {}
        return self if self._left else None

    def pick(self, runnable: Sequence[TaskView], step: int) -> int:
        """Return the planned task, and beyond the plan the first that does not sleep."""
        numbers = tuple(task.number for task in runnable)
        at = self._at
        self._at = at + 1
        if at < self._prefix:
            point = self._points[at]
            if point.step.runnable != numbers:
                raise changed(step, f"tasks {point.step.runnable} runnable", f"{numbers}")
            number = point.step.number
            footprint = self._footprint(runnable[numbers.index(number)])
            if footprint is not point.step.footprint:
                point.step = Step(number, footprint, numbers)
        else:
            awake = [each for each in numbers if each not in self._sleep]
            if not awake:
                raise RedundantError
            number = awake[0]
            footprint = self._footprint(runnable[numbers.index(number)])
            point = _Point(Step(number, footprint, numbers), [number], dict(self._sleep))
            self._points.append(point)
        self._sleep = {
            each: theirs for each, theirs in point.sleep.items() if each != number and not _dependent(theirs, footprint)
        }
        return numbers.index(number)

    def _footprint(self, task: TaskView) -> Footprint:
        footprint = None if task.peek is None else task.peek.pending()
        return self._undeclared if footprint is None else footprint

    def end(self, outcome: Outcome[Any]) -> None:
        """Plan the reversal of every race of this run; then go back to the deepest point with something left to try."""
        points = self._points
        known = max(0, self._prefix - 1)  # the last of the prefix was another step in the run before
        self._order.cut(known)
        for at, initials, candidates in self._order.reversals([point.step for point in points[known:]]):
            planned = points[at].planned
            if not any(number in planned for number in initials):
                planned.extend(number for number in candidates if number not in planned)
        while points:
            point = points[-1]
            point.sleep[point.step.number] = point.step.footprint
            left = [number for number in point.planned if number not in point.sleep]
            if left:
                point.step = attrs.evolve(point.step, number=left[0])
                break
            points.pop()
        self._prefix = len(points)
        self._left = bool(points)

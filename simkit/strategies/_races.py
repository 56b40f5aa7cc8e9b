"""Races of one run: pairs of dependent steps that no other step orders, and how a run that reverses one may start.

Happens-before is kept as vector clocks: for each step, how many steps of each task are before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from simkit.effects import Footprint, dependent

Clock = dict[int, int]


@attrs.frozen
class Step:
    """One step of a run."""

    number: int  # of the task that took it
    footprint: Footprint
    runnable: tuple[int, ...]  # numbers of the tasks that could have


class Order:
    """The happens-before order of a run, built step by step; `cut` back to a beginning that the next run repeats."""

    def __init__(self) -> None:
        self._steps: list[Step] = []
        self._clocks: list[Clock] = []
        self._ranks: list[int] = []  # how many steps its task had taken, this one included
        self._last: dict[int, int] = {}  # by task, the index of its last step
        self._woken: dict[int, int] = {}  # by task, the index of the step before it became runnable

    def cut(self, length: int) -> None:
        """Forget all but the first so many steps."""
        del self._steps[length:], self._clocks[length:], self._ranks[length:]
        self._last.clear()
        self._woken.clear()
        for index, step in enumerate(self._steps):
            self._wake(index)
            self._last[step.number] = index

    def reversals(self, steps: Sequence[Step]) -> Iterator[tuple[int, list[int], list[int]]]:
        """Take in further steps. For each race of one of them: where to branch, who may start there, who to add.

        Gives (index of the earlier step, tasks one of which must be tried there, tasks to add when none is).
        """
        for step in steps:
            later = len(self._steps)
            for earlier in self._append(step):
                runnable = self._steps[earlier].runnable
                able = [number for number in self._initials(earlier, later) if number in runnable]
                yield earlier, able, able[:1] or list(runnable)

    def _append(self, step: Step) -> list[int]:
        """Take in the next step; return the indices of earlier steps that it races with, latest first."""
        index = len(self._steps)
        self._steps.append(step)
        self._wake(index)
        clock: Clock = {}
        for cause in (self._last.get(step.number), self._woken.get(step.number)):
            if cause is not None:
                _join(clock, self._clocks[cause])
        races = []
        steps, ranks, footprint = self._steps, self._ranks, step.footprint
        for earlier in range(index - 1, -1, -1) if footprint else ():
            other = steps[earlier]
            if ranks[earlier] <= clock.get(other.number, 0) or not dependent(other.footprint, footprint):
                continue
            races.append(earlier)
            _join(clock, self._clocks[earlier])
        last = self._last.get(step.number)
        rank = 1 if last is None else ranks[last] + 1
        clock[step.number] = rank
        self._clocks.append(clock)
        ranks.append(rank)
        self._last[step.number] = index
        return races

    def _wake(self, index: int) -> None:
        if index == 0:
            return
        before, now = self._steps[index - 1], self._steps[index].runnable
        could = before.runnable
        for number in now:
            if number not in could and number != before.number:
                self._woken[number] = index - 1

    def _before(self, one: int, other: int) -> bool:
        """Whether step `one` happens before step `other`, or is it."""
        return self._ranks[one] <= self._clocks[other].get(self._steps[one].number, 0)

    def _initials(self, earlier: int, later: int) -> list[int]:
        """Tasks that can start a run that takes `later` and all it needs without `earlier`."""
        needed = [index for index in range(earlier + 1, later) if not self._before(earlier, index)]
        needed.append(later)
        firsts: list[int] = []
        seen: dict[int, None] = {}
        for position, index in enumerate(needed):
            number = self._steps[index].number
            if number in seen:
                continue
            seen[number] = None
            if not any(self._before(each, index) for each in needed[:position]):
                firsts.append(number)
        return firsts


def _join(clock: Clock, other: Clock) -> None:
    for number, rank in other.items():
        if rank > clock.get(number, 0):
            clock[number] = rank

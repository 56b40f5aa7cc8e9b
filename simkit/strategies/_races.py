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


def race_reversals(steps: Sequence[Step], known: int = 0) -> Iterator[tuple[int, list[int], list[int]]]:
    """For each race whose later step is not among the first `known - 1`: where to branch, who may start there, who to add.

    Gives (index of the earlier step, tasks one of which must be tried there, tasks to add when none is).
    """
    order = _Order(steps)
    for later in range(len(steps)):
        races = order.append(later)
        if later < known - 1:
            continue
        for earlier in races:
            initials = order.initials(earlier, later)
            able = [number for number in initials if number in steps[earlier].runnable]
            yield earlier, able, able[:1] or list(steps[earlier].runnable)


class _Order:
    """The happens-before order of a run, built step by step."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = steps
        self._clocks: list[Clock] = []
        self._ranks: list[int] = []  # how many steps its task had taken, this one included
        self._last: dict[int, int] = {}  # by task, the index of its last step
        self._woken: dict[int, int] = {}  # by task, the index of the step before it became runnable

    def append(self, index: int) -> list[int]:
        """Take in the next step; return the indices of earlier steps that it races with, latest first."""
        step = self._steps[index]
        self._wake(index)
        clock: Clock = {}
        for cause in (self._last.get(step.number), self._woken.get(step.number)):
            if cause is not None:
                _join(clock, self._clocks[cause])
        races = []
        for earlier in range(index - 1, -1, -1):
            other = self._steps[earlier]
            if self._ranks[earlier] <= clock.get(other.number, 0) or not dependent(other.footprint, step.footprint):
                continue
            races.append(earlier)
            _join(clock, self._clocks[earlier])
        last = self._last.get(step.number)
        rank = 1 if last is None else self._ranks[last] + 1
        clock[step.number] = rank
        self._clocks.append(clock)
        self._ranks.append(rank)
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

    def before(self, one: int, other: int) -> bool:
        """Whether step `one` happens before step `other`, or is it."""
        return self._ranks[one] <= self._clocks[other].get(self._steps[one].number, 0)

    def initials(self, earlier: int, later: int) -> list[int]:
        """Tasks that can start a run that takes `later` and all it needs without `earlier`."""
        needed = [index for index in range(earlier + 1, later) if not self.before(earlier, index)]
        needed.append(later)
        firsts: list[int] = []
        seen: dict[int, None] = {}
        for position, index in enumerate(needed):
            number = self._steps[index].number
            if number in seen:
                continue
            seen[number] = None
            if not any(self.before(each, index) for each in needed[:position]):
                firsts.append(number)
        return firsts


def _join(clock: Clock, other: Clock) -> None:
    for number, rank in other.items():
        if rank > clock.get(number, 0):
            clock[number] = rank

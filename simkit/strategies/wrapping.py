"""Strategies that wrap another: one measures it, one checks that the program repeats itself.

As in Shuttle, where metrics and the check for nondeterminism are schedulers around schedulers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from simkit.errors import SimkitError
from simkit.strategies.base import Exploration
from simkit.strategies.exhaustive import changed
from simkit.strategy import Strategy, StrategyError, TaskView
from simkit.tape import Stream
from simkit.world import Outcome


@attrs.define
class Measures:
    """What a strategy did, over all its runs."""

    runs: int = 0
    steps: int = 0
    decisions: int = 0  # steps at which there was a choice
    switches: int = 0  # steps of another task than the step before
    preemptions: int = 0  # switches away from a task that could have gone on
    width_max: int = 0  # most tasks runnable at once
    steps_max: int = 0  # of one run

    def __str__(self) -> str:
        runs = max(1, self.runs)
        return (
            f"{self.runs} runs, {self.steps / runs:.1f} steps a run (most {self.steps_max}), "
            f"{self.decisions / runs:.1f} decisions, {self.switches / runs:.1f} switches, "
            f"{self.preemptions / runs:.1f} pre-emptions, at most {self.width_max} runnable"
        )


class _Wrapped:
    """A strategy for one run that passes every step by its owner."""

    every_step = True

    def __init__(self, inner: Strategy) -> None:
        self._inner = inner
        self._index = getattr(inner, "index", None)
        self._every_step = bool(getattr(inner, "every_step", False))

    def asked(self, runnable: Sequence[TaskView], step: int) -> int:
        """What the wrapped strategy picks, asked as it wants to be."""
        count = len(runnable)
        if count == 1 and not self._every_step:
            return 0
        try:
            picked = self._inner.pick(runnable, step) if self._index is None else self._index(count, step)
        except SimkitError:
            raise
        except Exception as error:
            raise StrategyError.of(self._inner, f"step {step} of the schedule", error) from error
        if type(picked) is not int or not 0 <= picked < count:
            raise StrategyError.nonsense(self._inner, step, picked, count)
        return picked


class Measured:
    """Counts what the wrapped strategy does; see `measures`."""

    def __init__(self, inner: Exploration) -> None:
        self.name = inner.name
        self.same_world = inner.same_world
        self.measures = Measures()
        self._inner = inner

    def begin(self, stream: Stream) -> Strategy | None:
        """Begin a run that is measured."""
        strategy = self._inner.begin(stream)
        return None if strategy is None else _Measuring(strategy, self.measures)

    def end(self, outcome: Outcome[Any]) -> None:
        """Close the books of the run."""
        self.measures.runs += 1
        self.measures.steps += outcome.steps
        self.measures.steps_max = max(self.measures.steps_max, outcome.steps)
        self._inner.end(outcome)


class _Measuring(_Wrapped):
    def __init__(self, inner: Strategy, measures: Measures) -> None:
        super().__init__(inner)
        self._measures = measures
        self._last = -1

    def pick(self, runnable: Sequence[TaskView], step: int) -> int:
        index = self.asked(runnable, step)
        measures, number = self._measures, runnable[index].number
        measures.decisions += len(runnable) > 1
        measures.width_max = max(measures.width_max, len(runnable))
        if number != self._last:
            measures.switches += 1
            measures.preemptions += any(task.number == self._last for task in runnable)
        self._last = number
        return index


class Twice:
    """Makes every run twice and compares them step by step: who was runnable, where, and about to do what.

    What differs is not controlled by tape and schedule, and is told as an error at the first step that shows it. The
    second run needs the same tape, so a search with this makes all its runs in the same world.
    """

    same_world = True

    def __init__(self, inner: Exploration) -> None:
        self.name = f"{inner.name}, twice"
        self._inner = inner
        self._first: _Recording | None = None
        self._outcome: Outcome[Any] | None = None

    def begin(self, stream: Stream) -> Strategy | None:
        """Begin a new run, or the last one again."""
        if self._first is not None and self._outcome is not None:
            return _Repeating(self._first)
        strategy = self._inner.begin(stream)
        self._first = None if strategy is None else _Recording(strategy)
        return self._first

    def end(self, outcome: Outcome[Any]) -> None:
        """After the second run, compare how both ended."""
        if self._outcome is None:
            self._outcome = outcome
            self._inner.end(outcome)
            return
        before, self._outcome, self._first = self._outcome, None, None
        if outcome.digest != before.digest:
            raise changed(outcome.steps, f"trace {before.digest}", outcome.digest)


class _Recording(_Wrapped):
    def __init__(self, inner: Strategy) -> None:
        super().__init__(inner)
        self.picked: list[int] = []
        self.seen: list[str] = []

    def pick(self, runnable: Sequence[TaskView], step: int) -> int:
        index = self.asked(runnable, step)
        self.picked.append(index)
        self.seen.append(_told(runnable))
        return index


class _Repeating:
    every_step = True

    def __init__(self, first: _Recording) -> None:
        self._first = first

    def pick(self, runnable: Sequence[TaskView], step: int) -> int:
        told, seen = _told(runnable), self._first.seen
        if step >= len(seen) or seen[step] != told:
            raise changed(step, seen[step] if step < len(seen) else "the end of the run", told)
        return self._first.picked[step]


def _told(runnable: Sequence[TaskView]) -> str:
    return "; ".join(_one(task) for task in runnable)


def _one(task: TaskView) -> str:
    if task.peek is None:
        return f"{task.number} ({task.name})"
    effects = ", ".join(f"{effect.kind} {effect.resource}".strip() for effect in task.peek.pending() or ())
    return f"{task.number} ({task.name}) at {task.peek.site() or 'its start'} {effects}".rstrip()

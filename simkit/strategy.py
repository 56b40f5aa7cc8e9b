"""Schedule strategies: who takes the next step. And schedules: what a run's steps were, as segments.

A schedule is a list of `(task number, steps)`: the task took so many steps in a row. Tasks are numbered by creation.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, runtime_checkable

import attrs

from simkit.effects import Footprint
from simkit.errors import ExitCode, Problem, SimkitError, told
from simkit.tape import Stream

Segment = tuple[int, int]


class Peek(Protocol):
    """Looks at a task that waits for its step."""

    def pending(self) -> Footprint | None:
        """What its next step declared; None when it declared nothing; everything when it is cancelled."""
        ...

    def site(self) -> str:
        """Where in the program it waits."""
        ...


@attrs.frozen
class TaskView:
    """What a strategy may know of a task."""

    number: int
    name: str
    process: str | None  # "host/name#pid", None for the outside
    #: What its next step will do and where; right only for strategies with `every_step`.
    peek: Peek | None = attrs.field(default=None, eq=False, repr=False)


@runtime_checkable
class Strategy(Protocol):
    """Picks the next task.

    A strategy is asked only when there is a choice, unless it has a true attribute `every_step`. One that only needs to
    know how many are runnable may have a method `index(count, step)`, which is asked instead, and is faster.
    """

    def pick(self, runnable: Sequence[TaskView], step: int) -> int:
        """Return the index in `runnable` (in order of becoming runnable) of the task that takes step `step`, from 0."""
        ...


class StrategyError(SimkitError):
    """A strategy raised, or gave nonsense, instead of picking."""

    @classmethod
    def of(cls, strategy: object, where: str, error: Exception) -> StrategyError:
        """The error for what `strategy` raised."""
        return cls._of(strategy, f"raised {told(error)}", where, "its traceback is the cause of this error")

    @classmethod
    def nonsense(cls, strategy: object, step: int, picked: object, count: int) -> StrategyError:
        """The error for what `strategy` picked of `count` tasks, unless it is an index of one."""
        told = f"picked {picked!r}" if type(picked) is int else f"picked {picked!r}, which is no int"
        return cls._of(
            strategy, told, f"step {step} of the schedule", "it picks by index in the list that it is given", count
        )

    @classmethod
    def endless(cls, strategy: object, step: int, bound: str) -> StrategyError:
        """The error for a strategy that was still picking when the run met a bound on real time or memory."""
        told = f"came to no end: the run met its bound on {bound}"
        return cls._of(strategy, told, f"step {step} of the schedule", "the traceback of the cause tells where it was")

    @classmethod
    def _of(cls, strategy: object, did: str, where: str, hint: str, count: int | None = None) -> StrategyError:
        return cls(
            Problem(
                "strategy-failed",
                f"the strategy {type(strategy).__qualname__} {did}",
                where,
                "the index of a runnable task"
                if count is None
                else f"the index of one of {count} runnable tasks, from 0",
                f"this is a fault of the strategy, not of the program; {hint}",
                ExitCode.INTERNAL,
            )
        )


class Fifo:
    """First come, first served."""

    def pick(self, runnable: Sequence[TaskView], step: int) -> int:
        """Return the index of the task that waits longest."""
        return 0

    def index(self, count: int, step: int) -> int:
        """As `pick`."""
        return 0


class RandomWalk:
    """Every runnable task is equally likely, at every step."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._random: Callable[[], float] | None = None

    def uniform(self) -> Callable[[], float]:
        """Where the choices come from, for the kernel, which does without `index`; made at first use."""
        if self._random is None:
            self._random = self._stream.random_source("walk").random
        return self._random

    def pick(self, runnable: Sequence[TaskView], step: int) -> int:
        """Return any index."""
        return int(self.uniform()() * len(runnable))

    def index(self, count: int, step: int) -> int:
        """As `pick`."""
        return int(self.uniform()() * count)


class ReplayDivergedError(SimkitError):
    """A replayed run came to an event that was recorded differently."""

    def __init__(self, problem: Problem, event: int = 0, expected: str = "", got: str = "") -> None:
        super().__init__(problem)
        self.args = (problem, event, expected, got)  # so that pickle can make it again
        self.event = event
        self.expected = expected
        self.got = got

    @classmethod
    def at(cls, event: int, expected: str, got: str) -> ReplayDivergedError:
        """The error for step number `event`, from 0; `simkit.replay` tells which event of the trace that is."""
        return cls(
            Problem(
                "replay-diverged",
                f"the replay diverged at step {event}: recorded {expected}; replayed {got}",
                f"step {event} of the schedule",
                expected,
                "the program, its dependencies or Python changed since the case was recorded, or something the guard "
                "does not see is not deterministic: `simkit doctor` tells which",
                ExitCode.DIVERGED,
            ),
            event,
            expected,
            got,
        )


class ReplaySchedule:
    """Takes the recorded steps again, and says where it cannot.

    Args:
        segments: the recorded schedule.
        then: who picks when the recorded steps are used up; None means that going on is a divergence.
    """

    every_step = True

    def __init__(self, segments: Iterable[Sequence[int]], then: Strategy | None = None) -> None:
        self._segments = [(task, steps) for task, steps in segments]
        self._ends = list(itertools.accumulate(steps for _, steps in self._segments))
        self._at = 0
        self._then = then

    def pick(self, runnable: Sequence[TaskView], step: int) -> int:
        """Return the index of the recorded task; raise ReplayDivergedError when it is not runnable."""
        while self._at < len(self._ends) and step >= self._ends[self._at]:
            self._at += 1
        if self._at == len(self._ends):
            if self._then is not None:
                return self._then.pick(runnable, step) if len(runnable) > 1 else 0
            raise ReplayDivergedError.at(step, "the end of the run", _listed(runnable))
        number = self._segments[self._at][0]
        for index, task in enumerate(runnable):
            if task.number == number:
                return index
        raise ReplayDivergedError.at(step, f"a step of task {number}", _listed(runnable))

    def finish(self, steps: int) -> None:
        """Raise ReplayDivergedError when the run ended before the recorded one did."""
        recorded = self._ends[-1] if self._ends else 0
        if steps < recorded:
            raise ReplayDivergedError.at(steps, f"{recorded - steps} more steps", "the end of the run")


def segments(steps: Iterable[int]) -> tuple[Segment, ...]:
    """The schedule of a run that stepped these tasks in this order."""
    return tuple((number, sum(1 for _ in run)) for number, run in itertools.groupby(steps))


def _listed(runnable: Sequence[TaskView]) -> str:
    shown = [f"{task.number} ({task.name})" for task in itertools.islice(runnable, 5)]
    more = ", …" if len(runnable) > len(shown) else ""
    return f"runnable: {', '.join(shown)}{more}"

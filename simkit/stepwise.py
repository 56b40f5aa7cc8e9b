"""Stop a replay right before one of its steps: `Stopping` wraps the schedule, `Moment` is what there is to see there."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

import attrs

from simkit._options import need_whole
from simkit.errors import ExitCode, Problem, SimkitError
from simkit.standstill import Standstill, look_at
from simkit.strategy import Strategy, TaskView
from simkit.watching import watched

if TYPE_CHECKING:
    from types import TracebackType

    from trio.lowlevel import Task  # noqa: TC004  # nobody reads the annotations of a moment

    from simkit.host import Host
    from simkit.trace import Trace
    from simkit.world import Outcome, World  # noqa: TC004  # likewise


class Stop(BaseException):  # not an error: the replay ends here because somebody wants it to
    """Raised by a call-back to end the replay before the step."""


@attrs.frozen
class Moment:
    """Right before a step."""

    world: World
    task: Task  # that is about to take it
    step: int  # of the run, from 0
    runnable: frozenset[int]  # the numbers of the tasks that could take it
    stopping: Stopping = attrs.field(repr=False)

    def end(self) -> None:
        """End the replay before its next step, whatever the program does about it."""
        self.stopping.over = True

    def standstill(self) -> Standstill:
        """How everything stands."""
        return look_at(self.world, self.task, self.step, self.runnable)


def step_of(trace: Trace, event: int) -> int:
    """The number of the step at which event number `event` happens, or before which, when it is told between two.

    Raises SimkitError when the trace has no such event.
    """
    need_whole("replay: event", event)
    if not 0 <= event < len(trace):
        count = len(trace)
        raise SimkitError(
            Problem(
                "event-unknown",
                f"there is no event {event}: the replay has {count} events",
                "replay",
                f"a number from 0 to {count - 1}" if count else "a case whose run has events",
                "`simkit replay CASE --trace -` lists them with their numbers",
                ExitCode.USAGE,
            )
        )
    kinds = [told.kind for told in trace.events()]
    before = sum(kind == "step" for kind in kinds[:event])
    if kinds[event] == "step":
        return before
    # what the clock or a timer tells comes before the next step, everything else belongs to the step that goes on
    since = list(itertools.takewhile(lambda kind: kind != "step", reversed(kinds[: event + 1])))
    between = "clock" in since or before == 0
    steps = sum(kind == "step" for kind in kinds)
    return min(before, steps - 1) if between else before - 1


class Stopping:
    """A strategy that follows another one, and calls back right before one step."""

    every_step = True

    def __init__(self, inner: Strategy, step: int, call: Callable[[Moment], object]) -> None:
        self._inner = inner
        self._step = step
        self._call = call
        self._worlds: list[World] = []
        self.over = False

    def __enter__(self) -> Self:
        self._watching = watched(self)
        self._watching.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._watching.__exit__(kind, error, at)

    def pick(self, runnable: Sequence[TaskView], step: int) -> int:
        """As the other one."""
        self._check()
        index = self._inner.pick(runnable, step)
        if step == self._step:
            kernel = self._worlds[-1].kernel
            number = runnable[index].number
            task = next(task for task in kernel.tasks() if kernel.number(task) == number)
            self._call(Moment(self._worlds[-1], task, step, frozenset(view.number for view in runnable), self))
            self._check()
        return index

    def finish(self, steps: int) -> None:
        """As the other one."""
        self._check()
        getattr(self._inner, "finish", lambda _steps: None)(steps)

    def _check(self) -> None:
        if self.over:
            raise Stop

    # ---- as a watcher

    def begins(self, world: World) -> None:
        """Note whose steps these are."""
        self._worlds.append(world)

    def starts(self, host: Host) -> None:
        """Nothing to see."""

    def loses_power(self, host: Host) -> None:
        """Nothing to see."""

    def ends(self, world: World, outcome: Outcome[Any]) -> None:
        """Nothing to see."""

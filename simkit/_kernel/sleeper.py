"""`trio.sleep` in user code, unmodified, served by one heap entry instead of a cancel scope and an exception.

Same steps, same errors, same cancellation; about a tenth of the cost. `serving()` swaps the code of `trio.sleep` while a
simulation runs, so that modules that took the function by name are served too.
"""

from __future__ import annotations

import contextlib
import math
import types
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any

import trio
from trio import _timeouts
from trio._core._run import GLOBAL_RUN_CONTEXT, Task
from trio._core._traps import WaitTaskRescheduled
from trio.lowlevel import Abort

from simkit._kernel.timers import to_ns

if TYPE_CHECKING:
    from simkit._kernel.timers import Timers

_new_trap = WaitTaskRescheduled.__new__


class Sleeper:
    """A sleeping task's entry in the heap."""

    __slots__ = ("task", "timers")

    def __init__(self, timers: Timers, task: Task) -> None:
        self.timers = timers
        self.task: Task | None = task

    @property
    def pending(self) -> bool:
        """Whether the task still sleeps."""
        return self.task is not None

    def fire(self) -> None:
        """Wake the task."""
        task, self.task = self.task, None
        if task is not None:
            task._runner.reschedule(task)

    def abort(self, _raise_cancel: Callable[[], Any]) -> Abort:
        """Stop sleeping: the task was cancelled, or killed."""
        self.task = None
        self.timers.stale += 1
        return Abort.SUCCEEDED


def _sleeping(duration_ns: int) -> Generator[Any, Any, None]:
    """Suspend the running task for `duration_ns`; a checkpoint also when that is 0 or less."""
    task = GLOBAL_RUN_CONTEXT.task
    timers: Timers = task._runner.deadlines  # type: ignore[assignment]
    sleeper = Sleeper(timers, task)
    timers.push(timers.now_ns + duration_ns, sleeper)
    trap = _new_trap(WaitTaskRescheduled)
    trap.__dict__["abort_func"] = sleeper.abort  # past the frozen class's own, slow way
    (yield trap).unwrap()


#: For `await`.
sleep_ns = types.coroutine(_sleeping)


@types.coroutine
def _sleep_seconds(seconds: float) -> Generator[Any, Any, None]:
    if math.isnan(seconds):
        raise ValueError("deadline must not be NaN")
    if math.isinf(seconds):
        yield from trio.sleep_forever().__await__()  # noqa: ASYNC105  # this is awaiting it
    yield from _sleeping(to_ns(seconds))


async def _sleep(seconds: float) -> None:
    """Stand in for `trio.sleep`; must have no free variables, its globals are those of trio._timeouts."""
    if seconds < 0:
        raise ValueError("`seconds` must be non-negative")
    if seconds == 0:
        await trio.lowlevel.checkpoint()
    else:
        await _simkit_sleep_seconds(seconds)  # type: ignore[name-defined]  # noqa: F821


@contextlib.contextmanager
def serving() -> Iterator[None]:
    """Serve `trio.sleep` from the heap in this block."""
    original = trio.sleep.__code__
    _timeouts.__dict__["_simkit_sleep_seconds"] = _sleep_seconds
    trio.sleep.__code__ = _sleep.__code__
    try:
        yield
    finally:
        trio.sleep.__code__ = original
        del _timeouts.__dict__["_simkit_sleep_seconds"]

"""A place where one task waits until it is told to go on, again and again: one trap object for all of its waits."""

from __future__ import annotations

import types
from collections.abc import Generator
from typing import Any

import outcome
import trio
from trio._core._run import GLOBAL_RUN_CONTEXT, Task
from trio._core._traps import WaitTaskRescheduled


class Spot:
    """Where at most one task waits."""

    __slots__ = ("_trap", "task")

    def __init__(self) -> None:
        #: Who waits here.
        self.task: Task | None = None
        self._trap = WaitTaskRescheduled(self._abort)

    @types.coroutine
    def wait(self) -> Generator[Any, Any, None]:
        """Wait for `wake` or `fail`; a checkpoint."""
        self.task = GLOBAL_RUN_CONTEXT.task
        (yield self._trap).unwrap()

    def wake(self) -> None:
        """Let the waiting task, if any, go on."""
        task = self.task
        if task is not None:
            self.task = None
            task._runner.reschedule(task)

    def fail(self, error: BaseException) -> None:
        """Raise `error` in the waiting task, if any."""
        task = self.task
        if task is not None:
            self.task = None
            task._runner.reschedule(task, outcome.Error(error))

    def _abort(self, _raise_cancel: object) -> trio.lowlevel.Abort:
        self.task = None
        return trio.lowlevel.Abort.SUCCEEDED

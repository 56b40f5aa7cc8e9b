"""A place where at most one task waits, as on a file descriptor."""

from __future__ import annotations

import outcome
import trio


class Waiter:
    """One task, waiting to be told to look again."""

    __slots__ = ("_task", "_what")

    def __init__(self, what: str) -> None:
        self._what = what
        self._task: trio.lowlevel.Task | None = None

    async def wait(self) -> None:
        """Wait for `wake` or `fail`."""
        if self._task is not None:
            raise trio.BusyResourceError(f"another task is already {self._what} this socket")
        self._task = trio.lowlevel.current_task()

        def abort(_: object) -> trio.lowlevel.Abort:
            self._task = None
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)

    def wake(self) -> None:
        """Let the waiting task, if any, look again."""
        task, self._task = self._task, None
        if task is not None:
            trio.lowlevel.reschedule(task)

    def fail(self, error: Exception) -> None:
        """Raise `error` in the waiting task, if any."""
        task, self._task = self._task, None
        if task is not None:
            trio.lowlevel.reschedule(task, outcome.Error(error))

    def forget(self) -> None:
        """Let go of a task that will never run again."""
        self._task = None

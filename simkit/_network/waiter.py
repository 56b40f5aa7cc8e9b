"""A place where at most one task waits, as on a file descriptor."""

from __future__ import annotations

from collections.abc import Awaitable

import trio

from simkit._kernel.parking import Spot


class Waiter(Spot):
    """One task, waiting to be told to look again."""

    __slots__ = ("_what",)

    def __init__(self, what: str) -> None:
        super().__init__()
        self._what = what

    def wait(self) -> Awaitable[None]:  # type: ignore[override]
        """Wait for `wake` or `fail`."""
        if self.task is not None:
            raise trio.BusyResourceError(f"another task is already {self._what} this socket")
        return super().wait()

    def forget(self) -> None:
        """Let go of a task that will never run again."""
        self.task = None

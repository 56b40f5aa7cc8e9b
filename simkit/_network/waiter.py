"""A place where at most one task waits, as on a file descriptor."""

from __future__ import annotations

import types
from collections.abc import Generator
from typing import Any

import trio

from simkit._kernel.parking import Spot


class Waiter(Spot):
    """One task, waiting to be told to look again."""

    __slots__ = ("_what",)

    def __init__(self, what: str) -> None:
        super().__init__()
        self._what = what

    @types.coroutine
    def wait(self) -> Generator[Any, Any, None]:
        """Wait for `wake` or `fail`."""
        if self.task is not None:
            raise trio.BusyResourceError(f"another task is already {self._what} this socket")
        self.task = trio.lowlevel.current_task()
        (yield self._trap).unwrap()

    def forget(self) -> None:
        """Let go of a task that will never run again."""
        self.task = None

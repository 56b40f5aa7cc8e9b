"""What the programs of the yardstick are made of: shared cells, locks and conditions, each access a declared yield point.

An access waits for its turn first and then happens, so that what a strategy sees is what the task will do next. A lock
does not take itself before its yield point, as `trio.Lock` does; whoever finds it taken waits and competes anew.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

import trio

from simkit import step, touch

T = TypeVar("T")
Body = Callable[[], Awaitable[Any]]


class FaultError(AssertionError):
    """The fault of a program has shown."""


def must(holds: bool, what: str) -> None:
    """Fail with `what` unless it holds."""
    if not holds:
        raise FaultError(what)


class Cell(Generic[T]):
    """A variable that tasks share; every access is one atomic step."""

    def __init__(self, name: str, value: T) -> None:
        self.name = name
        self.value = value

    async def get(self) -> T:
        await step("read", self.name)
        return self.value

    async def set(self, value: T) -> None:
        await step("write", self.name)
        self.value = value

    async def update(self, change: Callable[[T], T]) -> T:
        """Replace the value atomically, and return the one before."""
        await step("update", self.name)
        before, self.value = self.value, change(self.value)
        return before

    async def swap(self, value: T) -> T:
        """Exchange the value atomically, and return the one before."""
        return await self.update(lambda _: value)

    async def replace(self, expected: T, value: T) -> bool:
        """Compare and swap."""
        return await self.update(lambda now: value if now == expected else now) == expected


class Lock:
    """A mutex that whoever comes first may take, like those of threads."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.taken = False
        self._waiting = trio.lowlevel.ParkingLot()

    async def acquire(self) -> None:
        await step("acquire", self.name)
        await self.take()

    async def take(self) -> None:
        """Take it in this step, or in the first one after it was free again."""
        while self.taken:
            touch("acquire", self.name)
            await self._waiting.park()
        self.taken = True

    async def release(self) -> None:
        await step("release", self.name)
        self.free()

    def free(self) -> None:
        """Release within a step that does more."""
        self.taken = False
        self._waiting.unpark_all()

    async def __aenter__(self) -> None:
        await self.acquire()

    async def __aexit__(self, *_raised: object) -> None:
        await self.release()


class Condition:
    """A condition variable: signals that nobody waits for are lost."""

    def __init__(self, name: str, lock: Lock) -> None:
        self.name = name
        self._lock = lock
        self._waiting = trio.lowlevel.ParkingLot()

    async def wait(self) -> None:
        """Let go of the lock and wait for a signal, in one step; come back with the lock."""
        await step("release", self._lock.name)
        self._lock.free()
        touch("acquire", self._lock.name)
        await self._waiting.park()
        await self._lock.take()

    async def signal(self) -> None:
        await step("write", self.name)
        self._waiting.unpark()

    async def broadcast(self) -> None:
        await step("write", self.name)
        self._waiting.unpark_all()


async def together(*bodies: Body) -> None:
    """Start a task for each body, one after another as a main thread does, and wait for all of them."""
    async with trio.open_nursery() as nursery:
        for body in bodies:
            nursery.start_soon(body)
            await step("local")

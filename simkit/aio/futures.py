"""Tasks and futures whose hash is their number: a set of them has the same order in every run.

`asyncio.wait` gives sets of tasks; with the usual hash, which is an address, a program that iterates one takes another
way each time.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simkit.aio.loop import SimulatedLoop


class SimulatedFuture(asyncio.Future[Any]):
    """A future of a simulated loop."""

    def __init__(self, *, loop: SimulatedLoop) -> None:
        self.number = loop.next_number()
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self.number


class SimulatedTask(asyncio.Task[Any]):
    """A task of a simulated loop, named by its loop: asyncio's own names count on from run to run."""

    def __init__(self, coro: Any, *, loop: SimulatedLoop, name: object = None, **options: Any) -> None:
        self.number = loop.next_number()
        super().__init__(coro, loop=loop, name=loop.next_name() if name is None else str(name), **options)

    def __hash__(self) -> int:
        return self.number

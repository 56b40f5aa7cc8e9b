"""What asyncio itself puts into sets, in one order in every run: `as_completed` starts its coroutines in that of a set of them.

A coroutine is hashed by its address. So `asyncio.tasks` gets a `set` of our own, which keeps the order in which awaitables
were given; it is asked for nothing else, and outside a simulated loop it is the built-in one. What `gather` returns is no
future of the loop's making, and is hashed by number too.
"""

from __future__ import annotations

import asyncio
import builtins
import functools
from asyncio import events, tasks
from collections.abc import Collection, Iterable
from typing import Any

__all__ = ["keep_order"]


@functools.cache
def keep_order(loop: type[asyncio.AbstractEventLoop]) -> None:
    """From now on awaitables keep their order where a `loop` of this kind runs; nothing else changes, nothing is undone."""

    def ordered(items: Iterable[Any] = ()) -> Collection[Any]:
        if isinstance(events._get_running_loop(), loop):
            kept = dict.fromkeys(items)
            items = kept
            if not all(map(asyncio.isfuture, kept)):
                return kept
        return builtins.set(items)

    def number(future: Any) -> int:
        if not isinstance(future.get_loop(), loop):
            return object.__hash__(future)
        if not hasattr(future, "number"):
            future.number = future.get_loop().next_number()
        return int(future.number)

    vars(tasks)["set"] = ordered
    gathering: Any = tasks._GatheringFuture
    gathering.__hash__ = number

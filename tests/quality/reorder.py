"""Many tasks do the same: a two-word publish, a two-stage update, a cell under the wrong lock (SCTBench, CS).

Few of the many orders show the fault, and the more tasks there are, the fewer: what a random walk does not find.
"""

from __future__ import annotations

from tests.quality.machine import Cell, Lock, must, together


async def reorder(setters: int, checkers: int) -> None:
    """Setters publish two words, first one and then the other; a checker may see the first without the second."""
    first, second = Cell("first", 0), Cell("second", 0)

    async def setter() -> None:
        await first.set(1)
        await second.set(-1)

    async def checker() -> None:
        before = await first.get() == 0 and await second.get() == 0
        must(before or (await first.get() == 1 and await second.get() == -1), "a publish seen half-done")

    await together(*[setter] * setters, *[checker] * checkers)


async def two_stage(writers: int, readers: int) -> None:
    """An update of two words holds a lock for each in turn; between the stages a reader sees the old second word."""
    one, other = Lock("one"), Lock("other")
    first, second = Cell("first", 0), Cell("second", 0)

    async def writer() -> None:
        async with one:
            await first.set(1)
        async with other:
            await second.set(await first.get() + 1)

    async def reader() -> None:
        async with one:
            seen = await first.get()
        if seen == 0:
            return
        async with other:
            must(await second.get() == seen + 1, "the second stage is missing")

    await together(*[writer] * writers, *[reader] * readers)


async def wrong_lock(right: int, wrong: int) -> None:
    """One cell, two locks: who holds the right one still loses an update to those who hold the other."""
    lock, other = Lock("lock"), Lock("other")
    cell = Cell("cell", 0)

    async def owner() -> None:
        async with lock:
            before = await cell.get()
            await cell.set(before + 1)
            must(await cell.get() == before + 1, "somebody else wrote under the lock")

    async def stranger() -> None:
        async with other:
            await cell.set(await cell.get() + 1)

    await together(*[owner] * right, *[stranger] * wrong)

"""Faults of libraries: a string buffer, a sorting pool, a lock and a monitor (SCTBench: JDK 1.4, qsort_mt; RADBench: NSPR)."""

from __future__ import annotations

import trio

from tests.quality.machine import Cell, Condition, Lock, must, together


async def string_buffer() -> None:
    """Append asks the other buffer for its length and then for its characters; each call locks, the pair does not."""
    lock, text = Lock("buffer"), Cell("text", "abc")

    async def append() -> None:
        async with lock:
            length = len(await text.get())
        async with lock:
            must(length <= len(await text.get()), "characters beyond the end")

    async def erase() -> None:
        async with lock:
            length = len(await text.get())
        for _ in range(2):
            async with lock:
                await text.set("x" * length)  # same length: harmless
        async with lock:
            await text.set("")
        async with lock:
            await text.set("abc")

    await together(append, erase)


class _Worker:
    """A place in the pool: idle, or at work on a range."""

    def __init__(self, number: int) -> None:
        self.lock = Lock(f"worker{number}")
        self.told = Condition(f"told{number}", self.lock)
        self.state = Cell(f"state{number}", "idle")
        self.range = (0, 0)


async def sort_pool() -> None:
    """A pool of sorting workers loses a wake-up: who is told it has work before it waits for work waits for ever.

    A worker looks at its state before it takes the lock that its signal is given under. Telling all that sorting is over
    takes the same way, so that the sort then hangs.
    """
    values = [3, 1, 2, 0]
    workers = [_Worker(number) for number in range(2)]
    pool, idle = Lock("pool"), Cell("idle", len(workers))

    async def hand_over(low: int, high: int) -> bool:
        for worker in workers:
            async with pool:
                free = await worker.state.get() == "idle" and await idle.get() > 1
                if free:
                    await idle.set(await idle.get() - 1)
            if free:
                async with worker.lock:
                    worker.range = (low, high)
                    await worker.state.set("work")
                    await worker.told.signal()
                return True
        return False

    async def sort(low: int, high: int) -> None:
        if high - low < 1:
            return
        pivot, split = values[high], low
        for place in range(low, high):
            if values[place] < pivot:
                values[place], values[split] = values[split], values[place]
                split += 1
        values[split], values[high] = values[high], values[split]
        if not (split - low > 1 and await hand_over(low, split - 1)):
            await sort(low, split - 1)
        await sort(split + 1, high)

    async def finish() -> bool:
        async with pool:
            left = await idle.get() + 1
            await idle.set(left)
        if left < len(workers):
            return False
        for worker in workers:
            async with worker.lock:
                await worker.state.set("over")
                await worker.told.signal()
        return True

    async def live(worker: _Worker) -> None:
        while True:
            if await worker.state.get() == "idle":
                async with worker.lock:
                    await worker.told.wait()
            if await worker.state.get() == "over":
                return
            await sort(*worker.range)
            async with worker.lock:
                await worker.state.set("idle")
            if await finish():
                return

    workers[0].range = (0, len(values) - 1)
    workers[0].state.value = "work"
    idle.value -= 1
    await together(*[lambda worker=worker: live(worker) for worker in workers])
    must(values == sorted(values), "not sorted")


async def lazy_lock() -> None:
    """A lock made when it is first needed: two tasks find none, each makes one, and both are inside (NSPR, bug 4)."""
    made: list[Lock] = []
    current: Cell[Lock | None] = Cell("current", None)
    ready, inside = Cell("ready", value=False), Cell("inside", 0)

    async def the_lock() -> Lock:
        lock = await current.get()
        if lock is None:
            lock = Lock(f"lock{len(made)}")
            made.append(lock)
            await current.set(lock)
            await ready.set(True)
        return lock

    async def user() -> None:
        for _ in range(2):
            await ready.get()
        async with await the_lock():
            before = await inside.update(lambda number: number + 1)
            must(before == 0, "two are inside")
            await inside.update(lambda number: number - 1)

    await together(user, user, user)


async def monitor() -> None:
    """A monitor notes its owner after it has the lock, and forgets it after it has let go (NSPR, bug 6).

    Whoever enters in between and asks "am I the owner?" is told no, or loses the note that it just made.
    """
    lock = Lock("monitor")
    owner, depth = Cell("owner", -1), Cell("depth", 0)

    async def enter(me: int) -> None:
        if await owner.get() != me:
            await lock.acquire()
            await owner.set(me)
        await depth.set(await depth.get() + 1)

    async def leave(me: int) -> None:
        must(await owner.get() == me, "the owner is somebody else")
        left = await depth.get() - 1
        await depth.set(left)
        if left == 0:
            await lock.release()
            await owner.set(-1)

    async def user(me: int) -> None:
        await enter(me)
        await enter(me)
        await leave(me)
        await leave(me)

    await together(lambda: user(0), lambda: user(1))


async def channel_hang() -> None:
    """Plain trio: a reader that is told by an event made anew after the look at the old one waits for the wrong event."""
    told = trio.Event()
    news = 0

    async def teller() -> None:
        nonlocal news
        await trio.lowlevel.checkpoint()
        news += 1
        told.set()

    async def reader() -> None:
        nonlocal told
        seen = news
        await trio.lowlevel.checkpoint()
        if seen == 0:
            told = trio.Event()
            await told.wait()

    await together(reader, teller)

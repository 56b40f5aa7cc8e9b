"""Programs that no strategy was tuned on: other classics of the field, and some in plain trio that declare nothing."""

from __future__ import annotations

import trio

from tests.quality.machine import Cell, Condition, Lock, must, together


async def account() -> None:
    """A deposit and a withdrawal lock, the transfer that adds up both reads between them (SCTBench, account)."""
    lock, balance = Lock("account"), Cell("balance", 10)

    async def change(amount: int) -> None:
        async with lock:
            seen = await balance.get()
        async with lock:
            await balance.set(seen + amount)

    async def check() -> None:
        await together(lambda: change(5), lambda: change(-3))
        must(await balance.get() == 12, "an update of the account is lost")

    await together(check)


async def bluetooth() -> None:
    """A driver that stops looks whether anybody is inside; somebody enters right after (SCTBench, bluetooth_driver)."""
    stopping, stopped = Cell("stopping", value=False), Cell("stopped", value=False)
    pending = Cell("pending", 1)

    async def leave() -> None:
        if await pending.update(lambda now: now - 1) == 1:
            await stopped.set(True)

    async def add() -> None:
        if not await stopping.get():
            await pending.update(lambda now: now + 1)
            must(not await stopped.get(), "at work in a driver that has stopped")
            await leave()

    async def stop() -> None:
        await stopping.set(True)
        await leave()

    await together(add, stop)


async def philosophers() -> None:
    """Five take the fork at their left, then the one at their right: all at once, and none eats."""
    forks = [Lock(f"fork{number}") for number in range(5)]

    async def dine(seat: int) -> None:
        async with forks[seat], forks[(seat + 1) % 5]:
            pass

    await together(*[lambda seat=seat: dine(seat) for seat in range(5)])


async def plain_philosophers() -> None:
    """The same in plain trio, with `trio.Lock`."""
    forks = [trio.Lock() for _ in range(5)]

    async def dine(seat: int) -> None:
        async with forks[seat], forks[(seat + 1) % 5]:
            pass

    async with trio.open_nursery() as nursery:
        for seat in range(5):
            nursery.start_soon(dine, seat)


async def treiber() -> None:
    """A stack whose pop compares the head by name: another pops two and pushes the first back, and a freed one is head."""
    links = [Cell(f"link{number}", number + 1 if number < 2 else -1) for number in range(3)]
    head = Cell("head", 0)
    held = [0] * 3

    async def pop() -> int:
        first = await head.get()
        if first < 0:
            return -1
        second = await links[first].get()
        if not await head.replace(first, second):
            return -1
        held[first] += 1
        must(held[first] == 1, "two hold one cell")
        return first

    async def push(cell: int) -> None:
        held[cell] -= 1
        first = await head.get()
        await links[cell].set(first)
        if not await head.replace(first, cell):
            held[cell] += 1

    async def keeper() -> None:
        await pop()

    async def mover() -> None:
        first = await pop()
        await pop()
        if first >= 0:
            await push(first)
        await pop()

    await together(keeper, mover)
    seen = await head.get()
    must(seen < 0 or held[seen] == 0, "the head is held")


async def bounded_buffer() -> None:
    """A consumer that, woken, does not look again whether there is anything: another was faster."""
    lock = Lock("buffer")
    filled = Condition("filled", lock)
    count = Cell("count", 0)

    async def consumer() -> None:
        async with lock:
            if await count.get() == 0:
                await filled.wait()
            left = await count.get() - 1
            must(left >= 0, "an element that is not there")
            await count.set(left)

    async def producer() -> None:
        for _ in range(2):
            async with lock:
                await count.set(await count.get() + 1)
                await filled.signal()

    await together(consumer, consumer, producer)


async def peterson() -> None:
    """Peterson's lock, the turn given away before the flag is raised: both may be inside."""
    raised = [Cell("raised0", value=False), Cell("raised1", value=False)]
    turn, inside = Cell("turn", 0), Cell("inside", 0)

    async def enter(me: int) -> None:
        await turn.set(1 - me)
        await raised[me].set(True)
        for _ in range(20):  # then it gives up
            if not await raised[1 - me].get() or await turn.get() == me:
                break
        else:
            return
        must(await inside.update(lambda now: now + 1) == 0, "two are inside")
        await inside.update(lambda now: now - 1)
        await raised[me].set(False)

    await together(lambda: enter(0), lambda: enter(1))


async def plain_cache() -> None:
    """Plain trio: ten readers fill a cache when it is empty; one clears it between a look and the use."""
    cache: dict[str, int] = {}

    async def reader() -> None:
        if "key" not in cache:
            await trio.lowlevel.checkpoint()
            cache["key"] = 1
        await trio.lowlevel.checkpoint()
        must("key" in cache, "cleared in between")

    async def clearer() -> None:
        for _ in range(10):
            await trio.lowlevel.checkpoint()
        if len(cache) == 1:
            await trio.lowlevel.checkpoint()
            cache.clear()

    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(reader)
        nursery.start_soon(clearer)


async def plain_handover() -> None:
    """Plain trio: three stages, each counted on to be quicker than the one before is twice."""
    stage = 0
    steps = trio.lowlevel.checkpoint

    async def climb(start: int, pause: int) -> None:
        nonlocal stage
        for _ in range(pause):
            await steps()
        if stage == start:
            stage = start + 1

    async def fall() -> None:
        for _ in range(6):
            await steps()
        seen = stage
        await steps()
        await steps()
        must(not (seen == 1 and stage == 3), "two stages in two steps")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(climb, 2, 8)
        nursery.start_soon(climb, 1, 8)
        nursery.start_soon(climb, 0, 2)
        nursery.start_soon(fall)

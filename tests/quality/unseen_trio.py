"""More programs that no strategy was tuned on, in plain trio: nothing is declared, time passes, tasks are cancelled."""

from __future__ import annotations

import contextlib

import trio

from simkit import World
from tests.quality.machine import FaultError, must

pause = trio.lowlevel.checkpoint


async def pool_leak() -> None:
    """A connection taken right before a cancellation is never put back: the `try` begins one await too late."""
    free = ["one", "two"]

    async def request() -> None:
        connection = free.pop()
        await pause()  # say hello
        try:
            await pause()
            await pause()
        finally:
            free.append(connection)

    async with trio.open_nursery() as nursery:

        async def impatient() -> None:
            with trio.CancelScope() as scope:
                nursery.start_soon(scope_after, scope)
                await request()

        async def scope_after(scope: trio.CancelScope) -> None:
            await pause()
            await pause()
            await pause()
            scope.cancel()

        nursery.start_soon(impatient)
        nursery.start_soon(request)
    must(len(free) == 2, "a connection is lost")


async def swallowed() -> None:
    """A worker that catches everything, to tell of what went wrong: cancelled in the middle, it goes on as if it were done."""
    done = half = False

    async def worker() -> None:
        nonlocal done, half
        half = True
        with contextlib.suppress(BaseException):  # the fault: a cancellation is none of its business
            await pause()
            await pause()
            half = False
        done = True

    async def stopper(scope: trio.CancelScope) -> None:
        for _ in range(5):
            await pause()
        scope.cancel()

    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stopper, scope)
            nursery.start_soon(worker)
    must(not (done and half), "said to be done, and half done")


async def stampede() -> None:
    """A cache that lets one load and the others wait: two that find no loader at the same time both load."""
    cache: dict[str, int] = {}
    loading: dict[str, trio.Event] = {}
    loads = 0

    async def get(key: str) -> int:
        nonlocal loads
        while key not in cache:
            if key in loading:
                await loading[key].wait()
                continue
            await pause()  # asks for the address of the source
            event = loading[key] = trio.Event()
            loads += 1
            await pause()
            cache[key] = 1
            loading.pop(key, None)
            event.set()
        return cache[key]

    async def late() -> None:
        for _ in range(3):
            await pause()
        await get("key")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(get, "key")
        nursery.start_soon(late)
    must(loads == 1, "loaded twice")


async def lease() -> None:
    """The holder looks at the clock, then writes; between the two its lease ends and another's begins."""
    holder, until = "", 0.0

    async def work(name: str) -> None:
        nonlocal holder, until
        for _ in range(3):
            if trio.current_time() >= until:
                holder, until = name, trio.current_time() + 2
            mine = holder == name and trio.current_time() < until
            await trio.sleep(1)
            if mine and trio.current_time() <= until:  # at the very end the other may have it already
                must(holder == name, f"{name} writes under the lease of {holder}")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(work, "one")
        nursery.start_soon(work, "two")


async def replaced_event() -> None:
    """An event cannot be reset, so it is replaced: a waiter that had fetched the old one sleeps for ever."""
    event = trio.Event()
    items: list[int] = []

    async def consumer() -> None:
        nonlocal event
        got = 0
        while got < 2:
            if items:
                items.pop()
                got += 1
                continue
            await pause()
            event = trio.Event()
            await event.wait()

    async def producer() -> None:
        for item in range(2):
            items.append(item)
            event.set()
            for _ in range(4):
                await pause()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(consumer)
        nursery.start_soon(producer)


async def last_one_closes() -> None:
    """The last of two producers closes the channel: each looks how many are left before it counts itself out."""
    send, receive = trio.open_memory_channel[int](2)
    left, got = 2, 0

    async def producer(number: int) -> None:
        nonlocal left
        if number:
            for _ in range(4):
                await pause()
        await send.send(number)
        last = left == 1
        await pause()
        left -= 1
        if last:
            send.close()

    async def consumer() -> None:
        nonlocal got
        async for _ in receive:
            got += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(producer, 0)
        nursery.start_soon(producer, 1)
        nursery.start_soon(consumer)


async def stop_flag() -> None:
    """A worker looks at the stop flag and then waits for work: whoever stops it in between wakes nobody."""
    stopping = False
    wake = trio.lowlevel.ParkingLot()
    jobs: list[int] = [1]

    async def worker() -> None:
        while not stopping:
            if jobs:
                jobs.pop()
                await pause()
                continue
            await pause()
            await wake.park()

    async def stop() -> None:
        nonlocal stopping
        for _ in range(6):
            await pause()
        stopping = True
        wake.unpark_all()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(worker)
        nursery.start_soon(stop)


async def allowance() -> None:
    """An account is looked up, then charged: two requests that look at the same time spend what is there for one."""
    left, spent = 3, 0

    async def request(pauses: int) -> None:
        nonlocal left, spent
        for _ in range(pauses):
            await pause()
        if left >= 2:
            await pause()
            left -= 2
            spent += 2

    async with trio.open_nursery() as nursery:
        nursery.start_soon(request, 1)
        nursery.start_soon(request, 5)
    must(spent <= 3, f"spent {spent} of 3")


async def philosophers_with_a_waiter() -> None:
    """A waiter lets one fewer than all sit down, but a guest who leaves gives the seat back before the forks."""
    forks, seats = [trio.Lock() for _ in range(3)], trio.Semaphore(2)

    async def dine(me: int) -> None:
        for _ in range(7 * me):
            await pause()
        for _ in range(2):
            await seats.acquire()
            async with forks[me]:
                seats.release()  # too early
                await pause()
                async with forks[(me + 1) % 3]:
                    await pause()

    async with trio.open_nursery() as nursery:
        for me in range(3):
            nursery.start_soon(dine, me)


async def deleted_in_between(world: World) -> None:
    """A file is looked for, then read; another task cleans up in between (time of check, time of use)."""
    path = trio.Path("/data/job")

    async def reader() -> None:
        await path.write_text("work")
        for _ in range(2):
            if await path.exists():
                await path.read_text()
            await trio.sleep(1)

    async def cleaner() -> None:
        await trio.sleep(1)
        await path.unlink(missing_ok=True)

    async def both() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(reader)
            nursery.start_soon(cleaner)

    await world.host("a").start(both).wait()
    for process in world.failures:
        raise FaultError(f"looked for, and gone: {process}")


async def publishers() -> None:
    """Twenty publish two words in two steps; one that looks in between sees half (the yardstick's reorder, undeclared)."""
    first = second = 0

    async def publish() -> None:
        nonlocal first, second
        first = 1
        await pause()
        second = 1

    async def look() -> None:
        await pause()
        seen = first
        await pause()
        must(seen == second, "half published")

    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(publish)
        nursery.start_soon(look)


async def two_locks() -> None:
    """Ten move a value on under one lock and its copy under another; a reader of both meets them in between."""
    one, other = trio.Lock(), trio.Lock()
    value = copy = 0

    async def move() -> None:
        nonlocal value, copy
        async with one:
            value += 1
            mine = value
        await pause()
        async with other:
            copy = mine + 1

    async def read() -> None:
        for _ in range(3):
            await pause()
        async with one:
            seen = value
        if not seen:
            return
        await pause()
        async with other:
            must(copy == seen + 1, f"{copy} beside {seen}")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        for _ in range(10):
            nursery.start_soon(move)


async def snapshot() -> None:
    """Four add to a text while one measures it and copies as much: it must not shrink in between, and one clears it."""
    text = ""

    async def add() -> None:
        nonlocal text
        for _ in range(3):
            text += "x"
            await pause()

    async def clear() -> None:
        nonlocal text
        for _ in range(9):
            await pause()
        if len(text) >= 12:
            text = ""

    async def copy() -> None:
        for _ in range(6):
            await pause()
        length = len(text)
        await pause()
        must(len(text) >= length, "shorter than it was")

    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(add)
        nursery.start_soon(clear)
        nursery.start_soon(copy)

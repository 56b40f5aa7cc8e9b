"""Races that became vulnerabilities (ConVul): something is freed, or not yet there, between a look and its use.

Each is the shape of the real fault, cut down to the steps that race and those around them.
"""

from __future__ import annotations

from tests.quality.machine import Cell, Lock, must, together


class Memory:
    """An object that can be freed; whoever uses it afterwards has the fault. Using and freeing are steps."""

    def __init__(self, name: str) -> None:
        self._alive = Cell(name, value=True)

    async def use(self) -> None:
        must(await self._alive.get(), f"{self._alive.name} used after free")

    async def free(self) -> None:
        must(await self._alive.swap(False), f"{self._alive.name} freed twice")


async def keyring() -> None:
    """CVE-2013-1792: the first keyring of a user stands for both; a second task sees it and uses the one not yet made."""
    user_ring: Cell[str | None] = Cell("user_ring", None)
    session_ring: Cell[str | None] = Cell("session_ring", None)
    lock = Lock("install")

    async def install() -> None:
        if await user_ring.get() is not None:
            return
        async with lock:
            if await user_ring.get() is None:
                await user_ring.set("ring")
                await session_ring.set("ring")

    async def look_up() -> None:
        await install()
        must(await session_ring.get() is not None, "null keyring")

    await together(look_up, look_up)


async def codec_threads() -> None:
    """CVE-2016-1972: the decoder frees a frame's buffer when its count says nobody uses it; a helper is about to."""
    buffer = Memory("buffer")
    users, jobs = Cell("users", 0), Cell("jobs", 0)
    lock = Lock("decoder")

    async def helper() -> None:
        for _ in range(3):
            if await jobs.get() > 0:
                async with lock:
                    await users.set(await users.get() + 1)
                await buffer.use()
                async with lock:
                    await users.set(await users.get() - 1)
                return

    async def decoder() -> None:
        await jobs.set(1)
        async with lock:
            idle = await users.get() == 0
        await jobs.set(0)
        async with lock:
            idle = idle and await users.get() == 0
        if idle:
            await buffer.free()

    await together(decoder, helper)


async def teardown() -> None:
    """CVE-2016-1973: a task asks whether the other side is there and calls it; teardown frees it in between."""
    peer, gone = Memory("peer"), Cell("gone", value=False)

    async def caller() -> None:
        for _ in range(2):
            if not await gone.get():
                await peer.use()

    async def closer() -> None:
        await gone.set(True)
        await peer.free()

    await together(caller, closer)


async def io_priority() -> None:
    """CVE-2016-7911: a task's I/O context is looked at twice, once for being there and once for its priority."""
    context: Cell[Memory | None] = Cell("context", Memory("io_context"))

    async def get_priority() -> None:
        if await context.get() is not None:
            found = await context.get()
            must(found is not None, "null I/O context")
            if found is not None:
                await found.use()

    async def leave() -> None:
        memory = await context.swap(None)
        if memory is not None:
            await memory.free()

    await together(get_priority, leave)


async def netlink_dump() -> None:
    """CVE-2016-9806: two dumps on one socket; the flag that one is running is cleared before its buffer is let go."""
    lock = Lock("callback")
    running = Cell("running", value=False)
    buffer: Cell[Memory | None] = Cell("callback_buffer", None)

    async def dump(number: int) -> None:
        async with lock:
            if await running.get():
                return
            await running.set(True)
            await buffer.set(Memory(f"message{number}"))
        async with lock:
            await running.set(False)
        memory = await buffer.get()
        if memory is not None:
            await memory.free()

    await together(lambda: dump(0), lambda: dump(1))


async def sequencer_port() -> None:
    """CVE-2017-15265: a port is in the list before its creator is done with it; another task finds and deletes it.

    Ports come and go under the lock; only a deletion in the few steps between the creator's unlock and its last use shows.
    """
    lock = Lock("ports")
    port = Memory("port")
    listed: Cell[Memory | None] = Cell("listed", None)
    closing = Cell("closing", 0)

    async def creator() -> None:
        for _ in range(4):
            async with lock:
                await closing.get()
        async with lock:
            await listed.set(port)
        await port.use()

    async def deleter() -> None:
        for _ in range(4):
            async with lock:
                found = await listed.get()
                if found is not None:
                    await listed.set(None)
            if found is not None:
                await found.free()
                return
            await closing.set(1)

    await together(creator, deleter)


async def packet_fanout() -> None:
    """CVE-2017-6346: a socket joins a fan-out group while another task unbinds it: the group keeps a freed hook."""
    running, joined = Cell("running", value=True), Cell("joined", value=False)
    hook = Memory("hook")
    lock = Lock("fanout")

    async def join() -> None:
        async with lock:
            if await running.get():
                await joined.set(True)
                await hook.use()

    async def unbind() -> None:
        if await running.get():
            await running.set(False)
            if not await joined.get():
                await hook.free()

    await together(join, unbind)

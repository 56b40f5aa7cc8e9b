"""Small programs with locks and flags: hand-shakes, orders taken for granted, a deadlock (SCTBench, CS)."""

from __future__ import annotations

import trio

from tests.quality.machine import Cell, Lock, must, together

_STACK_SIZE = 10
_ROUNDS = 7


async def stack() -> None:
    """One pushes and says that there is something; the flag is never taken back, and a pop finds the stack empty."""
    lock, filled, height = Lock("stack"), Cell("filled", value=False), Cell("height", 0)

    async def pusher() -> None:
        for _ in range(_STACK_SIZE):
            async with lock:
                await height.set(await height.get() + 1)
                await filled.set(True)

    async def popper() -> None:
        for _ in range(_STACK_SIZE):
            async with lock:
                if await filled.get():
                    now = await height.get()
                    must(now > 0, "pop of an empty stack")
                    await height.set(now - 1)

    await together(pusher, popper)


async def token_ring() -> None:
    """Three pass a token on, a fourth looks when all say they have: one had read the word of the round before."""
    words = [Cell(f"word{number}", number % 2 + 1) for number in range(3)]
    passed = [Cell(f"passed{number}", value=False) for number in range(3)]
    lock = Lock("ring")

    async def first() -> None:
        async with lock:
            await words[0].set((await words[2].get() + 1) % 4)
            await passed[0].set(True)

    async def second() -> None:
        async with lock:
            await words[1].set(await words[0].get())
            await passed[1].set(True)

    async def third() -> None:
        async with lock:
            await words[2].set(await words[1].get())
            await passed[2].set(True)

    async def looker() -> None:
        async with lock:
            if all([await each.get() for each in passed]):
                seen = [await each.get() for each in words]
                must(seen[0] == seen[1] == seen[2], "the token changed on its way")

    await together(first, second, third, looker)


async def lazy() -> None:
    """A late initialiser: the third counts on not being the last of three under one trio lock."""
    lock = trio.Lock()
    total = 0

    async def add(amount: int) -> None:
        nonlocal total
        async with lock:
            total += amount

    async def check() -> None:
        async with lock:
            must(total < 3, "both had come before")

    await together(lambda: add(1), lambda: add(2), check)


async def deadlock() -> None:
    """Two trio locks, taken in one order here and in the other there."""
    one, other = trio.Lock(), trio.Lock()

    async def forth() -> None:
        async with one, other:
            pass

    async def back() -> None:
        async with other, one:
            pass

    await together(forth, back)


async def circular_buffer() -> None:
    """A hand-shake by flag, a loop by index: a round in which it is not one's turn is counted all the same."""
    lock = Lock("buffer")
    may_send, may_receive = Cell("may_send", value=True), Cell("may_receive", value=False)
    buffer: list[int] = []

    async def sender() -> None:
        for number in range(_ROUNDS):
            async with lock:
                if await may_send.get():
                    buffer.append(number)
                    await may_send.set(False)
                    await may_receive.set(True)

    async def receiver() -> None:
        for number in range(_ROUNDS):
            async with lock:
                if await may_receive.get():
                    must(buffer.pop(0) == number, "another element than expected")
                    await may_receive.set(False)
                    await may_send.set(True)

    await together(sender, receiver)


async def queue() -> None:
    """As the circular buffer, but the first element goes in without a hand-shake, and the index stands beside."""
    lock = Lock("queue")
    may_put, may_get = Cell("may_put", value=True), Cell("may_get", value=False)
    items: list[int] = []
    stored: dict[int, int] = {}

    async def producer() -> None:
        async with lock:
            items.append(1)
            stored[0] = 1
        for number in range(1, _ROUNDS):
            async with lock:
                if await may_put.get():
                    items.append(number + 1)
                    stored[number] = number + 1
                    await may_put.set(False)
                    await may_get.set(True)

    async def consumer() -> None:
        for number in range(_ROUNDS):
            async with lock:
                if await may_get.get():
                    must(items.pop(0) == stored.get(number), "another element than stored")
                    await may_get.set(False)
                    await may_put.set(True)

    await together(producer, consumer)

"""Work stealing without enough care (SCTBench, CHESS): an owner at the tail of a queue, a thief at its head.

Both sides are right as long as two are left; at the last one, owner and thief must agree, and the owner who looks at the
head before it lowers the tail takes what the thief takes.
"""

from __future__ import annotations

from tests.quality.machine import Cell, FaultError, Lock, must, together

_ITEMS = 3
_STEALS = 2


class Deque:
    """The queue; `taken` counts how often each item was taken."""

    def __init__(self) -> None:
        self.lock = Lock("deque")
        self.head, self.tail = Cell("head", 0), Cell("tail", 0)
        self.items = [Cell(f"item{number}", -1) for number in range(_ITEMS + 1)]
        self.taken = [0] * _ITEMS

    async def push(self, item: int) -> None:
        tail = await self.tail.get()
        await self.items[tail % len(self.items)].set(item)
        await self.tail.set(tail + 1)

    async def item_at(self, place: int) -> int:
        return await self.items[place % len(self.items)].get()

    def take(self, item: int) -> None:
        must(item >= 0, "what was never pushed")
        self.taken[item] += 1
        must(self.taken[item] == 1, f"item {item} taken twice")


class PlainDeque(Deque):
    """The owner looks at the head before it has lowered the tail."""

    async def pop(self) -> int | None:
        tail = await self.tail.get() - 1
        if await self.head.get() > tail:
            return None
        await self.tail.set(tail)
        return await self.item_at(tail)

    async def steal(self) -> int | None:
        async with self.lock:
            head = await self.head.get()
            if head >= await self.tail.get():
                return None
            await self.head.set(head + 1)
            return await self.item_at(head)


class InterlockedDeque(Deque):
    """Exchanges instead of writes; but the thief looks at the tail before it has raised the head."""

    async def pop(self) -> int | None:
        tail = await self.tail.update(lambda now: now - 1) - 1
        if await self.head.get() <= tail:
            return await self.item_at(tail)
        await self.tail.update(lambda now: now + 1)
        return None

    async def steal(self) -> int | None:
        async with self.lock:
            if await self.head.get() >= await self.tail.get():
                return None
            return await self.item_at(await self.head.update(lambda now: now + 1))


class HastyDeque(Deque):
    """Head and tail are moved in the right order, and back under a lock; but the owner lets go of it before it takes."""

    async def pop(self) -> int | None:
        tail = await self.tail.update(lambda now: now - 1) - 1
        if await self.head.get() <= tail:
            return await self.item_at(tail)
        await self.tail.swap(tail + 1)
        async with self.lock:
            if await self.head.get() > tail:
                return None
        await self.tail.update(lambda now: now - 1)
        return await self.item_at(tail)

    async def steal(self) -> int | None:
        async with self.lock:
            head = await self.head.update(lambda now: now + 1)
            if head < await self.tail.get():
                return await self.item_at(head)
            await self.head.swap(head)
            return None


async def _work(deque: PlainDeque | InterlockedDeque | HastyDeque, *, with_state: bool) -> None:
    states = [Cell(f"state{number}", 0) for number in range(_ITEMS)]

    async def use(item: int | None) -> None:
        if item is None:
            return
        if not with_state:
            deque.take(item)
        else:
            must(item >= 0, "what was never pushed")
            state = await states[item].get()
            await states[item].set(state + 1)
            must(await states[item].get() == 1, f"item {item} in state {state + 1}")

    async def owner() -> None:
        for item in range(_ITEMS):
            await deque.push(item)
        for _ in range(_ITEMS):
            await use(await deque.pop())

    async def thief() -> None:
        for _ in range(_STEALS):
            await use(await deque.steal())

    await together(owner, thief)


async def work_steal_queue() -> None:
    """Plain reads and writes of head and tail."""
    await _work(PlainDeque(), with_state=False)


async def interlocked() -> None:
    """Head and tail are exchanged atomically."""
    await _work(InterlockedDeque(), with_state=False)


async def interlocked_with_state() -> None:
    """As before, and what shows the fault is the state of each item, read and written in two steps."""
    await _work(InterlockedDeque(), with_state=True)


async def hasty() -> None:
    """Not of the yardstick: a harder one of our own, in which owner and thief must meet at the last item twice."""
    await _work(HastyDeque(), with_state=False)


async def state() -> None:
    """Plain, with the state of each item."""
    await _work(PlainDeque(), with_state=True)


async def safe_stack() -> None:
    """A stack without locks whose pop exchanges the link of the head: ABA, in no fewer than five pre-emptions.

    Three tasks take a cell each, if there is one, twice; write their name into it and look whether it still stands there.
    """
    links = [Cell(f"link{number}", number + 1 if number < 2 else -1) for number in range(3)]
    owners = [Cell(f"owner{number}", -1) for number in range(3)]
    head, count = Cell("head", 0), Cell("count", 3)

    async def pop() -> int:
        while await count.get() > 1:
            first = await head.get()
            second = await links[first].swap(-1)
            if second < 0:
                continue
            if await head.replace(first, second):
                await count.update(lambda now: now - 1)
                return first
            await links[first].swap(second)
        return -1

    async def push(cell: int) -> None:
        while True:
            first = await head.get()
            await links[cell].set(first)
            if await head.replace(first, cell):
                break
        await count.update(lambda now: now + 1)

    async def user(number: int) -> None:
        for _ in range(2):
            cell = await pop()
            if cell < 0:
                continue
            await owners[cell].set(number)
            if await owners[cell].get() != number:
                raise FaultError("two hold one cell")
            await push(cell)

    await together(*[lambda number=number: user(number) for number in range(3)])

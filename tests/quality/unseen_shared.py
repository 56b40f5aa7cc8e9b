"""More programs that no strategy was tuned on: shared memory and protocols, each access declared."""

from __future__ import annotations

from tests.quality.machine import Cell, Condition, FaultError, Lock, must, together


async def free_list() -> None:
    """Two tasks take nodes from a free list and give them back by compare-and-swap: the head is the same, its next is not."""
    after = [Cell(f"after{node}", node + 1 if node < 3 else -1) for node in range(4)]
    head = Cell("free", 0)
    taken = [False] * 4

    async def take() -> int:
        for _ in range(3):
            node = await head.get()
            if node < 0:
                return -1
            if await head.replace(node, await after[node].get()):
                must(not taken[node], f"node {node} is handed out twice")
                taken[node] = True
                return node
        return -1

    async def give(node: int) -> None:
        taken[node] = False
        for _ in range(3):
            first = await head.get()
            await after[node].set(first)
            if await head.replace(first, node):
                return

    async def keeper() -> None:
        await take()
        await take()

    async def recycler() -> None:
        one, _other = await take(), await take()
        if one >= 0:
            await give(one)
        await take()

    await together(keeper, recycler)


async def double_checked() -> None:
    """The instance is published before it is filled, and whoever looks without the lock uses it half made."""
    lock = Lock("making")
    instance, size = Cell[str | None]("instance", None), Cell("size", 0)

    async def use() -> None:
        if await instance.get() is None:
            async with lock:
                if await instance.get() is None:
                    await instance.set("made")
                    await size.set(8)
        must(await size.get() == 8, "used before it was filled")

    await together(use, use, use)


async def missed_signal() -> None:
    """The waiter looks at the flag before it takes the lock: the signal comes in between, and never again."""
    lock = Lock("state")
    ready = Condition("ready", lock)
    done = Cell("done", value=False)

    async def waiter() -> None:
        if not await done.get():
            async with lock:
                await ready.wait()

    async def worker() -> None:
        async with lock:
            await done.set(True)
            await ready.signal()

    await together(worker, waiter)


async def upgrade() -> None:
    """Readers become writers when they are alone: two that wait for each other to leave never are."""
    lock = Lock("counts")
    left = Condition("left", lock)
    readers = Cell("readers", 0)

    async def read_then_write() -> None:
        async with lock:
            await readers.set(await readers.get() + 1)
        async with lock:
            while await readers.get() > 1:
                await left.wait()
            await readers.set(await readers.get() - 1)
            await left.broadcast()

    await together(read_then_write, read_then_write)


async def barrier() -> None:
    """A barrier of one counter that the last to come sets back: a fast task comes again before a slow one saw the nought."""
    count = Cell("count", 0)

    async def arrive() -> None:
        if await count.update(lambda now: now + 1) == 2:
            await count.set(0)
            return
        for _ in range(40):
            if await count.get() == 0:
                return
        raise FaultError("held up in a barrier that was open")

    async def party() -> None:
        for _ in range(2):
            await arrive()

    await together(party, party, party)


async def commit_vote() -> None:
    """Two-phase commit: the coordinator counts votes that came, and takes one that is late for a yes."""
    asked, votes = Cell("asked", value=False), [Cell(f"vote{who}", "none") for who in range(2)]
    decided = Cell("decided", "nothing")

    async def coordinator() -> None:
        await asked.set(True)
        for _ in range(3):  # as long as it has patience
            if all([await vote.get() != "none" for vote in votes]):
                break
        against = [await vote.get() == "no" for vote in votes]
        await decided.set("abort" if any(against) else "commit")

    async def participant(who: int, *, willing: bool) -> None:
        for _ in range(4):
            if await asked.get():
                break
        await votes[who].set("yes" if willing else "no")
        outcome = await decided.get()
        must(willing or outcome != "commit", "committed against a vote")

    await together(coordinator, lambda: participant(0, willing=True), lambda: participant(1, willing=False))


async def two_leaders() -> None:
    """Each grants itself the term when it has seen no leader, and asks the others for theirs one by one."""
    granted = [Cell(f"granted{who}", 0) for who in range(3)]
    leaders: list[int] = []

    async def stand(me: int) -> None:
        votes = 0
        for other in range(3):
            seen = await granted[(me + other) % 3].get()
            if seen == 0:
                await granted[(me + other) % 3].set(me + 1)
                votes += 1
        if votes >= 2:
            leaders.append(me)
            must(len(leaders) == 1, f"{leaders} lead in one term")

    await together(*[lambda me=me: stand(me) for me in range(3)])


async def off_by_one() -> None:
    """A ring of two with its counts in two words: the producer looks at the one that the consumer moves last."""
    slots = [Cell(f"slot{number}", -1) for number in range(2)]
    written, read = Cell("written", 0), Cell("read", 0)

    async def producer() -> None:
        for item in range(4):
            for _ in range(8):
                at = await written.get()
                if at - await read.get() <= len(slots):  # one too many
                    break
            else:
                return
            await slots[at % 2].set(item)
            await written.set(at + 1)

    async def consumer() -> None:
        for expected in range(4):
            for _ in range(8):
                at = await read.get()
                if at < await written.get():
                    break
            else:
                return
            got = await slots[at % 2].get()
            must(got == expected, f"{got} came where {expected} should")
            await read.set(at + 1)

    await together(producer, consumer)


async def seqlock() -> None:
    """A reader of two words looks whether the version changed, but not whether it was odd, as while it is written."""
    version, left, right = Cell("version", 0), Cell("left", 0), Cell("right", 0)

    async def writer() -> None:
        for value in (1, 2):
            await version.update(lambda now: now + 1)
            await left.set(value)
            await right.set(value)
            await version.update(lambda now: now + 1)

    async def reader() -> None:
        before = await version.get()
        seen = await left.get(), await right.get()
        if await version.get() == before:
            must(seen[0] == seen[1], f"torn: {seen}")

    await together(writer, reader)


async def last_reference() -> None:
    """Whoever drops the last reference frees; one who takes a reference looks whether it is alive first."""
    count, freed = Cell("count", 1), Cell("freed", value=False)

    async def drop() -> None:
        if await count.update(lambda now: now - 1) == 1:
            await freed.set(True)

    async def borrow() -> None:
        if await count.get() > 0:
            await count.update(lambda now: now + 1)
            if await freed.get():
                raise FaultError("borrowed what is freed")
            await drop()

    await together(borrow, borrow, drop)

"""What the kernel is measured against: trio itself, a bare scheduler of coroutines, and simpy and looptime when installed.

simpy and looptime come with `pip install --group bench`; without them their lines are left out.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import importlib.util
import random
import types
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any

import trio
from trio.testing import MockClock

from simkit._kernel import shortcuts

Program = Callable[[], Awaitable[None]]

TRIO = "trio.run with MockClock"
BARE = "bare coroutine scheduler, random pick"
BARE_FIFO = "bare coroutine scheduler, first come"
SIMPY = "simpy"
LOOPTIME = "asyncio with looptime"
SIMLOOM = "simloom"


def installed(name: str) -> bool:
    """Whether an optional peer is here."""
    return importlib.util.find_spec(name) is not None


def on_trio(program: Program) -> None:
    """Run a program as trio's own tests would: virtual time that jumps when nobody is runnable. With trio's own code only."""
    shortcuts.give_back()
    trio.run(program, clock=MockClock(autojump_threshold=0))


# ----------------------------------------------------------------------------------------------------------- the bare one
@types.coroutine
def _trap(value: float | None) -> Generator[float | None, None, None]:
    yield value


Coroutines = list[Coroutine[Any, Any, None]]


def bare(tasks: Coroutines) -> None:
    """A random one of the runnable coroutines, and a heap of timers: about the least that such a scheduler in Python does."""
    ready = list(tasks)
    heap: list[tuple[float, int, Coroutine[Any, Any, None]]] = []
    now, sequence, draw = 0.0, 0, random.Random(1).random
    while ready or heap:
        if not ready:
            now, _, task = heapq.heappop(heap)
            ready.append(task)
        task = ready.pop(int(draw() * len(ready))) if len(ready) > 1 else ready.pop()
        try:
            delay = task.send(None)
        except StopIteration:
            continue
        if delay is None:
            ready.append(task)
        else:
            sequence += 1
            heapq.heappush(heap, (now + delay, sequence, task))


def bare_fifo(tasks: Coroutines) -> None:
    """Round-robin over coroutines, and a heap of timers: nothing to choose at all."""
    ready = deque(tasks)
    heap: list[tuple[float, int, Coroutine[Any, Any, None]]] = []
    now, sequence = 0.0, 0
    while ready or heap:
        if not ready:
            now, _, task = heapq.heappop(heap)
            ready.append(task)
        task = ready.popleft()
        try:
            delay = task.send(None)
        except StopIteration:
            continue
        if delay is None:
            ready.append(task)
        else:
            sequence += 1
            heapq.heappush(heap, (now + delay, sequence, task))


async def _bare_spin(times: int) -> None:
    for _ in range(times):
        await _trap(None)


async def _bare_nap(delays: list[float]) -> None:
    for delay in delays:
        await _trap(delay)


def bare_switching(tasks: int, times: int, scheduler: Callable[[Coroutines], None] = bare) -> None:
    scheduler([_bare_spin(times) for _ in range(tasks)])


def bare_sleeping(naps: list[list[float]], scheduler: Callable[[Coroutines], None] = bare) -> None:
    scheduler([_bare_nap(delays) for delays in naps])


# ------------------------------------------------------------------------------------------------------- the optional ones
def simpy_sleeping(naps: list[list[float]]) -> None:
    """One event a nap; a delay of nought is simpy's nearest to a task switch."""
    import simpy

    environment = simpy.Environment()

    def process(delays: list[float]) -> Generator[Any, Any, None]:
        for delay in delays:
            yield environment.timeout(delay)

    for delays in naps:
        environment.process(process(delays))
    environment.run()


def looptime_sleeping(naps: list[list[float]]) -> None:
    """asyncio under a loop that skips the waiting."""
    import looptime

    async def nap(delays: list[float]) -> None:
        for delay in delays:
            await asyncio.sleep(delay)

    async def main() -> None:
        await asyncio.gather(*(nap(delays) for delays in naps))

    with contextlib.closing(looptime.new_event_loop(start=0)) as loop:
        loop.run_until_complete(main())


async def asyncio_small(naps: list[list[float]]) -> None:
    """The small seed in asyncio: naps around a lock, a bare yield inside it."""
    lock = asyncio.Lock()

    async def work(delays: list[float]) -> None:
        for delay in delays:
            await asyncio.sleep(delay)
            async with lock:
                await asyncio.sleep(0)

    await asyncio.gather(*(work(delays) for delays in naps))


def looptime_small(naps: list[list[float]]) -> None:
    """asyncio under a loop that skips the waiting; a loop for each seed, as asyncio.run makes one."""
    import looptime

    with contextlib.closing(looptime.new_event_loop(start=0)) as loop:
        loop.run_until_complete(asyncio_small(naps))


def simloom_small(naps: list[list[float]]) -> None:
    """simloom's own run, as its tests make it; its first argument makes the coroutine anew."""
    import simloom

    simloom.run(lambda: asyncio_small(naps), seed=1)

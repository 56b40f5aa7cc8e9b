"""How fast the kernel is, beside trio.run with MockClock and a bare coroutine scheduler, in one run: `python bench_kernel.py`.

Prints rates and ratios and asserts nothing: ratios within a run hold on a noisy machine, absolute numbers do not. Each
figure is the median of an odd number of repeats, interleaved so that a slow moment hits all alike.
"""

from __future__ import annotations

import gc
import heapq
import statistics
import sys
import time
import types
import warnings
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any

import trio
from trio.testing import MockClock

from simkit.strategy import RandomWalk
from simkit.tape import Tape
from simkit.world import World, run

REPEATS = 7
TASKS = 10
SWITCHES = 20_000
TIMERS = 10_000
EMPTY_RUNS = 200

Program = Callable[[], Awaitable[None]]


# ------------------------------------------------------------------------------------------------------- programs in trio
async def switching() -> None:
    async def spin(times: int) -> None:
        for _ in range(times):
            await trio.lowlevel.cancel_shielded_checkpoint()

    async with trio.open_nursery() as nursery:
        for _ in range(TASKS):
            nursery.start_soon(spin, SWITCHES // TASKS)


async def sleeping() -> None:
    async def nap(times: int, offset: int) -> None:
        for number in range(times):
            await trio.sleep(0.001 * (1 + (offset * 7 + number) % 13))

    async with trio.open_nursery() as nursery:
        for offset in range(TASKS):
            nursery.start_soon(nap, TIMERS // TASKS, offset)


async def timing_out() -> None:
    for _ in range(TIMERS // 5):
        with trio.move_on_after(0.5):
            await trio.sleep_forever()


async def messaging() -> None:
    async def produce(channel: trio.MemorySendChannel[int], times: int) -> None:
        for number in range(times):
            await channel.send(number)

    async def consume(channel: trio.MemoryReceiveChannel[int], times: int) -> None:
        for _ in range(times):
            await channel.receive()

    async with trio.open_nursery() as nursery:
        for _ in range(TASKS // 2):
            send, receive = trio.open_memory_channel[int](0)
            nursery.start_soon(produce, send, SWITCHES // TASKS)
            nursery.start_soon(consume, receive, SWITCHES // TASKS)


async def nothing() -> None:
    pass


# ----------------------------------------------------------------------------------------------- a bare coroutine scheduler
@types.coroutine
def _trap(value: Any) -> Generator[Any, Any, None]:
    yield value


def bare(tasks: list[Coroutine[Any, Any, None]]) -> None:
    """Round-robin over coroutines, and a heap of timers: about the least that a scheduler in Python can do."""
    ready = deque(tasks)
    heap: list[tuple[float, int, Coroutine[Any, Any, None]]] = []
    now = 0.0
    sequence = 0
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


async def _bare_nap(times: int, offset: int) -> None:
    for number in range(times):
        await _trap(0.001 * (1 + (offset * 7 + number) % 13))


def bare_switching() -> None:
    bare([_bare_spin(SWITCHES // TASKS) for _ in range(TASKS)])


def bare_sleeping() -> None:
    bare([_bare_nap(TIMERS // TASKS, offset) for offset in range(TASKS)])


# ------------------------------------------------------------------------------------------------------------------ runners
def on_simkit(program: Program, *, kernel: str = "fast", guard: bool = True, walk: bool = True) -> None:
    async def main(_world: World) -> None:
        await program()

    tape = Tape.from_seed(1)
    strategy = RandomWalk(tape.stream("schedule")) if walk else None
    outcome = run(main, tape=tape, strategy=strategy, kernel=kernel, guard=guard)  # type: ignore[arg-type]
    outcome.unwrap()
    assert outcome.digest  # part of what a run costs


def on_trio(program: Program) -> None:
    trio.run(program, clock=MockClock(autojump_threshold=0))


def rates(contestants: dict[str, Callable[[], None]], operations: int) -> dict[str, float]:
    """Operations a second of each, by processor time."""
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(REPEATS):
        for name, contestant in contestants.items():
            gc.collect()
            began = time.process_time()
            contestant()
            seconds[name].append(time.process_time() - began)
    return {name: operations / statistics.median(taken) for name, taken in seconds.items()}


def show(title: str, found: dict[str, float]) -> None:
    """One line a contestant, with its ratio to the first."""
    print(title)
    first = next(iter(found.values()))
    for name, rate in found.items():
        print(f"    {name:<42} {rate:>12,.0f}/s   × {rate / first:.3f}")


def contest(program: Program, bare_version: Callable[[], None] | None = None) -> dict[str, Callable[[], None]]:
    """The contestants for one program."""
    contestants: dict[str, Callable[[], None]] = {
        "simkit, random walk, guard and trace": lambda: on_simkit(program),
        "simkit, first come first served": lambda: on_simkit(program, walk=False),
        "simkit, guard off": lambda: on_simkit(program, guard=False),
        "simkit, fallback kernel": lambda: on_simkit(program, kernel="fallback"),
        "trio.run with MockClock": lambda: on_trio(program),
    }
    if bare_version is not None:
        contestants["bare coroutine scheduler"] = bare_version
    return contestants


def main() -> None:
    """Print every table."""
    warnings.simplefilter("ignore")
    print(f"Python {sys.version.split()[0]}, trio {trio.__version__}")
    show("task switches", rates(contest(switching, bare_switching), SWITCHES))
    show("timers (trio.sleep)", rates(contest(sleeping, bare_sleeping), TIMERS))
    show("timeouts that strike (move_on_after)", rates(contest(timing_out), TIMERS // 5))
    show("messages (zero-capacity channels)", rates(contest(messaging), SWITCHES // 2))
    empty = {
        name: (lambda contestant=contestant: [contestant() for _ in range(EMPTY_RUNS)] and None)
        for name, contestant in contest(nothing).items()
    }
    show("empty runs", rates(empty, EMPTY_RUNS))  # type: ignore[arg-type]


if __name__ == "__main__":
    main()

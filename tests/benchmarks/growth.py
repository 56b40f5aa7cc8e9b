"""How cost grows: ten times the tasks, and a million steps with the trace on disk."""

from __future__ import annotations

import gc
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import trio

from simkit.strategy import RandomWalk
from simkit.tape import Tape
from simkit.world import Limits, World, run
from tests.benchmarks.contest import Gauge

TASKS = 1000
TIMES = 10
TURNS = 5
STEPS = 1_000_000
#: Who take the steps; they sleep, pass messages on, and write to a disk.
PAIRS = 5
#: Steps, roughly, of one message there and back with all that goes with it.
STEPS_OF_A_ROUND = 5
_REPOSITORY = Path(__file__).resolve().parent.parent.parent


def contests(scale: int) -> list[Gauge]:
    """Both rows, `scale` per cent of the usual work."""
    return [
        Gauge(
            f"time of {TIMES} × the tasks", "times as long", lambda: growth(max(10, TASKS * scale // 100)), at_most=12
        ),
        Gauge(
            f"memory after {STEPS * scale // 100:,} steps, trace on disk",
            "MB",
            lambda: memory_of(STEPS * scale // 100),
            at_most=300,
        ),
    ]


def growth(tasks: int) -> float:
    """How many times as long ten times the tasks take, each doing the same; the least disturbed of some turns."""
    few, many = [], []
    for _ in range(TURNS):
        few.append(seconds(tasks))
        many.append(seconds(tasks * TIMES))
    return min(many) / min(few)


def seconds(tasks: int) -> float:
    """Processor time of a run in which so many tasks sleep, take a lock, and run side by side."""

    async def work(number: int, lock: trio.Lock) -> None:
        for nap in range(3):
            await trio.sleep(0.001 * (1 + (number * 7 + nap) % 13))
            async with lock:
                await trio.lowlevel.checkpoint()
        await trio.lowlevel.checkpoint()

    async def main(_world: World) -> None:
        locks = [trio.Lock() for _ in range(1 + tasks // 10)]
        async with trio.open_nursery() as nursery:
            for number in range(tasks):
                nursery.start_soon(work, number, locks[number % len(locks)])

    tape = Tape.from_seed(1)
    gc.collect()
    began = time.process_time()
    outcome = run(main, tape=tape, strategy=RandomWalk(tape.stream("schedule")), limits=Limits(steps=100_000_000))
    outcome.unwrap()
    assert outcome.digest
    return time.process_time() - began


def memory_of(steps: int) -> float:
    """MB at the peak of a process of its own that takes so many steps, with the trace on disk."""
    command = [sys.executable, "-m", "tests.benchmarks.growth", str(steps)]
    told = subprocess.run(command, cwd=_REPOSITORY, check=True, capture_output=True, text=True).stdout
    return float(told)


def take(steps: int) -> None:
    """Take at least so many steps, with the trace in a file: sleeps, messages, boundaries of a disk."""

    async def ask(world: World, send: trio.MemorySendChannel[int], receive: trio.MemoryReceiveChannel[int]) -> None:
        for number in range(steps // PAIRS // STEPS_OF_A_ROUND + 1):
            await trio.sleep(0.001)
            await send.send(number)
            world.trace.record("answer", await receive.receive())

    async def answer(world: World, receive: trio.MemoryReceiveChannel[int], send: trio.MemorySendChannel[int]) -> None:
        file = world.host("db").disk.open("/data/answers", create=True)
        async for number in receive:
            file.write(b"%d" % number, 0)
            file.fsync()
            await send.send(number)

    async def main(world: World) -> None:
        async with trio.open_nursery() as answering:
            async with trio.open_nursery() as asking:
                for _ in range(PAIRS):
                    there, here = trio.open_memory_channel[int](0), trio.open_memory_channel[int](0)
                    asking.start_soon(ask, world, there[0], here[1])
                    answering.start_soon(answer, world, there[1], here[0])
            answering.cancel_scope.cancel()

    tape = Tape.from_seed(1)
    with tempfile.TemporaryFile("w", encoding="utf-8") as sink:
        outcome = run(
            main,
            tape=tape,
            strategy=RandomWalk(tape.stream("schedule")),
            limits=Limits(steps=10 * steps + 1000),
            trace_sink=sink,
        )
        outcome.unwrap()
        assert outcome.steps >= steps, outcome.steps
        assert outcome.digest


if __name__ == "__main__":
    take(int(sys.argv[1]))
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)

"""How cost grows: ten times the tasks, ten times the machines, and a million steps with the trace on disk.

The work of a task is the same however many there are. What is measured beyond that is what grows faster than their number:
searches through all of them, and, from a thousand tasks on, memory that is no longer in the processor's caches.
"""

from __future__ import annotations

import gc
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import trio

from simkit.process import current_process
from simkit.strategy import RandomWalk
from simkit.tape import Tape
from simkit.world import Limits, World, run
from tests.benchmarks.contest import Gauge

TASKS = (100, 1000)
MACHINES = 100
TIMES = 10
TURNS = 5
STEPS = 1_000_000
#: Who take the steps; they sleep, pass messages on, and write to a disk.
PAIRS = 5
#: Steps, roughly, of one message there and back with all that goes with it.
STEPS_OF_A_ROUND = 5
_REPOSITORY = Path(__file__).resolve().parent.parent.parent


def contests(scale: int) -> list[Gauge]:
    """Every row, `scale` per cent of the usual work."""
    return [
        *(_growth("tasks", max(10, tasks * scale // 100), sleepers) for tasks in TASKS),
        _growth("machines", max(10, MACHINES * scale // 100), machines),
        Gauge(
            f"memory after {STEPS * scale // 100:,} steps, trace on disk",
            "MB",
            lambda: memory_of(STEPS * scale // 100),
            at_most=300,
        ),
    ]


def _growth(of: str, number: int, program: Callable[[World, int], Awaitable[None]]) -> Gauge:
    title = f"time of {number * TIMES:,} {of} beside {number:,}"
    return Gauge(title, "times as long", lambda: growth(program, number), at_most=12)


def growth(program: Callable[[World, int], Awaitable[None]], number: int) -> float:
    """How many times as long a program of ten times the number takes; the least disturbed of some turns."""
    few, many = [], []
    for _ in range(TURNS):
        few.append(min(seconds(program, number) for _ in range(TURNS)))
        many.append(seconds(program, number * TIMES))
    return min(many) / min(few)


def seconds(program: Callable[[World, int], Awaitable[None]], number: int) -> float:
    """Processor time of one run, digest included."""
    tape = Tape.from_seed(1)
    gc.collect()
    began = time.process_time()
    outcome = run(
        lambda world: program(world, number),
        tape=tape,
        strategy=RandomWalk(tape.stream("schedule")),
        limits=Limits(steps=100_000_000),
    )
    outcome.unwrap()
    assert outcome.digest
    return time.process_time() - began


async def sleepers(_world: World, tasks: int) -> None:
    """Tasks that sleep, take a lock that ten of them share, and run side by side."""

    async def work(number: int, lock: trio.Lock) -> None:
        for nap in range(3):
            await trio.sleep(0.001 * (1 + (number * 7 + nap) % 13))
            async with lock:
                await trio.lowlevel.checkpoint()
        await trio.lowlevel.checkpoint()

    locks = [trio.Lock() for _ in range(1 + tasks // 10)]
    async with trio.open_nursery() as nursery:
        for number in range(tasks):
            nursery.start_soon(work, number, locks[number % len(locks)])


async def machines(world: World, hosts: int) -> None:
    """Hosts with a process, a socket and a file each; half of the processes end by themselves, half are killed."""

    async def work() -> None:
        sock = trio.socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        await sock.bind(("", 4000))
        me = current_process()
        assert me is not None
        file = me.host.disk.open("/data/file", owner=me, create=True)
        file.write(b"started", 0)
        file.fsync()
        await trio.sleep(1)

    processes = [world.host(f"h{number}").start(work) for number in range(hosts)]
    await trio.sleep(0.5)
    for process in processes[::2]:
        process.kill()
    for process in processes:
        await process.wait()


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

"""The kernel's contests: task switches, timers, timeouts, channels, starting and stopping, and a small whole seed."""

from __future__ import annotations

import contextlib
import functools
from collections import deque
from collections.abc import Callable
from typing import Any, Literal

import trio

from simkit import world
from simkit.guard import keeping
from simkit.strategy import RandomWalk
from simkit.tape import Tape
from simkit.trace import Sink, Trace
from simkit.world import World
from tests.benchmarks import peers
from tests.benchmarks.contest import Contest
from tests.benchmarks.peers import BARE, BARE_FIFO, LOOPTIME, SIMLOOM, SIMPY, TRIO, Program

OURS = "simkit: random walk, guard and trace on"
OFF = "simkit: guard and trace off"
TASKS = 10
NAPS = 10  # of each task, in a small seed


class _NoTrace(Trace):
    """Forgets what it is told."""

    def __init__(self, sink: Sink | None = None) -> None:
        super().__init__(sink)
        self.record_step = deque[Any](maxlen=0).append

    def record(self, kind: str, *details: str | int | None) -> None:
        """Drop it."""


def on_simkit(
    program: Program,
    *,
    kernel: Literal["fast", "fallback"] = "fast",
    guard: bool = True,
    trace: bool = True,
    walk: bool = True,
) -> None:
    """Run a program in a world of its own, digest included."""

    async def main(_world: World) -> None:
        await program()

    tape = Tape.from_seed(1)
    strategy = RandomWalk(tape.stream("schedule")) if walk else None
    vars(world)["Trace"] = Trace if trace else _NoTrace
    try:
        outcome = world.run(main, tape=tape, strategy=strategy, kernel=kernel, guard=guard)
    finally:
        vars(world)["Trace"] = Trace
    outcome.unwrap()
    assert outcome.digest


def contests(scale: int) -> list[Contest]:
    """Every contest, `scale` per cent of the usual work."""
    switches, timers, runs = 200 * scale, 100 * scale, 2 * scale
    return [
        _switches(switches),
        _timers(timers),
        _timeouts(timers // 5),
        _channels(switches),
        _empty(runs),
        _small(runs),
    ]


def _ours_and_trio(program: Program, units: int, repeats: int = 1) -> dict[str, Callable[[], int]]:
    """Our kernel in every dress, and trio's. Several runs are runs in a row, as in a campaign."""

    def times(runner: Callable[[], None], *, in_a_row: bool = True) -> Callable[[], int]:
        def work() -> int:
            with keeping() if in_a_row else contextlib.nullcontext():
                for _ in range(repeats):
                    runner()
            return units * repeats

        return work

    contestants = {
        OURS: times(lambda: on_simkit(program)),
        "simkit: first come, first served": times(lambda: on_simkit(program, walk=False)),
        OFF: times(lambda: on_simkit(program, guard=False, trace=False), in_a_row=False),
        "simkit: fallback kernel": times(lambda: on_simkit(program, kernel="fallback")),
        TRIO: times(lambda: peers.on_trio(program), in_a_row=False),
    }
    if repeats > 1:
        contestants["simkit: each run by itself"] = times(lambda: on_simkit(program), in_a_row=False)
    return contestants


def _done(work: Callable[[], None], units: int) -> Callable[[], int]:
    def contestant() -> int:
        work()
        return units

    return contestant


def _switches(switches: int) -> Contest:
    async def spin() -> None:
        for _ in range(switches // TASKS):
            await trio.lowlevel.cancel_shielded_checkpoint()

    async def program() -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(TASKS):
                nursery.start_soon(spin)

    contestants = _ours_and_trio(program, switches)
    for name, scheduler in ((BARE, peers.bare), (BARE_FIFO, peers.bare_fifo)):
        spinning = functools.partial(peers.bare_switching, TASKS, switches // TASKS, scheduler)
        contestants[name] = _done(spinning, switches)
    if peers.installed(SIMPY):
        contestants[SIMPY] = _done(lambda: peers.simpy_sleeping([[0.0] * (switches // TASKS)] * TASKS), switches)
    return Contest("task switches", "switches", contestants, {TRIO: 1.8, BARE: 0.35, SIMPY: 0.9})


def _timers(timers: int) -> Contest:
    naps = [[0.001 * (1 + (task * 7 + number) % 13) for number in range(timers // TASKS)] for task in range(TASKS)]

    async def nap(delays: list[float]) -> None:
        for delay in delays:
            await trio.sleep(delay)

    async def program() -> None:
        async with trio.open_nursery() as nursery:
            for delays in naps:
                nursery.start_soon(nap, delays)

    contestants = _ours_and_trio(program, timers)
    contestants[BARE] = _done(functools.partial(peers.bare_sleeping, naps), timers)
    if peers.installed(SIMPY):
        contestants[SIMPY] = _done(lambda: peers.simpy_sleeping(naps), timers)
    if peers.installed("looptime"):
        contestants[LOOPTIME] = _done(lambda: peers.looptime_sleeping(naps), timers)
    return Contest("timers (trio.sleep)", "timers", contestants, {TRIO: 10, LOOPTIME: 40, SIMPY: 0.5})


def _timeouts(timeouts: int) -> Contest:
    async def program() -> None:
        for _ in range(timeouts):
            with trio.move_on_after(0.5):
                await trio.sleep_forever()

    return Contest("timeouts that strike (move_on_after)", "timeouts", _ours_and_trio(program, timeouts))


def _channels(messages: int) -> Contest:
    pairs = TASKS // 2

    async def produce(channel: trio.MemorySendChannel[int]) -> None:
        for number in range(messages // pairs):
            await channel.send(number)

    async def consume(channel: trio.MemoryReceiveChannel[int]) -> None:
        for _ in range(messages // pairs):
            await channel.receive()

    async def program() -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(pairs):
                send, receive = trio.open_memory_channel[int](0)
                nursery.start_soon(produce, send)
                nursery.start_soon(consume, receive)

    return Contest("messages (channels without a buffer)", "messages", _ours_and_trio(program, messages))


def _empty(runs: int) -> Contest:
    async def program() -> None:
        pass

    return Contest("empty runs (start to stop)", "runs", _ours_and_trio(program, 1, runs), {TRIO: 7})


def _small(runs: int) -> Contest:
    async def work(task: int, lock: trio.Lock) -> None:
        for number in range(NAPS):
            await trio.sleep(0.001 * (1 + (task * 7 + number) % 13))
            async with lock:
                await trio.lowlevel.checkpoint()

    async def program() -> None:
        lock = trio.Lock()
        async with trio.open_nursery() as nursery:
            for task in range(TASKS):
                nursery.start_soon(work, task, lock)

    repeats = max(1, runs // 4)
    contestants = _ours_and_trio(program, 1, repeats)
    naps = [[0.001 * (1 + (task * 7 + number) % 13) for number in range(NAPS)] for task in range(TASKS)]
    targets = {TRIO: 5.0, LOOPTIME: 6.0, SIMLOOM: 8.0}
    for peer, module, seed in (
        (LOOPTIME, "looptime", peers.looptime_small),
        (SIMLOOM, "simloom", peers.simloom_small),
    ):
        if peers.installed(module):
            contestants[peer] = _times(functools.partial(seed, naps), repeats)
    return Contest("small seeds (10 tasks × 10 sleeps, lock, checkpoint)", "seeds", contestants, targets)


def _times(work: Callable[[], None], repeats: int) -> Callable[[], int]:
    def contestant() -> int:
        for _ in range(repeats):
            work()
        return repeats

    return contestant

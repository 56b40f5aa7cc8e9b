"""Small programs with a fault that some schedule or some choice brings out, and how to find it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import trio

from simkit.strategy import RandomWalk
from simkit.tape import Tape
from simkit.world import Outcome, World, run

CHOICES = 1000


def walked(main: Any, seed: int) -> Outcome[Any]:
    tape = Tape.from_seed(seed)
    return run(main, tape=tape, strategy=RandomWalk(tape.stream("schedule")))


def first_failure(main: Any, seeds: int = 300, *, departures: int = 0) -> tuple[int, Outcome[Any]]:
    """The first that departs in at least so many choices."""
    for seed in range(seeds):
        outcome = walked(main, seed)
        if outcome.error is not None and len(outcome.departures) >= departures:
            return seed, outcome
    raise AssertionError("no seed fails")


async def faulty_operations(world: World) -> None:
    """1,000 choices: 250 operations of a client, kind, fault and delay each; three in order make the failure."""
    stream = world.tape.stream("workload")
    stage: dict[int, int] = {}
    for number in range(CHOICES // 4):
        client = stream.choose(f"client:{number}", 8)
        kind = stream.choose(f"kind:{number}", 3)
        fault = stream.choose(f"fault:{number}", 4)
        stream.choose(f"delay:{number}", 10)
        reached = stage.get(client, 0)
        stage[client] = reached + ((reached, kind, fault) in {(0, 0, 2), (1, 0, 1), (2, 0, 2)})
        assert stage[client] < 3, "the third fault in order"


def reorder(setters: int) -> Callable[[World], Any]:
    """Setters publish in two steps; a checker that looks in between sees half of it (SCTBench's reorder)."""

    async def main(_world: World) -> None:
        a = b = 0

        async def setter() -> None:
            nonlocal a, b
            a = 1
            await trio.lowlevel.checkpoint()
            b = -1

        async def checker() -> None:
            seen = a
            await trio.lowlevel.checkpoint()
            assert (seen, b) in {(0, 0), (1, -1)}

        async with trio.open_nursery() as nursery:
            for _ in range(setters):
                nursery.start_soon(setter)
            nursery.start_soon(checker)

    return main


async def lost_update(_world: World) -> None:
    value = 0

    async def increment() -> None:
        nonlocal value
        for _ in range(5):
            seen = value
            await trio.lowlevel.checkpoint()
            value = seen + 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(increment)
    assert value > 10


async def lock_order(_world: World) -> None:
    one, other = trio.Lock(), trio.Lock()

    async def take(first: trio.Lock, second: trio.Lock) -> None:
        for _ in range(3):
            async with first:
                await trio.lowlevel.checkpoint()
                async with second:
                    pass

    async with trio.open_nursery() as nursery:
        nursery.start_soon(take, one, other)
        nursery.start_soon(take, other, one)


async def spinning(_world: World) -> None:
    """A task that waits for another by spinning, so that going on with the running task alone would never end."""
    ready = torn = False

    async def waiter() -> None:
        while not ready:
            await trio.lowlevel.checkpoint()
        await trio.lowlevel.checkpoint()
        assert not torn

    async def setter() -> None:
        nonlocal ready, torn
        await trio.lowlevel.checkpoint()
        ready = torn = True
        await trio.lowlevel.checkpoint()
        torn = False

    async with trio.open_nursery() as nursery:
        nursery.start_soon(waiter)
        nursery.start_soon(setter)


async def fault_and_schedule(world: World) -> None:
    """Needs a fault and an order of two tasks; latencies and other faults are noise."""
    stream, log = world.tape.stream("net"), []

    async def send(number: int) -> None:
        await world.sleep_ns(10 + stream.choose(f"latency:{number}", 5))
        lost = stream.chance(f"drop:{number}", 1, 2)
        await trio.lowlevel.checkpoint()
        log.append((number, lost))

    async with trio.open_nursery() as nursery:
        for number in range(6):
            nursery.start_soon(send, number)
    assert not (log.index((4, True)) < [n for n, _ in log].index(1) if (4, True) in log else False)

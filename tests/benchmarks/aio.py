"""asyncio programs in simulation beside the simulators of asyncio: a small seed, the very same program for all."""

from __future__ import annotations

import functools
from collections.abc import Callable

from simkit import aio
from simkit.strategy import RandomWalk
from simkit.tape import Tape
from simkit.world import World, run
from tests.benchmarks import peers
from tests.benchmarks.contest import Contest
from tests.benchmarks.peers import LOOPTIME, SIMLOOM

TASKS = NAPS = 10


def contests(scale: int) -> list[Contest]:
    """One row; the peers that are not installed are left out."""
    seeds = max(1, scale // 2)
    naps = [[0.001 * (1 + (task * 7 + number) % 13) for number in range(NAPS)] for task in range(TASKS)]

    def times(work: Callable[[], None]) -> Callable[[], int]:
        def contestant() -> int:
            for _ in range(seeds):
                work()
            return seeds

        return contestant

    contestants = {"simkit.aio: random walk, guard and trace on": times(lambda: on_simkit(naps))}
    for peer, module, seed in (
        (LOOPTIME, "looptime", peers.looptime_small),
        (SIMLOOM, "simloom", peers.simloom_small),
    ):
        if peers.installed(module):
            contestants[peer] = times(functools.partial(seed, naps))
    return [Contest("small seeds of an asyncio program", "seeds", contestants, {LOOPTIME: 1.0, SIMLOOM: 4.0})]


def on_simkit(naps: list[list[float]]) -> None:
    """The program in a process of a world, digest included."""

    async def main(world: World) -> None:
        status = await world.host("desk").start(aio.run, peers.asyncio_small, naps).wait()
        assert status.kind == "exited"

    tape = Tape.from_seed(1)
    outcome = run(main, tape=tape, strategy=RandomWalk(tape.stream("schedule")))
    outcome.unwrap()
    assert outcome.digest

"""How much two processes do beside one: the same campaign, on the wall."""

from __future__ import annotations

import os
import time

import trio

import simkit
from simkit.world import World
from tests.benchmarks.contest import Contest

TASKS = 10
NAPS = 10


async def small(_world: World) -> None:
    """Ten tasks of ten naps around a lock."""
    lock = trio.Lock()

    async def work(task: int) -> None:
        for number in range(NAPS):
            await trio.sleep(0.001 * (1 + (task * 7 + number) % 13))
            async with lock:
                await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        for task in range(TASKS):
            nursery.start_soon(work, task)


def contests(scale: int) -> list[Contest]:
    """One row; on a machine with a single core there is nothing to measure."""
    if len(os.sched_getaffinity(0)) < 2:
        return []
    seeds = max(8, 40 * scale)

    def work(jobs: int) -> int:
        assert simkit.campaign(small, seeds, jobs=jobs).passed
        return seeds

    two, one = "simkit.campaign: two processes, their start included", "simkit.campaign: one process"
    contestants = {two: lambda: work(2), one: lambda: work(1)}
    return [Contest("small seeds on two cores", "seeds", contestants, {one: 1.8}, clock=time.perf_counter)]

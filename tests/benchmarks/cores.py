"""How much two processes do beside one: the same campaign of composite seeds, on the wall."""

from __future__ import annotations

import os
import time

import simkit
from tests.benchmarks import composite
from tests.benchmarks.contest import Contest


def contests(scale: int) -> list[Contest]:
    """One row; on a machine with a single core there is nothing to measure."""
    if len(os.sched_getaffinity(0)) < 2:
        return []
    seeds = max(8, 80 * scale)

    def work(jobs: int) -> int:
        found = simkit.campaign(composite.main, seeds, jobs=jobs)
        assert found.runs == seeds
        assert not found.failures
        return seeds

    two, one = "simkit.campaign: two processes, their start included", "simkit.campaign: one process"
    contestants = {two: lambda: work(2), one: lambda: work(1)}
    return [Contest("composite seeds on two cores", "seeds", contestants, {one: 1.8}, clock=time.perf_counter)]

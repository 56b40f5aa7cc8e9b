"""SafeStack by SURW, on every core: `python -m tests.quality.safe_stack [--runs-max N] [--jobs N] [--first N]`.

The hardest program of the yardstick: it needs at least five pre-emptions, and of the published strategies only SURW found
it, after 368,921 schedules on average. Here searches of so many schedules each, with one seed after another, take turns on
the cores; what counts is all schedules before the failing one, those of unfinished searches with higher seeds left out.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import multiprocessing
import os
import sys
import time
from collections.abc import Callable

import attrs

from simkit import Found, search
from tests.quality.table import is_fault
from tests.quality.yardstick import PROGRAMS

#: Schedules of one search.
CHUNK = 20_000
RUNS_MAX = 1_000_000


@attrs.frozen
class Hunt:
    """What came of it."""

    found: bool
    seed: int  # of the search that found it
    runs: int  # schedules, over all searches up to that one
    seconds: float

    def __str__(self) -> str:
        told = f"found under seed {self.seed}" if self.found else "not found"
        return f"SafeStack: {told} in {self.runs:,} schedules, {self.seconds:,.0f} s, {self.runs / self.seconds:,.0f} a second"


def searched(seed: int, runs_max: int) -> tuple[bool, int]:
    """One search: whether the fault was found, and in how many schedules."""
    found = search(PROGRAMS["SafeStack"], "surw", runs_max=runs_max, seed=seed, guard=False)
    return isinstance(found, Found) and is_fault(found.error), found.counts.runs


def hunt(
    runs_max: int = RUNS_MAX, *, first: int = 0, jobs: int = 0, told: Callable[[str], object] = lambda _line: None
) -> Hunt:
    """Search with seeds `first`, `first + 1`, … until one finds the fault or so many schedules were made."""
    began, runs = time.monotonic(), 0
    chunks = [min(CHUNK, runs_max - start) for start in range(0, runs_max, CHUNK)]
    jobs = jobs or os.cpu_count() or 1
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(jobs, mp_context=context) as pool:
        results = [pool.submit(searched, first + number, length) for number, length in enumerate(chunks)]
        for number, result in enumerate(results):
            found, made = result.result()
            runs += made
            hunted = Hunt(found, first + number, runs, time.monotonic() - began)
            told(str(hunted))
            if found:
                pool.shutdown(wait=False, cancel_futures=True)
                return hunted
    return hunted


def main(arguments: list[str]) -> int:
    """Hunt, a line for each search."""
    parser = argparse.ArgumentParser(prog="python -m tests.quality.safe_stack", description="SafeStack by SURW")
    parser.add_argument("--runs-max", type=int, default=RUNS_MAX)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=0, help="processes; by default one for each core")
    options = parser.parse_args(arguments)
    if options.runs_max < 1 or options.jobs < 0:
        parser.error("--runs-max is at least 1, --jobs at least 0")
    hunted = hunt(options.runs_max, first=options.first, jobs=options.jobs, told=lambda line: print(line, flush=True))
    return 0 if hunted.found else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Contests of searching: schedules of tiny programs, one after another, and how long a shrink takes.

Goals are stated for a machine on which a bare scheduler makes so many switches a second, and move with it.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
import trio

from simkit import Found, World, search, step
from simkit.shrinking import Retrial, shrink
from simkit.strategies import Reduced
from simkit.strategies.base import Exploration
from tests.benchmarks import peers
from tests.benchmarks.contest import Contest, Goal
from tests.quality.yardstick import PROGRAMS

#: Switches a second of a bare scheduler on the machine that targets are stated for.
SWITCHES_A_SECOND = 2_500_000
#: Schedules a second there.
SCHEDULES_A_SECOND = 10_000
TASKS, STEPS = 2, 3


_REDUCED = "the same, up to the order of independent steps"


def contests(scale: int) -> list[Contest]:
    """Every contest, `scale` per cent of the usual work."""
    runs = 10 * scale
    return [
        _of_schedules(f"every schedule of {TASKS} tasks of {STEPS} steps", runs, lambda: "exhaustive"),
        attrs.evolve(_of_schedules(_REDUCED, runs, lambda: Reduced(declared=True)), goals={}),
        attrs.evolve(_of_schedules("the same by the portfolio", runs, lambda: "portfolio"), goals={}),
        Contest(
            "SafeStack, sampled by SURW",
            "schedules",
            {"simkit: surw": lambda: _searched(PROGRAMS["SafeStack"], "surw", max(2, 2 * scale))},
        ),
        Contest(
            "shrinking a failing schedule of 100 tasks (reorder_100) to one pre-emption",
            "shrinks",
            {"simkit: at most 300 runs": _shrinks(), peers.BARE: lambda: _bare(20_000 * scale)},
            goals={peers.BARE: Goal(1, SWITCHES_A_SECOND)},
        ),
    ]


async def tiny(_world: World) -> None:
    """Two tasks that touch one thing three times each."""

    async def task() -> None:
        for _ in range(STEPS):
            await step("update", "thing")

    async with trio.open_nursery() as nursery:
        for _ in range(TASKS):
            nursery.start_soon(task)


def _of_schedules(title: str, runs: int, strategy: Callable[[], Exploration | str]) -> Contest:
    return Contest(
        title,
        "schedules",
        {
            "simkit: guard off": lambda: _searched(tiny, strategy, runs),
            "simkit: guard on": lambda: _searched(tiny, strategy, runs, guard=True),
            peers.BARE: lambda: _bare(200 * runs),
        },
        goals={peers.BARE: Goal(SCHEDULES_A_SECOND, SWITCHES_A_SECOND)},
    )


def _searched(
    program: Callable[[World], object],
    strategy: Callable[[], Exploration | str] | str,
    runs: int,
    *,
    guard: bool = False,
) -> int:
    """Make so many runs, beginning anew when there is nothing left."""
    made = 0
    while made < runs:
        chosen = strategy if isinstance(strategy, str) else strategy()
        counts = search(program, chosen, runs_max=runs - made, seed=made, guard=guard).counts  # type: ignore[arg-type]
        made += counts.runs + counts.redundant
    return made


def _shrinks() -> Callable[[], int]:
    """The shrink alone, of a schedule found beforehand."""
    program = PROGRAMS["reorder_100"]
    found = search(program, seed=1, guard=False)
    assert isinstance(found, Found)
    case = found.case

    def shrunk() -> int:
        retrial = Retrial(program, entropy=case.seed or 0, guard=False)
        assert shrink(retrial, case.departures, case.schedule).best.preemptions == 1
        return 1

    return shrunk


def _bare(switches: int) -> int:
    peers.bare_switching(10, max(1, switches // 10))
    return switches

"""Strategies by name: the seeds of a test are the runs of one exploration, and each can be had again alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import trio

import simkit
from simkit import trials
from simkit.strategies import NAMES
from simkit.testing import Ambient, surrounded
from simkit.world import Limits
from tests.plugin.rig import cases, failing, run, told

pytest_plugins = ["pytester"]


async def race(world: simkit.World) -> list[int]:
    """Two tasks of two steps, and a choice of the world."""
    order = [world.tape.stream("world").choose("n", 1000)]

    async def work(number: int) -> None:
        for _ in range(2):
            order.append(number)
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(work, 1)
        nursery.start_soon(work, 2)
    return order


def made(strategy: str, seeds: list[int]) -> dict[int, tuple[int, str]]:
    """The runs of some seeds: their worlds and digests."""
    runs = trials.trials(race, strategy, seeds, Limits())
    return {trial.seed: (trial.world_seed, trial.outcome.digest) for trial in runs}


@pytest.mark.parametrize("strategy", ["random", "fifo", "trio", "pct3", "pos", "surw", "reads-from", "portfolio"])
def test_a_seed_is_the_same_run_whatever_others_were_asked_for(strategy: str) -> None:
    """Also when the run has learnt from others, and whichever of them were wanted."""
    whole = made(strategy, list(range(40)))
    assert made(strategy, [17]) == {17: whole[17]}
    assert made(strategy, [30, 3]) == {3: whole[3], 30: whole[30]}


def test_an_exploration_begins_anew_at_each_block() -> None:
    """So that a late seed can be had again without all those before it; each run has a world of its own."""
    book: list[trials.Explored] = []
    late = 2 * trials.BLOCK + 3
    (trial,) = trials.trials(race, "surw", [late], Limits(), book)
    assert (trial.seed, trial.world_seed) == (late, late)
    assert book[0].runs == 4
    both = list(trials.trials(race, "surw", [late - trials.BLOCK, late], Limits()))
    assert both[1].outcome.digest == trial.outcome.digest


def test_an_exhaustive_strategy_ends_and_keeps_to_one_world() -> None:
    """No schedule twice, every run in the world of seed 0, and it says that nothing is left."""
    book: list[trials.Explored] = []
    runs = list(trials.trials(race, "exhaustive", range(10_000), Limits(), book))
    digests = [trial.outcome.digest for trial in runs]
    assert len(digests) == len(set(digests)) == book[0].runs
    assert book[0].exhausted
    assert {trial.world_seed for trial in runs} == {0}
    again = next(trials.trials(race, "exhaustive", [5], Limits()))
    assert again.outcome.digest == digests[5]


@pytest.mark.parametrize("name", [*NAMES, "pct7", "delays1"])
def test_every_strategy_has_its_name_in_the_decorator(name: str) -> None:
    """All that can be searched with can be tested with."""

    @simkit.test(seeds=3, strategy=name)
    async def program(world: simkit.World) -> None:
        await race(world)

    with surrounded(Ambient(seeds=range(3))):
        program()


SUITE = """
import simkit
import trio

@simkit.test(seeds=60, strategy="{strategy}")
async def test_order(world):
    done = []

    async def work(name, steps):
        for _ in range(steps):
            await trio.lowlevel.checkpoint()
        done.append(name)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(work, "short", 1)
        nursery.start_soon(work, "long", 6)
    assert done == ["short", "long"]
"""


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["portfolio", "exhaustive"])
def test_a_failing_run_of_an_exploration_replays_by_case_and_by_seed(pytester: pytest.Pytester, strategy: str) -> None:
    """The case alone, the seed with the runs that it has learnt from, and `--lf` the same."""
    pytester.makepyfile(test_race=SUITE.format(strategy=strategy))
    result = run(pytester)
    (seed,) = failing(result, "test_race.py::test_order")
    assert seed > 0
    result.stdout.fnmatch_lines([f"strategy: {strategy}; seed {seed} is a run that learnt from run*"])
    (case,) = cases(pytester)
    data = json.loads(case.read_text(encoding="utf-8"))
    assert data["options"]["strategy"] == strategy
    assert data["options"]["run"] == seed
    told(case, run(pytester, "--simkit-replay", case.stem), f"reproduced, *, with the same digest {data['digest']}")
    for again in (run(pytester, "--simkit-seed", str(seed)), run(pytester, "--lf")):
        assert failing(again, "test_race.py::test_order") == [seed]
        assert cases(pytester) == [case]


@pytest.mark.slow
def test_an_exhaustive_strategy_that_is_through_says_so(pytester: pytest.Pytester) -> None:
    """A pass after every schedule is told, and so is one after fewer."""
    source = SUITE.format(strategy="exhaustive").replace('["short", "long"]', "done")
    pytester.makepyfile(test_race=source + source.replace("seeds=60", "seeds=2").replace("_order", "_few"))
    result = run(pytester)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines_random(
        [
            "simkit: test_race.py::test_order: exhaustive: nothing is left to explore after * runs, and none fails",
            "simkit: test_race.py::test_few: exhaustive: none of 2 runs fails; more are left to explore than*",
        ]
    )


@pytest.mark.slow
def test_an_unknown_strategy_is_a_usage_error_that_lists_those_there_are(pytester: pytest.Pytester) -> None:
    """In the settings and in a decorator."""
    pytester.makepyfile("import simkit\n@simkit.test(strategy='lucky')\nasync def test_x(world): ...\n")
    run(pytester).stdout.fnmatch_lines(["*there is no strategy 'lucky'*", "*one of random, fifo,*portfolio,*"])
    pytester.makepyfile("import simkit\n@simkit.test\nasync def test_x(world): ...\n")
    pytester.makepyprojecttoml("[tool.simkit]\nstrategy = 'lucky'\n")
    result = run(pytester, "--simkit-seeds", "1")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*tool.simkit.strategy: expected one of random, fifo,*portfolio,*got 'lucky'*"])


@pytest.mark.slow
def test_settings_choose_the_strategy(pytester: pytest.Pytester, tmp_path: Path) -> None:
    """For every test that names none."""
    source = SUITE.format(strategy="portfolio").replace(', strategy="portfolio"', "")
    pytester.makepyfile(test_race=source)
    pytester.makepyprojecttoml("[tool.simkit]\nstrategy = 'fifo'\n[tool.simkit.profiles.wide]\nstrategy = 'surw'\n")
    run(pytester).assert_outcomes(passed=1)
    run(pytester, "--simkit-profile", "wide").stdout.fnmatch_lines(["strategy: surw; *", "*--simkit-profile wide"])

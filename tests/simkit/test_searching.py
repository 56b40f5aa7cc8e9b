"""A search finds a failing run, keeps it as a case that replays, counts, and says how much may be left to see."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

import simkit
from simkit import Case, Found, Limits, NotFound, World, replay, search
from simkit.discovery import Discovery
from simkit.errors import SimkitError
from simkit.strategies import Exhaustive


async def overtaken(world: World) -> None:
    """Fails when the second task comes first, and a coin of the tape's says so."""
    order: list[int] = []

    async def runner(number: int) -> None:
        await trio.lowlevel.checkpoint()
        order.append(number)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(runner, 0)
        nursery.start_soon(runner, 1)
    if order == [1, 0] and world.tape.stream("coin").chance("toss", 1, 2):
        raise ValueError("overtaken")


async def fine(_world: World) -> None:
    await trio.lowlevel.checkpoint()


async def stuck(_world: World) -> None:
    await trio.Event().wait()


def found_in(*arguments: object, **options: object) -> Found:
    found = search(*arguments, **options)  # type: ignore[arg-type]
    assert isinstance(found, Found)
    return found


@pytest.mark.parametrize("kernel", ["fast", "fallback"])
def test_a_failing_run_is_a_case_that_replays(tmp_path: Path, kernel: str) -> None:
    """The saved case, loaded again, fails in the same way with the same trace, on either kernel."""
    found = found_in(overtaken, "random", save=tmp_path)
    assert found
    assert found.path is not None
    case = Case.load(found.path)
    assert case == found.case
    again = replay(case, overtaken, kernel=kernel)  # type: ignore[arg-type]
    assert isinstance(again.error, ValueError)
    assert again.digest == case.digest
    assert case.departures
    assert case.expect == {"obligation": "program", "anomaly": "ValueError"}
    assert case.target["program"].endswith(":overtaken")


@pytest.mark.parametrize("strategy", ["portfolio", "delays2", "reduced", "pct3"])
def test_both_kernels_search_the_same(strategy: str) -> None:
    """Counts, curve and the found case do not depend on the loop that steps the tasks."""
    fast, fallback = (
        search(overtaken, strategy, runs_max=60, seed=4, kernel=kernel) for kernel in ("fast", "fallback")
    )
    assert fast.counts == fallback.counts
    assert isinstance(fast, Found) == isinstance(fallback, Found)
    if isinstance(fast, Found) and isinstance(fallback, Found):
        assert fast.case == fallback.case


def test_searches_are_in_the_public_package() -> None:
    """The names that users need are those of simkit itself, whatever was imported before."""
    assert simkit.search is search
    assert simkit.Found is Found
    assert callable(simkit.step)


def test_nothing_found_says_whether_anything_is_left() -> None:
    """An exhausted search proves something; one that was cut short does not."""
    whole = search(fine, "exhaustive")
    assert isinstance(whole, NotFound)
    assert not whole
    assert (whole.exhausted, whole.counts.runs) == (True, 1)
    part = search(fine, "random", runs_max=3)
    assert isinstance(part, NotFound)
    assert (part.exhausted, part.counts.runs, part.counts.schedules) == (False, 3, 1)
    assert part.counts.steps == 3 * whole.counts.steps


def test_a_deadlock_is_a_failure() -> None:
    """Nobody need wait for a time-out to see one."""
    assert isinstance(found_in(stuck).error, simkit.DeadlockError)


def test_a_bound_is_inconclusive() -> None:
    """A run that went on too long has neither passed nor failed."""

    async def endless(_world: World) -> None:
        while True:
            await trio.lowlevel.checkpoint()

    result = search(endless, "random", runs_max=2, limits=Limits(steps=50))
    assert isinstance(result, NotFound)
    assert result.counts.inconclusive == 2


def test_what_fails_is_the_callers_to_say() -> None:
    """A program that returns what it saw can be judged from outside."""

    async def answer(_world: World) -> int:
        await trio.lowlevel.checkpoint()
        return 41

    found = found_in(answer, failing=lambda outcome: None if outcome.value == 42 else ValueError(outcome.value))
    assert str(found.error) == "41"


def test_samplers_draw_another_world_each_run_and_exhaustive_ones_do_not() -> None:
    """What the tape decides varies with the run, unless a strategy counts on the same program."""

    def tosses(strategy: str) -> int:
        seen: set[int] = set()

        async def toss(world: World) -> None:
            seen.add(world.tape.stream("coin").randrange("toss", 1_000_000))

        search(toss, strategy, runs_max=5)
        return len(seen)

    assert tosses("random") == 5
    assert tosses("delays1") == 1


def test_an_unknown_strategy_is_told() -> None:
    """With the names that there are."""
    with pytest.raises(SimkitError, match="reads-from"):
        search(fine, "ranodm")


def test_the_chance_of_something_new_falls() -> None:
    """Good and Turing: all new at first; once everything was seen twice, nothing is expected to be new."""
    discovery = Discovery()
    for thing in "abcd":
        assert discovery.saw(thing)
    assert discovery.curve()[-1].chance_of_new == 1.0
    for thing in "abcd":
        assert not discovery.saw(thing)
    points = discovery.curve()
    assert [(point.runs, point.distinct) for point in points] == [(1, 1), (2, 2), (4, 4), (8, 4)]
    assert points[-1].chance_of_new == 0.0
    discovery.saw("e")
    assert discovery.curve()[-1].chance_of_new == pytest.approx(1 / 9)


def test_the_estimate_is_about_right() -> None:
    """Of 20 equally likely schedules a walk has seen nearly all after 100 runs, and the estimate says so."""

    async def race(_world: World) -> None:
        async def row() -> None:
            for _ in range(2):
                await trio.lowlevel.checkpoint()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(row)
            nursery.start_soon(row)

    counts = search(race, "random", runs_max=100).counts
    every = search(race, Exhaustive()).counts
    assert every.schedules - counts.schedules <= 1
    assert counts.chance_of_new < 0.1
    assert search(race, "random", runs_max=5).counts.chance_of_new > 0.3

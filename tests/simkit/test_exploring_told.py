"""What an exploration says where it can do little: nothing to explore, a misspelt pattern, a program that fails for ever."""

from __future__ import annotations

import pytest
import trio

import simkit
from simkit import World, explore
from simkit.errors import SimkitError


async def empty(_world: World) -> None:
    """One task, no site."""


async def chooses(world: World) -> None:
    """One site."""
    world.tape.stream("coin").choose("toss", 2)


async def judges_inside(world: World) -> None:
    """Its assertion is where a supervisor starts it again."""

    async def work() -> None:
        await trio.sleep(1)
        raise AssertionError("the money is gone")

    await world.host("bank").supervise(work)


def test_where_all_runs_are_alike_few_are_made() -> None:
    """And the report says why; a smaller budget stays."""
    report = explore(empty)
    assert report.runs <= 50
    assert any("there is nothing to explore" in note for note in report.notes)
    assert explore(empty, budget=10).runs <= 10
    assert not any("there is nothing to explore" in note for note in explore(chooses, budget=60).notes)


def test_a_pattern_that_leaves_nothing_out_is_told() -> None:
    """It may be misspelt; one that does is not told."""
    notes = "\n".join(explore(chooses, without=["disk.nosuch", "coin.tos", "coin.*"], budget=5).notes)
    assert "'disk.nosuch': the default run comes by nothing that is called so\n" in notes
    assert "'coin.tos': the default run comes by nothing that is called so: did you mean 'coin.toss'?" in notes
    assert "'coin.*'" not in notes


def test_a_process_that_fails_for_ever_is_named() -> None:
    """With its error and how often, and the hint says where assertions belong."""
    with pytest.raises(SimkitError) as caught:
        explore(judges_inside, limits=simkit.Limits(steps=200))
    problem = caught.value.problem
    assert problem.code == "explore-endless"
    assert "AssertionError: the money is gone" in problem.where
    assert "of bank failed" in problem.where
    assert "let main check" in problem.hint

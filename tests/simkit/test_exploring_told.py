"""What an exploration says where it can do little: nothing to explore, a misspelt pattern, a program that fails for ever."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

import simkit
from simkit import World, explore, replay
from simkit.errors import SimkitError
from tests.simkit import explore_programs as programs


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


def test_inconclusive_runs_can_be_looked_at(tmp_path: Path) -> None:
    """Each kind of bound with its number and a case, which meets that bound again, and is saved with the others."""
    limits = simkit.Limits(steps=200)
    report = explore(programs.gives_up, stages=["singles"], budget=60, limits=limits, save=tmp_path)
    (kind,) = report.unfinished
    assert (kind.bound, kind.runs) == ("steps", report.inconclusive)
    assert report.passed
    assert [path.stem for path in tmp_path.iterdir()] == [kind.case.id]
    again = replay(kind.case, programs.gives_up)
    assert (again.answer, again.failures, again.outcome.steps) == ("reproduced", ("bound on steps",), 200)
    told = str(report)
    assert f"inconclusive, {kind.runs} runs: they met their bound on steps" in told
    assert f"the first is case {kind.case.id}: {'; '.join(kind.strikes)}" in told
    assert report.to_json()["unfinished"][0]["case"] == kind.case.to_json()

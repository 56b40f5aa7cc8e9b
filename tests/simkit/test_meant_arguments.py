"""Arguments that say what is meant in another way are taken, or the error says what is wanted; nothing runs before that."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import simkit
from simkit import Tape, World, campaign, explore, replay, run, search
from simkit.errors import SimkitError
from simkit.exploring import Budget


async def naps(world: World) -> None:
    """Fails for one value in ten."""
    assert world.tape.stream("length").choose("nap", 10) != 7


WRONG: dict[str, Any] = {"text": "random", "number": 3, "maker": simkit.RandomWalk, "word": "x"}


async def never(_world: World) -> None:
    """Is not to be run."""
    pytest.fail("it ran")


def test_campaigns_take_ranges_and_the_names_of_simple_strategies() -> None:
    """As @simkit.test does."""
    assert campaign(naps, "10-29") == campaign(naps, range(10, 30))
    assert campaign(naps, 20, strategy="random") == campaign(naps, 20)
    assert campaign(naps, 20, strategy="fifo") == campaign(naps, 20, strategy=None)


def test_a_budget_may_be_a_number() -> None:
    """Of runs."""
    assert explore(naps, budget=20) == explore(naps, budget=Budget(runs=20))


def test_a_case_may_be_its_path(tmp_path: Path) -> None:
    """As text too."""
    found = campaign(naps, 30, save=tmp_path).failures[0]
    assert found.path is not None
    for path in (found.path, str(found.path)):
        assert replay(path, naps).answer == "reproduced"
        assert simkit.replay_until(path, naps, 0) == simkit.replay_until(found.case, naps, 0)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: run(never, tape=Tape.from_seed(0), strategy=WRONG["text"]), "run: strategy cannot be 'random'"),
        (lambda: run(never, tape=Tape.from_seed(0), strategy=WRONG["maker"]), "run: strategy"),
        (lambda: campaign(never, 3, strategy="pct3"), "learns from run to run"),
        (lambda: campaign(never, 3, strategy="nosuch"), "random or fifo"),
        (lambda: campaign(never, 3, strategy=WRONG["number"]), "random or fifo"),
        (lambda: campaign(never, "3-"), "100-199"),
        (lambda: search(never, WRONG["number"]), "search: strategy cannot be 3"),
        (lambda: search(never, WRONG["maker"]), "search: strategy"),
        (lambda: explore(never, budget=WRONG["word"]), "explore: budget"),
        (lambda: replay("23ac", never), "the path of one"),
        (lambda: Tape.from_seed(WRONG["word"]), "Tape: seed cannot be 'x'"),
        (lambda: Tape.from_seed(-1), "a whole number from 0"),
        (lambda: simkit.test(WRONG["number"]), r"@simkit.test\(seeds=20\)"),
    ],
)
def test_what_cannot_be_meant_is_named(call: Callable[[], Any], words: str) -> None:
    """Before anything runs."""
    with pytest.raises(SimkitError, match=words):
        call()


def test_a_program_that_cannot_be_sent_is_called_by_its_name() -> None:
    """Not by what it was wrapped into."""

    async def program(_world: World) -> None:
        pass

    with pytest.raises(SimkitError) as caught:
        campaign(program, 20, jobs=2)
    assert caught.value.problem.what.startswith(
        "test_a_program_that_cannot_be_sent_is_called_by_its_name.<locals>.program cannot be sent"
    )

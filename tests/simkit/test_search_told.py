"""A search in words: what fails, how it was found, where the case is; or what was tried, and how much that says."""

from __future__ import annotations

from pathlib import Path

import trio

import simkit
from simkit import World, search


async def lost_update(_world: World) -> None:
    """Two tasks that read before both write."""
    count = 0

    async def add() -> None:
        nonlocal count
        seen = count
        await trio.lowlevel.checkpoint()
        count = seen + 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(add)
        nursery.start_soon(add)
    assert count == 2, f"{count} of 2"


async def sound(_world: World) -> None:
    """Nothing is wrong with it."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.lowlevel.checkpoint)
        nursery.start_soon(trio.lowlevel.checkpoint)


def test_what_was_found_is_told_in_a_few_lines(tmp_path: Path) -> None:
    """With id and path of the case, when it was saved; an id that nobody could look up is not told."""
    found = search(lost_update, "random")
    assert found
    name = f"{__name__}:lost_update"
    assert str(found).splitlines() == [
        f"{name} fails: AssertionError: 1 of 2",
        f"found by random after {found.counts}",
        "case not saved: search(…, save=folder) keeps it",
        "again: simkit.replay(found.case, lost_update)",
    ]
    saved = search(lost_update, "random", save=tmp_path)
    assert saved
    path = tmp_path / f"{saved.case.id}.json"
    assert str(saved).splitlines()[2:] == [
        f"case {saved.case.id}, saved as {path}",
        f"again: simkit.replay({str(path)!r}, lost_update)",
    ]
    assert simkit.replay(path, lost_update).answer == "reproduced"


def test_one_run_is_one_run() -> None:
    """And what has no name of a function is called the program."""

    class Broken:
        async def __call__(self, _world: World) -> None:
            await trio.lowlevel.checkpoint()
            raise ValueError

    found = search(Broken(), "random")
    assert found
    _, counted, _, again = str(found).splitlines()
    assert counted.startswith("found by random after 1 run, 1 schedule, ")
    assert again == "again: simkit.replay(found.case, program)"


def test_that_nothing_was_found_is_told_with_how_much_that_says() -> None:
    """All there is, or the chance of something new; runs that met a bound are not hidden."""
    everything = search(sound, "exhaustive")
    assert str(everything).startswith(f"no run fails: {everything.counts} by exhaustive; nothing is left")
    some = search(sound, "random", runs_max=3)
    assert str(some).endswith(f"the chance that another run shows a new schedule is {some.counts.chance_of_new:.3f}")
    short = search(sound, "random", runs_max=3, limits=simkit.Limits(steps=2))
    assert "3 inconclusive" in str(short)

"""The parts of the plugin that need no pytest run: ids of seeds, ranges, settings, and tests called as plain functions."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest
import trio

import simkit
from simkit._pytest import nodes, replay
from simkit.errors import SimkitError
from simkit.limits import Limits
from simkit.settings import Settings, load, parse_seeds
from simkit.testing import Ambient, surrounded


@pytest.mark.parametrize(
    ("base", "own"),
    [
        ("t.py::test_x", "t.py::test_x[seed=17]"),
        ("t.py::T::test_x[wal]", "t.py::T::test_x[wal-seed=17]"),
        ("t.py::test_x[a-seed]", "t.py::test_x[a-seed-seed=17]"),
        ("t.py::test_x[]", "t.py::test_x[-seed=17]"),
    ],
)
def test_ids_of_seeds_can_be_taken_apart(base: str, own: str) -> None:
    """With and without other parameters, there and back."""
    assert nodes.with_seed(base, 17) == own
    assert nodes.parsed(own) == nodes.Node(base, 17)
    assert nodes.parsed(base) == nodes.Node(base)


def test_seeds_are_found_by_function() -> None:
    """Whatever the other parameters, each once, and none of other functions."""
    ids = ["t.py::f[seed=3]", "t.py::f[a-seed=1]", "t.py::f[b-seed=1]", "t.py::g[seed=9]", "t.py::f", "t.py::f[a]"]
    assert nodes.seeds_of("t.py::f", ids) == [1, 3]


@pytest.mark.parametrize(("text", "seeds"), [("3", range(3)), ("5-7", range(5, 8)), (" 9-9 ", range(9, 10))])
def test_ranges_of_seeds(text: str, seeds: range) -> None:
    """A number is the first so many, a range has both its ends."""
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize("text", ["", "-3", "7-5", "0", "1,2", "99999999999"])
def test_what_is_no_range_of_seeds(text: str) -> None:
    """Empty, backwards, unreadable and endless ones are refused."""
    with pytest.raises(ValueError, match="seeds"):
        parse_seeds(text)


def test_without_a_file_or_a_table_the_defaults_hold(tmp_path: Path) -> None:
    """A project need not say anything."""
    assert load(tmp_path) == Settings()
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n", encoding="utf-8")
    assert load(tmp_path) == Settings()


def test_bounds_are_settings(tmp_path: Path) -> None:
    """Those of a run, each by its name; what is not set is as everywhere."""
    bounds = "steps_max = 7\nstep_s = 90\nmemory_bytes = 1_000\n"
    (tmp_path / "pyproject.toml").write_text(f"[tool.simkit]\n{bounds}", encoding="utf-8")
    assert load(tmp_path).limits == Limits(steps=7, step_s=90.0, memory_bytes=1_000)
    assert Settings().limits == Limits()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[tool.simkit\n", "it is not TOML"),
        ("[tool]\nsimkit = 3\n", "tool.simkit: expected a table"),
        ("[tool.simkit]\nseeds = true\n", "tool.simkit.seeds: expected a number of seeds"),
        ("[tool.simkit]\nseeds = '9-1'\n", "tool.simkit.seeds: '9-1' stands for"),
        ("[tool.simkit]\nshrink_runs = -1\n", "tool.simkit.shrink_runs: expected a whole number from 0"),
        ("[tool.simkit]\nsteps_max = 0\n", "tool.simkit.steps_max: expected a whole number from 1; got 0"),
        ("[tool.simkit]\nmemory_bytes = '1 GB'\n", "tool.simkit.memory_bytes: expected a whole number from 1"),
        ("[tool.simkit]\nstep_s = 0\n", "tool.simkit.step_s: expected a number of seconds above 0; got 0"),
        ("[tool.simkit]\nstep_s = nan\n", "tool.simkit.step_s: expected a number of seconds above 0; got nan"),
        ("[tool.simkit]\nstore = ''\n", "tool.simkit.store: expected text"),
        ("[tool.simkit]\nprofiles = 3\n", "tool.simkit.profiles: expected tables"),
        ("[tool.simkit.profiles]\nnightly = 3\n", "tool.simkit.profiles.nightly: expected a table"),
    ],
)
def test_wrong_settings_name_file_and_key(tmp_path: Path, text: str, told: str) -> None:
    """Whatever is wrong, the file and the key are named."""
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    with pytest.raises(SimkitError) as caught:
        load(tmp_path)
    assert told in caught.value.problem.what
    assert caught.value.problem.where == str(tmp_path / "pyproject.toml")


def test_a_decorated_test_is_a_plain_function() -> None:
    """Called without pytest it runs its seeds, takes its arguments, and raises what the first failing one raised."""
    ran: list[tuple[int, str]] = []

    @simkit.test(seeds=[4, 9, 2])
    async def program(world: simkit.World, word: str) -> None:
        await trio.sleep(1)
        ran.append((world.tape.entropy, word))
        assert world.tape.entropy != 9, "nine"

    with pytest.raises(AssertionError, match="nine"):
        program("hello")
    assert ran == [(4, "hello"), (9, "hello")]


def test_what_surrounds_a_test_goes_before_its_own_seeds() -> None:
    """Seeds that failed before come first, seeds of the command line replace the test's."""
    ran: list[int] = []

    @simkit.test(seeds=2)
    async def program(world: simkit.World) -> None:
        ran.append(world.tape.entropy)

    with surrounded(Ambient(seeds=[5, 6], first=[6])):
        program()
    program()
    assert ran == [6, 5, 0, 1]


@pytest.mark.parametrize(
    ("function", "told"),
    [(lambda world: None, "not an async function"), (trio.sleep, "no argument `world`")],
    ids=["not-async", "no-world"],
)
def test_a_misused_decorator_is_told(function: Any, told: str) -> None:
    """What cannot run is a test that fails with the reason and the place, so that the others of its file are run."""
    refused = simkit.test(function)
    with pytest.raises(SimkitError, match=told) as caught:
        refused()
    assert re.fullmatch(r".+\.py:\d+ in .+", caught.value.problem.where)
    assert not inspect.signature(refused).parameters


def test_a_test_without_seeds_is_told() -> None:
    """No evidence is no pass."""

    async def program(world: simkit.World) -> None: ...

    with pytest.raises(SimkitError, match="it has no seeds"):
        simkit.test(seeds=[])(program)()


def test_seeds_that_are_none_are_told() -> None:
    """Of that test alone."""

    async def program(world: simkit.World) -> None: ...

    with pytest.raises(SimkitError, match="seeds='a few'"):
        simkit.test(seeds="a few")(program)()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"sed": 3}, "there is no option 'sed' (did you mean 'seeds'?)"),
        ({"seeds": 3, "limits": None}, "there is no option 'limits'"),
    ],
    ids=["near", "far"],
)
def test_an_option_that_there_is_not_is_told(options: dict[str, Any], told: str) -> None:
    """Of that test alone, as every other misuse; with what it takes, and what was probably meant."""

    async def program(world: simkit.World) -> None: ...

    with pytest.raises(SimkitError) as caught:
        simkit.test(**options)(program)()
    problem = caught.value.problem
    assert problem.what.endswith(told)
    assert problem.expected == "of seeds, strategy, processes_may_fail those that are wanted"
    assert problem.where.endswith("program")


def test_a_case_of_the_conformance_kit_is_told(tmp_path: Path) -> None:
    """The plugin replays the cases of tests, and says who replays the others."""
    path = simkit.Case("simulated", {"name": "reference"}, {}).save(tmp_path / "cases")
    with pytest.raises(SimkitError, match="simkit replay"):
        replay.find(path.stem, tmp_path)


def test_an_id_that_fits_two_cases_is_told(tmp_path: Path) -> None:
    """The beginning of an id must mean one case; characters of a pattern mean nothing."""
    for seed in range(40):
        simkit.Case("simulated", {"test": "t.py::f"}, {}, seed).save(tmp_path / "cases")
    by_first = sorted(path.stem[0] for path in (tmp_path / "cases").iterdir())
    twice = next(first for first in by_first if by_first.count(first) > 1)
    with pytest.raises(SimkitError, match="cases begin so"):
        replay.find(twice, tmp_path)
    with pytest.raises(SimkitError, match="no such case"):
        replay.find("*", tmp_path)

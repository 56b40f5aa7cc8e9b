"""Tests of many seeds as several items: for xdist, or as the command line wants it."""

from __future__ import annotations

import json

import pytest

from simkit._pytest import nodes, splitting
from simkit.errors import SimkitError
from simkit.settings import Settings
from simkit.testing import Spec
from simkit.trials import BLOCK
from tests.plugin.rig import cases, failing, run

pytest_plugins = ["pytester"]

#: Seed 748 fails, among a thousand.
RARE = """
import simkit

@simkit.test(seeds=1000)
async def test_rare(world):
    assert world.tape.stream("x").choose("n", 1000) != 7

@simkit.test(seeds=20)
async def test_small(world):
    pass
"""


@pytest.mark.parametrize(
    ("seeds", "count", "unit", "parts"),
    [
        (range(1000), 4, 1, [(0, 249), (250, 499), (500, 749), (750, 999)]),
        (range(10), 3, 1, [(0, 2), (3, 5), (6, 9)]),
        (range(2), 4, 1, [(0, 0), (1, 1)]),
        (range(100, 200), 2, 1, [(100, 149), (150, 199)]),
        (range(1000), 4, 250, [(0, 249), (250, 499), (500, 749), (750, 999)]),
        (range(600), 8, 250, [(0, 249), (250, 499), (500, 599)]),
        (range(100, 400), 2, 250, [(100, 249), (250, 399)]),
        (range(100), 4, 250, [(0, 99)]),
    ],
)
def test_parts_cover_all_seeds_once(seeds: range, count: int, unit: int, parts: list[tuple[int, int]]) -> None:
    """About equal, and cut only where an exploration begins anew."""
    found = nodes.parts_of(seeds, count, unit)
    assert [(part[0], part[-1]) for part in found] == parts
    assert [seed for part in found for seed in part] == list(seeds)


@pytest.mark.parametrize("base", ["t.py::test_x", "t.py::T::test_x[wal]", "t.py::test_x[]"])
def test_ids_of_parts_can_be_taken_apart(base: str) -> None:
    """And a seed of a part has the id that it has without parts."""
    own = f"{base[:-1]}-seeds=0-249]" if base.endswith("]") else f"{base}[seeds=0-249]"
    assert nodes.parsed(own) == nodes.Node(base, None, range(250))
    assert nodes.with_seed(own, 17) == nodes.with_seed(base, 17)
    assert nodes.parsed(nodes.with_seed(own, 17)) == nodes.Node(base, 17)


async def program(world: object) -> None: ...


@pytest.mark.parametrize(
    ("spec", "count", "processes", "parts"),
    [
        (Spec(program, range(1000), None, processes_may_fail=False), None, 4, 4),
        (Spec(program, range(1000), None, processes_may_fail=False), None, 1, 0),
        (Spec(program, range(1000), None, processes_may_fail=False), 1, 4, 0),
        (Spec(program, range(50), None, processes_may_fail=False), None, 4, 0),
        (Spec(program, range(50), None, processes_may_fail=False), 5, 1, 5),
        (Spec(program, [1, 5, 9], None, processes_may_fail=False), 3, 1, 0),
        (Spec(program, range(4 * BLOCK), "surw", processes_may_fail=False), None, 2, 2),
        (Spec(program, range(BLOCK), "surw", processes_may_fail=False), None, 2, 0),
        (Spec(program, range(4 * BLOCK), "exhaustive", processes_may_fail=False), None, 2, 0),
    ],
)
def test_which_tests_are_split(spec: Spec, count: int | None, processes: int, parts: int) -> None:
    """Those of many seeds in a range; explorations between two blocks, and never those that cover one world."""
    assert len(splitting.parts(spec, Settings(), None, count, processes)) == parts


def test_what_is_no_number_of_parts() -> None:
    """It is told with what would be one."""
    assert [splitting.wanted(text) for text in (None, "auto", "off", "4")] == [None, None, 1, 4]
    for text in ("0", "-1", "many", "1001"):
        with pytest.raises(SimkitError, match="--simkit-split"):
            splitting.wanted(text)


@pytest.mark.slow
def test_parts_report_and_rerun_as_whole_tests_do(pytester: pytest.Pytester) -> None:
    """Each part runs its own seeds; the failing seed has the id that `--lf`, typing and a run without parts know."""
    pytester.makepyfile(test_rare=RARE)
    listed = run(pytester, "--simkit-split", "2", "--collect-only", "-q")
    listed.stdout.fnmatch_lines(
        ["test_rare.py::test_rare[[]seeds=0-499[]]", "test_rare.py::test_rare[[]seeds=500-999[]]", "*seeds=0-9[]]", "*"]
    )
    result = run(pytester, "--simkit-split", "2", "-k", "rare and not small")
    result.assert_outcomes(passed=1, failed=1, deselected=2)
    assert failing(result, "test_rare.py::test_rare") == [748]
    again = run(pytester, "--lf")
    again.assert_outcomes(failed=1)
    run(pytester, "test_rare.py::test_rare[seed=747]").assert_outcomes(passed=1)
    first = run(
        pytester, "--simkit-split", "2", "test_rare.py::test_rare[seeds=500-999]"
    )  # what failed before goes first, in its own part
    assert failing(first, "test_rare.py::test_rare") == [748]


@pytest.mark.slow
def test_a_named_seed_runs_that_seed_only(pytester: pytest.Pytester) -> None:
    """By id and by option, and nothing beside it."""
    source = "import simkit\nran = []\n@simkit.test(seeds=20)\nasync def test_x(world):\n    ran.append(world.tape.entropy)\n"
    pytester.makepyfile(test_x=source + "def test_ran():\n    print('ran', ran)\n")
    run(pytester, "-s", "test_x.py::test_x[seed=17]", "test_x.py::test_ran").stdout.fnmatch_lines(["*ran [[]17[]]*"])
    run(pytester, "-s", "--simkit-seed", "900").stdout.fnmatch_lines(["*ran [[]900[]]*"])


@pytest.mark.slow
def test_processes_of_xdist_share_a_test(pytester: pytest.Pytester) -> None:
    """One failure under its own id, its case and its page written once; `--lf` runs that seed alone."""
    pytester.makepyfile(test_rare=RARE)
    result = pytester.runpytest_inprocess("-n", "2", "--simkit-html")
    result.assert_outcomes(passed=2, failed=1)
    assert failing(result, "test_rare.py::test_rare") == [748]
    assert len(cases(pytester)) == 1
    assert len(list((pytester.path / ".simkit/html").iterdir())) == 1
    cached = json.loads((pytester.path / ".pytest_cache/v/cache/lastfailed").read_text(encoding="utf-8"))
    assert list(cached) == ["test_rare.py::test_rare[seed=748]"]
    again = pytester.runpytest_inprocess("-n", "2", "--lf")
    again.assert_outcomes(failed=1)
    assert failing(again, "test_rare.py::test_rare") == [748]

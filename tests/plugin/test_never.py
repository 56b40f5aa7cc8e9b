"""Named points that no seed of a test has hit, told at the end of the session."""

from __future__ import annotations

from typing import Any

import pytest

from simkit._kernel import watchdog
from simkit._pytest import never
from simkit.point_coverage import Coverage
from simkit.points import PointCount
from tests.plugin.rig import run

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.slow

SUITE = """
import simkit

@simkit.test(seeds={seeds})
async def test_tries(world):
    simkit.sometimes("true", True)
    simkit.sometimes("never true", False)
    if simkit.maybe("rare"):
        simkit.reachable("behind what is rare")

@simkit.test(seeds={seeds})
async def test_hits(world):
    simkit.reachable("here")

def test_plain():
    pass
"""


def test_points_that_no_seed_has_hit_are_told(pytester: pytest.Pytester) -> None:
    """With kind and place, for the test whose they are; of one that hits all its points nothing is said."""
    path = pytester.makepyfile(test_suite=SUITE.format(seeds=40))
    result = run(pytester, "-q")
    result.assert_outcomes(passed=3)
    text = result.stdout.str()
    assert "simkit: test_suite.py::test_tries: named points that none of 40 runs has hit:" in text
    assert f"  never true (sometimes, {path}:6)" in text
    assert "behind what is rare" not in text
    assert "test_hits:" not in text


def test_of_few_seeds_nothing_is_said(pytester: pytest.Pytester) -> None:
    """Nor of one seed that is looked at alone."""
    pytester.makepyfile(test_suite=SUITE.format(seeds=9))
    assert "has hit" not in run(pytester, "-q").stdout.str()
    pytester.makepyfile(test_suite=SUITE.format(seeds=40))
    assert "has hit" not in run(pytester, "-q", "--simkit-seed", "3").stdout.str()


def test_of_a_test_that_failed_nothing_is_said(pytester: pytest.Pytester) -> None:
    """Its seeds did not all run, and there is something else to look at."""
    pytester.makepyfile(
        test_suite="""
import simkit

@simkit.test(seeds=30)
async def test_fails(world):
    simkit.sometimes("never true", False)
    assert False
"""
    )
    result = run(pytester, "-q")
    assert result.ret == 1
    assert "has hit" not in result.stdout.str()


def test_processes_add_up(pytester: pytest.Pytester) -> None:
    """The seeds of one test, split over two workers, count together."""
    pytester.makepyfile(test_suite=SUITE.format(seeds=600))
    text = pytester.runpytest_subprocess("-q", "-n", "2").stdout.str()
    assert text.count("named points that none of 600 runs has hit:") == 1
    assert "never true (sometimes, " in text


def counted(coverage: Coverage, times: int) -> Coverage:
    total = Coverage()
    for _ in range(times):
        total = total.merge(coverage)
    return total


def test_counts_come_through_whole_and_many_are_cut() -> None:
    """Packed and unpacked they are the same; of many points twenty are shown."""
    counts = {f"point {number:02}": PointCount("sometimes", 3, 0, f"x.py:{number}") for number in range(25)}
    found = never.unpacked(never.packed([counts] * 12))
    assert found.runs == 12
    assert found.points["point 07"] == PointCount("sometimes", 36, 0, "x.py:7")
    assert found == counted(never.unpacked(never.packed([counts] * 6)), 2)
    told = never.lines({"test_x": found})
    assert len(told) == 22
    assert told[-1] == "  and 5 more"


def test_where_a_program_stood_that_never_yields(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its seed is inconclusive, with the bound and the line of the loop; other tests go on. It is not run again and again."""
    runs: list[float] = []
    watching = watchdog.watching

    def hasty(kernel: Any, events: Any, **bounds: Any) -> Any:
        runs.append(bounds["step_s"])
        return watching(kernel, events, **{**bounds, "step_s": 0.4})

    monkeypatch.setattr(watchdog, "watching", hasty)
    pytester.makepyfile(
        test_suite="""
import simkit
import trio

spun = []

@simkit.test(seeds=1)
async def test_spins(world):
    await trio.sleep(1)
    spun.append(world)
    while True:
        pass

def test_it_has_spun_once():
    assert len(spun) == 1

@simkit.test(seeds=3)
async def test_is_well(world):
    pass
"""
    )
    result = run(pytester, "-q")
    result.assert_outcomes(passed=2, failed=1)
    text = result.stdout.str()
    assert "inconclusive: the run met its bound on step-time" in text
    assert "in test_spins" in text
    assert len(runs) < 8

"""A campaign gives the same result over one process, several, or somebody else's; a seed that kills its process costs one."""

from __future__ import annotations

import functools
import os
import subprocess
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, cast

import pytest

import simkit
from conformance import pythons
from simkit import Limits, World, campaign, replay
from simkit.errors import SimkitError
from simkit.parallel import Crew, Lost
from tests.simkit import campaign_programs as programs

SEEDS = 40


def test_failures_points_and_curve_are_added_up(tmp_path: Path) -> None:
    """What a campaign says is what its runs show one by one."""
    found = campaign(programs.odd_seeds_differ, SEEDS, save=tmp_path)
    alone = [seed for seed in range(SEEDS) if campaign(programs.odd_seeds_differ, [seed]).failures]
    assert [failure.seed for failure in found.failures] == alone
    assert alone
    assert found.runs == SEEDS
    assert not found.passed
    assert {failure.path for failure in found.failures} == set(tmp_path.iterdir())
    assert all(failure.error == "AssertionError: a nap of 7" for failure in found.failures)
    assert found.points.points["long nap"].reached == SEEDS
    assert found.curve[-1].runs == SEEDS
    assert 1 < found.curve[-1].distinct <= 10
    case = found.failures[0].case
    assert replay(case, programs.odd_seeds_differ).digest == case.digest


def test_a_case_calls_a_program_without_a_name_by_what_it_is() -> None:
    """The same in every process: an address in it would make another case of it each time."""
    program = functools.partial(programs.main_notices)
    (failure,) = campaign(program, [0]).failures
    (finding,) = simkit.explore(program, stages=()).findings
    assert failure.case.target == finding.case.target == {"program": "functools:partial"}


def test_points_that_were_never_hit_are_told() -> None:
    """A condition that never held is in the text."""
    found = campaign(programs.odd_seeds_differ, [seed for seed in range(20) if not _naps_nine(seed)])
    assert "never hit: long nap" in str(found)


def _naps_nine(seed: int) -> bool:
    return bool(campaign(programs.odd_seeds_differ, [seed]).points.points["long nap"].held)


@pytest.mark.slow
def test_the_number_of_processes_does_not_show() -> None:
    """One process, three, and those of an executor give equal campaigns."""
    here = campaign(programs.odd_seeds_differ, SEEDS)
    nearby = programs.Nearby()
    assert campaign(programs.odd_seeds_differ, SEEDS, jobs=3) == here
    assert campaign(programs.odd_seeds_differ, SEEDS, executor=cast("Executor", nearby)) == here
    assert nearby.calls > 1


@pytest.mark.nightly
@pytest.mark.network
@pytest.mark.slow
def test_dask_distributed_is_an_executor() -> None:
    """The same campaign over the workers of a Dask cluster, here one of processes on this machine."""
    this = next(python for python in pythons.found() if python.is_this_one)
    python = pythons.environment(this, ("distributed",))
    repository = Path(__file__).parent.parent.parent
    done = subprocess.run(
        [str(python), "-m", "tests.simkit.campaign_on_dask", str(SEEDS)],
        cwd=repository,
        env={**os.environ, "PYTHONPATH": str(repository)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{campaign(programs.odd_seeds_differ, SEEDS)}\n"


def test_a_process_that_fails_is_a_failure_unless_it_may() -> None:
    """Main ends well, the process did not."""
    assert campaign(programs.process_fails, 2).failures[0].error == "OSError: broken"
    assert campaign(programs.process_fails, 2, processes_may_fail=True).passed


def test_a_failed_process_comes_before_what_main_makes_of_it() -> None:
    """It is the cause, and its case is reproduced by that; where processes may fail, main's error is all there is."""
    for program, may_fail, error in [
        (programs.process_fails, False, "OSError: broken"),
        (programs.main_notices, False, "OSError: broken"),
        (programs.main_notices, True, "AssertionError: the process ended badly"),
    ]:
        found = campaign(program, 1, processes_may_fail=may_fail).failures[0]
        assert found.error == error
        assert replay(found.case, program).answer == "reproduced"


def test_a_run_that_meets_a_bound_is_inconclusive() -> None:
    """Neither a pass nor a failure."""
    found = campaign(programs.runs_away, 4, limits=Limits(time_ns=10**15))
    assert [(one.seed, "bound on time" in one.why) for one in found.inconclusive] == [(2, True)]
    assert not found.passed
    assert not found.failures


def test_it_stops_after_so_many_failures() -> None:
    """No seed is run that is not asked for."""
    everything = campaign(programs.odd_seeds_differ, SEEDS)
    assert campaign(programs.odd_seeds_differ, SEEDS, stop_after=1).failures == everything.failures[:1]


@pytest.mark.slow
def test_a_seed_that_kills_its_process_is_inconclusive_and_the_others_go_on() -> None:
    """One seed ends its process, all others are judged."""
    found = campaign(programs.kills_its_process, 40, jobs=2)
    assert [(one.seed, one.stack) for one in found.inconclusive] == [(5, "")]
    assert found.runs == 39


@pytest.mark.slow
def test_a_seed_that_never_leaves_c_is_inconclusive_with_its_stack() -> None:
    """Even the interpreter's lock is held; the stack says where."""
    found = campaign(programs.never_leaves_c, 6, jobs=2, stall_s=1.0)
    assert [one.seed for one in found.inconclusive] == [3]
    assert "in never_leaves_c" in found.inconclusive[0].stack
    assert found.runs == 5


def test_a_program_that_cannot_be_sent_is_refused() -> None:
    """A function inside a function has no name that another process could import."""

    async def local(_world: World) -> None:
        pass

    with pytest.raises(SimkitError, match="program-not-importable"):
        campaign(local, 2, jobs=2)
    assert campaign(local, 2).passed


def test_no_seeds_are_no_campaign() -> None:
    """Zero evidence is never a pass."""
    with pytest.raises(ValueError, match="at least one seed"):
        simkit.campaign(programs.odd_seeds_differ, [])


@pytest.mark.slow
def test_a_crew_keeps_the_order_and_raises_what_is_raised() -> None:
    """Results come as the items did; an exception comes in its place."""
    with Crew(2) as crew:
        assert list(crew.map(programs.double, range(100), batch=7)) == [2 * number for number in range(100)]
    with Crew(2) as crew:
        results: Any = crew.map(programs.fails_at_three, range(10))
        with pytest.raises(ValueError, match="three"):
            list(results)


@pytest.mark.slow
def test_an_isolated_item_is_lost_alone() -> None:
    """A crew of one process loses it, not itself."""
    with Crew(1, isolated=True) as crew:
        one, lost, other = crew.map(_perhaps_kill, [1, 0, 2])
    assert (one, other) == (1, 2)
    assert isinstance(lost, Lost)
    assert lost.item == 0


def _perhaps_kill(number: int) -> int:
    import os

    if number == 0:
        os.kill(os.getpid(), 9)
    return number

"""The pulse of the kit's own machine: what it counts as lost, and where that stands in a history."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import attrs
import pytest
import trio

from conformance.processes import Processes
from conformance.targets import parse
from conformance.worlds.process import ProcessWorld
from conformance.worlds.pulse import Pulse, with_stalls
from scenarios.history import Closed, Quiet, Stalled
from simkit.errors import SimkitError
from tests.report_samples import history

MS = 1_000_000


def stand_still(ms: int) -> None:
    """Nobody in this process gets on meanwhile."""
    until_ns = time.monotonic_ns() + ms * MS
    while time.monotonic_ns() < until_ns:
        pass


def test_a_machine_that_stands_still_is_noticed() -> None:
    """By how much it was late, and when it went on; before and after it is not looked at."""

    async def main() -> Pulse:
        pulse = Pulse()
        stand_still(50)
        with pulse.beating():
            await trio.sleep(0.005)
            stand_still(200)
            await trio.sleep(0.005)
        stand_still(50)
        await trio.testing.wait_all_tasks_blocked()
        return pulse

    began_ns = time.monotonic_ns()
    pulse = trio.run(main)
    assert sum(one.ns for one in pulse.stalls) == pulse.lost_ns
    assert max(one.ns for one in pulse.stalls) >= 150 * MS
    longest = max(pulse.stalls, key=lambda one: one.ns)
    assert longest.at_ns - longest.ns >= began_ns + 50 * MS


def test_a_pulse_ends_with_its_block() -> None:
    """Also when that ends by an error, and nothing of it is left running."""

    async def main() -> int:
        pulse = Pulse()
        with pytest.raises(KeyError), pulse.beating():
            raise KeyError
        await trio.testing.wait_all_tasks_blocked()
        stand_still(100)
        await trio.sleep(0)
        return len(pulse.stalls)

    assert trio.run(main) == 0


def test_stalls_stand_where_they_ended() -> None:
    """After what came before them, before what came later; none after the end of the observation."""
    events = (Quiet(10), Quiet(20), Quiet(20), Closed(30, "settled"))
    given = attrs.evolve(history(), events=events)
    stalls = (Stalled(5, 4), Stalled(20, 9), Stalled(25, 1), Stalled(30, 2), Stalled(31, 1))
    assert with_stalls(given, stalls).events == (
        Stalled(5, 4),
        *events[:3],
        Stalled(20, 9),
        Stalled(25, 1),
        Stalled(30, 2),
        events[3],
    )
    assert with_stalls(given, ()) == given
    assert with_stalls(attrs.evolve(given, events=()), stalls).events == ()


def test_a_stall_is_counted_before_anybody_goes_by_the_time(tmp_path: Path) -> None:
    """Whoever wakes first after it, and once: what stood still is no time that a run has taken."""

    async def main() -> tuple[int, int, Pulse]:
        world = ProcessWorld(parse("naive"), sys.executable, tmp_path, Processes(), 1)
        with world.pulse.beating():
            await trio.sleep(0.02)
            before_ns = world.spent_ns()
            stand_still(300)
            spent_ns, lost_ns = world.spent_ns() - before_ns, world.pulse.lost_ns
            await trio.sleep(0.05)
        return spent_ns, lost_ns, world.pulse

    spent_ns, lost_ns, pulse = trio.run(main)
    assert spent_ns < 100 * MS
    assert 200 * MS < lost_ns == sum(one.ns for one in pulse.stalls if one.ns > 200 * MS)


@pytest.mark.parametrize("step_ms", [0, 1, 40, -40])
def test_a_wall_clock_that_is_set_makes_a_run_unjudged(step_ms: int) -> None:
    """One that is slewed a little does not."""
    began_ns = time.monotonic_ns()

    def wall_ns() -> int:
        now_ns = time.monotonic_ns()
        return now_ns + (step_ms * MS if now_ns - began_ns > 100 * MS else 0)

    async def main() -> Pulse:
        pulse = Pulse(wall_ns)
        with pulse.beating():
            while time.monotonic_ns() - began_ns < 200 * MS:  # noqa: ASYNC110 - it is the time that is waited for
                await trio.sleep(0.01)
        return pulse

    pulse = trio.run(main)
    if abs(step_ms) < 5:
        pulse.demand_steady()
        return
    with pytest.raises(SimkitError, match=rf"set by \{step_ms:+d} ms") as caught:
        pulse.demand_steady()
    assert caught.value.problem.code == "clock-stepped"


def test_a_clock_that_is_set_back_again_was_set() -> None:
    """It is told by how much at most, not by what is left of it in the end."""
    steps_ns = iter((0, 0, 5_000 * MS, 5_000 * MS, 0))
    pulse = Pulse(lambda: time.monotonic_ns() + next(steps_ns))
    for _ in range(5):
        pulse._compare()
    with pytest.raises(SimkitError, match=r"set by [+-](5000|4999) ms"):
        pulse.demand_steady()

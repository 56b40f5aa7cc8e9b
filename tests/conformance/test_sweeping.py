"""Sweeps: every place of a run crashed once, pairs and states under a budget; storms; and what a campaign says of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance import events as e
from conformance import simulate as simulation
from conformance import targets
from conformance.campaign import seeds, seedwork, sweeping
from conformance.campaign.happenings import Happenings
from conformance.campaign.judged import Judged
from conformance.order import Order
from conformance.simulate import Simulated, scenario_from_json, scenario_to_json, simulate
from conformance.store import Store
from scenarios.history import STORM, Died, Fired, Quiet
from scenarios.interruption import Interruption, Scenario, Site
from scenarios.plan import Call, Plan, Seq
from simkit.crashes import CrashPoint
from simkit.errors import SimkitError
from simkit.points import PointCount
from tests.conformance.seen_rig import events

REFERENCE = targets.parse("reference")
SMALL = Scenario("small", Plan(Seq("main", (Call("a", "ledger"),))))
UNITS = ("engine", "worker")


@pytest.fixture(scope="module")
def probe() -> Simulated:
    return simulate(REFERENCE, 0, scenario=SMALL)


# ---- places


def test_every_kind_of_place_is_found(probe: Simulated) -> None:
    """All storage boundaries of the engine, three barriers of one call, and every message that a unit got after the start."""
    sweep = sweeping.single(probe, UNITS)
    assert sweep.total["storage boundaries"] == probe.outcome.boundaries["engine"]
    labels = [crash.interruptions[0].label for crash in sweep.crashes if crash.kind == "service barriers"]
    assert labels == ["kill@a#1.received", "kill@a#1.applied", "kill@a#1.replied"]
    arrivals = {
        (event.detail.split()[3], event.now_ns)
        for event in probe.outcome.trace.events()
        if event.kind == "net" and event.detail.startswith("deliver") and " outside " not in event.detail[8:]
    }
    messages = [crash.interruptions[0] for crash in sweep.crashes if crash.kind == "messages"]
    assert len(messages) >= len(arrivals)
    assert {one.site.unit for one in messages} == set(UNITS)
    assert len({crash.interruptions for crash in sweep.crashes}) == len(sweep.crashes) == sum(sweep.total.values())


def test_what_may_not_be_killed_is_left_alone(probe: Simulated) -> None:
    """Only killable units are struck."""
    sweep = sweeping.single(probe, ["engine"])
    assert {crash.interruptions[0].site.unit for crash in sweep.crashes} == {"engine"}
    assert sweep.total["service barriers"] == 0


def test_too_many_are_thinned_out_evenly() -> None:
    """Both ends are tried, and the count says how many there were."""
    assert list(sweeping.thinned(range(100), 5)) == [0, 24, 49, 74, 99]
    assert list(sweeping.thinned(range(3), 5)) == [0, 1, 2]
    assert list(sweeping.thinned(range(3), 1)) == [0]
    assert list(sweeping.thinned(range(3), 0)) == []
    pairs = sweeping.pairs({CrashPoint("engine", 3): 40, CrashPoint("engine", 38): 40}, most=4)
    assert pairs.total == {"pairs": sweeping.RECOVERY_BOUNDARIES + 2}
    assert [tuple(one.site.nth for one in crash.interruptions) for crash in pairs.crashes][-1] == (38, 40)
    assert len(pairs.crashes) == 4


# ---- strikes


def test_the_second_of_a_pair_strikes_in_the_recovery(probe: Simulated) -> None:
    """The engine loses its power twice, and the run settles all the same."""
    number = probe.outcome.boundaries["engine"] - 3
    pair = [Interruption("power", Site("boundary", nth=nth, unit="engine")) for nth in (number, number + 2)]
    seen = simulate(REFERENCE, 0, scenario=SMALL, extra=tuple(pair))
    assert seen.observation.fired == tuple(one.label for one in pair)
    assert [death.cause for death in events(seen.observation, Died)] == ["power", "power"]


def test_power_is_lost_into_the_state_that_was_asked_for() -> None:
    """The states found in one run are struck in another; the case keeps them."""
    point = CrashPoint("engine", 20)
    found: dict[CrashPoint, list[str]] = {}
    simulate(REFERENCE, 0, scenario=SMALL, watch=sweeping.watching([point], found))  # type: ignore[arg-type]
    assert len(set(found[point])) > 1
    losses = sweeping.losses(found, most=100)
    assert losses.total == {"power losses": len(found[point])}
    for crash, code in zip(losses.crashes, found[point], strict=True):
        seen = simulate(REFERENCE, 0, scenario=SMALL, extra=crash.interruptions)
        told = [event.detail for event in seen.outcome.trace.events() if event.kind == "power-loss"]
        assert told == [f"engine {code}"]
        assert scenario_from_json(scenario_to_json(seen.scenario)) == seen.scenario


@pytest.mark.slow
def test_a_sweep_survives_every_place_and_tells_the_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The runtime keeps its promises at all of them; the counts add up, and a mutant does not survive."""
    for module in (seedwork, simulation):
        monkeypatch.setattr(module, "draw", lambda *_: SMALL)
    for mutant in (None, "no-key"):
        told: list[e.Event] = []
        seeds.run(
            Order("reference", mutant=mutant, swarm=False, sweep=10),
            [0],
            jobs=1,
            store=Store(tmp_path / str(mutant)),
            emit=told.append,
            stopping=lambda: False,
        )
        finished = [one for one in told if isinstance(one, e.RunFinished)]
        broken = [one for one in finished if one.outcome != "pass"]
        assert bool(broken) == (mutant is not None)
        if mutant is None:
            (swept,) = [one.text for one in told if isinstance(one, e.Noted) and one.text.startswith("swept: ")]
            assert "3 of 3 service barriers" in swept
            assert "10 of " in swept
            assert len(finished) == 1 + sum(int(part.split()[0]) for part in swept.removeprefix("swept: ").split(", "))
        else:
            line = next(one.replay_seed for one in told if isinstance(one, e.ViolationFound))
            assert line.endswith("--seeds 0 --sweep --sweep-budget 10 --no-swarm")


def test_real_processes_cannot_be_swept(tmp_path: Path) -> None:
    """That is said before anything is installed."""
    with pytest.raises(SimkitError, match="runs as real processes") as caught:
        seeds.run(
            Order("naive", sweep=10), [0], jobs=1, store=Store(tmp_path), emit=lambda _: None, stopping=lambda: False
        )
    assert caught.value.problem.code == "not-in-process-world"


# ---- storms


def test_a_storm_ends_before_liveness_counts() -> None:
    """Faults strike while it lasts and no longer; what is under test may die of them, and settles."""
    stormy = 0
    for seed in range(12):
        seen = simulate(REFERENCE, seed, scenario=SMALL, swarm=True)
        storms = [event for event in events(seen.observation, Fired) if event.label == STORM]
        entries = list(seen.outcome.trace.events())
        calm = [event.index for event in entries if event.kind == "calm"]
        stormy += bool(storms)
        assert bool(storms) == any(site[:2] == ("swarm", "storm") for site in seen.outcome.departures)
        if calm:
            assert [event for event in entries[calm[0] :] if event.kind == "slow-io"] == []
            (quiet,) = events(seen.observation, Quiet)
            assert quiet.at_ns >= entries[calm[0]].now_ns
    assert 0 < stormy < 12


def test_a_run_without_a_storm_is_the_plain_run() -> None:
    """Where none is drawn, the same things happen as without swarm."""
    for seed in range(12):
        seen = simulate(REFERENCE, seed, scenario=SMALL, swarm=True)
        if not any(event.label == STORM for event in events(seen.observation, Fired)):
            assert seen.outcome.digest == simulate(REFERENCE, seed, scenario=SMALL).outcome.digest
            return
    pytest.fail("every seed is stormy")


# ---- what is told of a campaign


def test_faults_and_points_are_added_up(tmp_path: Path) -> None:
    """Interruptions by what they do, faults by name, and the points that no run has hit, declared ones among them."""
    (tmp_path / "adapter.py").write_text(
        "from simkit import reachable, sometimes\nreachable('dark')\nsometimes('lit', 1)\n"
    )
    (tmp_path / "old.py").write_text("print 'no Python of today'\n")
    happenings = Happenings()
    point = PointCount("sometimes", 3, 1, "adapter.py:3")
    happenings.add(
        Judged("a", 0, {}, ("kill@a#1.applied", "kill@x+power@y"), faults={"network:stall": 2}, points={"lit": point})
    )
    happenings.add(Judged("b", 1, {}, ("drop@a",), faults={"network:stall": 1, "disk/engine:slow": 1}))
    assert happenings.told(tmp_path) == [
        "interruptions that struck: kill × 2, drop × 1",
        "faults that happened: network:stall × 3, disk/engine:slow × 1",
        f"named points never hit: dark ({tmp_path / 'adapter.py'}:2)",
    ]
    assert Happenings().told(tmp_path / "nowhere") == []

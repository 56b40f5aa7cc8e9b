"""What a world can do to a target is told beforehand, scenario by scenario, with the reason."""

from __future__ import annotations

import attrs
import pytest

from conformance import targets
from conformance.manifest import Limits, Manifest, Operations, Verb, Verbs
from conformance.possible import WorldName, demand, obstacle, possible, real_actions
from scenarios.interruption import Action, Interruption, Scenario, Site, fits
from scenarios.plan import Approve, Call, Plan, Seq
from simkit.errors import SimkitError
from tests.conformance.driver_rig import CHAIN

NAIVE = targets.parse("naive").manifest
APPLIED = Site("barrier", "a", 1, "applied")


def told(one: Interruption, world: WorldName = "simulated", manifest: Manifest = NAIVE) -> str:
    return obstacle(Scenario("test", CHAIN, (one,)), world, manifest)


def test_what_a_harness_cannot_interpret_is_left_out() -> None:
    """By kinds of operation; a plan without any other is possible."""
    plan = Plan(Seq("main", (Approve("ok", "a"), Call("a", "ledger"))))
    assert "approve" in obstacle(Scenario("test", plan), "process", NAIVE)
    able = attrs.evolve(NAIVE, operations=Operations(("seq", "call", "approve")))
    assert possible(Scenario("test", plan), "process", able)
    assert possible(Scenario("test", CHAIN), "process", NAIVE)


@pytest.mark.parametrize(
    ("action", "verb"), [("cancel", "cancel"), ("halt", "pause"), ("forge", "decide"), ("stale-decision", "decide")]
)
def test_a_verb_that_the_target_lacks_is_named(action: Action, verb: str) -> None:
    """With it there is no obstacle."""
    assert verb in told(Interruption(action, APPLIED))
    verbs: tuple[Verb, ...] = ("start", "status", "signal", "cancel", "pause", "unpause", "decide")
    assert told(Interruption(action, APPLIED), manifest=attrs.evolve(NAIVE, verbs=Verbs(verbs))) == ""


def test_the_verb_of_a_site_is_needed_too() -> None:
    """A repeated decision is none where nothing is decided; also as a second strike."""
    repeat = Interruption("repeat", Site("ack", verb="cancel"))
    assert "cancel" in told(repeat)
    assert "cancel" in told(Interruption("kill", APPLIED, then=repeat))


@pytest.mark.parametrize(
    ("one", "says"),
    [
        (Interruption("power", APPLIED), "simulated world"),
        (Interruption("jump", APPLIED, ns=1), "[units.worker] has no clock = true"),
        (Interruption("eio", Site("boundary")), "simulated world"),
        (Interruption("kill", Site("boundary")), "simulated world"),
    ],
)
def test_what_real_machines_do_not_allow(one: Interruption, says: str) -> None:
    """And a simulated one does."""
    assert says in told(one, "process")
    assert told(one) == ""


def test_clocks_are_set_of_units_that_follow_them() -> None:
    """The manifest says which; another unit of the same target keeps its own."""
    worker = NAIVE.units["worker"]
    units = {"engine": attrs.evolve(worker, control=False, clock=True), "worker": worker}
    able = attrs.evolve(NAIVE, units=units)
    jumps = [Interruption("jump", attrs.evolve(APPLIED, unit=unit), ns=1) for unit in units]
    assert [told(one, "process", able) == "" for one in jumps] == [True, False]
    assert [fits(one, units=tuple(units), real=real_actions(able)) for one in jumps] == [True, False]


@pytest.mark.parametrize("can_be_taken", [True, False])
def test_disks_are_filled_where_the_system_lets_limits_be_changed(
    can_be_taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it does not, the scenario is left out, and the reason is told."""
    monkeypatch.setattr("conformance.possible.CAN_BE_TAKEN", can_be_taken)
    full = Interruption("full", APPLIED, ns=1)
    assert fits(full, real=real_actions(NAIVE)) is can_be_taken
    assert ("on Linux only" in told(full, "process")) is not can_be_taken


@pytest.mark.parametrize(
    "action", ["flip", "wipe", "deploy", "forget", "crowd", "misuse", "unmatched", "notice", "expire"]
)
def test_what_both_worlds_can_do(action: Action) -> None:
    """Whatever needs no more than files, an environment and questions."""
    for world in ("process", "simulated"):
        assert told(Interruption(action, APPLIED), world) == ""  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("one", "says"),
    [
        (Interruption("cancel", Site("boundary")), "cancel"),
        (Interruption("halt", Site("boundary"), ns=1), "pause"),
        (Interruption("misuse", Site("boundary")), "only eio, kill, power can strike"),
        (Interruption("eio", APPLIED), "at a storage boundary"),
        (Interruption("kill", attrs.evolve(APPLIED, unit="engine")), "no [units.engine]"),
        (Interruption("second", APPLIED), "lease_ms is 0"),
        (Interruption("pause", APPLIED, ns=1), "lease_ms is 0"),
        (Interruption("leave", APPLIED), "[verbs] supported has no leave"),
    ],
)
def test_what_cannot_be_in_any_world(one: Interruption, says: str) -> None:
    """The reason begins with what is meant."""
    assert says in told(one)
    assert told(one).startswith(one.label)


def test_units_that_may_not_be_killed_and_stores_of_two() -> None:
    """Manifests say both."""
    safe = {**NAIVE.units, "engine": attrs.evolve(NAIVE.units["worker"], killable=False, control=False)}
    kept = attrs.evolve(NAIVE, units=safe, limits=Limits(lease_ms=300))
    assert "not killable" in told(Interruption("flip", attrs.evolve(APPLIED, unit="engine")), manifest=kept)
    assert told(Interruption("second", APPLIED), manifest=kept) == ""


def test_only_workers_that_say_so_are_asked_to_leave() -> None:
    """By [verbs]; an engine never is, and in both worlds it is the same."""
    able = attrs.evolve(NAIVE, verbs=Verbs((*NAIVE.verbs.supported, "leave")))
    engine = attrs.evolve(NAIVE.units["worker"], control=False)
    able = attrs.evolve(able, units={"engine": engine, **able.units})
    worker, server = (Interruption("leave", attrs.evolve(APPLIED, unit=unit)) for unit in ("worker", "engine"))
    for world in ("process", "simulated"):
        assert told(worker, world, able) == ""  # type: ignore[arg-type]
        assert "only the worker is asked" in told(server, world, able)  # type: ignore[arg-type]
    verbs, units = able.verbs.supported, tuple(able.units)
    assert [fits(one, verbs=verbs, units=units) for one in (worker, server)] == [True, False]
    assert not fits(worker, verbs=NAIVE.verbs.supported, units=units)


def test_what_cannot_be_carried_out_is_refused_before_it_is_tried() -> None:
    """By name, world and reason."""
    scenario = Scenario("chain/power@end", CHAIN, (Interruption("power", Site("end")),))
    demand(scenario, "simulated", NAIVE)
    with pytest.raises(SimkitError) as caught:
        demand(scenario, "process", NAIVE)
    problem = caught.value.problem
    assert (problem.code, problem.where) == ("scenario-impossible", "process world")
    assert "chain/power@end cannot be carried out on naive" in problem.what

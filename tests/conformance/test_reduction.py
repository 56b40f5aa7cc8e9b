"""Scenarios as departures: whatever is left out of one, what remains is a plan that can be run, and interruptions that fit."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.reduction import INTERRUPTION, OPERATION, departures_of, reduced, without_scenario
from scenarios import catalogue
from scenarios.interruption import Interruption, Scenario, Site
from scenarios.plan import Approve, Branch, Call, Compensate, Loop, Plan, Seq
from scenarios.strategies import plans
from simkit import Tape, World, run

TOUR = Scenario(
    "tour",
    catalogue.STORIES["tour"].plan,
    (
        Interruption(
            "kill", Site("barrier", "reserve", 1, "applied"), then=Interruption("kill", Site("ack", verb="start"))
        ),
        Interruption("power", Site("boundary", nth=7, unit="engine"), state="7:1"),
        Interruption("power", Site("boundary", nth=7, unit="engine"), state="7:1"),
    ),
)


def kept(scenario: Scenario, departures: dict[tuple[str, str, int], int]) -> Scenario:
    async def main(world: World) -> Scenario:
        return reduced(scenario, world)

    return run(main, tape=Tape.from_departures(departures)).unwrap()


def test_all_departures_keep_all() -> None:
    """Two interruptions of one label are two choices."""
    departures = departures_of(TOUR)
    assert kept(TOUR, departures) == TOUR
    assert len(departures) == len(TOUR.plan.leaves()) + 4
    assert without_scenario({**departures, ("network", "x", 0): 3, ("scenario", "y", 0): 1}) == {("network", "x", 0): 3}


def test_nothing_kept_is_one_call() -> None:
    """There is no run without any work; the first call is left, alone and carrying nothing."""
    left = kept(TOUR, {})
    assert [leaf.id for leaf in left.plan.leaves()] == ["reserve"]
    assert left.interruptions == ()


@settings(deadline=None)
@given(st.data())
def test_any_part_is_a_scenario(data: st.DataObject) -> None:
    """The plan checks itself; carried answers, signals and places to strike are of operations that are still there."""
    whole = departures_of(TOUR)
    sites = data.draw(st.sets(st.sampled_from(sorted(whole))))
    left = kept(TOUR, {site: whole[site] for site in sites})
    names = {leaf.id for leaf in left.plan.leaves()}
    assert names == {key for label, key, _ in sites if label == OPERATION} or names == {"reserve"}
    for call in left.plan.calls():
        assert set(call.carries) <= names
        original = TOUR.plan.leaf(call.id)
        assert isinstance(original, Call)
        assert call.carries == tuple(name for name in original.carries if name in names)
    links = [link for one in left.interruptions for link in one.chain()]
    assert all(link.site.op in {None, *names} for link in links)
    assert len(links) <= sum(label == INTERRUPTION for label, _, _ in sites)


def test_a_link_outlives_the_one_before_it() -> None:
    """What was to follow then strikes by itself."""
    departures = departures_of(TOUR)
    del departures[INTERRUPTION, "kill@reserve#1.applied", 0]
    assert kept(TOUR, departures).interruptions[0] == Interruption("kill", Site("ack", verb="start"))


@pytest.mark.parametrize("story", catalogue.STORIES)
def test_every_story_is_kept_whole(story: str) -> None:
    """With each of its interruptions."""
    for scenario in list(catalogue.scenarios_of(story, workers=True, units=("engine", "worker"), thorough=True))[::7]:
        assert kept(scenario, departures_of(scenario)) == scenario


@settings(deadline=None)
@given(plans(), st.data())
def test_any_part_of_any_plan_is_a_plan(plan: Plan, data: st.DataObject) -> None:
    """Of its own operations only, whatever goes with what; all of it is the plan itself, limits and all."""
    scenario = Scenario("drawn", plan)
    whole = departures_of(scenario)
    assert kept(scenario, whole) == scenario
    sites = data.draw(st.sets(st.sampled_from(sorted(whole))))
    left = kept(scenario, {site: whole[site] for site in sites}).plan
    assert set(departures_of(Scenario("left", left))) <= set(whole)
    assert (left.allowance, left.deadline_ns) == (plan.allowance, plan.deadline_ns)


def test_what_is_of_no_use_without_another_goes_with_it() -> None:
    """An approval without its payment, a branch without its question; a loop that nothing repeats is gone through once."""
    plan = Plan(
        Seq(
            "main",
            (
                Call("a", "ledger"),
                Approve("ok", "pay"),
                Call("pay", "ledger", {}, ("a", "ok")),
                Branch("b", "a", (Call("l", "ledger"), Call("r", "ledger"))),
                Loop("again", (Call("x", "ledger"), Call("y", "reader", {}, ("x",))), "y", 2),
                Call("z", "ledger", {}, ("x@1", "y@1")),
                Compensate("u", "pay", "ledger"),
            ),
        )
    )
    scenario = Scenario("s", plan, (Interruption("steer", Site("waiting", "ok"), target="pay"),))
    whole = departures_of(scenario)

    def without(*names: str) -> Scenario:
        return kept(scenario, {site: value for site, value in whole.items() if site[1] not in names})

    assert [leaf.id for leaf in without("pay").plan.leaves()] == [
        "a",
        "b",
        "l",
        "r",
        "x@1",
        "y@1",
        "again@2",
        "x@2",
        "y@2",
        "z",
    ]
    assert without("pay").interruptions == ()
    assert {"b", "l", "r"}.isdisjoint(leaf.id for leaf in without("a").plan.leaves())
    assert [leaf.id for leaf in without("l").plan.leaves()][3:6] == ["b", "r", "x@1"]
    once = without("y").plan
    assert once.leaf("x") is not None
    assert once.leaf("again@2") is None
    assert [call.carries for call in once.calls() if call.id == "z"] == [()]

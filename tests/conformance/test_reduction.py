"""Scenarios as departures: whatever is left out of one, what remains is a plan that can be run, and interruptions that fit."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.reduction import DETAIL, GROUP, INTERRUPTION, OPERATION, departures_of, reduced, without_scenario
from scenarios import catalogue
from scenarios.interruption import Interruption, Scenario, Site
from scenarios.plan import Call
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
    labels = [label for label, _, _ in departures]
    assert labels.count(OPERATION) == len(TOUR.plan.leaves())
    assert labels.count(INTERRUPTION) == 4
    assert {key for label, key, _ in departures if label == GROUP} == {"pay"}
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
        carried = tuple(name for name in original.carries if name in names)
        assert call.carries == (carried if (DETAIL, f"{call.id}.carries", 0) in sites else ())
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

"""The named scenarios: unique stable names, every call hit at every barrier, tiers that fit what an adapter supports."""

from __future__ import annotations

import pytest

from scenarios.catalogue import BARRIERS, STORIES, TIERS, by_name, interruptions_of, scenarios_of, tier
from scenarios.generate import ALL_OPERATIONS


def test_names_are_unique_and_lead_back_to_their_scenario() -> None:
    """A replay line quotes the name alone."""
    names = [scenario.name for story in STORIES for scenario in scenarios_of(story, workers=True)]
    assert len(names) == len(set(names))
    assert all((found := by_name(name)) is not None and found.name == name for name in names)


@pytest.mark.parametrize("story", STORIES)
def test_every_call_is_killed_at_every_barrier(story: str) -> None:
    """The enumeration leaves no barrier of no call out."""
    plan = STORIES[story].plan
    kills = {
        (one.site.op, one.site.barrier)
        for one in interruptions_of(plan)
        if one.action == "kill" and one.site.where == "barrier" and one.then is None
    }
    assert kills == {(call.id, barrier) for call in plan.calls() for barrier in BARRIERS}


def test_tiers_grow_and_fall_back_to_what_is_supported() -> None:
    """A larger tier never does less; a plan with an unsupported operation falls away."""
    names = [{scenario.name for scenario in tier(which, ALL_OPERATIONS)} for which in TIERS]
    assert names[0] < names[1] <= names[2]
    sequential = tier("core", {"seq", "call"})
    assert sequential
    assert all(scenario.plan.kinds() <= {"seq", "call"} for scenario in sequential)


def test_an_unknown_name_leads_nowhere() -> None:
    """Neither an unknown story nor an unknown interruption is made up."""
    assert by_name("nowhere/undisturbed") is None
    assert by_name("tour/kill@nothing") is None

"""The named scenarios: unique stable names, every call hit at every barrier, tiers that fit what an adapter supports."""

from __future__ import annotations

import random

import pytest

from scenarios.catalogue import (
    BARRIERS,
    STORIES,
    TIERS,
    by_name,
    drawn,
    interruptions_of,
    passed,
    scenarios_of,
    sure,
    tier,
)
from scenarios.generate import ALL_OPERATIONS
from scenarios.plan import Call


def test_names_are_unique_and_lead_back_to_their_scenario() -> None:
    """A replay line quotes the name alone."""
    names = [scenario.name for story in STORIES for scenario in scenarios_of(story, workers=True)]
    assert len(names) == len(set(names))
    assert all((found := by_name(name)) is not None and found.name == name for name in names)


@pytest.mark.parametrize("story", STORIES)
def test_every_call_is_killed_at_every_barrier(story: str) -> None:
    """The enumeration leaves no barrier of no call out, but those its script keeps a request from."""
    plan = STORIES[story].plan
    kills = {
        (one.site.op, one.site.barrier)
        for one in interruptions_of(plan)
        if one.action == "kill" and one.site.where == "barrier" and one.then is None
    }
    never = {("confirm", "replied")}  # its first request is reset
    assert kills == {(call.id, barrier) for call in sure(plan) for barrier in BARRIERS} - never


def test_tiers_grow_and_fall_back_to_what_is_supported() -> None:
    """A larger tier never does less; a plan with an unsupported operation falls away."""
    names = [{scenario.name for scenario in tier(which, ALL_OPERATIONS)} for which in TIERS]
    assert names[0] < names[1] < names[2]
    sequential = tier("core", {"seq", "call"})
    assert sequential
    assert all(scenario.plan.needs() <= {"seq", "call"} for scenario in sequential)


def test_an_unknown_name_leads_nowhere() -> None:
    """Neither an unknown story nor an unknown interruption is made up."""
    assert by_name("nowhere/undisturbed") is None
    assert by_name("tour/kill@nothing") is None
    assert by_name("tour/power@nothing") is None


def test_the_power_may_be_cut_wherever_a_unit_is_killed() -> None:
    """By the same name, but for the action; a second crash in recovery stays a kill."""
    killed, cut = by_name("tour/kill@ship#1.applied(engine)"), by_name("tour/power@ship#1.applied(engine)")
    assert killed is not None
    assert cut is not None
    assert (cut.name, cut.plan) == ("tour/power@ship#1.applied(engine)", killed.plan)
    assert [one.label for one in cut.interruptions] == ["power@ship#1.applied(engine)"]


def test_the_full_tier_crashes_every_recovery() -> None:
    """Every kill at a barrier is followed by a second one, of the worker and of every other unit; each is found by its name."""
    extra = {one.name for one in tier("full", ALL_OPERATIONS, units=("engine", "worker"))}
    extra -= {one.name for one in tier("core", ALL_OPERATIONS, units=("engine", "worker"))}
    assert len(extra) == 3 * sum(len(sure(story.plan)) for story in STORIES.values() if story.generic) - 1
    assert "chain/kill@buy#1.received+kill@*#1.applied" in extra
    assert "chain/kill@buy#1.replied+kill@*#1.applied" in extra
    assert "chain/kill@buy#1.applied(engine)+kill@*#1.applied(engine)" in extra
    assert all((found := by_name(name)) is not None and found.name == name for name in extra)


@pytest.mark.parametrize("supported", [ALL_OPERATIONS, frozenset({"seq", "call"})])
def test_a_drawn_scenario_pauses_no_worker_that_is_alone(supported: frozenset[str]) -> None:
    """Where two workers may not share a store, none is stopped and replaced; else some are."""

    def actions(*, workers: bool) -> set[str]:
        found: set[str] = set()
        for seed in range(300):
            choose = random.Random(seed)
            scenario = drawn(
                lambda _label, n, choose=choose: choose.randrange(n),  # type: ignore[misc]
                supported,
                seed,
                units=("worker",),
                simulated=False,
                workers=workers,
            )
            found |= {one.action for one in scenario.interruptions}
        return found

    assert actions(workers=True) - actions(workers=False) == {"pause"}


@pytest.mark.parametrize(
    ("script", "barriers"),
    [
        ((), BARRIERS),
        (("error-after",), BARRIERS),
        (("reset-after", "error-before"), ("received", "applied")),
        (("reset-before",), ("received",)),
        (("error-before",), ("received", "replied")),
        (("reject",), ("received", "replied")),
    ],
)
def test_a_script_keeps_a_request_from_barriers(script: tuple[str, ...], barriers: tuple[str, ...]) -> None:
    """Only the first entry is of the first request."""
    assert passed(Call("a", "flaky", {}, (), script)) == barriers

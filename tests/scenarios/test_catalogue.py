"""The named scenarios: unique stable names, every call hit at every barrier, tiers that fit what an adapter supports."""

from __future__ import annotations

import random

import attrs
import pytest

from scenarios.catalogue import (
    BARRIERS,
    STORIES,
    TIERS,
    by_name,
    drawn,
    interruptions_for,
    interruptions_of,
    passed,
    scenarios_of,
    sure,
    tier,
)
from scenarios.generate import ALL_OPERATIONS, BASIC_OPERATIONS
from scenarios.interruption import BASIC_VERBS, SHARING_ACTIONS
from scenarios.obligations import OBLIGATIONS
from scenarios.plan import Branch, Call
from tests.scenarios.build import plan


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
    assert kills == {(call.id, barrier) for call in sure(plan) for barrier in passed(call)}


def test_tiers_grow_and_fall_back_to_what_is_supported() -> None:
    """A larger tier never does less; a plan with an unsupported operation falls away."""
    names = [{scenario.name for scenario in tier(which, ALL_OPERATIONS)} for which in TIERS]
    assert names[0] < names[1] < names[2]
    sequential = tier("core", {"seq", "call"})
    assert sequential
    assert all(scenario.plan.needs() <= {"seq", "call"} for scenario in sequential)


@pytest.mark.parametrize(
    "supported", [frozenset({"seq", "call"}), ALL_OPERATIONS], ids=["calls in a row", "everything"]
)
def test_the_smallest_tier_kills_where_something_has_just_been_promised(supported: frozenset[str]) -> None:
    """After the acknowledged start, and as often as is asked for after a result that was shown: who shows none before the end
    of its run can take one back only then.
    """
    labels = [one.label for scenario in tier("smoke", supported) for one in scenario.interruptions]
    assert "kill@ack:start" in labels
    assert labels.count("kill@end") >= OBLIGATIONS["DUR-2"].minimum


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
    calls = [call for story in STORIES.values() if story.generic for call in sure(story.plan)]
    # Of the worker at every barrier, but for the one that tier core has already; of the engine once an effect was made.
    assert len(extra) == sum(len(passed(call)) for call in calls)
    assert "chain/kill@buy#1.received+kill@*#1.applied" in extra
    assert "chain/kill@buy#1.replied+kill@*#1.applied" in extra
    assert "chain/kill@buy#1.applied(engine)+kill@*#1.applied(engine)" in extra
    assert all((found := by_name(name)) is not None and found.name == name for name in extra)


@pytest.mark.parametrize("supported", [ALL_OPERATIONS, frozenset({"seq", "call"})])
def test_a_drawn_scenario_pauses_no_worker_that_is_alone(supported: frozenset[str]) -> None:
    """Where two workers may not share a store, none is stopped and replaced, nor gets a second one; else some are."""

    def actions(*, workers: bool) -> set[str]:
        found: set[str] = set()
        for seed in range(600):
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

    assert actions(workers=True) >= SHARING_ACTIONS
    assert not actions(workers=False) & SHARING_ACTIONS


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


VERBS = (*BASIC_VERBS, "decide", "cancel", "pause", "unpause")


def test_the_extras_of_a_story_are_run_where_they_can_be() -> None:
    """They are in tier core, found by their names, and left out where the target cannot be asked."""
    names = {one.name for one in tier("core", ALL_OPERATIONS, verbs=VERBS)}
    extras = {f"gate/{one.label}" for one in STORIES["gate"].extras}
    assert "gate/stale-decision@waiting:consent>pay" in extras
    assert extras <= names
    assert all((found := by_name(name)) is not None and found.name == name for name in extras)
    undecided = extras & {one.name for one in tier("core", ALL_OPERATIONS)}
    assert undecided == {"gate/kill@consent#1.received", "gate/steer@consent#1.received>pay"}  # a kill and a signal
    assert not any(
        name.startswith("gate/") for name in (one.name for one in tier("core", BASIC_OPERATIONS, verbs=VERBS))
    )


def test_a_story_that_is_not_generic_stays_small() -> None:
    """It is run undisturbed, with its extras, and with worker and engine killed after the first effect."""
    small = attrs.evolve(STORIES["gate"], generic=False)
    names = [
        one.label for one in interruptions_for(small, workers=True, units=("engine", "store", "worker"), thorough=True)
    ]
    assert names == ["kill@reserve#1.applied", "kill@reserve#1.applied(engine)"]


def test_a_plan_that_may_leave_a_call_out_is_not_killed_there() -> None:
    """What no decision leaves out, and nothing keeps from being sent, is struck; compensations where the plan fails."""
    written = plan(
        "a ledger",
        Branch("b", "a", (Call("l", "ledger"), Call("r", "ledger"))),
        Call("refused", "ledger", {}, (), ("reject",), tolerate=True),
        "u undo a",
        "x fail enough",
        "never ledger",
    )
    assert [call.id for call in sure(written)] == ["a", "u"]
    sites = {
        one.site.op for one in interruptions_of(written, workers=True, thorough=True) if one.site.where == "barrier"
    }
    assert sites - {None} == {"a", "u"}


@pytest.mark.parametrize("units", [("worker",), ("engine", "worker")])
def test_storage_fails_where_the_store_is_kept(units: tuple[str, ...]) -> None:
    """Of a target of one process that is the worker; full, failing and rotten disks are drawn for it like for any other."""
    found: dict[str, set[str]] = {}
    for seed in range(2500):
        choose = random.Random(seed)
        scenario = drawn(
            lambda _label, n, choose=choose: choose.randrange(n),  # type: ignore[misc]
            ALL_OPERATIONS,
            seed,
            units=units,
            simulated=True,
            verbs=VERBS,
        )
        if scenario.plan == STORIES["vault"].plan:
            for link in scenario.interruptions[0].chain():
                found.setdefault(link.action, set()).add(link.site.unit)
    assert [found[action] for action in ("full", "eio", "flip")] == [{units[0]}] * 3
    assert STORIES["vault"].extras_for(("worker",), simulated=False) == STORIES["vault"].extras


def test_most_of_the_drawn_scenarios_are_extras_of_stories() -> None:
    """Each story that has some is as likely as another."""
    stories = 0
    for seed in range(300):
        choose = random.Random(seed)
        scenario = drawn(
            lambda _label, n, choose=choose: choose.randrange(n),  # type: ignore[misc]
            ALL_OPERATIONS,
            seed,
            units=("engine", "worker"),
            simulated=True,
            verbs=VERBS,
        )
        own = [
            story
            for story in STORIES.values()
            if story.plan == scenario.plan and scenario.interruptions[0] in story.extras
        ]
        stories += bool(own)
    assert 150 < stories < 210


@pytest.mark.parametrize("unit", ["worker", "engine"])
def test_a_signal_that_came_early_has_to_outlive_a_death_before_its_wait(unit: str) -> None:
    """Else a mailbox in memory would pass: what is early is struck while nothing can have taken it yet, on every unit."""
    scenario = by_name(f"tour/early@ack:start:release+kill@reserve#1.applied{'' if unit == 'worker' else '(engine)'}")
    assert scenario is not None
    kill = scenario.interruptions[0].then
    assert kill is not None
    assert (kill.action, kill.site.unit) == ("kill", unit)
    assert kill.site.op in scenario.plan.certain()["release"]

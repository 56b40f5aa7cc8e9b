"""A harness that does nothing: whatever it answers, nothing that it was put through counts as put to the test."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance import targets
from conformance.campaign.docket import Docket
from conformance.campaign.judged import Judged
from conformance.failure import Origin
from conformance.possible import possible
from conformance.simulate import simulate
from conformance.store import Store
from scenarios import catalogue
from scenarios.ability import shortfall
from scenarios.history import History, Received
from scenarios.obligations import OBLIGATIONS
from scenarios.rules import judge_all
from scenarios.verdict import Finding, Verdict
from tests.conformance.idle_rig import SHOWN, watch_idle

#: One for each thing that strikes a run without a call of it: commands, starts and signals asked again, deaths, storage.
STRUCK = (
    *(
        "tour/undisturbed",
        "tour/kill@ack:start",
        "tour/kill@end",
        "tour/lose-ack@ack:start",
        "tour/early@ack:start:release",
    ),
    *("tour/repeat@ack:signal:release", "survey/kill@ack:start", "crowded/crowd@ack:start=8", "replace/undisturbed"),
    *("handover/cancel@end", "archive/unmatched@ack:start", "hold/halt@ack:start", "household/cancel@ack:start"),
    *("vault/full@ack:start(engine)", "doorbell/late-signal@end+kill@end(engine)", "unwind/undisturbed"),
)
#: What the judges of these see in such runs, taken by themselves: else nothing would be shown here.
SEEN = frozenset(
    {
        *("DUR-1", "DUR-3", "DUR-7", "DUR-11", "DUR-12", "STA-1", "STA-2", "STA-3", "STA-5", "CMP-4", "SCH-4", "SCH-5"),
        *("SCH-7", "SCH-10", "SIG-3", "CAN-1", "CAN-3", "CAN-5", "ART-5", "DLN-3"),
    }
)


def idle(name: str, shown: str) -> History:
    scenario = catalogue.by_name(name)
    assert scenario is not None, name
    history = watch_idle(scenario, SHOWN[shown]).history
    assert not any(isinstance(event, Received) for event in history.events)
    return history


@pytest.mark.slow
@pytest.mark.parametrize("shown", SHOWN)
def test_what_does_nothing_is_not_put_to_the_test(shown: str) -> None:
    """Started twice, killed, cancelled, whatever it shows: of no obligation is that a test. There are no exceptions."""
    for name in STRUCK:
        found = judge_all(idle(name, shown))
        assert {id_: one.exercised for id_, one in found.items() if one.exercised} == {}, name


@pytest.mark.slow
def test_the_judges_alone_would_count_it() -> None:
    """Each of them sees what it looks for; only that nobody was called makes it nothing."""
    found: set[str] = set()
    for name in STRUCK:
        for shown in SHOWN:
            history = idle(name, shown)
            found |= {id_ for id_, one in OBLIGATIONS.items() if one.judge(history).exercised}
    assert found >= SEEN, SEEN - found


@pytest.mark.parametrize("shown", [one for one in SHOWN if one not in {"running", "waiting"}])
@pytest.mark.parametrize("story", ["tour", "chain", "twice", "receivers"])
def test_what_does_no_plan_undisturbed_falls_short(story: str, shown: str) -> None:
    """Of the plans that every certificate begins with: whatever end it shows, nothing in the plan leads there."""
    assert shortfall(idle(f"{story}/undisturbed", shown)).startswith(("ended ", "was shown done, and "))


@pytest.mark.parametrize("name", ["chain/undisturbed", "twice/undisturbed"])
def test_undisturbed_runs_that_fall_short_make_nothing_pass(name: str, tmp_path: Path) -> None:
    """However often a promise seems to be kept: who cannot do its plans is not certified by disturbing it."""

    def judged_with(history: History) -> Verdict:
        docket = Docket(
            targets.parse("reference"), Origin("reference", "process", name), Store(tmp_path), lambda _event: None
        )
        docket.add(Judged(name, None, {"DUR-1": Finding(9)}, history=history))
        return docket.verdicts()["DUR-1"]

    doubted, passed = judged_with(idle(name, "failed")), judged_with(well(name))
    assert (doubted.outcome, passed.outcome) == ("inconclusive", "pass")
    assert doubted.reason == (
        f"undisturbed, {name} ended failed (no: no), and nothing has led to that: what it does otherwise proves nothing"
    )


def well(name: str) -> History:
    """A run of the reference runtime."""
    return simulate(targets.parse("reference"), 0, scenario=catalogue.by_name(name)).observation.history


@pytest.mark.slow
@pytest.mark.parametrize("story", catalogue.STORIES)
def test_a_correct_runtime_never_falls_short(story: str) -> None:
    """Of plans that end in a refusal, in want of means or of time, too."""
    scenario = catalogue.by_name(f"{story}/undisturbed")
    assert scenario is not None
    if possible(scenario, "simulated", targets.parse("reference").manifest):
        assert shortfall(well(scenario.name)) == ""


@pytest.mark.parametrize("id_", ["OWN-1", "DUR-5", "SCH-3"])
def test_a_repeated_start_proves_nothing_of_a_run_without_answers(id_: str) -> None:
    """Nothing was there yet that could have been accepted, or done, twice."""
    assert OBLIGATIONS[id_].judge(idle("tour/lose-ack@ack:start", "failed")).exercised == 0

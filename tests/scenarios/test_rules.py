"""The verdict rules, profiles and requirement sets."""

from __future__ import annotations

import itertools
import typing

import attrs
import pytest

from scenarios.obligations import OBLIGATIONS
from scenarios.requirements import CURRENT, DRAFTS, REQUIREMENT_SETS, demanded
from scenarios.rules import SEVERITY, Tally, decide, grant, grants, judge_all, merge, tally
from scenarios.verdict import Finding, Outcome, Verdict, Violation
from tests.scenarios.build import Story, plan

DUR_1 = OBLIGATIONS["DUR-1"]
DUR_6 = OBLIGATIONS["DUR-6"]
WITNESS = Violation("amnesia", "Gone.", (1,))


def test_a_claim_kept_often_enough_passes() -> None:
    """Exercised as often as demanded, never broken, proven by its mutants: pass."""
    verdict = decide(DUR_1, Tally(exercised=3), claimed=True)
    assert verdict == Verdict("DUR-1", "pass", 3, 3, "exercised 3 times", "held")


def test_zero_evidence_is_never_a_pass() -> None:
    """What was not put to the test often enough is inconclusive, and says what it needs."""
    verdict = decide(DUR_1, Tally(exercised=2), claimed=True)
    assert verdict.outcome == "inconclusive"
    assert "exercised 2 times of at least 3" in verdict.reason
    assert DUR_1.tested_by in verdict.reason
    assert decide(DUR_1, Tally(), claimed=True, minimum=0).outcome == "pass"


@pytest.mark.parametrize(
    ("seen", "observed"),
    [(Tally(), "nothing"), (Tally(exercised=9), "held"), (Tally(9, 1, ("amnesia",)), "violated")],
)
def test_what_is_not_claimed_is_shown_as_observed(seen: Tally, observed: str) -> None:
    """Nobody fails for what they never claimed, and everybody sees what they do."""
    verdict = decide(DUR_1, seen, claimed=False, error="garbage", uncaught=("m",))
    assert (verdict.outcome, verdict.observed) == ("not-claimed", observed)


def test_a_broken_protocol_is_an_error_and_not_the_harness_fault() -> None:
    """An error of kit or adapter comes before anything it may have made a judge say."""
    verdict = decide(DUR_1, Tally(9, 1, ("amnesia",)), claimed=True, error="adapter printed garbage")
    assert (verdict.outcome, verdict.reason) == ("error", "adapter printed garbage")


def test_one_witness_fails_whatever_the_count() -> None:
    """A safety witness needs no minimum and no mutants to be believed."""
    verdict = decide(DUR_1, Tally(1, 2, ("amnesia",), slow=True), claimed=True, uncaught=("m",))
    assert (verdict.outcome, verdict.reason, verdict.anomalies) == ("fail", "amnesia (2 times)", ("amnesia",))


def test_slow_is_inconclusive() -> None:
    """Liveness that needed four bounds is neither kept nor broken."""
    verdict = decide(DUR_6, Tally(exercised=9, slow=True), claimed=True)
    assert (verdict.outcome, verdict.reason) == ("inconclusive", "slow: kept only within four times the bound")


def test_an_unproven_judge_certifies_nothing() -> None:
    """A judge that lets one of its mutants live cannot grant a pass, and names it."""
    verdict = decide(DUR_1, Tally(exercised=9), claimed=True, uncaught=("ack-before-commit",))
    assert (verdict.outcome, verdict.reason) == (
        "inconclusive",
        "unproven check: ack-before-commit not caught by this build",
    )


def test_what_nothing_puts_to_the_test_is_not_covered() -> None:
    """Neither a pass nor an excuse: a witness fails all the same, an error is one, and who claims nothing owes nothing."""
    verdict = decide(DUR_1, Tally(), claimed=True, uncovered="nobody can do it", uncaught=("m",))
    assert (verdict.outcome, verdict.reason) == ("not-covered", "nobody can do it")
    assert decide(DUR_1, Tally(0, 1, ("amnesia",)), claimed=True, uncovered="why").outcome == "fail"
    assert decide(DUR_1, Tally(), claimed=True, uncovered="why", error="garbage").outcome == "error"
    assert decide(DUR_1, Tally(), claimed=False, uncovered="why").outcome == "not-claimed"
    assert decide(DUR_1, Tally(2), claimed=True, uncovered="why").outcome == "inconclusive"
    assert decide(DUR_1, Tally(3), claimed=True, uncovered="why").outcome == "pass"


def test_findings_add_up() -> None:
    """Counts are summed, anomalies are named once each in order of appearance, slow sticks; what breaks a promise counts as a
    test of it.
    """
    other = attrs.evolve(WITNESS, anomaly="torn view")
    total = tally([Finding(2), Finding(1, (WITNESS, other)), Finding(0, (WITNESS,), slow=True), Finding(4)])
    assert total == Tally(8, 3, ("amnesia", "torn view"), slow=True)
    assert tally([]) == Tally()


def test_the_worst_outcome_wins() -> None:
    """error > fail > inconclusive > pass > not-covered > not-claimed, in any order; nothing at all is not-claimed."""
    assert typing.get_args(Outcome) == SEVERITY
    for worse, better in itertools.combinations(SEVERITY, 2):
        assert merge([better, worse, better]) == merge([worse, better]) == worse
    assert merge([]) == "not-claimed"


def all_passed() -> dict[str, Verdict]:
    return {id_: Verdict(id_, "pass", 9, 1) for id_ in OBLIGATIONS}


def test_a_profile_is_granted_whole() -> None:
    """With every obligation passed, every profile of the set is granted."""
    assert [(one.profile, one.granted, one.missing) for one in grants(all_passed())] == [
        ("Durable", True, ()),
        ("Ownership", True, ()),
        ("Effects", True, ()),
        ("Control", True, ()),
        ("Budget", True, ()),
        ("Artifacts", True, ()),
        ("Evolution", True, ()),
    ]
    assert [one.profile for one in grants(all_passed(), demanded("2026.1"))] == [
        "Durable",
        "Ownership",
        "Effects",
        "Control",
    ]


@pytest.mark.parametrize("outcome", [one for one in SEVERITY if one not in {"pass", "not-covered"}])
def test_or_not_at_all(outcome: Outcome) -> None:
    """One obligation that did not pass, for whatever reason, takes its profile away and no other."""
    verdicts = all_passed() | {"EFF-2": Verdict("EFF-2", outcome, 9, 1)}
    assert [one.profile for one in grants(verdicts) if not one.granted] == ["Effects"]
    assert grant("Effects", verdicts).missing == ("EFF-2",)


def test_a_profile_is_granted_as_far_as_the_world_covers_it() -> None:
    """What nothing there puts to the test is named and takes no profile away, but is no ground to grant one either."""
    beyond = Verdict("OWN-6", "not-covered", 0, 1)
    found = grant("Ownership", all_passed() | {"OWN-6": beyond})
    assert (found.granted, found.missing, found.uncovered) == (True, (), ("OWN-6",))
    broken = grant("Ownership", all_passed() | {"OWN-6": beyond, "OWN-1": Verdict("OWN-1", "fail", 9, 1)})
    assert (broken.granted, broken.missing, broken.uncovered) == (False, ("OWN-1",), ("OWN-6",))
    assert not grant("Durable", {id_: Verdict(id_, "not-covered", 0, 1) for id_ in OBLIGATIONS}).granted


def test_a_missing_verdict_is_missing_and_an_unknown_profile_is_not_granted() -> None:
    """What was never judged is not passed; a profile nobody demands anything for is worth nothing."""
    assert grant("Ownership", {}, demanded("2026.1")).missing == ("OWN-1",)
    assert not grant("Budget", all_passed(), demanded("2026.1")).granted


def test_every_judge_looks_at_a_history() -> None:
    """`judge_all` asks all of them, in the catalogue's order."""
    history = Story(plan("a ledger")).up().start().call("a").done().settled().history()
    assert list(judge_all(history)) == list(OBLIGATIONS)


def test_the_frozen_set_stays_frozen() -> None:
    """A published set never changes: certificates quote its digest. A change of mind is a new set."""
    assert {name: one.digest for name, one in REQUIREMENT_SETS.items()} == {
        "2026.1": "6dc47f0947d6815ff65fa9cd5a29ff5e",
        "2026.2": "7dcbfce22ebd0d4e6075eb6521e6f908",
    }


@pytest.mark.parametrize("name", [CURRENT, *DRAFTS])
def test_this_build_judges_what_a_set_demands(name: str) -> None:
    """Every demand has a judge, which by itself demands the same; they come in the catalogue's order."""
    demands = demanded(name)
    assert demands.ids == tuple(id_ for id_ in OBLIGATIONS if demands.get(id_) is not None)
    for one in demands.requirements:
        judged = OBLIGATIONS[one.id]
        assert (judged.level, judged.profile, judged.minimum) == (one.level, one.profile, one.minimum)
    assert demands.get("DUR-1") == demands.requirements[0]
    assert demands.get("XYZ-1") is None


def test_a_draft_demands_every_obligation_and_says_that_it_is_a_draft() -> None:
    """Nobody can take what was certified by it for more; a set is a draft or published, never both."""
    draft = demanded("2026.3")
    assert draft.ids == tuple(OBLIGATIONS)
    assert (draft.title, demanded().title) == ("2026.3 (draft)", CURRENT)
    assert not set(DRAFTS) & set(REQUIREMENT_SETS)
    with pytest.raises(KeyError):
        demanded("1999.1")

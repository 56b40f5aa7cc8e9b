"""Every judge against histories written by hand, and against any history at all."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import attrs
import pytest
from hypothesis import HealthCheck, given, settings

from scenarios.faults import learnt_by
from scenarios.history import Declared, History, Stalled
from scenarios.obligations import ANOMALIES, OBLIGATIONS
from scenarios.rules import judge_all, tally
from tests.scenarios.any_history import histories, histories_of_anything
from tests.scenarios.examples import Example, collected

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from syrupy.assertion import SnapshotAssertion

EXAMPLES = collected()
PASSED = [one for one in EXAMPLES if one.anomaly is None]
BLAMED = [one for one in EXAMPLES if one.anomaly is not None]


def names(one: Example) -> str:
    return one.name


@pytest.mark.parametrize("example", PASSED, ids=names)
def test_a_correct_history_passes(example: Example) -> None:
    """No judge blames what a correct harness can show, and the judge counts how often it was put to the test."""
    findings = judge_all(example.history)
    blamed = {id_: found.violations for id_, found in findings.items() if found.violations and id_ not in example.but}
    assert blamed == {}
    judge = OBLIGATIONS[example.obligation].judge  # `judge_all` counts nothing in the few without any call
    exercised = judge(example.history).exercised
    assert exercised >= example.exercised if example.exercised else exercised == 0


@pytest.mark.parametrize("example", PASSED, ids=names)
def test_every_prefix_of_a_correct_history_passes(example: Example) -> None:
    """Observation may stop at any event: what a correct harness had shown by then is no reason to blame it."""
    events = example.history.events
    for length in range(len(events)):
        findings = judge_all(attrs.evolve(example.history, events=events[:length]))
        assert [id_ for id_, found in findings.items() if found.violations and id_ not in example.but] == []


@pytest.mark.parametrize("example", BLAMED, ids=names)
def test_a_broken_promise_is_blamed_by_its_name(example: Example) -> None:
    """The obligation's own judge blames the history, under the anomaly's name, with evidence that exists."""
    found = OBLIGATIONS[example.obligation].judge(example.history)
    assert example.anomaly in {violation.anomaly for violation in found.violations}
    for violation in found.violations:
        assert violation.evidence
        assert all(0 <= index < len(example.history.events) for index in violation.evidence)
        assert len(set(violation.evidence)) == len(violation.evidence)


def test_what_breaks_a_promise_has_put_it_to_the_test() -> None:
    """Nobody is told of a promise that it was violated and never exercised: the violation is the evidence."""
    told = {one.name: tally([judge_all(one.history)[one.obligation]]) for one in BLAMED}
    assert [name for name, seen in told.items() if seen.violations and not seen.exercised] == []


#: Promises with a time in them, which are given as much more of it as the observer's machine stood still; and those judged by
#: how soon something was seen.
TIMED = {"SCH-6", "SCH-8", "APR-3", "DLN-1", "DLN-2", "RTY-2", "EFF-7", "CAN-6", "CHI-1", "CHI-3"} | {
    "RTY-4", "OWN-8", "BUD-1", "SIG-3", "CAN-1",
}  # fmt: skip


def test_a_machine_that_stands_still_excuses_what_takes_time_and_nothing_else() -> None:
    """Had all the time until the proof been lost, no blame would be left of what took too long; any other blame is."""
    excused = {one.obligation for one in BLAMED if not _is_blamed(stalled_until_the_proof(one), one)}
    assert excused == TIMED


def stalled_until_the_proof(one: Example) -> History:
    events = one.history.events
    found = OBLIGATIONS[one.obligation].judge(one.history).violations
    last = max(next(violation.evidence for violation in found if violation.anomaly == one.anomaly))
    at_ns = events[last].at_ns
    return attrs.evolve(one.history, events=(*events[:last], Stalled(at_ns, at_ns), *events[last:]))


def _is_blamed(history: History, one: Example) -> bool:
    return one.anomaly in {found.anomaly for found in OBLIGATIONS[one.obligation].judge(history).violations}


def test_every_obligation_has_examples_of_both_kinds() -> None:
    """A judge without several histories it must pass and several it must blame is not trusted."""
    passed, blamed = (Counter(one.obligation for one in group) for group in (PASSED, BLAMED))
    assert {id_: (passed[id_], blamed[id_]) for id_ in OBLIGATIONS if passed[id_] < 3 or blamed[id_] < 2} == {}
    assert {one.obligation for one in EXAMPLES} <= set(OBLIGATIONS)


def test_every_anomaly_an_obligation_names_has_an_example() -> None:
    """A name that no example leads to is a promise of the registry that nothing keeps."""
    shown = {(one.obligation, one.anomaly) for one in BLAMED}
    assert [(id_, name) for id_, one in OBLIGATIONS.items() for name in one.anomalies if (id_, name) not in shown] == []


def test_examples_have_names_of_their_own() -> None:
    """Two examples of one title could not be told apart in a report."""
    assert [name for name, count in Counter(one.name for one in EXAMPLES).items() if count > 1] == []


@pytest.mark.parametrize("example", EXAMPLES, ids=names)
def test_judging_is_pure(example: Example) -> None:
    """The same history, and an equal one read back from JSON, give the same findings; judging changes nothing."""
    before = example.history.to_json()
    first = judge_all(example.history)
    assert example.history.to_json() == before
    assert judge_all(History.from_json(before)) == first
    assert judge_all(example.history) == first


@given(histories())
@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_no_history_makes_a_judge_throw(history: History) -> None:
    """Whatever was recorded, in whatever order: a judge answers, under its own anomaly names, about events that exist."""
    _answers(history)


@given(histories_of_anything())
@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_no_plan_makes_a_judge_throw(history: History) -> None:
    """Nor does any plan, whatever is recorded of it."""
    _answers(history)


def _answers(history: History) -> None:
    for id_, found in judge_all(history).items():
        assert found.exercised >= 0
        for violation in found.violations:
            assert violation.anomaly in OBLIGATIONS[id_].anomalies
            assert all(0 <= index < len(history.events) for index in violation.evidence)


@pytest.mark.parametrize("example", BLAMED, ids=names)
def test_a_sentence_is_no_longer_for_answers_of_any_size(example: Example) -> None:
    """What is blamed is read by people: an answer of many thousand characters is quoted by its beginning only."""
    padded = with_long_answers(example.history)
    sentences = [one.sentence for found in judge_all(padded).values() for one in found.violations]
    assert [sentence for sentence in sentences if "." * 100 in sentence] == []


def with_long_answers(history: History) -> History:
    """The same history, with every nonce followed by many dots."""
    data = history.to_json()
    events = [_padded(event, _nonces(data["events"])) for event in data["events"]]
    return History.from_json({**data, "events": events})


def _nonces(events: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    return frozenset(event["nonce"] for event in events if event.get("nonce"))


def _padded(value: Any, nonces: frozenset[str]) -> Any:
    match value:
        case str():
            return value + "." * 1000 if value in nonces else value
        case dict():
            return {key: _padded(one, nonces) for key, one in value.items()}
        case list() | tuple():
            return type(value)(_padded(one, nonces) for one in value)
        case _:
            return value


def test_nothing_seen_is_nothing_tested() -> None:
    """An empty history exercises nothing and blames nobody."""
    empty = History("r1", EXAMPLES[0].history.plan, Declared(), ())
    assert {(found.exercised, found.violations, found.slow) for found in judge_all(empty).values()} == {(0, (), False)}


def test_slow_is_told_apart_from_stuck() -> None:
    """A run that ended only within four bounds makes the liveness promises slow, and breaks none."""
    slow = [one for one in PASSED if one.obligation in {"DUR-6", "EFF-6"} and "slow" in one.title]
    assert [judge_all(one.history)[one.obligation].slow for one in slow] == [True, True]


def test_every_obligation_can_be_explained() -> None:
    """`simkit explain` prints promise, tests, causes and anomalies, and the reports there are: none may be missing."""
    for one in OBLIGATIONS.values():
        assert one.promise.endswith(".")
        assert one.tested_by
        assert len(one.causes) >= 2
        assert one.minimum >= 1
        assert sorted(one.learnt_from) == list(learnt_by(one.id))
        assert all(name in ANOMALIES for name in one.anomalies)
        assert one.name


def test_sentences(snapshot: SnapshotAssertion) -> None:
    """What users read of each violation, word for word."""
    lines = []
    for one in BLAMED:
        lines.append(f"{one.name}")
        lines += [
            f"    {violation.anomaly}: {violation.sentence} {violation.evidence}"
            for violation in OBLIGATIONS[one.obligation].judge(one.history).violations
        ]
    assert "\n".join(lines) == snapshot


def test_promises(snapshot: SnapshotAssertion) -> None:
    """What users read of each obligation, word for word."""
    assert "\n".join(f"{one.id} {one.name}: {one.promise}" for one in OBLIGATIONS.values()) == snapshot

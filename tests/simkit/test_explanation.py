"""Explanations: what decides is told, what does not is not, within the bound on runs."""

from __future__ import annotations

from typing import Any

import pytest
import trio

import simkit
from simkit.explanation import RUNS_MAX, Cause, Event, Explanation, Ordering, explain
from simkit.shrinking import Attempt, Retrial, shrink, worded
from tests.simkit.shrink_programs import (
    fault_and_schedule,
    faulty_operations,
    first_failure,
    lock_order,
    lost_update,
    reorder,
    spinning,
)


def explained(program: Any) -> tuple[Retrial, Attempt, Explanation]:
    seed, outcome = first_failure(program)
    retrial = Retrial(program, entropy=seed)
    shrunk = shrink(retrial, outcome.departures, outcome.schedule)
    return retrial, shrunk.best, explain(retrial, shrunk.best)


def ends(ordering: Ordering) -> tuple[tuple[str, int], tuple[str, int]]:
    return (ordering.first.name, ordering.first.nth), (ordering.second.name, ordering.second.nth)


def test_a_race_is_told_as_two_orderings_with_places() -> None:
    """A checker that sees half of a publication: after the first store, and before the second."""
    _, _, explanation = explained(reorder(9))
    assert explanation.causes == ()
    assert [ends(ordering) for ordering in explanation.orderings] == [
        (("setter", 1), ("checker", 1)),
        (("checker", 2), ("setter", 2)),
    ]
    first, second = explanation.orderings[1].first, explanation.orderings[1].second
    assert "in checker" in first.stack[-1]
    assert "in setter" in second.stack[-1]
    assert first.stack[-1].startswith("shrink_programs.py:")
    assert explanation.complete
    assert explanation.runs <= 20


def test_three_faults_are_three_causes() -> None:
    """Each of three needed faults decides, and a value is told beside the nearest one that passes."""
    _, best, explanation = explained(faulty_operations)
    assert [cause.site for cause in explanation.causes] == sorted(best.departures)
    assert sorted((cause.value, cause.passes_with) for cause in explanation.causes) == [(1, 0), (2, 1), (2, 1)]
    assert explanation.orderings == ()


def test_one_sentence_tells_it() -> None:
    """The rendering is a single sentence that names site, occurrence and value."""
    _, _, explanation = explained(fault_and_schedule)
    assert str(explanation) == "It fails only with net/drop:4#0 = 1 and with net/latency:1#0 = 1."


def test_a_departure_that_does_not_matter_is_told_apart() -> None:
    """An attempt that was not shrunk has departures that make no difference."""

    def run_with(departures: Any, _plan: Any) -> str | None:
        return "failed" if ("s", "b", 0) in departures else None

    given = {("s", "a", 0): 1, ("s", "b", 0): 3}
    explanation = explain(run_with, Attempt("failed", given, ()))
    assert explanation.causes == (Cause(("s", "b", 0), 3),)
    assert explanation.indifferent == (("s", "a", 0),)


@pytest.mark.parametrize("program", [lost_update, lock_order, spinning], ids=lambda program: program.__name__)
def test_every_ordering_really_decides(program: Any) -> None:
    """Whatever the program, orderings are found, and the pre-emption left out makes the run pass."""
    retrial, best, explanation = explained(program)
    assert explanation.complete
    assert explanation.orderings
    assert explanation.runs <= RUNS_MAX
    assert all(event.name for ordering in explanation.orderings for event in (ordering.first, ordering.second))
    assert explanation.orderings[0].first.stack
    assert retrial(best.departures, ()).fingerprint != best.fingerprint


def test_a_failure_of_the_default_run_has_no_cause() -> None:
    """When nothing special is needed, the sentence says so."""
    explanation = explain(lambda _departures, _plan: "always", Attempt("always", {}, ()))
    assert str(explanation) == "It fails by default: no fault, no choice and no pre-emption is needed."
    assert explanation.runs == 0


def test_the_bound_on_runs_is_kept_and_told() -> None:
    """An explanation that ends early says that it did."""
    given = {("s", f"k{n}", 0): 1 for n in range(9)}
    explanation = explain(
        lambda departures, _plan: "failed" if len(departures) == 9 else None, Attempt("failed", given, ()), runs_max=4
    )
    assert (explanation.runs, explanation.complete, len(explanation.causes)) == (4, False, 4)
    assert "as far as 4 runs tell" in str(explanation)


def test_the_sentence_stays_a_sentence() -> None:
    """Of many causes the first few are told, and how many more there are."""
    given = {("s", f"k{n}", 0): 1 for n in range(9)}
    explanation = explain(
        lambda departures, _plan: "failed" if len(departures) == 9 else None, Attempt("failed", given, ())
    )
    assert str(explanation).endswith("with s/k5#0 = 1 and with 3 more that decide as well.")


def test_explaining_is_deterministic() -> None:
    """The same failure is explained in the same words."""
    assert explained(lost_update)[2] == explained(lost_update)[2]


def test_what_fails_without_it_is_told() -> None:
    """A run that fails in another way when the cause is left out does not pass then, and the sentence says so."""

    async def main(world: simkit.World) -> None:
        chances = world.tape.stream("s")
        late, wrong = chances.choose("late", 2), chances.choose("wrong", 2)
        await trio.sleep(late)
        assert not (late and wrong), "both"
        assert not wrong, "one"

    retrial = Retrial(main)
    attempt = retrial({("s", "late", 0): 1, ("s", "wrong", 0): 1}, ())
    line = main.__code__.co_firstlineno + 5
    assert str(explain(retrial, attempt)) == (
        f"It fails so only with s/late#0 = 1 (without it: AssertionError at test_explanation.py:{line}) and with s/wrong#0 = 1."
    )


def test_orderings_tell_what_happens_else() -> None:
    """As causes do."""
    event = Event(1, 1, "a")
    told = Explanation("x", (), (Ordering(event, event, ("ValueError", "/src/b.py", 3)),), (), 9, complete=True)
    assert (
        str(told) == "It fails so only while step 1 of a #1 comes before step 1 of a #1 (else: ValueError at b.py:3)."
    )


@pytest.mark.parametrize(
    ("fingerprint", "words"),
    [
        (("AssertionError", "/src/bank.py", 12), "AssertionError at bank.py:12"),
        ("('AssertionError', '/src/bank.py', 12)", "AssertionError at bank.py:12"),
        (("DeadlockError", "deadlock", "/a.py", 1, "/b.py", 2), "DeadlockError at a.py:1 and b.py:2"),
        (("group", ("('ValueError',)", "('OSError', 'x.py', 1)")), "ValueError and OSError at x.py:1"),
        ("lost-write", "lost-write"),
        ("(odd", "(odd"),
        (7, "7"),
    ],
)
def test_fingerprints_in_words(fingerprint: Any, words: str) -> None:
    """Those of exceptions, their reprs, and whatever else a caller made one of."""
    assert worded(fingerprint) == words

"""Explanations: what decides is told, what does not is not, within the bound on runs."""

from __future__ import annotations

import random
from typing import Any

import attrs
import pytest
import trio

import simkit
from simkit.explanation import RUNS_MAX, Cause, Event, Explanation, Ordering, explain
from simkit.shrinking import Attempt, LooseSchedule, Retrial, shrink, worded
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


# ------------------------------------------------------------------------------- what fails though it departs in nothing


def by_default(program: Any, entropy: int = 0, runs_max: int = RUNS_MAX) -> Explanation:
    retrial = Retrial(program, entropy=entropy)
    attempt = retrial({}, ())
    assert attempt.fingerprint is not None
    return explain(retrial, attempt, runs_max=runs_max)


async def unlucky(_world: simkit.World) -> None:
    """Fails for a few seeds."""
    assert random.random() < 0.9


async def stored_in_order(_world: simkit.World) -> None:
    """Fails when the first stores first."""
    stored: list[int] = []

    async def store(number: int) -> None:
        await trio.lowlevel.checkpoint()
        stored.append(number)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(store, 1)
        nursery.start_soon(store, 2)
    assert stored != [1, 2]


async def always_lost(_world: simkit.World) -> None:
    """Fails whoever is first."""
    value = 0

    async def increment() -> None:
        nonlocal value
        seen = value
        await trio.sleep(0.01)
        value = seen + 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(increment)
        nursery.start_soon(increment)
    assert value == 2


def test_random_numbers_that_decide_are_told() -> None:
    """Of a seed that fails by its numbers alone, not that it fails by default."""
    seed = next(seed for seed in range(50) if Retrial(unlucky, entropy=seed)({}, ()).fingerprint is not None)
    explanation = by_default(unlucky, seed)
    assert not explanation.by_default
    assert str(explanation) == (
        "It fails without any fault, choice or pre-emption, by the random numbers of its seed (with those of seed 0 it passes)."
    )


def test_the_order_that_decides_is_told_by_what_it_takes_to_pass() -> None:
    """The default order of two tasks is an order, too."""
    explanation = by_default(stored_in_order)
    assert not explanation.by_default
    (ordering,) = explanation.passing
    assert ends(ordering) == (("store", 1), ("store", 1))
    assert (ordering.first.task, ordering.second.task) == (3, 2)
    assert "it passes only while step 1 of store #3" in str(explanation)
    assert explanation.runs <= RUNS_MAX


def test_numbers_and_order_may_decide_both() -> None:
    """Each is told."""

    async def main(world: simkit.World) -> None:
        if random.random() > 0.5:
            await stored_in_order(world)

    explanation = next(
        by_default(main, seed) for seed in range(50) if Retrial(main, entropy=seed)({}, ()).fingerprint is not None
    )
    assert explanation.chances.numbers is not None
    assert explanation.passing
    assert " it passes) and by the order of its tasks (it passes only while " in str(explanation)


def test_what_fails_whatever_the_chances_are_says_how_many_were_tried() -> None:
    """An update that is lost in every order."""
    explanation = by_default(always_lost)
    assert explanation.by_default
    assert explanation.chances.tried == explanation.runs == 20
    assert str(explanation) == (
        "It fails by default: no fault, no choice and no pre-emption is needed, and 20 runs with other random numbers or in "
        "other orders fail as well."
    )


def test_choices_that_most_seeds_draw_otherwise_are_told() -> None:
    """What fails only with every choice at its default does not always fail, and is not said to."""

    async def main(world: simkit.World) -> None:
        assert world.tape.stream("load").choose("0", 4) > 0

    explanation = by_default(main)
    passed = sum(simkit.run(main, tape=simkit.Tape.from_seed(seed)).error is None for seed in range(10))
    assert 1 < passed < 10
    assert str(explanation) == (
        "It fails with all choices at their default (load/0#0 = 0), without a fault or pre-emption, and 20 runs with other "
        f"random numbers or in other orders fail as well; of the first 10 seeds, which draw their choices, {passed} pass."
    )


def test_choices_that_no_seed_passes_with_do_not_matter() -> None:
    """The program is broken, whatever is drawn."""

    async def main(world: simkit.World) -> None:
        assert world.tape.stream("load").choose("0", 4) > 4

    assert str(by_default(main)).startswith(
        "It fails by default: no fault, no choice and no pre-emption is needed, and 20 runs"
    )


def test_other_numbers_that_fail_otherwise_are_told() -> None:
    """They do not pass, and the sentence says what they do."""

    async def main(_world: simkit.World) -> None:
        assert random.random() < 0.5, "one"
        raise ValueError("other")

    fails = next(
        seed for seed in range(50) if "AssertionError" in repr(Retrial(main, entropy=seed)({}, ()).fingerprint)
    )
    line = main.__code__.co_firstlineno + 2
    assert f": ValueError at test_explanation.py:{line})." in str(by_default(main, fails))


@pytest.mark.parametrize("runs_max", [1, 15, 21, 24])
def test_the_bound_holds_for_chances_as_well(runs_max: int) -> None:
    """It is no more than a bound: what was tried until then counts."""
    explanation = by_default(stored_in_order, runs_max=runs_max)
    assert explanation.runs <= runs_max
    assert not explanation.complete


def test_a_step_that_the_failing_run_does_not_come_to_has_no_letter() -> None:
    """What decides may lie behind the failure, where the table of the run ends."""
    from simkit._pytest.block import lettered
    from simkit.spacetime import Watch, table

    explanation = by_default(stored_in_order)
    (ordering,) = explanation.passing
    beyond = attrs.evolve(explanation, passing=(attrs.evolve(ordering, first=attrs.evolve(ordering.first, nth=9)),))
    watch = Watch()
    outcome = watch.run(stored_in_order, tape=simkit.Tape.from_departures({}), strategy=LooseSchedule())
    sentence = beyond.sentence(lettered(table(outcome.trace, watch.known, beyond)))
    assert "while step 9 of store #3" in sentence
    assert "comes before (b)" in sentence

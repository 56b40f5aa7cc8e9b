"""Shrinking: to the minimum, by the same failure only, within its bounds, and the same way every time."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest

from simkit.case import Case
from simkit.errors import SimkitError
from simkit.shrinking import (
    Attempt,
    Budget,
    LooseSchedule,
    Progress,
    Retrial,
    Shrunk,
    fingerprint_of,
    shrink,
)
from simkit.shrinking.subsets import fewest
from simkit.strategy import Segment, TaskView
from simkit.tape import Site
from simkit.world import run
from tests.simkit.shrink_programs import (
    CHOICES,
    fault_and_schedule,
    faulty_operations,
    first_failure,
    lock_order,
    lost_update,
    reorder,
    spinning,
    walked,
)


def shrunk_by_seed(main: Any, budget: Budget | None = None, *, departures: int = 0) -> Shrunk:
    seed, outcome = first_failure(main, departures=departures)
    return shrink(Retrial(main, entropy=seed), outcome.departures, outcome.schedule, budget=budget or Budget())


# ------------------------------------------------------------------------------------------------------------ the bars


def test_a_thousand_choices_shrink_to_three_faults_in_a_hundred_runs() -> None:
    """The bar: about 800 departures become the three that are needed, by at most 100 runs."""
    shrunk = shrunk_by_seed(faulty_operations, departures=CHOICES * 3 // 4)
    assert len(shrunk.first.departures) >= CHOICES * 3 // 4
    assert sorted(shrunk.best.departures.values()) == [1, 2, 2]
    assert {key.split(":")[0] for _, key, _ in shrunk.best.departures} == {"fault"}
    assert shrunk.stopped is None
    assert shrunk.runs <= 100, shrunk


@pytest.mark.slow
def test_a_hundred_tasks_shrink_to_one_preemption_in_three_hundred_runs() -> None:
    """The bar: a random schedule of 100 tasks with some 180 pre-emptions becomes one with a single one."""
    shrunk = shrunk_by_seed(reorder(99))
    assert shrunk.first.preemptions > 100
    assert shrunk.best.preemptions == 1
    assert len(shrunk.best.moves) <= 2
    assert shrunk.stopped is None
    assert shrunk.runs <= 300, shrunk


# ----------------------------------------------------------------------------------------------------- other programs


@pytest.mark.parametrize(
    ("program", "decisions"),
    [(lost_update, 2), (lock_order, 1), (spinning, 2), (fault_and_schedule, 2)],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_other_programs_shrink_to_few_decisions(program: Any, decisions: int) -> None:
    """Lost updates, deadlocks, spinning and mixed failures come down to a handful of decisions."""
    shrunk = shrunk_by_seed(program)
    assert shrunk.stopped is None
    assert len(shrunk.best.departures) + shrunk.best.preemptions <= decisions, shrunk.best


def test_what_was_shrunk_replays_as_a_case() -> None:
    """Departures and the whole schedule of the shrunk run, replayed strictly, give its digest and its failure."""
    seed, outcome = first_failure(fault_and_schedule)
    retrial = Retrial(fault_and_schedule, entropy=seed)
    shrunk = shrink(retrial, outcome.departures, outcome.schedule)
    attempt, small = retrial.run(shrunk.best.departures, shrunk.best.plan)
    assert attempt == shrunk.best
    case = Case("simulated", {}, {}, seed, departures=small.departures, schedule=small.schedule, digest=small.digest)
    again = run(fault_and_schedule, tape=case.tape(), strategy=case.strategy())
    assert again.digest == case.digest
    assert again.error is not None
    assert fingerprint_of(again.error) == shrunk.fingerprint


# -------------------------------------------------------------------------------------------------------- what is kept


def noise(count: int) -> dict[Site, int]:
    dice = random.Random(count)
    return {("s", f"k{number % 7}", number): dice.randrange(1, 9) for number in range(count)}


def test_only_the_same_failure_is_accepted() -> None:
    """A run that fails in another way is no step towards a simpler one."""

    def run_with(departures: Any, _plan: Any) -> str | None:
        if len(departures) == 10:
            return "the one"
        return "another" if departures else None

    shrunk = shrink(run_with, noise(10), (), fingerprint="the one")
    assert len(shrunk.best.departures) == 10


def test_values_and_occurrences_become_small() -> None:
    """What is needed of a value is found by bisection, and the earliest place where it does."""

    def run_with(departures: Mapping[Site, int], _plan: Any) -> bool | None:
        return any(key == "k3" and value >= 3 for (_, key, _), value in departures.items()) or None

    shrunk = shrink(run_with, noise(60), ())
    assert shrunk.best.departures == {("s", "k3", 0): 3}


def test_shrinking_is_deterministic() -> None:
    """The same failure shrinks to the same run by the same number of runs."""
    assert shrunk_by_seed(lost_update) == shrunk_by_seed(lost_update)


def test_a_failure_that_needs_nothing_takes_one_more_run() -> None:
    """When the default run fails as well, nothing else is tried."""
    shrunk = shrink(lambda _departures, _plan: "always", noise(50), ((1, 2), (2, 5)))
    assert (shrunk.runs, dict(shrunk.best.departures), shrunk.best.plan) == (2, {}, ())


# -------------------------------------------------------------------------------------------------------------- bounds


def test_a_bound_on_runs_keeps_what_was_found() -> None:
    """The best run so far comes back, and says which bound ended the search."""
    shrunk = shrunk_by_seed(faulty_operations, Budget(runs=12))
    assert (shrunk.runs, shrunk.stopped) == (12, "runs")
    assert len(shrunk.best.departures) < len(shrunk.first.departures)
    assert "stopped by its bound on runs" in str(shrunk)


def test_a_bound_on_time_is_kept_by_the_clock_handed_in() -> None:
    """No further run begins once the clock has passed the bound."""
    ticks = iter(range(1000))
    shrunk = shrunk_by_seed(faulty_operations, Budget(time_s=5, clock=lambda: next(ticks)))
    assert (shrunk.runs, shrunk.stopped) == (4, "time")


def test_progress_is_told_after_every_run() -> None:
    """One call a run after the first, never more departures than before, and the last tells the result."""
    told: list[Progress] = []
    seed, outcome = first_failure(faulty_operations)
    retrial = Retrial(faulty_operations, entropy=seed)
    shrunk = shrink(retrial, outcome.departures, outcome.schedule, progress=told.append)
    assert [one.runs for one in told] == list(range(2, shrunk.runs + 1))
    assert [one.departures for one in told] == sorted((one.departures for one in told), reverse=True)
    assert told[-1].departures == len(shrunk.best.departures)
    assert any(one.improved for one in told)


@pytest.mark.parametrize(("answer", "told"), [(None, "did not fail again"), ("other", "in another way: 'other'")])
def test_a_failure_that_is_not_seen_again_is_told(answer: str | None, told: str) -> None:
    """Something is not deterministic then, and shrinking it would be a lie."""
    with pytest.raises(SimkitError, match=told) as caught:
        shrink(lambda _departures, _plan: answer, noise(5), (), fingerprint="the one")
    assert caught.value.problem.code == "shrink-not-failing"


# ----------------------------------------------------------------------------------------------------- the loose replay


def picks(plan: tuple[Segment, ...], runnables: list[list[int]]) -> LooseSchedule:
    strategy = LooseSchedule(plan)
    for step, numbers in enumerate(runnables):
        views = [TaskView(number, "", None) for number in numbers]
        assert views[strategy.pick(views, step)].number == strategy.steps[-1]
    return strategy


def test_by_default_the_running_task_goes_on_then_the_lowest_number() -> None:
    """No plan, no moves."""
    strategy = picks((), [[3, 1, 2], [3, 1, 2], [2, 3], [3, 2]])
    assert strategy.steps == [1, 1, 2, 2]
    assert strategy.moves == []
    assert strategy.plan() == ()


def test_a_segment_that_cannot_run_is_given_up() -> None:
    """A task that is gone or blocked is passed over, and the next segment takes its turn."""
    strategy = picks(((9, 4), (2, 1), (1, 5)), [[1, 2], [1, 2], [2], [1, 2]])
    assert strategy.steps == [2, 1, 2, 2]
    assert [move.preempts for move in strategy.moves] == [False, True]


def test_a_spinning_task_gives_way_in_the_end() -> None:
    """The default continuation is fair after so many steps, so that waiting by spinning ends."""
    strategy = picks((), [[1, 2, 3]] * 450)
    assert sorted(set(strategy.steps)) == [1, 2, 3]
    assert strategy.moves == []


@pytest.mark.parametrize("seed", range(10))
def test_a_recorded_schedule_is_followed_to_the_step(seed: int) -> None:
    """Loosely replayed, a schedule that fits gives the same digest, and its plan gives it once more."""
    outcome = walked(lost_update, seed)
    retrial = Retrial(lost_update, entropy=seed)
    attempt, again = retrial.run(outcome.departures, outcome.schedule)
    assert again.digest == outcome.digest
    assert retrial.run(attempt.departures, attempt.plan)[1].digest == outcome.digest


@pytest.mark.parametrize("needed", [[], [0], [999], [3, 500, 998], list(range(0, 1000, 97))], ids=len)
def test_the_fewest_items_are_found_by_bisection(needed: list[int]) -> None:
    """Every needed item and no other, by about log2(n) runs for each."""
    runs = 0

    def fails(items: list[int]) -> bool:
        nonlocal runs
        runs += 1
        return set(needed) <= set(items)

    assert fewest(range(1000), fails) == needed
    assert runs <= 12 * len(needed) + len(needed) + 2


def test_needs_that_are_not_monotone_still_give_a_failing_part() -> None:
    """An even number of items fails: what comes back fails, whatever bisection assumed."""
    found = fewest(range(9), lambda items: len(items) % 2 == 1)
    assert len(found) == 1


def test_fingerprints_are_of_type_and_place() -> None:
    """The same line is the same failure whatever its message says; groups are told by their members."""

    def failing(value: int, *, elsewhere: bool = False) -> BaseException:
        def refuse() -> None:
            raise ValueError(value)

        def refuse_too() -> None:
            raise ValueError(value)

        with pytest.raises(ValueError, match=str(value)) as caught:
            refuse_too() if elsewhere else refuse()
        return caught.value

    assert fingerprint_of(failing(1)) == fingerprint_of(failing(2)) != fingerprint_of(failing(1, elsewhere=True))
    groups = [BaseExceptionGroup("g", [failing(n) for n in range(size)]) for size in (1, 2)]
    assert fingerprint_of(groups[0]) == fingerprint_of(groups[1])


def test_an_answer_may_be_a_mere_fingerprint() -> None:
    """A caller that cannot tell what its run took still gets departures and segments shrunk."""

    def run_with(departures: Any, plan: tuple[Segment, ...]) -> str | None:
        return "failed" if (4, 1) in plan and ("s", "k2", 2) in departures else None

    shrunk = shrink(run_with, noise(20), ((1, 3), (2, 2), (4, 1), (1, 1), (3, 1)))
    assert list(shrunk.best.departures) == [("s", "k2", 2)]
    assert shrunk.best.plan == ((4, 1),)
    assert isinstance(shrunk.best, Attempt)

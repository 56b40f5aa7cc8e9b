"""The driver and targets with a will of their own: that exit, stay silent, fail, or say what cannot be."""

from __future__ import annotations

import attrs
import pytest

from scenarios.history import (
    Answered,
    Asked,
    Closed,
    Died,
    Started,
)
from scenarios.interruption import Barrier, Interruption, Site
from scenarios.plan import Call, Plan, Seq, Sleep, Wait
from scenarios.rules import judge_all
from simkit.errors import ExitCode, SimkitError
from tests.conformance.driver_rig import BOUNDS, CHAIN, GATED, MS, Habits, watch
from tests.conformance.seen_rig import events

BARRIERS: tuple[Barrier, ...] = ("received", "applied", "replied")


def at(op: str | None, barrier: Barrier, nth: int = 1, **more: str) -> Site:
    return Site("barrier", op, nth, barrier, **more)  # type: ignore[arg-type]


# ---- targets with a will of their own


def test_a_worker_that_exits_is_recorded_and_started_again() -> None:
    """Its death is its own, not the kit's."""
    seen = watch(CHAIN, habits=Habits(exits_at_boot=2))
    assert [one.cause for one in events(seen, Died)] == ["exited", "exited"]
    assert [one.incarnation for one in events(seen, Started)] == [1, 2, 3]
    assert events(seen, Closed)[0].reason == "settled"


def test_a_worker_that_keeps_exiting_cannot_be_judged() -> None:
    """The problem says how often and how, and quotes its last words; it is the target's, not the kit's."""
    with pytest.raises(SimkitError) as caught:
        watch(CHAIN, habits=Habits(exits_at_boot=99))
    problem = caught.value.problem
    assert problem.code == "worker-keeps-dying"
    assert "4 times in one run (exit code 7 × 4)" in problem.what
    assert "goodbye" in problem.what


@pytest.mark.parametrize("verb", ["start", "status", "signal"])
def test_a_worker_that_dies_over_a_question_leaves_it_indefinite(verb: str) -> None:
    """The same is asked of the next one, and no adapter is blamed."""
    seen = watch(GATED, habits=Habits(dies_over=verb))
    first, second = events(seen, Asked, verb=verb)[:2]
    assert events(seen, Answered, ask=first.ask)[0].outcome == "indefinite"
    assert (first.incarnation, second.incarnation) == (1, 2)
    assert [one.cause for one in events(seen, Died)] == ["exited"]
    assert events(seen, Closed)[0].reason == "settled"


def test_a_worker_that_answers_garbage_breaks_the_protocol() -> None:
    """It lives: the fault is the adapter's, and the run cannot be judged."""
    with pytest.raises(SimkitError) as caught:
        watch(CHAIN, habits=Habits(garbage_over="status"))
    assert caught.value.problem.code == "adapter-garbage"


def test_a_silent_worker_breaks_the_protocol() -> None:
    """An answer that takes longer than the bound of a question is none."""
    with pytest.raises(SimkitError) as caught:
        watch(CHAIN, habits=Habits(answers_take_ns=BOUNDS.ask_ns + MS))
    assert caught.value.problem.code == "adapter-silent"


def test_a_worker_without_a_channel_is_no_crash_of_the_kit() -> None:
    """Nothing can be asked of it, so the run meets its bound."""
    seen = watch(CHAIN, habits=Habits(asks_too_late=True))
    assert events(seen, Closed)[0].reason == "bound"


def test_a_refused_first_start_leaves_nothing_to_judge() -> None:
    """Nothing was disturbed yet: it is the adapter that cannot do what its manifest says."""
    with pytest.raises(SimkitError) as caught:
        watch(CHAIN, habits=Habits(refuses_start=True))
    assert caught.value.problem.code == "start-refused"
    assert "no such operation" in caught.value.problem.what


def test_a_start_that_only_ever_fails_is_the_adapters_fault() -> None:
    """Nothing disturbs it: its message and the worker's last words are told; nothing is said of the harness."""
    with pytest.raises(SimkitError) as caught:
        watch(CHAIN, habits=Habits(never_acknowledges=True))
    problem = caught.value.problem
    assert (problem.code, problem.exit_code) == ("start-fails", ExitCode.TARGET)
    assert "every time it was asked" in problem.what
    assert "lately: busy" in problem.what
    assert "goodbye" in problem.what


def test_a_start_that_is_never_acknowledged_after_a_blow_meets_the_bound() -> None:
    """What struck may be the reason: it is asked again and again, for four times the time a run has to settle."""
    struck = Interruption("kill", Site("time", ns=0))
    seen = watch(CHAIN, struck, habits=Habits(never_acknowledges=True))
    assert seen.fired == (struck.label,)
    assert len(events(seen, Asked, verb="start")) > 10
    (closed,) = events(seen, Closed)
    assert closed.reason == "bound"
    assert 4 * BOUNDS.settle_ns < closed.at_ns < 4 * BOUNDS.settle_ns + 100 * MS


@pytest.mark.parametrize(
    ("end_takes_ns", "reason"),
    [(BOUNDS.settle_ns // 2, "settled"), (2 * BOUNDS.settle_ns, "slow"), (5 * BOUNDS.settle_ns, "bound")],
)
def test_how_a_run_ends_depends_on_the_time_it_took(end_takes_ns: int, reason: str) -> None:
    """Within the bound it has settled, within four it was slow, and after that nobody waits any longer."""
    (closed,) = events(watch(CHAIN, habits=Habits(end_takes_ns=end_takes_ns)), Closed)
    assert closed.reason == reason
    assert closed.at_ns <= 4 * BOUNDS.settle_ns + 100 * MS


def test_time_is_counted_from_the_last_disturbance() -> None:
    """A kill late in the run gives it its whole time anew."""
    kill = Interruption("kill", Site("time", ns=900 * MS))
    seen = watch(CHAIN, kill, habits=Habits(end_takes_ns=800 * MS))
    assert events(seen, Closed)[0].reason == "settled"
    slow = watch(CHAIN, attrs.evolve(kill, site=Site("time", ns=700 * MS)), habits=Habits(end_takes_ns=1200 * MS))
    assert events(slow, Closed)[0].reason == "slow"


def test_a_lost_reply_is_a_disturbance_too() -> None:
    """Nobody is started anew after it, but the run gets its whole time all the same."""
    plan = Plan(Seq("main", (Sleep("s", 900 * MS), Call("a", "ledger"))))
    habits = Habits(end_takes_ns=700 * MS)
    assert events(watch(plan, habits=habits), Closed)[0].reason == "slow"
    assert events(watch(plan, Interruption("drop", at("a", "applied")), habits=habits), Closed)[0].reason == "settled"


def test_forgotten_work_is_not_waited_for_four_times() -> None:
    """A run that is unknown after the bound, with nothing left to happen, does not come back."""
    seen = watch(CHAIN, Interruption("kill", Site("ack", verb="start")), habits=Habits(forgets_when_killed=True))
    (closed,) = events(seen, Closed)
    assert closed.reason == "bound"
    assert closed.at_ns - events(seen, Died)[0].at_ns < 2 * BOUNDS.settle_ns
    assert events(seen, Answered)[-1].status.state == "unknown"


def test_resume_is_asked_of_every_worker_after_the_first() -> None:
    """Where recovery is the caller's part; before the run is accepted there is nothing to resume."""
    seen = watch(
        CHAIN,
        Interruption("kill", at("a", "applied")),
        Interruption("kill", at("b", "applied")),
        habits=Habits(resumes_on_request=True),
    )
    assert [one.incarnation for one in events(seen, Asked, verb="resume")] == [2, 3]
    assert events(seen, Closed)[0].reason == "settled"
    assert events(watch(CHAIN, Interruption("kill", at("a", "applied"))), Asked, verb="resume") == []


# ---- adapters that cannot be judged by, and a harness that can


def test_a_status_that_only_ever_fails_is_the_adapters_fault() -> None:
    """Its message and the worker's last words are told; nothing is said of the harness."""
    with pytest.raises(SimkitError) as caught:
        watch(CHAIN, habits=Habits(status_fails=True))
    assert caught.value.problem.code == "status-fails"
    assert "no 'anwser'" in caught.value.problem.what
    assert "goodbye" in caught.value.problem.what


@pytest.mark.parametrize(
    ("habits", "told"),
    [
        (Habits(shows_result={"x": "y"}), "a result for 'x', which the plan does not have"),
        (Habits(shows_result={}), "lacks 'a', 'w', 'b', though each was answered"),
    ],
)
def test_a_result_of_other_ids_than_the_plans_is_the_adapters_fault(habits: Habits, told: str) -> None:
    """Nothing can be judged by it; the message says which ids are off and which are wanted."""
    with pytest.raises(SimkitError) as caught:
        watch(GATED, habits=habits)
    problem = caught.value.problem
    assert (problem.code, problem.exit_code) == ("wrong-result", ExitCode.TARGET)
    assert told in problem.what
    assert "(a, w, b)" in problem.expected


def test_a_result_that_lost_something_after_a_blow_is_judged() -> None:
    """A harness that forgot what it was answered is to blame itself: no fault of the protocol."""
    seen = watch(GATED, Interruption("kill", at("a", "applied")), habits=Habits(shows_result={}))
    assert events(seen, Closed)[0].reason == "settled"


def test_a_wait_is_shown_by_its_signals_name() -> None:
    """The id of the wait in its place would leave the kit without a signal to send, and the run without an end."""
    with pytest.raises(SimkitError) as caught:
        watch(GATED, habits=Habits(names_the_wait=True))
    assert caught.value.problem.code == "wrong-wait"
    assert "go" in caught.value.problem.expected


def test_a_signal_that_is_acknowledged_and_dropped_is_blamed_without_any_fault() -> None:
    """Also where a second wait of that name comes later: the run has not come as far as that one."""
    later = Seq("r", (Wait("w", "go"), Call("a", "ledger"), Wait("v", "go"), Call("b", "ledger")))
    seen = watch(Plan(later), habits=Habits(drops_signals=True))
    findings = judge_all(seen.history)
    assert {id_ for id_, finding in findings.items() if finding.violations} >= {"DUR-6", "SIG-1"}

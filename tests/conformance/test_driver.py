"""The driver against a runtime in memory: every action at every site, and every way a run can end."""

from __future__ import annotations

import pytest

from scenarios.history import (
    Answered,
    Applied,
    Asked,
    Closed,
    Died,
    Fired,
    Paused,
    Quiet,
    Received,
    Replied,
    Resumed,
    Started,
)
from scenarios.interruption import Action, Barrier, Interruption, Site
from scenarios.plan import Call, Plan, Seq, Sleep, Wait
from tests.conformance.driver_rig import BOUNDS, CHAIN, GATE_FIRST, GATED, MS, NAP, TWO_GATES, Habits, watch
from tests.conformance.seen_rig import events, place, story

BARRIERS: tuple[Barrier, ...] = ("received", "applied", "replied")


def at(op: str | None, barrier: Barrier, nth: int = 1, **more: str) -> Site:
    return Site("barrier", op, nth, barrier, **more)  # type: ignore[arg-type]


# ---- undisturbed


def test_an_undisturbed_run_is_started_watched_and_settled() -> None:
    """Nothing fires; the world is quiet from the start, and the run ends with the first status that shows it done."""
    seen = watch(CHAIN)
    assert story(seen) == [
        "started worker#1",
        "asked start#1",
        "answered ok",
        "quiet",
        "received a#1",
        "applied",
        "replied 200 executed sent",
        "received b#1",
        "applied",
        "replied 200 executed sent",
        "closed settled",
    ]
    assert (seen.fired, seen.unfired) == ((), ())


def test_a_signal_whose_answer_is_lost_may_have_arrived() -> None:
    """The run goes on by it; the next gate is signalled all the same, and the run settles."""
    seen = watch(TWO_GATES, habits=Habits(loses_signal_acks=True))
    assert list(dict.fromkeys(signal.name for signal in events(seen, Asked, verb="signal"))) == ["go", "on"]
    assert events(seen, Closed)[0].reason == "settled"


def test_a_wait_is_signalled_once_when_it_is_waited_for() -> None:
    """The signal names the wait and carries a nonce, which the next call hands on."""
    seen = watch(GATED)
    (signal,) = events(seen, Asked, verb="signal")
    assert (signal.name, signal.id) == ("go", "r:w")
    assert place(seen, signal) > place(seen, events(seen, Replied)[0])
    (call,) = events(seen, Received, op="b")
    assert call.carries["w"] == signal.nonce


def test_two_waits_of_one_name_get_a_signal_each() -> None:
    """They are told apart by their ids, in the order of the plan."""
    plan = Plan(Seq("main", (Wait("first", "go"), Call("a", "ledger"), Wait("second", "go"))))
    signals = events(watch(plan), Asked, verb="signal")
    assert [one.id for one in signals] == ["r:first", "r:second"]
    assert signals[0].nonce != signals[1].nonce


# ---- kills


@pytest.mark.parametrize("barrier", BARRIERS)
def test_a_kill_at_a_barrier_takes_the_caller_in_the_middle_of_its_call(barrier: Barrier) -> None:
    """What the barrier has let pass is done, the rest is not, and the dead get no answer."""
    seen = watch(CHAIN, Interruption("kill", at("b", barrier)))
    (death,) = events(seen, Died)
    assert (death.incarnation, death.unit, death.cause) == (1, "worker", "killed")
    first = next(one for one in events(seen, Received, op="b"))
    applied = [place(seen, one) < place(seen, death) for one in events(seen, Applied, call=first.call)]
    replied = events(seen, Replied, call=first.call)
    assert applied == ([] if barrier == "received" else [True])
    assert len(replied) == (1 if barrier == "replied" else 0)
    assert [one.incarnation for one in events(seen, Started)] == [1, 2]
    assert seen.fired == (f"kill@b#1.{barrier}",)
    assert events(seen, Closed)[0].reason == "settled"


def test_a_kill_is_recorded_before_the_death_and_the_death_before_the_next_start() -> None:
    """The order is that of the facts, and the world is quiet only after all of them."""
    assert story(watch(CHAIN, Interruption("kill", at("a", "applied")))) == [
        "started worker#1",
        "asked start#1",
        "answered ok",
        "received a#1",
        "applied",
        "fired kill@a#1.applied",
        "died worker#1 killed",
        "started worker#2",
        "quiet",
        "received a#2",
        "replied 200 saved sent",
        "received b#2",
        "applied",
        "replied 200 executed sent",
        "closed settled",
    ]


def test_a_kill_waits_for_its_request_number() -> None:
    """The second request of a call is another site than the first, which goes unharmed."""
    seen = watch(CHAIN, Interruption("reset", at("a", "applied")), Interruption("kill", at("a", "received", nth=2)))
    requests = events(seen, Received, op="a")
    assert len(requests) == 3
    (death,) = events(seen, Died)
    assert place(seen, requests[1]) < place(seen, death) < place(seen, requests[2])


def test_a_second_crash_strikes_only_once_the_target_is_back() -> None:
    """It meets the first request of the recovery, whichever call that is of."""
    again = Interruption("kill", at(None, "received"))
    seen = watch(CHAIN, Interruption("kill", at("b", "applied"), then=again))
    assert seen.fired == ("kill@b#1.applied+kill@*#1.received", "kill@*#1.received")
    first, second = events(seen, Died)
    assert place(seen, first) < place(seen, events(seen, Started)[1]) < place(seen, second)
    assert [one.incarnation for one in events(seen, Received, op="b")] == [1, 2, 3]
    assert events(seen, Closed)[0].reason == "settled"


def test_a_second_crash_may_wait_for_a_time() -> None:
    """Its time counts from when the target was back."""
    again = Interruption("kill", Site("time", ns=30 * MS))
    seen = watch(NAP, Interruption("kill", at("a", "applied"), then=again))
    back, second = events(seen, Started)[1], events(seen, Died)[1]
    assert second.at_ns == back.at_ns + 30 * MS


def test_a_kill_after_the_acknowledgement_finds_the_run_accepted() -> None:
    """It strikes between the answer and the first look at the status."""
    words = story(watch(CHAIN, Interruption("kill", Site("ack", verb="start"))))
    at_ack = words.index("answered ok")
    assert words[at_ack + 1 : at_ack + 4] == ["fired kill@ack:start", "died worker#1 killed", "started worker#2"]
    assert words[-1] == "closed settled"


def test_a_kill_after_a_signal_finds_the_signal_acknowledged() -> None:
    """It is not sent again to the next worker."""
    seen = watch(GATED, Interruption("kill", Site("ack", "w", verb="signal")))
    (signal,) = events(seen, Asked, verb="signal")
    (answer,) = events(seen, Answered, ask=signal.ask)
    assert answer.outcome == "ok"
    assert place(seen, answer) < place(seen, events(seen, Died)[0])
    assert events(seen, Closed)[0].reason == "settled"


def test_a_kill_while_waiting_comes_before_the_signal() -> None:
    """The run is found waiting again afterwards, and only then signalled."""
    seen = watch(GATED, Interruption("kill", Site("waiting", "w")))
    (signal,) = events(seen, Asked, verb="signal")
    assert signal.incarnation == 2
    assert place(seen, events(seen, Died)[0]) < place(seen, signal)


def test_a_kill_in_a_sleep_strikes_while_the_timer_runs() -> None:
    """A third of the time after what came before, and well before its end."""
    seen = watch(NAP, Interruption("kill", Site("waiting", "s")))
    slept_ns = events(seen, Died)[0].at_ns - events(seen, Replied)[0].at_ns
    assert 100 * MS <= slept_ns < 300 * MS
    assert seen.unfired == ()


def test_a_sleep_after_a_wait_begins_with_the_signal() -> None:
    """The third of its time is counted from the signal, not from the start of the run."""
    plan = Plan(Seq("main", (Call("a", "ledger"), Wait("w", "go"), Sleep("s", 300 * MS))))
    seen = watch(plan, Interruption("kill", Site("waiting", "s")))
    signalled_ns = events(seen, Asked, verb="signal")[0].at_ns
    assert events(seen, Died)[0].at_ns - signalled_ns >= 100 * MS


def test_two_kills_of_one_moment_strike_two_units() -> None:
    """What is found at a site all strikes: the worker and the engine both die while the timer runs."""
    both = (Interruption("kill", Site("waiting", "s", unit=unit)) for unit in ("worker", "engine"))
    seen = watch(NAP, *both, units=("engine", "worker"))
    assert [one.unit for one in events(seen, Died)] == ["worker", "engine"]
    assert seen.unfired == ()


def test_a_kill_at_the_end_asks_once_more() -> None:
    """The run settles only on what the next worker shows."""
    seen = watch(CHAIN, Interruption("kill", Site("end")))
    last = events(seen, Asked, verb="status")[-1]
    assert last.incarnation == 2
    assert place(seen, events(seen, Died)[0]) < place(seen, last)
    assert events(seen, Closed)[0].reason == "settled"


def test_a_kill_at_a_time_counts_from_the_start_asked() -> None:
    """Wherever the run is by then."""
    seen = watch(NAP, Interruption("kill", Site("time", ns=123 * MS)))
    assert events(seen, Died)[0].at_ns - events(seen, Asked, verb="start")[0].at_ns == 123 * MS


def test_another_unit_dies_by_its_name_and_is_restarted_before_the_worker() -> None:
    """The engine is struck while the worker calls; the call goes on, and both are up again."""
    seen = watch(CHAIN, Interruption("kill", at("a", "applied", unit="engine")), units=("engine", "worker"))
    assert [(one.unit, one.incarnation) for one in events(seen, Started)] == [
        ("engine", 1),
        ("worker", 2),
        ("engine", 3),
    ]
    (death,) = events(seen, Died)
    assert (death.unit, death.incarnation) == ("engine", 1)
    assert [one.incarnation for one in events(seen, Received, op="a")] == [2]


def test_a_boundary_strikes_inside_the_step_of_the_target() -> None:
    """Power is lost before the write, which therefore does not happen: the answer is asked for again."""
    seen = watch(CHAIN, Interruption("power", Site("boundary", nth=2)))
    (death,) = events(seen, Died)
    assert death.cause == "power"
    assert seen.fired == ("power@worker.boundary#2",)
    assert [one.incarnation for one in events(seen, Received, op="a")] == [1, 2]


def test_a_kill_that_finds_the_dead_has_not_fired() -> None:
    """Two kills of one worker at one barrier are one death, and the other is told as unfired."""
    kill = Interruption("kill", at("a", "applied"))
    power = Interruption("power", at("a", "applied"), then=Interruption("kill", at(None, "applied")))
    seen = watch(CHAIN, kill, power)
    assert [one.cause for one in events(seen, Died)] == ["killed"]
    assert seen.fired == ("kill@a#1.applied",)
    assert seen.unfired == ("power@a#1.applied+kill@*#1.applied", "kill@*#1.applied")
    assert [one.label for one in events(seen, Fired)] == list(seen.fired)


# ---- faults of replies


@pytest.mark.parametrize(
    ("action", "barrier", "first", "effects_of_first"),
    [
        ("drop", "applied", (200, "dropped"), 1),
        ("reset", "applied", (200, "reset"), 1),
        ("error-after", "applied", (503, "sent"), 1),
        ("error-before", "received", (503, "sent"), 0),
        ("drop", "received", None, 0),
    ],
)
def test_a_fault_of_the_reply_spares_worker_and_later_requests(
    action: Action, barrier: Barrier, first: tuple[int, str] | None, effects_of_first: int
) -> None:
    """The first request suffers it, the second is answered, and nobody dies."""
    seen = watch(CHAIN, Interruption(action, at("a", barrier)))
    requests = events(seen, Received, op="a")
    assert len(requests) == 2
    (reply,) = events(seen, Replied, call=requests[0].call)
    if first is not None:
        assert (reply.status, reply.delivery) == first
    assert len(events(seen, Applied, call=requests[0].call)) == effects_of_first
    assert events(seen, Replied, call=requests[1].call)[0].delivery == "sent"
    assert events(seen, Died) == []
    assert seen.fired == (f"{action}@a#1.{barrier}",)


def test_a_delay_holds_the_reply_for_its_time() -> None:
    """Shorter than the caller's patience it changes nothing else."""
    seen = watch(CHAIN, Interruption("delay", at("a", "applied"), ns=100 * MS))
    (applied, reply) = events(seen, Applied)[0], events(seen, Replied)[0]
    assert 100 * MS <= reply.at_ns - applied.at_ns < 101 * MS
    assert len(events(seen, Received, op="a")) == 1


def test_a_request_suffers_one_fault_and_death_outdoes_it() -> None:
    """Of two faults of one reply the second has not fired; a kill beside a fault leaves no reply at all."""
    drop, reset = (Interruption(action, at("a", "applied")) for action in ("drop", "reset"))
    seen = watch(CHAIN, drop, reset)
    assert (seen.fired, seen.unfired) == (("drop@a#1.applied",), ("reset@a#1.applied",))
    seen = watch(CHAIN, drop, Interruption("kill", at("a", "applied")))
    assert events(seen, Replied, call=1) == []


# ---- asks


def test_a_lost_acknowledgement_is_asked_for_again() -> None:
    """The kit throws the first one away: indefinite, as for any client; the second is for the same id."""
    seen = watch(CHAIN, Interruption("lose-ack", Site("ack", verb="start")))
    first, second = events(seen, Asked, verb="start")
    assert [events(seen, Answered, ask=one.ask)[0].outcome for one in (first, second)] == ["indefinite", "ok"]
    assert first.id == second.id
    assert seen.fired == ("lose-ack@ack:start",)


def test_the_answer_that_hands_the_result_over_may_be_lost() -> None:
    """At the end it is the first status that shows it: indefinite, and asked again at once; what is to follow strikes then."""
    seen = watch(CHAIN, Interruption("lose-ack", Site("end"), then=Interruption("kill", Site("end"))))
    asked = [one.ask for one in events(seen, Asked, verb="status")]
    lost, again, last = [events(seen, Answered, ask=one)[0] for one in asked[-3:]]
    assert (lost.outcome, lost.status, again.outcome, last.outcome) == ("indefinite", None, "ok", "ok")
    assert again.status is not None
    assert again.status.state == "done"
    assert seen.fired == ("lose-ack@end+kill@end", "kill@end")


def test_a_start_is_repeated_while_its_run_is_under_way() -> None:
    """The call whose barrier it is goes on; the second start has the same id."""
    seen = watch(CHAIN, Interruption("repeat", at("a", "received", verb="start")))
    first, second = events(seen, Asked, verb="start")
    assert first.id == second.id
    assert place(seen, second) > place(seen, events(seen, Received, op="a")[0])
    assert events(seen, Answered, ask=second.ask)[0].outcome == "ok"
    assert events(seen, Closed)[0].reason == "settled"


def test_a_signal_is_repeated_with_the_same_id_and_nonce() -> None:
    """Right after it was acknowledged."""
    seen = watch(GATED, Interruption("repeat", Site("ack", "w", verb="signal")))
    first, second = events(seen, Asked, verb="signal")
    assert (first.id, first.nonce) == (second.id, second.nonce)
    assert place(seen, events(seen, Answered, ask=first.ask)[0]) < place(seen, second)


def test_an_early_signal_is_answered_while_a_call_before_its_wait_is_held() -> None:
    """So that nobody can say the wait had begun; it is not sent a second time."""
    seen = watch(GATED, Interruption("early", Site("ack", "w", verb="start")))
    (signal,) = events(seen, Asked, verb="signal")
    (answer,) = events(seen, Answered, ask=signal.ask)
    call = events(seen, Received, op="a")[0]
    assert answer.outcome == "ok"
    assert place(seen, call) < place(seen, signal) < place(seen, answer) < place(seen, events(seen, Applied)[0])
    assert seen.unfired == ()


def test_an_early_signal_without_a_call_before_its_wait_follows_the_start() -> None:
    """There is nothing to hold: it is sent as soon as the start is acknowledged."""
    words = story(watch(GATE_FIRST, Interruption("early", Site("ack", "w", verb="start"))))
    start = words.index("answered ok")
    assert words[start + 1 : start + 4] == ["fired early@ack:start:w", "asked signal#1", "answered ok"]
    assert words.count("asked signal#1") == 1


def test_a_refused_early_signal_is_sent_again_in_time() -> None:
    """The refusal is recorded as definite, and the wait gets its signal when it has begun."""
    seen = watch(GATED, Interruption("early", Site("ack", "w", verb="start")), habits=Habits(refuses_early=True))
    outcomes = [events(seen, Answered, ask=one.ask)[0].outcome for one in events(seen, Asked, verb="signal")]
    assert outcomes == ["error", "ok"]
    assert events(seen, Closed)[0].reason == "settled"


def test_what_follows_an_early_signal_strikes_after_it() -> None:
    """A kill at the acknowledgement of a signal does not ask when the signal was sent; the held call dies with its caller."""
    early, kill = (
        Interruption("early", Site("ack", "w", verb="start")),
        Interruption("kill", Site("ack", "w", verb="signal")),
    )
    seen = watch(GATED, early, kill)
    assert seen.fired == (early.label, kill.label)
    assert place(seen, events(seen, Died)[0]) > place(seen, events(seen, Asked, verb="signal")[0])
    assert events(seen, Closed)[0].reason == "settled"


# ---- pauses


def test_a_paused_worker_stays_until_a_slow_successor_has_taken_over() -> None:
    """A real process takes longer to come up than the pause lasts; let go before that, the first would have no rival."""
    slow = Habits(boots_take_ns=300 * MS)
    seen = watch(CHAIN, Interruption("pause", at("a", "received"), ns=50 * MS), habits=slow)
    (paused,), (resumed,) = events(seen, Paused), events(seen, Resumed)
    taken = next(one for one in events(seen, Received) if one.incarnation != paused.incarnation)
    assert paused.at_ns + 300 * MS <= taken.at_ns <= resumed.at_ns


def test_a_paused_worker_is_replaced_and_comes_back_stale() -> None:
    """A second worker takes over meanwhile; the first is let go after its time, and the run waits for what it may do."""
    seen = watch(CHAIN, Interruption("pause", at("a", "applied"), ns=400 * MS))
    (paused,), (resumed,) = events(seen, Paused), events(seen, Resumed)
    assert paused.incarnation == resumed.incarnation == 1
    assert resumed.at_ns - paused.at_ns == 400 * MS
    successor = events(seen, Started)[1]
    assert place(seen, paused) < place(seen, successor) < place(seen, resumed)
    assert [one.incarnation for one in events(seen, Received, op="a")] == [1, 2]
    assert events(seen, Closed)[0].at_ns - resumed.at_ns >= BOUNDS.grace_ns
    assert place(seen, events(seen, Quiet)[0]) > place(seen, resumed)


def test_nobody_waits_for_what_a_stopped_worker_was_asked() -> None:
    """The question under way is given up at once, so that the successor starts while the first one is still stopped."""
    seen = watch(
        CHAIN,
        Interruption("pause", at("a", "applied"), ns=400 * MS),
        habits=Habits(answers_take_ns=50 * MS),
    )
    (paused,), successor = events(seen, Paused), events(seen, Started)[1]
    assert successor.at_ns - paused.at_ns < 50 * MS
    cut = [one for one in events(seen, Answered, outcome="indefinite") if one.at_ns == paused.at_ns]
    assert [one.detail for one in cut] == ["the worker was stopped before it answered"]


def test_a_repeated_start_waits_for_the_successor() -> None:
    """There is nobody to ask while the only worker is stopped."""
    seen = watch(
        CHAIN,
        Interruption("pause", at("a", "received"), ns=400 * MS),
        Interruption("repeat", at("a", "received", verb="start")),
    )
    assert [one.incarnation for one in events(seen, Asked, verb="start")] == [1, 2]
    assert events(seen, Closed)[0].reason == "settled"


def test_a_stale_worker_killed_meanwhile_is_not_let_go() -> None:
    """Its held call is struck again; nobody continues a dead process."""
    seen = watch(
        CHAIN,
        Interruption("pause", at("a", "received"), ns=400 * MS),
        Interruption("kill", at("a", "applied")),
    )
    assert [one.incarnation for one in events(seen, Died)] == [1]
    assert events(seen, Resumed) == []
    assert events(seen, Closed)[0].reason == "settled"


# ---- proof of firing


def test_what_never_struck_is_told() -> None:
    """A third request that is never made, and the crash that was to follow it; the run is fine all the same."""
    never = Interruption("kill", at("a", "applied", nth=3), then=Interruption("kill", at(None, "applied")))
    seen = watch(CHAIN, Interruption("drop", at("b", "applied")), never)
    assert seen.fired == ("drop@b#1.applied",)
    assert seen.unfired == ("kill@a#3.applied+kill@*#1.applied", "kill@*#1.applied")
    assert events(seen, Closed)[0].reason == "settled"


def test_the_world_is_called_quiet_once_and_before_the_end() -> None:
    """Also where something armed never struck: from the end on, nothing can."""
    for interruptions in ((), (Interruption("kill", at("a", "applied", nth=9)),)):
        seen = watch(CHAIN, *interruptions)
        (quiet,), (closed,) = events(seen, Quiet), events(seen, Closed)
        assert place(seen, quiet) < place(seen, closed)

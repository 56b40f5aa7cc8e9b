"""Every action of the catalogue against a runtime in memory that has every verb: it strikes, on record, or is given back."""

from __future__ import annotations

import pytest

from conformance import questions
from conformance.sabotage.commands import directions_for
from scenarios.history import (
    Answered,
    Applied,
    Asked,
    Authority,
    Closed,
    Died,
    Down,
    Fired,
    Quiet,
    Received,
    Replied,
    Started,
)
from scenarios.interruption import ACTIONS, Action, Interruption, Site
from scenarios.obligations import OBLIGATIONS
from scenarios.plan import Approve, Call, Model, Par, Plan, Seq, Wait, approval_digest
from simkit.errors import SimkitError
from tests.conformance.driver_rig import BOUNDS, CHAIN, MS, Habits
from tests.conformance.seen_rig import at, closed, events, final, outcomes, place
from tests.conformance.verbs_rig import Faults, watch

PAY = Call("pay", "ledger", {"amount": 7})
APPROVED = Plan(Seq("main", (Call("a", "ledger"), Approve("ok", "pay"), PAY)))
BRIEF = Plan(Seq("main", (Call("a", "ledger"), Approve("ok", "pay", 300 * MS), PAY)))
GATED = Plan(Seq("main", (Call("a", "ledger"), Wait("w", "go"), Call("b", "ledger", {}, ("w",)))))
AT_OK = Site("waiting", "ok")


# ---- commands


def test_a_cancel_is_answered_while_the_call_is_held() -> None:
    """Its effect comes after the acknowledgement; the run ends cancelled."""
    seen = watch(CHAIN, Interruption("cancel", at("a", "received")))
    (cancel,) = events(seen.observation, Asked, verb="cancel")
    (answer,) = events(seen.observation, Answered, ask=cancel.ask)
    (effect,) = events(seen.observation, Applied)
    assert cancel.id == "r:cancel:1"
    assert place(seen.observation, answer) < place(seen.observation, effect)
    assert (final(seen.observation), closed(seen.observation)) == ("cancelled", "settled")


def test_a_cancel_nobody_knows_the_fate_of_is_sent_again_with_its_id() -> None:
    """Until there is a definite answer."""
    seen = watch(CHAIN, Interruption("cancel", at("a", "received")), faults=Faults(indefinite_cancels=3))
    asked = events(seen.observation, Asked, verb="cancel")
    assert [one.id for one in asked] == ["r:cancel:1"] * 4
    assert outcomes(seen.observation, "cancel")[-1] == "accepted"


def test_each_cancel_is_a_command_of_its_own() -> None:
    """One that is given again is not taken for a repeat of the first."""
    again = Interruption("cancel", Site("time", ns=5 * MS))
    held = Interruption("delay", at("a", "applied"), ns=50 * MS, then=again)
    seen = watch(CHAIN, Interruption("cancel", at("a", "received"), then=held))
    assert [one.id for one in events(seen.observation, Asked, verb="cancel")] == ["r:cancel:1", "r:cancel:2"]


@pytest.mark.parametrize("action", ["lose-ack", "repeat", "kill"])
def test_the_acknowledgement_of_a_cancel_is_a_site(action: Action) -> None:
    """It is thrown away and asked for again, repeated, or the last thing the worker did."""
    strike = Interruption(action, Site("ack", verb="cancel"))
    seen = watch(CHAIN, Interruption("cancel", at("a", "applied")), strike)
    assert seen.observation.unfired == ()
    assert len(outcomes(seen.observation, "cancel")) == (1 if action == "kill" else 2)
    assert len(events(seen.observation, Died)) == (1 if action == "kill" else 0)
    assert (final(seen.observation), closed(seen.observation)) == ("cancelled", "settled")


def test_a_halted_run_is_not_stuck() -> None:
    """It rests for longer than it is watched for, goes on afterwards, and has settled in time."""
    halt = Interruption("halt", at("a", "received"), ns=6 * BOUNDS.settle_ns)
    seen = watch(CHAIN, halt)
    paused, unpaused = (events(seen.observation, Asked, verb=verb)[0] for verb in ("pause", "unpause"))
    assert unpaused.at_ns - paused.at_ns >= 6 * BOUNDS.settle_ns
    assert [one.at_ns > unpaused.at_ns for one in events(seen.observation, Received)] == [False, True]
    assert closed(seen.observation) == "settled"


def test_a_run_is_let_go_on_once_it_is_certainly_paused() -> None:
    """A pause whose fate nobody knows is sent again first: one that arrived after the last word would hold the run for good."""
    halt = Interruption("halt", at("a", "received"), ns=1 * MS)
    seen = watch(CHAIN, halt, faults=Faults(indefinite_pauses=3))
    pauses = events(seen.observation, Asked, verb="pause")
    (answer,) = events(seen.observation, Answered, ask=pauses[-1].ask)
    (unpause,) = events(seen.observation, Asked, verb="unpause")
    assert [one.id for one in pauses] == ["r:pause:1"] * 4
    assert answer.outcome == "ok"
    assert place(seen.observation, answer) < place(seen.observation, unpause)
    assert closed(seen.observation) == "settled"


@pytest.mark.parametrize("down_ns", [0, 700 * MS], ids=["at-once", "later"])
def test_a_pause_outlasts_a_death_in_it(down_ns: int) -> None:
    """Whoever died is back for as long as a takeover takes before the run is let go on: else nobody could see whether the
    restart has forgotten the pause.
    """
    kill = Interruption("kill", at("a", "applied"), ns=down_ns)
    seen = watch(CHAIN, Interruption("halt", at("a", "received"), ns=50 * MS, then=kill))
    (died,) = events(seen.observation, Died)
    back = events(seen.observation, Started)[-1]
    (unpause,) = events(seen.observation, Asked, verb="unpause")
    assert died.at_ns + down_ns <= back.at_ns
    assert unpause.at_ns - back.at_ns >= BOUNDS.grace_ns
    assert closed(seen.observation) == "settled"


def test_directions_come_in_order_and_the_last_one_counts() -> None:
    """Two of them with ids and nonces of their own, while the operation before it is held."""
    seen = watch(
        Plan(Seq("main", (Call("a", "ledger"), PAY))), Interruption("steer", at("a", "received"), target="pay")
    )
    first, second = events(seen.observation, Asked, verb="signal")
    assert (first.id, second.id) == ("r:pay:steer:1", "r:pay:steer:2")
    assert first.nonce != second.nonce
    assert first.operation == "pay"
    assert [one.payload for one in (first, second)] == [
        f'{{"nonce":"{one.nonce}","operation":"pay","params":{{"amount":{amount}}}}}'
        for one, amount in ((first, 101), (second, 102))
    ]
    assert seen.world.extras.params["pay"] == {"amount": 102}


def test_a_model_is_directed_to_use_more_than_was_set_aside_for_it() -> None:
    """All of it, and each direction more than the one before; what is asked stays."""
    first, second = directions_for(Model("think", "why?", 20, uses=10))
    assert set(first) == set(second) == {"prompt", "tokens", "uses"}
    assert 20 < first["tokens"] == first["uses"] < second["tokens"] == second["uses"]
    assert first["prompt"] == second["prompt"] == "why?"


def test_directions_come_while_the_desk_is_asked() -> None:
    """Whoever asks holds the approved call: both directions are answered before the desk answers, and the call comes after."""
    seen = watch(APPROVED, Interruption("steer", at("ok", "received"), target="pay"))
    first, second = (
        events(seen.observation, Answered, ask=one.ask)[0]
        for one in events(seen.observation, Asked, verb="signal", name="steer")
    )
    looked = events(seen.observation, Received, service="desk")[0]
    (told,) = events(seen.observation, Replied, call=looked.call)
    (paid,) = events(seen.observation, Received, op="pay")
    order = [place(seen.observation, one) for one in (looked, first, second, told, paid)]
    assert order == sorted(order)
    assert seen.observation.unfired == ()


def test_signals_that_nothing_waits_for() -> None:
    """One of no name in the plan, and at the end one more of a name that was known."""
    seen = watch(GATED, Interruption("unmatched", at("a", "applied")), Interruption("late-signal", Site("end")))
    assert outcomes(seen.observation, "signal") == ["unmatched", "buffered", "buffered"]
    assert [one.name for one in events(seen.observation, Asked, verb="signal")] == ["nobody", "go", "go"]
    assert seen.observation.unfired == ()


def test_a_signal_may_be_held_back_until_its_wait_has_run_out() -> None:
    """Where the wait has a time; it is sent nevertheless, once that is over."""
    plan = Plan(Seq("main", (Wait("w", "go", 200 * MS), Call("a", "ledger"))))
    seen = watch(plan, Interruption("late-signal", Site("waiting", "w")))
    (signal,) = events(seen.observation, Asked, verb="signal")
    assert signal.at_ns >= 200 * MS
    assert seen.world.journal.accepted["w"] == ""
    without = watch(GATED, Interruption("late-signal", Site("waiting", "w")))
    assert without.observation.unfired == ("late-signal@waiting:w",)
    assert closed(without.observation) == "settled"


def test_a_misused_id_brings_another_plan() -> None:
    """Which is on record, is definitely refused, and is not what a later repeat asks."""
    again = Interruption("repeat", at("b", "applied", verb="start"))
    seen = watch(CHAIN, Interruption("misuse", at("a", "applied")), again)
    assert [one.payload is not None for one in events(seen.observation, Asked, verb="start")] == [False, True, False]
    assert outcomes(seen.observation, "start") == ["ok", "error: another plan under a known id", "ok"]
    assert closed(seen.observation) == "settled"


def test_a_notice_tells_of_the_effect_twice_and_of_one_that_belongs_nowhere() -> None:
    """After its time; of an operation that has had no effect there is nothing to tell."""
    seen = watch(CHAIN, Interruption("notice", at("a", "applied"), ns=30 * MS, target="a"))
    (effect, *_), notices = events(seen.observation, Applied), events(seen.observation, Asked, name="notice")
    assert [one.nonce == effect.nonce for one in notices] == [True, True, False]
    assert outcomes(seen.observation, "signal") == ["released", "duplicate", "unmatched"]
    assert notices[0].at_ns - effect.at_ns >= 30 * MS
    never = watch(CHAIN, Interruption("notice", at("a", "received"), target="b"))
    assert len(never.observation.unfired) == 1


def test_a_notice_of_what_a_child_did_goes_to_the_child() -> None:
    """By the id that the operation has there; on record it is the one of the plan."""
    word = questions.notice("r", "kid/a", "n1", ("kid", "a"))
    assert (word.to, word.fields["payload"]) == ("r/kid", {"operation": "a", "nonce": "n1"})
    assert (word.run, word.operation, word.name) == ("r", "kid/a", "notice")


def test_a_crowd_is_started_and_followed_to_its_end() -> None:
    """Runs with names of their own, whose calls nothing strikes at; the run itself is as it was."""
    seen = watch(CHAIN, Interruption("crowd", at("a", "applied"), arg="5"))
    runs = {f"r-crowd-{n}" for n in range(1, 6)}
    assert {one.run for one in events(seen.observation, Asked, verb="start")} == {"r", *runs}
    assert {one.run for one in events(seen.observation, Received)} == {"r", *runs}
    last = {one.run: one.ask for one in events(seen.observation, Asked, verb="status")}
    ends = {run: events(seen.observation, Answered, ask=ask)[0].status for run, ask in last.items()}
    assert {status.state for status in ends.values() if status} == {"done"}
    assert closed(seen.observation) == "settled"


def test_a_crowd_that_is_forgotten_is_not_followed_for_ever() -> None:
    """The run that is judged has ended in time all the same."""
    seen = watch(CHAIN, Interruption("crowd", at("a", "applied"), arg="3"), faults=Faults(forgets_crowd=True))
    assert closed(seen.observation) == "settled"
    assert events(seen.observation, Closed)[0].at_ns < 3 * BOUNDS.settle_ns


@pytest.mark.parametrize("arg", [None, "many", "0", "9999"])
def test_a_crowd_without_a_number_has_not_fired(arg: str | None) -> None:
    """Nor one that is too large."""
    seen = watch(CHAIN, Interruption("crowd", at("a", "applied"), arg=arg))
    assert len(seen.observation.unfired) == 1


# ---- decisions


def test_a_denial_ends_the_run() -> None:
    """What it was about is never asked for."""
    seen = watch(APPROVED, Interruption("deny", AT_OK))
    assert outcomes(seen.observation, "decide") == ["denied"]
    assert events(seen.observation, Received, op="pay") == []
    assert (final(seen.observation), closed(seen.observation)) == ("failed", "settled")


def test_a_forged_decision_comes_first() -> None:
    """By somebody without authority, who says yes and then no; then the run goes on by the real one."""
    seen = watch(APPROVED, Interruption("forge", AT_OK))
    assert [one.actor for one in events(seen.observation, Asked, verb="decide")] == ["mallory", "mallory", "alice"]
    assert outcomes(seen.observation, "decide") == ["error: no-authority", "error: no-authority", "approved"]
    assert final(seen.observation) == "done"


def test_authority_is_withdrawn_before_the_release_can_look_it_up() -> None:
    """The release is refused, and when authority is back the approval is decided anew, under another id."""
    seen = watch(APPROVED, Interruption("revoke", AT_OK, ns=200 * MS))
    assert [one.granted for one in events(seen.observation, Authority)] == [False, True]
    withdrawn, given = events(seen.observation, Authority)
    looks = events(seen.observation, Received, service="desk")
    assert [withdrawn.at_ns <= one.at_ns <= given.at_ns for one in looks] == [True, False]
    assert [one.id for one in events(seen.observation, Asked, verb="decide")] == ["r:ok:1", "r:ok:2"]
    assert (final(seen.observation), closed(seen.observation)) == ("done", "settled")


def test_whoever_has_lost_authority_decides_nothing_else() -> None:
    """Another approval that is asked for meanwhile waits until authority is back."""
    other = Seq("other", (Approve("too", "more"), Call("more", "ledger", {"amount": 8})))
    plan = Plan(Par("both", (Seq("main", (Approve("ok", "pay"), PAY)), other)))
    seen = watch(plan, Interruption("revoke", AT_OK, ns=200 * MS))
    _, given = events(seen.observation, Authority)
    decided = events(seen.observation, Asked, verb="decide", operation="too")
    assert [one.id for one in decided] == ["r:too:1"]
    assert decided[0].at_ns >= given.at_ns
    assert (final(seen.observation), closed(seen.observation)) == ("done", "settled")


def test_a_decision_may_come_too_late() -> None:
    """Only once its validity has passed; nothing is decided before, and the run is not stuck meanwhile."""
    seen = watch(BRIEF, Interruption("late-decision", AT_OK))
    (decision,) = events(seen.observation, Asked, verb="decide")
    assert decision.at_ns >= 300 * MS
    assert outcomes(seen.observation, "decide") == ["error: expired"]
    assert final(seen.observation) == "failed"
    assert watch(APPROVED, Interruption("late-decision", AT_OK)).observation.unfired == ("late-decision@waiting:ok",)


def test_two_decisions_cross() -> None:
    """Yes and no under two ids; the first one counts."""
    seen = watch(APPROVED, Interruption("cross", AT_OK))
    assert [(one.id, one.decision) for one in events(seen.observation, Asked, verb="decide")] == [
        ("r:ok:1", "approve"),
        ("r:ok:2", "deny"),
    ]
    assert outcomes(seen.observation, "decide") == ["approved", "error: already-decided"]
    assert final(seen.observation) == "done"


def test_a_stale_decision_is_followed_by_one_for_what_is_shown() -> None:
    """Directions change what the approval is about: the old digest is void, the new one counts."""
    seen = watch(APPROVED, Interruption("stale-decision", AT_OK))
    old, new = events(seen.observation, Asked, verb="decide")
    assert (old.digest, new.digest) == (approval_digest(PAY), approval_digest(PAY, {"amount": 101}))
    assert outcomes(seen.observation, "decide") == ["error: stale-digest", "approved"]
    assert final(seen.observation) == "done"


@pytest.mark.parametrize("action", ["lose-ack", "repeat", "kill"])
def test_the_acknowledgement_of_a_decision_is_a_site(action: Action) -> None:
    """A second one for the same decision has its id, and changes nothing."""
    seen = watch(APPROVED, Interruption(action, Site("ack", "ok", verb="decide")))
    assert seen.observation.unfired == ()
    assert {one.id for one in events(seen.observation, Asked, verb="decide")} == {"r:ok:1"}
    assert len(outcomes(seen.observation, "decide")) == (1 if action == "kill" else 2)
    assert (final(seen.observation), closed(seen.observation)) == ("done", "settled")


def test_a_kill_while_a_decision_is_waited_for_comes_before_it() -> None:
    """The next worker is found waiting, and is told."""
    seen = watch(APPROVED, Interruption("kill", AT_OK))
    (decision,) = events(seen.observation, Asked, verb="decide")
    assert decision.incarnation == 2
    assert closed(seen.observation) == "settled"


# ---- machines


def test_a_unit_may_stay_down_for_a_while() -> None:
    """For longer than a run is watched for: nothing is asked of the dead, and no time counts."""
    ns = 6 * BOUNDS.settle_ns
    seen = watch(CHAIN, Interruption("kill", at("a", "applied"), ns=ns))
    (death,), (down,), (_, back) = (events(seen.observation, kind) for kind in (Died, Down, Started))
    assert (down.unit, down.ns) == ("worker", ns)
    assert back.at_ns - death.at_ns >= ns
    assert [one for one in events(seen.observation, Asked) if death.at_ns < one.at_ns < back.at_ns] == []
    assert place(seen.observation, events(seen.observation, Quiet)[0]) > place(seen.observation, back)
    assert closed(seen.observation) == "settled"


def test_poison_kills_at_every_request_and_gives_up() -> None:
    """At most a dozen times, each on record; it is one interruption that fired."""
    seen = watch(CHAIN, Interruption("kill", at("a", "received", nth=0)))
    assert len(events(seen.observation, Died)) == len(events(seen.observation, Fired)) == 12
    assert seen.observation.fired == ("kill@a#0.received",)
    assert [one.incarnation for one in events(seen.observation, Received, op="a")] == list(range(1, 14))
    assert closed(seen.observation) == "settled"


def test_another_version_of_the_code_is_deployed() -> None:
    """Every worker from the next one on is told which, and it is on record."""
    seen = watch(CHAIN, Interruption("deploy", at("a", "applied"), arg="2"), Interruption("kill", at("b", "applied")))
    assert seen.world.launches == [("worker", 1, "", ""), ("worker", 2, "2", ""), ("worker", 3, "2", "")]
    assert [one.code for one in events(seen.observation, Started)] == ["", "2", "2"]
    assert watch(CHAIN, Interruption("deploy", at("a", "applied"))).observation.fired == ()


def test_a_plan_says_which_code_it_was_written_for() -> None:
    """The first worker runs that; an engine has no version of it."""
    seen = watch(Plan(CHAIN.root, code="1"), units=("engine", "worker"))
    assert [(one.unit, one.code) for one in events(seen.observation, Started)] == [("engine", ""), ("worker", "1")]


def test_a_unit_forgets_its_audit_once() -> None:
    """The launch after the kill is told so, and no other."""
    forget = Interruption("forget", at("a", "applied", unit="engine"))
    kill = Interruption("kill", at("b", "applied", unit="engine"))
    seen = watch(GATED, forget, kill, units=("engine", "worker"))
    told = [(unit, forgets) for unit, _, _, forgets in seen.world.launches if unit == "engine"]
    assert told == [("engine", ""), ("engine", "audit"), ("engine", "")]
    assert seen.observation.unfired == ()


def test_a_second_worker_stands_beside_the_first() -> None:
    """Nobody dies; what both of them ask is told apart, and only the first one is asked."""
    slow = Interruption("delay", at("b", "applied"), ns=100 * MS)
    seen = watch(GATED, Interruption("second", at("a", "applied")), slow)
    assert [(one.unit, one.incarnation) for one in events(seen.observation, Started)] == [("worker", 1), ("worker", 2)]
    assert events(seen.observation, Died) == []
    assert {one.incarnation for one in events(seen.observation, Asked)} == {1}
    assert {one.incarnation for one in events(seen.observation, Received)} == {1, 2}
    assert closed(seen.observation) == "settled"


def test_a_second_worker_may_be_struck_at_its_own_call() -> None:
    """It dies and is not started again; the first one goes on."""
    kill = Interruption("kill", at("b", "applied"))
    again = Interruption("kill", at("b", "received", nth=2))
    seen = watch(GATED, Interruption("second", at("a", "applied")), kill, again)
    assert {one.incarnation for one in events(seen.observation, Died)} <= {1, 2}
    assert seen.observation.unfired == ()
    assert closed(seen.observation) == "settled"


@pytest.mark.parametrize("action", ["flip", "wipe"])
def test_the_state_of_a_dead_unit_is_damaged_before_it_comes_back(action: Action) -> None:
    """Killed first (the unit asserts that), struck then, and started after that."""
    seen = watch(CHAIN, Interruption(action, at("a", "applied", unit="engine")), units=("engine", "worker"))
    assert seen.world.done == [(action, "engine")]
    assert [one.unit for one in events(seen.observation, Died)] == ["engine"]
    assert seen.observation.unfired == ()
    assert closed(seen.observation) == "settled"


@pytest.mark.parametrize("over_damage", ["exit", "refuse", "errors"])
def test_a_target_that_stops_over_damage_has_stopped(over_damage: str) -> None:
    """However often it is started: it is neither stuck nor impossible to judge, and is left alone in the end."""
    seen = watch(CHAIN, Interruption("flip", at("a", "applied")), habits=Habits(over_damage=over_damage))
    assert closed(seen.observation) == "stopped"
    exits = [one for one in events(seen.observation, Died) if one.cause == "exited"]
    assert len(exits) == (4 if over_damage == "exit" else 0)
    assert OBLIGATIONS["DUR-6"].judge(seen.observation.history).violations == ()


def test_damage_before_the_start_was_acknowledged_ends_the_run_too() -> None:
    """The start is asked no more once the target has stopped."""
    flip = Interruption("flip", Site("ack", verb="start"))
    seen = watch(CHAIN, flip, habits=Habits(over_damage="exit", loses_signal_acks=True))
    assert closed(seen.observation) == "stopped"


def test_a_target_that_stops_for_no_damage_is_still_not_judged() -> None:
    """Without any damage to its storage, one that never stays up says nothing about its promises."""
    with pytest.raises(SimkitError, match="worker-keeps-dying"):
        watch(CHAIN, Interruption("wipe", at("a", "applied")), habits=Habits(exits_at_boot=99))


def test_damage_to_nothing_has_not_fired() -> None:
    """A unit that has stored nothing dies all the same, and the run says that no bit was flipped."""
    seen = watch(CHAIN, Interruption("flip", Site("time", ns=0)), habits=Habits(never_acknowledges=True))
    assert seen.observation.fired == ()


def test_a_clock_jumps_and_a_disk_is_full_for_a_while() -> None:
    """Nobody dies; the disk has room again after its time, and the run is not stuck meanwhile."""
    jump = Interruption("jump", at("a", "applied", unit="engine"), ns=-5 * MS)
    full = Interruption("full", at("b", "applied"), ns=6 * BOUNDS.settle_ns)
    seen = watch(CHAIN, jump, full, units=("engine", "worker"))
    (jumped, on, off) = seen.world.done
    assert jumped == ("jump", "engine", -5 * MS)
    assert (on[:3], off[:3]) == (("full", "worker", True), ("full", "worker", False))
    assert off[3] - on[3] == 6 * BOUNDS.settle_ns
    assert events(seen.observation, Died) == []
    assert closed(seen.observation) == "settled"


def test_a_clock_that_nobody_looks_at_has_not_jumped() -> None:
    """The run says so."""
    jump = Interruption("jump", at("a", "applied"), ns=5 * MS)
    seen = watch(CHAIN, jump, habits=Habits(reads_clocks=False))
    assert (seen.observation.fired, seen.observation.unfired) == ((), (jump.label,))


def test_the_next_operation_of_a_kind_fails() -> None:
    """The boundary tells from when on, and the world is told of what kind."""
    seen = watch(CHAIN, Interruption("eio", Site("boundary", nth=2), arg="fsync"))
    assert seen.world.done == [("eio", True, "fsync")]
    assert seen.observation.fired == ("eio@worker.boundary#2=fsync",)


def test_an_operation_of_the_disk_fails_once() -> None:
    """Where the boundary is met; where it is not, it has not fired."""
    seen = watch(CHAIN, Interruption("eio", Site("boundary", nth=2)))
    assert seen.world.done == [("eio", True)]
    assert seen.observation.fired == ("eio@worker.boundary#2",)
    assert watch(CHAIN, Interruption("eio", Site("boundary", nth=99))).observation.fired == ()


def test_a_key_expires_with_the_reply_that_was_lost() -> None:
    """The second request under it is executed anew; before anything was executed there is nothing to forget."""
    seen = watch(CHAIN, Interruption("expire", at("a", "applied")))
    first, second = events(seen.observation, Received, op="a")
    assert first.key == second.key
    assert [one.kind for one in events(seen.observation, Replied)][:2] == ["executed", "executed"]
    assert [one.delivery for one in events(seen.observation, Replied)][:2] == ["dropped", "sent"]
    assert watch(CHAIN, Interruption("expire", at("a", "received"))).observation.unfired == ("expire@a#1.received",)


def test_what_follows_something_that_killed_nobody_strikes_at_once() -> None:
    """There is nobody to come back."""
    then = Interruption("kill", at(None, "received"))
    seen = watch(CHAIN, Interruption("unmatched", at("a", "applied"), then=then))
    assert seen.observation.unfired == ()
    assert events(seen.observation, Died)[0].at_ns >= events(seen.observation, Fired)[0].at_ns


@pytest.mark.parametrize("action", ACTIONS)
def test_no_action_is_unknown_to_the_saboteur(action: Action) -> None:
    """Where there is nobody and nothing to strike it is given back, and the run goes on."""
    plan = Plan(Par("main", (Call("a", "ledger"), Call("b", "ledger"))))
    seen = watch(plan, Interruption(action, Site("waiting", "nothing")))
    assert seen.observation.unfired == (f"{action}@waiting:nothing",)
    assert closed(seen.observation) == "settled"

"""Control: stops, pauses, steering and notices, each durable, each once, each with a disposition that can be read."""

from __future__ import annotations

import pytest

from reference_runtime import Refusal, Store, views
from reference_runtime.model import Grant, Rejected
from tests.runtime_plans import answer_to, artifact, check, child
from tests.runtime_rig import (
    call,
    finish,
    in_hand,
    par,
    plan,
    race,
    run_out,
    seq,
    settle,
    sleep,
    states,
    under,
    undo,
    wait,
)


def shown(store: Store) -> tuple[str, str | None]:
    status = views.status(store, "t")
    return status["state"], status["cancel"]


# -- stopping


def test_after_a_stop_nothing_new_is_admitted(store, reopened):
    """Neither what was claimable nor what would follow, in this life or the next; what was in flight still counts."""
    store.submit("t", plan(par(call("a"), call("b")), call("z")))
    tickets = in_hand(store)
    settle(store, tickets["a"])
    assert store.cancel("t", "c") == {"disposition": "accepted"}
    assert shown(store) == ("running", "accepted")
    store = reopened(store)
    assert settle(store, tickets["b"], nonce="late") is None
    assert in_hand(store) == {}
    status = views.status(store, "t")
    assert (status["state"], status["cancel"], status["reason"]) == ("cancelled", "quiescent", "cancelled")
    assert states(status) == {"a": "succeeded", "b": "succeeded", "z": "planned"}


def test_a_stop_that_comes_too_late_says_so(store):
    """The end stays what it was."""
    store.submit("t", plan(call("a")))
    finish(store)
    assert store.cancel("t", "c") == {"disposition": "too-late", "why": "the task has ended: completed"}
    assert shown(store) == ("done", None)


def test_a_stop_repeated_is_one_stop(store):
    """The same id answers as at first, also after the end; the id of another command is refused."""
    store.submit("t", plan(wait("w", "go")))
    assert store.cancel("t", "c") == store.cancel("t", "c") == {"disposition": "accepted"}
    assert store.cancel("t", "d") == {"disposition": "too-late", "why": "the task has ended: cancelled"}
    with pytest.raises(Refusal, match="conflict"):
        store.pause("t", "c")


def test_a_stop_ends_waits_and_timers(store):
    """Nothing is waited for any more."""
    store.submit("t", plan(par(wait("w", "go"), sleep("s", 10**15))))
    store.cancel("t", "c")
    assert shown(store) == ("cancelled", "quiescent")
    assert store.signal("t", "1", "go", {"nonce": "n"})["disposition"] == "late"


def test_a_stop_is_delivered_to_those_who_hold_something(store):
    """Accepted, then told to each holder, then nothing in hand: three things, in this order."""
    store.submit("t", plan(par(call("a"), call("b"))))
    tickets = in_hand(store)
    a, b = (tickets[name].generation for name in "ab")
    assert store.tell("w", [a, b]) == []
    store.cancel("t", "c")
    assert store.tell("w", [a]) == [a]
    assert shown(store) == ("running", "accepted")
    assert store.tell("other", [b]) == []
    assert store.tell("w", [a, b]) == [a, b]
    assert shown(store) == ("running", "delivered")
    settle(store, tickets["a"])
    assert shown(store) == ("running", "delivered")
    settle(store, tickets["b"], "failed")
    assert shown(store) == ("cancelled", "quiescent")


def test_what_ignores_a_stop_is_taken_by_force(store, clock, reopened):
    """After its grace, in whatever life: the effect is unresolved and visible, and the late word is evidence."""
    store.submit("t", plan(par(call("a"), call("m", "mailer"))))
    tickets = in_hand(store)
    store.cancel("t", "c")
    clock[0] += store.policy.grace_ns - 1
    store = reopened(store)
    store.fire_timers()
    assert shown(store)[0] == "running"
    clock[0] += 1
    assert store.fire_timers() == 1
    status = views.status(store, "t")
    assert (status["state"], status["cancel"]) == ("cancelled", "quiescent")
    assert states(status) == {"a": "unresolved", "m": "unresolved"}
    assert isinstance(settle(store, tickets["a"]), Rejected)
    assert states(views.status(store, "t"))["a"] == "unresolved"


def test_a_stop_asked_for_again_puts_its_end_off_no_further(store, clock):
    """The grace is counted from the first stop, whoever asks again, also of the owner of what is stopping."""
    inner = {"op": "child", "id": "k", "plan": plan(call("a"))}
    store.submit("t", plan(inner))
    in_hand(store)
    store.cancel("t/k", "first")
    for number in range(4):
        clock[0] += store.policy.grace_ns // 4
        store.cancel("t/k" if number % 2 else "t", f"again-{number}")
    store.fire_timers()
    assert store.leases() == []
    assert views.status(store, "t/k")["state"] == "cancelled"


@pytest.mark.parametrize("is_stopping", [True, False])
def test_a_stop_leaves_the_sweeping_to_go_on(store, clock, is_stopping):
    """What lies around of an upload is cleared away also if the sweep was about to be tried again as the stop came."""
    store.submit("t", plan(artifact("a")))
    if is_stopping:
        upload = in_hand(store)["a"]
        store.cancel("t", "first")
        settle(store, upload, "failed")
    else:
        settle(store, in_hand(store)["a"], "failed")
    settle(store, in_hand(store)["a~sweep"], "unknown")
    assert store.cancel("t", "again") == {"disposition": "accepted"}
    clock[0] += store.policy.backoff_ns_max
    store.settle(under(in_hand(store)["a~sweep"]), "succeeded", {"committed": False}, "")
    assert (shown(store)[0], store.artifacts("t")["artifacts"]) == ("cancelled", [])


def test_a_lost_answer_is_not_tried_again_after_a_stop(store):
    """Nothing is sent again; where something may have happened that stays visible, and where nothing did it says so."""
    store.submit("t", plan(par(call("a"), call("b"), call("c"))))
    tickets = in_hand(store)
    settle(store, tickets["a"], "unknown")
    store.cancel("t", "c")
    settle(store, tickets["b"], "unknown")
    settle(store, tickets["c"], "unsent")
    status = views.status(store, "t")
    assert (status["state"], states(status)) == ("cancelled", {"a": "unresolved", "b": "unresolved", "c": "skipped"})
    assert "a unresolved" in status["reason"]


@pytest.mark.parametrize(("tries", "state"), [(1, "skipped"), (2, "unresolved")])
@pytest.mark.parametrize("service", ["ledger", "reader", "fenced"])
def test_what_is_handed_back_after_a_stop_is_not_given_out_again(store, service, tries, state):
    """A worker that leaves gives back what it did not send; what was tried before, and got lost, stays visible."""
    store.submit("t", plan(call("a", service)))
    if tries > 1:
        settle(store, in_hand(store)["a"], "unknown")
    in_hand(store)
    store.cancel("t", "stop")
    assert len(store.hand_back("w")) == 1
    assert in_hand(store) == {}
    assert (shown(store), states(views.status(store, "t"))) == (("cancelled", "quiescent"), {"a": state})


@pytest.mark.parametrize("report", ["busy", "unsent"])
def test_what_was_granted_for_another_try_is_not_dispatched_after_a_stop(store, report):
    """A blind call is granted before it is dispatched, each time; a stop takes the grant of a repeat back like a first one."""
    store.submit("t", plan(call("a", "mailer")))
    settle(store, in_hand(store)["a"], report)
    (grant,) = store.claim("w", [], 1)
    store.cancel("t", "stop")
    assert isinstance(store.dispatch(grant), Rejected)
    assert (shown(store), in_hand(store)) == (("cancelled", "quiescent"), {})


def test_a_stop_still_asks_what_became_of_an_effect(store):
    """A question changes nothing at the receiver, and tells whether there is something to undo."""
    store.submit("t", plan(call("a", "registry"), undo("ua", "a"), call("z")))
    tickets = in_hand(store)
    store.cancel("t", "c")
    settle(store, tickets["a"], "unknown")
    asked = in_hand(store)
    assert asked["a"].action == "lookup"
    settle(store, asked["a"], "found")
    assert run_out(store) == ["ua"]
    assert (shown(store)[0], states(views.status(store, "t"))["ua"]) == ("cancelled", "succeeded")


def test_a_stopped_run_undoes_what_it_did(store, reopened):
    """Bounded cleanup, also over a restart; only then is it cancelled."""
    store.submit("t", plan(call("a"), undo("ua", "a"), wait("w", "go")))
    finish(store)
    store.cancel("t", "c")
    assert shown(store) == ("running", "quiescent")
    store = reopened(store)
    assert run_out(store) == ["ua"]
    assert shown(store) == ("cancelled", "quiescent")


# -- pausing


def test_after_a_pause_nothing_is_dispatched_until_it_ends(store, reopened):
    """What was granted and not dispatched is taken back; what was in flight counts; a restart changes nothing."""
    store.submit("t", plan(par(call("a"), call("m", "mailer")), call("z")))
    leases = store.claim("w", [], 2)
    ticket, grant = leases
    assert isinstance(grant, Grant)
    store.pause("t", "p")
    assert isinstance(store.dispatch(grant), Rejected)
    store = reopened(store)
    settle(store, ticket)
    assert (in_hand(store), store.next_work_ns()) == ({}, None)
    assert views.status(store, "t")["paused"] is True
    store.unpause("t", "u")
    assert run_out(store) == ["m", "z"]
    assert views.status(store, "t")["state"] == "done"


def test_what_a_pause_takes_back_is_in_nobodys_hands(store):
    """A child whose grant is taken back could go on, and does not run: neither while it is paused nor after that."""
    store.submit("t", plan(child("k", call("a", "mailer"))))
    (grant,) = store.claim("w", [], 1)
    assert isinstance(grant, Grant)
    assert store.children("t")[0]["state"] == "running"
    for command in (store.pause, store.unpause):
        command("t", command.__name__)
        assert (store.leases(), store.children("t")[0]["state"]) == ([], "runnable")


def test_other_runs_go_on_during_a_pause(store):
    """A pause is of one run."""
    store.submit("t", plan(call("a")))
    store.submit("other", plan(call("b")))
    store.pause("t", "p")
    assert list(in_hand(store)) == ["b"]


def test_a_pause_repeated_does_not_pause_again(store):
    """Its id answers as at first, though the run was unpaused meanwhile."""
    store.submit("t", plan(call("a")))
    store.pause("t", "p")
    store.unpause("t", "u")
    assert store.pause("t", "p") == {"disposition": "accepted"}
    assert list(in_hand(store)) == ["a"]


# -- steering


def test_directions_are_taken_in_order_until_dispatch(store):
    """The last one accepted counts; after the dispatch it is late, and the repeat says what the first said."""
    store.submit("t", plan(call("a", amount=1), call("z")))
    for nth in (1, 2):
        told = store.signal(
            "t", f"s{nth}", "steer", {"operation": "a", "params": {"amount": 100 + nth}, "nonce": f"{nth}"}
        )
        assert (told["disposition"], told["consumer"]) == ("released", "t.1:a")
    ticket = in_hand(store)["a"]
    assert ticket.params == {"amount": 102}
    assert store.signal("t", "s3", "steer", {"operation": "a", "params": {}, "nonce": "3"})["disposition"] == "late"
    settle(store, ticket, "unknown")
    assert in_hand(store)["a"].params == {"amount": 102}
    again = store.signal("t", "s1", "steer", {"operation": "a", "params": {"amount": 101}, "nonce": "1"})
    assert again["disposition"] == "released"


def test_a_grant_from_before_a_direction_is_void(store):
    """Whoever read the operation before it was changed does not own it any more; the next holder gets the new one."""
    store.submit("t", plan(call("m", "mailer", amount=1)))
    (grant,) = store.claim("w", [], 1)
    store.signal("t", "s", "steer", {"operation": "m", "params": {"amount": 2}, "nonce": "s"})
    assert isinstance(store.dispatch(grant), Rejected)  # type: ignore[arg-type]
    assert in_hand(store)["m"].params == {"amount": 2}


def test_a_direction_to_nothing_is_unmatched(store):
    """It changes nothing and releases no wait, though one is called so."""
    store.submit("t", plan(wait("w", "steer")))
    for nth, operation in enumerate(("x", "w")):
        said = {"operation": operation, "params": {}, "nonce": "s"}
        assert store.signal("t", f"s{nth}", "steer", said)["disposition"] == "unmatched"
    assert states(views.status(store, "t")) == {"w": "planned"}


# -- notices


def test_a_notice_settles_the_effect_nobody_knew_of(store):
    """It and no other; the run goes on from there, once."""
    store.submit("t", plan(call("m", "mailer"), call("z", carries=("m",))))
    finish(store, "unknown")
    assert views.status(store, "t")["state"] == "blocked"
    told = store.signal("t", "n", "notice", {"operation": "m", "nonce": "seen"})
    assert told["disposition"] == "released"
    assert store.signal("t", "n2", "notice", {"operation": "m", "nonce": "other"})["disposition"] == "unmatched"
    assert in_hand(store)["z"].carries == {"m": "seen"}
    assert states(views.status(store, "t"))["m"] == "reconciled"


@pytest.mark.parametrize("operation", ["a", "z", "nothing"])
def test_a_notice_of_something_else_changes_nothing(store, operation):
    """Of what is known, of what has not begun, and of what is not there."""
    store.submit("t", plan(call("a"), call("b"), call("z")))
    finish(store, nonce="mine")
    before = states(views.status(store, "t"))
    assert store.signal("t", "n", "notice", {"operation": operation, "nonce": "x"})["disposition"] == "unmatched"
    assert states(views.status(store, "t")) == before
    assert views.status(store, "t")["operations"][0]["nonce"] == "mine"


@pytest.mark.parametrize("lost", [1, 2])
def test_a_notice_stands_for_no_content(store, clock, lost):
    """Content is accepted by its digest: a word about it settles nothing, and it is uploaded again, or looked for and found."""
    store.submit("t", plan({**artifact("a"), "tries": 2}, check("c", "a")))
    word = {"operation": "a", "nonce": "said"}
    for number in range(lost):
        upload = in_hand(store)["a"]
        assert store.signal("t", f"early-{number}", "notice", word)["disposition"] == "unmatched"
        settle(store, upload, "unknown")
        assert store.signal("t", f"late-{number}", "notice", word)["disposition"] == "unmatched"
        clock[0] += store.policy.backoff_ns_max + store.policy.landing_ns
    (ticket,) = in_hand(store).values()
    assert ticket.operation == ("a" if lost == 1 else "a~sweep")
    store.settle(under(ticket), "succeeded", {**answer_to(upload), "committed": True}, "")
    (one,) = store.artifacts("t")["artifacts"]
    assert (one["operation"], one["version"], one["state"]) == ("a", 1, "accepted")
    assert in_hand(store)["c"].fields["version"] == 1


def test_a_notice_stands_for_no_verdict_and_no_sweep(store, clock):
    """What a checker has found is what it said, and what lies around is cleared away by looking."""
    store.submit("t", plan(artifact("a"), check("c", "a")))
    upload = in_hand(store)["a"]
    store.settle(under(upload), "succeeded", answer_to(upload), "")
    asked = in_hand(store)["c"]
    store.settle(under(asked), "succeeded", answer_to(asked, "skipped"), "")
    store.submit("u", plan(artifact("a")))
    settle(store, in_hand(store)["a"], "failed")
    settle(store, in_hand(store)["a~sweep"], "unknown")
    for task, name in (("t", "c"), ("u", "a~sweep")):
        told = store.signal(task, "n", "notice", {"operation": name, "nonce": "said"})
        assert told["disposition"] == "unmatched"
    assert states(views.status(store, "t"))["c"] == "unresolved"
    clock[0] += store.policy.backoff_ns_max
    assert list(in_hand(store)) == ["a~sweep"]


def test_a_notice_ends_the_search(store):
    """What was being looked up is not asked about again."""
    store.submit("t", plan(call("a", "registry")))
    finish(store, "unknown")
    store.signal("t", "n", "notice", {"operation": "a", "nonce": "x"})
    assert views.status(store, "t")["state"] == "done"
    assert in_hand(store) == {}


def test_a_notice_that_comes_before_the_loss_is_kept(store, reopened):
    """The call is under way: the word counts if its answer gets lost, and is of no matter if it comes."""
    store.submit("t", plan(par(call("m", "mailer"), call("n", "mailer"))))
    tickets = in_hand(store)
    for name in ("m", "n"):
        told = store.signal("t", f"about-{name}", "notice", {"operation": name, "nonce": f"seen-{name}"})
        assert told["disposition"] == "buffered"
    store = reopened(store)
    store.reclaim(tickets["m"].generation)
    settle(store, tickets["n"], nonce="answered")
    status = views.status(store, "t")
    assert (status["state"], status["result"]) == ("done", {"m": "seen-m", "n": "answered"})
    assert status["signals"]["about-m"] == "released"


@pytest.mark.parametrize("is_stopping", [True, False])
def test_a_notice_about_an_earlier_try_counts_when_the_next_one_is_handed_back(store, is_stopping):
    """The receiver took longer than the question about it: it is not sent a second time once its word is there."""
    store.submit("t", plan(call("a", "registry")))
    settle(store, in_hand(store)["a"], "unknown")
    settle(store, in_hand(store)["a"], "missing")
    in_hand(store)
    store.signal("t", "n", "notice", {"operation": "a", "nonce": "seen"})
    if is_stopping:
        store.cancel("t", "stop")
    store.hand_back("w")
    status = views.status(store, "t")
    assert (states(status), status["signals"], in_hand(store)) == ({"a": "reconciled"}, {"n": "released"}, {})
    assert status["state"] == ("cancelled" if is_stopping else "done")


def test_what_is_handed_back_beside_a_race_that_it_decides(store):
    """The word about one of them wins the race; what was granted of the others is taken away with it."""
    store.submit("t", plan(race("r", call("a", "registry"), seq(call("x"), call("b", "mailer")))))
    (asked,) = store.claim("w", [], 1)
    settle(store, asked, "unknown")
    tickets = in_hand(store)
    settle(store, tickets["a"], "missing")
    in_hand(store)
    settle(store, tickets["x"])
    held = [generation for generation, _ in store.leases()]
    assert [one.operation for one in store.claim("w", held, 9)] == ["b"]
    store.signal("t", "n", "notice", {"operation": "a", "nonce": "seen"})
    store.hand_back("w")
    assert store.leases() == []
    assert states(views.status(store, "t")) == {
        "a": "reconciled",
        "x": "succeeded",
        "b": "skipped",
        "r": "succeeded",
    }


def test_questions_after_a_stop_are_bounded_by_its_grace(store, clock):
    """As long as one may be asked the run is not quiescent; at the end of the grace it stays unresolved."""
    store.submit("t", plan(call("a", "registry")))
    tickets = in_hand(store)
    store.cancel("t", "c")
    store.tell("w", [tickets["a"].generation])
    settle(store, tickets["a"], "unknown")
    assert shown(store) == ("running", "delivered")
    clock[0] += store.policy.grace_ns
    store.fire_timers()
    assert shown(store) == ("cancelled", "quiescent")
    assert states(views.status(store, "t")) == {"a": "unresolved"}

"""Deadlines: a run ends with its time, at work or waiting, and neither a restart nor a retry gives it more."""

from __future__ import annotations

import pytest

from reference_runtime import Refusal, Store, views
from reference_runtime.model import Rejected, Ticket
from tests.runtime_plans import child, claim, settle, wanting
from tests.runtime_rig import approve, call, finish, par, plan, sleep, states, undo, wait


def ended(store: Store, task: str = "t") -> tuple[str, str]:
    """State and reason of a run."""
    shown = views.status(store, task)
    return shown["state"], shown["reason"]


@pytest.mark.parametrize(
    "waiting", [wait("w", "go"), sleep("w", 10_000), approve("w", "a")], ids=["signal", "timer", "decision"]
)
def test_a_run_that_only_waits_ends_at_its_deadline(store, clock, reopened, waiting):
    """Not before it, once, and for that reason; a restart neither forgets nor renews it."""
    store.submit("t", wanting(plan(waiting, call("a")), deadline_ns=500))
    clock[0] += 499
    store = reopened(store)
    assert store.fire_timers() == 0
    clock[0] += 1
    assert store.fire_timers() == 1
    assert ended(store) == ("failed", "deadline")
    assert (store.next_timer_ns(), claim(store)) == (None, [])


def test_the_time_a_run_may_take_ends_it_while_it_waits(store, clock):
    """As a deadline does, for a reason of its own; of two ends the earlier one counts."""
    store.submit("t", wanting(plan(wait("w", "go")), allowance={"elapsed_ns": 300}, deadline_ns=500))
    clock[0] += 300
    store.fire_timers()
    assert ended(store) == ("failed", "allowance-exhausted: elapsed")
    assert views.status(store, "t")["usage"]["elapsed_ns"]["consumed"] == 300


def test_what_has_ended_before_its_deadline_stays_what_it_is(store, clock, reopened):
    """Also where both are found due at once, by a server that was away."""
    store.submit("t", wanting(plan(par(call("m", "mailer"), sleep("s", 300))), deadline_ns=500))
    finish(store, "unknown")
    clock[0] += 600
    store = reopened(store)
    store.fire_timers()
    assert (ended(store)[0], states(views.status(store, "t"))) == ("blocked", {"m": "unresolved", "s": "succeeded"})


def test_no_timer_fires_of_what_has_ended(store, clock):
    """What an approval's end has withdrawn does not succeed because it was due as well."""
    gated = par(approve("ok", "a", validity_ns=300), sleep("s", 400))
    store.submit("t", plan(gated, call("a")))
    clock[0] += 500
    store.fire_timers()
    assert (ended(store)[0], states(views.status(store, "t"))["s"]) == ("failed", "planned")


@pytest.mark.parametrize("late_ns", [0, 500])
def test_a_run_that_goes_on_by_a_late_word_has_its_deadline(store, clock, late_ns):
    """It had ended, with an effect nobody knew of; as it goes on it has the time that it was given, and no more."""
    store.submit("t", wanting(plan(call("m", "mailer"), wait("w", "go")), deadline_ns=500))
    finish(store, "unknown")
    assert (ended(store)[0], store.next_timer_ns()) == ("blocked", None)
    clock[0] += late_ns
    store.signal("t", "n", "notice", {"operation": "m", "nonce": "late"})
    assert (ended(store)[0], store.next_timer_ns()) == ("waiting", 10**15 + 500)
    clock[0] += 500 - late_ns
    store.fire_timers()
    assert ended(store) == ("failed", "deadline")


def test_what_is_under_way_is_followed_to_its_end(store, clock):
    """Its answer still counts for itself, and what was done is undone."""
    work = plan(call("a"), call("b"), undo("u", "a"))
    store.submit("t", wanting(work, deadline_ns=500))
    finish(store)
    (ticket,) = claim(store)
    clock[0] += 500
    store.fire_timers()
    assert views.status(store, "t")["state"] == "running"
    settle(store, ticket)
    (undoing,) = claim(store)
    assert (undoing.operation, "remaining_ns" in undoing.fields) == ("u", False)
    settle(store, undoing)
    assert ended(store) == ("failed", "deadline")
    assert states(views.status(store, "t")) == {"a": "succeeded", "b": "succeeded", "u": "succeeded"}


def test_a_try_that_would_come_too_late_is_not_waited_for(store, clock):
    """Nobody has to be there to take it: the run ends as the last try fails, or when its time comes."""
    store.submit("t", wanting(plan(call("a", "reader")), deadline_ns=500))
    (ticket,) = claim(store)
    clock[0] += 500
    settle(store, ticket, "unknown")
    assert ended(store) == ("failed", "deadline")

    store.submit("u", wanting(plan(call("a", "mailer")), deadline_ns=10**9))
    (ticket,) = claim(store)
    settle(store, ticket, "busy")
    clock[0] += 10**9
    store.fire_timers()
    assert ended(store, "u") == ("failed", "deadline")


def test_what_became_of_an_effect_is_asked_all_the_same(store, clock):
    """To ask changes nothing and may show what was done."""
    store.submit("t", wanting(plan(call("a", "registry"), call("b")), deadline_ns=500))
    (ticket,) = claim(store)
    clock[0] += 500
    store.fire_timers()
    settle(store, ticket, "unknown")
    clock[0] += 10**9
    (question,) = claim(store)
    assert (question.action, "remaining_ns" in question.fields) == ("lookup", False)
    settle(store, question, "found")
    assert (ended(store), states(views.status(store, "t"))["a"]) == (("failed", "deadline"), "reconciled")


def test_a_grant_is_no_intent_and_comes_too_late(store, clock):
    """A blind call that was granted in time is not dispatched when its time is over."""
    store.submit("t", wanting(plan(call("a", "mailer")), deadline_ns=500))
    (grant,) = store.claim("w", [], 1)
    clock[0] += 500
    assert isinstance(store.dispatch(grant), Rejected)
    assert claim(store) == []
    assert ended(store) == ("failed", "deadline")


def test_a_child_ends_with_its_parent(store, clock):
    """One deadline for the family; one that is on its own by then keeps the time it was born with."""
    store.submit("t", wanting(plan(child("k", wait("w", "go")), call("a")), deadline_ns=500))
    store.submit("u", wanting(plan(child("k", wait("w", "go"), detached=True)), deadline_ns=500))
    clock[0] += 500
    store.fire_timers()
    assert (ended(store), ended(store, "t/k")[0]) == (("failed", "deadline"), "cancelled")
    assert (ended(store, "u"), ended(store, "u/k")) == (("done", "completed"), ("failed", "deadline"))


def test_a_run_that_ended_in_time_is_left_alone(store, clock):
    """Its timer goes with it."""
    store.submit("t", wanting(plan(call("a")), deadline_ns=500))
    finish(store)
    assert store.next_timer_ns() is None
    clock[0] += 500
    assert store.fire_timers() == 0
    assert ended(store) == ("done", "completed")


def test_a_deadline_counts_for_work_that_a_workflow_asks_for(store, clock):
    """A workflow that waits for a turn or an event has no more time than a plan."""
    store.submit("t", {"version": 1, "workflow": "any", "deadline_ns": 500})
    clock[0] += 500
    store.fire_timers()
    assert ended(store) == ("failed", "deadline")
    with pytest.raises(Refusal):
        store.submit("t", {"version": 1, "workflow": "any", "deadline_ns": 900})
    assert not any(isinstance(one, Ticket) for one in store.claim("w", [], 5))

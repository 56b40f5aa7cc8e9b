"""Compensation: what is known to have happened is undone in reverse order, one at a time, and the run ends after that."""

from __future__ import annotations

import pytest

from reference_runtime import Store, views
from reference_runtime.events import events
from reference_runtime.model import Policy
from tests.runtime_rig import approve, call, finish, in_hand, par, plan, run_out, settle, states, take, undo

SAGA = plan(
    call("a"),
    undo("ua", "a", amount=1),
    call("b"),
    undo("ub", "b"),
    call("c"),
    undo("uc", "c"),
    call("d"),
    undo("ud", "d"),
)


def to_the_failure(store: Store) -> None:
    """Run the saga until its last call is refused."""
    store.submit("t", SAGA)
    for nonce in ("na", "nb", "nc"):
        finish(store, nonce=nonce)
    finish(store, "failed")


def test_effects_are_undone_in_reverse_order_one_at_a_time(store, reopened):
    """Each by an operation of its own with what its effect came to; what has no effect is not undone; then it failed."""
    to_the_failure(store)
    for name, nonce in (("uc", {"c": "nc"}), ("ub", {"b": "nb"}), ("ua", {"a": "na"})):
        assert views.status(store, "t")["phase"] == "compensating"
        store = reopened(store)
        tickets = in_hand(store)
        assert list(tickets) == [name]
        assert dict(tickets[name].carries) == nonce
        settle(store, tickets[name])
    status = views.status(store, "t")
    assert (status["state"], status["reason"]) == ("failed", "rejected: d failed: failed")
    assert states(status) == {
        "a": "succeeded", "b": "succeeded", "c": "succeeded", "d": "failed",
        "ua": "succeeded", "ub": "succeeded", "uc": "succeeded", "ud": "skipped",
    }  # fmt: skip


@pytest.mark.parametrize("service", ["ledger", "registry"])
def test_a_compensation_may_need_a_secret(store, reopened, service):
    """Its name is recorded with the rest of what it says, and goes along with every try and every question."""
    undoing = undo("ua", "a", service) | {"secret": "bank"}
    store.submit("t", plan(call("a"), undoing, {"op": "fail", "id": "f", "reason": "x"}))
    finish(store)
    store = reopened(store)
    grant, ticket = take(store)
    assert (ticket.operation, ticket.secret, ticket.action) == ("ua", "bank", "call")
    store.settle(grant, "unknown", None, "no answer")
    ticket = in_hand(store)["ua"]
    assert (ticket.secret, ticket.action) == ("bank", "lookup" if service == "registry" else "call")


def test_the_order_is_that_of_acceptance(store):
    """Side by side, what was accepted last is undone first, whatever the plan's order."""
    store.submit(
        "t", plan(par(call("a"), call("b")), undo("ua", "a"), undo("ub", "b"), {"op": "fail", "id": "f", "reason": "x"})
    )
    tickets = in_hand(store)
    settle(store, tickets["b"])
    settle(store, tickets["a"])
    assert run_out(store) == ["ua", "ub"]


def test_a_run_that_succeeds_undoes_nothing(store):
    """Its compensations are skipped, for that reason."""
    store.submit("t", plan(call("a"), undo("ua", "a")))
    finish(store)
    status = views.status(store, "t")
    assert (status["state"], states(status)["ua"]) == ("done", "skipped")
    assert status["operations"][1]["detail"] == "not-needed: the run succeeded"


def test_an_interrupted_compensation_is_taken_up_again(store, reopened):
    """The worker dies with it in hand: it goes on under the same key, and nothing older begins before it."""
    to_the_failure(store)
    grant, first = take(store)
    store = reopened(store)
    store.reclaim(grant.generation)
    again = in_hand(store)
    assert list(again) == ["uc"]
    assert again["uc"].key == first.key
    assert settle(store, again["uc"]) is None


@pytest.mark.parametrize("report", ["unknown", "unsent", "busy"])
def test_a_compensation_that_cannot_be_done_ends_unresolved(tmp_path, report):
    """After its tries the run is blocked and says so; nothing older is begun."""
    policy = Policy(backoff_ns_min=2, backoff_ns_max=2, compensations_max=3)
    store = Store.open(str(tmp_path / "s.db"), policy=policy)
    to_the_failure(store)
    tries = 0
    while tickets := in_hand(store):
        tries += 1
        assert list(tickets) == ["uc"]
        settle(store, tickets["uc"], report)
    status = views.status(store, "t")
    assert tries == 3
    assert status["state"] == "blocked"
    assert status["reason"].startswith("compensation-unresolved: uc after rejected: d failed")
    assert {name: states(status)[name] for name in ("uc", "ub")} == {"uc": "unresolved", "ub": "planned"}


def ends(store: Store) -> list[str]:
    """The ends of the run that its events tell of."""
    told = [event["kind"] for event in events(store, "t", 0)["events"] if event["operation"] is None]
    return [kind for kind in told if kind != "admitted"]


def test_a_blocked_run_that_a_late_word_completes_ends_as_any_other(store):
    """Its undo is not needed, its new end is told, and its result is not the one that was handed over before."""
    store.submit("t", plan(call("a", "mailer"), undo("ua", "a")))
    finish(store, "unknown")
    assert (views.status(store, "t")["state"], store.deliver("t")) == ("blocked", True)
    store.signal("t", "n", "notice", {"operation": "a", "nonce": "late"})
    status = views.status(store, "t")
    assert (status["state"], states(status)) == ("done", {"a": "reconciled", "ua": "skipped"})
    assert (ends(store), status["delivered"]) == (["unresolved", "succeeded"], False)


def test_a_blocked_run_that_fails_later_undoes_what_it_did(store, clock):
    """What it was allowed to do next may be no more, as the time of the approval is over."""
    store.submit(
        "t",
        plan(call("a"), undo("ua", "a"), par(call("b", "mailer"), approve("ok", "c", validity_ns=500)), call("c")),
    )
    finish(store)
    (asked,) = views.status(store, "t")["approvals"]
    store.decide("t", "ok", "approve", asked["digest"], "alice", "d", "n")
    finish(store, "unknown")
    assert views.status(store, "t")["state"] == "blocked"
    clock[0] += 500
    store.fire_timers()
    assert run_out(store) == ["ua"]
    status = views.status(store, "t")
    assert (status["state"], status["reason"]) == ("failed", "expired: ok released nothing in time")
    assert ends(store) == ["unresolved", "failed"]


def test_a_word_that_comes_later_changes_no_end(store):
    """A run whose compensation was refused is blocked, and stays so when a signal comes that nobody waits for."""
    to_the_failure(store)
    settle(store, in_hand(store)["uc"], "failed")
    ended = views.status(store, "t")
    assert ended["state"] == "blocked"
    store.signal("t", "late", "go", {"nonce": "late"})
    later = views.status(store, "t")
    assert (later["state"], later["reason"]) == ("blocked", ended["reason"])


def test_what_is_still_under_way_is_followed_before_anything_is_undone(store):
    """An effect that lands after the failure is undone too, and first."""
    store.submit("t", plan(call("a"), undo("ua", "a"), par(call("b"), call("c")), undo("ub", "b")))
    finish(store)
    tickets = in_hand(store)
    settle(store, tickets["c"], "failed")
    assert in_hand(store) == {}
    settle(store, tickets["b"])
    assert run_out(store) == ["ub", "ua"]


def test_steering_does_not_change_what_is_undone(store):
    """A compensation says what was recorded with its effect."""
    store.submit("t", SAGA)
    finish(store, nonce="na")
    before = store._value("SELECT request FROM operation WHERE id = 'ua'")
    store.signal("t", "s", "steer", {"operation": "ua", "params": {"amount": 9}, "nonce": "s"})
    assert store._value("SELECT request FROM operation WHERE id = 'ua'") == before


def test_a_direction_after_the_effect_is_late(store):
    """What an undo says is fixed when its effect is accepted: it may be changed before, and no more afterwards."""

    def steer(nth: int, amount: int) -> str:
        said = store.signal("t", f"steer:{nth}", "steer", {"operation": "ua", "params": {"amount": amount}})
        return str(said["disposition"])

    store.submit("t", plan(call("a"), call("b"), undo("ua", "a", amount=1)))
    assert steer(1, 2) == "released"
    finish(store, nonce="na")
    assert steer(2, 3) == "late"
    finish(store, "failed")
    ticket = in_hand(store)["ua"]
    assert (ticket.params, dict(ticket.carries)) == ({"amount": 2}, {"a": "na"})

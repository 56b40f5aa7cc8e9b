"""Approvals: bound to an operation and its parameters, checked again at release, and used once."""

from __future__ import annotations

import attrs
import pytest

from reference_runtime import Refusal, Store, views
from reference_runtime.model import Grant, Policy, Rejected, Ticket, approval_digest
from tests.runtime_rig import approve, branch, call, finish, in_hand, par, plan, race, seq, settle, states, wait

GATED = plan(call("a"), approve("ok", "pay"), call("pay", amount=5), call("z", carries=("ok",)))
DIGEST = approval_digest("pay", "ledger", {"amount": 5})


def decide(
    store: Store, decision: str = "approve", digest: str = DIGEST, *, actor: str = "alice", id_: str = "1"
) -> str:
    return store.decide("t", "ok", decision, digest, actor, id_, f"nonce-{id_}")["disposition"]


def standing(store: Store) -> list[tuple[str, str, str]]:
    return [(one["operation"], one["of"], one["state"]) for one in views.status(store, "t")["approvals"]]


def granted(store: Store) -> Grant:
    (lease,) = store.claim("w", [], 1)
    assert isinstance(lease, Grant)
    return lease


def release(store: Store, **found: bool) -> Ticket | Rejected:
    grant = granted(store)
    return store.dispatch(Grant(grant.attempt, grant.operation, grant.generation, grant.version, granted=found))


@pytest.fixture
def asked(store):
    """A run that waits for a decision."""
    store.submit("t", GATED)
    finish(store)
    return store


def test_a_gated_operation_waits_for_its_decision(asked, reopened):
    """It is shown with the digest it is about, and nothing is claimable; a restart changes nothing."""
    store = reopened(asked)
    status = views.status(store, "t")
    assert (status["state"], status["on"], in_hand(store)) == ("waiting", "ok", {})
    assert status["approvals"] == [{"operation": "ok", "of": "pay", "digest": DIGEST, "state": "pending"}]


def test_a_lease_that_is_over_releases_nothing(asked):
    """Authority that an earlier holder was told of is not that of the next one, who was told there is none."""
    decide(asked)
    old = granted(asked)
    asked.reclaim(old.generation)
    new = granted(asked)
    assert isinstance(asked.dispatch(attrs.evolve(old, granted={"ok": True})), Rejected)
    assert standing(asked) == [("ok", "pay", "approved")]
    assert isinstance(asked.dispatch(attrs.evolve(new, granted={"ok": False})), Rejected)


def test_an_approved_operation_is_released_once(asked):
    """The leaf takes the decision's nonce; the operation leaves after the authority was found good, and no second time."""
    assert decide(asked) == "approved"
    assert states(views.status(asked, "t"))["ok"] == "succeeded"
    assert granted(asked).authority == {"ok": "alice"}
    assert granted(asked).task == "t"
    ticket = release(asked, ok=True)
    assert isinstance(ticket, Ticket)
    assert standing(asked) == [("ok", "pay", "released")]
    settle(asked, ticket, "unknown")
    assert in_hand(asked)["pay"].key == ticket.key, "a repeat of what was released needs no further release"


def test_a_denied_operation_never_leaves(asked):
    """The run fails with the denial."""
    assert decide(asked, "deny") == "denied"
    status = views.status(asked, "t")
    assert (status["state"], status["reason"]) == ("failed", "denied: ok by alice")
    assert states(status) == {"a": "succeeded", "ok": "failed", "pay": "planned", "z": "planned"}


def test_a_decision_repeated_is_one_decision(asked):
    """Its id answers as at first; under another id it is a duplicate, and the opposite comes too late."""
    assert [decide(asked), decide(asked), decide(asked, id_="2")] == ["approved", "approved", "duplicate"]
    with pytest.raises(Refusal, match="already-decided"):
        decide(asked, "deny", id_="3")
    with pytest.raises(Refusal, match="conflict"):
        decide(asked, "deny")


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"actor": "mallory"}, "no-authority"),
        ({"digest": "0" * 32}, "stale-digest"),
        ({"decision": "maybe"}, "bad-request"),
    ],
)
def test_a_decision_that_cannot_count_is_refused(asked, changed, code):
    """And changes nothing, so that a good one still counts."""
    with pytest.raises(Refusal, match=code):
        decide(asked, **changed)
    assert standing(asked) == [("ok", "pay", "pending")]
    assert decide(asked) == "approved"


def test_who_may_decide_is_a_setting_and_a_refusal_tells_it(tmp_path):
    """Those named may, `alice` only where she is one of them, and who may not is told who may."""
    store = Store.open(str(tmp_path / "named.db"), policy=Policy(approvers=("bob", "carol")))
    store.submit("t", GATED)
    finish(store)
    with pytest.raises(Refusal, match=r"no-authority: 'alice' may not decide about 'ok'; who may: 'bob', 'carol'"):
        decide(store)
    assert decide(store, actor="carol", id_="2") == "approved"


def test_nothing_is_decided_before_it_is_asked(store):
    """A decision about a leaf whose turn has not come, or about another operation, is refused."""
    store.submit("t", GATED)
    with pytest.raises(Refusal, match="not-pending"):
        decide(store)
    with pytest.raises(Refusal, match="not-pending"):
        store.decide("t", "a", "approve", DIGEST, "alice", "1", "n")


def test_changed_parameters_need_a_decision_of_their_own(asked):
    """Steering voids what was asked; the old digest is refused, the new one counts."""
    asked.signal("t", "s1", "steer", {"operation": "pay", "params": {"amount": 101}, "nonce": "s1"})
    with pytest.raises(Refusal, match="stale-digest"):
        decide(asked)
    assert decide(asked, digest=approval_digest("pay", "ledger", {"amount": 101}), id_="2") == "approved"
    ticket = release(asked, ok=True)
    assert isinstance(ticket, Ticket)
    assert ticket.params == {"amount": 101}


def test_a_decision_made_before_the_change_is_void(asked):
    """Approved, then steered: what was approved is not what would leave, so it waits again."""
    decide(asked)
    asked.signal("t", "s1", "steer", {"operation": "pay", "params": {"amount": 101}, "nonce": "s1"})
    assert in_hand(asked) == {}
    status = views.status(asked, "t")
    assert (status["state"], status["on"], standing(asked)) == ("waiting", "ok", [("ok", "pay", "pending")])
    decide(asked, digest=approval_digest("pay", "ledger", {"amount": 101}), id_="2")
    assert isinstance(release(asked, ok=True), Ticket)


def test_withdrawn_authority_releases_nothing(asked):
    """The actor has none any more when the operation would leave: the leaf asks again, and a new decision counts."""
    decide(asked)
    assert isinstance(release(asked, ok=False), Rejected)
    assert (views.status(asked, "t")["state"], standing(asked)) == ("waiting", [("ok", "pay", "pending")])
    assert in_hand(asked) == {}
    assert decide(asked, id_="2") == "approved"
    assert isinstance(release(asked, ok=True), Ticket)


def test_authority_that_nobody_could_tell_of_releases_nothing(asked, clock):
    """The decision stands, and is tried again a little later."""
    decide(asked)
    assert isinstance(release(asked), Rejected)
    assert standing(asked) == [("ok", "pay", "approved")]
    clock[0] += 10**9
    assert isinstance(release(asked, ok=True), Ticket)


def test_an_approval_that_nobody_gives_expires(store, clock, reopened):
    """At its hour, across a restart: the run fails, and a later decision is refused."""
    store.submit("t", plan(approve("ok", "pay", validity_ns=50), call("pay", amount=5)))
    clock[0] += 49
    store = reopened(store)
    assert store.fire_timers() == 0
    clock[0] += 1
    with pytest.raises(Refusal, match="expired"):
        decide(store)
    assert store.fire_timers() == 1
    status = views.status(store, "t")
    assert (status["state"], status["reason"].split(":")[0]) == ("failed", "expired")
    with pytest.raises(Refusal, match="expired"):
        decide(store, id_="2")


def test_an_approval_releases_nothing_after_its_period(store, clock):
    """Approved in time and not used in time is expired."""
    store.submit("t", plan(approve("ok", "pay", validity_ns=50), call("pay", amount=5)))
    decide(store)
    clock[0] += 50
    assert isinstance(release(store, ok=True), Rejected)
    store.fire_timers()
    assert standing(store) == [("ok", "pay", "expired")]
    assert views.status(store, "t")["state"] == "failed"


def test_a_released_operation_does_not_expire(store, clock):
    """Once it has left, the period of its approval is of no matter."""
    store.submit("t", plan(approve("ok", "pay", validity_ns=50), call("pay", amount=5)))
    decide(store)
    ticket = release(store, ok=True)
    assert isinstance(ticket, Ticket)
    clock[0] += 50
    store.fire_timers()
    settle(store, ticket)
    assert views.status(store, "t")["state"] == "done"


@pytest.mark.parametrize("is_decided", [False, True])
def test_a_run_that_ends_asks_nobody_any_more(asked, is_decided):
    """What is asked for, or approved and not released, is withdrawn; a later decision is refused."""
    if is_decided:
        decide(asked)
    asked.cancel("t", "stop")
    assert standing(asked) == [("ok", "pay", "withdrawn")]
    assert views.status(asked, "t")["state"] == "cancelled"
    if not is_decided:
        with pytest.raises(Refusal, match="too-late"):
            decide(asked)
    assert in_hand(asked) == {}


def test_what_is_released_is_not_withdrawn(asked):
    """Its approval has been used, whatever becomes of the run."""
    decide(asked)
    assert isinstance(release(asked, ok=True), Ticket)
    asked.cancel("t", "stop")
    assert standing(asked) == [("ok", "pay", "released")]


def test_a_run_that_goes_another_way_asks_nobody_any_more(store):
    """An approval in the child that lost the race is shown as withdrawn, and holds up nothing."""
    store.submit("t", plan(race("r", seq(approve("ok", "pay"), call("pay", amount=5)), call("b"))))
    assert standing(store) == [("ok", "pay", "pending")]
    finish(store)
    assert standing(store) == [("ok", "pay", "withdrawn")]
    assert views.status(store, "t")["state"] == "done"
    with pytest.raises(Refusal, match="too-late"):
        decide(store)


def test_an_approval_of_what_was_skipped_is_withdrawn(store):
    """Asked again about something else, and then what it is about lost the race: nothing is waited for."""
    store.submit("t", plan(race("r", seq(approve("ok", "pay"), call("pay", amount=5)), call("b"))))
    decide(store)
    store.signal("t", "s", "steer", {"operation": "pay", "params": {"amount": 101}})
    assert standing(store) == [("ok", "pay", "pending")]
    finish(store)
    assert standing(store) == [("ok", "pay", "withdrawn")]
    assert views.status(store, "t")["state"] == "done"


def details(store: Store) -> dict[str, str]:
    return {one["id"]: one["detail"] for one in views.status(store, "t")["operations"]}


PAID_IN_TIME = race("r", call("pay", amount=5), wait("late", "late"))


@pytest.mark.parametrize("is_decided", [False, True])
def test_an_approval_outside_of_the_race_that_its_call_loses_ends(store, reopened, is_decided):
    """All that is asked about the call is skipped with the reason in that transaction, what is asked about another one is not;
    the run goes on.
    """
    asking = par(approve("ok", "pay"), approve("boss", "pay"), approve("other", "z"), id_="asking")
    store.submit("t", plan(par(asking, PAID_IN_TIME), call("z")))
    if is_decided:
        decide(store)
    store.signal("t", "s", "late", {})
    store = reopened(store)
    status = views.status(store, "t")
    now = states(status)
    assert [now[one] for one in ("ok", "boss", "pay")] == [
        "succeeded" if is_decided else "skipped",
        "skipped",
        "skipped",
    ]
    assert (status["state"], status["on"], now["other"], now["z"]) == ("waiting", "other", "planned", "planned")
    assert details(store)["boss"] == "withdrawn: 'pay' was skipped"
    assert standing(store) == [("boss", "pay", "withdrawn"), ("ok", "pay", "withdrawn"), ("other", "z", "pending")]
    with pytest.raises(Refusal, match="too-late"):
        store.decide("t", "boss", "approve", DIGEST, "alice", "late", "n")
    store.decide("t", "other", "approve", approval_digest("z", "ledger", {}), "alice", "2", "n")
    ticket = release(store, other=True)
    assert isinstance(ticket, Ticket)
    settle(store, ticket)
    assert views.status(store, "t")["state"] == "done"


def test_nobody_is_asked_about_what_was_skipped_before(store):
    """An approval whose turn comes after a branch has left its call out: it ends then, and no earlier, without a question."""
    asking = seq(wait("w", "go"), approve("ok", "pay"), call("z"), id_="asking")
    other = seq(call("a"), branch("b", "a", call("x"), call("pay", amount=5)), id_="other")
    store.submit("t", plan(par(asking, other)))
    finish(store, nonce="x0")
    now = states(views.status(store, "t"))
    assert [now[one] for one in ("pay", "ok", "z")] == ["skipped", "planned", "planned"]
    store.signal("t", "s", "go", {})
    assert (details(store)["ok"], standing(store)) == ("withdrawn: 'pay' was skipped", [])
    assert sorted(in_hand(store)) == ["x", "z"]

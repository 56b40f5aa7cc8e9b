"""Budgets: never more than allowed, whatever the order of claims, answers, silences and restarts; and deadlines."""

from __future__ import annotations

import tempfile
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from reference_runtime import Policy, Store, views
from reference_runtime.model import Json, Ticket
from tests.runtime_plans import artifact, check, child, claim, model, settle, wanting, work_off
from tests.runtime_rig import call, par, plan, under, wait

POLICY = Policy(backoff_ns_min=2, backoff_ns_max=2)


@pytest.fixture
def store(tmp_path):
    return Store.open(str(tmp_path / "s.db"), policy=POLICY)


def again(store: Store) -> Store:
    """The same file after the process is gone."""
    path = store.db.filename
    store.close()
    return Store.open(path, policy=POLICY)


def usage(store: Store, kind: str, task: str = "t") -> tuple[int, int, int]:
    """Consumed, reserved, unknown."""
    row: Json = views.status(store, task)["usage"][kind]
    return row["consumed"], row["reserved"], row["unknown"]


def test_two_calls_of_six_against_ten(store):
    """The second one is not given out while the first may cost what it reserved; after a small answer it is."""
    store.submit("t", wanting(plan(par(model("a"), model("b"))), allowance={"tokens": 10}))
    (first,) = claim(store, 2)
    assert usage(store, "tokens") == (0, 6, 0)
    assert claim(store, 2) == []
    settle(store, first, usage={"tokens": 3})
    assert usage(store, "tokens") == (3, 0, 0)
    (second,) = claim(store, 2)
    assert (second.operation, usage(store, "tokens")) == ("b", (3, 6, 0))


def test_what_can_never_be_afforded_ends_the_run_with_its_reason(store):
    """When what was consumed leaves too little, the run fails and says which allowance it was."""
    store.submit("t", wanting(plan(model("a"), model("b")), allowance={"tokens": 10}))
    settle(store, claim(store)[0], usage={"tokens": 6})
    assert claim(store) == []
    status = views.status(store, "t")
    assert (status["state"], status["reason"]) == ("failed", "allowance-exhausted: tokens")


@pytest.mark.parametrize("is_owner", [True, False])
def test_what_ends_takes_nothing_along_that_is_given_out_with_it(store, is_owner):
    """One claim asks for what a run cannot afford and for what stops with that: its child's, or of its owner, the other's."""
    never, other = model("m", 10), call("y")
    if is_owner:
        store.submit("t", wanting(plan(par(never, child("k", other))), allowance={"tokens": 5}))
    else:
        store.submit("t", wanting(plan(par(child("k", never), other)), allowance={"tokens": 5}))
    assert claim(store, 9) == []
    assert views.status(store, "t")["state"] == "failed"
    assert store.leases() == []


def test_the_usage_of_a_lost_answer_stays_unknown(store):
    """It is neither consumed nor reserved nor free: a repeat reserves anew, also after a restart, and never renews it."""
    store.submit("t", wanting(plan(model("a")), allowance={"tokens": 12, "calls": 9}))
    settle(store, claim(store)[0], "unknown")
    store = again(store)
    assert (usage(store, "tokens"), usage(store, "calls")) == ((0, 0, 6), (0, 0, 1))
    settle(store, claim(store)[0], usage={"tokens": 2})
    assert (usage(store, "tokens"), usage(store, "calls")) == ((2, 0, 6), (1, 0, 1))


def test_silence_does_not_free_what_was_dispatched(store):
    """A lease that runs out after the dispatch leaves its usage unknown; one that never dispatched leaves nothing."""
    store.submit("t", wanting(plan(par(model("a"), call("b", "mailer"))), allowance={"tokens": 6, "calls": 5}))
    leases = store.claim("w", [], 2)
    assert usage(store, "calls") == (0, 2, 0)
    for lease in leases:
        store.reclaim(lease.generation)
        store.reclaim(lease.generation)
    assert (usage(store, "tokens"), usage(store, "calls")) == ((0, 0, 6), (0, 0, 1))


@pytest.mark.parametrize(("report", "calls"), [("unsent", (0, 0, 0)), ("busy", (1, 0, 0)), ("unknown", (0, 0, 1))])
def test_a_call_that_never_left_costs_nothing(store, report, calls):
    """Unsent: nothing happened. Busy: a request was made and answered. Unknown: nobody knows."""
    store.submit("t", wanting(plan(call("a")), allowance={"calls": 5}))
    settle(store, claim(store)[0], report)
    assert usage(store, "calls") == calls


def test_an_effect_that_is_found_confirms_its_call(store):
    """A look-up costs no call, and what it finds is no longer unknown."""
    store.submit("t", wanting(plan(call("a", "registry")), allowance={"calls": 1}))
    settle(store, claim(store)[0], "unknown")
    (question,) = claim(store)
    assert question.action == "lookup"
    settle(store, question, "found")
    assert usage(store, "calls") == (1, 0, 0)
    assert views.status(store, "t")["state"] == "done"


def test_no_more_at_a_time_than_allowed(store):
    """Concurrency bounds the leases of one task, and no other task's."""
    store.submit("t", wanting(plan(par(*(call(f"c{n}") for n in range(5)))), allowance={"concurrency": 2}))
    store.submit("u", plan(par(call("x"), call("y"))))
    held = claim(store, 9)
    held += claim(store, 9)
    assert sorted(one.task for one in held) == ["t", "t", "u", "u"]
    for ticket in held:
        settle(store, ticket)
    assert len(work_off(store)) == 3
    assert views.status(store, "t")["state"] == "done"


def test_checks_keep_a_reserved_share(store):
    """Generation cannot use up what is reserved; the check that ends the run can use it."""
    allowance = {"calls": 3, "reserve": {"calls": 1}}
    store.submit("t", wanting(plan(call("a"), artifact("b"), check("c", "b")), allowance=allowance))
    assert work_off(store) == ["t:a", "t:b", "t:c"]
    assert (views.status(store, "t")["state"], usage(store, "calls")) == ("done", (3, 0, 0))
    store.submit("u", wanting(plan(call("a"), call("b"), call("c")), allowance=allowance))
    assert work_off(store) == ["u:a", "u:b"]
    assert views.status(store, "u")["reason"] == "allowance-exhausted: calls"


def test_the_deadline_counts_from_admission(store, monkeypatch):
    """It is handed on, survives restarts and retries, and nothing is dispatched after it."""
    now_ns = 1_000_000
    monkeypatch.setattr("time.time_ns", lambda: now_ns)
    store.submit("t", wanting(plan(call("a"), call("b")), deadline_ns=1000))
    now_ns += 400
    (ticket,) = claim(store)
    assert ticket.fields["remaining_ns"] == 600
    settle(store, ticket, "unknown")
    now_ns += 500
    store = again(store)
    (ticket,) = claim(store)
    assert ticket.fields["remaining_ns"] == 100
    settle(store, ticket)
    now_ns += 100
    assert claim(store) == []
    status = views.status(store, "t")
    assert (status["state"], status["reason"]) == ("failed", "deadline")


def test_the_time_a_run_may_take_is_bounded(store, monkeypatch):
    """Elapsed time counts from admission by the wall clock, also while nothing runs."""
    now_ns = 1_000_000
    monkeypatch.setattr("time.time_ns", lambda: now_ns)
    store.submit("t", wanting(plan(call("a"), call("b")), allowance={"elapsed_ns": 100}))
    work = claim(store)
    now_ns += 100
    settle(store, work[0])
    assert claim(store) == []
    assert views.status(store, "t")["reason"] == "allowance-exhausted: elapsed"


def test_a_childs_share_comes_out_of_its_parents(store):
    """It is set aside when the child is admitted; its end leaves what it consumed and gives the remainder back."""
    work = par(child("k", call("x"), call("y"), share={"calls": 3}), call("a"))
    store.submit("t", wanting(plan(work, call("b")), allowance={"calls": 5}))
    assert (usage(store, "calls"), usage(store, "calls", "t/k")) == ((0, 3, 0), (0, 0, 0))
    assert sorted(work_off(store)) == ["t/k:x", "t/k:y", "t:a", "t:b"]
    assert (usage(store, "calls"), usage(store, "calls", "t/k")) == ((4, 0, 0), (2, 0, 0))


def test_a_share_that_does_not_fit_is_refused(store):
    """A child may not be given more than its parent has."""
    store.submit("t", wanting(plan(child("k", call("x"), share={"calls": 6})), allowance={"calls": 5}))
    assert (views.status(store, "t")["state"], views.status(store, "t/k")["state"]) == ("failed", "unknown")
    assert views.status(store, "t")["reason"] == "allowance-exhausted: calls"


def test_what_a_childs_plan_allows_it_comes_out_of_its_parents(store):
    """Its own plan cannot give it what its parent does not have; what it states is its share where none is named."""
    allowed = child("k", call("x"), call("y"))
    allowed["plan"]["allowance"] = {"calls": 3, "elapsed_ns": 10**15}
    store.submit("t", wanting(plan(allowed), allowance={"calls": 2}))
    assert work_off(store) == []
    assert views.status(store, "t")["reason"] == "allowance-exhausted: calls"
    store.submit("u", wanting(plan(allowed, call("z")), allowance={"calls": 3}))
    assert usage(store, "calls", "u") == (0, 3, 0)
    assert work_off(store) == ["u/k:x", "u/k:y", "u:z"]
    assert usage(store, "calls", "u") == (3, 0, 0)
    allowed["share"] = {"calls": 2}
    store.submit("v", wanting(plan(allowed), allowance={"calls": 2}))
    assert usage(store, "calls", "v") == (0, 2, 0)


@pytest.mark.parametrize(("tokens", "reserved"), [(9, 9), (2, 2), ("many", 6), (-1, 6), (True, 6), (None, 6)])
def test_what_a_direction_makes_of_a_call_is_reserved(store, tokens, reserved):
    """The most that one invocation may cost is what its request allows, not what its plan once said."""
    store.submit("t", wanting(plan(wait("w", "go"), model("m", 6)), allowance={"tokens": 10}))
    store.signal("t", "s", "steer", {"operation": "m", "params": {"prompt": "more", "tokens": tokens}})
    store.signal("t", "g", "go", {"nonce": "n"})
    (ticket,) = claim(store)
    assert (ticket.params["tokens"], usage(store, "tokens")) == (tokens, (0, reserved, 0))


def test_a_direction_that_cannot_be_afforded_ends_the_run(store):
    """What it asks for is more than there is."""
    store.submit("t", wanting(plan(wait("w", "go"), model("m", 6)), allowance={"tokens": 10}))
    store.signal("t", "s", "steer", {"operation": "m", "params": {"prompt": "more", "tokens": 10**30}})
    store.signal("t", "g", "go", {"nonce": "n"})
    assert claim(store) == []
    assert views.status(store, "t")["reason"] == "allowance-exhausted: tokens"


def test_a_child_without_a_share_draws_on_its_parents_account(store):
    """Then it is the parent's allowance that it may use up, and the parent's deadline that it must keep."""
    work = wanting(plan(child("k", call("x"), call("y"))), allowance={"calls": 1}, deadline_ns=10**15)
    store.submit("t", work)
    (ticket,) = claim(store)
    assert (ticket.task, "remaining_ns" in ticket.fields, usage(store, "calls")) == ("t/k", True, (0, 1, 0))
    settle(store, ticket)
    assert claim(store) == []
    assert views.status(store, "t/k")["reason"] == "allowance-exhausted: calls"
    assert views.status(store, "t")["state"] == "failed"


def test_a_notice_confirms_the_call_it_is_about(store):
    """The receiver's late word makes an unknown call a consumed one."""
    store.submit("t", wanting(plan(call("a", "mailer")), allowance={"calls": 1}))
    settle(store, claim(store)[0], "unknown")
    assert usage(store, "calls") == (0, 0, 1)
    store.signal("t", "n", "notice", {"operation": "a", "nonce": "late"})
    assert usage(store, "calls") == (1, 0, 0)


def test_a_pause_gives_back_what_was_only_granted(store):
    """A grant that is taken back before anything left leaves nothing reserved, and is made again after the pause."""
    store.submit("t", wanting(plan(call("a", "mailer")), allowance={"calls": 1}))
    store.claim("w", [], 1)
    assert usage(store, "calls") == (0, 1, 0)
    store.pause("t", "p")
    assert usage(store, "calls") == (0, 0, 0)
    store.unpause("t", "u")
    assert work_off(store) == ["t:a"]
    assert usage(store, "calls") == (1, 0, 0)


def test_what_undoes_is_not_too_late(store, monkeypatch):
    """After the deadline nothing of the run is dispatched but the compensation of what it did, from the reserve."""
    now_ns = 1_000_000
    monkeypatch.setattr("time.time_ns", lambda: now_ns)
    undo = {"op": "compensate", "id": "u", "of": "a", "service": "ledger", "params": {}}
    allowance = {"calls": 2, "elapsed_ns": 100, "reserve": {"calls": 1}}
    store.submit("t", wanting(plan(call("a"), call("b"), undo), allowance=allowance, deadline_ns=100))
    settle(store, claim(store)[0])
    now_ns += 100
    assert claim(store) == []
    assert work_off(store) == ["t:u"]
    assert (views.status(store, "t")["reason"], usage(store, "calls")) == ("deadline", (2, 0, 0))


def _total(store: Store) -> tuple[int, int]:
    rows = store._rows("SELECT kind, allowance, consumed + reserved + unknown FROM allowance WHERE task = 't'")
    for kind, allowance, spent in rows:
        assert spent <= allowance, f"{kind}: {spent} of {allowance}"
    return tuple(spent for *_, spent in rows)  # type: ignore[return-value]


@settings(max_examples=60, deadline=None)
@given(
    allowance=st.fixed_dictionaries({"calls": st.integers(0, 8), "tokens": st.integers(0, 30)}),
    asked=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    steps=st.lists(
        st.tuples(
            st.sampled_from(["claim", "unknown", "busy", "unsent", "succeeded", "silence", "restart"]),
            st.integers(0, 9),
        ),
        max_size=25,
    ),
)
def test_an_allowance_is_never_overspent(allowance, asked, steps):
    """Consumed, reserved and unknown together stay within the allowance, whatever happens in whatever order."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(str(Path(folder) / "s.db"), policy=POLICY)
        store.submit(
            "t", wanting(plan(par(*(model(f"m{n}", tokens) for n, tokens in enumerate(asked)))), allowance=allowance)
        )
        held: list[Ticket] = []
        for step, number in steps:
            if step == "claim":
                held += claim(store, number)
            elif step == "restart":
                before = _total(store)
                store = again(store)
                assert _total(store) == before
            elif held:
                ticket = held.pop(number % len(held))
                if step == "silence":
                    store.reclaim(ticket.generation)
                else:
                    used = {"usage": {"tokens": min(number, ticket_tokens(store, ticket))}}
                    settle(store, ticket, step, **(used if step == "succeeded" else {}))  # type: ignore[arg-type]
            _total(store)
        store.close()


def ticket_tokens(store: Store, ticket: Ticket) -> int:
    grant = under(ticket)
    return int(
        store._value(
            "SELECT spec ->> 'tokens' FROM operation WHERE attempt = ? AND id = ?", grant.attempt, grant.operation
        )
    )

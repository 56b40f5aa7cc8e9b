"""Code and its versions in the store: who may go on with what, what happens to what nobody may, and carrying over."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from reference_runtime import Refusal, Store, StoreError, views
from reference_runtime.evolution import Code
from reference_runtime.model import Grant, Json, Ticket, approval_digest
from reference_runtime.schema import SCHEMA_VERSION
from tests.runtime_rig import EAGER, approve, call, finish, par, plan, seq, states, under, wait

CHAIN = plan(call("a", amount=1), wait("w", "go"), call("b", amount=2))


def doubled(state: Json) -> Json:
    """Newer code counts in half units."""
    params = {id_: {"amount": 2 * one["amount"]} for id_, one in state["params"].items()}
    return {**state, "params": params}


def forgetful(state: Json) -> Json:
    return {**state, "params": {}}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    transforms = {"doubled": doubled, "forgetful": forgetful}
    one = Store.open(str(tmp_path / "s.db"), policy=EAGER, transforms=transforms)
    yield one
    one.close()


def worker(store: Store, version: str, policy: Any = "refuse", **more: Any) -> str:
    execution = store.new_execution("w")
    store.introduce(execution, Code(version, policy, **more))
    return execution


def claim(store: Store, execution: str) -> list[str]:
    """What it is given, and leaves as it is."""
    return [one.operation for one in store.claim(execution, [generation for generation, _ in store.leases()], 9)]


def written_by(store: Store, task: str = "t") -> str | None:
    found: str | None = store._value("SELECT code FROM attempt WHERE task = ?", task)
    return found


def submit(store: Store, code: str | None = None, document: Json = CHAIN, task: str = "t") -> None:
    store.submit(task, document if code is None else {**document, "code": code})


def audited(store: Store, action: str) -> list[Json]:
    return [one for one in views.journal(store, "t")["audit"] if one["action"] == action]


def test_what_was_carried_over_is_decided_about_anew(store: Store) -> None:
    """A decision is about what was decided on: other parameters need another one, and until then nothing is handed out."""
    gated = par(seq(approve("ok", "b"), id_="q"), seq(call("a", amount=1), call("b", amount=2), id_="s"))
    submit(store, "1", plan(gated, approve("same", "z"), call("z", amount=0)))
    old, new = worker(store, "1"), worker(store, "2", "transform", transforms={"1": "doubled"})
    (asked,) = views.status(store, "t")["approvals"]
    store.decide("t", "ok", "approve", asked["digest"], "alice", "1", "n")
    (lease,) = store.claim(old, [], 1)
    assert isinstance(lease, Ticket)
    store.settle(under(lease), "succeeded", {"nonce": "n-a"}, "")
    assert claim(store, new) == []
    (again,) = views.status(store, "t")["approvals"]
    assert (again["state"], views.status(store, "t")["state"]) == ("pending", "waiting")
    assert again["digest"] == approval_digest("b", "ledger", {"amount": 4})
    with pytest.raises(Refusal, match="stale-digest"):
        store.decide("t", "ok", "approve", asked["digest"], "alice", "2", "n")
    store.decide("t", "ok", "approve", again["digest"], "alice", "3", "n")
    (grant,) = store.claim(new, [], 1)
    assert isinstance(grant, Grant)
    ticket = store.dispatch(attrs.evolve(grant, granted={"ok": True}))
    assert isinstance(ticket, Ticket)
    assert ticket.params == {"amount": 4}


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (float("nan"), "no number that JSON has"),
        ("\ud800", "half of a surrogate pair"),
        ({1, 2}, "not JSON serializable"),
    ],
)
@pytest.mark.parametrize("where", ["in", "instead", "input"])
def test_what_a_transform_makes_must_be_what_can_be_kept(tmp_path: Path, where: str, made: Any, said: str) -> None:
    """What is no JSON, and params that are no object, are told with the transform's name, and nothing is changed."""

    def odd(state: Json) -> Json:
        params = {id_: {"amount": made} if where == "in" else made for id_ in state["params"]}
        return {**state, "input": made} if where == "input" else {**state, "params": params}

    store = Store.open(str(tmp_path / "odd.db"), policy=EAGER, transforms={"odd": odd})
    submit(store, "1")
    assert claim(store, worker(store, "2", "transform", transforms={"1": "odd"})) == []
    status = views.status(store, "t")
    assert (status["state"], written_by(store)) == ("blocked", "1")
    assert "transform 'odd' failed" in status["reason"]
    assert said in status["reason"]
    assert claim(store, worker(store, "1")) == []  # it rests a while
    assert store._value("SELECT spec ->> '$.params.amount' FROM operation WHERE id = 'a'") == 1


def test_params_that_are_no_object_are_carried_nowhere(tmp_path: Path) -> None:
    """A request has named parameters; its operation is told."""
    numbers = {"odd": lambda state: {**state, "params": dict.fromkeys(state["params"], 5)}}
    store = Store.open(str(tmp_path / "odd.db"), policy=EAGER, transforms=numbers)
    submit(store, "1")
    assert claim(store, worker(store, "2", "transform", transforms={"1": "odd"})) == []
    assert "params of 'a' must be an object; got 5" in views.status(store, "t")["reason"]


@pytest.mark.parametrize("code", [None, "9"])
def test_a_child_that_was_yet_to_come_is_carried_over_in_its_turn(store: Store, code: str | None) -> None:
    """Its plan is as old as its parent's was, however new that is by then, unless it names its own code."""
    inner = plan(call("x", amount=5)) if code is None else {**plan(call("x", amount=5)), "code": code}
    submit(store, "1", plan(call("a", amount=1), {"op": "child", "id": "k", "plan": inner}))
    new = worker(store, "2", "transform", transforms={"1": "doubled"})
    assert store.claim(new, [], 1) == []  # carried over, and handed out next
    (lease,) = store.claim(new, [], 1)
    assert isinstance(lease, Ticket)
    store.settle(under(lease), "succeeded", {"nonce": "n-a"}, "")
    assert (written_by(store, "t"), written_by(store, "t/k")) == ("2", code or "1")
    found = store.claim(new, [], 1) + store.claim(new, [], 1)
    assert [one.params for one in found if isinstance(one, Ticket)] == ([{"amount": 10}] if code is None else [])


def test_what_is_carried_over_unchanged_stays_decided(store: Store) -> None:
    """Nothing is asked again about what is what it was."""
    submit(store, "1", plan(call("a", amount=1), approve("ok", "b"), call("b", amount=0)))
    finish(store)
    (asked,) = views.status(store, "t")["approvals"]
    store.decide("t", "ok", "approve", asked["digest"], "alice", "1", "n")
    new = worker(store, "2", "transform", transforms={"1": "doubled"})
    assert claim(store, new) == []  # carried over, and handed out next
    assert claim(store, new) == ["b"]
    assert views.status(store, "t")["approvals"] == [{**asked, "state": "approved"}]


# ---- pinning


def test_a_task_is_of_the_code_that_it_names(store):
    """It is pinned as it is admitted, together with the schema it was admitted to."""
    submit(store, "1")
    assert store._rows("SELECT code, schema FROM attempt") == [("1", SCHEMA_VERSION)]


def test_a_task_that_names_none_is_of_the_code_that_takes_it_up_first(store):
    """Until then it is of no version."""
    submit(store)
    assert written_by(store) is None
    assert claim(store, worker(store, "2")) == ["a"]
    assert written_by(store) == "2"


def test_a_child_is_of_the_code_of_its_owner(store):
    """Its plan need not say so."""
    child = {"op": "child", "id": "k", "plan": plan(call("x")), "detached": False}
    submit(store, "1", plan(child))
    assert written_by(store, "t/k") == "1"


# ---- policies


@pytest.mark.parametrize(
    ("policy", "more", "taken"),
    [
        ("pin", {}, []),
        ("refuse", {"older": ("1",)}, []),
        ("compatible", {}, []),
        ("compatible", {"older": ("1",)}, ["a"]),
        ("transform", {"transforms": {"0": "doubled"}}, []),
        ("replay", {"older": ("1",)}, []),
    ],
)
def test_a_worker_is_given_what_its_policy_says(store, policy, more, taken):
    """Of work that version 1 has written, to one of version 2."""
    submit(store, "1")
    assert claim(store, worker(store, "2", policy, **more)) == taken


def test_what_newer_code_has_taken_up_is_not_for_the_older(store):
    """Also with the answer to a report, and when the newer one is gone; the older finishes what it had in hand."""
    submit(store, "1", plan(call("a"), call("b")))
    old, new = worker(store, "1"), worker(store, "2", "compatible", older=("1",))
    (ticket,) = store.claim(new, [], 1)
    grant = Grant(ticket.attempt, ticket.operation, ticket.generation, ticket.version)
    assert (written_by(store), claim(store, old)) == ("2", [])
    (told,) = audited(store, "continue")
    assert (told["actor"], told["authority"], told["detail"]) == (new, "code 2", "written by code 1")
    rejected, following = store.turn(grant, "succeeded", {"nonce": "n"}, "", execution=old, limit=1)
    assert (rejected, following) == (None, [])
    assert claim(store, new) == ["b"]


def test_who_says_nothing_of_code_is_given_everything(store):
    """As a program that knows of no versions expects, and the work stays of its version."""
    submit(store, "1")
    assert claim(store, "somebody") == ["a"]
    assert written_by(store) == "1"


@pytest.mark.parametrize(
    "said",
    [
        {"version": 1},
        {"version": ""},
        {"policy": "guess"},
        {"older": [2]},
        {"transforms": {"1": None}},
        {"name": "x"},
    ],
)
def test_a_worker_that_says_nonsense_of_its_code_is_refused(said):
    """By a code of its own, whatever the field."""
    with pytest.raises(Refusal) as no:
        Code.from_json(said)
    assert no.value.code == "bad-code"


# ---- stranded


def test_work_that_nobody_there_may_go_on_with_is_blocked_and_goes_on_when_somebody_may(store):
    """It is not failed, and is as it was: the same operations, the same lease to come."""
    submit(store, "1")
    before = states(views.status(store, "t"))
    assert store.strand([worker(store, "3")])
    status = views.status(store, "t")
    assert (status["state"], states(status)) == ("blocked", before)
    assert status["reason"] == (
        "code-incompatible: the work was written by code 1, and of those that are there code 3 goes on with 3;"
        " start a worker with `--code 1`, or one that goes on with it (`--older 1`);"
        " this is the version of `worker --code`, and none of `@workflow(..., code=...)`"
    )
    assert claim(store, worker(store, "2", "compatible", older=("1",))) == ["a"]
    assert views.status(store, "t")["state"] == "running"
    assert store._rows("SELECT kind FROM (SELECT move AS kind FROM transition WHERE operation = '')") == [
        ("admitted",),
        ("parked",),
        ("unparked",),
    ]


def test_it_is_told_once(store):
    """The version of the task grows with news only."""
    submit(store, "1")
    other = worker(store, "3")
    assert store.strand([other])
    version = views.status(store, "t")["version"]
    assert not store.strand([other])
    assert views.status(store, "t")["version"] == version


@pytest.mark.parametrize(
    "others", [["1"], ["2"], []], ids=["the same code is there", "fitting code is there", "nobody is there"]
)
def test_it_is_blocked_only_over_somebody_who_may_not(store, others):
    """Somebody who may go on is worth waiting for, and so is anybody when nobody is there."""
    submit(store, "1")
    known = {"1": worker(store, "1"), "2": worker(store, "2", "compatible", older=("1",)), "3": worker(store, "3")}
    assert not store.strand([known[one] for one in [*others, *(["3"] if others else [])]])
    assert views.status(store, "t")["state"] == "running"


def test_those_who_are_pinned_leave_work_to_others_without_a_word(store):
    """They neither take it nor have it shown as blocked."""
    submit(store, "1")
    pinned = worker(store, "3", "pin")
    assert not store.strand([pinned])
    assert claim(store, pinned) == []


def test_what_waits_for_something_else_is_not_blocked_on_code(store):
    """Only when there is something to go on with it is a question who may."""
    submit(store, "1")
    finish(store)
    other = worker(store, "3")
    assert not store.strand([other])
    assert views.status(store, "t")["state"] == "waiting"
    store.signal("t", "1", "go", {"nonce": "m"})
    assert store.strand([other])


def test_what_need_not_go_on_is_not_blocked_any_more(store):
    """Paused, it is for nobody to take up; as soon as it is again, there is the question who may."""
    submit(store, "1")
    other = worker(store, "3")
    assert store.strand([other])
    store.pause("t", "p")
    assert store.strand([other])
    assert views.status(store, "t")["state"] == "running"
    store.unpause("t", "u")
    assert store.strand([other])
    assert views.status(store, "t")["state"] == "blocked"


# ---- carrying over


def test_what_is_saved_is_carried_over_in_one_step_and_told(store):
    """Only what was not sent yet: that stays as it was asked for."""
    submit(store, "1")
    (ticket,) = store.claim(worker(store, "1"), [], 1)
    store.reclaim(ticket.generation)
    store.db.execute("UPDATE operation SET due_ns = 0 WHERE due_ns IS NOT NULL")
    new = worker(store, "2", "transform", transforms={"1": "doubled"})
    assert claim(store, new) == []
    assert written_by(store) == "2"
    assert claim(store, new) == ["a"]
    params = {
        id_: json.loads(text)
        for id_, text in store._rows("SELECT id, spec ->> 'params' FROM operation WHERE kind = 'call'")
    }
    assert params == {"a": {"amount": 1}, "b": {"amount": 4}}
    (told,) = audited(store, "transform")
    assert (told["actor"], told["authority"]) == (new, "transform doubled")


@pytest.mark.parametrize("name", ["forgetful", "unheard-of"])
def test_what_cannot_be_carried_over_stays_as_it_is(store, name):
    """Whether the function fails or is not there: nothing is changed, and the reason is shown."""
    submit(store, "1")
    new = worker(store, "2", "transform", transforms={"1": name})
    before = store._rows("SELECT id, spec FROM operation")
    assert claim(store, new) == []
    assert (written_by(store), store._rows("SELECT id, spec FROM operation")) == ("1", before)
    status = views.status(store, "t")
    assert (status["state"], name in status["reason"]) == ("blocked", True)
    assert audited(store, "transform") == []


# ---- the schema


def test_a_program_of_an_older_schema_refuses_the_store_and_leaves_it_as_it_is(tmp_path):
    """To the byte, so that the present program goes on as if nothing had been."""
    path = tmp_path / "s.db"
    store = Store.open(str(path))
    submit(store, "1")
    store.close()
    before = path.read_bytes()
    with pytest.raises(StoreError) as no:
        Store.open(str(path), known=SCHEMA_VERSION - 1)
    assert (no.value.code, path.read_bytes()) == ("store-newer", before)
    again = Store.open(str(path))
    assert claim(again, worker(again, "1")) == ["a"]
    again.close()

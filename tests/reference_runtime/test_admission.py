"""Admission: as many tasks as may be open, and no more; what is known, and what was admitted, is none the worse for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from reference_runtime import Store, views
from reference_runtime.model import Policy, Refusal
from tests.runtime_rig import call, finish, plan, wait

LIMITED = Policy(tasks_max=2)


@pytest.fixture
def full(tmp_path: Path) -> Store:
    """A store with as many open tasks as it admits: `t` waits for a signal, `u` for work."""
    store = Store.open(str(tmp_path / "s.db"), policy=LIMITED)
    store.submit("t", plan(wait("w", "go")))
    store.submit("u", plan(call("a")))
    return store


def test_one_too_many_is_refused_and_leaves_nothing(full):
    """The refusal names its reason, and the task is unknown."""
    with pytest.raises(Refusal, match="over-capacity: 2 tasks are open"):
        full.submit("v", plan(call("a")))
    assert views.status(full, "v") == {"state": "unknown"}


def test_what_is_known_has_its_receipt_all_the_same(full):
    """A repeat is the same task, and another plan under its id is a conflict, however full it is."""
    assert full.submit("t", plan(wait("w", "go"))).attempt == "t.1"
    with pytest.raises(Refusal, match="conflict"):
        full.submit("t", plan(call("a")))


def test_what_is_known_is_not_read_again(full, monkeypatch):
    """A client that repeats itself costs a look at the digest, whatever its plan comes to."""
    monkeypatch.setattr("reference_runtime.store.parse", lambda _: pytest.fail("it was read again"))
    assert full.submit("t", plan(wait("w", "go"))).attempt == "t.1"
    with pytest.raises(Refusal, match="conflict"):
        full.submit("t", plan(call("a")))


def test_a_child_is_not_measured_again(tmp_path, monkeypatch):
    """What was admitted with its parent begins, also by a program that admits less."""
    store = Store.open(str(tmp_path / "s.db"))
    store.submit("t", plan(call("a"), {"op": "child", "id": "c", "plan": plan(call("b"))}))
    monkeypatch.setattr("reference_runtime.plan.STORED_MAX", 1)
    finish(store)
    finish(store)
    assert views.status(store, "t")["state"] == "done"


def test_there_is_room_when_a_task_has_ended(full):
    """Only open tasks count, also after a restart."""
    finish(full)
    path = full.db.filename
    full.close()
    store = Store.open(path, policy=LIMITED)
    assert store.submit("v", plan(call("a"))).attempt == "v.1"
    with pytest.raises(Refusal, match="over-capacity"):
        store.submit("x", plan(call("a")))


def test_children_of_what_was_admitted_are_admitted(tmp_path):
    """A limit is for what comes from outside; it never keeps an admitted task from going on."""
    store = Store.open(str(tmp_path / "s.db"), policy=Policy(tasks_max=1))
    child = {"op": "child", "id": "c", "plan": plan(call("a"))}
    store.submit("t", plan(child))
    finish(store)
    assert views.status(store, "t")["state"] == "done"


def test_without_a_limit_nothing_is_counted(store):
    """No policy, no refusal."""
    for number in range(20):
        store.submit(f"t{number}", plan(wait("w", "go")))
    assert (store.open_tasks(), store.is_full(20)) == (0, False)

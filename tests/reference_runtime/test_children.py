"""Children: admitted with their leaf, accepted once, stopped with their owner, on their own when detached."""

from __future__ import annotations

import pytest

from reference_runtime import Policy, Refusal, Store, views
from reference_runtime.children import CHILDREN_DEEP_MAX
from reference_runtime.events import events
from reference_runtime.model import Json
from tests.runtime_plans import child, claim, settle, wanting, work_off
from tests.runtime_rig import call, par, plan, race, seq, states, wait

POLICY = Policy(backoff_ns_min=2, backoff_ns_max=2)


@pytest.fixture
def store(tmp_path):
    return Store.open(str(tmp_path / "s.db"), policy=POLICY)


def again(store: Store) -> Store:
    """The same file after the process is gone."""
    path = store.db.filename
    store.close()
    return Store.open(path, policy=POLICY)


def shown(store: Store, task: str = "t") -> Json:
    return views.status(store, task)


def test_a_childs_end_is_its_leafs_end(store):
    """The child is there when its leaf opens, what follows waits for it, and its end is accepted in the same moment."""
    store.submit("t", plan(call("a"), child("k", call("x"), call("y")), call("b")))
    assert shown(store, "t/k") == {"state": "unknown"}
    settle(store, claim(store)[0])
    assert shown(store)["children"] == [{"run": "t/k", "state": "runnable", "detached": False}]
    store = again(store)
    assert work_off(store) == ["t/k:x", "t/k:y", "t:b"]
    assert (shown(store)["state"], shown(store, "t/k")["state"]) == ("done", "done")
    assert shown(store)["result"] == {"a": "n-a", "b": "n-b"}


def test_an_empty_child_is_over_at_once(store):
    """A child without operations ends in the transaction that admits it."""
    store.submit("t", plan(child("k"), call("b")))
    assert work_off(store) == ["t:b"]
    assert shown(store)["state"] == "done"


def test_a_pause_holds_the_children_with_their_owner(store):
    """Those that are there and one that comes meanwhile; a detached one is nobody's; one that was paused by itself stays so."""
    deep = child("k", child("l", call("x"), call("y")))
    store.submit("t", plan(par(deep, call("a"), child("free", call("f"), detached=True)), child("m", call("z"))))
    taken = claim(store, 2)
    store.pause("t/k/l", "own")
    store.pause("t", "p")
    assert [shown(store, task)["paused"] for task in ("t", "t/k", "t/k/l", "t/free")] == [True, True, True, False]
    store = again(store)
    for one in taken:
        settle(store, one)
    assert work_off(store) == ["t/free:f"]
    store.unpause("t", "u")
    assert [shown(store, task)["paused"] for task in ("t", "t/k", "t/k/l")] == [False, False, True]
    assert work_off(store) == []
    store.unpause("t/k/l", "own-u")
    assert work_off(store) == ["t/k/l:y", "t/m:z"]
    assert shown(store)["state"] == "done"


def test_a_child_that_is_admitted_during_a_pause_waits(store):
    """What leads to it was in flight as the pause came; its own unpause does not let it go on before its owner."""
    store.submit("t", plan(call("a"), child("k", call("x"))))
    taken = claim(store)
    store.pause("t", "p")
    settle(store, taken[0])
    store.unpause("t/k", "too-soon")
    assert (shown(store, "t/k")["paused"], work_off(store)) == (True, [])
    store.unpause("t", "u")
    assert work_off(store) == ["t/k:x"]


def test_children_have_children(store):
    """Ends are handed up from the innermost one."""
    store.submit("t", plan(child("k", child("l", call("x")))))
    assert work_off(store) == ["t/k/l:x"]
    assert [shown(store, task)["state"] for task in ("t/k/l", "t/k", "t")] == ["done"] * 3


def test_a_childs_result_is_accepted_once(store):
    """Hearing of its end again changes nothing."""
    store.submit("t", plan(child("k", call("x"))))
    work_off(store)
    before = shown(store)
    with store._transaction():
        store.child_ended("t/k.1", "failed")
    assert shown(store) == before


def test_a_failed_child_fails_its_leaf_and_says_why(store):
    """The reason goes up with the failure."""
    store.submit("t", plan(child("k", call("x")), call("b")))
    settle(store, claim(store)[0], "failed")
    assert (shown(store)["state"], states(shown(store))["k"]) == ("failed", "failed")
    assert shown(store)["reason"].startswith("child-failed: k failed: t/k: rejected: x failed")


def test_an_unresolved_child_is_not_a_failed_one(store):
    """An effect that nobody could establish below is one above."""
    store.submit("t", plan(child("k", call("x", "mailer"))))
    settle(store, claim(store)[0], "unknown")
    assert (shown(store)["state"], states(shown(store))["k"]) == ("blocked", "unresolved")


@pytest.mark.parametrize("is_stopped", [True, False])
def test_a_child_whose_end_was_taken_begins_nothing_more(store, is_stopped):
    """A late word about its effect settles that; what would follow was given up with its end, and its share is its owner's."""
    inner = child("k", call("x", "mailer"), call("y"), share={"calls": 2})
    store.submit("t", wanting(plan(par(inner, wait("w", "go"))), allowance={"calls": 2}))
    settle(store, claim(store)[0], "unknown")
    if is_stopped:
        store.cancel("t", "stop")
    told = store.signal("t/k", "n", "notice", {"operation": "x", "nonce": "late"})
    assert told["disposition"] == "released"
    assert work_off(store) == []
    assert states(shown(store, "t/k")) == {"x": "reconciled", "y": "planned"}
    assert shown(store, "t/k")["state"] == "blocked"
    if not is_stopped:
        store.signal("t", "g", "go", {"nonce": "n"})
    assert shown(store)["state"] == ("cancelled" if is_stopped else "blocked")


def test_a_late_word_lets_a_detached_child_go_on(store):
    """Nobody has taken its end but itself."""
    store.submit("t", plan(child("k", call("x", "mailer"), call("y"), detached=True)))
    settle(store, claim(store)[0], "unknown")
    store.signal("t/k", "n", "notice", {"operation": "x", "nonce": "late"})
    assert work_off(store) == ["t/k:y"]


def test_a_failing_parent_stops_its_children_and_waits_for_them(store):
    """Nothing more of a child is admitted, and the parent is over only after what the child has under way."""
    store.submit("t", plan(par(call("a"), child("k", call("x"), call("y")))))
    a, x = sorted(claim(store, 2), key=lambda ticket: ticket.operation)
    settle(store, a, "failed")
    assert (shown(store)["state"], shown(store, "t/k")["cancel"]) == ("running", "accepted")
    store = again(store)
    settle(store, x)
    assert claim(store) == []
    assert (shown(store)["state"], shown(store, "t/k")["state"]) == ("failed", "cancelled")
    assert states(shown(store, "t/k")) == {"x": "succeeded", "y": "planned"}


def test_a_cancelled_parent_stops_its_children(store):
    """A stop goes down the tree, and it is cancelled that everybody ends."""
    store.submit("t", plan(child("k", child("l", wait("w", "go")))))
    store.cancel("t", "stop")
    assert [shown(store, task)["state"] for task in ("t/k/l", "t/k", "t")] == ["cancelled"] * 3


def test_what_a_child_does_is_a_new_version_of_its_parent(store):
    """A parent's status shows how its children stand, so it is never another one under the same version."""
    store.submit("t", wanting(plan(child("k", child("l", call("x"), wait("w", "go")))), allowance={"calls": 5}))
    seen = {shown(store)["version"]: shown(store)}
    (ticket,) = claim(store)
    for act in (lambda: None, lambda: settle(store, ticket), lambda: store.signal("t/k/l", "1", "go", {"nonce": "n"})):
        act()
        status = shown(store)
        assert seen.setdefault(status["version"], status) == status
    assert shown(store)["state"] == "done"


def test_a_child_that_lost_a_race_is_stopped(store):
    """Nobody waits for it any more, so nothing new of it begins, and it keeps nobody up; what it has under way is followed."""
    inner = child("k", par(call("x"), wait("w", "go")), call("y"))
    store.submit("t", plan(race("r", seq(inner, call("z"), id_="s"), call("won")), call("after")))
    x, won = sorted(claim(store, 2), key=lambda ticket: ticket.task == "t")
    settle(store, won)
    assert (shown(store, "t/k")["state"], shown(store, "t/k")["cancel"]) == ("running", "accepted")
    assert states(shown(store))["z"] == "skipped"
    settle(store, x)
    assert shown(store, "t/k")["state"] == "cancelled"
    assert work_off(store) == ["t:after"]
    assert (shown(store)["state"], states(shown(store))["k"]) == ("done", "failed")


def test_a_detached_child_has_lost_no_race(store):
    """It is no longer its parent's, whichever way that goes."""
    inner = child("k", wait("w", "go"), detached=True)
    store.submit("t", plan(race("r", seq(inner, call("z"), id_="s"), call("won"))))
    tickets = {one.operation: one for one in claim(store, 2)}
    settle(store, tickets["won"])
    settle(store, tickets["z"])
    assert (shown(store)["state"], shown(store, "t/k")["state"], shown(store, "t/k")["cancel"]) == (
        "done",
        "waiting",
        None,
    )


def test_a_detached_child_goes_on_by_itself(store):
    """Its leaf is accepted when it is admitted, and nothing that happens to its parent reaches it."""
    store.submit("t", plan(child("k", wait("w", "go"), call("x"), detached=True), call("b")))
    assert states(shown(store))["k"] == "succeeded"
    settle(store, claim(store)[0], "failed")
    assert shown(store)["state"] == "failed"
    assert shown(store)["children"] == [{"run": "t/k", "state": "waiting", "detached": True}]
    store.signal("t/k", "1", "go", {"nonce": "n"})
    assert work_off(store) == ["t/k:x"]
    assert shown(store, "t/k")["state"] == "done"
    assert store._rows("SELECT owner FROM child") == [("detached",)]


def test_what_a_detached_child_gets_it_gets_for_good(store):
    """Its share counts as consumed by its parent, whatever it does with it."""
    store.submit("t", wanting(plan(child("k", call("x"), detached=True, share={"calls": 2})), allowance={"calls": 3}))
    work_off(store)
    assert shown(store)["usage"]["calls"] == {"allowance": 3, "consumed": 2, "reserved": 0, "unknown": 0}


def test_a_malformed_child_is_refused_with_its_parent(store):
    """What could not be admitted later is not admitted now, however deep it lies."""
    endless = child("k", call("x"))
    for _ in range(12):
        endless = child("k", endless)
    for wrong in (
        {"op": "child", "id": "k", "plan": {"version": 1}},
        endless,
        child("k", share={"money": 1}),
        call("a~2"),
    ):
        with pytest.raises(Refusal, match="bad-plan"):
            store.submit("t", plan(call("a"), wrong))


def test_a_childs_id_may_be_taken(store):
    """A task that has the child's id already stays what it is, and the leaf fails with the reason."""
    store.submit("t/k", plan(call("mine")))
    store.submit("t", plan(child("k", call("x"))))
    assert shown(store)["reason"] == "child-id-taken: there is a task 't/k' already"
    assert states(shown(store, "t/k")) == {"mine": "planned"}


def test_children_are_only_so_deep_that_a_stop_gets_through(store, monkeypatch):
    """As deep as they may be all are stopped at once; one deeper fails, and says why."""
    monkeypatch.setattr("reference_runtime.plan.CHILDREN_DEEP_MAX", 2 * CHILDREN_DEEP_MAX)
    for task, deep in (("t", CHILDREN_DEEP_MAX), ("u", CHILDREN_DEEP_MAX + 1)):
        work = plan(wait("w", "go"))
        for _ in range(deep):
            work = plan({"op": "child", "id": "k", "plan": work})
        store.submit(task, work)
    assert shown(store, "t" + "/k" * CHILDREN_DEEP_MAX)["state"] == "waiting"
    assert store.cancel("t", "c1")["disposition"] == "accepted"
    assert shown(store, "t" + "/k" * CHILDREN_DEEP_MAX)["state"] == "cancelled"
    assert shown(store)["state"] == "cancelled"
    assert (shown(store, "u")["state"], shown(store, "u")["reason"].count("child-too-deep")) == ("failed", 1)


def test_a_childs_id_is_only_so_long(store):
    """It goes into keys and headers, with the ids of all that it is a child of."""
    work = plan(wait("w", "go"))
    for _ in range(4):
        work = plan({"op": "child", "id": "k" * 255, "plan": work})
    store.submit("tt", work)
    assert "child-id-too-long: it would have 1026 characters; at most 1024" in str(shown(store, "tt")["reason"])


def test_a_stop_has_come_as_far_as_it_has_in_every_child(store):
    """It is delivered when those were told who hold something of a child, and quiescent when none of them does."""
    store.submit("t", plan(child("k", child("l", call("x"), call("y")))))
    (held,) = claim(store)
    store.cancel("t", "c1")
    assert [shown(store, task)["cancel"] for task in ("t", "t/k", "t/k/l")] == ["accepted"] * 3
    store.tell("w", [held.generation])
    assert [shown(store, task)["cancel"] for task in ("t", "t/k", "t/k/l")] == ["delivered"] * 3
    settle(store, held)
    assert [shown(store, task)["cancel"] for task in ("t", "t/k", "t/k/l")] == ["quiescent"] * 3
    assert [shown(store, task)["state"] for task in ("t", "t/k", "t/k/l")] == ["cancelled"] * 3


@pytest.mark.parametrize(
    "before", [(), (call("a"),), ({"op": "nondet", "id": "a", "kind": "uuid"},)], ids=["first", "call", "drawn"]
)
def test_a_child_that_is_not_all_opened_has_not_ended(store, before):
    """What a child begins with may be over as it is opened; what follows is opened before anybody looks how it stands."""
    drawn = {"op": "nondet", "id": "y", "kind": "uuid"}
    store.submit("t", plan(*before, child("k", drawn, call("w")), call("z")))
    assert work_off(store)[-2:] == ["t/k:w", "t:z"]
    assert (shown(store)["state"], shown(store, "t/k")["state"]) == ("done", "done")
    assert ends(store, "t") == ends(store, "t/k") == ["succeeded"]


@pytest.mark.parametrize(
    "steps", [(child("k"), call("z")), (par(child("k"), call("z")),), (call("a"), par(child("k"), call("z")))]
)
def test_a_parent_that_is_not_all_opened_has_not_ended(store, steps):
    """A child may be over as it is opened, before what stands beside or behind it is."""
    store.submit("t", plan(*steps))
    assert work_off(store)[-1] == "t:z"
    assert ends(store, "t") == ["succeeded"]


def ends(store: Store, task: str) -> list[str]:
    """The ends that were told of a run, by its events."""
    told = [event["kind"] for event in events(store, task, 0)["events"] if event["operation"] is None]
    return [kind for kind in told if kind != "admitted"]

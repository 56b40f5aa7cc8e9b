"""Branches, races and loops: decided once, by what was accepted, and with a reason for everything that is skipped."""

from __future__ import annotations

import pytest

from reference_runtime import Store, views
from tests.runtime_rig import (
    branch,
    call,
    finish,
    in_hand,
    loop,
    par,
    plan,
    race,
    run_out,
    seq,
    settle,
    sleep,
    states,
    wait,
)


def detail(store: Store, operation: str) -> str:
    return next(o["detail"] for o in views.status(store, "t")["operations"] if o["id"] == operation)


@pytest.mark.parametrize(("nonce", "taken", "skipped"), [("x1", "odd", "even"), ("x0", "even", "odd")])
def test_a_branch_takes_one_arm_and_skips_the_other(store, nonce, taken, skipped):
    """The accepted nonce decides; the other arm is skipped for that reason, and what stands behind goes on."""
    store.submit("t", plan(call("a"), branch("b", "a", call("even"), seq(call("odd"), call("odd2"))), call("z")))
    finish(store, nonce=nonce)
    assert states(views.status(store, "t"))[skipped] == "skipped"
    assert detail(store, skipped) == f"branch b took {'B' if taken == 'odd' else 'A'}"
    assert run_out(store) == ([taken, "odd2", "z"] if taken == "odd" else [taken, "z"])
    status = views.status(store, "t")
    assert status["state"] == "done"
    assert skipped not in status["result"]


def test_a_decision_is_part_of_the_acceptance(store, reopened):
    """The transaction that accepts the answer decides the branch: no restart finds it open."""
    store.submit("t", plan(call("a"), branch("b", "a", call("x"), call("y"))))
    finish(store, nonce="1")
    assert states(views.status(reopened(store), "t")) == {
        "a": "succeeded",
        "b": "succeeded",
        "x": "skipped",
        "y": "planned",
    }


def test_branches_in_skipped_arms_are_skipped_with_them(store):
    """What is decided against goes with everything in it."""
    inner = seq(call("i"), branch("c", "i", call("x"), call("y")), id_="in")
    store.submit("t", plan(call("a"), branch("b", "a", inner, wait("w", "go")), call("z")))
    finish(store, nonce="1")
    assert states(views.status(store, "t")) == {
        "a": "succeeded", "b": "succeeded", "i": "skipped", "c": "skipped", "x": "skipped", "y": "skipped",
        "w": "planned", "z": "planned",
    }  # fmt: skip


def test_a_loop_goes_on_while_its_operation_says_so(store):
    """Odd: once more; even: the rest is skipped, all copies of it."""
    store.submit("t", plan(loop("l", "x", 4, call("x"), call("y")), call("z")))
    for nonce in ("1", "0", "3", "0", "2", "0"):
        finish(store, nonce=nonce)
    found = states(views.status(store, "t"))
    assert [name for name, state in found.items() if state == "skipped"] == ["x@4", "y@4"]


def test_a_loop_ends_at_the_first_even_answer(store):
    """Copies after it never begin."""
    store.submit("t", plan(loop("l", "x", 3, call("x")), call("z")))
    finish(store, nonce="1")
    finish(store, nonce="2")
    assert run_out(store) == ["z"]
    found = states(views.status(store, "t"))
    assert (found["x@2"], found["l@3"], found["x@3"]) == ("succeeded", "succeeded", "skipped")


def test_a_loop_may_have_many_turns(store):
    """What it costs to write out grows with its turns and not with their square; the first end skips all that is left."""
    store.submit("t", plan(loop("l", "x", 100, call("x"), branch("b", "x", call("p"), call("q"))), call("z")))
    assert store._value("SELECT count(*) FROM guard") == 2 + 99 * 6 + 98
    finish(store, nonce="1")
    finish(store)
    finish(store, nonce="2")
    assert run_out(store) == ["p@2", "z"]
    assert set(states(views.status(store, "t")).values()) == {"succeeded", "skipped"}


def test_a_loop_is_bounded(store):
    """After its last turn it is over, whatever that says."""
    store.submit("t", plan(loop("l", "x", 2, call("x")), call("z")))
    for nonce in ("1", "1", "z1"):
        finish(store, nonce=nonce)
    assert views.status(store, "t")["state"] == "done"


def test_the_first_child_that_ends_wins_the_race(store):
    """Planned work of the others is skipped; what was dispatched is followed to its end and counts for nothing."""
    store.submit(
        "t", plan(race("r", seq(call("a"), call("a2")), call("b"), wait("w", "go"), sleep("s", 10**15)), call("z"))
    )
    tickets = in_hand(store)
    settle(store, tickets["b"])
    found = states(views.status(store, "t"))
    assert found == {
        "a": "dispatched", "a2": "skipped", "b": "succeeded", "w": "skipped", "s": "skipped", "r": "succeeded", "z": "planned",
    }  # fmt: skip
    assert detail(store, "a2") == "race r was won by child 1"
    assert run_out(store) == ["z"]
    assert views.status(store, "t")["state"] == "running"
    settle(store, tickets["a"], "failed")
    assert views.status(store, "t")["state"] == "done"
    assert store._value("SELECT count(*) FROM timer WHERE fired_ns IS NULL") == 0


def test_a_child_of_several_ends_wins_with_the_last_of_them(store):
    """Half a child is no winner."""
    store.submit("t", plan(race("r", par(call("a"), call("b")), call("c"))))
    tickets = in_hand(store)
    settle(store, tickets["a"])
    assert states(views.status(store, "t"))["r"] == "planned"
    settle(store, tickets["b"])
    assert states(views.status(store, "t"))["r"] == "succeeded"


def test_a_lost_race_leaves_nothing_unresolved(store):
    """An effect of a loser that nobody could establish is no reason to block the run."""
    store.submit("t", plan(race("r", call("a", "mailer"), call("b"))))
    tickets = in_hand(store)
    settle(store, tickets["b"])
    settle(store, tickets["a"], "unknown")
    status = views.status(store, "t")
    assert (status["state"], states(status)["a"]) == ("done", "unresolved")


def test_a_race_is_won_once(store):
    """The second to end changes nothing."""
    store.submit("t", plan(race("r", seq(call("a"), call("a2")), seq(call("b"), call("b2"), id_="other")), call("z")))
    first = in_hand(store)
    for ticket in first.values():
        settle(store, ticket)
    second = in_hand(store)
    settle(store, second["a2"])
    settle(store, second["b2"])
    assert detail(store, "r") == "race r was won by child 0"
    assert run_out(store) == ["z"]


def test_drawn_values_are_drawn_once(store, reopened):
    """A value is recorded in the transaction that draws it, and is the same ever after."""
    draws = [{"op": "nondet", "id": kind, "kind": kind} for kind in ("time", "random", "uuid")]
    store.submit("t", plan(*draws, call("a", carries=("random",))))
    before = {one["id"]: one["nonce"] for one in views.status(store, "t")["operations"]}
    store = reopened(store)
    assert in_hand(store)["a"].carries == {"random": before["random"]}
    assert {one["id"]: one["nonce"] for one in views.status(store, "t")["operations"]} == before
    assert len({before[kind] for kind in ("time", "random", "uuid")}) == 3


def test_a_planned_failure_fails_the_run(store):
    """It says what the plan says, and nothing begins after it."""
    store.submit("t", plan(call("a"), {"op": "fail", "id": "f", "reason": "no stock"}, call("z")))
    finish(store)
    status = views.status(store, "t")
    assert (status["state"], status["reason"]) == ("failed", "planned-failure: f: no stock")
    assert states(status) == {"a": "succeeded", "f": "failed", "z": "planned"}


def test_a_tolerated_refusal_is_an_outcome(store):
    """The operation failed, is shown so, has no nonce, and its dependants go on."""
    store.submit("t", plan({**call("a"), "tolerate": True}, call("z", carries=("a",))))
    finish(store, "failed")
    assert in_hand(store)["z"].carries == {}
    assert states(views.status(store, "t"))["a"] == "failed"


def test_long_chains_of_decisions_are_walked(store):
    """A thousand operations that the store decides itself take no depth of calls."""
    store.submit("t", plan(*({"op": "nondet", "id": f"n{n}", "kind": "random"} for n in range(1500))))
    assert views.status(store, "t")["state"] == "done"

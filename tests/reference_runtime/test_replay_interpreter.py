"""The interpreter, without a store: any plan is carried out in its order, under its own ids, and what is left out is named."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from reference_runtime.commands import ABANDON, Command, Outcome, Raised, Returned
from reference_runtime.interpreter import interpret
from reference_runtime.model import Json
from reference_runtime.plan import parse
from reference_runtime.replay import Replay
from reference_runtime.workflow import Context
from tests.runtime_rig import call, par, plan, seq, sleep, wait

NOTED = ("compensate", "race", "branch", ABANDON)


def _begin(data: Json) -> Replay:
    return Replay(lambda: interpret(Context("t"), data))


def _walk(data: Json, which: Any = lambda n: 0, nonce: Any = lambda id_: "0") -> tuple[list[Command], Replay]:
    """Carry a plan out, one outcome at a time, chosen among what is open; the commands in their order."""
    replay = _begin(data)
    commands: list[Command] = []
    opened: list[str] = []
    while True:
        for command in replay.fresh:
            if command.kind == ABANDON:
                opened = [id_ for id_ in opened if id_ not in command.spec["operations"]]
            elif command.kind not in NOTED:
                opened.append(command.id)
        commands += replay.fresh
        replay.recorded()
        if replay.end is not None or not opened:
            return commands, replay
        id_ = opened.pop(which(len(opened)))
        replay.deliver(Outcome(id_, "succeeded", {"nonce": nonce(id_)}))


LEAVES = st.sampled_from(["call", "wait", "sleep"])
TREES = st.recursive(
    LEAVES, lambda inner: st.tuples(st.sampled_from(["seq", "par"]), st.lists(inner, max_size=3)), max_leaves=10
)


def _named(tree: Any, path: str = "r") -> Json:
    if isinstance(tree, tuple):
        make = seq if tree[0] == "seq" else par
        return make(*(_named(child, f"{path}{number}") for number, child in enumerate(tree[1])), id_=path)
    return {"call": call(path), "wait": wait(path, "go"), "sleep": sleep(path, 1)}[tree]


@settings(max_examples=200, deadline=None)
@given(tree=TREES, data=st.data())
def test_every_operation_waits_for_what_the_plan_says(tree, data):
    """Each leaf is asked for once, under its id, exactly when what it needs has been accepted."""
    made = plan(_named(tree))
    needs = {step.id: set(step.needs) for step in parse(made)}
    replay, opened = _begin(made), []
    done: set[str] = set()
    while replay.end is None:
        assert replay.check() is None
        opened += [command.id for command in replay.fresh]
        assert sorted(opened) == sorted({id_ for id_, need in needs.items() if need <= done} - done)
        replay.recorded()
        id_ = opened.pop(data.draw(st.integers(0, len(opened) - 1)))
        done.add(id_)
        replay.deliver(Outcome(id_, "succeeded", {"nonce": "1"}))
    assert replay.end == Returned(None)
    assert done == set(needs)


def _branch(id_: str, on: str, *children: Json) -> Json:
    return {"op": "branch", "id": id_, "on": on, "children": list(children)}


@pytest.mark.parametrize(("nonce", "taken", "left"), [("2", "x", "y"), ("3", "y", "x")])
def test_a_branch_takes_one_arm_and_names_the_other(nonce, taken, left):
    """The parity of an accepted nonce decides; the leaves of the other arm are told as left out."""
    commands, replay = _walk(
        plan(call("a"), _branch("b", "a", call("x"), call("y")), call("z")), nonce=lambda id_: nonce
    )
    assert [one.id for one in commands] == ["a", "b", taken, "z"]
    assert [leaf["id"] for leaf in commands[1].spec["others"]] == [left]
    assert replay.end == Returned(None)


@pytest.mark.parametrize(
    ("nonces", "ids"),
    [
        ("2", ["a@1", "l@2", "l@3"]),
        ("32", ["a@1", "l@2", "a@2", "l@3"]),
        ("333", ["a@1", "l@2", "a@2", "l@3", "a@3"]),
    ],
)
def test_a_loop_goes_on_while_its_last_copy_says_so(nonces, ids):
    """Each copy has ids of its own, each decision one of its own, and after the last copy the loop ends."""
    loop = {"op": "loop", "id": "l", "on": "a", "times": 3, "children": [call("a")]}
    commands, replay = _walk(plan(loop), nonce=lambda id_: nonces[int(id_[-1]) - 1])
    assert [one.id for one in commands] == ids
    known = {one.id for one in commands} | {leaf["id"] for one in commands for leaf in one.spec.get("others", ())}
    assert known == {step.id for step in parse(plan(loop))}
    assert replay.end == Returned(None)


def test_a_race_has_one_winner_and_the_rest_is_left_out():
    """What a loser waits for is abandoned, what it had not come to is named, and the race's own id follows."""
    race = {"op": "race", "id": "r", "children": [seq(call("a"), call("b"), id_="s"), sleep("t", 5)]}
    commands, replay = _walk(plan(race, call("z")), which=lambda n: n - 1)
    assert [one.id for one in commands] == ["a", "t", "abandon#1", "r", "z"]
    assert commands[2].spec["operations"] == ["a"]
    assert [leaf["id"] for leaf in commands[3].spec["others"]] == ["b"]
    assert replay.end == Returned(None)


def test_compensations_are_noted_before_anything_begins():
    """How to make up for a call is known before the call is made, also for those of a loop's later copies."""
    body = [call("a"), {"op": "compensate", "id": "c", "of": "a", "service": "ledger", "params": {}}]
    loop = {"op": "loop", "id": "l", "on": "a", "times": 2, "children": body}
    commands, _ = _walk(plan(loop), nonce=lambda id_: "3")
    assert [(one.id, one.spec.get("of")) for one in commands] == [
        ("c@1", "a@1"),
        ("a@1", None),
        ("l@2", "a@1"),
        ("c@2", "a@2"),
        ("a@2", None),
    ]


def test_an_approval_says_what_it_is_about():
    """The decision is bound to the later call, as the plan has it."""
    commands, _ = _walk(plan({"op": "approve", "id": "ok", "of": "pay"}, call("pay", amount=3)))
    assert commands[0].spec["action"] == call("pay", amount=3)


@pytest.mark.parametrize(("tolerate", "end"), [(False, Raised("rejected: no")), (True, Returned(None))])
def test_a_refusal_fails_the_plan_unless_it_is_tolerated(tolerate, end):
    """A failed operation ends the run for its own reason; where the plan tolerates it, the plan goes on."""
    replay = _begin(plan({**call("a"), "tolerate": tolerate}))
    replay.deliver(Outcome("a", "failed", None, "rejected: no"))
    assert replay.end == end

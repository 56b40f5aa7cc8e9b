"""Plans laid out: what runs after what, what a decision leaves out, and what is refused."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from hypothesis import given

from scenarios.plan import (
    OPTIONS,
    Allowance,
    Approve,
    Artifact,
    Branch,
    Call,
    Check,
    Child,
    Choice,
    Compensate,
    Fail,
    Guard,
    Loop,
    Model,
    Nondet,
    Op,
    Par,
    Plan,
    PlanError,
    Race,
    Reserve,
    Seq,
    Sleep,
    Wait,
    approval_digest,
    arm,
    content,
)
from scenarios.strategies import plans
from tests.scenarios.build import plan


def ledger(name: str, *carries: str) -> Call:
    return Call(name, "ledger", {}, carries)


def edges(written: Plan) -> set[tuple[str, str]]:
    return set(written.dependencies().edges)


EVERYTHING = Plan(
    Seq(
        "main",
        (
            Call("a", "ledger", {"amount": 1}, (), ("429",), 3, 5_000, "token", True, ("down",)),
            Nondet("n", "uuid"),
            Model("m", "go on", 100, ("cut",), ("n",), 40),
            Branch("b", "m", (ledger("left"), Seq("right", (Sleep("s", 5), ledger("r", "m"))))),
            Loop("l", (ledger("x"), Call("y", "reader", {}, ("x",))), "y", 3),
            Race("first", (ledger("one"), Wait("w", "go", 9))),
            Child("kid", Seq("k", (ledger("k1"), Call("k2", "ledger", {}, ("k1",)))), share=Allowance(calls=2)),
            Child("free", ledger("f1"), detached=True),
            Artifact("p", "report", 100, 2, ("m",)),
            Check("q", "p", ("unavailable",), required=False),
            Approve("ok", "pay", 7),
            Par("both", (ledger("pay", "ok"), Compensate("undo", "pay", "ledger", {"of": "pay"}))),
            Fail("f", "enough"),
        ),
    ),
    Allowance(10, 200, 3_000, 2, Reserve(1, 10)),
    9_000,
    "1",
)


def test_every_operation_survives_json_and_names_what_it_needs() -> None:
    """A plan with every kind and every option comes back as it was, and says so."""
    assert Plan.from_json(EVERYTHING.to_json()) == EVERYTHING
    groups = ["seq", "par", "race", "branch", "loop"]
    steps = ["call", "wait", "sleep", "approve", "model", "child", "artifact", "check", "fail", "nondet", "compensate"]
    kinds = {*groups, *steps}
    assert EVERYTHING.kinds() == kinds
    assert EVERYTHING.needs() == {*kinds, *OPTIONS} - {"sizes", "poison"}
    assert plan("a ledger", "s sleep 1").needs() == {"seq", "call", "sleep"}


def test_what_is_not_used_is_not_written() -> None:
    """A plan of the basic operations is written as it always was."""
    assert plan("a ledger", "w wait go").to_json() == {
        "version": 1,
        "root": {
            "op": "seq",
            "id": "main",
            "children": [
                {"op": "call", "id": "a", "service": "ledger", "params": {"of": "a"}, "carries": [], "script": []},
                {"op": "wait", "id": "w", "signal": "go"},
            ],
        },
    }


def test_a_race_is_over_with_its_first_child() -> None:
    """What follows depends on the race's own leaf, and certainly on none of the children."""
    written = plan("a ledger", Race("r", (ledger("one"), Seq("s", (ledger("two"), ledger("three"))))), "z ledger")
    assert edges(written) == {("a", "one"), ("a", "two"), ("two", "three"), ("one", "r"), ("three", "r"), ("r", "z")}
    assert written.leaf("r") == Choice("r", "race")
    assert written.guards("three") == (Guard("r", "race", 1),)
    assert written.certain()["z"] == {"a", "r"}
    assert written.certain()["three"] == {"a", "two"}
    assert not written.is_owed("one")
    assert written.is_owed("z")


def test_a_branch_takes_one_arm_by_its_answer() -> None:
    """Both arms begin after the decision; what follows waits for the ends of both, taken or skipped."""
    written = plan("a ledger", Branch("b", "a", (ledger("l"), Seq("none", ()))), "z ledger")
    assert edges(written) == {("a", "b"), ("b", "l"), ("l", "z"), ("b", "z")}
    assert written.leaf("b") == Choice("b", "branch", "a")
    assert written.guards("l") == (Guard("b", "branch", 0),)
    assert written.certain()["z"] == {"a", "b"}


@pytest.mark.parametrize(("nonce", "way"), [("ab1", 1), ("ab2", 0), ("abf", 1), ("xyz", 0), ("", 0), (None, 0)])
def test_an_arm_is_the_parity_of_the_last_digit(nonce: str | None, way: int) -> None:
    """Whatever an answer looks like, it decides."""
    assert arm(nonce) == way


def test_a_loop_is_unrolled_into_copies_that_depend_on_each_other() -> None:
    """Names inside the body mean the same copy; each further round is a decision on the copy before."""
    written = plan(
        "a ledger", Loop("l", (ledger("x", "a"), ledger("y", "x")), "y", 3), Call("z", "ledger", {}, ("y@1",))
    )
    assert [leaf.id for leaf in written.leaves()] == ["a", "x@1", "y@1", "l@2", "x@2", "y@2", "l@3", "x@3", "y@3", "z"]
    assert written.leaf("l@3") == Choice("l@3", "loop", "y@2")
    again = written.leaf("y@2")
    assert isinstance(again, Call)
    assert again.carries == ("x@2",)
    assert written.guards("x@3") == (Guard("l@2", "loop", 1), Guard("l@3", "loop", 1))
    assert {("y@2", "l@3"), ("l@3", "x@3"), ("y@3", "z")} <= edges(written)
    assert written.certain()["z"] == {"a", "x@1", "y@1", "l@2"}


def test_in_a_loop_of_a_loop_the_outer_number_comes_first() -> None:
    """So that each outer round has rounds of its own."""
    inner = Loop("i", (ledger("x"),), "x", 2)
    written = plan(Loop("o", (inner, ledger("y")), "y", 2))
    names = ["x@1@1", "i@1@2", "x@1@2", "y@1", "o@2", "x@2@1", "i@2@2", "x@2@2", "y@2"]
    assert [leaf.id for leaf in written.leaves()] == names


def test_what_a_child_does_is_part_of_the_plan() -> None:
    """Under ids of its own, after what comes before the child; the child's leaf comes last, unless it is detached."""
    kid = Child("c", Seq("k", (ledger("x"), Child("d", ledger("y")))))
    written = plan("a ledger", kid, "z ledger")
    assert edges(written) == {("a", "c/x"), ("c/x", "c/d/y"), ("c/d/y", "c/d"), ("c/d", "c"), ("c", "z")}
    assert written.operations_of_children() == {"c/x": ("c", "x"), "c/d/y": ("c/d", "y"), "c/d": ("c", "d")}
    assert "c/d/y" in written.certain()["z"]
    free = plan("a ledger", Child("c", ledger("x"), detached=True), "z ledger")
    assert edges(free) == {("a", "c/x"), ("a", "c"), ("c", "z")}
    assert free.guards("c/x") == (Guard("c", "detached", 0),)


def test_compensations_stand_outside_the_order() -> None:
    """Nothing waits for them and they wait for nothing; each belongs to one call."""
    written = plan("a ledger", "u undo a", "b ledger")
    assert edges(written) == {("a", "b")}
    assert {of: one.id for of, one in written.compensations().items()} == {"a": "u"}
    assert [one.id for one in written.calls()] == ["a", "u", "b"]
    assert not written.is_owed("u")


def test_an_approval_is_bound_to_operation_service_and_parameters() -> None:
    """Any of them differing, the digest does; the same bytes as a reader of the interface would make."""
    call = Call("pay", "ledger", {"amount": 100, "b": "ü"})
    made = hashlib.blake2b('["pay","ledger",{"amount":100,"b":"ü"}]'.encode()).hexdigest()[:32]
    assert approval_digest(call) == made
    others = {
        approval_digest(call, {"amount": 101}),
        approval_digest(Call("pay2", "ledger", call.params)),
        approval_digest(Call("pay", "flaky", call.params)),
    }
    assert len(others | {made}) == 4


def test_content_is_made_of_run_and_operation() -> None:
    """The same for everybody, of exactly the size, and another for another operation."""
    whole = content("r1", "p", 200)
    assert whole[:64] == hashlib.blake2b(b"r1:p").digest()
    assert whole[64:128] == whole[:64]
    assert (len(whole), content("r1", "p", 0), content("r1", "p", 64)) == (200, b"", whole[:64])
    assert content("r1", "q", 64) != whole[:64]


def kid(*children: Op) -> Child:
    return Child("kid", Seq("k", children))


@pytest.mark.parametrize(
    ("children", "message"),
    [
        ((Call("a", "model"),), "call 'a': no service 'model'"),
        ((Call("a", "ledger", tries=0),), "call 'a': tries is 0; expected 1 or more"),
        ((Call("a", "registry", lookups=("lost",)),), r"lookups entries \['lost'\] are none of ok, down"),
        ((Wait("w", "steer"),), "signal 'steer' is one of the kit's own"),
        ((Wait("w", "go", 0),), "timeout_ns is 0"),
        ((Race("r", ()),), "race 'r' has no children"),
        ((Race("r", (ledger("a"), Seq("s", ()))),), "its child 's' has nothing to work at"),
        ((ledger("a"), Branch("b", "a", (ledger("x"),))), "branch 'b' has 1 children; expected two"),
        (
            (Branch("b", "x", (ledger("x"), ledger("y"))),),
            "branch 'b' goes by 'x', which the plan does not finish before it",
        ),
        ((ledger("a"), Loop("l", (ledger("x"),), "a", 2)), "loop 'l' goes on 'a', which is no leaf of its body"),
        ((Loop("l", (ledger("x"),), "x", 0),), "loop 'l': 0 times"),
        ((Loop("l", (ledger("x"),), "x", 20_000),), "a plan has at most 10000 leaves"),
        ((Loop("l", (ledger("x"),), "x", 2), ledger("x@2")), "'x@2' is used twice once loops are unrolled"),
        ((ledger("a"), Check("q", "a")), "check 'q' is of 'a'; expected an artifact that the plan finishes before it"),
        ((Check("q", "p"), Artifact("p", "n", 1)), "check 'q' is of 'p'"),
        (
            (ledger("pay"), Approve("ok", "pay")),
            "approve 'ok' is of 'pay'; expected a call that the plan begins after it",
        ),
        ((Approve("ok", "s"), Sleep("s", 1)), "approve 'ok' is of 's'"),
        (
            (ledger("a"), Branch("b", "a", (Approve("ok", "pay"), Seq("s", ()))), ledger("pay")),
            "approve 'ok' depends on which way 'b' goes, and 'pay' does not; expected both in one arm",
        ),
        (
            (Race("r", (Approve("ok", "pay"), ledger("x"))), ledger("pay")),
            "approve 'ok' depends on which way 'r' goes, and 'pay' does not",
        ),
        ((Sleep("s", 1), Compensate("u", "s", "ledger")), "compensate 'u' is of 's'; expected a call"),
        (
            (ledger("a"), Compensate("u", "a", "ledger", script=("no",))),
            "compensate 'u': script entries .'no'. are none of",
        ),
        (
            (ledger("a"), Compensate("u", "a", "ledger"), Compensate("v", "a", "ledger")),
            "'a', which 'u' undoes already",
        ),
        ((kid(Approve("ok", "x"), ledger("x")),), "child 'kid': approve 'ok' would wait for ever"),
        ((kid(ledger("a"), ledger("a")),), "'a' is empty or used twice"),
        ((ledger("a/b"),), "slash and tilde are kept"),
        ((Artifact("p", "n", -1),), "artifact 'p': size is -1"),
        ((Artifact("p", "n", 1, 0),), "artifact 'p': parts is 0"),
        ((Model("m", "x", 0),), "model 'm': tokens is 0"),
        ((Nondet("n", "dice"),), "nondet 'n': kind 'dice'"),  # type: ignore[arg-type]
        ((Child("c", ledger("x"), share=Allowance(calls=1, reserve=Reserve(2))),), "a reserve of 2 calls out of 1"),
    ],
)
def test_a_plan_that_cannot_be_carried_out_is_refused(children: tuple[Op, ...], message: str) -> None:
    """With the operation, what was found and what was expected."""
    with pytest.raises(PlanError, match=message):
        Plan(Seq("main", children))


def _written(**fields: Any) -> dict[str, Any]:
    return {"version": 1, "root": {"op": "call", "id": "a", "service": "ledger"}, **fields}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (_written(deadline_ns="soon"), "deadline_ns must be int"),
        (_written(deadline_ns=0), "a deadline of 0 ns"),
        (_written(code=2), "code must be str"),
        (_written(allowance=3), "an allowance is an object"),
        (_written(allowance={"call": 3}), "an allowance of call; expected some of calls, tokens"),
        (_written(allowance={"calls": "3"}), "an allowance of '3' calls; expected a whole number"),
        (_written(allowance={"calls": -1}), "allowance of calls is -1"),
        (
            {"version": 1, "root": {"op": "child", "id": "c", "plan": {"root": {}}}},
            "a plan is an object with version 1",
        ),
        ({"version": 1, "root": {"op": "call", "id": "a", "service": "ledger", "carries": [1]}}, "a list of strings"),
        ({"version": 1, "root": {"op": "call", "id": "a", "service": "ledger", "tries": True}}, "tries must be int"),
    ],
)
def test_json_that_is_off_is_refused(data: object, message: str) -> None:
    """Wherever it is off."""
    with pytest.raises(PlanError, match=message):
        Plan.from_json(data)


@given(plans())
def test_what_is_certain_is_what_no_decision_can_leave_out(drawn: Plan) -> None:
    """Of everything before a leaf, exactly what depends on no decision but its own; and carried answers are among that."""
    for leaf in drawn.leaves():
        mine = set(drawn.guards(leaf.id))
        certain = drawn.certain()[leaf.id]
        assert all(set(drawn.guards(one)) <= mine for one in certain)
        assert set(getattr(leaf, "carries", ())) <= certain

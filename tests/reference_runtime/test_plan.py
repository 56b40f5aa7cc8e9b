"""Plans: the tree's JSON in, steps with dependencies out, and every mistake named."""

from __future__ import annotations

import pickle

import pytest

from reference_runtime import plan as reading
from reference_runtime.leaves import Step, Tools, read_leaf
from reference_runtime.model import Json, Refusal, approval_digest, arm
from reference_runtime.plan import (
    DEPTH_MAX,
    EDGES_MAX,
    OPERATIONS_MAX,
    STORED_MAX,
    PlanError,
    Terms,
    parse,
    read_again,
    terms,
)
from tests.runtime_rig import approve, branch, call, loop, par, plan, race, seq, sleep, undo, wait


def test_branches_begin_together_and_end_together():
    """What stands after a `par` waits for the end of each branch, and the branches wait only for what stands before."""
    steps = parse(plan(call("a"), par(call("b"), seq(wait("c", "go"), sleep("d", 5))), call("e", carries=("a", "c"))))
    assert {step.id: step.needs for step in steps} == {
        "a": (),
        "b": ("a",),
        "c": ("a",),
        "d": ("c",),
        "e": ("b", "d"),
    }


def test_empty_branches_change_nothing():
    """A `par` or `seq` without children hands on what stood before it."""
    steps = parse(plan(call("a"), par(id_="p"), seq(id_="s"), call("b")))
    assert steps[1].needs == ("a",)


def test_a_branch_is_decided_by_an_operation_of_its_own():
    """Arms wait for the decision and are guarded by it; what stands behind waits for the ends of both."""
    steps = {step.id: step for step in parse(plan(call("a"), branch("b", "a", call("x"), seq(id_="none")), call("z")))}
    assert (steps["b"].kind, steps["b"].needs, steps["b"].subject) == ("branch", ("a",), "a")
    assert (steps["x"].needs, steps["x"].guards) == (("b",), (("b", "A"),))
    assert steps["z"].needs == ("x", "b")


def test_a_race_ends_with_one_of_its_children():
    """Children are guarded by their number; the race knows what ends each, and only it is waited for."""
    steps = {s.id: s for s in parse(plan(race("r", seq(call("a"), call("b")), par(call("c"), call("d"))), call("z")))}
    assert (steps["r"].ends, steps["r"].needs) == ((("b",), ("c", "d")), ())
    assert (steps["b"].guards, steps["d"].guards) == ((("r", "0"),), (("r", "1"),))
    assert steps["z"].needs == ("r",)


def test_a_loop_of_thousands_of_turns_is_admitted():
    """Each turn hangs on the one before it; the limit is on operations, and its refusal says that turns are among these."""
    assert len(parse(plan(loop("l", "x", 4_900, call("x"))))) == 2 * 4_900 - 1
    with pytest.raises(PlanError, match="10000 long with all turns of loops"):
        parse(plan(loop("l", "x", 6_000, call("x"))))


def test_a_loop_is_written_out():
    """Copies are named after their turn, refer to themselves, and each but the first hangs on a branch of its own."""
    body = (call("x"), call("y", carries=("x", "a")))
    steps = {step.id: step for step in parse(plan(call("a"), loop("l", "y", 3, *body), call("z", carries=("y@1",))))}
    assert list(steps) == ["a", "x@1", "y@1", "l@2", "x@2", "y@2", "l@3", "x@3", "y@3", "z"]
    assert (steps["l@2"].needs, steps["l@2"].subject) == (("y@1",), "y@1")
    assert (steps["y@3"].carries, steps["y@3"].guards) == (("x@3", "a"), (("l@3", "B"),))
    assert steps["l@3"].guards == (("l@2", "B"),)
    assert steps["l@3"].guards == (("l@2", "B"),)
    assert steps["z"].needs == ("y@3",)


def test_loops_in_loops_name_the_outer_turn_first():
    """The inner loop of a copy is a loop of that copy."""
    steps = [step.id for step in parse(plan(loop("o", "x", 2, loop("i", "x", 2, call("x")))["children"][0]))]
    assert steps == ["x@1", "i@2", "x@2"]
    inner = loop("i", "x", 2, call("x"))
    found = [step.id for step in parse(plan(loop("o", "y", 2, inner, call("y"))))]
    assert found == ["x@1@1", "i@1@2", "x@1@2", "y@1", "o@2", "x@2@1", "i@2@2", "x@2@2", "y@2"]


def test_an_operation_waits_for_its_approval():
    """Wherever the approval stands, its operation depends on it, once."""
    before = {step.id: step for step in parse(plan(approve("ok", "a"), call("a")))}
    beside = {step.id: step for step in parse(plan(par(approve("ok", "a"), call("a"))))}
    assert before["a"].needs == beside["a"].needs == ("ok",)


@pytest.mark.parametrize(
    "work",
    [
        branch("b", "x", seq(approve("ok", "a"), call("a"), id_="s"), call("y")),
        seq(approve("ok", "a"), branch("b", "x", call("a"), call("y")), id_="s"),
        race("r", seq(approve("ok", "a"), call("a"), id_="s"), call("y")),
        loop("l", "a", 3, approve("ok", "a"), call("a")),
    ],
    ids=["arm", "outside", "race", "turn"],
)
def test_an_approval_is_asked_wherever_its_operation_has_its_turn(work):
    """Both in one arm, child or turn, or the approval outside of it: neither has its turn without the other."""
    steps = {step.id: step for step in parse(plan(call("x"), work))}
    asked = [step for step in steps.values() if step.kind == "approve"]
    assert asked
    for step in asked:
        assert step.subject is not None
        assert set(step.guards) <= set(steps[step.subject].guards)


def test_a_compensation_stands_outside_the_order():
    """Nothing waits for it and it waits for nothing; it names what it undoes."""
    steps = {step.id: step for step in parse(plan(call("a"), undo("u", "a"), call("b")))}
    assert (steps["u"].needs, steps["u"].subject, steps["b"].needs) == ((), "a", ("a",))


def test_terms_are_what_the_plan_says_of_the_whole():
    """Absent ones are unlimited."""
    assert terms(plan()) == Terms()
    assert terms(
        {**plan(), "allowance": {"calls": 3, "reserve": {"calls": 1}}, "deadline_ns": 5, "code": "1"}
    ) == Terms({"calls": 3, "reserve": {"calls": 1}}, 5, "1")


def test_the_parity_of_the_last_digit_decides():
    """Odd is B; even, or nothing to decide by, is A."""
    assert [arm(nonce) for nonce in ("x1", "xf", "x0", "xe", "", None, "z")] == ["B", "B", "A", "A", "A", "A", "A"]


def test_an_approval_is_bound_to_operation_service_and_parameters():
    """Another of the three is another digest, and the order of keys is no difference."""
    first = approval_digest("a", "ledger", {"x": 1, "y": 2})
    assert len(first) == 32
    assert first == approval_digest("a", "ledger", {"y": 2, "x": 1})
    others = [("b", "ledger", {"x": 1, "y": 2}), ("a", "mailer", {"x": 1, "y": 2}), ("a", "ledger", {"x": 1, "y": 3})]
    assert first not in {approval_digest(*other) for other in others}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ([], "version 1 and a root"),
        ({"version": 2, "root": seq()}, "version 1 and a root"),
        ({"version": 1, "root": "x"}, "an operation is an object"),
        (plan({"op": "fork", "id": "l"}), "op 'fork'"),
        (plan(call("a"), call("a")), "'a' is used twice"),
        (plan(call("")), "'' is empty"),
        (plan({"op": "wait", "id": 3, "signal": "s"}), "is no string"),
        (plan(call("a", "fax")), "no service 'fax'"),
        (plan({"op": "call", "id": "a"}), "service must be str, and is not there; it has nothing else"),
        (plan({"op": "sleep", "id": "a", "ms": 1}), "sleep 'a': ns must be int, and is not there; it has ms"),
        (plan(sleep("s", -1)), "expected 0 or more"),
        (plan(sleep("s", True)), "ns must be int"),
        (plan({"op": "wait", "id": "w"}), "signal must be str"),
        (plan(par(call("a"), call("b", carries=("a",)))), "carries ['a']"),
        (plan(call("a"), call("b", carries=("a", "z"))), "carries ['z']"),
        (plan(call("a"), call("b", carries=("a", "a"))), "call 'b' carries 'a' twice"),
        (plan({"op": "seq", "id": "s", "children": "x"}), "children must be list"),
        (plan(race("r", call("a"), seq(id_="e"))), "race 'r': child 1 has no operation in it"),
        (plan(call("a"), {"op": "branch", "id": "b", "on": "a", "children": [call("x")]}), "1 children; expected two"),
        (plan(branch("b", "a", call("x"), call("y"))), "branch 'b': on is 'a'"),
        (plan(loop("l", "z", 2, call("x"))), "loop 'l': on is 'z'"),
        (plan(loop("l", "x", 0, call("x"))), "times is 0; expected 1 or more"),
        (plan(undo("u", "a")), "compensate 'u': of is 'a', no operation; expected a call"),
        (plan(wait("w", "s"), undo("u", "w")), "of is 'w', a wait"),
        (plan(call("a"), approve("ok", "a")), "stands before it"),
        (plan(call("a"), branch("b", "a", approve("ok", "z"), call("y")), call("z")), "depends on which way 'b' goes"),
        (plan(race("r", approve("ok", "z"), sleep("s", 1)), call("z")), "depends on which way 'r' goes"),
        (plan(loop("l", "a", 2, call("a"), approve("ok", "z")), call("z")), "depends on which way 'l@2' goes"),
        (plan(call("a"), branch("b", "a", approve("ok", "y"), call("y"))), "depends on which way 'b' goes"),
        (
            plan(par(seq(call("x"), approve("p", "y"), id_="s"), seq(call("y"), approve("q", "x"), id_="t"))),
            "operation 'x' waits for itself, by approvals",
        ),
        (plan(approve("ok", "nothing")), "approve 'ok': of is 'nothing', no operation"),
        (plan({"op": "model", "id": "m", "prompt": "p", "tokens": -1}), "model 'm': tokens is -1"),
        (plan({"op": "artifact", "id": "f", "name": "n", "size": 1, "parts": 0}), "parts is 0"),
        (plan(call("a"), {"op": "check", "id": "c", "of": "a"}), "of is 'a', a call; expected a artifact"),
        (plan({"op": "nondet", "id": "n", "kind": "dice"}), "nondet 'n': kind is 'dice'"),
        (plan({"op": "fail", "id": "f"}), "reason must be str"),
        (plan({**call("a"), "tries": 0}), "tries is 0"),
        (plan({**call("a"), "tolerate": 1}), "tolerate must be bool"),
        (plan({**call("a"), "lookups": ["up"]}), "lookups has 'up'"),
        (plan({**wait("w", "s"), "timeout_ns": -1}), "timeout_ns is -1"),
        ({**plan(), "budget": 1}, "a plan has no budget"),
        ({**plan(), "allowance": {"calls": -1}}, "allowance 'calls' is -1"),
        ({**plan(), "allowance": {"reserve": {"elapsed_ns": 1}}}, "allowance reserve 'elapsed_ns'"),
        ({**plan(), "deadline_ns": "soon"}, "deadline_ns must be int"),
    ],
)
def test_a_mistake_names_the_operation_and_what_was_expected(data, said):
    """A plan that cannot be is refused with the operation, what was found and what was expected."""
    with pytest.raises(PlanError) as caught:
        parse(data)
    assert said in str(caught.value)
    assert pickle.loads(pickle.dumps(caught.value)).message == caught.value.message


def test_plans_are_bounded():
    """Depth, number of operations and number of dependencies have limits, and say so."""
    deep = call("x")
    for n in range(DEPTH_MAX + 1):
        deep = seq(deep, id_=f"s{n}")
    wide = [call(f"c{n}") for n in range(OPERATIONS_MAX)]
    half = int(EDGES_MAX**0.5) + 1
    dense = [par(*(call(f"{side}{n}") for n in range(half)), id_=side) for side in "ab"]
    for data in (plan(deep), plan(*wide), plan(*dense)):
        with pytest.raises(PlanError):
            parse(data)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of the leaves that were read, as they are written, turn by turn."""
    ids: list[str] = []

    def counted(kind: str, data: Json, semantics: Tools) -> Step:
        ids.append(data["id"])
        return read_leaf(kind, data, semantics)

    monkeypatch.setattr(reading, "read_leaf", counted)
    return ids


def nested(levels: int, times: int) -> Json:
    """Loops over children that have loops over children."""
    child = [{"op": "child", "id": "c", "plan": nested(levels - 1, times)}] if levels else []
    return plan(loop("l", "a", times, call("a"), *child))


def test_what_children_have_counts_in_their_parents_plan(read):
    """Nothing is read beyond the limit: a few hundred bytes may be written that would never come to their end."""
    for levels, times in ((1, 300), (3, 3_000), (10, 3)):
        with pytest.raises(PlanError, match="10000 long with all turns of loops and what children have"):
            parse(nested(levels, times))
        assert len(read) <= OPERATIONS_MAX
        read.clear()
    assert len(parse(nested(1, 60))) == 3 * 60 - 1
    assert len(read) == 60 * 62


def test_what_a_plan_comes_to_is_bounded_in_bytes(read):
    """Each turn of a loop is stored by itself, and so is the plan of a child: what is beyond the limit is not written out."""
    big = call("a", text="x" * 1_000_000)
    child = {"op": "child", "id": "a", "plan": plan(call("b", text="x" * 1_000_000))}
    for body, turns in ((big, 17), (child, 9)):
        read.clear()
        with pytest.raises(Refusal, match=f"too-large: .* bytes as far as .*; at most {STORED_MAX}"):
            parse(plan(loop("l", "a", 4_000, body)))
        assert len(read) <= 2 * turns
    assert len(parse(plan(loop("l", "a", 16, big)))) == 31


@pytest.mark.parametrize(
    ("carries", "said"),
    [(["a"] * 9, "carries 'a' twice"), (["z"], "carries \\['z'\\]"), (["z@1"], "carries \\['z@1'\\]")],
)
def test_what_cannot_be_carried_is_not_written_out(read, carries, said):
    """It is refused in the first turn of a loop, before there are others."""
    with pytest.raises(PlanError, match=said):
        parse(plan(loop("l", "a", 4_000, call("a"), {**call("b"), "carries": carries})))
    assert read == ["a", "b"]


def test_what_was_admitted_is_read_again_whatever_it_comes_to(monkeypatch):
    """Limits are for what is new; and children, which were read with it, are left alone."""
    work = plan(loop("l", "a", 3, call("a")), {"op": "child", "id": "c", "plan": plan(call("b"))})
    steps = parse(work)
    monkeypatch.setattr(reading, "STORED_MAX", 1)
    monkeypatch.setattr(reading, "OPERATIONS_MAX", 1)
    assert read_again(work) == steps
    with pytest.raises(PlanError):
        parse(work)

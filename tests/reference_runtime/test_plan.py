"""Plans: the tree's JSON in, steps with dependencies out, and every mistake named."""

from __future__ import annotations

import pickle

import pytest

from reference_runtime.plan import DEPTH_MAX, EDGES_MAX, OPERATIONS_MAX, PlanError, parse
from tests.runtime_rig import call, par, plan, seq, sleep, wait


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


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ([], "version 1 and a root"),
        ({"version": 2, "root": seq()}, "version 1 and a root"),
        ({"version": 1, "root": "x"}, "an operation is an object"),
        (plan({"op": "loop", "id": "l"}), "op 'loop'"),
        (plan(call("a"), call("a")), "used twice"),
        (plan({"op": "wait", "id": 3, "signal": "s"}), "is no string"),
        (plan(call("a", "fax")), "no service 'fax'"),
        (plan({"op": "call", "id": "a"}), "service must be str"),
        (plan(sleep("s", -1)), "zero or more"),
        (plan(sleep("s", True)), "ns must be int"),
        (plan({"op": "wait", "id": "w"}), "signal must be str"),
        (plan(par(call("a"), call("b", carries=("a",)))), "carries ['a']"),
        (plan({"op": "seq", "id": "s", "children": "x"}), "children must be list"),
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

"""Spelling: what a plan says and nobody would read is refused by name, with what there is instead."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings

from reference_runtime import PlanError, Store, store
from reference_runtime.documents import replayed
from reference_runtime.leaves import READERS
from reference_runtime.model import Json
from reference_runtime.plan import GROUPS
from reference_runtime.spelling import FIELDS, check_spelling
from reference_runtime.workflow import Context
from scenarios.strategies import plans
from tests.runtime_rig import branch, call, loop, plan, seq, sleep, wait

CTX = Context("t")


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (
            plan(wait("w", "go") | {"timeout": 5}),
            "wait 'w': it has no timeout; it has signal, timeout_ns; did you mean 'timeout_ns'?",
        ),
        (plan(call("a") | {"param": {}}), "; did you mean 'params'?"),
        (plan(call("a") | {"op": "cal"}), "; did you mean 'call'?"),
        ({**plan(call("a")), "allowanse": {}}, "; did you mean 'allowance'?"),
        (plan(call("a") | {"secrets": "bank"}), "call 'a': it has no secrets; it has service, params, script, tries"),
        (plan({"op": "model", "id": "m", "prompt": "x", "tokens": 1, "secret": "s"}), "model 'm': it has no secret;"),
        (plan(seq(sleep("s", 1)) | {"times": 3}), "seq 'seq': it has no times; it has children"),
        (plan(call("a"), branch("b", "a", call("c"), call("d") | {"x": 1})), "call 'd': it has no x;"),
        (plan(loop("l", "a", 2, call("a") | {"x": 1})), "call 'a': it has no x;"),
        (plan({"op": "child", "id": "c", "plan": plan(sleep("s", 1) | {"s": 1})}), "sleep 's': it has no s; it has ns"),
        (plan(call("pay:eur")), "operation id 'pay:eur' has a : in it; that is kept for requests"),
        (plan({"op": "child", "id": "b/c", "plan": plan(sleep("s", 1))}), "operation id 'b/c' has a / in it;"),
    ],
)
@pytest.mark.parametrize("written", [dict, replayed])
def test_what_nobody_would_read_is_refused(tmp_path, plan, said, written):
    """In either style, however deep; and nothing is admitted."""
    one = Store.open(str(tmp_path / "s.db"))
    with pytest.raises(PlanError, match=re.escape(said)):
        one.submit("t", written(plan))
    assert one.submit("t", written(seq_of_one())).attempt == "t.1"
    one.close()


def seq_of_one() -> Json:
    return plan(call("a"))


def test_what_was_admitted_before_has_its_receipt(tmp_path, monkeypatch):
    """A client that repeats itself after the program is newer is told of its task, not of a mistake."""
    one, odd = Store.open(str(tmp_path / "s.db")), plan(call("a") | {"x": 1})
    with monkeypatch.context() as before:
        before.setattr(store, "check_spelling", lambda _: None)
        one.submit("t", odd)
    assert one.submit("t", odd).attempt == "t.1"
    one.close()


def test_every_kind_is_known():
    """What is read here is what is read there."""
    assert set(FIELDS) == {*READERS, *GROUPS}


@settings(max_examples=100, deadline=None)
@given(plans())
def test_no_field_is_missing(one):
    """Whatever a plan may say is known by its name."""
    check_spelling(one.to_json())


@pytest.mark.parametrize(
    "ask",
    [
        lambda **odd: CTX.call("ledger", **odd),
        lambda **odd: CTX.model("x", 1, **odd),
        lambda **odd: CTX.child({}, **odd),
        lambda **odd: CTX.check("a", **odd),
        lambda **odd: CTX.compensate("a", "ledger", {}, **odd),
    ],
)
def test_a_workflow_is_told_as_python_tells(ask: Any) -> None:
    """An argument that is none, is none."""
    with pytest.raises(TypeError, match=r"has no timeout; it has "):
        ask(timeout=5)

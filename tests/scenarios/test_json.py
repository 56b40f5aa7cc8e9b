"""Plans, histories and interruptions through JSON and back."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest
from cattrs.errors import BaseValidationError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scenarios.history import History
from scenarios.interruption import ACTIONS, Interruption, Site, actions_of
from scenarios.plan import Call, Op, Par, Plan, PlanError, Seq, Sleep, Wait
from tests.scenarios.any_history import histories
from tests.scenarios.build import Story, plan

END = Site("end")
SITES = st.builds(
    Site,
    st.sampled_from(("barrier", "ack", "asking", "waiting", "end", "boundary", "time")),
    st.sampled_from((None, "a", "b")),
    st.integers(1, 3),
    st.sampled_from((None, "received", "applied", "replied")),
    st.sampled_from((None, "start", "signal")),
    st.integers(0, 9),
    st.sampled_from(("worker", "engine")),
)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "action": st.sampled_from(ACTIONS),
    "site": SITES,
    "ns": st.integers(-9, 9),
    "target": st.sampled_from((None, "a")),
    "arg": st.sampled_from((None, "2")),
}
INTERRUPTIONS = st.recursive(
    st.builds(Interruption, **FIELDS), lambda inner: st.builds(Interruption, then=inner, **FIELDS), max_leaves=3
)


@given(histories())
@settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_a_history_comes_back_as_it_was(history: History) -> None:
    """Every event, status and declaration survives being written as text and read again."""
    assert History.from_json(json.loads(json.dumps(history.to_json()))) == history


@given(INTERRUPTIONS)
def test_an_interruption_comes_back_as_it_was(interruption: Interruption) -> None:
    """So does every interruption, with what follows it, and its label with it."""
    back = Interruption.from_json(json.loads(json.dumps(interruption.to_json())))
    assert back == interruption
    assert back.label == interruption.label
    assert len(back.chain()) == len(interruption.chain())
    assert actions_of(back.label) == tuple(link.action for link in back.chain())


@pytest.mark.parametrize(
    ("one", "label"),
    [
        (Interruption("steer", Site("waiting", "w"), target="pay"), "steer@waiting:w>pay"),
        (Interruption("deploy", END, arg="2"), "deploy@end=2"),
        (Interruption("kill", END, ns=5), "kill@end~5ns"),
        (Interruption("jump", Site("ack", verb="start", unit="engine"), ns=-5), "jump@ack:start(engine)~-5ns"),
        (Interruption("halt", Site("time", ns=7), ns=5), "halt@t+7ns"),
        (
            Interruption("power", Site("end"), state="none", then=Interruption("cancel", Site("end"))),
            "power@end[none]+cancel@end",
        ),
    ],
)
def test_a_label_tells_what_is_done_where_and_to_what(one: Interruption, label: str) -> None:
    """Labels are parts of names that certificates quote."""
    assert one.label == label


def test_an_interruption_without_target_is_written_as_before() -> None:
    """Cases saved by an earlier version keep their digest, and are read."""
    old = {"action": "kill", "site": attrs.asdict(Site("end")), "ns": 0, "then": None}
    assert Interruption("kill", Site("end")).to_json() == old
    assert Interruption.from_json(old) == Interruption("kill", Site("end"))


def test_a_history_of_an_earlier_version_is_read() -> None:
    """Without any of the fields that came later."""
    data = Story(plan("a ledger")).up().start().call("a").done().settled().history().to_json()
    young = {"token", "remaining_ns", "subject", "secret", "part", "usage", "external", "outcome", "code", "body"} | {
        "operation", "decision", "digest", "actor", "payload"
    }  # fmt: skip
    for row in data["events"]:
        for name in young - ({"outcome"} if row["event"] == "Answered" else set()):
            row.pop(name, None)
    data["declared"] = {name: data["declared"][name] for name in ("early_signal", "timer_grain_ns", "shows_operations")}
    assert History.from_json(data) == Story(plan("a ledger")).up().start().call("a").done().settled().history()


def test_a_plan_comes_back_as_it_was() -> None:
    """So does a plan with every kind of operation."""
    par = Par("p", (Call("b", "flaky", {"n": [1, None]}, ("a",), ("ok", "reject")), Sleep("s", 5)))
    written = plan("a ledger", par, Wait("w", "go"), "c mailer b,w")
    assert Plan.from_json(json.loads(json.dumps(written.to_json()))) == written


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "a plan is an object with version 1 and a root"),
        ({"version": 2, "root": {}}, "a plan is an object with version 1 and a root"),
        ({"version": 1, "root": {"op": "jump", "id": "x"}}, "op 'jump' with id 'x'; expected one of"),
        ({"version": 1, "root": {"op": "sleep", "id": "s", "ns": "1"}}, r"\(s\): ns must be int"),
        ({"version": 1, "root": {"op": "seq", "id": "s", "children": [3]}}, r"root/s\[0\]: an operation is an object"),
    ],
)
def test_a_plan_that_is_off_says_where(data: object, message: str) -> None:
    """A malformed plan is refused with the operation and the field named."""
    with pytest.raises(PlanError, match=message):
        Plan.from_json(data)


@pytest.mark.parametrize(
    ("children", "message"),
    [
        ((Call("a", "ledger"), Call("a", "ledger")), "'a' is empty or used twice"),
        ((Call("a", "nowhere"),), "no service 'nowhere'"),
        ((Call("a", "flaky", {}, (), ("explode",)),), "explode"),
        ((Sleep("s", -1),), "zero or more"),
        ((Call("a", "ledger", {}, ("b",)), Call("b", "ledger")), "which the plan does not finish before it"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(children: tuple[Op, ...], message: str) -> None:
    """A plan whose references lead nowhere is refused where it is made."""
    with pytest.raises(PlanError, match=message):
        Plan(Seq("main", children))


def test_a_history_with_an_unknown_field_is_refused() -> None:
    """A field nobody knows is an error, not something to forget in silence."""
    data = Story(plan("a ledger")).up().history().to_json()
    data["events"][0]["surprise"] = 1
    with pytest.raises(BaseValidationError):
        History.from_json(data)
    with pytest.raises(KeyError):
        History.from_json(
            {"run": "r", "plan": data["plan"], "declared": data["declared"], "events": [{"event": "Odd"}]}
        )

"""The store against a simple model: any sequence of claims, intents, reports, losses, signals and restarts.

The model knows only what an outside observer may rely on: what was accepted stays, nothing begins before what it depends
on, blind calls are dispatched once, keys never change, versions grow, and stale words change nothing.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import get_args

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from reference_runtime import Refusal, Store, views
from reference_runtime.model import ACCEPTED, Grant, Json, Policy, Rejected, Report, Ticket
from reference_runtime.plan import parse
from tests.runtime_rig import call, par, plan, seq, sleep, under, wait

POLICY = Policy(backoff_ns_min=2, backoff_ns_max=2)
SERVICES = ["ledger", "registry", "mailer", "reader"]
PLANS = st.builds(
    lambda left, right, last: plan(
        par(
            seq(call("a", left), wait("w", "go"), call("b", right, carries=("a",))),
            seq(sleep("s", 0), call("c", left), id_="other"),
        ),
        call("d", last, carries=("b", "c", "w")),
    ),
    st.sampled_from(SERVICES),
    st.sampled_from(SERVICES),
    st.sampled_from(SERVICES),
)


class StoreMachine(RuleBasedStateMachine):
    """One task, two workers, any order of events."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = str(Path(self.folder.name) / "s.db")
        self.store = Store.open(self.path, policy=POLICY)
        self.grants: list[Grant] = []  # every grant ever given, stale ones too
        self.tickets: dict[int, Ticket] = {}
        self.accepted: dict[str, str | None] = {}
        self.dispatched: dict[str, int] = {}
        self.version = -1
        self.answers = 0

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()

    @initialize(data=PLANS)
    def submit(self, data: Json) -> None:
        self.plan = data
        self.steps = {step.id: step for step in parse(data)}
        self.receipt = self.store.submit("t", data)

    @rule()
    def submit_again(self) -> None:
        assert self.store.submit("t", self.plan) == self.receipt

    @rule(worker=st.sampled_from(["v", "w"]), knows=st.booleans())
    def claim(self, worker: str, knows: bool) -> None:
        holding = [grant.generation for grant in self.grants] if knows else []
        for grant in self.store.claim(worker, holding, 2):
            assert not any(
                old.generation == grant.generation and old.operation != grant.operation for old in self.grants
            )
            if isinstance(grant, Ticket):
                self._learn(grant)
                grant = under(grant)  # noqa: PLW2901 - what is settled under
            if grant not in self.grants:
                self.grants.append(grant)

    @precondition(lambda self: self.grants)
    @rule(data=st.data())
    def dispatch(self, data: st.DataObject) -> None:
        grant = data.draw(st.sampled_from(self.grants))
        ticket = self.store.dispatch(grant)
        if isinstance(ticket, Ticket):
            self._learn(ticket)

    def _learn(self, ticket: Ticket) -> None:
        known = self.tickets.setdefault(ticket.generation, ticket)
        assert known == ticket, "one lease, two requests"
        if known is ticket:
            self._check_ticket(ticket)

    def _check_ticket(self, ticket: Ticket) -> None:
        step = self.steps[ticket.operation]
        assert all(need in self.accepted for need in step.needs), "dispatched before its dependency was accepted"
        assert dict(ticket.carries) == {name: self.accepted[name] for name in step.carries}
        assert {one.key for one in self.tickets.values() if one.operation == step.id} == {ticket.key}
        if ticket.action == "call":
            self.dispatched[step.id] = self.dispatched.get(step.id, 0) + 1

    @precondition(lambda self: self.tickets)
    @rule(data=st.data(), report=st.sampled_from(get_args(Report)))
    def settle(self, data: st.DataObject, report: Report) -> None:
        ticket = self.tickets[data.draw(st.sampled_from(sorted(self.tickets)))]
        before = views.status(self.store, "t")
        self.answers += 1
        answer = {"nonce": f"n{self.answers}"} if report in ("succeeded", "found") else None
        outcome = self.store.settle(under(ticket), report, answer, "")
        if isinstance(outcome, Rejected):
            assert views.status(self.store, "t") == before, "a rejected word changed something"
        elif answer is not None:
            assert ticket.operation not in self.accepted, "accepted twice"
            self.accepted[ticket.operation] = answer["nonce"]

    @precondition(lambda self: self.grants)
    @rule(data=st.data())
    def silence(self, data: st.DataObject) -> None:
        self.store.reclaim(data.draw(st.sampled_from(self.grants)).generation)

    @rule(number=st.integers(0, 2))
    def signal(self, number: int) -> None:
        name = "go" if number else "other"
        self.store.signal("t", str(number), name, {"nonce": f"s{number}"})

    @rule()
    def timers(self) -> None:
        self.store.fire_timers()

    @rule()
    def restart(self) -> None:
        self.store.close()
        self.store = Store.open(self.path, policy=POLICY)

    @rule()
    def another_plan(self) -> None:
        with pytest.raises(Refusal, match="conflict"):
            self.store.submit("t", plan())

    @invariant()
    def what_was_accepted_stays(self) -> None:
        status = views.status(self.store, "t")
        shown = {one["id"]: one["nonce"] for one in status["operations"] if one["state"] in ACCEPTED}
        for name in ("w", "s"):
            if name in shown:
                self.accepted.setdefault(name, shown[name])
        assert shown == self.accepted

    @invariant()
    def versions_grow(self) -> None:
        version = views.status(self.store, "t")["version"]
        assert version >= self.version
        self.version = version

    @invariant()
    def ends_are_honest(self) -> None:
        status = views.status(self.store, "t")
        states = [one["state"] for one in status["operations"]]
        if status["state"] == "done":
            assert set(states) <= ACCEPTED
        if status["state"] == "failed":
            assert "failed" in states
            assert "dispatched" not in states
        if status["state"] == "blocked":
            assert "unresolved" in states
            assert "failed" not in states

    @invariant()
    def blind_calls_are_made_once(self) -> None:
        rows = self.store._rows(
            "SELECT o.id, total(i.report IS NULL OR i.report NOT IN ('busy', 'unsent')) FROM operation o"
            " JOIN invocation i ON i.operation = o.id WHERE o.semantics = 'blind' GROUP BY o.id"
        )
        assert all(count <= 1 for _, count in rows)


# slow for its many examples, not for any one of them
TestStore = StoreMachine.TestCase
TestStore.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)

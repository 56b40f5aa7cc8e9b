"""Decisions against a simple model: any order of work, decisions, directions, stops, pauses, timers and restarts.

The model knows what an outside observer may rely on: an accepted answer stays, a stopped or paused run admits nothing, a
gated operation leaves only as it was approved, one arm of a branch is taken, and undoing goes backwards, one at a time.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import attrs
import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from reference_runtime import Refusal, Store, views
from reference_runtime.model import ACCEPTED, Grant, Json, Policy, Rejected, Ticket, approval_digest, arm
from tests.runtime_rig import approve, branch, call, loop, plan, race, under, undo, wait

POLICY = Policy(backoff_ns_min=2, backoff_ns_max=2, tries_max=5, compensations_max=3, grace_ns=50)
SERVICES = st.sampled_from(["ledger", "registry", "mailer", "reader"])
UNDOES = {"ua": "a", "uc": "c"}
PLANS = st.builds(
    lambda first, second, third, fails: plan(
        call("a", first),
        undo("ua", "a"),
        race("r", call("b", second), wait("w", "go")),
        call("c", second),
        undo("uc", "c"),
        branch("br", "c", call("even", third), call("odd", third)),
        approve("ok", "pay", validity_ns=500),
        call("pay", third, amount=1),
        loop("l", "x", 2, call("x", first)),
        {**wait("v", "go"), "timeout_ns": 100},
        *([{"op": "fail", "id": "f", "reason": "planned"}] if fails else []),
    ),
    SERVICES,
    SERVICES,
    SERVICES,
    st.booleans(),
)


class ControlMachine(RuleBasedStateMachine):
    """One task, one worker at a time, everybody else at liberty."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.patch = pytest.MonkeyPatch()
        self.now = 10**15
        self.patch.setattr("time.time_ns", lambda: self.now)
        self.path = str(Path(self.folder.name) / "s.db")
        self.store = Store.open(self.path, policy=POLICY)
        self.grants: list[Grant] = []
        self.tickets: dict[int, Ticket] = {}
        self.settled: set[int] = set()
        self.accepted: dict[str, str | None] = {}
        self.order: list[str] = []  # accepted calls, as they were accepted
        self.params: Json = {"amount": 1}
        self.approved: str | None = None  # the digest of the last approval that was taken
        self.dispatched: set[str] = set()
        self.stopped = self.paused = False
        self.end: str | None = None
        self.count = 0

    def teardown(self) -> None:
        self.store.close()
        self.patch.undo()
        self.folder.cleanup()

    @initialize(data=PLANS, turns=st.integers(0, 9), odd=st.booleans(), signals=st.booleans())
    def submit(self, data: Json, turns: int, odd: bool, signals: bool) -> None:
        """Begin with a run that got some way, so that the rules meet every part of it."""
        self.store.submit("t", data)
        for _ in range(turns):
            self.goes_well(odd=odd)
            if signals:
                self.signal()

    # -- work

    @rule(granted=st.booleans())
    def claim(self, granted: bool) -> None:
        held = [generation for generation, _ in self.store.leases()]
        for lease in self.store.claim("w", held, 2):
            if isinstance(lease, Ticket):
                self._learn(lease)
            else:
                self.grants.append(attrs.evolve(lease, granted=dict.fromkeys(lease.authority, granted)))

    @precondition(lambda self: self.grants)
    @rule(data=st.data())
    def dispatch(self, data: st.DataObject) -> None:
        self._dispatch(data.draw(st.sampled_from(self.grants)))

    def _dispatch(self, grant: Grant) -> None:
        ticket = self.store.dispatch(grant)
        if isinstance(ticket, Ticket) and ticket.generation not in self.tickets:
            assert all(grant.granted.values()), "dispatched without authority"
            self._learn(ticket)

    def _learn(self, ticket: Ticket) -> None:
        self.tickets[ticket.generation] = ticket
        is_undo = ticket.operation in UNDOES
        assert not self.paused, "dispatched during a pause"
        assert not self.stopped or is_undo or ticket.action == "lookup", "dispatched after a stop"
        if is_undo:
            self._check_undo(ticket)
        if ticket.operation == "pay" and "pay" not in self.dispatched:
            assert ticket.params == self.params, "not the last direction"
            assert self.approved == approval_digest("pay", ticket.tool, self.params), "not what was approved"
        if ticket.operation in ("even", "odd"):
            taken = {"A": "even", "B": "odd"}[arm(self.accepted["c"])]
            assert ticket.operation == taken, "the other arm"
        self.dispatched.add(ticket.operation)

    def _check_undo(self, ticket: Ticket) -> None:
        undone = UNDOES[ticket.operation]
        assert self.accepted[undone] == ticket.carries[undone], "not what the effect came to"
        status = views.status(self.store, "t")
        states = {one["id"]: one["state"] for one in status["operations"]}
        later = [name for name, of in UNDOES.items() if of in self.order[self.order.index(undone) + 1 :]]
        assert all(states[name] in ACCEPTED for name in later), "out of order"
        assert not any(states[name] == "dispatched" for name in UNDOES if name != ticket.operation), "two at a time"

    @precondition(lambda self: self.tickets)
    @rule(
        data=st.data(),
        report=st.sampled_from(["succeeded", "succeeded", "failed", "unknown", "unsent"]),
        odd=st.booleans(),
    )
    def settle(self, data: st.DataObject, report: str, odd: bool) -> None:
        self._settle(self.tickets[data.draw(st.sampled_from(sorted(self.tickets)[-4:]))], report, odd=odd)

    def _settle(self, ticket: Ticket, report: str, *, odd: bool) -> None:
        if ticket.action == "lookup":
            report = {"succeeded": "found", "failed": "missing"}.get(report, "unknown")
        self.count += 1
        answer = {"nonce": f"{self.count:x}{'1' if odd else '0'}"} if report in ("succeeded", "found") else None
        before = views.status(self.store, "t")
        outcome = self.store.settle(under(ticket), report, answer, "")  # type: ignore[arg-type]
        if isinstance(outcome, Rejected):
            assert views.status(self.store, "t") == before, "a rejected word changed something"
        elif answer is not None:
            assert ticket.operation not in self.accepted, "accepted twice"
            self.accepted[ticket.operation] = answer["nonce"]
            self.order.append(ticket.operation)

    @precondition(lambda self: self.tickets)
    @rule(data=st.data())
    def silence(self, data: st.DataObject) -> None:
        self.store.reclaim(data.draw(st.sampled_from(sorted(self.tickets))))

    @rule(odd=st.booleans())
    def goes_well(self, odd: bool) -> None:
        """The next thing that is asked for, whatever it is, and with success."""
        self.claim(granted=True)
        for grant in self.grants[-2:]:
            self._dispatch(grant)
        if any(one["state"] == "pending" for one in views.status(self.store, "t")["approvals"]):
            self.decide(decision="approve", actor="alice", old=False)
        for generation, _ in self.store.leases():
            if generation in self.tickets:
                self._settle(self.tickets[generation], "succeeded", odd=odd)

    # -- people

    @rule(
        decision=st.sampled_from(["approve", "approve", "deny"]),
        actor=st.sampled_from(["alice", "alice", "mallory"]),
        old=st.booleans(),
    )
    def decide(self, decision: str, actor: str, old: bool) -> None:
        tool = next(iter(self.store._rows("SELECT tool FROM operation WHERE id = 'pay'")))[0]
        digest = approval_digest("pay", tool, {"amount": 1} if old else self.params)
        self.count += 1
        try:
            told = self.store.decide("t", "ok", decision, digest, actor, str(self.count), f"d{self.count}")
        except Refusal:
            return
        assert actor == "alice", "no authority"
        if told["disposition"] == "approved":
            assert digest == approval_digest("pay", tool, self.params), "approved something else"
            self.approved = digest

    @rule()
    def steer(self) -> None:
        self.count += 1
        params = {"amount": self.count + 1}
        payload = {"operation": "pay", "params": params, "nonce": "s"}
        told = self.store.signal("t", f"steer{self.count}", "steer", payload)
        assert (told["disposition"] == "released") <= ("pay" not in self.dispatched), "changed after it was dispatched"
        if told["disposition"] == "released":
            self.params, self.approved = params, None

    @rule()
    def signal(self) -> None:
        self.count += 1
        self.store.signal("t", f"go{self.count}", "go", {"nonce": f"g{self.count}"})

    @precondition(lambda self: self.count % 5 == 4)
    @rule()
    def cancel(self) -> None:
        was = views.status(self.store, "t")["state"]
        told = self.store.cancel("t", "stop")
        assert told["disposition"] == ("accepted" if self.stopped or self.end is None else "too-late"), was
        self.stopped = self.stopped or told["disposition"] == "accepted"
        self.paused = self.paused and not self.stopped

    @rule()
    def pause(self) -> None:
        self.count += 1
        self.paused = self.store.pause("t", f"pause{self.count}")["disposition"] == "accepted"

    @rule()
    def unpause(self) -> None:
        self.count += 1
        self.store.unpause("t", f"unpause{self.count}")
        self.paused = False

    # -- the world

    @rule(ns=st.sampled_from([1, 20, 100, 500]))
    def time_passes(self, ns: int) -> None:
        self.now += ns
        self.store.fire_timers()

    @rule()
    def restart(self) -> None:
        self.store.close()
        self.store = Store.open(self.path, policy=POLICY)

    # -- what holds at all times

    @invariant()
    def what_was_accepted_stays(self) -> None:
        shown = {
            one["id"]: one["nonce"] for one in views.status(self.store, "t")["operations"] if one["state"] in ACCEPTED
        }
        for name, nonce in self.accepted.items():
            assert shown[name] == nonce
        self.accepted |= {name: shown[name] for name in ("ok", "w", "v", "br") if name in shown}

    @invariant()
    def ends_are_final_and_honest(self) -> None:
        status = views.status(self.store, "t")
        if status["state"] not in ("done", "failed", "cancelled", "blocked"):
            assert self.end is None, f"{self.end} is over"
            return
        assert self.end in (None, status["state"])
        self.end = status["state"]
        assert (self.end == "cancelled") == self.stopped
        assert not self.store.leases()
        assert status["reason"]
        if self.stopped:
            assert status["cancel"] == "quiescent"
        if self.end == "done":
            assert {one["state"] for one in status["operations"]} <= {*ACCEPTED, "skipped"}


# slow for its many examples, not for any one of them
TestControl = ControlMachine.TestCase
TestControl.settings = settings(max_examples=60, stateful_step_count=50, deadline=None)

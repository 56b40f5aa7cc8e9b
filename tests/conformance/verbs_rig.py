"""The toy runtime with every verb: approvals, cancellation, pauses, directions, artifacts, secrets, children, other runs.

It lives in memory and in virtual time, as that of `driver_rig`, whose worker it extends; what it does wrong, it does because
`Faults` says so.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import attrs
import trio

from conformance.control import Answer
from conformance.driver import Observation, observe
from conformance.manifest import Verb
from conformance.world import Born, Sighting, Subject, Unit, unheard
from scenarios.history import ApprovalStatus, Declared, OperationStatus, Status
from scenarios.interruption import Interruption, Scenario
from scenarios.plan import (
    Approve,
    Artifact,
    Branch,
    Call,
    Child,
    Choice,
    Leaf,
    Plan,
    Wait,
    approval_digest,
    arm,
    content,
)
from simkit.errors import SimkitError
from simkit.services import Request
from simkit.tape import Tape
from simkit.world import Limits, run
from tests.conformance.driver_rig import BOUNDS, RETRY_S, Habits, ToyChannel, ToyControl, ToyUnit, ToyWorld

VERBS: tuple[str, ...] = get_args(Verb)


@attrs.frozen
class Faults:
    """What this runtime does wrong."""

    takes_forged: bool = False
    leaks: bool = False  # the secret is written down and shown
    forgets_crowd: bool = False
    indefinite_cancels: int = 0  # so many cancels are taken, and not acknowledged
    indefinite_pauses: int = 0  # as many pauses


PLAIN, FLAWLESS = Habits(), Faults()


@attrs.define
class Extras:
    """What is kept beside the journal."""

    cancelled: bool = False
    paused: bool = False
    failed: str | None = None
    decisions: dict[str, dict[str, Any]] = attrs.field(factory=dict)  # approval → the decision that counts
    opened_s: dict[str, float] = attrs.field(factory=dict)
    params: dict[str, dict[str, Any]] = attrs.field(factory=dict)  # what directions say
    notices: list[str] = attrs.field(factory=list)
    artifacts: list[dict[str, Any]] = attrs.field(factory=list)
    others: dict[str, Plan] = attrs.field(factory=dict)  # other runs → plan
    ended: set[str] = attrs.field(factory=set)
    written: list[str] = attrs.field(factory=list)
    cancels: int = 0
    pauses: int = 0


class VerbsWorld(ToyWorld):
    """Keeps what its units are launched with."""

    def __init__(self, habits: Habits, faults: Faults, nursery: trio.Nursery) -> None:
        super().__init__(habits, nursery)
        self.faults, self.extras = faults, Extras()
        self.launches: list[tuple[str, int, str, str]] = []  # unit, incarnation, code, forget
        self.secrets: dict[str, str] = {}

    async def launch(
        self, unit: str, incarnation: int, *, code: str = "", forget: str = "", born: Born = unheard
    ) -> Unit:
        await self.begin_launch(born)
        self.launches.append((unit, incarnation, code, forget))
        fresh = VerbsUnit(self, unit, incarnation)
        self.units.append(fresh)
        if unit == "worker":
            self.nursery.start_soon(fresh.live)
        return fresh

    def entrust(self, names: Sequence[str]) -> Mapping[str, str]:
        self.secrets = {**super().entrust(names)}
        return self.secrets

    def scan(self, secrets: Mapping[str, str]) -> Sighting:
        found = [f"store:{name}" for name, value in secrets.items() if any(value in one for one in self.extras.written)]
        return Sighting(("store", "logs"), tuple(found))


class VerbsUnit(ToyUnit):
    world: VerbsWorld

    def __init__(self, world: VerbsWorld, name: str, incarnation: int) -> None:
        super().__init__(world, name, incarnation)
        if self.control is not None:
            self.control = VerbsControl(self)

    async def work(self, plan: Plan) -> None:
        self.world.nursery.start_soon(self.attend_others)
        for leaf in plan.leaves():
            while leaf.id not in self.world.journal.accepted and not self.world.extras.failed:
                await self.running.wait()
                await self.leave_if_told()
                if self.world.extras.cancelled:
                    return
                if self.world.extras.paused:
                    await trio.sleep(0.01)
                    continue
                await self.step(plan, leaf)
        await trio.sleep(self.world.habits.end_takes_ns / 1e9)
        self.world.journal.ended = True

    async def step(self, plan: Plan, leaf: Leaf) -> None:
        accepted = self.world.journal.accepted
        if any(
            guard.kind == "branch" and guard.arm != arm(accepted[_on(plan, guard.by)]) for guard in plan.guards(leaf.id)
        ):
            await self.accept(leaf.id, "skipped")
        elif isinstance(leaf, Approve):
            await self.approve(leaf)
        elif isinstance(leaf, Artifact):
            await self.publish(leaf)
        elif isinstance(leaf, Choice | Child):
            await self.accept(leaf.id, "")
        elif isinstance(leaf, Call):
            await self.accept(leaf.id, await self.call(leaf))
        else:
            assert isinstance(leaf, Wait), leaf
            await self.wait_for(leaf)

    async def wait_for(self, leaf: Wait) -> None:
        opened_s = self.world.extras.opened_s.setdefault(leaf.id, trio.current_time())
        taken = set(self.world.journal.accepted.values())
        signals = self.world.journal.signals.values()
        nonce = next((n for name, n in signals if name == leaf.signal and n not in taken), None)
        left_s = RETRY_S if leaf.timeout_ns is None else opened_s + leaf.timeout_ns / 1e9 - trio.current_time()
        if nonce is not None or left_s <= 0:
            await self.accept(leaf.id, nonce or "")
        else:
            await trio.sleep(min(left_s, RETRY_S))

    async def approve(self, leaf: Approve) -> None:
        extras = self.world.extras
        opened_s = extras.opened_s.setdefault(leaf.id, trio.current_time())
        decision = extras.decisions.get(leaf.id)
        if decision is None:
            if leaf.validity_ns is not None and trio.current_time() - opened_s > leaf.validity_ns / 1e9:
                extras.failed = "expired"
            await trio.sleep(0.005)
        elif decision["decision"] == "deny":
            extras.failed = "denied"
        else:
            reply = await self.request(Request("desk", "r", leaf.id, params={"actor": decision["actor"]}, lookup=True))
            if reply is not None and reply["allowed"]:
                await self.accept(leaf.id, decision["payload"]["nonce"])
            else:
                del extras.decisions[leaf.id]

    async def publish(self, leaf: Artifact) -> None:
        data = content("r", leaf.id, leaf.size)
        part = {"action": "put", "location": "r/one", "data": b64encode(data).decode()}
        await self.request(Request("store", "r", leaf.id, params=part, part=1))
        digest = hashlib.sha256(data).hexdigest()
        commit = {"action": "commit", "location": "r/one", "parts": 1}
        reply = await self.request(Request("store", "r", leaf.id, "r/one", commit, digest=digest))
        if reply is not None:
            row = {"name": leaf.name, "version": 1, "digest": digest, "size": leaf.size, "operation": leaf.id}
            self.world.extras.artifacts = [{**row, "location": "r/one", "state": "accepted"}]
            await self.accept(leaf.id, reply["nonce"])

    async def call(self, leaf: Call) -> str | None:
        journal, extras = self.world.journal, self.world.extras
        plan = journal.plan
        assert plan is not None
        child, op = plan.operations_of_children().get(leaf.id, ("", leaf.id))
        run = f"r/{child}" if child else "r"
        params = extras.params.get(leaf.id, dict(leaf.params))
        secret = self.world.secrets[leaf.secret] if leaf.secret else None
        if self.world.faults.leaks and secret:
            extras.written.append(f"sends {secret}")
        carries = {name: journal.accepted[name] for name in leaf.carries}
        reply = await self.request(Request(leaf.service, run, op, f"{run}:{op}", params, carries, secret=secret))
        return None if reply is None else str(reply["nonce"])

    async def request(self, request: Request) -> Mapping[str, Any] | None:
        """The body of an answer, or None when there is none in time."""
        channel = ToyChannel()
        assert self.world.outside is not None
        assert self.world.gate is not None
        self.world.nursery.start_soon(self.world.outside.serve, request, self.incarnation, self.world.gate, channel)
        with trio.move_on_after(0.2):
            await channel.answered.wait()
        return channel.reply.body if channel.reply is not None and channel.reply.status == 200 else None

    async def attend_others(self) -> None:
        """Other runs of one call each."""
        while self.alive:
            for name, plan in list(self.world.extras.others.items()):
                if name not in self.world.extras.ended and not self.world.faults.forgets_crowd:
                    (call,) = plan.calls()
                    if await self.request(Request(call.service, name, call.id, name)) is not None:
                        self.world.extras.ended.add(name)
            await trio.sleep(0.01)


def _on(plan: Plan, branch: str) -> str:
    found = next(op for op in plan.operations() if isinstance(op, Branch) and op.id == branch)
    return found.on


class VerbsControl(ToyControl):
    world: VerbsWorld

    def _answer(self, verb: str, fields: dict[str, Any]) -> Answer:
        target = fields["run"]
        if target == "r" or verb == "signal":
            return super()._answer(verb, fields)
        extras = self.world.extras
        if verb == "start":
            extras.others[target] = Plan.from_json(fields["plan"])
            return Answer("ok")
        known = target in extras.others or "/" in target
        over = target in extras.ended or "/" in target
        return Answer("ok", status=Status("done" if over else "running" if known else "unknown"))

    def start(self, plan: dict[str, Any], key: str) -> Answer:
        known = self.world.journal.plan
        if known is not None and known != Plan.from_json(plan):
            return Answer("error", detail="another plan under a known id")
        return super().start(plan, key)

    def signal(self, name: str, payload: dict[str, Any], id: str) -> Answer:
        extras, journal = self.world.extras, self.world.journal
        if name == "steer":
            if payload["operation"] in journal.accepted:
                return Answer("ok", {"disposition": "late"})
            extras.params[payload["operation"]] = payload["params"]
            for leaf in journal.plan.approvals() if journal.plan else ():
                if leaf.of == payload["operation"]:
                    extras.decisions.pop(leaf.id, None)
            return Answer("ok", {"disposition": "released", "consumer": payload["operation"]})
        if name == "notice":
            is_new = id not in extras.notices
            extras.notices.append(id)
            known = journal.plan is not None and journal.plan.leaf(payload["operation"]) is not None
            return Answer("ok", {"disposition": "unmatched" if not known else "released" if is_new else "duplicate"})
        super().signal(name, payload, id)
        known = journal.plan is not None and name in {wait.signal for wait in journal.plan.waits()}
        return Answer("ok", {"disposition": "buffered" if known else "unmatched"})

    def decide(
        self, operation: str, decision: str, digest: str, actor: str, payload: dict[str, str], id: str
    ) -> Answer:
        extras, plan = self.world.extras, self.world.journal.plan
        assert plan is not None
        leaf = plan.leaf(operation)
        assert isinstance(leaf, Approve)
        if actor != "alice" and not self.world.faults.takes_forged:
            return Answer("error", detail="no-authority")
        if extras.failed == "expired":
            return Answer("error", detail="expired")
        if digest != _digest(self.world, leaf):
            return Answer("error", detail="stale-digest")
        if operation in extras.decisions:
            same = extras.decisions[operation]["id"] == id
            return Answer("ok", {"disposition": "duplicate"}) if same else Answer("error", detail="already-decided")
        extras.decisions[operation] = {"decision": decision, "actor": actor, "payload": payload, "id": id}
        return Answer("ok", {"disposition": "approved" if decision == "approve" else "denied"})

    def cancel(self, id: str) -> Answer:
        extras = self.world.extras
        extras.cancels += 1
        if self.world.journal.ended:
            return Answer("ok", {"disposition": "too-late"})
        extras.cancelled = True
        if extras.cancels <= self.world.faults.indefinite_cancels:
            return Answer("indefinite", detail="who knows")
        return Answer("ok", {"disposition": "accepted"})

    def pause(self, id: str) -> Answer:
        extras = self.world.extras
        extras.pauses += 1
        extras.paused = True
        if extras.pauses <= self.world.faults.indefinite_pauses:
            return Answer("indefinite", detail="who knows")
        return Answer("ok")

    def unpause(self, id: str) -> Answer:
        self.world.extras.paused = False
        return Answer("ok")

    def events(self, after: int) -> Answer:
        rows = [
            {"cursor": n, "kind": "accepted", "operation": op} for n, op in enumerate(self.world.journal.accepted, 1)
        ]
        return Answer("ok", {"events": rows[after : after + 2], "next": min(after + 2, len(rows))})

    def artifacts(self) -> Answer:
        return Answer("ok", {"artifacts": list(self.world.extras.artifacts)})

    def journal(self) -> Answer:
        return Answer("ok", {"transitions": list(self.world.extras.written)})

    def status(self) -> Answer:
        extras, plan = self.world.extras, self.world.journal.plan
        seen = super().status()
        if plan is None or seen.status is None:
            return seen
        shown = [_shown(name, nonce) for name, nonce in self.world.journal.accepted.items()]
        state: dict[str, Any] = {"paused": extras.paused, "operations": tuple(shown)}
        pending = [
            ApprovalStatus(
                leaf.id, leaf.of, _digest(self.world, leaf), "approved" if leaf.id in extras.decisions else "pending"
            )
            for leaf in plan.approvals()
            if leaf.id in extras.opened_s and leaf.id not in self.world.journal.accepted
        ]
        if extras.cancelled:
            state |= {"state": "cancelled", "cancel": "quiescent"}
        elif extras.failed:
            state |= {"state": "failed", "reason": extras.failed}
        elif pending:
            state |= {"state": "waiting", "on": pending[0].operation, "approvals": tuple(pending)}
        return Answer("ok", status=attrs.evolve(seen.status, **state))


def _shown(name: str, nonce: str) -> OperationStatus:
    if nonce == "skipped":
        return OperationStatus(name, "skipped")
    return OperationStatus(name, "succeeded", nonce or None)


def _digest(world: VerbsWorld, leaf: Approve) -> str:
    plan = world.journal.plan
    assert plan is not None
    of = plan.leaf(leaf.of)
    assert isinstance(of, Call)
    return approval_digest(of, world.extras.params.get(of.id))


@attrs.frozen
class Seen:
    """What the kit saw, and what became of the world."""

    observation: Observation
    world: VerbsWorld


def watch(
    plan: Plan,
    *interruptions: Interruption,
    habits: Habits = PLAIN,
    faults: Faults = FLAWLESS,
    units: tuple[str, ...] = ("worker",),
    verbs: tuple[str, ...] = VERBS,
) -> Seen:
    """Drive one run of the toy runtime with every verb. Raises what `observe` raises."""
    subject = Subject("toy", Declared(shows_operations=True, verbs=verbs), units, False, BOUNDS)

    async def main(_world: object) -> Seen | SimkitError:
        async with trio.open_nursery() as nursery:
            world = VerbsWorld(habits, faults, nursery)
            try:
                return Seen(await observe(world, subject, Scenario("test", plan, interruptions), "r"), world)
            except SimkitError as error:
                return error
            finally:
                nursery.cancel_scope.cancel()

    seen = run(main, tape=Tape.from_seed(0), limits=Limits(steps=100_000)).unwrap()
    if isinstance(seen, SimkitError):
        raise seen
    return seen

"""A small language for histories written by hand: each word adds the events one thing leaves behind.

    Story(plan).up().start().call("a").kill().up().call("b").done().settled().history()

Worker incarnations count up by themselves; requests come from the current one unless `by` says otherwise. Nonces are
named after their operation and effect: the first effect of `a` is `a1`, the second `a2`. Calls carry what the plan says,
with the latest nonce of each; compensations, that of what they undo. Keyed services get the key `key:<op>`. Every event takes
a millisecond; `later` adds time. What a child does is told by its id in the plan: `.call("kid/a")`. For commands, decisions,
artifacts, journals and the like see `tests.scenarios.words`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from scenarios.history import (
    TERMINAL,
    Answered,
    Applied,
    Asked,
    Closed,
    Declared,
    Died,
    Event,
    Fired,
    History,
    OperationState,
    OperationStatus,
    Paused,
    Quiet,
    Received,
    Replied,
    Resumed,
    Stalled,
    Started,
    State,
    Status,
)
from scenarios.plan import (
    SEMANTICS,
    Approve,
    Artifact,
    Call,
    Check,
    Compensate,
    Fail,
    Model,
    Nondet,
    Op,
    Par,
    Plan,
    Seq,
    Sleep,
    Wait,
)
from tests.scenarios.words import RUN, Words

MS = 1_000_000
_STATUS = {
    **dict.fromkeys(("executed", "saved", "found"), 200),
    "missing": 404,
    "busy": 409,
    "limited": 429,
    "fenced": 409,
    "mismatch": 422,
    "rejected": 400,
}


def plan(*children: Op | str) -> Plan:
    """A plan of one after the other; a string is read by `leaf`."""
    return Plan(Seq("main", tuple(leaf(child) if isinstance(child, str) else child for child in children)))


def par(*children: Op | str) -> Par:
    """Side by side."""
    made = tuple(leaf(child) if isinstance(child, str) else child for child in children)
    return Par("par:" + "+".join(child.id for child in made), made)


def seq(*children: Op | str) -> Seq:
    """One after the other, inside a `par`."""
    made = tuple(leaf(child) if isinstance(child, str) else child for child in children)
    return Seq("seq:" + "+".join(child.id for child in made), made)


def leaf(text: str) -> Op:
    """`a ledger`, `b mailer a,w` (carrying a and w), `w wait go`, `w wait go 500` (timeout, milliseconds), `s sleep 50`,
    `k approve b` (`k approve b 500`, its validity), `m model 100 a` (tokens, what it carries), `u undo a`, `p artifact report
    64 2` (size, parts), `q check p`, `f fail reason`, `n nondet uuid`.
    """
    id_, what, *rest = text.split()
    match what:
        case "wait":
            return Wait(id_, rest[0], int(rest[1]) * MS if rest[1:] else None)
        case "sleep":
            return Sleep(id_, int(rest[0]) * MS)
        case "approve":
            return Approve(id_, rest[0], int(rest[1]) * MS if rest[1:] else None)
        case "model":
            return Model(id_, "go on", int(rest[0]), (), _names(rest[1:]))
        case "undo":
            return Compensate(id_, rest[0], "ledger", {"undo": rest[0]})
        case "artifact":
            return Artifact(id_, rest[0], int(rest[1]), int(rest[2]) if rest[2:] else 1)
        case "check":
            return Check(id_, rest[0])
        case "fail":
            return Fail(id_, rest[0])
        case "nondet":
            return Nondet(id_, _DRAWN[rest[0]])
        case _:
            return Call(id_, what, {"of": id_}, _names(rest))


_DRAWN: Mapping[str, Literal["time", "random", "uuid"]] = {"time": "time", "random": "random", "uuid": "uuid"}


def _names(rest: list[str]) -> tuple[str, ...]:
    return tuple(rest[0].split(",")) if rest else ()


class Story(Words):
    """A history in the making; every method but `history` returns the story itself."""

    def __init__(self, plan: Plan, **declared: Any) -> None:
        self.plan = plan
        self.declared = Declared(**declared)
        self.events: list[Event] = []
        self.now_ns = self.worker = self.calls = self.effects = self.asks = 0
        self.answers: dict[str, str] = {}  # op → the latest nonce
        self.count: dict[str, int] = {}

    def history(self) -> History:
        return History(RUN, self.plan, self.declared, tuple(self.events))

    def add(self, event: Event) -> Self:
        self.events.append(event)
        self.now_ns += MS
        return self

    def later(self, ms: int) -> Self:
        self.now_ns += ms * MS
        return self

    def stalled(self, ms: int) -> Self:
        """Time passes in which the observer's machine stands still."""
        self.now_ns += ms * MS
        return self.add(Stalled(self.now_ns, ms * MS))

    # --- processes ------------------------------------------------------------------------------------------------

    def up(self, unit: str = "worker", code: str = "") -> Self:
        """A new process, with code of this version; a worker becomes the current one."""
        incarnation = sum(isinstance(event, Started) for event in self.events) + 1
        self.worker = incarnation if unit == "worker" else self.worker
        return self.add(Started(self.now_ns, incarnation, unit, code))

    def kill(
        self,
        cause: Literal["killed", "power", "exited", "left"] = "killed",
        *,
        unit: str = "worker",
        incarnation: int | None = None,
    ) -> Self:
        return self.add(Died(self.now_ns, incarnation or self.worker, unit, cause))

    def crash(self) -> Self:
        """Killed and up again."""
        return self.kill().up()

    def pause(self, worker: int | None = None) -> Self:
        return self.add(Paused(self.now_ns, worker or self.worker))

    def resume(self, worker: int) -> Self:
        return self.add(Resumed(self.now_ns, worker))

    def fired(self, label: str) -> Self:
        return self.add(Fired(self.now_ns, label))

    # --- calls ----------------------------------------------------------------------------------------------------

    def request(
        self,
        op: str,
        *,
        key: str | None = "auto",
        params: str | None = None,
        carries: dict[str, str] | None = None,
        by: int | None = None,
        lookup: bool = False,
        **more: Any,
    ) -> Self:
        """A request is received, and nothing more yet. `more`: `token`, `remaining_ns`, `subject`, `secret`, `part`."""
        service, names, asked = _sent(self.plan, op)
        handed = {name: self.answers[name] for name in names if name in self.answers}
        handed = handed if carries is None else carries
        if key == "auto":
            key = f"key:{op}" if SEMANTICS[service] == "keyed" and not lookup else None
        self.calls += 1
        digest = params or f"{asked}{sorted(handed.items())}"
        worker = by or self.worker
        handed = {} if lookup else handed
        return self.add(
            Received(self.now_ns, self.calls, service, RUN, op, worker, key, digest, handed, lookup, **more)
        )

    def applied(self, call: int | None = None) -> Self:
        """The latest request (or number `call`) takes effect, with a fresh nonce."""
        number = call or self.calls
        op = self._op(number)
        self.count[op] = self.count.get(op, 0) + 1
        self.effects += 1
        self.answers[op] = f"{op}{self.count[op]}"
        return self.add(Applied(self.now_ns, number, self.effects, self.answers[op]))

    def reply(
        self,
        kind: str = "executed",
        *,
        nonce: str | None = "auto",
        delivery: Literal["sent", "dropped", "reset"] = "sent",
        call: int | None = None,
        **more: Any,
    ) -> Self:
        """The latest request (or number `call`) is answered; answers carry the latest nonce of their operation. `more`:
        `usage`, `external`, `outcome`.
        """
        number = call or self.calls
        if nonce == "auto":
            nonce = self.answers.get(self._op(number)) if kind in {"executed", "saved", "found"} else None
        return self.add(Replied(self.now_ns, number, _STATUS.get(kind, 503), kind, nonce, delivery, **more))

    def call(self, op: str, kind: str = "executed", **request: Any) -> Self:
        """A whole call: received, applied when executed, answered."""
        delivery = request.pop("delivery", "sent")
        answer = {name: request.pop(name) for name in ("usage", "external", "outcome") if name in request}
        self.request(op, **request)
        if kind == "executed":
            self.applied()
        return self.reply(kind, delivery=delivery, **answer)

    def look_up(self, op: str, kind: str = "missing", by: int | None = None) -> Self:
        return self.request(op, lookup=True, by=by).reply(kind)

    def _op(self, call: int) -> str:
        return next(event.op for event in self.events if isinstance(event, Received) and event.call == call)

    # --- asks -----------------------------------------------------------------------------------------------------

    def ask(self, verb: str, **fields: Any) -> Self:
        self.asks += 1
        return self.add(Asked(self.now_ns, self.asks, verb, RUN, self.worker, **fields))

    def answer(
        self,
        outcome: Literal["ok", "error", "indefinite"] = "ok",
        status: Status | None = None,
        ask: int | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Self:
        return self.add(Answered(self.now_ns, ask or self.asks, outcome, "", status, body))

    def start(self, outcome: Literal["ok", "error", "indefinite"] = "ok") -> Self:
        return self.ask("start", id=RUN).answer(outcome)

    def signal(
        self,
        id_: str,
        name: str = "go",
        outcome: Literal["ok", "error", "indefinite"] = "ok",
        disposition: str | None = None,
    ) -> Self:
        """Signal `id_`, whose payload's nonce is `sig:<id>`; it becomes the answer of the first wait not yet answered."""
        waits = [wait.id for wait in self.plan.waits() if wait.signal == name]
        if f"sig:{id_}" not in self.answers.values():
            free = next((wait for wait in waits if wait not in self.answers), None)
            if free is not None and outcome != "error" and disposition in {None, "released", "buffered"}:
                self.answers[free] = f"sig:{id_}"
        body = {"disposition": disposition} if disposition is not None and outcome == "ok" else None
        return self.ask("signal", id=id_, name=name, nonce=f"sig:{id_}").answer(outcome, body=body)

    def status(self, state: State, on: str | None = None, ops: dict[str, str] | None = None, **fields: Any) -> Self:
        """Asked and answered at once; `ops` maps an operation to its state, or to `state nonce`."""
        return self.ask("status").shows(state, on, ops, **fields)

    def shows(
        self,
        state: State,
        on: str | None = None,
        ops: dict[str, str] | None = None,
        ask: int | None = None,
        **fields: Any,
    ) -> Self:
        """The answer to the latest status (or to ask number `ask`); an end says why, unless `reason` is given as None."""
        if state in TERMINAL - {"done"} and not {"error", "reason"} & fields.keys():
            fields["reason"] = state
        shown = tuple(_operation(id_, text) for id_, text in (ops or {}).items())
        return self.answer("ok", Status(state, on, operations=shown, **fields), ask=ask)

    def done(self, result: dict[str, str] | None = None, **fields: Any) -> Self:
        """A status that shows the run done, with the latest nonces (changed by `result`)."""
        leaves = {one.id: self.answers[one.id] for one in self.plan.leaves() if one.id in self.answers}
        return self.status("done", result={**leaves, **(result or {})}, **fields)

    # --- the end --------------------------------------------------------------------------------------------------

    def quiet(self) -> Self:
        """No fault from here on."""
        return self.add(Quiet(self.now_ns))

    def settled(self) -> Self:
        return self._close("settled")

    def slow(self) -> Self:
        return self._close("slow")

    def bound(self) -> Self:
        return self._close("bound")

    def stopped(self) -> Self:
        """The target has stopped over damaged storage."""
        return self.add(Closed(self.now_ns, "stopped"))

    def _close(self, reason: Literal["settled", "slow", "bound"]) -> Self:
        return self.add(Quiet(self.now_ns)).add(Closed(self.now_ns, reason))


def _sent(plan: Plan, op: str) -> tuple[str, tuple[str, ...], str]:
    """The service that requests of `op` go to, the operations whose answers they hand on, and what they ask for."""
    match plan.leaf(op):
        case Compensate() as undo:
            return undo.service, (undo.of,), str(sorted(undo.params.items()))
        case Call() | Model() as call:
            return call.service, call.carries, str(sorted(call.params.items()))
        case Artifact() as artifact:
            return "store", artifact.carries, artifact.name
        case Check() as check:
            return "checker", (), check.of
        case Approve() as approve:
            return "desk", (), approve.of
        case other:
            raise AssertionError(f"{op!r} sends nothing: {other}")


def _operation(id_: str, text: str) -> OperationStatus:
    state, _, nonce = text.partition(" ")
    states: dict[str, OperationState] = {
        "planned": "planned",
        "dispatched": "dispatched",
        "succeeded": "succeeded",
        "failed": "failed",
        "unknown": "unknown",
        "reconciled": "reconciled",
        "unresolved": "unresolved",
        "skipped": "skipped",
    }
    return OperationStatus(id_, states[state], nonce or None)

"""What the kit asks an adapter: one value for each question, with the ids under which it may be asked again. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import attrs

from scenarios.operation import canonical

if TYPE_CHECKING:
    from scenarios.plan import Approve, Plan, Wait

#: Signal names that harness and kit keep for themselves.
STEER, NOTICE = "steer", "notice"
#: Who may decide, and who may not.
ACTOR, STRANGER = "alice", "mallory"


@attrs.frozen
class Question:
    """One question about `run`. `fields` go over the wire beside verb and run; the rest is for the record.

    `about` is the operation at whose acknowledgement interruptions may strike: a wait or an approval. `to` is the run it goes
    to, where that is a child of `run`.
    """

    verb: str
    run: str
    fields: Mapping[str, Any] = attrs.field(factory=dict)
    about: str | None = None
    to: str | None = None

    @property
    def id(self) -> str | None:
        """The command's own id, the same each time it is asked; that of a start is its run."""
        return self.run if self.verb == "start" else self._text("id")

    @property
    def name(self) -> str | None:
        return self._text("name")

    @property
    def nonce(self) -> str | None:
        nonce: str | None = self._brought.get("nonce")
        return nonce

    @property
    def operation(self) -> str | None:
        named: str | None = self.fields.get("operation", self._brought.get("operation"))
        return self.about if self.to is not None and self.name == NOTICE else named

    @property
    def digest(self) -> str | None:
        return self._text("digest")

    @property
    def decision(self) -> str | None:
        return self._text("decision")

    @property
    def actor(self) -> str | None:
        return self._text("actor")

    @property
    def payload(self) -> str | None:
        """What it brings, as text: of a start, the plan of one that misuses the id of another; of a reader, its cursor."""
        if self.verb == "events":
            return canonical({"after": self.fields["after"]})
        brought = self.fields.get("plan" if self.is_misuse else "payload")
        return None if brought is None else canonical(brought)

    @property
    def is_misuse(self) -> bool:
        return self.verb == "start" and self.about == _MISUSE

    @property
    def _brought(self) -> Mapping[str, Any]:
        brought: Mapping[str, Any] = self.fields.get("payload", {})
        return brought

    def _text(self, field: str) -> str | None:
        text: str | None = self.fields.get(field)
        return text


_MISUSE = "misuse"


def start(run: str, plan: Plan) -> Question:
    """Submit a run."""
    return Question("start", run, {"plan": plan.to_json(), "key": run})


def misuse(run: str, plan: Plan) -> Question:
    """Submit another plan under the id of the run."""
    return Question("start", run, {"plan": _other_plan(plan), "key": run}, _MISUSE)


def signal(
    run: str, id: str, name: str, payload: Mapping[str, Any], *, about: str | None = None, to: str | None = None
) -> Question:
    return Question("signal", run, {"name": name, "payload": payload, "id": f"{run}:{id}"}, about, to)


def signal_of(run: str, wait: Wait, nonce: str, to: str | None = None) -> Question:
    """The signal that `wait` waits for; `to` where the wait is a child's."""
    return signal(run, wait.id, wait.signal, {"nonce": nonce}, about=wait.id, to=to)


def steer(run: str, target: str, nth: int, params: Mapping[str, Any], nonce: str) -> Question:
    """Direction number `nth` for an operation that has not been dispatched yet."""
    payload = {"operation": target, "params": params, "nonce": nonce}
    return signal(run, f"{target}:steer:{nth}", STEER, payload)


def notice(run: str, target: str, nonce: str, inside: tuple[str, str] | None = None) -> Question:
    """A receiver's late word that the effect of `target` happened; to the child `inside` which it did, by its id there."""
    if inside is None:
        return signal(run, f"{target}:notice", NOTICE, {"operation": target, "nonce": nonce})
    child, operation = inside
    payload = {"operation": operation, "nonce": nonce}
    return signal(run, f"{target}:notice", NOTICE, payload, about=target, to=f"{run}/{child}")


def decide(
    run: str,
    approve: Approve,
    nth: int | str,
    decision: Literal["approve", "deny"],
    digest: str,
    nonce: str,
    *,
    actor: str = ACTOR,
) -> Question:
    """Decision number `nth` about an approval, bound to `digest`."""
    fields = {
        "operation": approve.id,
        "decision": decision,
        "digest": digest,
        "actor": actor,
        "payload": {"nonce": nonce},
        "id": f"{run}:{approve.id}:{nth}",
    }
    return Question("decide", run, fields, approve.id)


def command(verb: Literal["cancel", "pause", "unpause"], run: str, nth: int) -> Question:
    """Command number `nth` of this verb."""
    return Question(verb, run, {"id": f"{run}:{verb}:{nth}"})


def _other_plan(plan: Plan) -> dict[str, Any]:
    """A plan like this one with another first call; or, where it has none, with a moment's sleep at its end."""
    data: dict[str, Any] = plan.to_json()
    first = _first_call(data["root"])
    if first is not None:
        first["params"] = {**first.get("params", {}), "misuse": 1}
    else:
        sleep = {"op": "sleep", "id": f"{_MISUSE}-sleep", "ns": 1}
        data["root"] = {"op": "seq", "id": _MISUSE, "children": [data["root"], sleep]}
    return data


def _first_call(op: dict[str, Any]) -> dict[str, Any] | None:
    if op["op"] == "call":
        return op
    found = (_first_call(child) for child in op.get("children", ()))
    return next((one for one in found if one is not None), None)

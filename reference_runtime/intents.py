"""Intents: what is about to be sent, written down before a byte of it leaves, and the ticket its holder gets for it.

What a request says is fixed when it is first recorded, so that every repeat says the same; what belongs to one invocation only
(a fencing token, the time that is left) stands beside it.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Collection

from reference_runtime.acceptance import Acceptance
from reference_runtime.evolution import Evolution
from reference_runtime.model import Grant, Json, Move, Ticket, canonical
from reference_runtime.retries import KEYED
from reference_runtime.rows import Operation

#: Made once: `json.dumps` makes one for each text that is not written the usual way.
_ASKED = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


class Intents(Acceptance, Evolution):
    """Dispatching under a lease, and what is sent."""

    def intends_with_lease(self, op: Operation) -> bool:
        """Whether the intent is recorded with the lease: an intent that is never acted on must do no harm."""
        return op.semantics != "blind"

    def _intend(self, op: Operation, grant: Grant, generation: int) -> Ticket | None:
        """Dispatch what stands as granted, under the lease of a generation, and record what will be sent; None when the fence
        does not hold.
        """
        leased = op._replace(generation=generation)
        self.prepare(leased)
        intended = self.intended(leased)
        also = {
            "generation": generation,
            "request": intended.request,
            "key": intended.key,
            "tries": intended.tries,
            "first_ns": intended.first_ns,
        }
        move: Move = "look_up" if op.remedy == "lookup" else "dispatch"
        if not self._move(op, move, grant.generation, grant.version, None, self.reason_of_intent(op), also):
            return None
        dispatched = intended._replace(version=grant.version + 1)
        self._record_intent(dispatched, generation)
        return self._ticket(dispatched)

    def intended(self, op: Operation) -> Operation:
        """An operation as it is once it is dispatched: with what is sent, and one try more, unless that only asks."""
        return op._replace(
            request=self.request_for(op),
            key=self.key_for(op),
            tries=op.tries + (op.remedy != "lookup"),
            first_ns=op.first_ns if op.first_ns is not None else time.time_ns(),
        )

    def reason_of_intent(self, op: Operation) -> str | None:
        """Why something is sent that was sent before, or to undo or clean up; None for what simply has its turn."""
        if op.state == "unknown":
            before = self._value("SELECT reason FROM operation WHERE attempt = ? AND id = ?", op.attempt, op.id)
            return f"{'look-up' if op.remedy == 'lookup' else 'repeat'}: {before or 'outcome-unknown'}"
        if op.kind == "compensate":
            why = self._value("SELECT failing FROM attempt WHERE id = ?", op.attempt)
            return f"compensation: {why or 'cancelled'}"
        return "sweep: it was uploaded, and not accepted" if op.kind == "sweep" else None

    def _record_intent(self, op: Operation, generation: int) -> None:
        """Write down one invocation: what is sent, be it a question of the open search."""
        assert op.request is not None
        is_question = op.remedy == "lookup"
        if is_question:
            self.count_lookup(op)
        self._invocations.pop(generation, None)
        self.db.execute(
            "INSERT INTO invocation (generation, attempt, operation, action, key, digest, execution, started_ns)"
            " SELECT ?, ?, ?, ?, ?, ?, execution, ? FROM lease WHERE generation = ?",
            (
                generation,
                op.attempt,
                op.id,
                "lookup" if is_question else "call",
                op.key,
                request_digest({**json.loads(op.request), **self.particular_fields(op)}),
                time.time_ns(),
                generation,
            ),
        )
        self._touch(op.attempt)

    def _ticket(self, op: Operation) -> Ticket:
        assert op.request is not None
        request = json.loads(op.request)
        is_question = op.remedy == "lookup"
        if is_question:
            request["script"] = json.loads(op.spec).get("lookups") or []
        return Ticket(
            task=op.task,
            attempt=op.attempt,
            operation=op.id,
            generation=op.generation,
            version=op.version,
            action="lookup" if is_question else "call",
            tool=op.tool,
            key=op.key,
            invocation=op.tries,
            fields=self.fields_for(op),
            **request,
        )

    def request_for(self, op: Operation) -> str:
        """What the operation's request says, as JSON; fixed when first recorded, so that every repeat says the same."""
        if op.request is not None:
            return op.request
        spec = json.loads(op.spec)
        answers = self.accepted_answers(op.attempt, spec["carries"])
        request = {"params": self.params_of(op), "carries": answers, "script": spec["script"]}
        return canonical({**request, "secret": spec["secret"]} if spec.get("secret") else request)

    def key_for(self, op: Operation) -> str | None:
        """The one key of an operation, the same for every invocation and worker; None where the receiver takes none."""
        return f"{op.attempt}:{op.id}" if op.semantics in KEYED else None

    def fields_for(self, op: Operation) -> Json:
        """What this one invocation says beside the recorded request: its fencing token, and the time it is left."""
        fields: Json = {"token": op.generation} if op.semantics == "fenced" else {}
        remaining_ns = self.remaining_ns(op.task, time.time_ns()) if self.keeps_time(op) else None
        if remaining_ns is not None:
            fields["remaining_ns"] = max(0, remaining_ns)
        return fields | self.particular_fields(op)

    def accepted_answers(self, attempt: str, names: Collection[str]) -> dict[str, str]:
        """The accepted nonce of every operation in `names` that has one, in the order of the plan."""
        if not names:
            return {}
        rows = self._rows(
            "SELECT o.id, o.answer ->> 'nonce' FROM json_each(?) name CROSS JOIN operation o ON o.id = name.value"
            " WHERE o.attempt = ? AND o.accepted AND o.answer ->> 'nonce' IS NOT NULL ORDER BY o.position",
            canonical(list(names)),
            attempt,
        )
        return {row[0]: row[1] for row in rows}


def request_digest(request: Json) -> str:
    """What is asked for, as receivers fingerprint it: 16 bytes of blake2b in hex, over parameters, carried answers and what
    the request is about.
    """
    about = {name: request[name] for name in _ABOUT if name in request}
    asked = [request["params"], request["carries"], *([about] if about else [])]
    return hashlib.blake2b(_ASKED.encode(asked).encode("ascii"), digest_size=16).hexdigest()


#: The fields of a request that are part of what is asked, where it has them.
_ABOUT = ("part", "subject", "version", "digest")

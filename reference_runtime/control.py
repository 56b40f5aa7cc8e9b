"""Control: stopping, pausing and steering a run, and the receivers' late words about it.

A command has an id, and a repeat of it gets its first answer. A stop is *accepted* when it is durable: from then on nothing
new is admitted, in no life of the server. It is *delivered* when every worker that has some of the run in hand was told, and
the run is *quiescent* when none has. What was in flight counts for what it came to, but the outcome is cancelled.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping
from typing import Any, Literal

from reference_runtime.children import BY_ITSELF
from reference_runtime.deadlines import Deadlines
from reference_runtime.model import DISPATCHED, Json, Kind, Refusal, canonical, digest
from reference_runtime.rows import Operation
from reference_runtime.waits import GRACE

#: The leases that a stop covers: everything but what cleans up after it.
_COVERED = """FROM lease l JOIN operation o ON o.attempt = l.attempt AND o.id = l.operation
    WHERE l.attempt = ? AND o.kind NOT IN ('compensate', 'sweep')"""

#: What a receiver's word that it happened is all there is to know of.
TOLD: frozenset[Kind] = frozenset({"call", "model", "compensate"})


class Control(Deadlines):
    """Commands and their dispositions."""

    # -- commands

    def known_command(self, task: str, id_: str, verb: str, said: Mapping[str, object]) -> Json | None:
        """The first answer to a command, None for a new one. Raises `Refusal` for an id that meant something else."""
        row = self._row("SELECT verb, digest, answer FROM command WHERE task = ? AND id = ?", task, id_)
        if row is None:
            return None
        if row[:2] != (verb, digest(said)):
            raise Refusal("conflict", f"command {id_!r} of task {task!r} is known as another one; use a new id")
        answer: Json = json.loads(row[2])
        return answer

    def keep_command(self, task: str, id_: str, verb: str, said: Mapping[str, object], answer: Json) -> Json:
        """Keep the answer to a command for its repeats, and tell the audit trail who gave it."""
        actor, target = str(said.get("actor", "client")), str(said.get("operation", task))
        self.audit(task, actor, f"command {id_}", verb, target, str(answer.get("disposition", "")))
        self.db.execute(
            "INSERT INTO command VALUES (?, ?, ?, ?, ?, ?)",
            (task, id_, verb, digest(said), canonical(answer), time.time_ns()),
        )
        return answer

    def _disposed(self, attempt: str, disposition: str) -> Json:
        """A disposition as an answer; one that came too late says why."""
        if disposition != "too-late":
            return {"disposition": disposition}
        stands = self._attempt(attempt)
        match stands.outcome:
            case None:
                why = "the task is to stop, and begins nothing more"
            case "unresolved":
                why = f"the task has ended blocked, and only `settle` lets it go on: {stands.reason}"
            case _:
                why = f"the task has ended: {stands.reason or 'completed'}"
        return {"disposition": disposition, "why": why}

    # -- stopping

    def cancel(self, task: str, id_: str) -> Json:
        """Stop a run for good. Its disposition: accepted, or too-late for one that has ended."""
        with self._transaction():
            known = self.known_command(task, id_, "cancel", {})
            if known is not None:
                return known
            attempt = self._current_attempt(task)
            disposition = self.cancel_disposition(self._value("SELECT outcome FROM attempt WHERE id = ?", attempt))
            if disposition == "accepted":
                self.halt(attempt)
                self._conclude(attempt)
            return self.keep_command(task, id_, "cancel", {}, self._disposed(attempt, disposition))

    def cancel_disposition(self, outcome: str | None) -> Literal["accepted", "too-late"]:
        """Whether a stop can still stop anything."""
        return "accepted" if outcome is None else "too-late"

    def halt(self, attempt: str) -> None:
        """Let nothing more be admitted, in this transaction and for ever, and give what is in flight its grace, once."""
        is_first = not self.is_halted(attempt)
        self._set_attempt(attempt, "halt = ifnull(halt, 'accepted'), paused = 0")
        self._withdraw(attempt)
        self._take_grants_back(attempt)  # of what was tried before: to be sent again is no less new
        for op in self._operations("WHERE o.attempt = ? AND o.state = 'unknown' AND o.due_ns IS NOT NULL", attempt):
            self.end_when_stopped(op)
        if is_first:  # or who asks again and again would put its end off for ever
            self.start_timer(attempt, GRACE, time.time_ns() + self.policy.grace_ns)
        self.stop_children(attempt, "parent-cancelled")
        self._note_delivery(attempt)

    def tell(self, execution: str, generations: Collection[int]) -> list[int]:
        """Which of these leases belong to runs that are to stop; telling their holder so delivers the stop."""
        stopping = self._rows(
            "SELECT l.generation, l.attempt FROM lease l JOIN attempt a ON a.id = l.attempt"
            " WHERE l.execution = ? AND a.halt IS NOT NULL ORDER BY l.generation",
            execution,
        )
        told = [(generation, attempt) for generation, attempt in stopping if generation in generations]
        if told:
            with self._transaction():
                self.db.executemany("INSERT OR IGNORE INTO told VALUES (?)", [(generation,) for generation, _ in told])
                for attempt in dict.fromkeys(attempt for _, attempt in told):
                    self._note_delivery(attempt)
        return [generation for generation, _ in told]

    def _note_delivery(self, attempt: str) -> None:
        """Bring how far a stop has come in line with the leases it covers, the children's among them."""
        if self.is_quiescent(attempt):
            reached = "quiescent"
        elif self.is_delivered(attempt):
            reached = "delivered"
        else:
            return
        if self._set_attempt(
            attempt, "halt = ? WHERE halt IS NOT NULL AND halt NOT IN (?, 'quiescent')", reached, reached
        ):
            self._touch(attempt)
            owner = self.owning_attempt(attempt)
            if owner is not None and self.is_halted(owner):
                self._note_delivery(owner)

    def is_quiescent(self, attempt: str) -> bool:
        """Whether nothing that a stop covers is in anybody's hands or will be: no lease, and no question left to ask."""
        if self._row(f"SELECT 1 {_COVERED}", attempt) or self._asked_about(attempt):
            return False
        return all(self.is_quiescent(child) for child in self.living(attempt))

    def is_delivered(self, attempt: str) -> bool:
        """Whether everybody was told who has something in hand that a stop covers."""
        if self._row(f"SELECT 1 {_COVERED} AND l.generation NOT IN (SELECT generation FROM told)", attempt):
            return False
        return all(self.is_delivered(child) for child in self.living(attempt))

    def _asked_about(self, attempt: str) -> list[Operation]:
        """What the run still wants to know of effects that a stop covers."""
        return self._operations(
            "WHERE o.attempt = ? AND o.state = 'unknown' AND o.due_ns IS NOT NULL"
            " AND o.kind NOT IN ('compensate', 'sweep') ORDER BY o.position",
            attempt,
        )

    def _conclude(self, attempt: str) -> None:
        if self.is_halted(attempt):
            self._note_delivery(attempt)
        super()._conclude(attempt)

    def _grace_over(self, attempt: str) -> None:
        """Take by force what has not come to an end; nobody knows what came of it, and that stays visible."""
        for (generation,) in self._rows(f"SELECT l.generation {_COVERED} ORDER BY l.generation", attempt):
            self.reclaim(generation)
        for op in self._asked_about(attempt):
            self._end(op, "give_up", "cancelled: the grace is over")
        self._conclude(attempt)

    # -- pausing

    def pause(self, task: str, id_: str) -> Json:
        """Dispatch nothing more of a run, and of the children it owns, until it is unpaused; what is in flight goes on."""
        return self._set_paused(task, id_, "pause", is_paused=True)

    def unpause(self, task: str, id_: str) -> Json:
        """Make a paused run's work claimable again, and its children's that were not paused by themselves."""
        return self._set_paused(task, id_, "unpause", is_paused=False)

    def _set_paused(self, task: str, id_: str, verb: str, *, is_paused: bool) -> Json:
        with self._transaction():
            known = self.known_command(task, id_, verb, {})
            if known is not None:
                return known
            attempt = self._current_attempt(task)
            over = self._value("SELECT outcome IS NOT NULL OR halt IS NOT NULL FROM attempt WHERE id = ?", attempt)
            if not over:
                self.hold(attempt, BY_ITSELF, is_held=is_paused)
            return self.keep_command(task, id_, verb, {}, self._disposed(attempt, "too-late" if over else "accepted"))

    def _take_grants_back(self, attempt: str) -> None:
        """Take back what was granted and not dispatched; it is claimable again after the pause."""
        rows = self._rows(
            "SELECT operation FROM lease l WHERE attempt = ? AND NOT EXISTS"
            " (SELECT 1 FROM invocation i WHERE i.generation = l.generation) ORDER BY generation",
            attempt,
        )
        for (operation,) in rows:
            self._drop_lease(attempt, operation)
            self._reschedule(self._operation(attempt, operation), None, time.time_ns())

    # -- steering

    def steer(self, attempt: str, payload: Mapping[str, Any]) -> str:
        """Replace the parameters of an operation, in order of acceptance; `late` once it was dispatched.

        Its version grows, so that whoever read it before no longer owns it, and an approval of what it was is void.
        """
        operation, params = payload.get("operation"), payload.get("params")
        if not isinstance(params, dict) or not self._is_planned(attempt, operation):
            return "unmatched"
        op = self._operation(attempt, str(operation))
        if op.kind not in DISPATCHED:  # the others have none
            return "unmatched"
        if not self.is_steerable(op) or self.is_stopped(attempt):
            return "late"
        self.db.execute(
            "UPDATE operation SET spec = json_set(spec, '$.params', json(?)), version = version + 1"
            " WHERE attempt = ? AND id = ?",
            (canonical(params), attempt, op.id),
        )
        self.void_approvals(attempt, op.id)
        return "released"

    def _is_planned(self, attempt: str, operation: object) -> bool:
        """Whether what somebody calls an operation of this attempt is one."""
        sql = "SELECT 1 FROM operation WHERE attempt = ? AND id = ?"
        return isinstance(operation, str) and self._row(sql, attempt, operation) is not None

    def is_steerable(self, op: Operation) -> bool:
        """Whether an operation may still be changed: nothing of it has left, nor is what it will undo on record."""
        return op.state == "planned" and not (op.kind == "compensate" and op.request is not None)

    def void_approvals(self, attempt: str, operation: str) -> None:
        """Ask again about an operation that is not what it was."""
        for approval in self.approvals_of(attempt, operation):
            if approval.state in ("pending", "approved"):
                self.ask_again(approval)

    # -- late words

    def notice(self, attempt: str, payload: Mapping[str, Any]) -> str:
        """Take a receiver's word that an effect happened: `released` where nobody knew of it, else `unmatched`.

        One about a call that is under way is `buffered`: it counts if the answer gets lost. No word stands for content,
        which is accepted by its digest and cleared away by looking, nor for what a checker found.
        """
        operation, nonce = payload.get("operation"), payload.get("nonce")
        if not isinstance(nonce, str) or not self._is_planned(attempt, operation):
            return "unmatched"
        op = self._operation(attempt, str(operation))
        if op.state == "dispatched" and op.kind in TOLD:
            return "buffered"
        return "released" if self.is_unknown(op) and self.take_notice(op, nonce) else "unmatched"

    def is_unknown(self, op: Operation) -> bool:
        """Whether a late word about this operation tells anything new."""
        return op.state in ("unknown", "unresolved") and op.kind in (*TOLD, "child")

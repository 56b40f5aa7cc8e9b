"""Acceptance: what comes of a report, each time in one transaction with everything that follows from it.

A result counts under the generation and version it was dispatched under, once; a repeat of it is acknowledged, a stale one
is kept as evidence. What gave no result is tried again, asked about or ended: by the receiver's contract, within limits.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from reference_runtime.model import (
    MOVES,
    NOT_BEGUN,
    UNKNOWN,
    Facts,
    Grant,
    Move,
    Rejected,
    Remedy,
    Report,
    Semantics,
    canonical,
)
from reference_runtime.particulars import Particulars
from reference_runtime.progress import Progress
from reference_runtime.reconcile import Reconcile
from reference_runtime.retries import Limits, Past, backoff_ns, decide, limits_of
from reference_runtime.rows import Operation

NOTHING_KNOWN = Facts()


class Acceptance(Progress, Particulars, Reconcile):
    """Taking reports, and deciding what becomes of operations that have no result."""

    #: Attempts that are still to be concluded in this transaction, where somebody sees to that.
    _unconcluded: dict[str, None] | None = None

    def settle(
        self,
        grant: Grant,
        report: Report,
        answer: Mapping[str, Any] | None,
        detail: str,
        facts: Facts = NOTHING_KNOWN,
    ) -> Rejected | None:
        """Take what an invocation came to. None when it counts, also when it is repeated; else why it does not."""
        with self._transaction():
            op = self._operation(grant.attempt, grant.operation)
            if self._already_settled(grant, report, answer, detail):
                return None
            if not self._apply(op, report, grant.generation, grant.version, answer, detail, facts):
                return self._reject(grant, report, self._text(answer) or detail)
            self._audit_holder(op.task, grant, "settle", report)
            self._end_invocation(grant.generation, report, self._text(answer) or detail, facts.external)
            self._conclude_later(op.attempt)
            return None

    def _conclude_later(self, attempt: str) -> None:
        """Bring an attempt in line; where more is given out in this transaction (`_unconcluded`), only after that."""
        if self._unconcluded is None:
            self._conclude(attempt)
        else:
            self._unconcluded[attempt] = None

    def _apply(
        self,
        op: Operation,
        report: Report,
        generation: int,
        version: int,
        answer: Mapping[str, Any] | None,
        detail: str,
        facts: Facts = NOTHING_KNOWN,
    ) -> bool:
        """Make the transition a report asks for, and what follows from it. False when the fence does not hold."""
        why = ""
        if (op.generation, op.version) == (generation, version):
            report, why = self.reading(op, report, answer)
        move = MOVES[report]
        reason = why or (f"{facts.reason or _CODES.get(report, report)}: {detail}" if detail else _WORDS.get(report))
        if not self._move(op, move, generation, version, self._text(answer), reason):
            return False
        self._release(generation)
        self.follow(op, report, answer)
        if move in ("accept", "find"):
            if move == "find":
                self.end_search(op, "found")
            self._advance(op.attempt, op.id)
        elif move == "refuse":
            self._refused(op, reason or "rejected")
        else:
            now = op._replace(generation=generation, version=version + 1)
            if self.is_final(now):
                self._end(now, "give_up", why or "check-timeout: no answer from the checker")
                return True
            if (report, facts.reason) == ("unsent", NOT_BEGUN):
                now = self.take_back_try(now)
            if not self.heed_notice(now):
                self._remedy(now, self.remedy_for(op, report), report, facts.retry_after_ns)
        return True

    def take_back_try(self, op: Operation) -> Operation:
        """Count an invocation out again that was never begun: the limits are on what was tried."""
        if op.remedy == "lookup":
            self.count_lookup(op, -1)
            return op
        self.db.execute(
            "UPDATE operation SET tries = tries - 1, first_ns = iif(tries = 1, NULL, first_ns)"
            " WHERE attempt = ? AND id = ?",
            (op.attempt, op.id),
        )
        return op._replace(tries=op.tries - 1, first_ns=None if op.tries == 1 else op.first_ns)

    def heed_notice(self, op: Operation) -> bool:
        """Settle an outcome that got lost by the receiver's word that came before the loss was noticed, if one did."""
        word = self.early_notice(op)
        if word is None:
            return False
        sequence, nonce = word
        self.db.execute(
            "UPDATE event SET disposition = 'released', consumer = ? WHERE sequence = ?",
            (f"{op.attempt}:{op.id}", sequence),
        )
        return self.take_notice(op, nonce)

    def take_notice(self, op: Operation, nonce: str, reason: str = "noticed: the receiver said so") -> bool:
        """Take somebody's word that the effect of an operation happened; False where nothing is unknown of it."""
        answer = canonical({**self.came_to(op), "nonce": nonce})
        if not self._move(op, "notice", op.generation, op.version, answer, reason):
            return False
        self.end_search(op, "noticed")
        self._release(op.generation)
        self.settle_usage(op, "found", None, time.time_ns())
        self._advance(op.attempt, op.id)
        return True

    def remedy_for(self, op: Operation, report: Report) -> Remedy:
        """What to do about an invocation that gave no result; a look-up that went unanswered is simply asked again."""
        if report == "missing":
            return self.on_missing(op.semantics)
        if op.state == "unknown" or report == "unknown":
            return self.on_unknown(op.semantics)
        return self.on_busy(op.semantics) if report == "busy" else "repeat"

    def on_unknown(self, semantics: Semantics) -> Remedy:
        """An outcome nobody knows: repeat what may be repeated, look up what can be, and leave the rest alone."""
        return UNKNOWN[semantics]

    def on_busy(self, semantics: Semantics) -> Remedy:
        """The receiver is at it for this very key, or refused to begin: ask again later, under the same key."""
        return "repeat"

    def on_missing(self, semantics: Semantics) -> Remedy:
        """The receiver knows of no such effect: it did not happen, so it may be asked for."""
        return "repeat"

    def _remedy(self, op: Operation, remedy: Remedy, report: Report, retry_after_ns: int) -> None:
        """Try again when and as the limits allow, or end it. `op` is as the report's own move left it."""
        was_question = op.state == "unknown"
        doubt = report == "unknown" or (bool(op.in_doubt) and report != "missing")
        op = op._replace(in_doubt=int(doubt))
        if report == "missing":
            self.end_search(op, "missing")
        if remedy == "lookup":
            self.open_search(op)
        tries = self.lookups(op) if was_question else op.tries
        delay_ns = 0 if report == "missing" else self.backoff_ns(tries, retry_after_ns)
        due_ns = time.time_ns() + delay_ns
        verdict, reason = decide(remedy, self.past_of(op, remedy), self.limits_of(op), due_ns)
        if verdict == "repeat" and self.end_when_stopped(
            op._replace(remedy=remedy), f"{report} after {op.tries} tries"
        ):
            return
        if verdict == "repeat" and self.too_late(op._replace(remedy=remedy), due_ns):
            self._end_unaffordable(op, "deadline")
            return
        if verdict in ("repeat", "lookup"):
            self._reschedule(op, remedy, due_ns)
        else:
            self._end(
                op, "give_up" if verdict == "give_up" else "exhaust", f"{reason}: {report} after {op.tries} tries"
            )

    def _end(self, op: Operation, move: Move, reason: str) -> bool:
        """End an operation without a result: left unresolved, or where nothing of it can have happened, failed or skipped."""
        self.end_search(op, "unresolved")
        if op.kind == "compensate":  # whatever came of its tries: what it was to undo stands
            move = "give_up"
        if not self._move(op, move, op.generation, op.version, None, reason):
            return False
        if move == "exhaust":
            self._refused(op, reason)
        elif op.kind == "sweep":
            self.abandon(op)
        return True

    def end_when_stopped(self, op: Operation, why: str = "not tried again") -> bool:
        """End what has no result where its run is to stop: nothing is sent again, and what may have happened stays visible;
        whether it was ended.

        What cleans up goes on.
        """
        if not self.is_halted(op.attempt) or op.kind in ("compensate", "sweep") or op.remedy != "repeat":
            return False
        return self._end(op, "give_up" if op.in_doubt else "skip", f"cancelled: {why}")

    def past_of(self, op: Operation, remedy: Remedy) -> Past:
        """What the operation has been through, from its rows: counted across crashes and workers."""
        lookups = self.lookups(op) if remedy == "lookup" else 0
        return Past(op.semantics, op.tries, op.deaths, lookups, op.first_ns, bool(op.in_doubt))

    def limits_of(self, op: Operation) -> Limits:
        """The limits of one operation: the policy's, or what its plan asks for."""
        spec = json.loads(op.spec)
        tries = spec.get("tries") or (self.policy.compensations_max if op.kind == "compensate" else None)
        return limits_of(self.policy, tries, spec.get("elapsed_ns"), spec.get("declared"))

    def backoff_ns(self, tries: int, retry_after_ns: int = 0) -> int:
        """How long to wait after `tries` tries, from the store's own source of chance."""
        return backoff_ns(tries, self.policy, self.rng, retry_after_ns)

    def _reschedule(self, op: Operation, remedy: Remedy | None, due_ns: int) -> None:
        self.db.execute(
            "UPDATE operation SET remedy = ifnull(?, remedy), due_ns = ?, in_doubt = ?, version = version + 1"
            " WHERE attempt = ? AND id = ?",
            (remedy, due_ns, op.in_doubt, op.attempt, op.id),
        )

    def _reject(self, grant: Grant, report: str, detail: str) -> Rejected:
        self.db.execute(
            "INSERT INTO evidence (attempt, operation, generation, report, detail, at_ns) VALUES (?, ?, ?, ?, ?, ?)",
            (grant.attempt, grant.operation, grant.generation, report, detail, time.time_ns()),
        )
        self._audit_holder(self._operation(grant.attempt, grant.operation).task, grant, "refuse", f"stale {report}")
        return Rejected(f"generation {grant.generation} no longer owns {grant.attempt}:{grant.operation}")

    def _already_settled(self, grant: Grant, report: Report, answer: Mapping[str, Any] | None, detail: str) -> bool:
        """Whether this very word was taken before; that somebody else had come to the same is another matter."""
        known = self._invocation(grant.generation)
        said = self._text(answer) or detail
        return known is not None and (known.report, known.detail) == (report, said)

    def _open_invocation(self, generation: int) -> bool:
        known = self._invocation(generation)
        return known is not None and known.ended_ns is None

    def _end_invocation(self, generation: int, report: Report, detail: str, external: str | None = None) -> None:
        self._invocations.pop(generation, None)
        self.db.execute(
            "UPDATE invocation SET report = ?, detail = ?, ended_ns = ?, external = ? WHERE generation = ?",
            (report, detail, time.time_ns(), external, generation),
        )

    def _release(self, generation: int) -> None:
        self.db.execute("DELETE FROM lease WHERE generation = ?", (generation,))


#: What a report is called as the reason of a transition, where its own name is not it.
_CODES: Mapping[Report, str] = {"failed": "rejected", "unknown": "outcome-unknown"}
#: The reason of a transition by a report that comes without words.
_WORDS: Mapping[Report, str] = {
    "found": "found: the receiver knows the effect",
    "missing": "missing: the receiver knows of no effect",
}

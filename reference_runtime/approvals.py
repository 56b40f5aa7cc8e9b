"""Approvals: a decision is bound to one operation, its receiver and its parameters, to who decided, and to a period.

Opening an approve leaf asks; `decide` answers; the leaf is accepted with the decision, but what it releases is *released*
only in the transaction that dispatches it, once, after the decision was found to be for these very parameters, still valid,
and its actor found to have authority at that moment. Changed parameters and withdrawn authority make it ask again. What was
asked and can release nothing any more, as its run ends or has gone another way, is *withdrawn*: shown, and not decided.
"""

from __future__ import annotations

import json
import time
from abc import abstractmethod
from collections.abc import Mapping
from typing import Literal, NamedTuple

from reference_runtime.compensation import Compensation
from reference_runtime.model import Json, Refusal, approval_digest
from reference_runtime.rows import Operation

Standing = Literal["pending", "approved", "denied", "expired", "released", "withdrawn"]
DECISIONS = ("approve", "deny")


class Approval(NamedTuple):
    """One approve leaf that was opened: what it is about, how it stands, who decided; `expires_ns` None: never."""

    attempt: str
    operation: str
    subject: str
    digest: str
    state: Standing
    actor: str | None
    expires_ns: int | None


class Approvals(Compensation):
    """Asking, deciding, releasing and expiring."""

    @abstractmethod
    def start_timer(self, attempt: str, operation: str, due_ns: int) -> None:
        """Keep when a validity ends."""

    @abstractmethod
    def fail_run(self, attempt: str, reason: str) -> None:
        """Begin to end an attempt that cannot succeed any more."""

    def approval(self, attempt: str, operation: str) -> Approval | None:
        """The approval of an approve leaf, None before it was opened."""
        row = self._row("SELECT * FROM approval WHERE attempt = ? AND operation = ?", attempt, operation)
        return None if row is None else Approval(*row)

    def approvals_of(self, attempt: str, operation: str) -> list[Approval]:
        """The approvals that this operation still has to be released by."""
        if not self._attempt(attempt).has_approvals:
            return []
        rows = self._rows(
            "SELECT * FROM approval WHERE attempt = ? AND subject = ? AND state != 'released' ORDER BY operation",
            attempt,
            operation,
        )
        return [Approval(*row) for row in rows]

    # -- asking

    def ask_approval(self, leaf: Operation) -> None:
        """Ask for a decision about the operation as it stands now, and hold it back; the decision's validity begins anew.

        Nobody is asked about what is over by then.
        """
        assert leaf.subject is not None
        if self._is_over(leaf.attempt, leaf.subject):
            self.end_pointless(leaf)
            return
        self._forget(leaf.attempt)
        validity_ns = json.loads(leaf.spec).get("validity_ns")
        expires_ns = None if validity_ns is None else time.time_ns() + validity_ns
        self.db.execute(
            "INSERT OR REPLACE INTO approval VALUES (?, ?, ?, ?, 'pending', NULL, ?)",
            (leaf.attempt, leaf.id, leaf.subject, self.digest_of(leaf.attempt, leaf.subject), expires_ns),
        )
        if expires_ns is not None:
            self.start_timer(leaf.attempt, leaf.id, expires_ns)
        self._hold_back(leaf.attempt, leaf.subject)

    def digest_of(self, attempt: str, operation: str) -> str:
        """What a decision about an operation has to be bound to at this moment."""
        op = self._operation(attempt, operation)
        return approval_digest(op.id, op.tool, json.loads(op.spec)["params"])

    def ask_again(self, approval: Approval) -> None:
        """Void the decision there is: what it was to release goes back to waiting for another one."""
        self.ask_approval(self._operation(approval.attempt, approval.operation))

    def _hold_back(self, attempt: str, operation: str) -> None:
        self._drop_lease(attempt, operation)
        self.db.execute(
            "UPDATE operation SET due_ns = NULL, version = version + 1 WHERE attempt = ? AND id = ? AND state = 'planned'",
            (attempt, operation),
        )

    # -- deciding

    def decide(self, task: str, operation: str, decision: str, digest: str, actor: str, id_: str, nonce: str) -> Json:
        """Take a decision. Its disposition: approved, denied, or duplicate of one that was taken.

        Raises `Refusal`: bad-request, unknown-operation, not-pending, no-authority, already-decided, expired, too-late,
        stale-digest, and conflict for an id that was used for something else.
        """
        if decision not in DECISIONS:
            raise Refusal("bad-request", f"decide: decision {decision!r}; expected approve or deny")
        said = {"operation": operation, "decision": decision, "digest": digest, "actor": actor, "nonce": nonce}
        with self._transaction():
            known = self.known_command(task, id_, "decide", said)
            if known is not None:
                return known
            approval = self._asked(self._current_attempt(task), operation)
            if not self.may_decide(actor):
                may = ", ".join(map(repr, self.policy.approvers))
                raise Refusal("no-authority", f"{actor!r} may not decide about {operation!r}; who may: {may:.200}")
            disposition = self.disposition_of_decision(approval, decision)
            if disposition != "duplicate":
                self._check_decidable(approval, digest)
                self._take_decision(approval, decision, actor, nonce)
                self._conclude(approval.attempt)
            return self.keep_command(task, id_, "decide", said, {"disposition": disposition})

    @abstractmethod
    def known_command(self, task: str, id_: str, verb: str, said: Mapping[str, object]) -> Json | None:
        """The first answer to a command, None for a new one."""

    @abstractmethod
    def keep_command(self, task: str, id_: str, verb: str, said: Mapping[str, object], answer: Json) -> Json:
        """Keep the answer to a command for its repeats."""

    def _asked(self, attempt: str, operation: str) -> Approval:
        leaf = self._operation(attempt, operation)
        approval = self.approval(attempt, operation) if leaf.kind == "approve" else None
        if approval is None:
            raise Refusal("not-pending", f"{operation!r} does not ask for a decision")
        return approval

    def may_decide(self, actor: str) -> bool:
        """Whether somebody may decide at all, by the standing settings; authority itself is asked for at release."""
        return actor in self.policy.approvers

    def disposition_of_decision(self, approval: Approval, decision: str) -> str:
        """What becomes of a decision, by what was decided before. Raises `Refusal` when that was something else."""
        before = {"approved": "approve", "released": "approve", "denied": "deny"}.get(approval.state)
        if before is None:
            return "approved" if decision == "approve" else "denied"
        if before != decision:
            raise Refusal("already-decided", f"{approval.operation!r} is {approval.state} by {approval.actor!r}")
        return "duplicate"

    def _check_decidable(self, approval: Approval, digest: str) -> None:
        if approval.state == "expired" or self.is_expired(approval, time.time_ns()):
            raise Refusal("expired", f"{approval.operation!r} could be decided about until {approval.expires_ns}")
        if approval.state == "withdrawn" or self.is_stopped(approval.attempt):
            raise Refusal("too-late", f"{approval.operation!r} can release nothing any more")
        if not self.is_bound(approval, digest):
            raise Refusal("stale-digest", f"{approval.operation!r} is about {approval.digest}, not about {digest}")

    def is_expired(self, approval: Approval, now_ns: int) -> bool:
        """Whether the period of a decision is over."""
        return approval.expires_ns is not None and now_ns >= approval.expires_ns

    def is_bound(self, approval: Approval, digest: str) -> bool:
        """Whether a decision is about the operation as it stands."""
        return approval.digest == digest == self.digest_of(approval.attempt, approval.subject)

    def _take_decision(self, approval: Approval, decision: str, actor: str, nonce: str) -> None:
        state: Standing = "approved" if decision == "approve" else "denied"
        self._stand(approval, state, actor)
        leaf = self._operation(approval.attempt, approval.operation)
        if state == "denied":
            self._move(leaf, "decline", leaf.generation, leaf.version, None, f"denied: by {actor}")
            self.fail_run(leaf.attempt, f"denied: {leaf.id} by {actor}")
            return
        if self._move(leaf, "release", leaf.generation, leaf.version, _answer(nonce), f"approved by {actor}"):
            self._advance(leaf.attempt, leaf.id)
        self._let_go(approval.attempt, approval.subject)

    def _let_go(self, attempt: str, operation: str) -> None:
        """Make an operation claimable that was held back, now that nothing holds it any more."""
        if not self.is_held(attempt, operation):
            self.db.execute(
                "UPDATE operation SET due_ns = ? WHERE attempt = ? AND id = ? AND state = 'planned' AND opened_ns IS NOT NULL",
                (time.time_ns(), attempt, operation),
            )

    def _stand(self, approval: Approval, state: Standing, actor: str | None) -> None:
        self.db.execute(
            "UPDATE approval SET state = ?, actor = ? WHERE attempt = ? AND operation = ?",
            (state, actor, approval.attempt, approval.operation),
        )

    # -- releasing

    def is_held(self, attempt: str, operation: str) -> bool:
        """Whether an operation lacks a decision that it needs, also one that is still to be asked for."""
        if any(approval.state != "approved" for approval in self.approvals_of(attempt, operation)):
            return True
        if not self._attempt(attempt).has_consents:
            return False
        sql = "SELECT 1 FROM operation WHERE attempt = ? AND subject = ? AND kind = 'approve' AND state = 'planned'"
        return self._row(sql, attempt, operation) is not None

    def authority_for(self, op: Operation) -> dict[str, str]:
        """Whose authority has to be asked for before this operation may be dispatched: approve leaf to actor."""
        if op.state != "planned":
            return {}
        return {one.operation: one.actor or "" for one in self.approvals_of(op.attempt, op.id)}

    def release(self, op: Operation, granted: Mapping[str, bool]) -> bool:
        """Release an operation by its approvals, in the transaction that dispatches it; False when it may not leave.

        `granted`: what was found about the authority of each decision's actor just now; missing where nobody could tell.
        """
        approvals = self.approvals_of(op.attempt, op.id) if op.state == "planned" else []
        for approval in approvals:
            if not self.may_release(approval, granted.get(approval.operation), time.time_ns()):
                if granted.get(approval.operation) is False and approval.state == "approved":
                    self.ask_again(approval)
                    self._conclude(op.attempt)
                return False
        for approval in approvals:
            self._stand(approval, "released", approval.actor)
        return True

    def may_release(self, approval: Approval, granted: bool | None, now_ns: int) -> bool:
        """Whether a decision lets its operation go at this moment."""
        is_current = self.is_bound(approval, approval.digest) and not self.is_expired(approval, now_ns)
        return approval.state == "approved" and is_current and granted is True

    # -- ending

    def withdraw_approvals(self, attempt: str, operation: str | None = None) -> None:
        """Withdraw what still asks, or has an answer that released nothing: of a whole attempt, or of what is never to begin
        (the question itself, or what it is about).
        """
        self.db.execute(
            "UPDATE approval SET state = 'withdrawn' WHERE attempt = ?1 AND (?2 IS NULL OR ?2 IN (operation, subject))"
            " AND state IN ('pending', 'approved')",
            (attempt, operation),
        )

    def end_unreleasable(self, attempt: str, operation: str) -> None:
        """End an operation that was opened, and that nothing can release any more as one of its approvals was given up; with it
        what else is asked about it. Both fail for that reason.
        """
        given_up = next((one for one in self.approvals_of(attempt, operation) if one.state == "withdrawn"), None)
        if given_up is None or not self._is_opened(attempt, operation):
            return
        reason = f"withdrawn: approval {given_up.operation!r} was given up before anybody decided"
        self.withdraw_approvals(attempt, operation)
        for op in self._operations(
            "WHERE o.attempt = ?1 AND (o.id = ?2 OR o.subject = ?2 AND o.kind = 'approve') AND o.state = 'planned'"
            " ORDER BY o.position",
            attempt,
            operation,
        ):
            if self._move(op, "decline", op.generation, op.version, None, reason):
                self._refused(op, reason)

    def end_pointless_approvals(self, attempt: str) -> None:
        """End the approvals that were opened about what is over without them: a decision would release nothing."""
        if not self._attempt(attempt).has_approvals:
            return
        for leaf in self._operations(
            "WHERE o.attempt = ? AND o.kind = 'approve' AND o.state = 'planned' AND o.opened_ns IS NOT NULL AND EXISTS"
            " (SELECT 1 FROM operation s WHERE s.attempt = o.attempt AND s.id = o.subject AND (s.settled OR s.void))"
            " ORDER BY o.position",
            attempt,
        ):
            self.end_pointless(leaf)

    def _is_over(self, attempt: str, operation: str) -> bool:
        sql = "SELECT 1 FROM operation WHERE attempt = ? AND id = ? AND (settled OR void)"
        return self._row(sql, attempt, operation) is not None

    def end_pointless(self, leaf: Operation) -> None:
        """End an approval that can release nothing, and let the run go on: it is skipped; or fails, where a function that waits
        for it may handle that and would take it as given otherwise.
        """
        state, is_heard = self._rows(
            "SELECT s.state, o.tolerate FROM operation o JOIN operation s ON s.attempt = o.attempt AND s.id = o.subject"
            " WHERE o.attempt = ? AND o.id = ?",
            leaf.attempt,
            leaf.id,
        )[0]
        reason = f"withdrawn: {leaf.subject!r} " + ("was skipped" if state == "skipped" else "ended without it")
        if not is_heard:
            self.skip(leaf, reason)
        elif self._move(leaf, "decline", leaf.generation, leaf.version, None, reason):
            self.withdraw_approvals(leaf.attempt, leaf.id)
            self._refused(leaf, reason)

    def _is_opened(self, attempt: str, operation: str) -> bool:
        sql = "SELECT 1 FROM operation WHERE attempt = ? AND id = ? AND opened_ns IS NOT NULL"
        return self._row(sql, attempt, operation) is not None

    def expire(self, leaf: Operation) -> None:
        """End an approval whose period is over and that has released nothing; the run cannot go on."""
        approval = self.approval(leaf.attempt, leaf.id)
        if approval is None or approval.state not in ("pending", "approved"):
            return
        self._stand(approval, "expired", approval.actor)
        self._move(leaf, "decline", leaf.generation, leaf.version, None, "expired: nobody decided in time")
        self.fail_run(leaf.attempt, f"expired: {leaf.id} released nothing in time")


def _answer(nonce: str) -> str:
    return json.dumps({"nonce": nonce})

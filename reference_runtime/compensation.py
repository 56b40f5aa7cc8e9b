"""Compensation: undoing what is known to have happened, in strict reverse order of its acceptance, one at a time.

What a compensation will say is recorded in the transaction that accepts the effect it undoes, so that it depends on nothing
that may be gone by then. It becomes due only when the run is failing or being cancelled and nothing else is under way; the
run is over only after the last one. One that cannot be carried out ends unresolved, and none that is older is begun.
"""

from __future__ import annotations

import json
import time

from reference_runtime.branching import Branching
from reference_runtime.model import ACCEPTED, canonical


class Compensation(Branching):
    """Recording, ordering and ending compensations."""

    def record_undo(self, attempt: str, operation: str) -> None:
        """Fix what the compensations of an operation would say, once it is accepted, and its place in the order."""
        if not self._attempt(attempt).has_compensations:
            return
        undoing = self._operations(
            "WHERE o.attempt = ? AND o.subject = ? AND o.kind = 'compensate' AND o.state = 'planned'",
            attempt,
            operation,
        )
        if not undoing or self._operation(attempt, operation).state not in ACCEPTED:
            return
        nonce = self._value("SELECT answer ->> 'nonce' FROM operation WHERE attempt = ? AND id = ?", attempt, operation)
        for op in undoing:
            self.db.execute(
                "UPDATE operation SET request = ?, acceptance = ? WHERE attempt = ? AND id = ? AND acceptance IS NULL",
                (self.undo_request(op.spec, operation, nonce), self._next("acceptance"), attempt, op.id),
            )

    def undo_request(self, spec: str, operation: str, nonce: str | None) -> str:
        """What a compensation says, as JSON: its own parameters and secret, and what the effect came to when it was made."""
        said = json.loads(spec)
        carries = {operation: nonce} if nonce else {}
        request = {"params": said["params"], "carries": carries, "script": said["script"]}
        return canonical({**request, "secret": said["secret"]} if said.get("secret") else request)

    def begin_undo(self, attempt: str) -> bool:
        """Make the next compensation due; False when there is none, or none may follow one that could not be done."""
        following = self.next_undo(attempt)
        if following is None or self.failed_undo(attempt):
            return False
        self.db.execute(
            "UPDATE operation SET opened_ns = ?1, due_ns = ?1 WHERE attempt = ?2 AND id = ?3",
            (time.time_ns(), attempt, following),
        )
        return True

    def next_undo(self, attempt: str) -> str | None:
        """The compensation whose turn it is: of those not begun, the one whose effect was accepted last."""
        row = self._row(
            "SELECT id FROM operation WHERE attempt = ? AND kind = 'compensate' AND state = 'planned'"
            " AND acceptance IS NOT NULL ORDER BY acceptance DESC LIMIT 1",
            attempt,
        )
        return None if row is None else str(row[0])

    def failed_undo(self, attempt: str) -> list[str]:
        """The compensations that could not be carried out."""
        rows = self._rows(
            "SELECT id FROM operation WHERE attempt = ? AND kind = 'compensate' AND state IN ('failed', 'unresolved')"
            " ORDER BY position",
            attempt,
        )
        return [str(row[0]) for row in rows]

    def drop_undo(self, attempt: str, reason: str) -> None:
        """Skip the compensations that will not be needed: all of a run that succeeded, else those without an effect."""
        for op in self._operations("WHERE o.attempt = ? AND o.kind = 'compensate' AND o.state = 'planned'", attempt):
            state = self._value("SELECT state FROM operation WHERE attempt = ? AND id = ?", attempt, op.subject)
            if reason == SUCCEEDED or state in WITHOUT_EFFECT:
                self.skip(op, reason)
            elif state is None:  # a workflow never came to ask for it, or it has another name
                self.skip(op, f"not-needed: no operation {op.subject!r} was ever asked for")


#: States of an operation that has, and will have, no effect to be undone.
WITHOUT_EFFECT = ("planned", "failed", "skipped")
SUCCEEDED = "not-needed: the run succeeded"
NOTHING_TO_UNDO = "not-needed: there is no effect to undo"

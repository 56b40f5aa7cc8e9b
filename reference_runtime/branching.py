"""Branching: which arm of a branch is taken, who won a race, and skipping what was decided against.

A gate is decided once, inside the transaction that accepted what it hangs on. What of the other arms was planned is skipped
with the reason; what had been dispatched is followed to its end and counts for nothing (it is *void*); a child is stopped.
"""

from __future__ import annotations

import time
from abc import abstractmethod

from reference_runtime.leaves import Step
from reference_runtime.model import arm
from reference_runtime.particulars import Particulars
from reference_runtime.rows import Operation


class Branching(Particulars):
    """Gates and their arms."""

    def is_stopped(self, attempt: str) -> bool:
        """Whether nothing new may begin in an attempt: it is failing, a stop was accepted, or its end is its owner's by now."""
        stands = self._attempt(attempt)
        return stands.failing is not None or stands.halt is not None or bool(stands.is_handed_over)

    def is_halted(self, attempt: str) -> bool:
        """Whether a stop of this attempt was accepted; it stays so, whatever restarts."""
        return self._attempt(attempt).halt is not None

    def choose_arm(self, nonce: str | None) -> str:
        """Which arm of a branch an accepted nonce decides for."""
        return arm(nonce)

    def _plan_gates(self, attempt: str, steps: tuple[Step, ...]) -> None:
        """Write down what hangs on which gate, and what ends the children of races."""
        guards = [(attempt, gate, one, step.id) for step in steps for gate, one in step.guards]
        ends = [
            (attempt, end, step.id, str(number))
            for step in steps
            for number, child in enumerate(step.ends)
            for end in child
        ]
        self.db.executemany("INSERT INTO guard VALUES (?, ?, ?, ?)", guards)
        self.db.executemany("INSERT INTO finish VALUES (?, ?, ?, ?)", ends)
        self._forget(attempt)

    def decide_branch(self, gate: Operation) -> None:
        """Take an arm by what the operation came to that the branch hangs on."""
        nonce = self._value(
            "SELECT answer ->> 'nonce' FROM operation WHERE attempt = ? AND id = ? AND accepted",
            gate.attempt,
            gate.subject,
        )
        chosen = self.choose_arm(nonce)
        self._decide(gate, chosen, f"branch {gate.id} took {chosen}")

    def decide_races(self, attempt: str, operation: str) -> None:
        """Decide every open race of which this operation's end ends a child."""
        if not self._attempt(attempt).has_races or self.is_stopped(attempt):
            return
        for gate, winner in self.won_races(attempt, operation):
            self._decide(self._operation(attempt, gate), winner, f"race {gate} was won by child {winner}")

    def won_races(self, attempt: str, operation: str) -> list[tuple[str, str]]:
        """The undecided races that are won by the end of this operation, each with the child that wins."""
        rows = self._rows(
            "SELECT f.gate, f.arm FROM finish f JOIN operation g ON g.attempt = f.attempt AND g.id = f.gate"
            " WHERE f.attempt = ? AND f.operation = ? AND g.state = 'planned' AND NOT EXISTS (SELECT 1 FROM finish e"
            " JOIN operation o ON o.attempt = e.attempt AND o.id = e.operation"
            " WHERE e.attempt = f.attempt AND e.gate = f.gate AND e.arm = f.arm AND NOT o.settled) ORDER BY g.position",
            attempt,
            operation,
        )
        return [(str(gate), str(child)) for gate, child in rows]

    def _decide(self, gate: Operation, chosen: str, reason: str) -> None:
        if not self._move(gate, "release", gate.generation, gate.version, None, reason):
            return
        for op in self.against(gate, chosen):
            if op.state == "planned":
                self.skip(op, reason)
            else:
                self.void(op)
        self.end_pointless_approvals(gate.attempt)
        self._advance(gate.attempt, gate.id)

    def against(self, gate: Operation, chosen: str) -> list[Operation]:
        """What belongs to the other arms of a gate, and to gates in these, in written order."""
        return self._operations(
            "WHERE o.attempt = ?1 AND o.id IN (WITH RECURSIVE off(id) AS ("
            "SELECT operation FROM guard WHERE attempt = ?1 AND gate = ?2 AND arm != ?3"
            " UNION SELECT g.operation FROM off JOIN guard g ON g.attempt = ?1 AND g.gate = off.id)"
            " SELECT id FROM off) ORDER BY o.position",
            gate.attempt,
            gate.id,
            chosen,
        )

    def skip(self, op: Operation, reason: str) -> None:
        """End an operation that will never begin; whoever was granted it finds that it no longer owns it."""
        if not self._move(op, "skip", op.generation, op.version, None, reason):
            return
        self._drop_lease(op.attempt, op.id)
        self.db.execute("DELETE FROM timer WHERE attempt = ? AND operation = ?", (op.attempt, op.id))
        self.withdraw_approvals(op.attempt, op.id)
        self._advance(op.attempt, op.id)

    @abstractmethod
    def withdraw_approvals(self, attempt: str, operation: str | None = None) -> None:
        """Let what was asked about an operation, or of a whole attempt, release nothing any more."""

    @abstractmethod
    def end_pointless_approvals(self, attempt: str) -> None:
        """End what was asked, outside of the arms that were left out, about something inside of them."""

    def _drop_lease(self, attempt: str, operation: str) -> None:
        """Take a lease away under which nothing left, with what was set aside for it."""
        self.db.execute("DELETE FROM lease WHERE attempt = ? AND operation = ?", (attempt, operation))
        if self.db.changes():
            self.release_withdrawn(attempt, time.time_ns())

    def void(self, op: Operation) -> None:
        """Let an operation that was dispatched come to its end without any meaning for the run.

        A child is stopped: nothing new of it begins, and it might only wait, and come to no end.
        """
        self.db.execute("UPDATE operation SET void = 1 WHERE attempt = ? AND id = ?", (op.attempt, op.id))
        if op.kind == "child":
            self.stop_child_of(op, "not-needed: its parent went another way")

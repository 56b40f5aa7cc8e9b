"""Progress: what follows, inside one transaction, from something having been settled.

An operation is *opened* when everything it depends on was settled (accepted, skipped, or refused where that is tolerated):
a call may then be claimed, a wait takes signals, a sleep's clock runs, and what the runtime decides itself (branches, drawn
values, planned failures) is decided at once. A run ends when nothing of it can move any more.
"""

from __future__ import annotations

import json
import random
import time
import uuid
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import apsw

from reference_runtime.compensation import NOTHING_TO_UNDO, SUCCEEDED
from reference_runtime.model import DISPATCHED, Kind, Outcome, Policy, Tally, canonical
from reference_runtime.records import PENDING, WAITS
from reference_runtime.rows import Operation
from reference_runtime.waits import DEADLINE, GRACE, Waits

#: What waits for an operation, and how much it still waits for once that is settled.
_DEPENDENTS = """SELECT o.position, o.id, o.kind, o.missing - 1 FROM dependency d CROSS JOIN operation o
    ON o.attempt = d.attempt AND o.id = d.operation WHERE d.attempt = ? AND d.needs = ?"""
_TALLY = f"""SELECT a.failing IS NOT NULL, a.halt IS NOT NULL,
    EXISTS (SELECT 1 FROM operation WHERE attempt = ?1 AND state IN ('failed', 'unresolved') AND state = 'unresolved'
        AND NOT void AND kind NOT IN ('compensate', 'sweep')),
    EXISTS (SELECT 1 FROM operation WHERE attempt = ?1 AND {PENDING} AND NOT void AND kind != 'compensate'),
    EXISTS (SELECT 1 FROM lease WHERE attempt = ?1),
    EXISTS (SELECT 1 FROM operation WHERE attempt = ?1 AND due_ns IS NOT NULL),
    EXISTS (SELECT 1 FROM operation WHERE attempt = ?1 AND state = 'planned' AND opened_ns IS NOT NULL
        AND {WAITS}) OR
    EXISTS (SELECT 1 FROM approval WHERE attempt = ?1 AND state = 'pending'),
    EXISTS (SELECT 1 FROM child c JOIN task t ON t.id = c.task JOIN attempt b ON b.id = t.attempt
        WHERE c.parent = a.task AND c.attempt = ?1 AND c.owner != 'detached' AND b.outcome IS NULL)
    FROM attempt a WHERE a.id = ?1"""


class Progress(Waits):
    """Opening, failing and concluding."""

    def __init__(self, db: apsw.Connection, policy: Policy, rng: random.Random) -> None:
        super().__init__(db, policy, rng)
        self._settled: deque[tuple[str, str]] = deque()  # settled in this transaction, and not followed up yet
        self._is_following = False
        self._unseen: dict[str, None] | None = None  # attempts to look at once everything has followed; None: at once

    def dependencies_met(self, missing: int) -> bool:
        """Whether everything an operation waits for has been settled, of which so much is missing; it is opened only then."""
        return missing <= 0

    def _advance(self, attempt: str, operation: str) -> None:
        """Follow up what was settled, in the transaction that settled it. A chain of decisions is walked, not nested."""
        self._settled.append((attempt, operation))
        if self._is_following:
            return
        with self._concluding_last():
            self._is_following = True
            try:
                while self._settled:
                    self._follow(*self._settled.popleft())
            finally:
                self._settled.clear()
                self._is_following = False

    def _follow(self, attempt: str, operation: str) -> None:
        self.record_undo(attempt, operation)
        self.decide_races(attempt, operation)
        for _, dependent, kind, missing in sorted(self._rows(_DEPENDENTS, attempt, operation)):
            is_met = self.dependencies_met(missing)
            if not (is_met and self._open(attempt, dependent, kind, missing)):
                self.db.execute(
                    "UPDATE operation SET missing = ? WHERE attempt = ? AND id = ?", (missing, attempt, dependent)
                )
        self._wake_waits(attempt)

    # -- opening

    def _open(self, attempt: str, operation: str, kind: Kind, missing: int = 0) -> bool:
        """Let an operation have its turn; nothing of it once the attempt is failing or being stopped. `missing`: of what it
        waits for, so much is not settled. False, and nothing changed, when it had its turn or has none.
        """
        now_ns = time.time_ns()
        due_ns = now_ns if kind in DISPATCHED else None  # at once where a worker carries it out
        self.db.execute(
            "UPDATE operation SET opened_ns = ?, due_ns = ?, missing = ? WHERE attempt = ? AND id = ?"
            " AND state = 'planned' AND opened_ns IS NULL AND kind != 'compensate'",
            (now_ns, due_ns, missing, attempt, operation),
        )
        if self.db.changes() == 0:
            return False
        if self.is_stopped(attempt):
            self._close(self._operation(attempt, operation))
        elif kind in DISPATCHED:
            if self.is_held(attempt, operation):
                self._hold_back(attempt, operation)
        else:
            self._begin(self._operation(attempt, operation), now_ns)
        return True

    def _close(self, op: Operation) -> None:
        self.db.execute(
            "UPDATE operation SET opened_ns = NULL, due_ns = NULL WHERE attempt = ? AND id = ?", (op.attempt, op.id)
        )

    def _begin(self, op: Operation, now_ns: int) -> None:
        """Begin what no worker carries out."""
        spec = json.loads(op.spec)
        match op.kind:
            case "sleep":
                self.start_timer(op.attempt, op.id, now_ns + spec["ns"])
            case "wait" if spec.get("timeout_ns") is not None:
                self.start_timer(op.attempt, op.id, now_ns + spec["timeout_ns"])
            case "approve":
                self.ask_approval(op)
            case "branch":
                self.decide_branch(op)
            case "child":
                self.open_child(op)
            case "nondet":
                self._move(
                    op, "release", op.generation, op.version, canonical({"nonce": self.draw(spec["kind"])}), "drawn"
                )
                self._advance(op.attempt, op.id)
            case "fail":
                self._move(op, "decline", op.generation, op.version, None, f"planned: {spec['reason']}")
                self.fail_run(op.attempt, f"planned-failure: {op.id}: {spec['reason']}")

    def draw(self, kind: str) -> str:
        """A value that nobody can foretell, drawn once and kept: the time in nanoseconds, a random number, a unique id."""
        if kind == "time":
            return str(time.time_ns())
        if kind == "random":
            return str(self.rng.random())
        return str(uuid.UUID(int=self.rng.getrandbits(128), version=4))

    # -- failing

    def _refused(self, op: Operation, reason: str) -> None:
        """Follow up a definite no, after the operation's own transition; `reason` is a code in kebab-case, `: `, a text."""
        tolerate, void = self._rows(
            "SELECT tolerate, void FROM operation WHERE attempt = ? AND id = ?", op.attempt, op.id
        )[0]
        if op.kind == "sweep":
            self.abandon(op)
        if op.kind in ("compensate", "sweep"):
            return
        if self.is_tolerated(bool(tolerate), bool(void)):
            self._advance(op.attempt, op.id)
        elif not self.is_halted(op.attempt):
            self.fail_run(op.attempt, _blame(op.id, reason))

    def is_tolerated(self, tolerate: bool, void: bool) -> bool:
        """Whether a run goes on after an operation of it was refused."""
        return tolerate or void

    def fail_run(self, attempt: str, reason: str) -> None:
        """Begin to end an attempt that cannot succeed any more, for the first reason there was."""
        self._set_attempt(attempt, "failing = ifnull(failing, ?)", reason)
        self._withdraw(attempt)
        self.stop_children(attempt, f"parent-failed: {reason}")

    def _withdraw(self, attempt: str) -> None:
        """Let nothing new begin; what was dispatched is still followed to its end, and what was done may be undone."""
        self.db.execute(
            "DELETE FROM lease WHERE attempt = ?1 AND operation IN"
            " (SELECT id FROM operation WHERE attempt = ?1 AND state = 'planned' AND kind != 'compensate')",
            (attempt,),
        )
        self.release_withdrawn(attempt, time.time_ns())
        self.withdraw_approvals(attempt)
        self.note_failure(attempt)
        self.db.execute("DELETE FROM timer WHERE attempt = ? AND operation != ? AND fired_ns IS NULL", (attempt, GRACE))
        self.db.execute(
            "UPDATE operation SET due_ns = NULL, opened_ns = NULL, version = version + 1"
            " WHERE attempt = ? AND state = 'planned' AND kind NOT IN ('compensate', 'sweep')",
            (attempt,),
        )
        self.release_withdrawn(attempt, time.time_ns())

    def note_failure(self, attempt: str) -> None:
        """Write down why an attempt is failing: the first of its operations that failed and counts."""
        row = self._row(
            "SELECT id, reason FROM operation WHERE attempt = ? AND state IN ('failed', 'unresolved') AND state = 'failed'"
            " AND NOT settled AND kind NOT IN ('compensate', 'sweep') ORDER BY position LIMIT 1",
            attempt,
        )
        if row is not None:
            self._set_attempt(attempt, "failing = ? WHERE failing IS NULL AND halt IS NULL", _blame(row[0], row[1]))

    # -- concluding

    @contextmanager
    def _concluding_last(self) -> Iterator[None]:
        """Look at how attempts stand only after all that is done inside: before that, not all is opened that will be."""
        if self._unseen is not None:
            yield
            return
        self._unseen = {}
        try:
            yield
        finally:
            unseen, self._unseen = self._unseen, None
        for attempt in unseen:
            self._conclude(attempt)

    def tally(self, attempt: str) -> Tally:
        """How the attempt stands."""
        return Tally(*map(bool, self._rows(_TALLY, attempt)[0]))

    def outcome(self, tally: Tally) -> Outcome | None:
        """How an attempt ended, or None while something can still move. An unresolved effect is not a failed one."""
        if tally.leased or tally.runnable or tally.children:
            return None
        if tally.stopping:
            return "cancelled"
        if tally.failing:
            return "failed"
        if tally.waiting:
            return None
        return "unresolved" if tally.unresolved or tally.pending else "succeeded"

    def _conclude(self, attempt: str) -> None:
        """Bring condition and outcome in line with the operations, once all that follows in this transaction has followed."""
        if self._unseen is not None:
            self._unseen[attempt] = None
            return
        was = self._attempt(attempt).outcome
        tally = self.tally(attempt)
        outcome = self.outcome(tally)
        is_late = self._attempt(attempt).is_handed_over and outcome != "succeeded"  # its owner went on without it
        if outcome is not None and (is_late or self.has_ended_for_good(was)):
            outcome = cast("Outcome", was)
        elif outcome is not None:
            outcome, tally = self._clean_up(attempt, outcome, tally)
        ends = outcome is not None and outcome != was
        moving = "running" if tally.leased or tally.children else "runnable" if tally.runnable else "waiting"
        stands = ("terminal" if outcome else moving, outcome, self._reason(attempt, outcome))
        if self._attempt(attempt)[1:4] != stands:
            self._set_attempt(attempt, "condition = ?, outcome = ?, reason = ?", *stands)
        if outcome is not None and ends:
            self._log_run(attempt, outcome, stands[2])
            self._stop_timer(attempt, DEADLINE)
            self.note_elapsed(self._attempt(attempt).task, time.time_ns())
            self.prepare_result(attempt)
        self._touch(attempt)
        if outcome is not None and ends:
            self.child_ended(attempt, outcome)

    def has_ended_for_good(self, outcome: str | None) -> bool:
        """Whether an end is one, whatever comes later; what is unresolved may still come to something."""
        return outcome not in (None, "unresolved")

    def _clean_up(self, attempt: str, outcome: Outcome, tally: Tally) -> tuple[Outcome | None, Tally]:
        """What a run still owes before it may end: checks of what is current, compensations, sweeps."""
        if outcome == "succeeded":
            owed = self.recheck(attempt)
        else:
            owed = outcome in ("failed", "cancelled") and self.begin_undo(attempt)
        if owed or self.plan_sweeps(attempt):
            tally = self.tally(attempt)
            return None, tally
        ends = self._as_it_ends(attempt, outcome)
        if outcome != "unresolved" and (outcome, ends) != ("succeeded", "unresolved"):
            self.drop_undo(attempt, SUCCEEDED if outcome == "succeeded" else NOTHING_TO_UNDO)
        return ends, tally

    def _as_it_ends(self, attempt: str, outcome: Outcome) -> Outcome:
        """The outcome of a run that can end so: unresolved where a check lets no success through, or an effect is left."""
        if outcome == "succeeded" and self.gate(attempt) is not None:
            return "unresolved"
        return "unresolved" if outcome == "failed" and self.failed_undo(attempt) else outcome

    def _touch(self, attempt: str) -> None:
        """Make a new version of the task, and of those it is a child of: something that their status shows has changed.

        One version for all that is committed together: nobody can have seen what is in between.
        """
        assert self.db.in_transaction, "a version is made of what a transaction changes"
        self._touched[attempt] = None

    def _reason(self, attempt: str, outcome: Outcome | None) -> str | None:
        """Why an attempt ended as it did: a code in kebab-case, and what is known of it."""
        if outcome in (None, "succeeded"):
            return None
        failing = self._attempt(attempt).failing
        undone = self.failed_undo(attempt)
        if undone:
            after = f" after {failing}" if failing else ""
            return f"compensation-unresolved: {', '.join(undone)}{after}"
        if outcome == "failed" or failing:
            return str(failing)
        unresolved = self._unresolved(attempt)
        if outcome == "cancelled":
            return "cancelled" + (f": {unresolved}" if unresolved else "")
        gate = self.unanswered(attempt) if unresolved else self.gate(attempt)
        unknown = f"{unresolved}; what is unresolved may have happened" if unresolved else "nothing can move"
        return gate or f"outcome-unknown: {unknown}{self._left_standing(attempt)}"

    def _left_standing(self, attempt: str) -> str:
        """What a run that is blocked has noted how to undo and has not undone, in words; empty where there is nothing."""
        rows = self._rows(
            "SELECT id, subject FROM operation WHERE attempt = ? AND kind = 'compensate' AND state = 'planned'"
            " AND acceptance IS NOT NULL ORDER BY acceptance DESC",
            attempt,
        )
        return f"; not undone: {', '.join(f'{of} (by {id_})' for id_, of in rows)}" if rows else ""

    def _unresolved(self, attempt: str) -> str:
        rows = self._rows(
            "SELECT id, reason FROM operation WHERE attempt = ? AND state IN ('failed', 'unresolved')"
            " AND state = 'unresolved' AND NOT void ORDER BY position",
            attempt,
        )
        return "; ".join(f"{id_} unresolved: {reason}" for id_, reason in rows)


def _blame(operation: str, reason: str | None) -> str:
    """Why a run fails over an operation, from the operation's own reason (a code in kebab-case, `: `, a text)."""
    code, _, text = (reason or "refused").partition(": ")
    return f"{code}: {operation} failed" + (f": {text}" if text else "")

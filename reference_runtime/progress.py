"""Progress: what follows, inside one transaction, from something having been accepted.

An operation is *opened* when everything it depends on was accepted: a call may then be claimed, a wait takes signals, a
sleep's clock runs. Signals and timers are rows; a signal that comes before its wait is there when the wait opens.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from reference_runtime.model import Json, Outcome, Refusal, Tally, canonical
from reference_runtime.rows import Rows


class Progress(Rows):
    """Opening, waking and concluding."""

    def dependencies_met(self, attempt: str, operation: str) -> bool:
        """Whether everything this operation waits for has been accepted; it is opened only then."""
        missing = self._value(
            "SELECT count(*) FROM dependency d JOIN operation o ON o.attempt = d.attempt AND o.id = d.needs"
            " WHERE d.attempt = ? AND d.operation = ? AND NOT o.accepted",
            attempt,
            operation,
        )
        return bool(missing == 0)

    def _advance(self, attempt: str, operation: str) -> None:
        """Open what was waiting for this operation, in the transaction that accepted it."""
        rows = self._rows(
            "SELECT d.operation FROM dependency d JOIN operation o ON o.attempt = d.attempt AND o.id = d.operation"
            " WHERE d.attempt = ? AND d.needs = ? ORDER BY o.position",
            attempt,
            operation,
        )
        for (dependent,) in rows:
            if self.dependencies_met(attempt, dependent):
                self._open(attempt, dependent)
        self._wake_waits(attempt)

    def _open(self, attempt: str, operation: str) -> None:
        """Let a call be claimed, a wait take signals, a sleep's clock run; nothing of it once the attempt has failed."""
        now_ns = time.time_ns()
        self.db.execute(
            "UPDATE operation SET opened_ns = ?1, due_ns = iif(kind = 'call', ?1, NULL) WHERE attempt = ?2 AND id = ?3"
            " AND state = 'planned' AND opened_ns IS NULL"
            " AND NOT EXISTS (SELECT 1 FROM operation WHERE attempt = ?2 AND state = 'failed')",
            (now_ns, attempt, operation),
        )
        if self.db.changes() == 1:
            op = self._operation(attempt, operation)
            if op.kind == "sleep":
                self.start_timer(attempt, operation, now_ns + json.loads(op.spec)["ns"])

    def tally(self, attempt: str) -> Tally:
        """How the attempt's operations stand."""
        rows = self._rows(
            "SELECT count(*), total(accepted), total(state = 'failed'), total(state = 'unresolved'),"
            " (SELECT count(*) FROM lease WHERE attempt = ?1), total(due_ns IS NOT NULL),"
            " total(state = 'planned' AND kind != 'call' AND opened_ns IS NOT NULL) FROM operation WHERE attempt = ?1",
            attempt,
        )
        return Tally(*(int(value) for value in rows[0]))

    def outcome(self, tally: Tally) -> Outcome | None:
        """How an attempt ended, or None while something can still move. An unresolved effect is not a failed one."""
        if tally.leased or tally.runnable or tally.waiting:
            return None
        if tally.failed:
            return "failed"
        return "succeeded" if tally.accepted == tally.total else "unresolved"

    def _conclude(self, attempt: str) -> None:
        """Bring condition and outcome in line with the operations."""
        tally = self.tally(attempt)
        outcome = self.outcome(tally)
        moving = "running" if tally.leased else "runnable" if tally.runnable else "waiting"
        reason = self._reason(attempt, outcome)
        self.db.execute(
            "UPDATE attempt SET condition = ?, outcome = ?, reason = ? WHERE id = ?",
            ("terminal" if outcome else moving, outcome, reason, attempt),
        )
        self._touch(attempt)

    def _touch(self, attempt: str) -> None:
        """Make a new version of the task: something that its status shows has changed."""
        self.db.execute(
            "UPDATE task SET version = version + 1 WHERE id = (SELECT task FROM attempt WHERE id = ?)", (attempt,)
        )

    def _reason(self, attempt: str, outcome: Outcome | None) -> str | None:
        state = {"failed": "failed", "unresolved": "unresolved"}.get(outcome or "")
        if state is None:
            return None
        rows = self._rows(
            "SELECT id, reason FROM operation WHERE attempt = ? AND state = ? ORDER BY position", attempt, state
        )
        return "; ".join(f"{id_} {state}: {reason}" for id_, reason in rows)

    # -- signals

    def signal(self, task: str, id_: str, name: str, payload: Mapping[str, Any]) -> Json:
        """Take a signal once, whether or not anything waits for it yet. Its disposition: released, buffered or late."""
        with self._transaction():
            attempt = self._current_attempt(task)
            if not self.known_signal(task, id_, name, payload):
                self.buffer_signal(task, id_, name, payload)
                self._wake_waits(attempt)
                self._conclude(attempt)
            return self._disposition(task, id_)

    def known_signal(self, task: str, id_: str, name: str, payload: Mapping[str, Any]) -> bool:
        """Whether this signal was taken before. Raises `Refusal` when its id was used for another one."""
        row = self._row("SELECT name, payload FROM event WHERE task = ? AND id = ?", task, id_)
        if row is not None and row != (name, canonical(payload)):
            raise Refusal("conflict", f"signal {id_!r} of task {task!r} is known with another name or payload")
        return row is not None

    def buffer_signal(self, task: str, id_: str, name: str, payload: Mapping[str, Any]) -> None:
        """Keep a signal until a wait takes it, also when none has begun."""
        self.db.execute(
            "INSERT INTO event (task, id, name, payload, received_ns) VALUES (?, ?, ?, ?, ?)",
            (task, id_, name, canonical(payload), time.time_ns()),
        )

    def _disposition(self, task: str, id_: str) -> Json:
        row = self._row(
            "SELECT e.consumer, a.condition FROM event e JOIN task t ON t.id = e.task"
            " JOIN attempt a ON a.id = t.attempt WHERE e.task = ? AND e.id = ?",
            task,
            id_,
        )
        consumer, condition = row or (None, "")
        disposition = "released" if consumer else "late" if condition == "terminal" else "buffered"
        return {"id": id_, "disposition": disposition, "consumer": consumer}

    def match_signals(self, attempt: str) -> tuple[str, int, str] | None:
        """The next open wait with the signal it takes: waits in plan order, signals in order of arrival."""
        row = self._row(
            "SELECT o.id, e.sequence, e.payload FROM operation o JOIN attempt a ON a.id = o.attempt"
            " JOIN event e ON e.task = a.task AND e.name = o.signal AND e.consumer IS NULL"
            " WHERE o.attempt = ? AND o.kind = 'wait' AND o.state = 'planned' AND o.opened_ns IS NOT NULL"
            " ORDER BY o.position, e.sequence LIMIT 1",
            attempt,
        )
        return None if row is None else (row[0], row[1], row[2])

    def consume_signal(self, sequence: int, consumer: str) -> None:
        """Bind a signal to the one wait it releases."""
        self.db.execute("UPDATE event SET consumer = ? WHERE sequence = ? AND consumer IS NULL", (consumer, sequence))

    def _wake_waits(self, attempt: str) -> None:
        while (match := self.match_signals(attempt)) is not None:
            operation, sequence, payload = match
            op = self._operation(attempt, operation)
            self.consume_signal(sequence, f"{attempt}:{operation}")
            if not self._move(op, "release", op.generation, op.version, payload):
                return
            self._advance(attempt, operation)

    # -- timers

    def start_timer(self, attempt: str, operation: str, due_ns: int) -> None:
        """Keep when a sleep ends, by the wall clock, so that a restart neither forgets nor renews it."""
        self.db.execute("INSERT INTO timer VALUES (?, ?, ?, NULL)", (attempt, operation, due_ns))

    def due_timers(self, now_ns: int) -> list[tuple[str, str]]:
        """The timers whose hour has come and that have not fired: attempt and operation."""
        rows = self._rows(
            "SELECT attempt, operation FROM timer WHERE fired_ns IS NULL AND due_ns <= ?"
            " ORDER BY due_ns, attempt, operation",
            now_ns,
        )
        return [(row[0], row[1]) for row in rows]

    def fire_timers(self) -> int:
        """Fire what is due, each in a transaction of its own; how many fired."""
        due = self.due_timers(time.time_ns())
        for attempt, operation in due:
            with self._transaction():
                self._fire(attempt, operation)
        return len(due)

    def _fire(self, attempt: str, operation: str) -> None:
        self.db.execute(
            "UPDATE timer SET fired_ns = ? WHERE attempt = ? AND operation = ?", (time.time_ns(), attempt, operation)
        )
        op = self._operation(attempt, operation)
        if self._move(op, "release", op.generation, op.version):
            self._advance(attempt, operation)
            self._conclude(attempt)

    def next_timer_ns(self) -> int | None:
        """When the next timer is due."""
        due_ns: int | None = self._value("SELECT min(due_ns) FROM timer WHERE fired_ns IS NULL")
        return due_ns

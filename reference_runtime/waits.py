"""Waits: signals and timers, each a row, so that what comes early is there when it is waited for.

A signal has an id of its own, is taken once, and releases one wait. A wait ends in exactly one way: by a signal or by its
timeout, whichever transaction comes first; later signals go to the next live wait of their name.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from reference_runtime.approvals import Approvals
from reference_runtime.model import Json, Refusal, canonical
from reference_runtime.rows import Operation

#: Names under which not a wait of the plan is addressed but the runtime itself.
STEER, NOTICE = "steer", "notice"
#: The names of the timers that end the grace of a stop, and the time a run may take; no operation of a plan is called so.
GRACE, DEADLINE = "", "~deadline"
TIMED_OUT = "timeout"
#: How many timers fire in one transaction at most, and how many rows may have changed before another one does: others are
#: answered only between two such transactions.
TIMERS_MAX, CHANGES_MAX = 100, 1_000


def is_over(outcome: str | None) -> bool:
    """Whether no wait of a run can take a signal any more: what is unresolved may go on by a late word, and then takes it."""
    return outcome not in (None, "unresolved")


class Waits(Approvals):
    """Signals and timers."""

    _started_ns: int | None = None  # the earliest of the timers nobody has asked about yet

    @abstractmethod
    def _grace_over(self, attempt: str) -> None:
        """Take by force what has not come to an end within the grace of a stop."""

    @abstractmethod
    def _time_over(self, attempt: str) -> None:
        """End a run whose time is over."""

    # -- signals

    def signal(self, task: str, id_: str, name: str, payload: Mapping[str, Any]) -> Json:
        """Take a signal once, whether or not anything waits for it yet; its disposition.

        `released`, `buffered` and `late` of any signal; `unmatched` of one to the runtime itself that addresses nothing.
        """
        with self._transaction():
            attempt = self._current_attempt(task)
            if not self.known_signal(task, id_, name, payload):
                self.buffer_signal(task, id_, name, payload)
                self.audit(task, "client", f"signal {id_}", "signal", name)
                if name in (STEER, NOTICE):
                    self._address(attempt, task, id_, name, payload)
                self._wake_waits(attempt)
                self._conclude(attempt)
            return self._disposition(task, id_)

    def known_signal(self, task: str, id_: str, name: str, payload: Mapping[str, Any]) -> bool:
        """Whether this signal was taken before. Raises `Refusal` when its id was used for another one."""
        row = self._row("SELECT name, payload FROM event WHERE task = ? AND id = ?", task, id_)
        if row is not None and row != (name, canonical(payload)):
            known = f"signal {id_!r} of task {task!r} is known with another name or payload"
            raise Refusal("conflict", f"{known}; one more signal has an id of its own (`--id`)")
        return row is not None

    def buffer_signal(self, task: str, id_: str, name: str, payload: Mapping[str, Any]) -> None:
        """Keep a signal until a wait takes it, also when none has begun."""
        self._attempts.clear()
        self.db.execute(
            "INSERT INTO event (task, id, name, payload, received_ns) VALUES (?, ?, ?, ?, ?)",
            (task, id_, name, canonical(payload), time.time_ns()),
        )

    def _address(self, attempt: str, task: str, id_: str, name: str, payload: Mapping[str, Any]) -> None:
        """Carry out a signal to the runtime itself, and write down what became of it."""
        disposition = self.steer(attempt, payload) if name == STEER else self.notice(attempt, payload)
        consumer = f"{attempt}:{payload.get('operation')}" if disposition == "released" else None
        self.db.execute(
            "UPDATE event SET disposition = ?, consumer = ? WHERE task = ? AND id = ?",
            (disposition, consumer, task, id_),
        )

    @abstractmethod
    def steer(self, attempt: str, payload: Mapping[str, Any]) -> str:
        """Replace the parameters of an operation that has not been dispatched; the disposition."""

    @abstractmethod
    def notice(self, attempt: str, payload: Mapping[str, Any]) -> str:
        """Take a receiver's late word about an effect nobody knew of; the disposition."""

    def _disposition(self, task: str, id_: str) -> Json:
        row = self._row(
            "SELECT e.consumer, a.outcome, e.disposition FROM event e JOIN task t ON t.id = e.task"
            " JOIN attempt a ON a.id = t.attempt WHERE e.task = ? AND e.id = ?",
            task,
            id_,
        )
        consumer, outcome, disposition = row or (None, None, None)
        disposition = disposition or self.disposition_of(consumer, is_over=is_over(outcome))
        return {"id": id_, "disposition": disposition, "consumer": consumer}

    def disposition_of(self, consumer: str | None, *, is_over: bool) -> str:
        """What became of a signal to a wait, as far as it is known now."""
        return "released" if consumer else "late" if is_over else "buffered"

    def early_notice(self, op: Operation) -> tuple[int, str] | None:
        """The first receiver's word about an operation that is waiting to be needed: its sequence and its nonce."""
        row = self._row(
            "SELECT sequence, payload ->> 'nonce' FROM event WHERE task = ? AND name = ? AND consumer IS NULL"
            " AND disposition = 'buffered' AND payload ->> 'operation' = ? ORDER BY sequence LIMIT 1",
            op.task,
            NOTICE,
            op.id,
        )
        return None if row is None else (int(row[0]), str(row[1]))

    def match_signals(self, attempt: str) -> tuple[str, int, str] | None:
        """The next open wait with the signal it takes: waits in plan order, signals in order of arrival."""
        row = self._row(
            "SELECT o.id, e.sequence, e.payload FROM operation o JOIN attempt a ON a.id = o.attempt"
            " JOIN event e ON e.task = a.task AND e.name = o.signal AND e.consumer IS NULL AND e.disposition IS NULL"
            " WHERE o.attempt = ? AND o.kind = 'wait' AND o.state = 'planned' AND o.opened_ns IS NOT NULL"
            " ORDER BY o.position, e.sequence LIMIT 1",
            attempt,
        )
        return None if row is None else (row[0], row[1], row[2])

    def consume_signal(self, sequence: int, consumer: str) -> None:
        """Bind a signal to the one wait it releases."""
        self.db.execute("UPDATE event SET consumer = ? WHERE sequence = ? AND consumer IS NULL", (consumer, sequence))

    def _wake_waits(self, attempt: str) -> None:
        if not self._attempt(attempt).has_signals:
            return
        while (match := self.match_signals(attempt)) is not None:
            operation, sequence, payload = match
            op = self._operation(attempt, operation)
            self.consume_signal(sequence, f"{attempt}:{operation}")
            if not self._move(op, "release", op.generation, op.version, payload, "signalled"):
                return
            self._stop_timer(attempt, operation)
            self._advance(attempt, operation)

    # -- timers

    def start_timer(self, attempt: str, operation: str, due_ns: int) -> None:
        """Keep when a sleep, a wait or a validity ends, by the wall clock: a restart neither forgets nor renews it."""
        self.db.execute("INSERT OR REPLACE INTO timer VALUES (?, ?, ?, NULL)", (attempt, operation, due_ns))
        self._started_ns = due_ns if self._started_ns is None else min(self._started_ns, due_ns)

    def _stop_timer(self, attempt: str, operation: str) -> None:
        self.db.execute("DELETE FROM timer WHERE attempt = ? AND operation = ?", (attempt, operation))

    def due_timers(self, now_ns: int) -> list[tuple[str, str]]:
        """The first of the timers whose hour has come and that have not fired: attempt and operation."""
        rows = self._rows(
            "SELECT attempt, operation FROM timer WHERE fired_ns IS NULL AND due_ns <= ?"
            " ORDER BY due_ns, attempt, operation LIMIT ?",
            now_ns,
            TIMERS_MAX,
        )
        return [(row[0], row[1]) for row in rows]

    def fire_timers(self) -> int:
        """Fire the first of what is due, in one transaction; how many fired, 0 only when nothing is due any more.

        One before it may have ended what a timer was for. What is left is as due as before, also after a crash.
        """
        due = self.due_timers(time.time_ns())
        if not due:
            return 0
        fired = 0
        with self._transaction():
            enough = self.db.total_changes() + CHANGES_MAX
            for attempt, operation in due:
                if self.is_running(attempt, operation):
                    self._fire(attempt, operation)
                    fired += 1
                if self.db.total_changes() >= enough:
                    break
        return fired

    def is_running(self, attempt: str, operation: str) -> bool:
        """Whether a timer has neither fired nor been stopped."""
        sql = "SELECT 1 FROM timer WHERE attempt = ? AND operation = ? AND fired_ns IS NULL"
        return self._row(sql, attempt, operation) is not None

    def _fire(self, attempt: str, operation: str) -> None:
        self.db.execute(
            "UPDATE timer SET fired_ns = ? WHERE attempt = ? AND operation = ?", (time.time_ns(), attempt, operation)
        )
        if operation == GRACE:
            self._grace_over(attempt)
            return
        if operation == DEADLINE:
            self._time_over(attempt)
            return
        op = self._operation(attempt, operation)
        if op.kind == "approve":
            self.expire(op)
        elif self._move(op, "release", op.generation, op.version, None, TIMED_OUT if op.kind == "wait" else None):
            self._advance(attempt, operation)
        self._conclude(attempt)

    def started_timer_ns(self) -> int | None:
        """When the first of those timers is due that were started since this was asked last."""
        started_ns, self._started_ns = self._started_ns, None
        return started_ns

    def next_timer_ns(self) -> int | None:
        """When the next timer is due."""
        due_ns: int | None = self._value("SELECT min(due_ns) FROM timer WHERE fired_ns IS NULL")
        return due_ns

"""Rows: the database as the store's methods see it, and the one way a row changes.

A change counts only while its `fence` holds: state, generation and version as the holder knew them. Zero rows changed
means the word no longer counts; the caller keeps it as evidence and changes nothing.

Every change also leaves a line in the *transition log*, in the same transaction. The log is for reading (the journal, the
event cursors): nothing that decides ever reads it.
"""

from __future__ import annotations

import random
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

import apsw

from reference_runtime.model import Kind, Move, Policy, Refusal, Remedy, Semantics, State, canonical, sources, target
from reference_runtime.transactions import Transactions


class Operation(NamedTuple):
    """One row of `operation`, with the task it belongs to."""

    task: str
    attempt: str
    id: str
    kind: Kind
    tool: str
    semantics: Semantics
    spec: str
    state: State
    remedy: Remedy | None
    tries: int
    generation: int
    version: int
    key: str | None
    request: str | None
    first_ns: int | None
    deaths: int
    in_doubt: int
    subject: str | None


_OPERATION = """SELECT a.task, o.attempt, o.id, o.kind, o.tool, o.semantics, o.spec, o.state, o.remedy, o.tries,
    o.generation, o.version, o.key, o.request, o.first_ns, o.deaths, o.in_doubt, o.subject
    FROM operation o JOIN attempt a ON a.id = o.attempt"""


class Attempt(NamedTuple):
    """One row of `attempt`, and what it has at all of some things that most attempts have nothing of."""

    task: str
    condition: str
    outcome: str | None
    reason: str | None
    execution: str | None
    failing: str | None
    halt: str | None
    code: str | None
    stranded: str | None
    is_workflow: int
    has_approvals: int
    has_races: int
    has_compensations: int
    has_signals: int
    is_handed_over: int  # it is a child, and its end was taken
    has_consents: int  # something of it needs an approval, be it one that is still to be asked for
    is_limited: int  # by a budget or a deadline, or as a child from above


_ATTEMPT = """SELECT task, condition, outcome, reason, execution, failing, halt, code, stranded,
    EXISTS (SELECT 1 FROM workflow w WHERE w.attempt = a.id), EXISTS (SELECT 1 FROM approval p WHERE p.attempt = a.id),
    EXISTS (SELECT 1 FROM finish f WHERE f.attempt = a.id),
    EXISTS (SELECT 1 FROM operation o WHERE o.attempt = a.id AND o.subject IS NOT NULL AND o.kind = 'compensate'),
    EXISTS (SELECT 1 FROM event e WHERE e.task = a.task),
    EXISTS (SELECT 1 FROM child c WHERE c.task = a.task AND c.is_accepted AND c.owner != 'detached'),
    EXISTS (SELECT 1 FROM operation o WHERE o.attempt = a.id AND o.subject IS NOT NULL AND o.kind = 'approve'),
    EXISTS (SELECT 1 FROM allowance b WHERE b.task = a.task) OR EXISTS (SELECT 1 FROM deadline d WHERE d.task = a.task)
        OR EXISTS (SELECT 1 FROM child c WHERE c.task = a.task)
    FROM attempt a WHERE a.id = ?"""


class Invocation(NamedTuple):
    """What is on record of one try: who made it, and what was reported of it."""

    execution: str
    report: str | None
    detail: str | None
    ended_ns: int | None


NOTHING: Mapping[str, object] = {}
#: Of how many tasks it is kept at which line their log is.
LINES_MAX = 10_000


class Rows(Transactions):
    """A database with the helpers every part of the store uses.

    What a transaction asks again and again of an attempt is kept for as long as the transaction lasts, and forgotten by
    whatever changes it. Numbers that only grow are kept for longer, as nobody else writes to the store.
    """

    def __init__(self, db: apsw.Connection, policy: Policy, rng: random.Random) -> None:
        super().__init__(db)
        self.policy = policy
        self.rng = rng
        self._attempts: dict[str, Attempt] = {}  # as read in this transaction
        self._limited: dict[str, bool] = {}  # tasks: whether anything limits them, as read in this transaction
        self._invocations: dict[int, Invocation | None] = {}  # by generation, as read in this transaction
        self._counters: dict[str, tuple[int, int]] = {}  # the number given out last, and the last one that was taken
        self._lines: dict[str, int] = {}  # tasks: the number of their last line of the log, as written last
        self._answer: tuple[Mapping[str, Any] | None, str | None] = (None, None)  # one that was taken, and its text

    def fence(self, move: Move, generation: int, version: int) -> tuple[str, tuple[object, ...]]:
        """What must still hold for a holder's word to count, as a condition the database checks while it writes."""
        states = sources(move)
        among = " OR ".join(["state = ?"] * len(states))  # for which SQLite makes no table, as it does for a list
        return f"({among}) AND generation = ? AND version = ?", (*states, generation, version)

    def _move(
        self,
        op: Operation,
        move: Move,
        generation: int,
        version: int,
        answer: str | None = None,
        reason: str | None = None,
        also: Mapping[str, object] = NOTHING,
    ) -> bool:
        """One transition of one operation; False, and nothing changed, when the fence does not hold. `also`: more columns
        that change with it.
        """
        condition, values = self.fence(move, generation, version)
        self._log_transition(op, move, reason, condition, values, also.get("generation", generation))
        more = "".join(f", {column} = ?" for column in also)
        self.db.execute(
            "UPDATE operation SET state = ?, version = version + 1, due_ns = NULL, answer = ifnull(?, answer),"
            f" reason = ?{more} WHERE attempt = ? AND id = ? AND {condition}",
            (target(move), answer, reason, *also.values(), op.attempt, op.id, *values),
        )
        return self.db.changes() == 1

    def _log_transition(
        self, op: Operation, move: Move, reason: str | None, condition: str, values: tuple[object, ...], under: object
    ) -> None:
        """One line about the transition that is about to happen: the same fence, so a line exactly where a row changes;
        `under` is the generation it leaves the operation with.

        The line carries the first version of the task that shows the change, and the next number of the task's own count.
        """
        last = self._last_line(op.task)
        self.db.execute(
            "INSERT INTO transition SELECT ?1, ?2, ?3, ?4, state, ?5, ?6, ?7, ?8,"
            f" (SELECT version + 1 FROM task WHERE id = ?1), ?9 FROM operation WHERE attempt = ?3 AND id = ?4 AND {condition}",
            (op.task, last + 1, op.attempt, op.id, target(move), move, reason, under, time.time_ns(), *values),
        )
        self._lines[op.task] = last + self.db.changes()

    def _last_line(self, task: str) -> int:
        """The number of a task's last line. Asked for by itself: what a statement reads of the table that it inserts into
        makes SQLite keep a copy of it all.
        """
        if task not in self._lines:
            self._lines[task] = self._value("SELECT ifnull(max(sequence), 0) FROM transition WHERE task = ?", task)
        return self._lines[task]

    def _log_run(self, attempt: str, kind: str, reason: str | None = None, origin: str | None = None) -> None:
        """One line about the run itself (admitted, ended, …); it has no operation."""
        task = self._attempt(attempt).task
        last = self._last_line(task)
        self.db.execute(
            "INSERT INTO transition VALUES"
            " (?1, ?2, ?3, '', ?4, ?5, ?5, ?6, NULL, (SELECT version + 1 FROM task WHERE id = ?1), ?7)",
            (task, last + 1, attempt, origin, kind, reason, time.time_ns()),
        )
        self._lines[task] = last + 1

    def _current_attempt(self, task: str) -> str:
        row = self._row("SELECT attempt FROM task WHERE id = ?", task)
        if row is None:
            raise Refusal("unknown-task", f"no task {task!r}")
        return str(row[0])

    def _attempt(self, attempt: str) -> Attempt:
        """An attempt as it stands. Raises KeyError where there is none."""
        found = self._attempts.get(attempt)
        if found is None:
            row = self._row(_ATTEMPT, attempt)
            if row is None:
                raise KeyError(attempt)
            found = Attempt(*row)
            if self.db.in_transaction:
                self._attempts[attempt] = found
                self._limited[found.task] = bool(found.is_limited)
        return found

    def _set_attempt(self, attempt: str, assignments: str, *values: object) -> bool:
        """Change an attempt's own row; `assignments` may end in a condition. Whether it was changed."""
        self._attempts.pop(attempt, None)
        change, _, condition = assignments.partition(" WHERE ")
        where = f"id = ? AND {condition}" if condition else "id = ?"
        marks = change.count("?")
        self.db.execute(f"UPDATE attempt SET {change} WHERE {where}", (*values[:marks], attempt, *values[marks:]))
        return self.db.changes() > 0

    def _forget(self, attempt: str) -> None:
        """Read an attempt anew when it is asked for: it has something now that it did not have before."""
        self._attempts.pop(attempt, None)

    def _invocation(self, generation: int) -> Invocation | None:
        """The try that was made under a lease, None when none was."""
        if generation in self._invocations:
            return self._invocations[generation]
        row = self._row("SELECT execution, report, detail, ended_ns FROM invocation WHERE generation = ?", generation)
        found = None if row is None else Invocation(*row)
        if self.db.in_transaction:
            self._invocations[generation] = found
        return found

    def _text(self, answer: Mapping[str, Any] | None) -> str | None:
        """An answer as it is stored. Made once for an answer that a transaction stores, compares and shows."""
        if answer is None:
            return None
        if self._answer[0] is not answer:
            self._answer = (answer, canonical(answer))
        return self._answer[1]

    def _forget_all(self) -> None:
        """Read everything anew: a part of this transaction was undone, or all of it."""
        self._begin_anew()
        self._counters.clear()
        self._lines.clear()

    def _operation(self, attempt: str, operation: str) -> Operation:
        found = self._operations("WHERE o.attempt = ? AND o.id = ?", attempt, operation)
        if not found:
            raise Refusal("unknown-operation", f"no operation {attempt}:{operation}")
        return found[0]

    def _operations(self, where: str, *values: object) -> list[Operation]:
        return [Operation(*row) for row in self.db.execute(f"{_OPERATION} {where}", values)]

    def _next(self, name: str, ahead: int = 1) -> int:
        """The next number of a durable counter: given out once, for ever. So many of them are taken at a time; those that are
        left when the server ends are given to nobody.
        """
        last, taken = (
            self._counters.get(name) or (self._value("SELECT value FROM counter WHERE name = ?", name) or 0,) * 2
        )
        if last == taken:
            taken += ahead
            self.db.execute(
                "INSERT INTO counter VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                (name, taken),
            )
        self._counters[name] = last + 1, taken
        return last + 1

    def _rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        return self.db.execute(sql, values).fetchall()

    def _row(self, sql: str, *values: object) -> tuple[Any, ...] | None:
        return self.db.execute(sql, values).fetchone()

    def _value(self, sql: str, *values: object) -> Any:
        row = self._row(sql, *values)
        return None if row is None else row[0]

    def _make_version(self, attempt: str) -> None:
        """Count one version more of a task, and of those it is a child of."""
        task: str | None = self._attempt(attempt).task
        while task is not None:
            self.db.execute("UPDATE task SET version = version + 1 WHERE id = ?", (task,))
            is_nobodys = self._limited.get(task) is False  # what is a child's is limited from above
            task = None if is_nobodys else self._value("SELECT parent FROM child WHERE task = ?", task)

    def _begin_anew(self) -> None:
        self._attempts.clear()
        self._limited.clear()
        self._invocations.clear()
        self._answer = (None, None)
        if len(self._lines) > LINES_MAX:
            self._lines.clear()


class Parts(Rows, ABC):
    """What the parts of the store ask of each other; every one runs inside the transaction of its caller."""

    @abstractmethod
    def _advance(self, attempt: str, operation: str) -> None:
        """Open what was waiting for an operation that was accepted just now."""

    @abstractmethod
    def _conclude(self, attempt: str) -> None:
        """Bring an attempt's condition and outcome in line with its operations."""

    @abstractmethod
    def _withdraw(self, attempt: str) -> None:
        """Let nothing new begin in an attempt that failed or was stopped."""

    @abstractmethod
    def fail_run(self, attempt: str, reason: str) -> None:
        """Begin to end an attempt that cannot succeed any more; `reason` is a code in kebab-case, `: `, a text."""

    @abstractmethod
    def _refused(self, op: Operation, reason: str) -> None:
        """Follow up a definite no, after the operation's own transition."""

    @abstractmethod
    def is_stopped(self, attempt: str) -> bool:
        """Whether nothing new may begin in an attempt."""

    @abstractmethod
    def halt(self, attempt: str) -> None:
        """Let nothing more be admitted in an attempt, for ever."""

    @abstractmethod
    def _touch(self, attempt: str) -> None:
        """Make a new version of the attempt's task."""

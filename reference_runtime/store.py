"""The store: every transition of the runtime, each one transaction with a conditional update.

`submit` admits a task; `claim`, `dispatch` and `reclaim` move ownership; `settle` accepts results; `signal` and
`fire_timers` (in `progress`) wake. Answers are durable when a method returns. An error of the storage leaves the store
unusable on purpose: the server stops, and the next one reads what is there.

Each decision that a promise hangs on is one small method, so that it can be read, tested and broken by itself.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Collection, Mapping
from typing import Any, Literal

from reference_runtime.model import (
    MOVES,
    UNKNOWN,
    Grant,
    Policy,
    Receipt,
    Refusal,
    Rejected,
    Remedy,
    Report,
    Semantics,
    Ticket,
    canonical,
    digest,
)
from reference_runtime.plan import Step, parse
from reference_runtime.progress import Progress
from reference_runtime.rows import Operation
from reference_runtime.schema import open_database


class Store(Progress):
    """The durable state of one runtime; one owner, no threads, no awaits."""

    @classmethod
    def open(cls, path: str, *, policy: Policy | None = None, rng: random.Random | None = None) -> Store:
        """Own the file at `path`. Raises `schema.StoreError`."""
        return cls(open_database(path), policy or Policy(), rng or random.Random(random.getrandbits(64)))

    def close(self) -> None:
        self.db.close()

    # -- admission

    def submit(self, task: str, plan: object) -> Receipt:
        """Admit a task once. Raises `Refusal`: `bad-plan`, or `conflict` for another plan under a known id."""
        steps, fingerprint = parse(plan), digest(plan)
        with self._transaction():
            admission = self.admission(task, fingerprint)
            if admission == "conflict":
                raise Refusal("conflict", f"task {task!r} is known with another plan; use a new id")
            if admission == "new":
                self._create(task, canonical(plan), fingerprint, steps)
            return Receipt(task, self._current_attempt(task))

    def admission(self, task: str, fingerprint: str) -> Literal["new", "same", "conflict"]:
        """What a submit under this id is: a repeat of a known one, a new task, or a misuse of the id."""
        row = self._row("SELECT digest FROM task WHERE id = ?", task)
        if row is None:
            return "new"
        return "same" if row[0] == fingerprint else "conflict"

    def _create(self, task: str, plan: str, fingerprint: str, steps: tuple[Step, ...]) -> None:
        number = self._value("SELECT 1 + ifnull(max(number), 0) FROM attempt WHERE task = ?", task)
        attempt = f"{task}.{number}"
        self.db.execute(
            "INSERT INTO task VALUES (?, ?, ?, ?, 0, ?) ON CONFLICT (id) DO UPDATE SET attempt = excluded.attempt",
            (task, plan, fingerprint, attempt, time.time_ns()),
        )
        self.db.execute(
            "INSERT INTO attempt (id, task, number, condition) VALUES (?, ?, ?, 'runnable')", (attempt, task, number)
        )
        for position, step in enumerate(steps):
            self._plan_operation(attempt, position, step)
        for step in steps:
            if self.dependencies_met(attempt, step.id):
                self._open(attempt, step.id)
        self._wake_waits(attempt)
        self._conclude(attempt)

    def _plan_operation(self, attempt: str, position: int, step: Step) -> None:
        spec = canonical(
            {
                "params": step.params,
                "carries": step.carries,
                "script": step.script,
                "signal": step.signal,
                "ns": step.ns,
            }
        )
        self.db.execute(
            "INSERT INTO operation (attempt, id, position, kind, tool, semantics, spec, signal, state, tries,"
            " generation, version) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'planned', 0, 0, 0)",
            (attempt, step.id, position, step.kind, step.tool, step.semantics, spec, step.signal),
        )
        self.db.executemany(
            "INSERT INTO dependency VALUES (?, ?, ?)", [(attempt, needed, step.id) for needed in step.needs]
        )

    # -- ownership

    def new_execution(self, name: str) -> str:
        """An id for one activation of a worker; it never repeats, whatever the worker is called."""
        with self._transaction():
            return f"{name}#{self._next('execution')}"

    def claim(self, execution: str, holding: Collection[int], limit: int) -> list[Grant]:
        """Lease up to `limit` claimable operations to `execution`.

        Leases it owns but does not list in `holding` are granted again first: their grant got lost on the way.
        """
        with self._transaction():
            grants = [grant for grant in self._unstarted(execution) if grant.generation not in holding][:limit]
            grants += [self._lease(op, execution) for op in self.runnable(time.time_ns(), limit - len(grants))]
            return grants

    def runnable(self, now_ns: int, limit: int) -> list[Operation]:
        """The operations a worker may take now, the longest due first."""
        where = "WHERE o.due_ns <= ? ORDER BY o.due_ns, o.attempt, o.position LIMIT ?"
        return self._operations(where, now_ns, max(0, limit))

    def next_work_ns(self) -> int | None:
        """When the next operation becomes claimable."""
        due_ns: int | None = self._value("SELECT min(due_ns) FROM operation WHERE due_ns IS NOT NULL")
        return due_ns

    def _unstarted(self, execution: str) -> list[Grant]:
        rows = self._rows(
            "SELECT o.attempt, o.id, o.generation, o.version FROM lease l"
            " JOIN operation o ON o.attempt = l.attempt AND o.id = l.operation WHERE l.execution = ?"
            " AND NOT EXISTS (SELECT 1 FROM invocation i WHERE i.generation = l.generation) ORDER BY l.generation",
            execution,
        )
        return [Grant(*row) for row in rows]

    def _lease(self, op: Operation, execution: str) -> Grant:
        generation = self._next("generation")
        self.db.execute(
            "UPDATE operation SET generation = ?, version = version + 1, due_ns = NULL WHERE attempt = ? AND id = ?",
            (generation, op.attempt, op.id),
        )
        self.db.execute(
            "INSERT INTO lease (generation, attempt, operation, execution) VALUES (?, ?, ?, ?)",
            (generation, op.attempt, op.id, execution),
        )
        self.db.execute("UPDATE attempt SET execution = ? WHERE id = ?", (execution, op.attempt))
        self._conclude(op.attempt)
        return Grant(op.attempt, op.id, generation, op.version + 1)

    def leases(self) -> list[tuple[int, str]]:
        """Every lease that was not given back: generation and execution."""
        rows = self._rows("SELECT generation, execution FROM lease ORDER BY generation")
        return [(row[0], row[1]) for row in rows]

    def dispatch(self, grant: Grant) -> Ticket | Rejected:
        """Record the intent to call: durable when this returns, and only then may a byte leave.

        Asked again under the same lease (the acknowledgement was lost), the same ticket comes back.
        """
        with self._transaction():
            op = self._operation(grant.attempt, grant.operation)
            if op.generation == grant.generation and self._open_invocation(grant.generation):
                return self._ticket(op)
            if not self._move(op, "look_up" if op.remedy == "lookup" else "dispatch", grant.generation, grant.version):
                return self._reject(grant, "dispatch", "")
            self._record_intent(op, grant.generation)
            return self._ticket(self._operation(op.attempt, op.id))

    def _record_intent(self, op: Operation, generation: int) -> None:
        request = self.request_for(op)
        key = self.key_for(op)
        self.db.execute(
            "UPDATE operation SET request = ?, key = ?, tries = tries + 1 WHERE attempt = ? AND id = ?",
            (request, key, op.attempt, op.id),
        )
        action = "lookup" if op.remedy == "lookup" else "call"
        self.db.execute(
            "INSERT INTO invocation (generation, attempt, operation, action, key, digest, execution, started_ns)"
            " SELECT ?, ?, ?, ?, ?, ?, execution, ? FROM lease WHERE generation = ?",
            (generation, op.attempt, op.id, action, key, digest(request), time.time_ns(), generation),
        )
        self._touch(op.attempt)

    def request_for(self, op: Operation) -> str:
        """What the operation's request says, as JSON; fixed when first recorded, so that every repeat says the same."""
        if op.request is not None:
            return op.request
        spec = json.loads(op.spec)
        answers = self.accepted_answers(op.attempt)
        carries = {name: answers[name] for name in spec["carries"] if name in answers}
        return canonical({"params": spec["params"], "carries": carries, "script": spec["script"]})

    def key_for(self, op: Operation) -> str | None:
        """The one key of an operation, the same for every invocation and worker; None where the receiver takes none."""
        return f"{op.attempt}:{op.id}" if op.semantics == "keyed" else None

    def accepted_answers(self, attempt: str) -> dict[str, str]:
        """The accepted nonce of every operation that has one."""
        rows = self._rows(
            "SELECT id, answer ->> 'nonce' FROM operation WHERE attempt = ? AND accepted"
            " AND answer ->> 'nonce' IS NOT NULL ORDER BY position",
            attempt,
        )
        return {row[0]: row[1] for row in rows}

    def _ticket(self, op: Operation) -> Ticket:
        assert op.request is not None
        request = json.loads(op.request)
        action = self._value("SELECT action FROM invocation WHERE generation = ?", op.generation)
        return Ticket(
            task=op.task,
            attempt=op.attempt,
            operation=op.id,
            generation=op.generation,
            version=op.version,
            action=action,
            tool=op.tool,
            key=op.key,
            invocation=op.tries,
            **request,
        )

    def reclaim(self, generation: int) -> None:
        """Take back a lease whose holder went silent. Noticing it again changes nothing."""
        with self._transaction():
            row = self._row("SELECT attempt, operation FROM lease WHERE generation = ?", generation)
            if row is None:
                return
            op = self._operation(row[0], row[1])
            if self._open_invocation(generation):
                self._end_invocation(generation, self.assume_of_silence(op), "the lease ran out")
                self._apply(op, self.assume_of_silence(op), generation, op.version, None, "the lease ran out")
            else:
                self._release(generation)
                self._reschedule(op, None, time.time_ns())
            self._conclude(op.attempt)

    def assume_of_silence(self, op: Operation) -> Report:
        """What is taken to have come of a dispatched invocation whose holder went silent: nothing is known of it."""
        return "unknown"

    # -- acceptance

    def settle(self, grant: Grant, report: Report, answer: Mapping[str, Any] | None, detail: str) -> Rejected | None:
        """Take what an invocation came to. None when it counts, also when it is repeated; else why it does not."""
        with self._transaction():
            op = self._operation(grant.attempt, grant.operation)
            if self._already_settled(grant, report, answer):
                return None
            if not self._apply(op, report, grant.generation, grant.version, answer, detail):
                return self._reject(grant, report, canonical(answer) if answer is not None else detail)
            self._end_invocation(grant.generation, report, canonical(answer) if answer is not None else detail)
            self._conclude(op.attempt)
            return None

    def _apply(
        self,
        op: Operation,
        report: Report,
        generation: int,
        version: int,
        answer: Mapping[str, Any] | None,
        detail: str,
    ) -> bool:
        """Make the transition a report asks for, and what follows from it. False when the fence does not hold."""
        move = MOVES[report]
        if not self._move(op, move, generation, version, canonical(answer) if answer is not None else None, detail):
            return False
        self._release(generation)
        if move in ("accept", "find"):
            self._advance(op.attempt, op.id)
        elif move == "refuse":
            self._withdraw(op.attempt)
        else:
            self._remedy(op, self.remedy_for(op, report), report)
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

    def _remedy(self, op: Operation, remedy: Remedy, report: Report) -> None:
        if remedy == "none" or op.tries >= self.policy.tries_max:
            self._move(op, "give_up", op.generation, op.version + 1, None, f"outcome {report} after {op.tries} tries")
            return
        delay_ns = 0 if report == "missing" else self.backoff_ns(op.tries)
        self._reschedule(op, remedy, time.time_ns() + delay_ns)

    def backoff_ns(self, tries: int) -> int:
        """Doubling from the least to the most, with half of it left to chance."""
        ceiling = min(self.policy.backoff_ns_min << min(max(tries - 1, 0), 30), self.policy.backoff_ns_max)
        return ceiling // 2 + self.rng.randrange(ceiling // 2 + 1)

    def _reschedule(self, op: Operation, remedy: Remedy | None, due_ns: int) -> None:
        self.db.execute(
            "UPDATE operation SET remedy = ifnull(?, remedy), due_ns = ?, version = version + 1"
            " WHERE attempt = ? AND id = ?",
            (remedy, due_ns, op.attempt, op.id),
        )

    def _withdraw(self, attempt: str) -> None:
        """After a definite failure nothing new begins; what was dispatched is still followed to its end."""
        self.db.execute(
            "DELETE FROM lease WHERE attempt = ?1 AND operation IN"
            " (SELECT id FROM operation WHERE attempt = ?1 AND state = 'planned')",
            (attempt,),
        )
        self.db.execute("DELETE FROM timer WHERE attempt = ? AND fired_ns IS NULL", (attempt,))
        self.db.execute(
            "UPDATE operation SET due_ns = NULL, opened_ns = NULL, version = version + 1"
            " WHERE attempt = ? AND state = 'planned'",
            (attempt,),
        )

    def _reject(self, grant: Grant, report: str, detail: str) -> Rejected:
        self.db.execute(
            "INSERT INTO evidence (attempt, operation, generation, report, detail, at_ns) VALUES (?, ?, ?, ?, ?, ?)",
            (grant.attempt, grant.operation, grant.generation, report, detail, time.time_ns()),
        )
        return Rejected(f"generation {grant.generation} no longer owns {grant.attempt}:{grant.operation}")

    def _already_settled(self, grant: Grant, report: Report, answer: Mapping[str, Any] | None) -> bool:
        row = self._row("SELECT report, detail FROM invocation WHERE generation = ?", grant.generation)
        return row is not None and row[0] == report and (answer is None or row[1] == canonical(answer))

    def _open_invocation(self, generation: int) -> bool:
        return self._row("SELECT 1 FROM invocation WHERE generation = ? AND ended_ns IS NULL", generation) is not None

    def _end_invocation(self, generation: int, report: Report, detail: str) -> None:
        self.db.execute(
            "UPDATE invocation SET report = ?, detail = ?, ended_ns = ? WHERE generation = ?",
            (report, detail, time.time_ns(), generation),
        )

    def _release(self, generation: int) -> None:
        self.db.execute("DELETE FROM lease WHERE generation = ?", (generation,))

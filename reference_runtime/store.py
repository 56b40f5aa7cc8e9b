"""The store: every transition of the runtime, each one transaction with a conditional update.

`submit` admits a task; `claim`, `dispatch` and `reclaim` (in `ownership`) say who carries what out; `settle` (in
`acceptance`) takes results; `signal` and `fire_timers` (in `progress`) wake. Answers are durable when a method returns. An
error of the storage leaves the store unusable on purpose: the server stops, and the next one reads what is there.

Each decision that a promise hangs on is one small method, so that it can be read, tested and broken by itself.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Literal

import apsw

from reference_runtime.clock import STEP_NS
from reference_runtime.documents import check_spelling, parse, read_again, terms
from reference_runtime.evolution import Transform
from reference_runtime.integrity import foreign
from reference_runtime.model import Json, Policy, Receipt, Refusal, canonical, digest
from reference_runtime.plan import Step
from reference_runtime.promises import Promise, check_declared
from reference_runtime.records import PENDING
from reference_runtime.schema import SCHEMA_VERSION, StoreError, leave, open_database, parts
from reference_runtime.vouching import Vouching

#: Moments of the wall clock that something is to happen at or counts from, by table and column. All others are for reading.
HOURS = (
    ("operation", "due_ns"),
    ("operation", "opened_ns"),
    ("operation", "first_ns"),
    ("timer", "due_ns"),
    ("approval", "expires_ns"),
    ("deadline", "at_ns"),
    ("task", "submitted_ns"),
    ("invocation", "started_ns"),  # so that it stays before its end
    ("invocation", "ended_ns"),  # from then on what it has sent has its time to land
)


class Store(Vouching):
    """The durable state of one runtime; one owner, no threads, no awaits."""

    @classmethod
    def open(
        cls,
        path: str,
        *,
        policy: Policy | None = None,
        rng: random.Random | None = None,
        transforms: Mapping[str, Transform] | None = None,
        tools: Mapping[str, Promise] | None = None,
        known: int = SCHEMA_VERSION,
    ) -> Store:
        """Own the file at `path`; `transforms` carry what is saved over to newer code, `tools` are those of one's own, `known`
        is the newest schema that the program knows. Raises `schema.StoreError`, or `Refusal` (`bad-tools`).
        """
        check_declared(tools or {})
        _refuse_foreign(path)
        store = cls(open_database(path, known), policy or Policy(), rng or random.Random(random.getrandbits(64)))
        store.transforms = transforms or {}
        store.declare(tools or {})
        return store

    def close(self) -> None:
        self.db.close()

    def leave(self) -> None:
        """Close without writing another byte: what is in the log is found there by whoever opens the store next."""
        leave(self.db)

    def set_hours(self, step_ns: int) -> None:
        """Keep everything that is due as far off as it was, now that the wall clock has been set by `step_ns`."""
        with self._transaction():
            for table, column in HOURS:
                self.db.execute(f"UPDATE {table} SET {column} = {column} + ? WHERE {column} IS NOT NULL", (step_ns,))

    def mend_hours(self) -> int:
        """When the wall clock was set back while nobody looked, set everything back that is due by it; by how many nanoseconds.

        Nothing that is open can have begun later than now; what has tells how far the clock was set back at least.
        """
        begun = self._row(
            "SELECT max(ifnull(max(opened_ns), 0), ifnull((SELECT max(submitted_ns) FROM attempt a JOIN task ON attempt = a.id"
            f" WHERE outcome IS NULL), 0)) FROM operation WHERE {PENDING}"
        )
        step_ns = min(0, time.time_ns() - begun[0]) if begun else 0
        if step_ns > -STEP_NS:
            return 0
        self.set_hours(step_ns)
        return -step_ns

    # -- admission

    def submit(self, task: str, plan: object) -> Receipt:
        """Admit a task once. Raises `Refusal`: `bad-plan`, `too-large` for one that comes to too much, `conflict` for another
        plan under a known id, or `over-capacity` for one more than may be open; what is known already has its receipt all the
        same, and is not read again.
        """
        fingerprint = digest(plan)
        with self._transaction():
            admission = self.admission(task, fingerprint)
            if admission == "conflict":
                raise Refusal("conflict", f"task {task!r} is known with another plan; use a new id")
            if admission == "new":
                steps = parse(plan, self.tools)
                check_spelling(plan)
                if self.is_full(self.open_tasks()):
                    raise Refusal(
                        "over-capacity", f"{self.policy.tasks_max} tasks are open; try again when some have ended"
                    )
                self._create(task, canonical(plan), fingerprint, steps)
                self.audit(task, "client", f"task id {task}", "submit", task, f"plan {fingerprint}")
            return Receipt(task, self._current_attempt(task))

    def admission(self, task: str, fingerprint: str) -> Literal["new", "same", "conflict"]:
        """What a submit under this id is: a repeat of a known one, a new task, or a misuse of the id."""
        row = self._row("SELECT digest FROM task WHERE id = ?", task)
        if row is None:
            return "new"
        return "same" if row[0] == fingerprint else "conflict"

    def open_tasks(self) -> int:
        """How many tasks have not ended; no more of them are counted than it takes to know whether there is room."""
        limit = self.policy.tasks_max
        sql = "SELECT count(*) FROM (SELECT 1 FROM attempt WHERE outcome IS NULL LIMIT ?)"
        return 0 if limit is None else int(self._value(sql, limit))

    def is_full(self, tasks: int) -> bool:
        """Whether no task more is admitted when so many are open."""
        return self.policy.tasks_max is not None and tasks >= self.policy.tasks_max

    def _admit(self, task: str, plan: Json) -> None:
        self._create(task, canonical(plan), digest(plan), read_again(plan, self.tools))

    def _create(self, task: str, plan: str, fingerprint: str, steps: tuple[Step, ...]) -> None:
        number = self._value("SELECT 1 + ifnull(max(number), 0) FROM attempt WHERE task = ?", task)
        attempt, now_ns = f"{task}.{number}", time.time_ns()
        self.db.execute(
            "INSERT INTO task VALUES (?, ?, ?, ?, 0, ?) ON CONFLICT (id) DO UPDATE SET attempt = excluded.attempt",
            (task, plan, fingerprint, attempt, now_ns),
        )
        self.db.execute(
            "INSERT INTO attempt (id, task, number, condition) VALUES (?, ?, ?, 'runnable')", (attempt, task, number)
        )
        document = json.loads(plan)
        allowed = terms(document)
        self.open_account(task, allowed.allowance, now_ns, allowed.deadline_ns)
        self.arm_deadline(task, attempt)
        self.pin(attempt, allowed.code, SCHEMA_VERSION)
        self._log_run(attempt, "admitted")
        self.begin_workflow(attempt, document)
        self._plan_operations(attempt, 0, steps)
        self._plan_gates(attempt, steps)
        with self._concluding_last():
            for step in steps:
                if self.dependencies_met(len(step.needs)):
                    self._open(attempt, step.id, step.kind)
            self._wake_waits(attempt)
            self._conclude(attempt)

    def _plan_operations(self, attempt: str, position: int, steps: Sequence[Step]) -> None:
        self._forget(attempt)
        self.db.executemany(
            "INSERT INTO operation (attempt, id, position, kind, tool, semantics, spec, signal, state, tries,"
            " generation, version, missing, tolerate, subject)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'planned', 0, 0, 0, ?, ?, ?)",
            [
                (
                    attempt,
                    step.id,
                    at,
                    step.kind,
                    step.tool,
                    step.semantics,
                    canonical(step.spec),
                    step.signal,
                    len(step.needs),
                    step.tolerate,
                    step.subject,
                )
                for at, step in enumerate(steps, position)
            ],
        )
        needs = [(attempt, needed, step.id) for step in steps for needed in step.needs]
        if needs:
            self.db.executemany("INSERT INTO dependency VALUES (?, ?, ?)", needs)


def _refuse_foreign(path: str) -> None:
    """Refuse a file that is somebody else's before a byte is written to it. Raises `StoreError`."""
    what = None
    with suppress(OSError, ValueError, apsw.Error):  # what cannot be read is told about as it is opened
        what = foreign(path, frozenset(parts(1)))
    if what is not None:
        raise StoreError(
            "store-foreign",
            f"{path} {what}; expected a file that this runtime made, or none: it is made on first use; nothing was changed",
        )

"""Children: tasks that a task starts, owns, waits for and stops.

A child `<task>/<operation>` is admitted in the transaction that opens its leaf; the leaf is dispatched for as long as the
child lives, and takes its end once, in the transaction that ends it. A parent that fails or is stopped stops its children
and is over only after them. A *detached* child has nobody above it: its owner is "detached", its leaf is accepted as soon
as it is admitted, and it goes on by itself under its own id. Whatever it may spend came out of its parent's allowance.
"""

from __future__ import annotations

import json
import time
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from reference_runtime.budget import SHARED
from reference_runtime.checks import Checks
from reference_runtime.documents import INTERPRETER, undeclared
from reference_runtime.ids import CHILD_ID_CHARACTERS_MAX
from reference_runtime.model import Json, Outcome, Report, canonical
from reference_runtime.promises import Promise
from reference_runtime.rows import Operation

DETACHED = "detached"
#: How deep children may have children, none of them detached: a stop goes through all of them at once.
CHILDREN_DEEP_MAX = 50
#: By whom a run is held: by a word of its own, or by its owner's; it goes on when it is by nobody. Bits of `attempt.paused`.
BY_ITSELF, BY_OWNER = 1, 2
#: What the operations of a plan came to, as its status shows it: nothing that the runtime made itself is among it.
_NONCES = """SELECT id, answer ->> 'nonce' FROM operation WHERE attempt = ? AND accepted AND answer ->> 'nonce' != ''
    AND kind != 'sweep' AND spec ->> 'recheck' IS NULL ORDER BY position"""


def share_of(spec: Json) -> Json:
    """What a child is to be given of its parent's allowance: its share, and what its plan allows it where that says nothing."""
    allowed = spec["plan"].get("allowance") or {}
    return {kind: allowed[kind] for kind in SHARED if kind in allowed} | (spec.get("share") or {})


class Children(Checks):
    """Admission, ends and stopping of child tasks."""

    tools: Mapping[str, Promise]

    @abstractmethod
    def _admit(self, task: str, plan: Json) -> None:
        """Make a task of a plan that was checked before."""

    # -- beginning

    def open_child(self, op: Operation) -> None:
        """Admit the child of a leaf whose dependencies are met; its leaf fails where the child's share does not fit."""
        spec, now_ns = json.loads(op.spec), time.time_ns()
        child, is_detached = self.child_id(op), bool(spec["detached"])
        reason = self._fault_of_child(op, child) or self.set_aside(
            op, child, share_of(spec), now_ns, is_given=is_detached
        )
        if reason is not None:
            self._move(op, "decline", op.generation, op.version, None, reason)
            self.fail_run(op.attempt, reason)
            return
        self._limited.clear()
        self.db.execute(
            "INSERT INTO child VALUES (?, ?, ?, ?, ?, ?)",
            (child, op.task, op.attempt, op.id, self.owner_of(op, is_detached=is_detached), is_detached),
        )
        self._move(op, "dispatch", op.generation, op.version, None, f"child {child}")
        if is_detached:
            self._move(op, "accept", op.generation, op.version + 1, None, "admitted, and on its own from here")
            self._advance(op.attempt, op.id)
        written = {"code": spec["code"]} if spec.get("code") else {}  # where its parent is of newer code by now
        self._admit(child, written | spec["plan"])
        if not is_detached and self.is_paused(op.attempt):
            self.hold(self._current_attempt(child), BY_OWNER, is_held=True)

    def _fault_of_child(self, op: Operation, child: str) -> str | None:
        """Why there can be no such child: a code in kebab-case, `: `, a text."""
        if self._row("SELECT 1 FROM task WHERE id = ?", child) is not None:
            return f"child-id-taken: there is a task {child!r} already"
        if (tool := undeclared(json.loads(op.spec)["plan"], self.tools)) is not None:
            return f"no-service: the child calls {tool!r:.80}, which is declared no more; there are {', '.join(self.tools)}"
        if len(child) > CHILD_ID_CHARACTERS_MAX:
            return f"child-id-too-long: it would have {len(child)} characters; at most {CHILD_ID_CHARACTERS_MAX}"
        above = self._value(
            "WITH RECURSIVE line (task) AS (SELECT ?1 UNION ALL SELECT c.parent FROM line JOIN child c ON c.task = line.task"
            " WHERE c.owner != ?2) SELECT count(*) FROM line",
            op.task,
            DETACHED,
        )
        if above > CHILDREN_DEEP_MAX:
            return f"child-too-deep: children have children {above} deep; at most {CHILDREN_DEEP_MAX}"
        return None

    def child_id(self, op: Operation) -> str:
        """The task id of a leaf's child."""
        return f"{op.task}/{op.id}"

    def owner_of(self, op: Operation, *, is_detached: bool) -> str:
        """Who answers for a child: the task it belongs to, or nobody but itself."""
        return DETACHED if is_detached else op.task

    # -- ending

    def child_ended(self, attempt: str, outcome: Outcome) -> None:
        """Give an ended child's share back and hand its end to its leaf, once; nothing for a task that is nobody's."""
        row = self._row(
            "SELECT c.task, c.attempt, c.operation FROM child c JOIN attempt a ON a.task = c.task WHERE a.id = ?",
            attempt,
        )
        if row is None or not self.take_end(row[0]):
            return
        op = self._operation(row[1], row[2])
        self.return_share(op.attempt, op.id, row[0], time.time_ns())
        reason = self._value("SELECT reason FROM attempt WHERE id = ?", attempt)
        result = {"result": self.result_of(attempt)} if outcome == "succeeded" else None
        said = f"child-{outcome}: {row[0]}" + (f": {reason}" if reason else "")
        self._hand_over(op, self.end_report(outcome), said, None if result is None else canonical(result))

    def result_of(self, attempt: str) -> Any:
        """What an attempt that succeeded came to: what its function returned, or of a plan the accepted nonces by operation."""
        row = self._row("SELECT name, value FROM workflow WHERE attempt = ?", attempt)
        if row is not None and row[0] != INTERPRETER:
            return None if row[1] is None else json.loads(row[1])
        return dict(self._rows(_NONCES, attempt))

    def came_to(self, op: Operation) -> Json:
        """What there is to hand on of a leaf's child that was unresolved and came to a good end since; nothing of others."""
        sql = "SELECT a.id FROM task t JOIN attempt a ON a.id = t.attempt WHERE t.id = ? AND a.outcome = 'succeeded'"
        ended = self._value(sql, self.child_id(op)) if op.kind == "child" else None
        return {} if ended is None else {"result": self.result_of(ended)}

    def take_end(self, child: str) -> bool:
        """Whether this is the first time that a child's end is taken; its parent takes it once.

        From then on nothing begins in the child, also where a late word tells of an effect that was unresolved: its share is
        given back, and its owner may be over.
        """
        self._attempts.clear()
        self.db.execute("UPDATE child SET is_accepted = 1 WHERE task = ? AND is_accepted = 0", (child,))
        return self.db.changes() == 1

    def end_report(self, outcome: Outcome) -> Report:
        """How a child's end counts for its leaf: an unresolved child leaves its leaf unresolved, not failed."""
        return {"succeeded": "succeeded", "unresolved": "unknown"}.get(outcome, "failed")  # type: ignore[return-value]

    def _hand_over(self, op: Operation, report: Report, reason: str, answer: str | None) -> None:
        if report == "succeeded":
            if self._move(op, "accept", op.generation, op.version, answer, reason):
                self._advance(op.attempt, op.id)
        elif report == "failed":
            is_news = not self.is_stopped(op.attempt)
            if self._move(op, "refuse", op.generation, op.version, None, reason) and is_news:
                self._refused(op, reason)
        elif self._move(op, "lose", op.generation, op.version, None, reason):
            self._move(op, "give_up", op.generation, op.version + 1, None, reason)
        self._conclude(op.attempt)

    # -- stopping

    def stop_children(self, attempt: str, reason: str) -> int:
        """Stop the living children an attempt owns, each with its own; how many there were."""
        living = self.living(attempt)
        for child in living:
            self._stop(child, reason)
        return len(living)

    def _stop(self, attempt: str, reason: str) -> None:
        self._log_run(attempt, "stopping", reason)
        self.halt(attempt)
        self._conclude(attempt)

    def stop_child_of(self, op: Operation, reason: str) -> None:
        """Stop the child of one leaf, where it is living and its parent's own."""
        for child in self.living(op.attempt, op.id):
            self._stop(child, reason)

    # -- holding

    def is_paused(self, attempt: str) -> bool:
        """Whether an attempt is paused, by itself or by its owner."""
        return bool(self._value("SELECT paused FROM attempt WHERE id = ?", attempt))

    def hold(self, attempt: str, by: int, *, is_held: bool) -> None:
        """Let one that holds an attempt begin or end doing so, and so the attempt with the children it owns."""
        before: int = self._value("SELECT paused FROM attempt WHERE id = ?", attempt)
        after = before | by if is_held else before & ~by
        self._set_attempt(attempt, "paused = ?", after)
        self._touch(attempt)
        if bool(before) == bool(after):
            return
        if after:
            self._take_grants_back(attempt)
            self._conclude(attempt)  # nobody may have anything of it in hand any more
        for child in self.living(attempt):
            self.hold(child, BY_OWNER, is_held=bool(after))

    @abstractmethod
    def _take_grants_back(self, attempt: str) -> None:
        """Take back what was granted and not dispatched."""

    def living(self, attempt: str, leaf: str | None = None) -> list[str]:
        """The attempts of an attempt's own children (or of one leaf's) that have not ended; a parent is over only when there
        are none.
        """
        rows = self._rows(
            "SELECT a.id FROM child c JOIN task t ON t.id = c.task JOIN attempt a ON a.id = t.attempt"
            " WHERE c.parent = (SELECT task FROM attempt WHERE id = ?1) AND c.attempt = ?1 AND c.owner != ?2"
            " AND a.outcome IS NULL AND (?3 IS NULL OR c.operation = ?3) ORDER BY c.task",
            attempt,
            DETACHED,
            leaf,
        )
        return [str(row[0]) for row in rows]

    def owning_attempt(self, attempt: str) -> str | None:
        """The attempt that an attempt is a child of; None for one that belongs to nobody."""
        owner: str | None = self._value(
            "SELECT max(c.attempt) FROM attempt a JOIN child c ON c.task = a.task WHERE a.id = ? AND c.owner != ?",
            attempt,
            DETACHED,
        )
        return owner

    # -- showing

    def children(self, task: str) -> list[Json]:
        """A task's children: `run`, `state` (the attempt's outcome or condition) and `detached`."""
        rows: list[tuple[Any, ...]] = self._rows(
            "SELECT c.task, ifnull(a.outcome, a.condition), c.owner FROM child c JOIN task t ON t.id = c.task"
            " JOIN attempt a ON a.id = t.attempt WHERE c.parent = ? ORDER BY c.task",
            task,
        )
        return [{"run": run, "state": state, "detached": owner == DETACHED} for run, state, owner in rows]

"""What the store shows: the status of a task, its journal and its audit trail. Reading only, each one consistent snapshot.

One connection reads and writes, one transaction at a time, and a view is one uninterrupted read: so it is a snapshot, and
`version` names it. What a view costs is bounded by the task itself; every query goes by the task's or the attempt's key.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

from reference_runtime.model import Json, Refusal
from reference_runtime.rows import Rows
from reference_runtime.turns import Turns
from reference_runtime.waits import is_over

#: Outcomes and the states a status calls them by; `blocked` is an explicit end with an effect nobody could establish.
_ENDS = {"succeeded": "done", "failed": "failed", "cancelled": "cancelled", "unresolved": "blocked"}
_TASK = """SELECT t.attempt, t.version, a.condition, a.outcome, a.reason, a.execution, a.failing, a.halt, a.paused,
    (SELECT d.state FROM delivery d WHERE d.task = t.id AND d.attempt = a.id), a.stranded,
    EXISTS (SELECT 1 FROM workflow WHERE attempt = a.id), EXISTS (SELECT 1 FROM allowance WHERE task = t.id),
    EXISTS (SELECT 1 FROM child WHERE parent = t.id), EXISTS (SELECT 1 FROM approval WHERE attempt = a.id),
    EXISTS (SELECT 1 FROM event WHERE task = t.id)
    FROM task t JOIN attempt a ON a.id = t.attempt WHERE t.id = ?"""
_OPERATIONS = """SELECT o.id, o.state, o.answer ->> 'nonce', o.accepted, o.signal, o.kind, o.opened_ns IS NOT NULL,
    o.tries, o.reason, o.kind = 'sweep' OR o.spec ->> 'recheck' IS NOT NULL FROM operation o
    WHERE o.attempt = ? ORDER BY o.position"""
_SIGNALS = """SELECT id, disposition, consumer FROM event WHERE task = ? ORDER BY sequence"""
_APPROVALS = """SELECT operation, subject AS "of", digest, state FROM approval WHERE attempt = ? ORDER BY operation"""
_JOURNAL = {
    "transitions": 'SELECT sequence, attempt, operation, origin AS "from", state AS "to", move, reason, generation, version,'
    " at_ns FROM transition WHERE task = ? AND operation != '' ORDER BY sequence",
    "invocations": "SELECT i.* FROM attempt a JOIN invocation i ON i.attempt = a.id WHERE a.task = ? ORDER BY i.generation",
    "signals": "SELECT * FROM event WHERE task = ? ORDER BY sequence",
    "rejected": "SELECT e.*, iif(json_valid(e.detail), e.detail ->> 'nonce', NULL) AS nonce"
    " FROM attempt a JOIN evidence e ON e.attempt = a.id WHERE a.task = ? ORDER BY e.sequence",
    "verdicts": "SELECT v.* FROM attempt a JOIN verdict v ON v.attempt = a.id WHERE a.task = ? ORDER BY v.generation",
    "history": "SELECT c.number, w.segment, c.branch, c.sequence, c.kind, c.id AS operation, c.digest, a.id AS attempt"
    " FROM attempt a JOIN workflow w ON w.attempt = a.id JOIN command_history c ON c.attempt = a.id WHERE a.task = ?"
    " ORDER BY a.number, c.number",
    "outcomes": "SELECT h.number, w.segment, h.operation, a.id AS attempt FROM attempt a JOIN workflow w ON w.attempt = a.id"
    " JOIN outcome_history h ON h.attempt = a.id WHERE a.task = ? ORDER BY a.number, h.number",
    "deliveries": "SELECT attempt, state, at_ns FROM delivery WHERE task = ?",
    "audit": "SELECT sequence, actor, authority, action, target, at_ns, detail FROM audit WHERE task = ? ORDER BY sequence",
}
_OPEN = frozenset({"planned", "dispatched", "unknown"})


class _Shown(NamedTuple):
    """One operation, as a status sees it."""

    id: str
    state: str
    nonce: str | None
    accepted: int
    signal: str
    kind: str
    opened: int
    tries: int
    reason: str | None
    is_hidden: int  # the runtime's own, and none of the plan

    @property
    def is_open(self) -> bool:
        """Under way or able to be: its turn has come, and it has not ended."""
        return self.state in _OPEN and (bool(self.opened) or self.state != "planned")


class _Task(NamedTuple):
    """A task and its current attempt, as a status sees them."""

    attempt: str
    version: int
    condition: str
    outcome: str | None
    reason: str | None
    execution: str | None
    failing: str | None
    halt: str | None
    paused: int
    delivery: str | None
    stranded: str | None
    # whether there is anything to read of these
    is_workflow: int
    has_usage: int
    has_children: int
    has_approvals: int
    has_signals: int


def status(store: Turns, task: str) -> Json:
    """How a task stands; `{"state": "unknown"}` for one that was never admitted."""
    row = store.db.execute(_TASK, (task,)).fetchone()
    if row is None:
        return {"state": "unknown"}
    one = _Task(*cast("tuple[Any, ...]", row))
    rows = [_Shown(*cast("tuple[Any, ...]", row)) for row in store.db.execute(_OPERATIONS, (one.attempt,))]
    operations = [row for row in rows if not row.is_hidden]
    state = _ENDS[one.outcome] if one.outcome else "waiting" if one.condition == "waiting" else "running"
    pending = [shown for shown in operations if shown.is_open]
    approvals = _dicts(store, _APPROVALS, one.attempt) if one.has_approvals else []
    return {
        "state": state,
        "on": _awaited(pending, approvals) if state == "waiting" else None,
        "result": {shown.id: shown.nonce for shown in operations if shown.accepted and shown.nonce}
        if state == "done"
        else None,
        "error": one.reason,
        "reason": "completed" if one.outcome == "succeeded" else one.reason if one.outcome else None,
        "attempt": one.attempt,
        "execution": one.execution,
        "version": one.version,
        "phase": _phase(one, pending, [row.kind for row in rows if row.is_hidden and row.state in _OPEN]),
        "dependency": pending[0].id if pending else None,
        "cancel": one.halt,
        "paused": bool(one.paused),
        "delivered": one.delivery == "delivered" if one.outcome else None,
        "usage": store.usage(task) if one.has_usage else None,
        "children": store.children(task) if one.has_children else [],
        "approvals": approvals,
        "signals": _signals(store, task, is_over=is_over(one.outcome)) if one.has_signals else {},
        "operations": [_shown(shown, is_planned=not one.is_workflow) for shown in operations],
        **(store.workflow_shown(one.attempt) if one.is_workflow else {}),
        **_blocked_on_code(one),
    }


def _signals(store: Turns, task: str, *, is_over: bool) -> Json:
    rows = cast("list[tuple[Any, ...]]", store.db.execute(_SIGNALS, (task,)).fetchall())
    return {
        str(id_): disposition or store.disposition_of(consumer, is_over=is_over) for id_, disposition, consumer in rows
    }


def _blocked_on_code(task: _Task) -> Json:
    """What a status says otherwise because nobody who is there has code that may go on with the task."""
    if task.outcome or task.stranded is None:
        return {}
    return {"state": "blocked", "on": None, "error": task.stranded, "reason": task.stranded}


def _shown(one: _Shown, *, is_planned: bool) -> Json:
    """One operation. Of what a workflow has not asked for yet nobody can say whether it may move: its code knows."""
    unasked = False if is_planned else None
    ready = (one.is_open or unasked) if one.state in _OPEN else None
    return {
        "id": one.id,
        "state": one.state,
        "nonce": one.nonce,
        "ready": ready,
        "tries": one.tries,
        "detail": one.reason,
    }


def _awaited(pending: list[_Shown], approvals: list[Json]) -> str | None:
    """What a waiting task waits for: the signal of its first open wait, or the id of the first approval that is pending."""
    asked = (one["operation"] for one in approvals if one["state"] == "pending")
    return next((one.signal or one.id for one in pending if one.kind in ("wait", "approve")), next(asked, None))


def _phase(task: _Task, pending: list[_Shown], hidden: list[str]) -> str:
    """Where a task is on its way, in one word; what stops it comes before what it does."""
    kinds = [one.kind for one in pending] + hidden
    if task.outcome:
        return "ended"
    if task.halt:
        return "cancelling"
    if task.paused:
        return "paused"
    if "compensate" in kinds and task.failing:
        return "compensating"
    if kinds and set(kinds) <= {"check", "sweep"}:
        return "checking"
    if task.condition == "waiting":
        return "waiting"
    return "running" if task.execution else "admitted"


def journal(store: Rows, task: str) -> Json:
    """Everything that was tried, received and refused for a task, in order, and its audit trail beside it.

    Raises `Refusal` for an unknown task.
    """
    if store.db.execute("SELECT 1 FROM task WHERE id = ?", (task,)).fetchone() is None:
        raise Refusal("unknown-task", f"no task {task!r}")
    return {name: _dicts(store, sql, task) for name, sql in _JOURNAL.items()}


def _dicts(store: Rows, sql: str, *values: str) -> list[Json]:
    cursor = store.db.execute(sql, values)
    return [dict(zip((column[0] for column in cursor.get_description()), row, strict=True)) for row in cursor]

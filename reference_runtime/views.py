"""What the store shows: the status of a task, in full and in a line, its journal and its audit trail. Reading only.

One connection reads and writes, one transaction at a time, and a view is one uninterrupted read: so it is a snapshot, and
`version` names it. What a view costs is bounded by the task itself; every query goes by the task's or the attempt's key.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

from reference_runtime.model import Json, Refusal
from reference_runtime.records import PENDING
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
_ROWS = """SELECT o.id, o.state, o.answer ->> 'nonce', o.accepted, o.signal, o.kind, o.opened_ns IS NOT NULL,
    o.tries, o.reason, o.kind = 'sweep' OR o.spec ->> 'recheck' IS NOT NULL FROM operation o
    WHERE o.attempt = ?"""
_OPERATIONS = f"{_ROWS} ORDER BY o.position"
_PENDING = f"{_ROWS} AND {PENDING} ORDER BY o.position"
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
    "children": "SELECT c.attempt, c.operation, c.task AS run, c.owner, o.answer -> 'result' AS result FROM child c"
    " JOIN operation o ON o.attempt = c.attempt AND o.id = c.operation WHERE c.parent = ? ORDER BY c.task",
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
    rows = _operations(store, _OPERATIONS, one.attempt)
    operations = [row for row in rows if not row.is_hidden]
    state = _state(one)
    pending = [shown for shown in operations if shown.is_open]
    approvals = _dicts(store, _APPROVALS, one.attempt) if one.has_approvals else []
    return {
        "state": state,
        "on": _awaited(pending, approvals) if state == "waiting" else None,
        "result": {shown.id: shown.nonce for shown in operations if shown.accepted and shown.nonce}
        if state == "done"
        else None,
        "error": one.reason,
        "reason": _reason(one),
        "attempt": one.attempt,
        "execution": one.execution,
        "version": one.version,
        "phase": _phase(one, pending, _hidden(rows)),
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


def brief(store: Turns, task: str, wanted: str = "") -> Json | None:
    """A line about a task that there is, as its status says it; None where its state is not the wanted one (empty: any).

    What has ended has nothing under way that would be read.
    """
    one = _Task(*cast("tuple[Any, ...]", store.db.execute(_TASK, (task,)).fetchone()))
    parked = store.workflow_shown(one.attempt) if one.is_workflow and one.outcome is None else {}
    stands = {"state": _state(one), "reason": _reason(one), **parked, **_blocked_on_code(one)}
    if wanted not in ("", stands["state"]):
        return None
    rows = [] if one.outcome else _operations(store, _PENDING, one.attempt)
    pending = [row for row in rows if row.is_open and not row.is_hidden]
    approvals = _dicts(store, _APPROVALS, one.attempt) if one.has_approvals else []
    return {
        "task": task,
        "state": stands["state"],
        "phase": _phase(one, pending, _hidden(rows)),
        "reason": stands["reason"],
        "on": _awaited(pending, approvals) if stands["state"] == "waiting" else None,
        "approvals": [asked["operation"] for asked in approvals if asked["state"] == "pending"],
    }


def _operations(store: Turns, sql: str, attempt: str) -> list[_Shown]:
    return [_Shown(*cast("tuple[Any, ...]", row)) for row in store.db.execute(sql, (attempt,))]


def _hidden(rows: list[_Shown]) -> list[str]:
    """The kinds of what the runtime itself has under way."""
    return [row.kind for row in rows if row.is_hidden and row.state in _OPEN]


def _state(task: _Task) -> str:
    return _ENDS[task.outcome] if task.outcome else "waiting" if task.condition == "waiting" else "running"


def _reason(task: _Task) -> str | None:
    return "completed" if task.outcome == "succeeded" else task.reason if task.outcome else None


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

"""What the store shows: the status of a task and its journal. Reading only, each one consistent snapshot."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

from reference_runtime.model import Json, Refusal
from reference_runtime.store import Store

#: Outcomes and the states a status calls them by; `blocked` is an explicit end with an effect nobody could establish.
_ENDS = {"succeeded": "done", "failed": "failed", "cancelled": "cancelled", "unresolved": "blocked"}
#: Everything in one statement: a status is polled, and it must be one snapshot.
_STATUS = """SELECT t.attempt, t.version, a.condition, a.outcome, a.reason, a.execution,
    o.id, o.state, o.answer ->> 'nonce', o.accepted, o.signal,
    o.kind = 'wait' AND o.state = 'planned' AND o.opened_ns IS NOT NULL
    FROM task t JOIN attempt a ON a.id = t.attempt LEFT JOIN operation o ON o.attempt = a.id
    WHERE t.id = ? ORDER BY o.position"""
_JOURNAL = {
    "invocations": "SELECT i.* FROM invocation i JOIN attempt a ON a.id = i.attempt WHERE a.task = ? ORDER BY i.generation",
    "signals": "SELECT * FROM event WHERE task = ? ORDER BY sequence",
    "rejected": "SELECT e.* FROM evidence e JOIN attempt a ON a.id = e.attempt WHERE a.task = ? ORDER BY e.sequence",
}


class _Shown(NamedTuple):
    """One operation, as a status sees it."""

    id: str
    state: str
    nonce: str | None
    accepted: int
    signal: str
    awaits: int  # an open wait for that signal


def status(store: Store, task: str) -> Json:
    """How a task stands; `{"state": "unknown"}` for one that was never admitted."""
    rows = store.db.execute(_STATUS, (task,)).fetchall()
    if not rows:
        return {"state": "unknown"}
    attempt, version, condition, outcome, reason, execution = rows[0][:6]
    operations = [_Shown(*cast("tuple[Any, ...]", row[6:])) for row in rows if row[6] is not None]
    state = _ENDS[str(outcome)] if outcome else "waiting" if condition == "waiting" else "running"
    return {
        "state": state,
        "on": next((one.signal for one in operations if one.awaits), None) if state == "waiting" else None,
        "result": {one.id: one.nonce for one in operations if one.accepted and one.nonce} if state == "done" else None,
        "error": reason,
        "attempt": attempt,
        "execution": execution,
        "version": version,
        "operations": [{"id": one.id, "state": one.state, "nonce": one.nonce} for one in operations],
    }


def journal(store: Store, task: str) -> Json:
    """Everything that was tried, received and refused for a task, in order. Raises `Refusal` for an unknown one."""
    if status(store, task)["state"] == "unknown":
        raise Refusal("unknown-task", f"no task {task!r}")
    return {name: _dicts(store, sql, task) for name, sql in _JOURNAL.items()}


def _dicts(store: Store, sql: str, *values: str) -> list[Json]:
    cursor = store.db.execute(sql, values)
    return [dict(zip((column[0] for column in cursor.get_description()), row, strict=True)) for row in cursor]

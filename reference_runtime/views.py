"""What the store shows: the status of a task and its journal. Reading only, each one consistent snapshot."""

from __future__ import annotations

from reference_runtime.model import Json, Refusal
from reference_runtime.store import Store

#: Outcomes and the states a status calls them by; `blocked` is an explicit end with an effect nobody could establish.
_ENDS = {"succeeded": "done", "failed": "failed", "cancelled": "cancelled", "unresolved": "blocked"}
_JOURNAL = {
    "invocations": "SELECT i.* FROM invocation i JOIN attempt a ON a.id = i.attempt WHERE a.task = ? ORDER BY i.generation",
    "signals": "SELECT * FROM event WHERE task = ? ORDER BY sequence",
    "rejected": "SELECT e.* FROM evidence e JOIN attempt a ON a.id = e.attempt WHERE a.task = ? ORDER BY e.sequence",
}


def status(store: Store, task: str) -> Json:
    """How a task stands; `{"state": "unknown"}` for one that was never admitted."""
    rows = store.db.execute(
        "SELECT t.attempt, t.version, a.condition, a.outcome, a.reason, a.execution FROM task t"
        " JOIN attempt a ON a.id = t.attempt WHERE t.id = ?",
        (task,),
    ).fetchall()
    if not rows:
        return {"state": "unknown"}
    attempt, version, condition, outcome, reason, execution = rows[0]
    state = _ENDS[str(outcome)] if outcome else "waiting" if condition == "waiting" else "running"
    return {
        "state": state,
        "on": _awaited(store, str(attempt)) if state == "waiting" else None,
        "result": store.accepted_answers(str(attempt)) if state == "done" else None,
        "error": reason,
        "attempt": attempt,
        "execution": execution,
        "version": version,
        "operations": _operations(store, str(attempt)),
    }


def journal(store: Store, task: str) -> Json:
    """Everything that was tried, received and refused for a task, in order. Raises `Refusal` for an unknown one."""
    if status(store, task)["state"] == "unknown":
        raise Refusal("unknown-task", f"no task {task!r}")
    return {name: _dicts(store, sql, task) for name, sql in _JOURNAL.items()}


def _awaited(store: Store, attempt: str) -> str | None:
    """The signal of the first open wait; None when only timers run."""
    row = store.db.execute(
        "SELECT signal FROM operation WHERE attempt = ? AND kind = 'wait' AND state = 'planned'"
        " AND opened_ns IS NOT NULL ORDER BY position LIMIT 1",
        (attempt,),
    ).fetchone()
    return None if row is None else str(row[0])


def _operations(store: Store, attempt: str) -> list[Json]:
    return _dicts(
        store,
        "SELECT id, state, answer ->> 'nonce' AS nonce FROM operation WHERE attempt = ? ORDER BY position",
        attempt,
    )


def _dicts(store: Store, sql: str, *values: str) -> list[Json]:
    cursor = store.db.execute(sql, values)
    return [dict(zip((column[0] for column in cursor.get_description()), row, strict=True)) for row in cursor]

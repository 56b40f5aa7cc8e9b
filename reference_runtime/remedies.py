"""The ways out: what somebody can do about a task that is shown as blocked, in words. Reading only.

There are three kinds. Work that waits for other code goes on as soon as a worker of that version is there. A turn that was put
aside waits for a workflow's function that is put right, and for a word (`retry`) where its version stays the same. What has
ended with an effect that nobody could establish waits for somebody who knows (`settle`).
"""

from __future__ import annotations

from reference_runtime.control import TOLD
from reference_runtime.evolution import way_out
from reference_runtime.missing import first_lack
from reference_runtime.rows import Rows
from reference_runtime.turns import Turns

#: What may stand in a task's way: it has ended with something unresolved; its code is not there; its turn was put aside.
_STANDS = """SELECT a.id, a.outcome, a.halt IS NOT NULL, a.stranded, a.code,
    (SELECT w.parked FROM workflow w WHERE w.attempt = a.id AND w.ended IS NULL AND a.failing IS NULL)
    FROM task t JOIN attempt a ON a.id = t.attempt WHERE t.id = ?"""
_UNRESOLVED = "SELECT id, kind FROM operation WHERE attempt = ? AND state = 'unresolved' ORDER BY position"


def remedy(store: Turns, task: str) -> str | None:
    """What to do about a task that is blocked, or about the first of the children that it waits for which is; None where
    nothing is.
    """
    return first_lack(store, task, lambda one: _of(store, one))


def _of(rows: Rows, task: str) -> str | None:
    row = rows.db.execute(_STANDS, (task,)).fetchone()
    if row is None:
        return None
    attempt, outcome, is_stopped, stranded, code, parked = row
    if outcome is not None:
        return _settling(rows, task, str(attempt)) if outcome == "unresolved" else None
    if stranded is not None:
        return way_out(None if code is None else str(code))
    return None if parked is None or is_stopped else retrying(task)


def retrying(task: str) -> str:
    """What to do about a task whose turn was put aside."""
    return (
        f"once the workflow's code is right, say `retry {task}`;"
        " code under another version of `@workflow(..., code=...)` is tried by itself"
    )


def _settling(rows: Rows, task: str, attempt: str) -> str | None:
    """What somebody has to say about the first effect that anybody's word settles; a child's by itself, first."""
    for id_, kind in rows.db.execute(_UNRESOLVED, (attempt,)):
        inner = f"{task}/{id_}"
        if kind == "child" and (found := _of(rows, inner)) is not None:
            return f"child {inner!r:.200}: {found}"
        if kind in TOLD:
            word = "happened" if kind == "compensate" else "happened|never-happened"
            return f"find out what became of {id_!r}, and say `settle {task} {id_} {word} --actor NAME`"
    return None

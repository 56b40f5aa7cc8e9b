"""Why a workflow may wait for ever: nobody who is there runs one of its name, which may be misspelt."""

from __future__ import annotations

from collections.abc import Collection

from reference_runtime.rows import Rows

#: The name of a workflow that could be given a turn, now or later, and has none.
_UNTAKEN = """SELECT w.name FROM task t JOIN attempt a ON a.id = t.attempt JOIN workflow w ON w.attempt = a.id
    WHERE t.id = ? AND a.outcome IS NULL AND a.failing IS NULL AND a.halt IS NULL
    AND w.generation IS NULL AND w.ended IS NULL"""


def missing(rows: Rows, task: str, names: Collection[str]) -> str | None:
    """What to say of a task whose workflow is none of those (`names`) that somebody runs; None where that stops nothing."""
    row = rows.db.execute(_UNTAKEN, (task,)).fetchone()
    if row is None or row[0] in names:
        return None
    there = f"there are {', '.join(sorted(names)) or 'none':.400}"
    return f"no worker that is there runs workflow {row[0]!r:.120}; {there}"

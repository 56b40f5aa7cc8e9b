"""Why a task may wait for ever: nobody who is there runs a workflow of its name, which may be misspelt; or nobody has declared
a tool of one's own that it calls, as it was declared when the call was admitted.
"""

from __future__ import annotations

from collections.abc import Collection

from reference_runtime.evolution import Evolution
from reference_runtime.promises import pair
from reference_runtime.rows import Rows

#: The name of a workflow that could be given a turn, now or later, and has none.
_UNTAKEN = """SELECT w.name FROM task t JOIN attempt a ON a.id = t.attempt JOIN workflow w ON w.attempt = a.id
    WHERE t.id = ? AND a.outcome IS NULL AND a.failing IS NULL AND a.halt IS NULL
    AND w.generation IS NULL AND w.ended IS NULL"""

#: The tools of what could be given out of a task, now or later, and what they promise.
_DUE = """SELECT o.tool, o.semantics FROM task t JOIN attempt a ON a.id = t.attempt JOIN operation o ON o.attempt = a.id
    WHERE t.id = ? AND o.due_ns IS NOT NULL ORDER BY o.position"""


def missing(rows: Rows, task: str, names: Collection[str]) -> str | None:
    """What to say of a task whose workflow is none of those (`names`) that somebody runs; None where that stops nothing."""
    row = rows.db.execute(_UNTAKEN, (task,)).fetchone()
    if row is None or row[0] in names:
        return None
    there = f"there are {', '.join(sorted(names)) or 'none':.400}"
    return f"no worker that is there runs workflow {row[0]!r:.120}; {there}"


def missing_tool(store: Evolution, task: str, present: Collection[str]) -> str | None:
    """What to say of a task whose next call none of the executions that are `present` can carry out; None where one can."""
    beyond = [set(store.beyond(execution)) for execution in present]
    nobodys = store.own.intersection(*beyond)
    for tool, semantics in store.db.execute(_DUE, (task,)) if nobodys else ():
        if pair(str(tool), str(semantics)) in nobodys:
            return f"no worker that is there has declared tool {tool!r} as {semantics}; {_declared(store, present)}"
    return None


def _declared(store: Evolution, present: Collection[str]) -> str:
    codes = [code for code in map(store.code_of, present) if code is not None]
    found = {f"{name} as {promise}" for code in codes for name, promise in code.tools.items()}
    return f"declared are {', '.join(sorted(found)) or 'none':.400}"

"""Why a task may wait for ever: nobody who is there runs a workflow of its name, which may be misspelt; or nobody has declared
a tool of one's own that it calls, as it was declared when the call was admitted. What a child lacks its owner waits for, too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

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

#: How many children are looked at for what they lack, so that asking about a task costs no more than that.
CHILDREN_MAX = 1_000
#: The children that a task waits for, the next ones first.
_CHILDREN = """SELECT c.task FROM child c JOIN task t ON t.id = c.task JOIN attempt a ON a.id = t.attempt
    WHERE c.parent = ? AND c.owner != 'detached' AND a.outcome IS NULL ORDER BY c.task LIMIT ?"""


def lacking(store: Evolution, task: str, names: Collection[str], present: Collection[str]) -> str | None:
    """What a task, or the first of the children that it waits for, is missing; None where nothing is known to be."""
    return first_lack(store, task, lambda one: missing(store, one, names) or missing_tool(store, one, present))


def first_lack(rows: Rows, task: str, look: Callable[[str], str | None]) -> str | None:
    """What a look finds out about a task, or about the first of the children that it waits for, whose id is told then."""
    todo, looked_at = [task], 0
    while todo and looked_at < CHILDREN_MAX:
        one, looked_at = todo.pop(), looked_at + 1
        if (found := look(one)) is not None:
            return found if one == task else f"child {one!r:.200}: {found}"
        todo += [str(child) for (child,) in reversed(rows.db.execute(_CHILDREN, (one, CHILDREN_MAX)).fetchall())]
    return None


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

"""The workers that are there, each with what it runs, when it was last heard of, and what it has in hand. Reading only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from reference_runtime import tables
from reference_runtime.model import Json
from reference_runtime.turns import Turns

#: Every lease that was not given back, of operations and of turns, which have none.
_HELD = """SELECT l.execution, a.task, l.operation, l.generation FROM lease l JOIN attempt a ON a.id = l.attempt
    UNION ALL SELECT w.execution, a.task, NULL, w.generation FROM workflow w JOIN attempt a ON a.id = w.attempt
    WHERE w.generation IS NOT NULL ORDER BY 4"""
_COLUMNS = ("EXECUTION", "CODE", "POLICY", "HEARD", "WORKFLOWS", "TOOLS", "HOLDING")


def workers(store: Turns, heard_s: Mapping[str, float], workflows: Mapping[str, Sequence[str]]) -> list[Json]:
    """Every execution that is there, or has something in hand, in order of their ids.

    `heard_s`: of who is there, how many seconds ago it asked for work or said that it lives; `workflows`: of who runs any, the
    names. A worker is `execution`, `code` (what it said of itself; None: nothing), `is_there`, `heard_ago_ns`
    (None where it is not there), `workflows` and `holding`: `task`, `operation` (None: a turn), `generation`.
    """
    held: dict[str, list[Json]] = {}
    for execution, task, operation, generation in store.db.execute(_HELD):
        one = {"task": task, "operation": operation, "generation": generation}
        held.setdefault(str(execution), []).append(one)
    return [
        {
            "execution": execution,
            "code": None if (code := store.code_of(execution)) is None else attrs.asdict(code),
            "is_there": execution in heard_s,
            "heard_ago_ns": int(heard_s[execution] * 1_000_000_000) if execution in heard_s else None,
            "workflows": sorted(workflows.get(execution, ())),
            "holding": held.get(execution, []),
        }
        for execution in sorted({*heard_s, *held})
    ]


def table(rows: Sequence[Json]) -> list[str]:
    """Workers as lines for people: a header, and a line each."""
    return tables.table(_COLUMNS, list(map(_cells, rows)))


def _cells(worker: Json) -> tuple[str, ...]:
    code = worker["code"] or {"version": "-", "policy": "-", "tools": {}}
    heard = f"{worker['heard_ago_ns'] / 1_000_000_000:.1f}s ago" if worker["is_there"] else "silent"
    tools = (f"{name}={promise}" for name, promise in sorted(code["tools"].items()))
    return (
        worker["execution"],
        code["version"],
        code["policy"],
        heard,
        ", ".join(worker["workflows"]) or "-",
        ", ".join(tools) or "-",
        ", ".join(map(_words, worker["holding"])) or "-",
    )


def _words(held: Json) -> str:
    return f"{held['task']} (turn)" if held["operation"] is None else f"{held['task']}:{held['operation']}"

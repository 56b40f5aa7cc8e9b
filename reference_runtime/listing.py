"""The list of tasks: a line each, in order of their ids, a bounded number at a time.

One answer looks at a bounded number of tasks, whatever it finds among them, and `next` says where it went on; nobody else is
answered meanwhile. Those that have not ended are found by the index of what is open, however many others there are. It is
in the order of attempts, whose ids are those of their tasks and a number: so a task comes after those whose ids are longer
by a sign that sorts before the dot, and is found among the beginnings of the last id that was looked at.
"""

from __future__ import annotations

import json

from reference_runtime.model import Json, Refusal
from reference_runtime.rpc import STATES, TASKS_MAX
from reference_runtime.turns import Turns
from reference_runtime.views import brief

#: States of tasks that have not ended, and of no others; what is blocked may have.
LIVING = frozenset({"waiting", "running"})
#: Tasks that one answer looks at for those of a state.
LOOKED_AT_MAX = 1_000

_ANY = "SELECT id FROM task WHERE id > ? ORDER BY id LIMIT ?"
_LIVING = """SELECT a.id, a.task FROM attempt a INDEXED BY attempt_open
    WHERE a.outcome IS NULL AND a.id > ?1 AND a.task > ?1 ORDER BY a.id LIMIT ?2"""
_SHORTER = """SELECT a.task FROM json_each(?2) p CROSS JOIN attempt a ON a.task = p.value
    WHERE a.outcome IS NULL AND a.task > ?1"""


def tasks(store: Turns, after: str, limit: int, state: str) -> Json:
    """Up to `limit` tasks past id `after` (empty: all) that are in a state (empty: any): `tasks`, and `next`, the id to come
    back with; None when there are no more. Raises `Refusal` (`bad-request`).
    """
    if state and state not in STATES:
        raise Refusal("bad-request", f"tasks: unknown state {state!r:.80}; there are {', '.join(STATES)}")
    if not 1 <= limit <= TASKS_MAX:
        raise Refusal("bad-request", f"tasks: limit must be 1 to {TASKS_MAX}; got {limit}")
    count = LOOKED_AT_MAX if state else limit
    ids, is_all = _living(store, after, count) if state in LIVING else _any(store, after, count)
    found: list[Json] = []
    looked_at = 0
    while looked_at < len(ids) and len(found) < limit:
        line = brief(store, ids[looked_at], state)
        found += [] if line is None else [line]
        looked_at += 1
    return {"tasks": found, "next": None if is_all and looked_at == len(ids) else ids[looked_at - 1]}


def _any(store: Turns, after: str, count: int) -> tuple[list[str], bool]:
    """The next ids of tasks, and whether these are all there are."""
    ids = [str(id_) for (id_,) in store.db.execute(_ANY, (after, count + 1))]
    return ids[:count], len(ids) <= count


def _living(store: Turns, after: str, count: int) -> tuple[list[str], bool]:
    """As `_any`, of tasks that have not ended: all of them up to the last attempt that was looked at."""
    rows = [(str(attempt), str(task)) for attempt, task in store.db.execute(_LIVING, (after, count))]
    ids = {task for _, task in rows}
    if is_cut := len(rows) == count:
        last = rows[-1][0]
        beginnings = json.dumps([last[:length] for length in range(1, len(last) + 1)])
        ids |= {str(task) for (task,) in store.db.execute(_SHORTER, (after, beginnings))}
    return sorted(ids), not is_cut

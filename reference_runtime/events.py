"""Event cursors: everything that happened to a task, from any point on, without a gap.

Events are lines of the transition log. Their cursors count from one for each task and are given out by the transaction
that commits what they tell, so that a reader who comes back with the last cursor it saw misses nothing, and sees a
repeat under the cursor it had before. Control frames say how the stream itself stands; they have no cursor and move none.
"""

from __future__ import annotations

from reference_runtime.model import Json, Refusal
from reference_runtime.rows import Rows

#: Events in one answer; the next answer goes on from there.
PAGE = 500

_EVENTS = """SELECT sequence, state, operation, version, attempt FROM transition WHERE task = ? AND sequence > ?
    ORDER BY sequence LIMIT ?"""
_STANDING = """SELECT t.version, a.outcome, a.condition,
    (SELECT ifnull(max(sequence), 0) FROM transition x WHERE x.task = t.id)
    FROM task t JOIN attempt a ON a.id = t.attempt WHERE t.id = ?"""


def events(rows: Rows, task: str, after: int) -> Json:
    """The events past cursor `after` (0: all): `events`, `next` (the cursor to come back with) and `control`.

    An event has `cursor`, `kind` (the state an operation came to, or what happened to the run), `operation` (None: the run),
    `version` (the first version of the task that shows it) and `attempt`. Raises `Refusal` (`unknown-task`, `bad-cursor`).
    """
    standing = rows.db.execute(_STANDING, (task,)).fetchone()
    if standing is None:
        raise Refusal("unknown-task", f"no task {task!r}")
    version, outcome, condition, last = standing
    if not 0 <= after <= last:
        raise Refusal("bad-cursor", f"task {task!r} has cursors 0 to {last}; got {after}")
    found = [
        {"cursor": cursor, "kind": kind, "operation": operation or None, "version": shown, "attempt": attempt}
        for cursor, kind, operation, shown, attempt in rows.db.execute(_EVENTS, (task, after, PAGE))
    ]
    following = next_cursor(after, found)
    control = [{"kind": frame, "version": version} for frame in frames(outcome, condition, is_read=following == last)]
    return {"events": found, "next": following, "control": control}


def next_cursor(after: int, found: list[Json]) -> int:
    """The cursor to come back with: that of the last event given, and nothing else moves it."""
    return int(found[-1]["cursor"]) if found else after


def frames(outcome: str | None, condition: str, *, is_read: bool) -> list[str]:
    """What to say of the stream itself: `heartbeat` (alive), `idle` (the task waits), `end` (nothing more will come)."""
    if not is_read:
        return ["heartbeat"]
    return ["end"] if outcome else ["heartbeat", "idle"] if condition == "waiting" else ["heartbeat"]

"""What an id may be that somebody else gives: of a task, a command, a signal, an operation, or the name of a worker.

An id ends up in keys, headers, logs and terminals, and people compare it by eye.
"""

from __future__ import annotations

from reference_runtime.model import Refusal

ID_CHARACTERS_MAX = 256
#: What is in the ids of tasks that the runtime makes itself, which are those of children: `task.1:operation`.
KEPT = ":"


def fault_of(id_: str) -> str | None:
    """What is wrong with an id; None for a good one."""
    if not id_:
        return "is empty"
    if len(id_) > ID_CHARACTERS_MAX:
        return f"has {len(id_)} characters; at most {ID_CHARACTERS_MAX}"
    if not id_.isprintable():
        odd = next(one for one in id_ if not one.isprintable())
        return f"has the character U+{ord(odd):04X}; expected printable ones"
    if id_ != id_.strip():
        return "has a blank at an end"
    return None


def check_id(what: str, id_: str) -> None:
    """Raises `Refusal` (`bad-id`) for an id that is none."""
    fault = fault_of(id_)
    if fault is not None:
        raise Refusal("bad-id", f"{what} {id_!r:.80} {fault}")


def check_task_id(id_: str) -> None:
    """As `check_id`, of a task that is new: one that could be a child's is refused, too."""
    check_id("task", id_)
    if KEPT in id_:
        raise Refusal("bad-id", f"task {id_!r} has a {KEPT} in it; that is kept for tasks the runtime makes itself")

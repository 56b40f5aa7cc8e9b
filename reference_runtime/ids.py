"""What an id may be that somebody else gives: of a task, a command, a signal, an operation, or the name of a worker.

An id ends up in keys, headers, logs and terminals, and people compare it by eye.
"""

from __future__ import annotations

from reference_runtime.model import Refusal

ID_CHARACTERS_MAX = 256
#: Of a task that the runtime makes itself, which has the ids of all that it is a child of in its own.
CHILD_ID_CHARACTERS_MAX = 1024
#: What stands between the parts of an id that is put together: of a child (`task/operation`), and of a request
#: (`task:operation`), which its receiver takes apart at the last one.
WITHIN, KEPT = "/", ":"
#: What stands in an id that the runtime makes itself: behind the number of a workflow's segment, and before what is made for an
#: operation (`report~sweep`). It stands there twice behind digits alone, which are then no segment's.
OWN = "~"


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


def fault_of_operation(id_: str, *, is_child: bool) -> str | None:
    """What is wrong with the id of an operation that is new; None for a good one. Where the sign that puts two parts together
    is in one of them as well, nobody can tell where they meet.
    """
    if KEPT in id_:
        return f"has a {KEPT} in it; that is kept for requests, in which it stands before the operation"
    if is_child and WITHIN in id_:
        return f"has a {WITHIN} in it; that is kept for the ids of children, in which it stands before the operation"
    return fault_of(id_)


def made_for(id_: str, what: str) -> str:
    """The id of what the runtime makes itself for an operation: `c~2` for `c`, and `2~~2` for `2`, as `2~2` is the operation
    `2` of a second segment.
    """
    return f"{id_}{OWN * (1 + _is_number(id_))}{what}"


def made_anew(id_: str) -> str:
    """The id of the operation that one is made anew for, by number; its own for one that is not."""
    head, _, number = id_.rpartition(OWN)
    return id_ if not head or not _is_number(number) or _is_number(head) else _before(head + OWN)


def swept(id_: str, what: str) -> str:
    """The id of the operation that one of the id `made_for(…, what)` was made for."""
    return _before(id_.removesuffix(what))


def _before(head: str) -> str:
    """The id before the sign that stands behind it, twice behind digits; an id may itself end with that sign."""
    once = head.removesuffix(OWN)
    twice = once.removesuffix(OWN)
    return twice if _is_number(twice) else once


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def check_id(what: str, id_: str) -> None:
    """Raises `Refusal` (`bad-id`) for an id that is none."""
    fault = fault_of(id_)
    if fault is not None:
        raise Refusal("bad-id", f"{what} {id_!r:.80} {fault}")


def check_task_id(id_: str) -> None:
    """As `check_id`, of a task that is new: one that could be a child's is refused, too."""
    check_id("task", id_)
    if KEPT in id_:
        raise Refusal("bad-id", f"task {id_!r} has a {KEPT} in it; in a request that stands before the operation")

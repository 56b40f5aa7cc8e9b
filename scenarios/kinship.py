"""Kinship: the children of a run, whose they are, when they were certainly under way, and when they were certainly over.

A child that was let go (*detached*) is nobody's but its own; every other one is *owned*, by the run or by a child of it. What
is said here of children at any depth comes from their requests, and of those of the run itself from its status too.
"""

from __future__ import annotations

from scenarios.history import ChildStatus
from scenarios.index import Facts
from scenarios.observed import Request, Seen
from scenarios.plan import Child

#: What a child is called that is not over.
ALIVE = frozenset({"admitted", "runnable", "running", "waiting", "paused"})
#: And what it is called once it is.
OVER = frozenset({"succeeded", "done", "failed", "cancelled", "unresolved", "blocked"})


def own_children(facts: Facts, *, detached: bool) -> tuple[Child, ...]:
    """The children that the run itself begins, and owns or lets go."""
    return tuple(child for child in facts.history.plan.children() if "/" not in child.id and child.detached == detached)


def name_of(facts: Facts, child: Child) -> str:
    """The name of a child's run."""
    return f"{facts.history.run}/{child.id}"


def inside(facts: Facts, child: Child) -> tuple[Request, ...]:
    """What a child and its children have sent, in order of observation."""
    return tuple(one for one in facts.sent if one.op.startswith(f"{child.id}/"))


def is_let_go(facts: Facts, op: str) -> bool:
    """Is this an operation of a child that nobody owns, or of one of its children?"""
    return any(guard.kind == "detached" for guard in facts.history.plan.guards(op))


def shown(facts: Facts, seen: Seen, child: Child) -> ChildStatus | None:
    """A child as a status of its owner shows it."""
    return next((one for one in seen.status.children if one.run == name_of(facts, child)), None)


def shows_children(facts: Facts) -> bool:
    """Does the harness show the children of a run at all?"""
    return any(seen.status.children for seen in facts.statuses)


def ends_of(facts: Facts, child: Child) -> tuple[str, ...]:
    """The operations of an owned child after which it is over, as far as they certainly have their turn."""
    return tuple(one for one in facts.before[child.id] if one.startswith(f"{child.id}/"))


def answered_at(facts: Facts, child: Child) -> int | None:
    """The first event by which all its last operations had been answered: what is left is to take its end."""
    ends = ends_of(facts, child)
    moments = [
        min(
            (one.replied_at for one in facts.sent if one.op == op and one.answer and one.replied_at is not None),
            default=None,
        )
        for op in ends
    ]
    known = [at for at in moments if at is not None]
    return max(known) if ends and len(known) == len(ends) else None


def over_at(facts: Facts, child: Child) -> int | None:
    """The first event from which a child of the run is known to be over: its end was accepted, or a status says so."""
    told = (
        seen.answered for seen in facts.statuses if (one := shown(facts, seen, child)) is not None and one.state in OVER
    )
    accepted = facts.accepted_at.get(child.id)
    return min((at for at in (accepted, *told) if at is not None), default=None)

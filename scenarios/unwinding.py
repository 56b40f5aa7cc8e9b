"""Unwinding: what a run undoes of what it has done, when that was certainly known, and in which order it was accepted.

An *undo* is a compensation of the plan, its *effect* the call that it undoes. The run and each of its children unwind by
themselves, so that order means something only among the undos of one *owner*. Facts only; `scenarios.obligations.undoing`
judges by them.
"""

from __future__ import annotations

from collections.abc import Iterator

from scenarios.index import Facts
from scenarios.observed import Request
from scenarios.plan import Compensate

#: States of an undo that openly did not come to its end as it should.
NOT_UNDONE = frozenset({"failed", "unknown", "unresolved"})


def undos(facts: Facts) -> tuple[Compensate, ...]:
    """Every compensation of the plan, those of children too."""
    return tuple(leaf for leaf in facts.history.plan.leaves() if isinstance(leaf, Compensate))


def own_undos(facts: Facts) -> tuple[Compensate, ...]:
    """The compensations of the run itself, which its status shows."""
    return tuple(undo for undo in undos(facts) if not owner_of(facts, undo.id))


def owner_of(facts: Facts, op: str) -> str:
    """Path of the child that an operation belongs to; empty for the run itself."""
    return facts.history.plan.operations_of_children().get(op, ("", ""))[0]


def learnt_at(facts: Facts, op: str) -> int | None:
    """The first event from which the harness can have known that `op` took effect: an answer, or a notice, was sent."""
    sent = (one.replied_at for one in facts.requests if one.op == op and one.answer is not None)
    told = (one.asked_at for one in facts.notices(op))
    return min((at for at in (*sent, *told) if at is not None), default=None)


def is_learnt(facts: Facts, op: str, index: int) -> bool:
    """Can the harness have known by event `index` that `op` took effect?"""
    at = learnt_at(facts, op)
    return at is not None and at < index


def has_effect(facts: Facts, op: str) -> bool:
    """Is there something to undo of what was accepted? A refusal that is tolerated was accepted with no effect."""
    return not facts.is_tolerated(op) or learnt_at(facts, op) is not None


def begun(facts: Facts, undo: Compensate) -> Request | None:
    """The first request to undo, whoever sent it."""
    return next(iter(facts.dispatches(undo.id)), None)


def is_accepted_before(facts: Facts, effect: str, later: str) -> bool:
    """Was `effect` certainly accepted before `later` was?"""
    at, learnt = facts.accepted_at.get(effect), learnt_at(facts, later)
    return at is not None and learnt is not None and at < learnt


def in_turn(facts: Facts) -> Iterator[tuple[Compensate, Compensate]]:
    """Pairs of undos of one owner of which the first certainly has to be done before the second is begun."""
    for second in undos(facts):
        request = begun(facts, second)
        for first in undos(facts) if request is not None else ():
            known = facts.accepted_at.get(first.of)
            is_owed = request is not None and known is not None and known < request.at
            is_same_owner = first is not second and owner_of(facts, first.id) == owner_of(facts, second.id)
            if is_owed and is_same_owner and is_accepted_before(facts, second.of, first.of):
                yield first, second

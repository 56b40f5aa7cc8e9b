"""Turns: what the decisions of a plan have left out, as far as an outside observer knows for certain.

A branch, and a further round of a loop, go by the answer of one operation; a race is won by whichever child is done first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from scenarios.index import Facts
from scenarios.lineage import given, uses
from scenarios.observed import Request
from scenarios.plan import Call, Choice, Guard, Model, Wait, arm
from scenarios.stops import first_request, not_begun
from scenarios.verdict import short


@attrs.frozen
class OutOfTurn:
    """A request of an operation that a decision had left out; `why` in words, `since` the event that shows it, if any."""

    request: Request
    why: str
    since: int | None = None


def out_of_turn(facts: Facts) -> Iterator[OutOfTurn]:
    """The first such request of each operation."""
    known = given(facts)
    for op in dict.fromkeys(one.op for one in facts.sent):
        request = first_request(facts, op)
        guards = facts.history.plan.guards(op)
        if request is None or any(guard.kind == "detached" for guard in guards):
            continue
        found = (_other_way(facts, guard, request, known) or _lost(facts, guard, request) for guard in guards)
        wrong = next((one for one in found if one is not None), None)
        if wrong is not None:
            yield wrong


def _other_way(
    facts: Facts, guard: Guard, request: Request, known: Mapping[str, Mapping[str, int]]
) -> OutOfTurn | None:
    """Sent though every answer that there was of what the decision goes by decides against it."""
    choice = facts.history.plan.leaf(guard.by)
    if guard.kind not in {"branch", "loop"} or not isinstance(choice, Choice) or choice.on is None:
        return None
    answers = {nonce: at for nonce, at in known.get(choice.on, {}).items() if at < request.at}
    shown = {use.nonce: use.at for use in uses(facts, choice.on)}
    ways = {arm(nonce) for nonce in (*answers, *shown)}
    if not ways or guard.arm in ways or _may_lack_answer(facts, choice.on):
        return None
    said = next(iter((*answers, *shown)))
    way = f"{choice.on!r} was answered with {short(said)}, which decides for the other way"
    since = min((*answers.values(), *shown.values()))
    return OutOfTurn(request, way, since if since < request.at else None)


def _may_lack_answer(facts: Facts, op: str) -> bool:
    """May it be accepted, or passed over, without an answer to decide by?"""
    leaf = facts.history.plan.leaf(op)
    certain = isinstance(leaf, Model) or (isinstance(leaf, Call) and not leaf.tolerate)
    waited = isinstance(leaf, Wait) and leaf.timeout_ns is None
    return not (certain or waited) or bool(facts.history.plan.guards(op))


def _lost(facts: Facts, guard: Guard, request: Request) -> OutOfTurn | None:
    """Begun when the race that it takes part in had been won, certainly not by its own child."""
    decided = facts.accepted_at.get(guard.by)
    if guard.kind != "race" or decided is None or request.at <= decided or facts.late(request):
        return None
    if not_begun(facts, request.op, decided) is None:
        return None
    return OutOfTurn(request, f"the race {guard.by!r} had been won, and it had not begun by then", decided)

"""Stops: what a cancellation covers, what was certainly not begun when it was acknowledged, and when the run said it was over.

A stop covers the run and everything it owns; what cleans up after it, and children that were let go, it does not cover. Facts
only; `scenarios.obligations.stopping` judges by them.
"""

from __future__ import annotations

from collections.abc import Iterator

from scenarios.history import TERMINAL
from scenarios.index import Facts
from scenarios.observed import Command, Request, Seen
from scenarios.plan import Approve, Compensate, Wait
from scenarios.terms import ON_ITS_WAY_NS


def is_covered(facts: Facts, op: str) -> bool:
    """Does a stop of the run cover this operation, its own or a child's? Asking for authority is no work of it."""
    plan = facts.history.plan
    is_let_go = any(guard.kind == "detached" for guard in plan.guards(op))
    return not is_let_go and not isinstance(plan.leaf(op), Compensate | Approve)


def may_lose(facts: Facts, op: str) -> bool:
    """Is this operation in a race, so that it may count for nothing whatever it does?"""
    return any(guard.kind == "race" for guard in facts.history.plan.guards(op))


def is_inherited(facts: Facts, op: str) -> bool:
    """Is this operation a child's?"""
    return op in facts.history.plan.operations_of_children()


def first_ask(facts: Facts) -> int | None:
    """The event with which a stop was first asked for: it may count from here on."""
    return min((one.asked_at for one in facts.ordered("cancel")), default=None)


def accepted_stop(facts: Facts) -> Command | None:
    """The first stop that was acknowledged as one that takes effect."""
    told = [one for one in facts.ordered("cancel") if one.disposition != "too-late" and one.ok_at is not None]
    return min(told, key=lambda one: one.ok_at or 0, default=None)


def says_it_is_over(seen: Seen) -> bool:
    """Does a status say that nothing under the stop is at work any more?"""
    return seen.status.cancel == "quiescent" or seen.status.state == "cancelled"


def ended(facts: Facts) -> Iterator[Seen]:
    """The statuses that show the run over."""
    return (seen for seen in facts.statuses if seen.status.state in TERMINAL)


def in_flight(facts: Facts, index: int) -> tuple[Request, ...]:
    """Requests under the stop that had been received by event `index`, and not answered."""
    return tuple(
        request
        for request in facts.sent
        if request.at < index and is_covered(facts, request.op) and is_open(request, index)
    )


def is_racing(facts: Facts, index: int) -> bool:
    """Had something under the stop been sent by event `index` that nobody had shown to be accepted by then?"""
    sent = (request for request in facts.sent if request.at < index and is_covered(facts, request.op))
    return any(facts.accepted_at.get(request.op, index) >= index for request in sent)


def is_open(request: Request, index: int) -> bool:
    """Had this request no reply yet at event `index`?"""
    return request.replied_at is None or request.replied_at > index


def not_begun(facts: Facts, op: str, index: int) -> tuple[int, str] | None:
    """Why `op` cannot have been admitted by event `index`, with the event that shows it; None where it may have been.

    Something before it had not been answered, signalled or decided by then; or a status asked later shows it as planned; or it
    came out of long silence.
    """
    missing = next(facts.missing(op, index), None)
    if missing is not None:
        return index, f"at the acknowledgement {missing!r}, which it depends on, had not been answered"
    held = next((one for one in facts.ancestors[op] if _is_held(facts, one, index)), None)
    if held is not None:
        return index, f"at the acknowledgement {held!r}, which it depends on, was still waited for"
    shown = next((seen for seen in facts.seen_after(index) if _is_planned(seen, op)), None)
    if shown is not None:
        return shown.answered, "a status asked in between showed it as planned"
    if _breaks_silence(facts, op, index):
        return index, "nothing of the run was under way at the acknowledgement, and for long after it nothing came"
    return None


def _breaks_silence(facts: Facts, op: str, index: int) -> bool:
    """Was the first request of `op` seen so long after event `index`, with nothing else of the run under way since and nothing
    happening to anybody, that it cannot have been on its way, nor have waited for anything but its admission?
    """
    request = first_request(facts, op)
    if request is None or request.at < index or facts.halted(0, request.at) or facts.history.plan.approvals():
        return False
    since_ns, at_ns = facts.at_ns(index), facts.at_ns(request.at)
    is_long_after = at_ns - since_ns > ON_ITS_WAY_NS + facts.lost_ns(since_ns - ON_ITS_WAY_NS, at_ns)
    busy = any(one.at < request.at and (one.at > index or is_open(one, index)) for one in facts.sent)
    return is_long_after and not busy


def _is_held(facts: Facts, leaf: str, index: int) -> bool:
    """Is this a wait, or an approval, for which nothing had been sent by event `index`?"""
    match facts.history.plan.leaf(leaf):
        case Wait(timeout_ns=None, signal=name):
            return not any(one.name == name and one.asked_at < index for one in facts.signals)
        case Approve():
            return not any(one.asked_at < index for one in facts.decisions(leaf))
        case _:
            return False


def _is_planned(seen: Seen, op: str) -> bool:
    shown = seen.operation(op)
    return shown is not None and shown.state == "planned"


def first_request(facts: Facts, op: str) -> Request | None:
    """The first request to carry `op` out."""
    return next(iter(facts.dispatches(op)), None)


def senders(facts: Facts) -> Iterator[str]:
    """Ids of everything under the stop that sends requests."""
    plan = facts.history.plan
    published = [artifact.id for artifact in plan.artifacts()] + [check.id for check in plan.checks()]
    return (op for op in (*facts.calls, *published) if is_covered(facts, op))

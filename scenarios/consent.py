"""Consent: what was decided about each approval, what it was about by then, and until when a decision was good for anything.

A decision *may count* at an event when it had been sent by then and was not refused each time; what certainly stood against it
is told beside it. Facts only; `scenarios.obligations.approvals` judges by them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from scenarios.history import ApprovalStatus
from scenarios.index import AUTHORISED, Facts
from scenarios.observed import Command, Request, Seen
from scenarios.plan import Approve, Call, Model, approval_digest
from scenarios.stops import first_request

#: What takes longer than this from its release to its receiver was held up on the way.
ON_ITS_WAY_NS = 300_000_000
#: States in which an approval has released nothing, and will not.
BARRED = frozenset({"denied", "expired"})


@attrs.frozen
class Bar:
    """From event `at` on an approval can release nothing: the event that shows it, and what it shows.

    `end_ns`: when its validity was over, where it is that which ended it.
    """

    at: int
    words: str
    end_ns: int | None = None


def counting(facts: Facts, approve: Approve, index: int) -> tuple[Command, ...]:
    """The approving decisions that may count at an event. One that was told to be a denial does not."""
    said = (one for one in facts.decisions(approve.id) if one.decision == "approve" and one.asked_at < index)
    return tuple(one for one in said if not one.refused and one.disposition != "denied")


def shown(facts: Facts, approve: Approve) -> Iterator[tuple[Seen, ApprovalStatus]]:
    """The statuses that show this approval, each with how it shows it."""
    for seen in facts.statuses:
        one = next((one for one in seen.status.approvals if one.operation == approve.id), None)
        if one is not None:
            yield seen, one


def asking(facts: Facts, approve: Approve) -> Iterator[Seen]:
    """The statuses that show the run waiting for this approval."""
    for seen in facts.statuses:
        one = next((one for one in seen.status.approvals if one.operation == approve.id), None)
        is_waited_for = (seen.status.state, seen.status.on) == ("waiting", approve.id)
        if one.state == "pending" if one is not None else is_waited_for:
            yield seen


def release(facts: Facts, approve: Approve) -> Request | None:
    """The first request of what an approval is about."""
    return first_request(facts, approve.of)


def released_at(facts: Facts, approve: Approve) -> int:
    """The event of that request; the end of the history where there is none."""
    sent = release(facts, approve)
    return len(facts.history.events) if sent is None else sent.at


# --- what it is about -------------------------------------------------------------------------------------------------


def directed(facts: Facts, approve: Approve, index: int) -> tuple[Command, ...]:
    """The directions that had certainly changed what an approval is about by an event, in their order."""
    steers = facts.steers(approve.of)
    return tuple(one for one in steers if one.disposition == "released" and one.ok_at is not None and one.ok_at < index)


def is_outdated(facts: Facts, approve: Approve, digest: str, change: Command, index: int) -> bool:
    """Was this digest certainly known before a change, and does it fit nothing that was proposed from then until `index`?"""
    steers = facts.steers(approve.of)
    later = [one for one in steers if one.ok_at is None or (one.asked_at < index and not one.precedes(change))]
    if digest in {_digest(facts, approve, _params(one)) for one in later}:
        return False
    before = [one for one in steers if one.asked_at < change.asked_at]
    known = {_digest(facts, approve, None), *(_digest(facts, approve, _params(one)) for one in before)}
    known |= {one.digest for one in facts.decisions(approve.id) if one.asked_at < change.asked_at}
    known |= {one.digest for seen, one in shown(facts, approve) if seen.answered < change.asked_at}
    return digest in known


def was_never_proposed(facts: Facts, approve: Approve, decision: Command) -> bool:
    """Is a decision bound to nothing that the plan or a status has proposed, where no direction has changed that?"""
    known = {_digest(facts, approve, None), *(one.digest for _, one in shown(facts, approve))}
    return decision.digest is not None and decision.digest not in known and not facts.steers(approve.of)


def _params(steer: Command) -> Mapping[str, Any] | None:
    params = steer.payload.get("params")
    return params if isinstance(params, dict) else None


def _digest(facts: Facts, approve: Approve, params: Mapping[str, Any] | None) -> str | None:
    of = facts.history.plan.leaf(approve.of)
    return approval_digest(of, params) if isinstance(of, Call | Model) else None


# --- until when it is good --------------------------------------------------------------------------------------------


def bars(facts: Facts, approve: Approve) -> tuple[Bar, ...]:
    """What has barred an approval, in order: a denial, a status that says so, the end of its validity."""
    found = (*_denied(facts, approve), *_shown_barred(facts, approve), *_expired(facts, approve))
    return tuple(sorted(found, key=lambda bar: bar.at))


def is_reopened(facts: Facts, approve: Approve, since: int, until: int) -> bool:
    """Was it shown to be asked for again between two events?"""
    return any(since < seen.asked and seen.answered < until for seen in asking(facts, approve))


def is_asked_again(facts: Facts, approve: Approve, bar: Bar, until: int) -> bool:
    """Was it asked for again between what barred it and event `until`?

    Where only its time had passed, a status that still shows it as asked for is no sign of that: it must have been shown
    otherwise in between.
    """
    if bar.end_ns is None:
        return is_reopened(facts, approve, bar.at, until)
    over = (seen for seen, one in shown(facts, approve) if one.state != "pending" and bar.at <= seen.answered)
    first = next(over, None)
    return first is not None and is_reopened(facts, approve, first.answered, until)


def _denied(facts: Facts, approve: Approve) -> Iterator[Bar]:
    """Denials that were taken, and decisions told to be ones, where no approving decision can have been taken before them."""
    for one in facts.decisions(approve.id):
        is_denial = one.disposition == "denied" or (one.decision == "deny" and one.disposition is None)
        is_taken = is_denial and one.ok_at is not None
        if is_taken and one.ok_at is not None and not counting(facts, approve, one.ok_at):
            yield Bar(one.ok_at, "had been denied")
            return


def _shown_barred(facts: Facts, approve: Approve) -> Iterator[Bar]:
    for seen, one in shown(facts, approve):
        if one.state in BARRED:
            yield Bar(seen.answered, f"was shown {one.state}")
            return


def _expired(facts: Facts, approve: Approve) -> Iterator[Bar]:
    """The first event after its validity was certainly over."""
    end_ns = expiry_ns(facts, approve)
    if end_ns is not None:
        after = (n for n, event in enumerate(facts.history.events) if event.at_ns > end_ns)
        at = next(after, None)
        if at is not None:
            yield Bar(at, "had expired", end_ns)


def expiry_ns(facts: Facts, approve: Approve) -> int | None:
    """The observer's time by which its validity was certainly over; None where that cannot be told.

    It was asked for before a status showed so. It may have been asked for again when directions or a withdrawal of authority
    came; and a wall clock that jumps moves its end.
    """
    renewed = facts.steers(approve.of) or any(not granted for one in facts.authority.values() for _, granted in one)
    first = next(asking(facts, approve), None)
    if approve.validity_ns is None or first is None or renewed or facts.struck("jump"):
        return None
    return facts.at_ns(first.answered) + approve.validity_ns + facts.history.declared.timer_grain_ns


# --- who may decide ---------------------------------------------------------------------------------------------------


def is_stranger(facts: Facts, actor: str | None, index: int) -> bool:
    """Had this actor never had any authority by event `index`?"""
    granted = any(at < index for at, given in facts.authority.get(actor or "", ()) if given)
    return actor is not None and actor not in AUTHORISED and not granted


def lookups(facts: Facts, approve: Approve, start: int, end: int) -> tuple[Request, ...]:
    """Questions about the authority behind an approval, asked and answered between two events."""
    return tuple(
        one
        for one in facts.others
        if one.op == approve.id
        and start < one.at
        and one.reply is not None
        and one.reply.kind == "found"
        and one.reply.delivery == "sent"
        and one.replied_at is not None
        and one.replied_at < end
    )


def was_told_yes(facts: Facts, actor: str | None, question: Request) -> bool:
    """May the desk have said that this actor has authority? It may have looked at any time while it was asked."""
    replied = question.at if question.replied_at is None else question.replied_at
    return facts.has_authority(actor, question.at) or facts.has_authority(actor, replied)

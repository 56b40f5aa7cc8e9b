"""DUR-10 14: recovery decides by what it finds, and by nothing else; what it restores is what there was."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from scenarios.history import History, Replied
from scenarios.index import Facts, look
from scenarios.lineage import Use, uses
from scenarios.obligations.registry import blame, obligation
from scenarios.observed import Request
from scenarios.plan import Requester
from scenarios.verdict import Finding, Violation, short


@obligation(
    "DUR-10",
    kind="safety",
    profile="Durable",
    promise="From the same journal and the same evidence from outside, recovery decides the same: whether something is asked "
    "for again or looked up, under which key, and with which parameters.",
    tested_by="a second crash before the first recovery has learnt anything",
    anomaly=("torn view", "key drift"),
    minimum=1,
    causes=(
        "what to do about an unknown outcome is drawn by chance, or depends on the time of day or on the process",
        "recovery goes through what is open in an order that changes, and decides by what it comes to first",
        "a key or a parameter is made anew in each recovery instead of being read",
    ),
    learnt_from=("F05", "F30", "F32"),
)
def recovery_decides_alike(history: History) -> Finding:
    facts = look(history)
    pairs = [pair for op in facts.calls for pair in _decisions(facts, op)]
    found = (violation for pair in pairs if (violation := _differ(*pair)))
    return Finding(len(pairs), tuple(found))


def _decisions(facts: Facts, op: str) -> Iterator[tuple[Request, Request]]:
    """The first requests about `op` of two recoveries that stood before the same evidence.

    It had been sent, and nothing was known of it, before the first crash; what the first recovery sent was never answered. Each
    sender came up after the crash that it recovers from.
    """
    sent = [one for one in facts.sent if one.op == op]
    for first, second in itertools.pairwise(facts.deaths):
        before = [one for one in sent if one.at < first]
        begun = [one for one in sent if first < one.at < second and not facts.late(one)]
        again = next((one for one in sent if one.at > second and not facts.late(one)), None)
        was_sent = any(not one.event.lookup for one in before)
        if not (was_sent and begun) or again is None or not _is_blank(facts, again, (*before, *begun)):
            continue
        if _recovers(facts, begun[0], first) and _recovers(facts, again, second):
            yield begun[0], again


def _is_blank(facts: Facts, again: Request, earlier: tuple[Request, ...]) -> bool:
    """Was nothing known by then of what all the earlier requests had come to, and nothing said about the operation?"""
    silent = all(_told_nothing(one, again.at) for one in earlier)
    told = facts.notices(again.op) or facts.steers(again.op) or facts.expired(again.op, again.at)
    return silent and not told


def _told_nothing(request: Request, index: int) -> bool:
    """Was nothing whatever said about this request by event `index`, or only that the service failed?"""
    return request.replied_at is None or request.replied_at > index or request.unanswered


def _recovers(facts: Facts, request: Request, death: int) -> bool:
    """Was this sent by a worker that came up after that death?"""
    return facts.started.get(request.event.incarnation, -1) > death


def _differ(one: Request, two: Request) -> Violation | None:
    """Two decisions about one operation that are not the same."""
    if one.event.lookup != two.event.lookup:
        asked, repeated = (one, two) if one.event.lookup else (two, one)
        sentence = (
            f"Two recoveries of {one.op!r} stood before the same evidence: worker {asked.event.incarnation} looked it up, and "
            f"worker {repeated.event.incarnation} asked for it again."
        )
        return blame("torn view", sentence, (one.at, two.at), one.op)
    if (one.event.key, one.event.params) != (two.event.key, two.event.params):
        what = "key" if one.event.key != two.event.key else "parameters"
        sentence = f"Two recoveries of {one.op!r} stood before the same evidence and sent it with different {what}."
        return blame("key drift", sentence, (one.at, two.at), one.op)
    return None


@obligation(
    "DUR-14",
    kind="safety",
    profile="Durable",
    promise="Restored in the same process or in a fresh one, a run goes on with the values that had been seen, whatever their "
    "size.",
    tested_by="answers of lengths around every usual limit, handed on after the worker or the engine has died",
    anomaly=("forked lineage", "torn view"),
    minimum=3,
    causes=(
        "results over some size are cut, or kept elsewhere and not found again",
        "the value in memory and the value read back are encoded differently",
        "small results are replayed and large ones worked out anew",
    ),
    learnt_from=("F08", "F42"),
    scenarios=("sizes", "vault"),
)
def restored_value_is_the_value_seen(history: History) -> Finding:
    facts = look(history)
    sized = [call for call in facts.calls.values() if "answer_bytes" in call.params]
    tested = sum(_was_restored(facts, call, death) for death in facts.deaths for call in sized)
    found = (violation for call in sized if (violation := _altered(facts, call)))
    return Finding(tested, tuple(found))


def _was_restored(facts: Facts, call: Requester, death: int) -> bool:
    """Was this accepted before that death, and used after it?"""
    known = facts.accepted_at.get(call.id)
    return known is not None and known < death and any(use.at > death for use in uses(facts, call.id))


def _altered(facts: Facts, call: Requester) -> Violation | None:
    """A use of this operation's answer that is no answer it was ever given."""
    mine = {request.event.call for request in facts.requests if request.op == call.id}
    replies = [
        (at, event)
        for at, event in enumerate(facts.history.events)
        if isinstance(event, Replied) and event.call in mine and event.nonce is not None
    ]
    given = {event.nonce for _, event in replies} | {one.nonce for one in facts.notices(call.id)}
    for use in uses(facts, call.id):
        if use.nonce not in given and replies:
            name = "forked lineage" if use.by == "request" else "torn view"
            return blame(name, _sentence(call, use, replies[0][1].nonce or ""), (replies[0][0], use.at), call.id)
    return None


def _sentence(call: Requester, use: Use, answered: str) -> str:
    return (
        f"{call.id!r} was answered with {len(answered)} characters ({short(answered)}), and {len(use.nonce)} other ones "
        f"({short(use.nonce)}) were {use.where}."
    )

"""APR-1 2 3 4: what somebody has to approve leaves with a decision that is good for it as it leaves, or not at all."""

from __future__ import annotations

from scenarios.consent import (
    ON_ITS_WAY_NS,
    asking,
    bars,
    counting,
    directed,
    is_asked_again,
    is_outdated,
    lookups,
    release,
    released_at,
    was_never_proposed,
    was_told_yes,
)
from scenarios.history import History
from scenarios.index import Facts, look
from scenarios.obligations.registry import blame, obligation
from scenarios.observed import Command, Request
from scenarios.plan import Approve
from scenarios.verdict import Finding, Violation


@obligation(
    "APR-1",
    kind="safety",
    profile="Control",
    promise="An operation that needs an approval is not dispatched before it was given.",
    tested_by="decisions that come late or not at all, processes killed while a decision is waited for",
    anomaly="out of order",
    minimum=3,
    causes=(
        "the operation is claimable as soon as what comes before the approval has ended",
        "a restart puts everything that has not ended back into the queue",
        "of several approvals that are asked for, any one lets everything go",
    ),
    learnt_from=(),
)
def gated_operation_waits_for_approval(history: History) -> Finding:
    facts = look(history)
    approvals = history.plan.approvals()
    tested = [one for one in approvals if any(seen.answered < released_at(facts, one) for seen in asking(facts, one))]
    found = []
    for approve in approvals:
        sent = release(facts, approve)
        if sent is not None and not counting(facts, approve, sent.at):
            sentence = f"{approve.of!r} was dispatched before anybody had approved it at {approve.id!r}."
            found.append(blame("out of order", sentence, (sent.at,), approve.of))
    return Finding(len(tested), tuple(found))


@obligation(
    "APR-2",
    kind="safety",
    profile="Control",
    promise="An approval is good for one operation with the parameters that were shown: when they change, it takes a new one.",
    tested_by="parameters changed while the decision is waited for, or between the decision and the release",
    anomaly="stale acceptance",
    minimum=2,
    causes=(
        "a decision names the operation, and nothing of what it was to do",
        "what the decision is bound to is stored, and not compared",
        "it is compared as the decision is taken, and not again as the operation leaves",
    ),
    learnt_from=(),
)
def approval_is_bound_to_parameters(history: History) -> Finding:
    facts = look(history)
    found, tested = [], 0
    for approve in history.plan.approvals():
        changes = directed(facts, approve, released_at(facts, approve))
        first = next(asking(facts, approve), None)
        tested += sum(first is not None and first.answered < change.asked_at for change in changes)
        sent = release(facts, approve)
        if sent is None or not (decisions := counting(facts, approve, sent.at)):
            continue
        if all(was_never_proposed(facts, approve, one) for one in decisions):
            sentence = f"{approve.of!r} was dispatched by a decision about something that was never proposed."
            found.append(blame("stale acceptance", sentence, (decisions[-1].asked_at, sent.at), approve.of))
            continue
        of_old = bool(changes) and all(_is_of_old(facts, approve, one, changes[-1], sent.at) for one in decisions)
        if of_old and not facts.late(sent):
            sentence = (
                f"{approve.of!r} was changed after {approve.id!r} had been asked, and was dispatched by a decision about "
                "what it had been before."
            )
            evidence = (changes[-1].ok_at or changes[-1].asked_at, decisions[-1].asked_at, sent.at)
            found.append(blame("stale acceptance", sentence, evidence, approve.of))
    return Finding(tested, tuple(found))


def _is_of_old(facts: Facts, approve: Approve, decision: Command, change: Command, index: int) -> bool:
    """Is this decision certainly about what was proposed before the change?"""
    return decision.digest is not None and is_outdated(facts, approve, decision.digest, change, index)


@obligation(
    "APR-3",
    kind="safety",
    profile="Control",
    promise="What was denied, or not approved and released while its approval was valid, is not dispatched any more.",
    tested_by="denials, decisions that come after the validity is over, and workers that are down until it is",
    anomaly="resurrection",
    minimum=2,
    causes=(
        "a denial ends the wait as an approval does, and nobody looks at which it was",
        "the end of the validity is a timer that a restart forgets",
        "validity is looked at as the decision comes, and not as the operation leaves",
    ),
    learnt_from=(),
)
def denied_or_expired_is_not_dispatched(history: History) -> Finding:
    facts = look(history)
    approvals = history.plan.approvals()
    tested = [one for one in approvals if any(bar.at < released_at(facts, one) for bar in bars(facts, one))]
    found = (_despite_bar(facts, approve) for approve in approvals)
    return Finding(len(tested), tuple(one for one in found if one is not None))


def _despite_bar(facts: Facts, approve: Approve) -> Violation | None:
    sent = release(facts, approve)
    for bar in bars(facts, approve):
        if sent is None or sent.at <= bar.at or is_asked_again(facts, approve, bar, sent.at):
            continue
        if bar.end_ns is None or not _may_have_left_in_time(facts, approve, bar.end_ns, sent):
            sentence = f"{approve.id!r} {bar.words}, and {approve.of!r} was dispatched after that."
            return blame("resurrection", sentence, (bar.at, sent.at), approve.of)
    return None


def _may_have_left_in_time(facts: Facts, approve: Approve, end_ns: int, sent: Request) -> bool:
    """May it have been approved and released before `end_ns`, and only have come to its receiver later?"""
    in_time = [one for one in counting(facts, approve, sent.at) if facts.at_ns(one.asked_at) <= end_ns]
    if not in_time:
        return False
    held_up = facts.late(sent) or bool(facts.paused.get(sent.event.incarnation)) or facts.held_up(sent.at)
    return held_up or sent.event.at_ns <= end_ns + ON_ITS_WAY_NS + facts.lost_ns(
        end_ns - ON_ITS_WAY_NS, sent.event.at_ns
    )


@obligation(
    "APR-4",
    kind="safety",
    profile="Control",
    promise="The approver's authority is looked at again when the operation is released.",
    tested_by="the approver's authority withdrawn between the decision and the release",
    anomaly="stale acceptance",
    minimum=1,
    causes=(
        "authority is looked at as the decision comes, and never again",
        "the answer is kept, and good for as long as the process lives",
        "when nobody can tell, the answer counts as yes",
    ),
    learnt_from=(),
)
def authority_is_checked_at_release(history: History) -> Finding:
    facts = look(history)
    found, tested = [], 0
    for approve in history.plan.approvals():
        sent = release(facts, approve)
        end = released_at(facts, approve)
        decisions = counting(facts, approve, end)
        withdrawn = sorted({at for one in decisions for at in _withdrawals(facts, one, end)})
        tested += len(withdrawn)
        if sent is not None and withdrawn and not any(_was_entitled(facts, approve, one, sent) for one in decisions):
            sentence = (
                f"Whoever had approved {approve.of!r} had lost their authority before it was released, and it was sent."
            )
            found.append(blame("stale acceptance", sentence, (withdrawn[-1], sent.at), approve.of))
    return Finding(tested, tuple(found))


def _withdrawals(facts: Facts, decision: Command, end: int) -> list[int]:
    """When the authority of who decided was withdrawn after the decision and before event `end`."""
    changes = facts.authority.get(decision.actor or "", ())
    return [at for at, granted in changes if not granted and decision.asked_at < at < end]


def _was_entitled(facts: Facts, approve: Approve, decision: Command, sent: Request) -> bool:
    """May the harness have found authority behind this decision when it released the operation?

    The last word of the desk counts, as what follows it can be on its way for long. Who never asked knows nothing.
    """
    asked = lookups(facts, approve, decision.asked_at, sent.at)
    if asked:
        return was_told_yes(facts, decision.actor, asked[-1])
    return facts.has_authority(decision.actor, sent.at) and not _withdrawals(facts, decision, sent.at)

"""Reasons that a plan has in itself for a run to end without success, and whether they can have come about by some event.

Tries and time that are used up, means that are spent, decisions, verdicts, and steps that are to fail. Said generously, as in
`scenarios.endings`: what can have been a reason counts as one. `may_fail_by_itself` asks of each whether it can have come
about; `other_failure`, for judges who cannot tell so much, only whether there is any.
"""

from __future__ import annotations

from scenarios.history import Died, Paused
from scenarios.index import Facts
from scenarios.plan import Approve, Artifact, Call, Check, Fail, Leaf, Model
from scenarios.remembered import latest
from scenarios.spending import charges, demand, reserve


def other_failure(facts: Facts, index: int) -> bool:
    """Was there, by event `index`, a reason for the run to have failed that no lost outcome has to do with?

    It may be that it was refused something, was to fail, was stopped, ran out of tries, time or means, or met code that is
    not its own.
    """
    stopped = any(one.asked_at < index for one in facts.commands if one.verb in {"cancel", "decide"})
    return is_fragile(facts) or stopped or facts.refusal_before(index) or facts.code_changed()


@latest
def is_fragile(facts: Facts) -> bool:
    """May the plan fail by itself?"""
    plan = facts.history.plan
    limited = plan.allowance is not None or plan.deadline_ns is not None
    return limited or any(_may_end_its_run(leaf) for leaf in plan.leaves())


def _may_end_its_run(leaf: Leaf) -> bool:
    """May this leaf end its run by what it meets, with no outcome lost?"""
    match leaf:
        case Call():
            return leaf.tries is not None or leaf.elapsed_ns is not None or "poison" in leaf.params
        case Model():
            return "wrong" in leaf.script
        case Fail() | Approve() | Check():
            return True
        case _:
            return False


def may_fail_by_itself(facts: Facts, index: int) -> bool:
    """Can a run have met by event `index` something over which its plan says that it ends?"""
    leaves = facts.history.plan.leaves()
    return _has_spent_all(facts, index) or _is_late(facts, index) or any(_may_fail(facts, one, index) for one in leaves)


def _may_fail(facts: Facts, leaf: Leaf, index: int) -> bool:
    match leaf:
        case Call():
            return _has_no_try_left(facts, leaf, index)
        case Model():
            return "wrong" in leaf.script and any(one.at < index for one in facts.dispatches(leaf.id))
        case Fail():
            return next(facts.missing(leaf.id, index), None) is None
        case Approve():
            return _may_be_refused(facts, leaf, index)
        case Check():
            return leaf.required and _may_have_failed(facts, leaf, index)
        case _:
            return False


def _has_no_try_left(facts: Facts, call: Call, index: int) -> bool:
    """May all its tries or its time be used up, or can it not be sent at all? A death may have taken a try that nobody saw."""
    if "poison" in call.params:
        return True
    sent = [one for one in facts.dispatches(call.id) if one.at < index]
    used_up = call.tries is not None and len(sent) + _mishaps(facts, index) >= call.tries
    return used_up or (call.elapsed_ns is not None and any(one.answer is None for one in sent))


def _mishaps(facts: Facts, index: int) -> int:
    return sum(isinstance(facts.history.events[at], Died | Paused) for at in facts.halts if at < index)


def _may_be_refused(facts: Facts, approve: Approve, index: int) -> bool:
    """Can its decision have been no, too late, or worth nothing?"""
    asks = [ask.event for one in facts.decisions(approve.id) if one.asked_at < index for ask in one.asks]
    is_denied = any(ask.decision != "approve" for ask in asks)
    is_changed = bool(facts.steers(approve.of)) or facts.struck("revoke", index) or any(facts.authority.values())
    is_over = approve.validity_ns is not None and _since_ns(facts, index) >= approve.validity_ns
    unsaid = any(one.at < index and not one.told for one in facts.lookups(approve.id))
    return is_denied or is_changed or is_over or unsaid


def _may_have_failed(facts: Facts, check: Check, index: int) -> bool:
    """Was it answered anything but a pass, or nothing; or can what it is about have become another version meanwhile?"""
    plan = facts.history.plan
    of = plan.leaf(check.of)
    versions = sum(isinstance(of, Artifact) and one.name == of.name for one in plan.artifacts())
    asked = [one for one in facts.dispatches(check.id) if one.at < index]
    passed = (one.reply is not None and one.reply.delivery == "sent" and one.reply.outcome == "passed" for one in asked)
    return versions > 1 or not all(passed)


def _has_spent_all(facts: Facts, index: int) -> bool:
    """Can what the run may use have been too little for what came next? Each mishap may have cost as much as all of it."""
    plan = facts.history.plan
    allowance = plan.allowance
    if allowance is None:
        return False
    if any(child.share is not None for child in plan.children()) or facts.steers():
        return True
    times = 1 + _mishaps(facts, index)
    sent = sum(one.at < index and not one.event.lookup for one in facts.sent)
    if allowance.calls is not None and sent + times * demand(facts, "calls") > allowance.calls - reserve(
        allowance, "calls"
    ):
        return True
    tokens = sum(one.most for one in charges(facts) if one.at < index)
    if allowance.tokens is not None and (
        tokens + times * demand(facts, "tokens") > allowance.tokens - reserve(allowance, "tokens")
    ):
        return True
    return allowance.elapsed_ns is not None and _may_be_over(facts, index, allowance.elapsed_ns)


def _is_late(facts: Facts, index: int) -> bool:
    given_ns = facts.history.plan.deadline_ns
    return given_ns is not None and _may_be_over(facts, index, given_ns)


def _may_be_over(facts: Facts, index: int, given_ns: int) -> bool:
    """Can so much time since the beginning have passed, or be sure to pass before what the run waits for?"""
    plan = facts.history.plan
    naps_ns = sum(one.ns for one in plan.sleeps()) + sum(one.timeout_ns or 0 for one in plan.waits())
    return _since_ns(facts, index) + naps_ns >= given_ns


def _since_ns(facts: Facts, index: int) -> int:
    """For how long the run can have been there by event `index`."""
    first = next(iter(facts.asked("start")), None)
    return facts.at_ns(index) - facts.at_ns(first.at) if first is not None else facts.at_ns(index)

"""Endings: whether anything an outside observer knows of can be the reason for a run to have ended without success.

Said generously: whatever a correct harness may end a run over counts, seen or possible, and then nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterator

from scenarios.history import ACCEPTED, TERMINAL, Started
from scenarios.index import Facts
from scenarios.observed import Request, Seen
from scenarios.plan import SEMANTICS, Call, Compensate
from scenarios.reasons import may_fail_by_itself
from scenarios.repetition import answer_before

#: After this many deaths a harness may well give a run up as one that kills its workers.
_ESCALATION_DEATHS = 3
#: A harness that limits tries where its plan does not has made this many before it gives up.
_TRIES = 2
#: What is done to storage, clocks, code and keys: a run may end over it, with a clear word.
_HARD = ("full", "eio", "flip", "wipe", "jump", "deploy", "second", "expire")
#: States of operations that keep no run from going on.
_CLEAR = ACCEPTED | {"planned", "skipped"}
#: Receivers that a request can be sent to again whatever became of the one before.
_REPEATABLE = frozenset({"keyed", "read", "metered"})


def causeless_ends(facts: Facts) -> Iterator[Seen]:
    """Statuses that show the run failed, blocked or cancelled when nothing can have been a reason for it."""
    for seen in facts.statuses:
        if seen.status.state in TERMINAL - {"done"} and not _may_have_ended(facts, seen.answered):
            yield seen


def _may_have_ended(facts: Facts, index: int) -> bool:
    """Can there have been a reason by event `index`: in the plan, a command, the code, storage, deaths, or a receiver?"""
    plan = facts.history.plan
    return (
        facts.refusal_before(index)
        or any(one.asked_at < index for one in facts.ordered("cancel"))
        or may_fail_by_itself(facts, index)
        or facts.code_changed()
        or _met_other_code(facts, index)
        or facts.is_stormy
        or "sizes" in plan.needs()
        or may_be_escalated(facts, index)
        or any(facts.struck(action, index) for action in _HARD)
        or any(_may_be_given_up(facts, op, index) for op in {one.op for one in facts.sent if one.at < index})
        or any(_may_have_been_on_its_way(facts, op, index) for op in facts.calls)
    )


def may_be_escalated(facts: Facts, index: int) -> bool:
    """Had so many processes died by event `index` that work may be given up as one that kills its workers?"""
    deaths = sum(at < index for at in facts.deaths)
    return deaths >= min(_ESCALATION_DEATHS, facts.history.declared.deaths_max or _ESCALATION_DEATHS)


def may_be_set_aside(facts: Facts, index: int) -> bool:
    """May the whole run have been given up so by event `index`? Not while somebody has worked on it since the last death."""
    last = max((at for at in facts.deaths if at < index), default=-1)
    is_taken_up = any(last < one.at < index and not facts.late(one) for one in facts.sent)
    return may_be_escalated(facts, index) and not is_taken_up


def _met_other_code(facts: Facts, index: int) -> bool:
    """Had code come up that the run may not have been written for?"""
    code = facts.history.plan.code
    started = (event for event in facts.history.events[:index] if isinstance(event, Started))
    return len({event.code for event in started} | ({code} if code is not None else set())) > 1


def _may_be_given_up(facts: Facts, op: str, index: int) -> bool:
    """Was it refused, tried more than once in vain, or sent where nobody can find out what became of it?"""
    sent = [one for one in facts.dispatches(op) if one.at < index]
    if any(one.refused for one in sent):
        return True
    vain = [one for one in sent if one.answer is None and not one.told]
    if len(vain) >= _TRIES or _is_old(facts, sent, index):
        return True
    if _can_be_repeated(facts, op):
        return False
    return any(_is_unclear(facts, one, index) for one in sent) and not _was_found(facts, op, index)


def _may_have_been_on_its_way(facts: Facts, op: str, index: int) -> bool:
    """Can a request that nobody saw have left, to where nobody can find out about it, as its worker was stopped?"""
    if _can_be_repeated(facts, op) or any(one.at < index for one in facts.dispatches(op)):
        return False
    return any(at < index and next(facts.missing(op, at), None) is None for at in facts.halts)


def _can_be_repeated(facts: Facts, op: str) -> bool:
    """May it be sent again whatever became of it, or does its run go on without it?"""
    leaf = facts.calls.get(op)
    semantics = SEMANTICS[leaf.service] if leaf is not None else "keyed"
    return semantics in _REPEATABLE or (isinstance(leaf, Call) and leaf.tolerate)


def _is_old(facts: Facts, sent: list[Request], index: int) -> bool:
    """May its receiver have forgotten its key by then?"""
    lifetime_ns = facts.history.declared.key_lifetime_ns
    return lifetime_ns is not None and bool(sent) and facts.at_ns(index) - sent[0].event.at_ns >= lifetime_ns


def _is_unclear(facts: Facts, request: Request, index: int) -> bool:
    """Can the harness have been left not knowing what became of it, or have given up on a slow answer?"""
    return facts.uncertain(request, index) or facts.asleep(request) or not facts.is_prompt(request)


def _was_found(facts: Facts, op: str, index: int) -> bool:
    """Did its receiver say, of one that can be asked, that it had been done?"""
    lookups = [one for one in facts.lookups(op) if one.at < index]
    return bool(lookups) and all(one.answer is not None for one in lookups) and answer_before(facts, op, index)


def idle_end(facts: Facts) -> tuple[Seen, str] | None:
    """The last status, where it shows the run blocked with nothing in doubt and nothing refused any more, and a call whose turn
    it is; None where anything may keep that from being sent.
    """
    last, plan = facts.last_seen(), facts.history.plan
    if last is None or last.status.state != "blocked" or not last.status.operations:
        return None
    limited = plan.allowance is not None or plan.deadline_ns is not None
    stopped = any(one.verb in {"cancel", "pause"} for one in facts.commands)
    hard = facts.is_stormy or any(facts.struck(action) for action in _HARD)
    if limited or stopped or hard or _met_other_code(facts, last.answered) or plan.approvals() or plan.checks():
        return None
    if may_be_set_aside(facts, last.answered) or _is_in_doubt_unseen(facts, last):
        return None
    if any(shown.state not in _CLEAR for shown in last.status.operations):
        return None
    ready = next(reached(facts, last), None)
    return None if ready is None else (last, ready)


def _is_in_doubt_unseen(facts: Facts, seen: Seen) -> bool:
    """Was something sent that a status does not list, such as what a child did, and that nobody may know the outcome of?"""
    unlisted = (one for one in facts.sent if one.at < seen.answered and seen.operation(one.op) is None)
    return any(facts.uncertain(one, seen.answered) and not facts.notices(one.op) for one in unlisted)


def reached(facts: Facts, seen: Seen) -> Iterator[str]:
    """Calls that a status shows as planned, with everything before them accepted."""
    accepted = seen.accepted()
    for op in facts.calls:
        shown = seen.operation(op)
        has_its_turn = not facts.history.plan.guards(op) and not isinstance(facts.calls[op], Compensate)
        if shown is not None and shown.state == "planned" and has_its_turn and facts.ancestors[op] <= accepted.keys():
            yield op

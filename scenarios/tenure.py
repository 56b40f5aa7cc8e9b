"""Who had an operation in hand, and when: takeovers, answers that came too late, deaths over one operation, twins.

A worker has an operation in hand from its request on until a definite answer was sent. What may have been on its way since
before its worker lost its right to work is no sign of anything, and is left out.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import attrs

from scenarios.history import Died, Fired, Paused, Resumed, Started
from scenarios.index import PROMPT_NS, Facts
from scenarios.interruption import ASKING_ACTIONS, actions_of
from scenarios.observed import Request, Seen
from scenarios.repetition import timely

#: Of the time its workers are told to wait, the part that certainly had not run out.
_PATIENCE = 0.7
#: What happens to one request, or to clocks, or beside: nobody dies of it.
_HARMLESS = frozenset({*ASKING_ACTIONS, "delay", "second", "jump", "crowd"})


@attrs.frozen
class Overtaken:
    """`old` had been sent when its worker was stopped; another sent `new` for the same operation before that one came back."""

    old: Request
    new: Request
    paused: int
    resumed: int


def overtaken(facts: Facts) -> Iterator[Overtaken]:
    """Requests whose answers reached their stopped worker, if at all, when another had the operation in hand already."""
    for worker, paused, resumed in stops(facts):
        for old in facts.sent:
            mine = old.event.incarnation == worker and old.at < paused and not old.event.lookup
            if not mine or old.op not in facts.calls or (old.replied_at is not None and old.replied_at <= paused):
                continue
            new = next((one for one in timely(facts, old.op) if _takes_over(facts, one, worker, paused, resumed)), None)
            if new is not None:
                yield Overtaken(old, new, paused, resumed)


def stops(facts: Facts) -> Iterator[tuple[int, int, int]]:
    """Every stretch for which a worker was stopped and came back from: incarnation, and the two events."""
    back: dict[int, list[int]] = {}
    for index, event in enumerate(facts.history.events):
        if isinstance(event, Resumed):
            back.setdefault(event.incarnation, []).append(index)
    for worker, pauses in facts.paused.items():
        for paused in pauses:
            resumed = next((at for at in back.get(worker, ()) if at > paused), None)
            if resumed is not None:
                yield worker, paused, resumed


def _takes_over(facts: Facts, new: Request, worker: int, paused: int, resumed: int) -> bool:
    """Did another worker, which then stayed at it, send this while `worker` was stopped?"""
    cut = facts.cut_at(new)
    is_other = new.event.incarnation != worker and paused < new.at < resumed
    return is_other and (cut is None or cut > resumed)


def is_known_only_by(facts: Facts, request: Request) -> bool:
    """Was its answer given to this request alone, so that whoever uses it has it from there?"""
    answer = request.answer
    others = (one.reply for one in facts.sent if one.event.call != request.event.call)
    return answer is not None and all(reply is None or reply.nonce != answer for reply in others)


def deaths_over(facts: Facts, op: str) -> tuple[int, ...]:
    """Deaths (indexes of `Died`) of workers that certainly had `op` in hand: they had just sent its latest request, and
    nothing had been answered. One that left as it was asked to has died of nothing.
    """
    sent = [one for one in facts.sent if one.op == op]
    found = []
    for index in facts.deaths:
        event = facts.history.events[index]
        last = next((one for one in reversed(sent) if one.at < index), None)
        if not isinstance(event, Died) or event.cause == "left" or last is None:
            continue
        if last.event.incarnation == event.incarnation:
            is_open = last.replied_at is None or last.replied_at > index
            if is_open and facts.is_young(last, _struck_ns(facts, last.at, index)) and not facts.late(last):
                found.append(index)
    return tuple(found)


def _struck_ns(facts: Facts, since: int, death: int) -> int:
    """When what made it die was done, if that is known: until a real process is gone for certain may take a while."""
    kills = [at for at, action, _ in facts.fired if action == "kill" and since < at < death]
    return facts.at_ns(kills[-1] if kills else death)


def long_held(facts: Facts) -> Iterator[Request]:
    """Requests that a worker in its right waited for, unhindered, for longer than a silent owner is waited for."""
    least_ns = facts.history.declared.lease_ns or PROMPT_NS
    for op in facts.calls:
        for request in timely(facts, op):
            end = request.replied_at
            if end is None or facts.at_ns(end) - request.event.at_ns <= least_ns or request.idle:
                continue
            if request.reply is not None and request.reply.delivery == "sent" and is_undisturbed(facts, request, end):
                yield request


def twins(facts: Facts) -> Iterator[tuple[Request, Request]]:
    """Two requests for one operation, the second sent while a living owner still waited for the answer of the first."""
    for op in facts.calls:
        for earlier, later in itertools.pairwise(timely(facts, op)):
            is_open = earlier.replied_at is None or earlier.replied_at > later.at
            waited_ns = facts.age_ns(earlier, later.event.at_ns)
            is_calm = waited_ns < patience_ns(facts) and is_undisturbed(facts, earlier, later.at)
            is_given_up = _was_dropped(facts, earlier, later) or _may_be_leaving(facts, earlier)
            is_kept = is_open and not is_given_up
            if is_kept and (is_calm or _is_within_lease(facts, earlier, later, waited_ns)):
                yield earlier, later


def _was_dropped(facts: Facts, earlier: Request, later: Request) -> bool:
    """May a worker have dropped a request of its own when its run was to stop or to pause, to send it again later?"""
    asks = (ask for one in facts.commands if one.verb in {"cancel", "pause"} for ask in one.asks)
    same = earlier.event.incarnation == later.event.incarnation
    end = len(facts.history.events)
    return same and any(ask.at < later.at and earlier.at < (ask.answered_at or end) for ask in asks)


def _is_within_lease(facts: Facts, earlier: Request, later: Request, waited_ns: int) -> bool:
    """Was it sent again, though its owner lived on and nobody can have missed it yet, when only who serves it had died?

    Known only where a harness tells for how long an owner may be silent: then a restart of its server is no reason to give
    away what somebody is at.
    """
    is_stormy = met_a_storm(facts, earlier, later.at)
    if waited_ns >= (facts.history.declared.lease_ns or 0) or is_stormy or _was_stopped(facts, earlier):
        return False
    passed = facts.history.events[earlier.at : later.at]
    died = [event for event in passed if isinstance(event, Died)]
    fired = [actions_of(event.label) for event in passed if isinstance(event, Fired)]
    kills = sum("kill" in actions for actions in fired)
    served_only = all(event.cause == "killed" and event.incarnation not in facts.workers for event in died)
    harmless = all(set(actions) <= _HARMLESS | {"kill"} for actions in fired)
    return (
        served_only and harmless and kills <= len(died) and not any(isinstance(one, Paused | Resumed) for one in passed)
    )


def patience_ns(facts: Facts, part: float = _PATIENCE) -> int:
    """How long a worker certainly waits for an answer before it may take it for lost; 0 where nobody has told it."""
    return int((facts.history.declared.call_timeout_ns or 0) * part)


def is_undisturbed(facts: Facts, request: Request, end: int) -> bool:
    """From the request on until event `end`: did every process live on, and did the world behave?

    A worker that has begun meanwhile is no disturbance, nor is one that was asked to leave and has left, nor a clock that has
    jumped.
    """
    if met_a_storm(facts, request, end) or _may_be_leaving(facts, request):
        return False
    passed = facts.history.events[request.at : end]
    blows = [one for one in passed if _is_blow(one) and not _is_of_leaving(one)]
    mine = any(isinstance(one, Died) and one.incarnation == request.event.incarnation for one in passed)
    return not blows and not mine and not _was_stopped(facts, request)


def _may_be_leaving(facts: Facts, request: Request) -> bool:
    """Was the worker of this request perhaps asked to leave? Certainly not where as many others have left as were asked to."""
    asked = sum(action == "leave" for _, action, _ in facts.fired)
    left = (one for one in facts.history.events if isinstance(one, Died) and one.cause == "left")
    return asked > sum(one.incarnation != request.event.incarnation for one in left)


def _is_of_leaving(event: object) -> bool:
    """Is it that somebody was asked to leave, or has left?"""
    if isinstance(event, Fired):
        return actions_of(event.label) == ("leave",)
    return isinstance(event, Died) and event.cause == "left"


def met_a_storm(facts: Facts, request: Request, end: int) -> bool:
    """Did the world misbehave between a request and event `end`, or so shortly before that nobody can tell when it was sent?"""
    begins, ends = facts.storm
    return facts.held_up(request.at) or (begins < end and request.at < ends)


def _is_blow(event: object) -> bool:
    if isinstance(event, Fired):
        return not set(actions_of(event.label)) <= _HARMLESS
    return isinstance(event, Died | Paused | Resumed)


def _was_stopped(facts: Facts, request: Request) -> bool:
    """Was its worker stopped as it was received?"""
    worker = request.event.incarnation
    return any(one == worker and paused < request.at < resumed for one, paused, resumed in stops(facts))


def is_calm(facts: Facts, seen: Seen, ns: int) -> bool:
    """Has everybody been there, with nothing happening to them, for `ns` before a status was asked and until its answer?"""
    since_ns = facts.at_ns(seen.asked) - ns
    before = facts.history.events[: seen.answered]
    last = {event.unit: event for event in before if isinstance(event, Started | Died)}
    recent = any(isinstance(event, _MISHAPS) for event in before if event.at_ns >= since_ns)
    is_down = any(isinstance(event, Died) for event in last.values())
    return not (recent or is_down or _is_stormy(facts, seen, since_ns))


def _is_stormy(facts: Facts, seen: Seen, since_ns: int) -> bool:
    """Did the world misbehave at any time from then on until a status was answered? What it held up takes its time after it."""
    begins, ends = facts.storm
    has_begun, has_ended = begins < min(ends, seen.answered), ends < seen.answered
    return has_begun and not (has_ended and facts.at_ns(ends) <= since_ns)


_MISHAPS = (Started, Died, Paused, Resumed, Fired)

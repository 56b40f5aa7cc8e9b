"""OWN-2 3 5 7: the word of an owner that has been replaced counts for nothing, here and at receivers, and is not lost."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from scenarios.history import History
from scenarios.index import Facts, look
from scenarios.lineage import uses
from scenarios.obligations.registry import blame, obligation
from scenarios.observed import Command, Request
from scenarios.plan import Call, Requester
from scenarios.tenure import Overtaken, is_known_only_by, overtaken, patience_ns
from scenarios.verdict import Finding, Violation, short

#: Directions that were taken into the state.
_TAKEN = frozenset({"released", "buffered"})
#: Of the time a worker is told to wait, the part after which an answer that lies there is taken for one, and not for a loss.
_STILL_GOOD = 0.9


@obligation(
    "OWN-2",
    kind="safety",
    profile="Ownership",
    promise="What the owner of an older generation brings is rejected: it neither counts nor overwrites anything.",
    tested_by="a worker stopped with an answer on its way to it, let go when another has the operation in hand",
    anomaly="stale acceptance",
    minimum=1,
    causes=(
        "whoever comes first wins, whether or not it still owns the operation",
        "a lease that ran out is noticed only when it is renewed",
        "the generation is compared in memory, and the result written in another transaction",
    ),
    learnt_from=("F17", "F34", "F47"),
)
def older_generation_is_rejected(history: History) -> Finding:
    facts = look(history)
    tested = [one for one in overtaken(facts) if is_known_only_by(facts, one.old)]
    found = {one.old.op: violation for one in tested if (violation := _won(facts, one))}
    seen = [one for one in tested if any(use.at > one.resumed for use in uses(facts, one.old.op))]
    return Finding(len(seen), tuple(found.values()))


def _won(facts: Facts, one: Overtaken) -> Violation | None:
    """Was the answer that only the stopped worker got accepted, though another had begun anew?"""
    at = _use_of(facts, one.old, one.resumed)
    if at is None:
        return None
    sentence = (
        f"Worker {one.old.event.incarnation} was stopped over {one.old.op!r}, worker {one.new.event.incarnation} had begun it "
        f"anew, and then {short(one.old.answer)}, the answer to the first, was accepted."
    )
    return blame("stale acceptance", sentence, (one.old.at, one.new.at, one.resumed, at), one.old.op)


def _use_of(facts: Facts, request: Request, after: int) -> int | None:
    """The first event after `after` that shows the answer of `request` as the accepted one."""
    for seen in facts.seen_after(after):
        if seen.accepted().get(request.op) == request.answer:
            return seen.answered
    uses = (one.at for one in facts.sent if one.at > after and one.carries.get(request.op) == request.answer)
    return next(uses, None)


@obligation(
    "OWN-3",
    kind="safety",
    profile="Ownership",
    promise="What a worker does counts only against the state that it had read: when that has changed since, it reads again.",
    tested_by="directions for an operation that a worker has claimed, and asks the approver's authority for",
    anomaly="stale acceptance",
    minimum=1,
    causes=(
        "what was read with the claim is sent, whatever has been written since",
        "only the owner is compared when a result is committed, not the version it was based on",
        "a list that was read before is written back whole",
    ),
    learnt_from=("F05", "F37", "F49"),
    scenarios=("direction",),
)
def state_that_was_read_is_the_state_that_counts(history: History) -> Finding:
    facts = look(history)
    exercised = 0
    found: list[Violation] = []
    for call in history.plan.calls():
        steers = [one for one in facts.steers(call.id) if one.ok_at is not None and one.disposition in _TAKEN]
        if not isinstance(call, Call) or not steers:
            continue
        exercised += any(_was_claimed(facts, call, one) for one in steers)
        violation = next(_outdated(facts, call, steers), None)
        found += [violation] if violation else []
    return Finding(exercised, tuple(found))


def _was_claimed(facts: Facts, call: Call, steer: Command) -> bool:
    """Had a worker asked for the authority that this call needs, before the direction, and not sent it yet?"""
    approvals = {approve.id for approve in facts.history.plan.approvals() if approve.of == call.id}
    asked = any(one.op in approvals and one.at < steer.asked_at for one in facts.others)
    return asked and not any(one.at < steer.asked_at for one in facts.dispatches(call.id))


def _outdated(facts: Facts, call: Call, steers: list[Command]) -> Iterator[Violation]:
    """Requests that say what a direction had replaced, which had been taken before they were sent."""
    for request in facts.dispatches(call.id):
        taken = [one for one in steers if one.ok_at is not None and one.ok_at < request.at]
        if not taken or facts.late(request):
            continue
        valid = {asked_for(one.payload.get("params"), request) for one in standing(steers, request.at)}
        replaced = {asked_for(one.payload.get("params"), request) for one in taken}
        replaced.add(asked_for(call.params, request))
        if request.event.params in replaced - valid:
            sentence = (
                f"{call.id!r} was to be done otherwise, which had been taken while a worker held it; it was sent as that "
                "worker had read it before."
            )
            yield blame("stale acceptance", sentence, (taken[-1].asked_at, taken[-1].ok_at or 0, request.at), call.id)


def standing(steers: Sequence[Command], index: int) -> tuple[Command, ...]:
    """Directions that may be the one in force at event `index`: none that certainly came after has been taken since."""
    asked = [one for one in steers if one.asked_at < index]
    taken = [one for one in asked if one.disposition in _TAKEN and one.ok_at is not None and one.ok_at < index]
    return tuple(one for one in asked if not any(one.precedes(later) for later in taken))


def asked_for(params: Mapping[str, Any] | None, request: Request) -> str:
    """What a request says that asks for `params` and hands on what `request` did, as receivers fingerprint it."""
    asked = json.dumps([dict(params or {}), dict(request.event.carries)], sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(asked.encode("ascii"), digest_size=16).hexdigest()


@obligation(
    "OWN-5",
    kind="safety",
    profile="Ownership",
    promise="A receiver that takes fencing tokens is sent the current one, which grows with every takeover, so that it can "
    "turn older ones away.",
    tested_by="kills and pauses over calls to a receiver that fences",
    anomaly="stale acceptance",
    minimum=2,
    causes=(
        "the token is recorded with the request, and repeated by whoever takes it over",
        "each worker counts its own tokens",
        "the token is the worker's id, which does not grow",
    ),
    learnt_from=("F34",),
)
def fencing_token_is_the_current_one(history: History) -> Finding:
    facts = look(history)
    exercised = 0
    found: list[Violation] = []
    for call in history.plan.calls():
        sent = facts.dispatches(call.id)
        if call.service != "fenced" or all(one.event.token is None for one in sent):
            continue
        pairs = list(_takeovers(facts, call))
        exercised += len(pairs)
        bare = next((one for one in sent if one.event.token is None), None)
        weak = next((pair for pair in pairs if _token(pair[1]) <= _token(pair[0])), None)
        if bare is not None:
            sentence = f"{call.id!r} was sent without the fencing token that other requests of it bring."
            found.append(blame("stale acceptance", sentence, (bare.at,), call.id))
        elif weak is not None:
            earlier, later = weak
            sentence = (
                f"Worker {later.event.incarnation} took {call.id!r} over from worker {earlier.event.incarnation} and sent "
                f"token {later.event.token} after {earlier.event.token}: the receiver cannot tell which of them is replaced."
            )
            found.append(blame("stale acceptance", sentence, (earlier.at, later.at), call.id))
    return Finding(exercised, tuple(found))


def _token(request: Request) -> int:
    return request.event.token or 0


def _takeovers(facts: Facts, call: Requester) -> Iterator[tuple[Request, Request]]:
    """The request with the newest token, and a later one by another worker that had taken over from its sender."""
    newest: Request | None = None
    for request in facts.dispatches(call.id):
        if facts.late(request) or request.at < facts.storm[1]:
            continue
        if newest is not None and newest.event.incarnation != request.event.incarnation:
            cut = facts.cut_at(newest)
            if cut is not None and cut < request.at:
                yield newest, request
        newest = request if newest is None or _token(request) > _token(newest) else newest


@obligation(
    "OWN-7",
    level="SHOULD",
    kind="safety",
    profile="Ownership",
    promise="What a replaced owner brings is kept for diagnosis, apart from the state.",
    tested_by="a worker stopped with an answer on its way to it, let go when another has the operation in hand",
    anomaly="amnesia",
    minimum=1,
    causes=(
        "an update that changes no row is taken for success and forgotten",
        "a stale result is logged by the worker that brings it, if at all",
        "whoever has lost its lease throws away what it was told",
    ),
    learnt_from=("F01",),
)
def rejected_result_is_kept(history: History) -> Finding:
    facts = look(history)
    exercised = 0
    found: dict[str, Violation] = {}
    inner = history.plan.operations_of_children()  # what became of these is in the journals of the children
    for one in overtaken(facts):
        # A journal without such a list is one that does not keep it; what is kept elsewhere nobody can see.
        last = next((said for said in reversed(facts.journals) if "rejected" in said.body.tells), None)
        if last is None or one.old.op in inner or not _had_time(facts, one, last.asked):
            continue
        exercised += 1
        if not any(kept.operation == one.old.op for kept in last.body.rejected):
            sentence = (
                f"Worker {one.old.event.incarnation} came back with what it had been told of {one.old.op!r}, which was "
                "another's by then; the journal keeps nothing of it."
            )
            found[one.old.op] = blame(
                "amnesia", sentence, (one.old.at, one.resumed, last.asked, last.answered), one.old.op
            )
    return Finding(exercised, tuple(found.values()))


def _had_time(facts: Facts, one: Overtaken, asked: int) -> bool:
    """Did the replaced worker get its answer in time, live on, and have two leases of undisturbed time to hand it in, with
    whoever takes it there for all of them?
    """
    lease_ns = facts.history.declared.lease_ns
    worker, away_ns = one.old.event.incarnation, facts.at_ns(one.resumed) - one.old.event.at_ns
    if lease_ns is None or one.old.answer is None or (one.old.replied_at or asked) > one.resumed or facts.is_stormy:
        return False
    gone = facts.died.get(worker, asked) < asked or any(one.resumed < at for at in facts.paused[worker])
    servers = [at for incarnation, at in facts.started.items() if incarnation not in facts.workers and at < asked]
    could_ns = facts.at_ns(max((one.resumed, *servers)))  # from then on nobody who would have taken it came up anew
    in_time = away_ns < patience_ns(facts, _STILL_GOOD) and facts.at_ns(asked) - could_ns >= 2 * lease_ns
    return in_time and not gone and not facts.death_between(one.resumed, asked)

"""EFF-1 2 3 11 12: every intended effect lands once, under one key with one meaning, and none comes from nowhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from scenarios.history import History, Received
from scenarios.index import Facts, look
from scenarios.joining import of_kind
from scenarios.obligations.registry import blame, obligation
from scenarios.observed import Request, Seen
from scenarios.outlived import put_to_test
from scenarios.plan import Requester
from scenarios.verdict import Finding, Violation


@obligation(
    "EFF-1",
    kind="safety",
    profile="Effects",
    promise="Behind a receiver that honours keys, each intended effect lands exactly once.",
    tested_by="kill at every barrier, and replies lost, at keyed services",
    anomaly="duplicate effect",
    minimum=3,
    causes=(
        "no key is sent with the call",
        "the key is made anew for every try or by every worker",
        "a result is accepted too late, so that the call is made again after its key has been forgotten",
    ),
    learnt_from=("F14", "F54"),
)
def keyed_effect_lands_once(history: History) -> Finding:
    facts = look(history)
    exercised = 0
    found: list[Violation] = []
    for call in facts.of("keyed"):
        dispatches = facts.dispatches(call.id)
        exercised += sum(put_to_test(facts, request) for request in dispatches)
        effects = [request.applied_at for request in dispatches if request.applied_at is not None]
        if len(effects) > 1 and not _forgotten(facts, call.id, effects):
            keyless = " (and not always with a key)" if any(one.event.key is None for one in dispatches) else ""
            sentence = (
                f"{call.id!r} was asked of {call.service}, which honours keys, {len(dispatches)} times{keyless}, and "
                f"took effect {len(effects)} times."
            )
            found.append(blame("duplicate effect", sentence, tuple(effects), call.id))
    return Finding(exercised, tuple(found))


def _forgotten(facts: Facts, op: str, effects: list[int]) -> bool:
    """Had the receiver forgotten the key of `op` between two effects: before its time, or because that was over?"""
    lifetime = facts.history.declared.key_lifetime_ns
    apart = facts.at_ns(effects[-1]) - facts.at_ns(effects[0])
    return facts.expired(op, effects[-1]) or (lifetime is not None and apart >= lifetime)


@obligation(
    "EFF-2",
    kind="safety",
    profile="Effects",
    promise="One operation keeps one key over every try and every worker; no two operations share one, and no new key is made "
    "to get past an unclear answer.",
    tested_by="kill at every barrier, and replies lost, at keyed services; runs side by side, and children of one name",
    anomaly="key drift",
    minimum=3,
    causes=(
        "the key is drawn at random for each try, or contains the number of the try",
        "the key contains the id of the worker or of the process",
        "the key is a digest of the parameters, which two operations can share",
        "the key lacks the id of the run, or of the child, and is the same in all of them",
    ),
    learnt_from=("F31", "F54"),
)
def one_operation_one_key(history: History) -> Finding:
    facts = look(history)
    exercised = 0
    found: list[Violation] = []
    owners: dict[tuple[str, str], Request] = {}
    for call in facts.of("keyed"):
        keyed = [request for request in facts.dispatches(call.id) if request.event.key is not None]
        exercised += max(len(keyed) - 1, 0)
        found.extend(_drifted(call, facts.dispatches(call.id) if keyed else ()))
        found.extend(_shared(owners, keyed))
    return Finding(exercised, (*found, *_shared_by_runs(history)))


def _drifted(call: Requester, sent: Sequence[Request]) -> Iterator[Violation]:
    """Two requests of one operation that do not have the same key; one of them may have none."""
    if call.service == "operation":  # to cancel long work, or to let it go, takes no key
        sent = [request for request in sent if request.event.key is not None]
    other = next((request for request in sent if request.event.key != sent[0].event.key), None)
    if other is not None:
        first, then = (f"key {one.event.key}" if one.event.key is not None else "no key" for one in (sent[0], other))
        sentence = f"{call.id!r} was sent with {first} and later with {then}."
        yield blame("key drift", sentence, (sent[0].at, other.at), call.id)


def _shared(owners: dict[tuple[str, str], Request], keyed: list[Request]) -> Iterator[Violation]:
    for request in keyed:
        owner = owners.setdefault((request.event.service, request.event.key or ""), request)
        if owner.op != request.op:
            sentence = f"{owner.op!r} and {request.op!r} were both sent with key {request.event.key}."
            yield blame("key drift", sentence, (owner.at, request.at), request.op)
            return


def _shared_by_runs(history: History) -> Iterator[Violation]:
    """The first request under a key that another run, this one or one beside it, has sent before."""
    owners: dict[tuple[str, str], tuple[int, Received]] = {}
    for index, event in of_kind(history, Received):
        if event.key is None or event.lookup:
            continue
        at, owner = owners.setdefault((event.service, event.key), (index, event))
        if owner.run != event.run:
            sentence = (
                f"Key {event.key} was sent for {owner.op!r} of run {owner.run!r}, and for run {event.run!r} as well."
            )
            yield blame("key drift", sentence, (at, index), event.op if event.run == history.run else owner.op)
            return


@obligation(
    "EFF-3",
    kind="safety",
    profile="Effects",
    promise="One key is never sent with two different sets of parameters.",
    tested_by="kill at every barrier, with operations that hand on what earlier ones answered",
    anomaly="key drift",
    minimum=3,
    causes=(
        "parameters are worked out again after a crash instead of recorded with the intent",
        "an earlier result was recomputed and came out different, while the key stayed",
        "two operations share one key",
    ),
    learnt_from=("F44", "F55"),
)
def one_key_one_meaning(history: History) -> Finding:
    facts = look(history)
    first: dict[tuple[str, str], Request] = {}
    exercised = 0
    found: dict[tuple[str, str], Violation] = {}
    for request in facts.requests:
        name = (request.event.service, request.event.key or "")
        if request.event.key is None or request.event.lookup:
            continue
        owner = first.setdefault(name, request)
        exercised += owner is not request
        if owner.event.params != request.event.params and name not in found:
            sentence = (
                f"Key {request.event.key} was sent for {owner.op!r} with one set of parameters and for {request.op!r} "
                "with another."
            )
            found[name] = blame("key drift", sentence, (owner.at, request.at), request.op)
    return Finding(exercised, tuple(found.values()))


@obligation(
    "EFF-11",
    kind="safety",
    profile="Effects",
    promise="When a run is reported done, every effect it planned has been applied.",
    tested_by="every interruption in a run that ends done",
    anomaly="lost effect",
    minimum=3,
    causes=(
        "an intent that was recorded but never dispatched counts as done after recovery",
        "a lost reply is taken for a success",
        "the end of the run is inferred from an empty queue",
    ),
    learnt_from=("F12", "F13", "F23"),
)
def done_means_every_effect(history: History) -> Finding:
    facts = look(history)
    done = next((seen for seen in facts.statuses if seen.status.state == "done"), None)
    if done is None:
        return Finding()
    exercised = 1 if any(at < done.asked and _has_struck(facts, at) for at in facts.troubles) else 0
    found = [
        blame(
            "lost effect",
            f"Run {history.run!r} was shown done, but {call.id!r} had never taken effect at {call.service}.",
            (*(request.at for request in facts.dispatches(call.id) if request.at < done.answered), done.answered),
            call.id,
        )
        for call in (*facts.calls.values(), *history.plan.artifacts())
        if facts.is_settled(done, call.id) and not _applied_before(facts, call.id, done.answered)
    ]
    return Finding(exercised, tuple(found))


def _has_struck(facts: Facts, at: int) -> bool:
    """Is this trouble more than an order to kill or to stop a process? Such a one goes on until its end is on record."""
    return all(index != at or action not in _ENDS_PROCESSES for index, action, _ in facts.fired)


#: Interruptions that leave a death or a stop of their own on record.
_ENDS_PROCESSES = frozenset({"kill", "power", "pause"})


def _applied_before(facts: Facts, op: str, index: int) -> bool:
    """Of an upload, that is its commit: a part that is staged is nobody's effect yet."""
    return any(
        request.applied_at is not None and request.applied_at < index
        for request in facts.sent
        if request.op == op and request.event.part is None
    )


@obligation(
    "EFF-12",
    kind="safety",
    profile="Effects",
    promise="No effect without a durable intent: once a request has gone out, the harness never again says that the operation "
    "is only planned or that the run is unknown.",
    tested_by="kill and power loss between the intent and the effect",
    anomaly="phantom effect",
    minimum=3,
    causes=(
        "the intent is written after the call, or in memory only",
        "the intent is written but not synced before the request leaves",
        "recovery puts an operation that was under way back among those not begun",
    ),
    learnt_from=("F18", "F56"),
)
def no_effect_without_intent(history: History) -> Finding:
    facts = look(history)
    dispatched = [request for request in facts.requests if not request.event.lookup]
    tested = [
        death for death in facts.deaths if any(request.at < death for request in dispatched) and facts.seen_after(death)
    ]
    found: dict[str, Violation] = {}
    for seen in facts.statuses:
        for request in dispatched:
            emptied = facts.struck("wipe", seen.answered)
            if request.at < seen.asked and not emptied and (violation := _phantom(facts, request, seen)):
                found.setdefault(request.op, violation)
    return Finding(len(tested), tuple(found.values()))


def _phantom(facts: Facts, request: Request, seen: Seen) -> Violation | None:
    evidence = (request.at, seen.asked, seen.answered)
    if seen.status.state == "unknown":
        sentence = f"{request.op!r} had been asked of {request.event.service}; a status asked later knows no such run."
        return blame("phantom effect", sentence, evidence, request.op)
    shown = seen.operation(request.op)
    if shown is not None and shown.state == "planned" and not _came_to_nothing(facts, request, seen):
        sentence = (
            f"{request.op!r} had been asked of {request.event.service}; a status asked later says it is only planned."
        )
        return blame("phantom effect", sentence, evidence, request.op)
    return None


def _came_to_nothing(facts: Facts, request: Request, seen: Seen) -> bool:
    """Had the receiver said, at once or when it was asked later, that the request had done nothing?"""
    asked = (one for one in facts.lookups(request.op) if request.at < one.at < seen.answered)
    return request.idle or any(one.reply is not None and one.reply.kind == "missing" for one in asked)

"""EFF-4 5 6 8: what a harness may do, and say, about a call whose outcome it does not know."""

from __future__ import annotations

from scenarios.endings import may_be_escalated
from scenarios.history import TERMINAL, History
from scenarios.index import Facts, look
from scenarios.obligations.ends import is_held
from scenarios.obligations.registry import blame, obligation
from scenarios.observed import Request, Seen
from scenarios.outlived import put_to_test
from scenarios.plan import Call, Model, Requester
from scenarios.reasons import other_failure
from scenarios.repetition import repeats_of_effects
from scenarios.verdict import Finding, Violation


@obligation(
    "EFF-4",
    kind="safety",
    profile="Effects",
    promise="Where a receiver can be asked what became of a request, an unknown outcome is looked up before the request is "
    "repeated.",
    tested_by="kill after dispatch and replies lost at a receiver that can be looked up",
    anomaly="duplicate effect",
    minimum=2,
    causes=(
        "an unknown outcome is retried like a failure",
        "recovery dispatches again what has an intent and no result, without asking",
        "the lookup's own failure is taken for 'nothing found'",
    ),
    learnt_from=("F04", "F14", "F54"),
)
def unknown_is_looked_up_before_repeat(history: History) -> Finding:
    facts = look(history)
    exercised = 0
    found: list[Violation] = []
    for call in facts.of("lookup"):
        exercised += sum(put_to_test(facts, request) for request in facts.dispatches(call.id))
        blind = next((pair for pair in repeats_of_effects(facts, call.id) if not _cleared(facts, *pair)), None)
        if blind is not None:
            earlier, later = blind
            sentence = (
                f"{_state_of(facts, call, *blind)}, and worker {later.event.incarnation} repeated it though no lookup had said "
                "that there was nothing."
            )
            found.append(blame("duplicate effect", sentence, (earlier.at, later.at), call.id))
    return Finding(exercised, tuple(found))


def _state_of(facts: Facts, call: Requester, earlier: Request, later: Request) -> str:
    """What was known of a request when the next one was sent."""
    if facts.uncertain(earlier, later.at):
        return f"The outcome of {call.id!r} at {call.service} was unknown"
    return f"{call.id!r} had been answered by {call.service}"


def _cleared(facts: Facts, earlier: Request, later: Request) -> bool:
    """Did a lookup between the two say that the receiver knows of nothing?

    Or before both, where the world may have held up the first of one worker's requests so that it comes in after the second.
    """
    is_swapped = facts.held_up(later.at) and earlier.event.incarnation == later.event.incarnation
    since = -1 if is_swapped else earlier.at
    return any(
        lookup.reply is not None
        and lookup.replied_at is not None
        and since < lookup.at
        and lookup.replied_at < later.at
        and (lookup.reply.kind, lookup.reply.delivery) == ("missing", "sent")
        for lookup in facts.lookups(later.op)
    )


@obligation(
    "EFF-5",
    kind="safety",
    profile="Effects",
    promise="Where a request can be neither looked up nor safely repeated, an unknown outcome is not repeated: it stays "
    "unresolved, and visibly so.",
    tested_by="kill after dispatch and replies lost at a receiver that is blind",
    anomaly=("duplicate effect", "false certainty"),
    minimum=2,
    causes=(
        "every call is retried by default",
        "recovery reruns a step that has no recorded result, whatever it does",
        "there is no state for 'nobody knows', so that one of the others has to do",
    ),
    learnt_from=("F14",),
)
def blind_unknown_is_not_repeated(history: History) -> Finding:
    facts = look(history)
    exercised = 0
    found: list[Violation] = []
    for call in facts.of("blind"):
        exercised += any(put_to_test(facts, request) for request in facts.dispatches(call.id))
        repeat = next(repeats_of_effects(facts, call.id), None)
        if repeat is not None:
            earlier, later = repeat
            sentence = (
                f"{_state_of(facts, call, *repeat)}, where nothing can be looked up or repeated, and worker "
                f"{later.event.incarnation} sent it again."
            )
            found.append(blame("duplicate effect", sentence, (earlier.at, later.at), call.id))
        elif hidden := _hidden(facts, call):
            found.append(hidden)
    return Finding(exercised, tuple(found))


def _hidden(facts: Facts, call: Requester) -> Violation | None:
    """The run ended, nobody was ever told what became of the call, and the status does not say so."""
    last = facts.last_seen()
    dispatches = facts.dispatches(call.id)
    if last is None or not dispatches or not facts.history.declared.shows_operations:
        return None
    if facts.notices(call.id) or call.id in facts.history.plan.operations_of_children():
        return None  # the receiver said so later; or it is a child's to show
    sent = [request for request in dispatches if request.at < last.asked]
    if last.status.state not in TERMINAL or not sent or not all(request.unanswered for request in dispatches):
        return None
    shown = last.operation(call.id)
    as_what = f"shows it {shown.state}" if shown else f"does not show it, and says that the run is {last.status.state}"
    if shown.state in {"succeeded", "failed"} if shown else last.status.state in {"done", "failed"}:
        sentence = f"Nobody can know what became of {call.id!r} at {call.service}, but the last status {as_what}."
        return blame("false certainty", sentence, (sent[-1].at, last.asked, last.answered), call.id)
    return None


@obligation(
    "EFF-6",
    kind="liveness",
    profile="Effects",
    promise="A read whose outcome is unknown is simply repeated.",
    tested_by="kill after dispatch and replies lost at a reader",
    anomaly="stuck",
    minimum=1,
    causes=(
        "every unknown outcome is treated like one of an unrepeatable write",
        "a lost reply leaves the step claimed for ever",
    ),
    learnt_from=("F06", "F18"),
)
def unknown_read_is_repeated(history: History) -> Finding:
    facts = look(history)
    if facts.closed is None or facts.quiet is None or facts.closed_as() == "stopped":
        return Finding()
    # What has lost a race, or belongs to nobody any more, may be left.
    wanted = [call for call in facts.of("read") if not history.plan.guards(call.id)]
    reads = [(call, request) for call in wanted if (request := _last_unknown(facts, call.id)) is not None]
    tested = sum(any(facts.uncertain(request) for request in facts.dispatches(call.id)) for call in wanted)
    if _other_obstacle(facts):
        return Finding(tested - len(reads))
    found = tuple(_left(facts, call, request) for call, request in reads)
    return Finding(tested, found, slow=tested > 0 and facts.closed_as() == "slow")


def _last_unknown(facts: Facts, op: str) -> Request | None:
    """The last request of a read that was never answered nor accepted; None when the read got its answer."""
    dispatches = facts.dispatches(op)
    open_ = bool(dispatches) and op not in facts.accepted_at and all(request.unanswered for request in dispatches)
    return dispatches[-1] if open_ else None


def _other_obstacle(facts: Facts) -> bool:
    """Did something else end the run, or hold it up: a call refused, or unknown at a receiver that is no reader, deaths, …?"""
    end = len(facts.history.events)
    if other_failure(facts, end) or may_be_escalated(facts, end) or is_held(facts):
        return True
    reads = {call.id for call in facts.of("read")}
    return any(request.refused or (request.unanswered and request.op not in reads) for request in facts.requests)


def _left(facts: Facts, call: Requester, request: Request) -> Violation:
    tries = len(facts.dispatches(call.id))
    sentence = (
        f"The outcome of the read {call.id!r} was unknown, faults had stopped, and it was never read again "
        f"(after {tries} {'try' if tries == 1 else 'tries'})."
    )
    closed = () if facts.closed is None else (facts.closed,)
    return blame("stuck", sentence, (request.at, *closed), call.id)


@obligation(
    "EFF-8",
    kind="safety",
    profile="Effects",
    promise="A 5xx, a broken connection, a timeout or a crash after dispatch means unknown, and is shown neither as failed nor "
    "as done.",
    tested_by="kill after dispatch, replies lost, and receivers that apply and then fail",
    anomaly="false certainty",
    minimum=3,
    causes=(
        "any exception out of the call is recorded as the step's failure",
        "retries that have been used up turn unknown into failed",
        "a worker's death is recorded as failure of what it was doing",
    ),
    learnt_from=("F03", "F06", "F19", "F46"),
)
def unknown_is_not_failed(history: History) -> Finding:
    facts = look(history)
    last = facts.last_seen()
    dispatched = [request for request in facts.requests if not request.event.lookup]
    tested = [request for request in dispatched if last and request.at < last.asked and facts.uncertain(request)]
    found: dict[str, Violation] = {}
    for seen in facts.statuses:
        for request in dispatched:
            if request.at < seen.asked and facts.uncertain(request, seen.answered):
                violation = (
                    _operation_failed(facts, request, seen)
                    or _run_failed(facts, request, seen)
                    or _taken_for_done(facts, request, seen)
                )
                if violation:
                    found.setdefault(request.op, violation)
    return Finding(len(tested), tuple(found.values()))


def _operation_failed(facts: Facts, request: Request, seen: Seen) -> Violation | None:
    shown = seen.operation(request.op)
    if shown is None or shown.state != "failed" or facts.refusal_before(seen.answered, request.op):
        return None
    if _gave_up(facts, request.op, seen.answered):
        return None
    sentence = f"{request.op!r} was sent and its outcome was unknown, but it is shown as failed; nobody had refused it."
    return blame("false certainty", sentence, (request.at, seen.asked, seen.answered), request.op)


def _taken_for_done(facts: Facts, request: Request, seen: Seen) -> Violation | None:
    """Shown as accepted when nobody had ever said anything definite about it. (What children are told is theirs to show.)"""
    if request.op in facts.history.plan.operations_of_children():
        return None
    done = seen.status.state == "done" and facts.is_settled(seen, request.op)
    is_accepted = (done or request.op in seen.accepted()) and not facts.is_tolerated(request.op)
    if not is_accepted or facts.answered_before(request.op, seen.answered):
        return None
    sentence = f"{request.op!r} was sent and its outcome was unknown, but it is shown as done; nobody had answered it."
    return blame("false certainty", sentence, (request.at, seen.asked, seen.answered), request.op)


def _gave_up(facts: Facts, op: str, index: int) -> bool:
    """Had `op` used up its tries or its time, or was its run to stop, with a word (a look-up's too) that nothing had happened;
    or was its answer of no use?
    """
    leaf = facts.calls[op]
    if isinstance(leaf, Model):
        return "wrong" in leaf.script
    limited = isinstance(leaf, Call) and (leaf.tries is not None or leaf.elapsed_ns is not None)
    is_to_stop = any(one.asked_at < index for one in facts.ordered("cancel"))
    return (limited or is_to_stop) and any(
        one.idle for one in (*facts.dispatches(op), *facts.lookups(op)) if one.at < index
    )


def _run_failed(facts: Facts, request: Request, seen: Seen) -> Violation | None:
    if seen.status.state != "failed":
        return None
    if other_failure(facts, seen.answered) or may_be_escalated(facts, seen.answered):
        return None
    sentence = (
        f"The outcome of {request.op!r} was unknown and nothing had been refused, but run {facts.history.run!r} is shown as "
        "failed."
    )
    return blame("false certainty", sentence, (request.at, seen.asked, seen.answered), request.op)

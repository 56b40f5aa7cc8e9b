"""SIG-3 4 5 6: runs that are held, signals that were taken in and not used yet, and directions that change the course."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from scenarios.endings import causeless_ends, reached
from scenarios.history import ACCEPTED, TERMINAL, Died, History, Started
from scenarios.index import Facts, look
from scenarios.obligations.ends import may_be_paused
from scenarios.obligations.fencing import asked_for, standing
from scenarios.obligations.moving import stranded
from scenarios.obligations.registry import blame, obligation
from scenarios.obligations.signals import SET_ASIDE, deciding_ask, taken, was_early
from scenarios.observed import Command, Request, Seen, Signal
from scenarios.outlived import went_on
from scenarios.plan import Artifact, Call, Wait
from scenarios.repetition import timely
from scenarios.stops import first_request, not_begun, senders
from scenarios.verdict import Finding, Violation

#: Who has been back for so long has taken its work up again.
_BACK_NS = 200_000_000


@obligation(
    "SIG-3",
    kind="safety",
    profile="Control",
    promise="From the acknowledgement of a pause until the run may go on nothing new of it, or of a child it owns, is "
    "dispatched; then it goes on.",
    tested_by="pause right after the start, while a call is under way, and while a signal is waited for; kills meanwhile",
    anomaly=("resurrection", "stuck"),
    minimum=3,
    causes=(
        "the pause is kept in memory, and a restart forgets it",
        "a step that ends opens and hands out the next one without asking whether the run is held",
        "what became due while the run was held is not looked for when it may go on",
        "a call that failed before is tried again, run held or not",
        "the run is held, and what its children do is nobody's business",
    ),
    learnt_from=(),
)
def nothing_begins_while_held(history: History) -> Finding:
    facts = look(history)
    held = list(senders(facts))
    exercised = 0
    found: list[Violation] = []
    for begin, end in facts.stopped:
        if any(_was_put_off(facts, op, begin, end) for op in held):
            exercised += 1 + sum(begin < death < end and _came_back(facts, death, end) for death in facts.deaths)
        found += [one for op in held if (one := _begun_meanwhile(facts, op, begin, end))]
        found += [one for op in held if (one := _repeated_meanwhile(facts, op, begin, end))]
    return Finding(exercised, (*found, *_never_let_go(facts)))


def _was_put_off(facts: Facts, op: str, begin: int, end: int) -> bool:
    """Was it, or its next try, held for as long as it took to be sent once the run might go on? A pause that is shorter than a
    harness is slow comes and goes unnoticed. Of what was not sent afterwards nobody knows how long it takes.
    """
    if not_begun(facts, op, begin) is None:
        return any(
            end < later.at
            and (why := _reason_since(facts, earlier, begin, end)) is not None
            and _is_held_for_long(facts, why, end, later)
            for earlier, later in itertools.pairwise(timely(facts, op))
        )
    request = first_request(facts, op)
    if request is None or request.at < end:
        return request is None
    ready = max((begin, *_released_at(facts, op)))
    return ready < end and _is_held_for_long(facts, ready, end, request)


def _is_held_for_long(facts: Facts, ready: int, end: int, request: Request) -> bool:
    """Had it been ready for longer, when the run was let go on, than it then took to be sent?"""
    return facts.at_ns(end) - facts.at_ns(ready) >= facts.at_ns(request.at) - facts.at_ns(end)


def _released_at(facts: Facts, op: str) -> Iterator[int]:
    """When each call that it waits for was first answered, and each signal first sent."""
    for need in facts.ancestors[op]:
        answers = (one.replied_at for one in facts.dispatches(need) if one.settled_before(len(facts.history.events)))
        leaf = facts.history.plan.leaf(need)
        name = leaf.signal if isinstance(leaf, Wait) else None
        signals = (one.asked_at for one in facts.signals if one.name == name)
        yield from itertools.islice((at for at in (*answers, *signals) if at is not None), 1)


def _came_back(facts: Facts, death: int, end: int) -> bool:
    """Was whoever died back for long enough before event `end` to have begun something, and did the run go on?"""
    died = facts.history.events[death]
    unit = died.unit if isinstance(died, Died) else ""
    after = ((at, one) for at, one in enumerate(facts.history.events[death:end], death) if isinstance(one, Started))
    back = next((at for at, one in after if one.unit == unit), None)
    until = min(end, len(facts.history.events) - 1)  # it may never have been let go on
    return back is not None and facts.at_ns(until) - facts.at_ns(back) >= _BACK_NS and went_on(facts, death)


def _begun_meanwhile(facts: Facts, op: str, begin: int, end: int) -> Violation | None:
    request, before = first_request(facts, op), not_begun(facts, op, begin)
    if request is None or before is None or facts.late(request) or not max(begin, before[0]) < request.at < end:
        return None
    sentence = f"The pause was acknowledged, and {op!r} was dispatched before the run was let go on: {before[1]}."
    return blame("resurrection", sentence, (begin, before[0], request.at), op)


def _repeated_meanwhile(facts: Facts, op: str, begin: int, end: int) -> Violation | None:
    """Sent again before the run was let go on, for a reason that came only after the pause had been acknowledged."""
    for earlier, later in itertools.pairwise(timely(facts, op)):
        if begin < later.at < end and (why := _reason_since(facts, earlier, begin, later.at)) is not None:
            sentence = f"The pause was acknowledged, and {op!r} was sent again before the run was let go on."
            return blame("resurrection", sentence, (begin, earlier.at, why, later.at), op)
    return None


def _reason_since(facts: Facts, request: Request, begin: int, end: int) -> int | None:
    """The event between these two that had it sent again: a failure that it was told of at once, or its worker's death."""
    replied, died = request.replied_at, facts.died.get(request.event.incarnation)
    told = replied is not None and begin < replied < end and facts.is_prompt(request) and not facts.asleep(request)
    if request.reply is not None and request.reply.kind == "executed" and _is_of_an_upload(facts, request):
        return None  # what comes next is the next part of what is under way
    if told and request.reply is not None and request.reply.delivery == "sent":
        return replied
    return died if died is not None and begin < died < end and replied is None else None


def _is_of_an_upload(facts: Facts, request: Request) -> bool:
    return isinstance(facts.history.plan.leaf(request.op), Artifact)


def _never_let_go(facts: Facts) -> Iterator[Violation]:
    """The run was let go on, and is still held long after the last fault, or work of it that was held is."""
    let_go = max((one.ok_at for one in facts.ordered("unpause") if one.ok_at is not None), default=-1)
    last = facts.last_seen()
    if not facts.ordered("pause") or may_be_paused(facts) or let_go < 0 or last is None or last.asked < let_go:
        return
    yield from _ended_instead(facts, let_go)
    if facts.closed_as() != "bound":
        return
    if last.status.paused and last.status.state not in TERMINAL:
        yield blame("stuck", "The run was let go on, and is still shown paused.", (let_go, last.asked, last.answered))
    yield from stranded(facts, let_go, "the run was let go on")


def _ended_instead(facts: Facts, let_go: int) -> Iterator[Violation]:
    """The run was let go on, and ended for no reason with something planned that it had come to."""
    end = next((seen for seen in causeless_ends(facts) if seen.asked > let_go), None)
    op = None if end is None else next(reached(facts, end), None)
    if end is not None and op is not None:
        sentence = f"The run was let go on, and ended {end.status.state} with {op!r} planned, which it had come to."
        yield blame("stuck", sentence, (let_go, end.asked, end.answered), op)


@obligation(
    "SIG-4",
    kind="safety",
    profile="Control",
    level="SHOULD",
    promise="That a signal was received is told apart from that it was used: who asks sees which of the two it is.",
    tested_by="signals sent long before their wait begins; one more of a name whose next wait has not begun",
    anomaly=("false certainty", "torn view"),
    minimum=2,
    causes=(
        "one acknowledgement stands for both",
        "the answer is made up when the signal is stored, before anybody has looked for its wait",
        "the use is written to the wait only, and the signal stays as it was received",
    ),
    learnt_from=(),
)
def received_is_told_from_used(history: History) -> Finding:
    facts = look(history)
    early = [one for one in facts.signals if one.disposition == "buffered" and _waits(facts, one)]
    kept = [one for one in early if any(_is_used(seen, one, _waits(facts, one)) for seen in facts.statuses)]
    found = [violation for one in facts.signals if (violation := _used_too_soon(facts, one) or _misstated(facts, one))]
    return Finding(len(kept), tuple(found))


def _waits(facts: Facts, signal: Signal) -> list[Wait]:
    return [wait for wait in facts.history.plan.waits() if wait.signal == signal.name]


def _is_used(seen: Seen, signal: Signal, waits: list[Wait]) -> bool:
    """Does a status show one of these waits ended with this signal?"""
    return any(seen.accepted().get(wait.id) == signal.nonce for wait in waits) and signal.nonce is not None


def _used_too_soon(facts: Facts, signal: Signal) -> Violation | None:
    """Said to have released a wait, when no wait of its name can have begun."""
    ask = deciding_ask(signal)
    if ask.disposition != "released" or not was_early(facts, ask, signal.name):
        return None
    sentence = f"Signal {signal.id!r} is said to have released a wait, and none for it can have begun by then."
    return blame("false certainty", sentence, tuple(at for at in (ask.at, ask.answered_at) if at is not None))


def _misstated(facts: Facts, signal: Signal) -> Violation | None:
    """One status that says of a signal what its waits, as it shows them, contradict."""
    waits = _waits(facts, signal)
    for seen in facts.statuses if waits and signal.nonce is not None else ():
        said = (seen.status.signals or {}).get(signal.id)
        is_listed = all(seen.operation(wait.id) is not None for wait in waits)
        is_used = _is_used(seen, signal, waits)
        if said == "released" and is_listed and not is_used and facts.shows_answers:
            sentence = f"Signal {signal.id!r} is shown as used, and no wait has ended with it."
            return blame("false certainty", sentence, (seen.asked, seen.answered))
        if said in {"buffered", *SET_ASIDE} and is_used:
            sentence = f"Signal {signal.id!r} is shown as {said}, and a wait has ended with it."
            return blame("torn view", sentence, (seen.asked, seen.answered))
    return None


@obligation(
    "SIG-5",
    kind="safety",
    profile="Control",
    promise="A signal that nobody has used by the time its run ends is reported as such, and not dropped.",
    tested_by="signals that nothing waits for, or one more than is waited for, before the end; then kill",
    anomaly=("amnesia", "false certainty"),
    minimum=2,
    causes=(
        "the run is over when its main flow is, whatever was handed to handlers",
        "what is left in the mailbox goes away with the run",
        "everything that was delivered counts as handled",
    ),
    learnt_from=("F27", "F29", "F41"),
)
def what_is_left_over_is_reported(history: History) -> Finding:
    facts = look(history)
    inner = history.plan.operations_of_children()
    childrens = {wait.signal for wait in history.plan.waits() if wait.id in inner}
    left = [one for one in facts.signals if one.name not in childrens and _is_left(facts, one)]
    found = [violation for one in left if (violation := _not_reported(facts, one))]
    return Finding(sum(any(_reports(facts, one)) for one in left), tuple(found))


def _is_left(facts: Facts, signal: Signal) -> bool:
    """Was a signal acknowledged as one that may be used, and did no wait end with it, where that would have been seen?"""
    if _waits(facts, signal) and not facts.shows_answers:
        return False
    used = {use.nonce for use in taken(facts, signal.name)}
    return signal.ok_at is not None and signal.disposition not in SET_ASIDE and signal.nonce not in used


def _reports(facts: Facts, signal: Signal) -> Iterator[Seen]:
    """Statuses, asked after the acknowledgement, of a run that has ended and that tells of signals and waits."""
    waits = _waits(facts, signal)
    for seen in facts.seen_after(signal.ok_at or 0):
        tells = seen.status.signals is not None and all(seen.operation(wait.id) is not None for wait in waits)
        if seen.status.state in TERMINAL and tells:
            yield seen


def _not_reported(facts: Facts, signal: Signal) -> Violation | None:
    for seen in _reports(facts, signal):
        said = (seen.status.signals or {}).get(signal.id)
        evidence = (signal.ok_at or 0, seen.asked, seen.answered)
        if said is None:
            sentence = (
                f"Signal {signal.id!r} was acknowledged and never used, and the run has ended without a word of it."
            )
            return blame("amnesia", sentence, evidence)
        if said == "released":
            sentence = f"Signal {signal.id!r} was used by no wait, and the run that has ended shows it as used."
            return blame("false certainty", sentence, evidence)
    return None


@obligation(
    "SIG-6",
    kind="safety",
    profile="Control",
    promise="Directions for what has not begun are taken one after the other, and kept: it is done as the last one says.",
    tested_by="two directions for one operation before it is dispatched, and kills between the two and the dispatch",
    anomaly=("out of order", "amnesia", "false certainty"),
    minimum=2,
    causes=(
        "directions are kept in the memory of the loop that they steer",
        "they are merged, or applied in the order in which workers find them",
        "the first one closes the subject, and later ones are acknowledged all the same",
    ),
    learnt_from=(),
)
def directions_are_taken_in_order(history: History) -> Finding:
    facts = look(history)
    exercised = 0
    found: list[Violation] = []
    for call in history.plan.calls():
        steers = [one for one in facts.steers(call.id) if one.ok_at is not None and one.disposition == "released"]
        request = first_request(facts, call.id)
        if not isinstance(call, Call) or not steers or request is None:
            continue
        before = [one for one in steers if one.ok_at is not None and one.ok_at < request.at]
        if len(standing(before, request.at)) < len(before) and not facts.late(request):
            deaths = sum((before[0].ok_at or 0) < death < request.at for death in facts.deaths)
            exercised += 1 + deaths
        found += [one for one in (_off_course(facts, call, before), _taken_too_late(facts, call, steers)) if one]
    return Finding(exercised, tuple(found))


def _off_course(facts: Facts, call: Call, before: list[Command]) -> Violation | None:
    """The first request, when it says something else than the last direction that was taken before it."""
    request = first_request(facts, call.id)
    if request is None or not before or facts.late(request):
        return None
    last = before[-1]
    valid = {asked_for(one.payload.get("params"), request) for one in standing(facts.steers(call.id), request.at)}
    replaced = {asked_for(one.payload.get("params"), request) for one in before}
    evidence = (last.asked_at, last.ok_at or 0, request.at)
    if request.event.params in valid:
        return None
    if request.event.params in replaced:
        sentence = f"{call.id!r} was dispatched by a direction that a later one, acknowledged before, had replaced."
        return blame("out of order", sentence, evidence, call.id)
    if request.event.params == asked_for(call.params, request):
        sentence = (
            f"A direction for {call.id!r} had been acknowledged, and it was dispatched as if there had been none."
        )
        return blame("amnesia", sentence, evidence, call.id)
    return None


def _taken_too_late(facts: Facts, call: Call, steers: list[Command]) -> Violation | None:
    """A direction said to have been taken for what had been accepted already when it was given."""
    known = facts.accepted_at.get(call.id)
    late = next((one for one in steers if known is not None and one.asked_at > known), None)
    if late is None or known is None or _shows_otherwise(facts, call.id, late):
        return None
    sentence = f"{call.id!r} had been accepted, and a direction for it that came later is said to have been taken."
    return blame("false certainty", sentence, (known, late.asked_at, late.ok_at or 0), call.id)


def _shows_otherwise(facts: Facts, op: str, steer: Command) -> bool:
    """Does a status asked after the direction show the operation as not accepted?"""
    shown = (seen.operation(op) for seen in facts.seen_after(steer.asked_at))
    return any(one is not None and one.state not in ACCEPTED for one in shown)

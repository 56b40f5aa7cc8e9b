"""CMP-1 2 3 4 5: what is undone when a run fails or is stopped, in which order, with what, and what is told of it."""

from __future__ import annotations

from collections.abc import Iterator

from scenarios.endings import may_be_set_aside
from scenarios.history import ACCEPTED, IN_DOUBT, TERMINAL, History, OperationStatus, Replied
from scenarios.index import Facts, look
from scenarios.lineage import uses
from scenarios.obligations.fencing import asked_for
from scenarios.obligations.registry import blame, obligation
from scenarios.observed import Request, Seen
from scenarios.plan import Compensate
from scenarios.repetition import timely
from scenarios.unwinding import NOT_UNDONE, begun, has_effect, in_turn, is_learnt, learnt_at, own_undos, owner_of, undos
from scenarios.verdict import Finding, Violation, short

#: What a status may not say of an undo that was tried, and of which no try was ever answered.
_ASSURANCES = frozenset({"succeeded", "reconciled", "skipped"})
#: As many tries as show that something is tried again and again.
_TRIES = 3


@obligation(
    "CMP-1",
    kind="safety",
    profile="Effects",
    promise="Only effects that are known to have happened are undone: the last one first, one after the other, each once by an "
    "operation of its own, and none of a run that succeeds.",
    tested_by="a refusal late in a run with effects to undo, some of which nobody knows of; kills while they are undone",
    anomaly=("false certainty", "out of order", "duplicate effect", "phantom effect"),
    minimum=3,
    causes=(
        "effects are undone in the order in which the plan has them, forwards or backwards, and not in that of their ends",
        "everything that was begun is undone, whether or not it is known to have taken effect",
        "what was undone already is not on record, and is undone again after a restart",
        "all that is to be undone is sent out at once",
    ),
    learnt_from=("F45",),
)
def known_effects_are_undone_in_reverse(history: History) -> Finding:
    facts = look(history)
    last = facts.last_seen()
    ended = last is not None and last.status.state in TERMINAL - {"done"}
    exercised = 0
    found: list[Violation] = []
    for undo in undos(facts):
        request = begun(facts, undo)
        is_lost = bool(facts.dispatches(undo.of)) and learnt_at(facts, undo.of) is None
        exercised += request is not None or (ended and is_lost)
        if request is not None:
            wrong = _of_the_unknown(facts, undo, request) or _again(facts, undo) or _needless(facts, undo, request)
            found += [wrong] if wrong else []
    found += [one for pair in in_turn(facts) if (one := _out_of_turn(facts, *pair))]
    return Finding(exercised, tuple(found))


def _of_the_unknown(facts: Facts, undo: Compensate, request: Request) -> Violation | None:
    if is_learnt(facts, undo.of, request.at):
        return None
    sent = [one.at for one in facts.dispatches(undo.of) if one.at < request.at]
    why = "had been refused" if facts.refusal_before(request.at, undo.of) else "was not known to have taken effect"
    return blame("false certainty", f"{undo.of!r} {why}, and {undo.id!r} undid it.", (*sent, request.at), undo.id)


def _again(facts: Facts, undo: Compensate) -> Violation | None:
    """A request to undo what was certainly undone already: shown so, or something older was being undone by then."""
    done = learnt_at(facts, undo.id)
    if done is None:
        return None
    followed = (begun(facts, second) for first, second in in_turn(facts) if first is undo)
    moments = [one.at for one in followed if one is not None and one.at > done]
    known = min((*moments, facts.accepted_at.get(undo.id, len(facts.history.events))))
    again = next((one for one in timely(facts, undo.id) if one.at > known), None)
    if again is None:
        return None
    sentence = f"{undo.of!r} had been undone by {undo.id!r}, which was sent once more."
    return blame("duplicate effect", sentence, (done, known, again.at), undo.id)


def _needless(facts: Facts, undo: Compensate, request: Request) -> Violation | None:
    done = next((seen for seen in facts.statuses if seen.status.state == "done"), None)
    if done is None or owner_of(facts, undo.id):
        return None
    sentence = f"Run {facts.history.run!r} is shown done, and {undo.id!r} has undone {undo.of!r}."
    return blame("phantom effect", sentence, (request.at, done.asked, done.answered), undo.id)


def _out_of_turn(facts: Facts, first: Compensate, second: Compensate) -> Violation | None:
    """The second was begun when nothing had said yet that the first was done, and the first was sent after that."""
    early = begun(facts, second)
    if early is None or is_learnt(facts, first.id, early.at):
        return None
    after = next((one for one in timely(facts, first.id) if one.at > early.at), None)
    learnt = learnt_at(facts, first.of)
    if after is None or learnt is None:
        return None
    sentence = (
        f"{first.of!r} was accepted after {second.of!r} and had to be undone first; {second.id!r} was sent when {first.id!r} "
        "had not been done."
    )
    evidence = (facts.accepted_at[second.of], learnt, early.at, after.at)
    return blame("out of order", sentence, evidence, second.id)


@obligation(
    "CMP-2",
    kind="liveness",
    profile="Effects",
    promise="Undoing that was interrupted is taken up again, and goes on until everything is undone that has to be.",
    tested_by="kill of worker and engine, and replies lost, while a failed run is being undone; runs that fail by what a late "
    "word lets them come to",
    anomaly=("lost effect", "stuck"),
    minimum=3,
    causes=(
        "what is still to be undone is a list in memory",
        "recovery finds a run that has failed, and takes it for one that is over",
        "a step back that was under way in the crash is nobody's",
        "what is owed at the end of a run is looked at when it ends first, and not when it ends otherwise later",
    ),
    learnt_from=(),
)
def interrupted_undoing_is_taken_up_again(history: History) -> Finding:
    facts = look(history)
    first = min((one.at for undo in own_undos(facts) if (one := begun(facts, undo))), default=None)
    last, limited = facts.last_seen(), history.plan.allowance is not None or history.plan.deadline_ns is not None
    if last is None or limited or facts.struck("wipe") or facts.struck("flip"):
        return Finding()
    if first is None:
        return Finding(0, tuple(_never_begun(facts, last))[:1])
    accepted = [undo for undo in own_undos(facts) if facts.accepted_at.get(undo.of, first) < first]
    owed = [undo for undo in accepted if has_effect(facts, undo.of)]
    breaks = [at for at in _interruptions(facts, first) if any(not is_learnt(facts, one.id, at) for one in owed)]
    left = [undo for undo in owed if learnt_at(facts, undo.id) is None]
    if not breaks or any(shown.state in NOT_UNDONE for shown in _shown(facts, last)):
        return Finding()
    if last.status.state in {"failed", "cancelled"} and last.asked > breaks[-1]:
        found = tuple(_left_as_it_was(undo, breaks[-1], last) for undo in left)
        return Finding(len(breaks), found, facts.closed_as() == "slow")
    is_stuck = facts.closed_as() == "bound" and last.status.state not in TERMINAL
    if is_stuck and left and all(len(facts.dispatches(undo.id)) < _TRIES for undo in left):
        return Finding(len(breaks), (_never_done(left[0], breaks[-1], last),))
    return Finding()


def _never_begun(facts: Facts, last: Seen) -> Iterator[Violation]:
    """Undos of a failed run that owes them, with nothing in the way, none of which was ever begun."""
    in_the_way = facts.is_stormy or facts.code_changed() or any(facts.struck(action) for action in ("full", "eio"))
    in_the_way = in_the_way or may_be_set_aside(facts, last.answered)
    if last.status.state != "failed" or facts.closed_as() not in {"settled", "slow"} or in_the_way:
        return
    effects = (last.operation(undo.of) for undo in own_undos(facts))
    if any(effect is not None and effect.state in IN_DOUBT for effect in effects):
        return  # should it turn out to have happened, its undo may have to come first
    for undo in own_undos(facts):
        shown = last.operation(undo.id)
        known = facts.accepted_at.get(undo.of)
        is_owed = known is not None and known < last.asked and has_effect(facts, undo.of)
        if is_owed and known is not None and (shown is None or shown.state not in NOT_UNDONE):
            sentence = f"{undo.of!r} had been accepted, and the run ended failed without {undo.id!r} having been begun."
            yield blame("lost effect", sentence, (known, last.asked, last.answered), undo.id)


def _interruptions(facts: Facts, begin: int) -> list[int]:
    """Deaths, and lost replies to undos, since undoing began."""
    names = {undo.id for undo in own_undos(facts)}
    lost = (one.replied_at for one in facts.requests if one.op in names and one.unanswered)
    return sorted(at for at in (*facts.deaths, *lost) if at is not None and at > begin)


def _shown(facts: Facts, seen: Seen) -> Iterator[OperationStatus]:
    names = {undo.id for undo in own_undos(facts)}
    return (shown for shown in seen.status.operations if shown.id in names)


def _left_as_it_was(undo: Compensate, interrupted: int, last: Seen) -> Violation:
    sentence = f"Undoing was interrupted, and the run ended {last.status.state} without {undo.id!r} having been done."
    return blame("lost effect", sentence, (interrupted, last.asked, last.answered), undo.id)


def _never_done(undo: Compensate, interrupted: int, last: Seen) -> Violation:
    sentence = f"Undoing was interrupted, the faults had ceased, and {undo.id!r} was never done."
    return blame("stuck", sentence, (interrupted, last.asked, last.answered), undo.id)


@obligation(
    "CMP-3",
    kind="safety",
    profile="Effects",
    promise="Undoing that keeps failing is tried a bounded number of times and then ends openly unresolved.",
    tested_by="a receiver that is down, or says no, when something is to be undone there",
    anomaly=("false certainty", "stuck"),
    minimum=2,
    causes=(
        "the errors of cleaning up are logged and passed over, as the run has failed anyway",
        "an undo is tried for ever, so that the run never ends",
        "there is no end for a run that can be neither finished nor undone",
        "how a run ends is worked out anew at every word that comes after its end",
    ),
    learnt_from=(),
)
def undoing_that_fails_is_left_in_the_open(history: History) -> Finding:
    facts = look(history)
    last = facts.last_seen()
    failing = [undo for undo in own_undos(facts) if _keeps_failing(facts, undo)]
    if last is None or not failing:
        return Finding()
    if last.status.state in TERMINAL:
        found = (_hushed_up(facts, undo, last) or _closed_again(facts, undo, last) for undo in failing)
        told = [undo for undo in failing if last.operation(undo.id) or last.status.state in {"blocked", "done"}]
        return Finding(len(told), tuple(one for one in found if one))
    if facts.closed_as() != "bound":
        return Finding()
    tried = [undo for undo in failing if len(facts.dispatches(undo.id)) >= _TRIES]
    return Finding(len(failing), tuple(_without_end(facts, undo, last) for undo in tried[:1]))


def _keeps_failing(facts: Facts, undo: Compensate) -> bool:
    """Was it refused, or tried more than once, and never answered?"""
    sent = facts.dispatches(undo.id)
    return learnt_at(facts, undo.id) is None and (len(sent) > 1 or any(one.refused for one in sent))


def _hushed_up(facts: Facts, undo: Compensate, last: Seen) -> Violation | None:
    shown, sent = last.operation(undo.id), facts.dispatches(undo.id)
    if last.status.state == "done":
        what = f"the run is shown done, though nothing has undone {undo.of!r}"
    elif shown is not None and shown.state in _ASSURANCES:
        what = f"the run that has ended shows it {shown.state}"
    else:
        return None
    evidence = (*(one.at for one in sent), last.asked, last.answered)
    return blame("false certainty", f"No try of {undo.id!r} came to anything; {what}.", evidence, undo.id)


def _closed_again(facts: Facts, undo: Compensate, last: Seen) -> Violation | None:
    """Shown as left for somebody to see, and later as settled, though nobody has done or said anything about it since."""
    sent = facts.dispatches(undo.id)
    open_ = next((one for one in facts.seen_after(sent[-1].at) if one.status.state == "blocked"), None)
    told = facts.notices(undo.id) or facts.ordered("cancel") or facts.code_changed()
    if open_ is None or told or last.status.state not in {"failed", "done"}:
        return None
    sentence = (
        f"No try of {undo.id!r} came to anything, and the run was shown blocked; it is shown {last.status.state} now, "
        "and nobody has settled that."
    )
    return blame("false certainty", sentence, (sent[-1].at, open_.answered, last.asked, last.answered), undo.id)


def _without_end(facts: Facts, undo: Compensate, last: Seen) -> Violation:
    sent = facts.dispatches(undo.id)
    sentence = f"{undo.id!r} was tried {len(sent)} times and never answered, and the run has not ended over it."
    return blame("stuck", sentence, (sent[0].at, sent[-1].at, last.asked, last.answered), undo.id)


@obligation(
    "CMP-4",
    kind="safety",
    profile="Effects",
    level="SHOULD",
    promise="What was undone stays on record with what undid it: the effect as it was, and the other beside it.",
    tested_by="status and journal of runs that have undone something",
    anomaly="amnesia",
    minimum=3,
    causes=(
        "undoing a step sets the step back to what it was before",
        "the undo overwrites the result of what it undoes",
        "what was undone is cleared away",
    ),
    learnt_from=(),
)
def effect_and_undo_stay_on_record(history: History) -> Finding:
    facts = look(history)
    exercised = 0
    found: list[Violation] = []
    for undo in own_undos(facts):
        known = max(facts.accepted_at.get(one, len(history.events)) for one in (undo.of, undo.id))
        later = [seen for seen in facts.statuses if seen.status.operations and _must_tell(undo, known, seen)]
        told = [one for one in facts.journals if one.asked > known and "transitions" in one.body.tells]
        exercised += bool(later) + bool(told)
        wrong = next((one for seen in later if (one := _missing(facts, undo, known, seen))), None)
        gone = (
            _unwritten(name, known, one.asked, one.answered)
            for one in told
            for name in (undo.of, undo.id)
            if not any(row.operation == name and row.to_state in ACCEPTED for row in one.body.transitions)
        )
        wrong = wrong or next(gone, None)
        found += [wrong] if wrong else []
    return Finding(exercised, tuple(found))


def _must_tell(undo: Compensate, known: int, seen: Seen) -> bool:
    """Must this status have both: was it asked later than both are known, or does it show what was the later of the two?"""
    return seen.asked > known or undo.id in seen.accepted()


def _missing(facts: Facts, undo: Compensate, known: int, seen: Seen) -> Violation | None:
    """How a status fails to show the effect and its undo as they were accepted; None when it does not fail."""
    nonces = {use.nonce for use in uses(facts, undo.of)[:1]}
    for name in (undo.of, undo.id):
        shown = seen.operation(name)
        how = "does not list it" if shown is None else f"shows it {shown.state}"
        if shown is None or shown.state not in ACCEPTED:
            sentence = f"{undo.id!r} has undone {undo.of!r}; of {name!r} a status asked later {how}."
            return blame("amnesia", sentence, (known, seen.asked, seen.answered), name)
        if name == undo.of and nonces and facts.shows_answers and shown.nonce not in nonces:
            sentence = (
                f"{undo.id!r} has undone {name!r}, of which a status has another answer since: {short(shown.nonce)}."
            )
            return blame("amnesia", sentence, (known, seen.asked, seen.answered), name)
    return None


def _unwritten(name: str, known: int, asked: int, answered: int) -> Violation:
    sentence = f"The journal has no line that {name!r} was accepted, which it had been."
    return blame("amnesia", sentence, (known, asked, answered), name)


@obligation(
    "CMP-5",
    kind="safety",
    profile="Effects",
    promise="Undoing goes by what was recorded when the effect was made: by its answer, and by the parameters as they were "
    "then.",
    tested_by="directions, other code, and crashes, between an effect and its undoing; an owner that is over it already",
    anomaly=("amnesia", "forked lineage", "changed decision"),
    minimum=2,
    causes=(
        "what an undo says is worked out when it is sent, from what the run says by then",
        "an undo reaches for the results of a parent that is gone",
        "only the fact of the effect is recorded, and not what it was answered with",
    ),
    learnt_from=("F44",),
)
def undoing_goes_by_what_was_recorded(history: History) -> Finding:
    facts = look(history)
    exercised = 0
    found: list[Violation] = []
    for undo in undos(facts):
        given = _given(facts, undo.of)
        sent = facts.dispatches(undo.id) if given else ()
        exercised += bool(sent) and _was_changed(facts, undo, sent[0])
        wrong = next((one for request in sent if (one := _other_inputs(facts, undo, request, given))), None)
        found += [wrong] if wrong else []
    return Finding(exercised, tuple(found))


def _given(facts: Facts, op: str) -> dict[str, int]:
    """Every answer that there was of an operation, with the event that brought it."""
    mine = {request.event.call for request in facts.requests if request.op == op}
    replies = {
        event.nonce: at
        for at, event in reversed(list(enumerate(facts.history.events)))
        if isinstance(event, Replied) and event.call in mine and event.nonce is not None
    }
    return {**{one.nonce: one.asked_at for one in facts.notices(op) if one.nonce is not None}, **replies}


def _was_changed(facts: Facts, undo: Compensate, request: Request) -> bool:
    """Had anything changed, or died, between the effect and its undo: a process, the code, a direction, its owner's fate?"""
    made = learnt_at(facts, undo.of)
    if made is None:
        return False
    steered = any(made < one.asked_at < request.at for one in (*facts.steers(undo.id), *facts.steers(undo.of)))
    return steered or facts.death_between(made, request.at) or bool(owner_of(facts, undo.id))


def _other_inputs(facts: Facts, undo: Compensate, request: Request, given: dict[str, int]) -> Violation | None:
    carried, accepted = request.carries.get(undo.of), uses(facts, undo.of)
    first = accepted[0].nonce if accepted else None
    made = min(given.values())
    if carried is None:
        sentence = f"{undo.id!r} was sent without what {undo.of!r} had been answered with."
        return blame("amnesia", sentence, (made, request.at), undo.id)
    if carried not in given or (first is not None and carried != first):
        sentence = f"{undo.id!r} was sent with {carried}, which is not what {undo.of!r} had been accepted with."
        return blame("forked lineage", sentence, (made, request.at), undo.id)
    known = facts.accepted_at.get(undo.of, len(facts.history.events))
    for steer in (one for one in facts.steers(undo.id) if known < one.asked_at < request.at):
        params = steer.payload.get("params")
        if isinstance(params, dict) and request.event.params == asked_for(params, request) != asked_for(
            undo.params, request
        ):
            sentence = f"{undo.id!r} was sent with parameters that it was given only after {undo.of!r} had been done."
            return blame("changed decision", sentence, (known, steer.asked_at, request.at), undo.id)
    return None

"""CAN-1 2 3 4 6 8: what a stop stops, what it leaves on record, when it is over, and when it came too late.

Children and cleanup are in `scenarios.obligations.winding_up`.
"""

from __future__ import annotations

from collections.abc import Iterator

from scenarios.history import ACCEPTED, IN_DOUBT, TERMINAL, Died, Event, Fired, History, Paused, Resumed
from scenarios.index import Facts, look
from scenarios.interruption import ASKING_ACTIONS, actions_of
from scenarios.obligations.registry import blame, obligation
from scenarios.observed import Command, Request, Seen
from scenarios.outlived import went_on
from scenarios.stops import (
    accepted_stop,
    ended,
    first_ask,
    first_request,
    in_flight,
    is_covered,
    is_inherited,
    is_open,
    is_racing,
    may_lose,
    not_begun,
    says_it_is_over,
    senders,
)
from scenarios.tenure import is_undisturbed, met_a_storm, patience_ns
from scenarios.verdict import Finding, Violation

#: What a status may not say of an operation that was sent and whose outcome nobody knows.
_DENIALS = frozenset({"planned", "skipped", "failed"})
#: States of a child that is not over.
_GOES_ON = frozenset({"planned", "dispatched"})
#: The least by which work has to overstay its grace.
_OVERSTAY_NS = 250_000_000
#: And how much longer it has to be seen, once more: who answers slowly acts slowly.
_LATE_NS = 60_000_000
#: What happens to one request or one server, or is only asked: no reason for a worker to go on working.
_HARMLESS = frozenset((action,) for action in ("delay", "kill", *ASKING_ACTIONS))


@obligation(
    "CAN-1",
    kind="safety",
    profile="Control",
    promise="Once a stop is acknowledged, no operation under it is newly admitted, whatever restarts afterwards.",
    tested_by="cancel while a call is under way, while something is waited for, and right after the start; then kill",
    anomaly="resurrection",
    minimum=3,
    causes=(
        "the stop is kept in memory, and a restart forgets it",
        "the stop is looked at when work is queued, and not when it is dispatched; or the other way about",
        "a step that ends opens the next one without asking whether the run still goes on",
    ),
    learnt_from=("F39",),
)
def nothing_is_admitted_after_a_stop(history: History) -> Finding:
    facts = look(history)
    stop = accepted_stop(facts)
    if stop is None or stop.ok_at is None:
        return Finding()
    own = [op for op in senders(facts) if not is_inherited(facts, op)]
    waiting = [op for op in own if not_begun(facts, op, stop.ok_at) is not None]
    deaths = sum(death > stop.ok_at and went_on(facts, death) for death in facts.deaths)
    found = (admitted(facts, op, stop.ok_at) for op in own)
    return Finding(1 + deaths if waiting else 0, tuple(one for one in found if one))


def admitted(facts: Facts, op: str, stop: int) -> Violation | None:
    """The violation of an operation that was begun after the stop acknowledged at event `stop`, if it certainly was."""
    request, before = first_request(facts, op), not_begun(facts, op, stop)
    if request is None or before is None or request.at < max(stop, before[0]):
        return None
    sentence = f"The stop of run {facts.history.run!r} was acknowledged, and then {op!r} was dispatched: {before[1]}."
    return blame("resurrection", sentence, (stop, before[0], request.at), op)


@obligation(
    "CAN-2",
    kind="safety",
    profile="Control",
    promise="A stopped run is called quiescent, or cancelled, only when nothing that it has sent is still being waited for.",
    tested_by="cancel while a slow call is under way",
    anomaly="false certainty",
    minimum=2,
    causes=(
        "accepting the stop and having stopped are one state",
        "what waits in a queue is counted, and not what is in a worker's hands",
        "look-ups and uploads under way are not counted as work",
    ),
    learnt_from=("F01",),
)
def quiescent_means_nothing_at_work(history: History) -> Finding:
    facts = look(history)
    stop, asked = accepted_stop(facts), first_ask(facts)
    if stop is None or stop.ok_at is None or asked is None or facts.struck("jump"):
        return Finding()  # by a clock that has jumped its grace may be over at once
    # After its grace what is under way may have been given up by force.
    forced_ns = facts.at_ns(asked) + (facts.history.declared.grace_ns or 0)
    looks = [seen for seen in facts.seen_after(asked) if facts.at_ns(seen.answered) < forced_ns]
    covered = [request for request in facts.sent if is_covered(facts, request.op)]
    at_work = [(request, seen) for seen in looks for request in covered if _is_at_work(facts, request, seen)]
    tested = {request.at for request, seen in at_work if seen.answered > stop.ok_at}
    found = (_busy(facts, request, seen) for request, seen in at_work if says_it_is_over(seen))
    return Finding(len(tested), tuple(found)[:1])


def _is_at_work(facts: Facts, request: Request, seen: Seen) -> bool:
    """Was a living worker certainly waiting for the reply, all the time that this status was asked and answered?"""
    if request.at > seen.asked or not is_open(request, seen.answered) or facts.late(request):
        return False
    if _is_given_up(facts, request.op, seen):
        return False  # nobody waits for its answer any more: a worker that heeds a stop drops what it had sent
    waited_ns = facts.at_ns(seen.answered) - request.event.at_ns
    return waited_ns < patience_ns(facts) and is_undisturbed(facts, request, seen.answered)


def _is_given_up(facts: Facts, op: str, seen: Seen) -> bool:
    """Does a status show an operation in doubt, or the child that it is of as over? How is told by the child."""
    owner = op.partition("/")[0] if is_inherited(facts, op) else None
    shown = seen.operation(owner or op)
    return shown is not None and (shown.state in IN_DOUBT or (owner is not None and shown.state not in _GOES_ON))


def _busy(facts: Facts, request: Request, seen: Seen) -> Violation:
    word = "quiescent" if seen.status.cancel == "quiescent" else "cancelled"
    sentence = f"Run {facts.history.run!r} was shown {word} while a living worker awaited the answer to {request.op!r}."
    return blame("false certainty", sentence, (request.at, seen.asked, seen.answered), request.op)


@obligation(
    "CAN-3",
    kind="safety",
    profile="Control",
    promise="Completion and cancellation that race give one outcome, which stays, and the effects of the run stay on record.",
    tested_by="cancel while the last call is under way, as it is answered, and at the end; answers that come after the stop",
    anomaly=("torn view", "amnesia"),
    minimum=3,
    causes=(
        "the late result of a step overwrites the outcome without asking whether there is one",
        "cancelling is an unconditional write, also of a run that has ended",
        "cancelled runs are cleared away with all they had done",
    ),
    learnt_from=("F01", "F33"),
)
def one_outcome_with_its_effects(history: History) -> Finding:
    facts = look(history)
    asked = first_ask(facts)
    if asked is None:
        return Finding()
    over = [seen for seen in ended(facts) if seen.answered > asked]
    raced = is_racing(facts, asked) or any(seen.answered < asked for seen in ended(facts))
    found = (*_changed(facts, asked), *_off_the_record(facts, over))
    return Finding(len(facts.ordered("cancel")) if over and raced else 0, found)


def _changed(facts: Facts, asked: int) -> Iterator[Violation]:
    """An outcome that was shown, and another one later; one of them is that the run was cancelled.

    A run that has failed may be pursued anew, by a new attempt.
    """
    first = next((seen for seen in ended(facts) if seen.status.state in {"done", "failed", "cancelled"}), None)
    if first is None:
        return
    for seen in facts.seen_after(first.answered):
        was, now = first.status.state, seen.status.state
        if was == "failed" and (now not in TERMINAL or _may_be_pursued_anew(facts, first, seen)):
            return
        if now not in {was, "unknown"} and "cancelled" in {was, now}:
            sentence = f"Run {facts.history.run!r} was shown {was}; a status asked later shows it {now}."
            yield blame("torn view", sentence, (first.answered, asked, seen.asked, seen.answered))
            return


def _may_be_pursued_anew(facts: Facts, first: Seen, now: Seen) -> bool:
    """Is it another attempt, or, where none is shown, may it be one, as the run was started again?"""
    again = any(first.asked < ask.at < now.answered for ask in facts.asked("start"))
    return now.status.attempt != first.status.attempt or (now.status.attempt is None and again)


def _off_the_record(facts: Facts, over: list[Seen]) -> Iterator[Violation]:
    """Effects of a cancelled run that are shown as if there had been none."""
    for seen in over:
        for shown in seen.status.operations if seen.status.state == "cancelled" else ():
            made = next((at for at in _records(facts, shown.id) if at < seen.asked), None)
            if made is not None and shown.state in {"planned", "skipped"} and not _counts_for_nothing(facts, shown.id):
                sentence = f"{shown.id!r} had taken effect, but the cancelled run shows it as {shown.state}."
                yield blame("amnesia", sentence, (made, seen.asked, seen.answered), shown.id)
                return


def _counts_for_nothing(facts: Facts, op: str) -> bool:
    return may_lose(facts, op) or facts.is_revocable(op)


def _records(facts: Facts, op: str) -> Iterator[int]:
    """Events from which an operation is known to have taken effect: the receiver did it, or a status showed it accepted."""
    yield from (one.applied_at for one in facts.dispatches(op) if one.applied_at is not None)
    shown = ((seen, seen.operation(op)) for seen in facts.statuses)
    yield from (seen.answered for seen, one in shown if one is not None and one.state in ACCEPTED and one.nonce)


@obligation(
    "CAN-4",
    kind="safety",
    profile="Control",
    promise="What was sent and has no known outcome when a run is stopped stays visible as such in the stopped run.",
    tested_by="replies lost, receivers that cannot be asked, and then cancel; cancel while a call is under way, then kill",
    anomaly=("false certainty", "amnesia"),
    minimum=3,
    causes=(
        "the stop ends everything that has not ended, by one state for all",
        "what is under way is taken out of the records together with what was never begun",
        "a cancelled run shows its results, and nothing that has none",
    ),
    learnt_from=("F07",),
)
def unresolved_stays_visible_after_a_stop(history: History) -> Finding:
    facts = look(history)
    stop = accepted_stop(facts)
    if stop is None or not history.declared.shows_operations:
        return Finding()
    over = [seen for seen in facts.seen_after(stop.asked_at) if says_it_is_over(seen) and seen.status.operations]
    found: dict[str, Violation] = {}
    tested: set[str] = set()
    for seen in over:
        for op in senders(facts):
            is_own = op in facts.calls and not is_inherited(facts, op) and not may_lose(facts, op)
            if is_own and all(_is_open_question(facts, op, seen.asked, at) for at in (seen.asked, seen.answered)):
                tested.add(op)
                if (violation := _denied(facts, op, seen)) is not None:
                    found.setdefault(op, violation)
    return Finding(len(tested), tuple(found.values()))


def _is_open_question(facts: Facts, op: str, asked: int, index: int) -> bool:
    """Had `op` been sent by event `asked`, and could nobody but its receiver know by `index` what came of any such request?"""
    sent = [request for request in facts.dispatches(op) if request.at < asked]
    if not sent or not all(facts.uncertain(request, index) for request in sent) or facts.expired(op, index):
        return False
    told = (one for one in facts.lookups(op) if one.replied_at is not None and one.replied_at < index)
    return not any(one.reply is not None and one.reply.kind in {"found", "missing"} for one in told)


def _denied(facts: Facts, op: str, seen: Seen) -> Violation | None:
    """How a status of a stopped run fails to show an open question; None when it does not fail."""
    shown, sent = seen.operation(op), facts.dispatches(op)[0].at
    if shown is None:
        sentence = f"{op!r} was sent and nobody knows what came of it; the stopped run does not list it."
        return blame("amnesia", sentence, (sent, seen.asked, seen.answered), op)
    if shown.state not in _DENIALS or facts.refusal_before(seen.answered, op):
        return None
    sentence = f"{op!r} was sent and nobody knows what came of it; the stopped run shows it as {shown.state}."
    return blame("false certainty", sentence, (sent, seen.asked, seen.answered), op)


@obligation(
    "CAN-6",
    kind="liveness",
    profile="Control",
    promise="Work that does not heed the stop is ended all the same once its grace is over, and keeps the run no longer.",
    tested_by="cancel while a call is under way whose receiver answers long after the grace, or never",
    anomaly="stuck",
    minimum=2,
    causes=(
        "the run is over only when every call has returned by itself",
        "the grace is a timer in memory of the process that took the stop",
        "what is under way is given up, and the run is not told",
    ),
    learnt_from=("F01",),
)
def deaf_work_is_ended(history: History) -> Finding:
    facts = look(history)
    stop, grace_ns = accepted_stop(facts), history.declared.grace_ns
    if stop is None or stop.ok_at is None or grace_ns is None or facts.struck("jump"):
        return Finding()
    deaf = [one for one in in_flight(facts, stop.ok_at) if _is_deaf(facts, one, facts.at_ns(stop.asked_at) + grace_ns)]
    latest_ns = _back_ns(facts, stop.ok_at) + grace_ns + max(grace_ns, _OVERSTAY_NS)
    latest_ns += facts.lost_ns(facts.at_ns(stop.ok_at), facts.history.events[-1].at_ns)
    found = (_overstayed(facts, request, stop, latest_ns) for request in deaf)
    return Finding(len(deaf), tuple(one for one in found if one))


def _is_deaf(facts: Facts, request: Request, over_ns: int) -> bool:
    """Was a request under the stop without a reply when the grace was over, its worker living?"""
    end = next((index for index, event in enumerate(facts.history.events) if event.at_ns >= over_ns), None)
    return end is not None and is_open(request, end) and _goes_on(facts, request, end)


def _goes_on(facts: Facts, request: Request, end: int) -> bool:
    """Did its worker wait for the answer until event `end`, with nothing happening to it? A server may have been killed."""
    passed = facts.history.events[request.at : end]
    return not met_a_storm(facts, request, end) and not any(_is_blow(facts, event) for event in passed)


def _is_blow(facts: Facts, event: Event) -> bool:
    match event:
        case Fired(label=label):
            return actions_of(label)[:1] not in _HARMLESS
        case Died(incarnation=unit, cause=cause):
            return cause != "killed" or unit in facts.workers
        case _:
            return isinstance(event, Paused | Resumed)


def _back_ns(facts: Facts, stopped: int) -> int:
    """When the grace can begin at the latest: as the stop was acknowledged, or as a server that died later answers again."""
    died = max((at for at in facts.deaths if at > stopped), default=None)
    seen = None if died is None else next(iter(facts.seen_after(died)), None)
    return facts.at_ns(stopped if seen is None else seen.answered)


def _overstayed(facts: Facts, request: Request, stop: Command, latest_ns: int) -> Violation | None:
    """Deaf work that many statuses still showed at work when it had to be over long since."""
    late = [seen for seen in facts.seen_after(stop.ok_at or 0) if facts.at_ns(seen.asked) > latest_ns]
    shown = [seen for seen in late if _is_kept(facts, seen, request.op)]
    again = next((seen for seen in shown[1:] if facts.at_ns(seen.asked) > latest_ns + _LATE_NS), None)
    if again is None or not _goes_on(facts, request, again.answered):
        return None
    after_ns = facts.at_ns(shown[0].asked) - facts.at_ns(stop.ok_at or 0)
    sentence = (
        f"The stop was acknowledged, and {after_ns / 1e9:.3g} s later {request.op!r} still kept the run from ending."
    )
    return blame("stuck", sentence, (request.at, stop.ok_at or 0, shown[0].asked, shown[-1].answered), request.op)


def _is_kept(facts: Facts, seen: Seen, op: str) -> bool:
    """Does a status show the run not over, with this operation, if it shows such, still under way?"""
    shown = seen.operation(op)
    if shown is None and seen.status.operations and not is_inherited(facts, op):
        return False
    return seen.status.state not in TERMINAL and (shown is None or shown.state == "dispatched")


@obligation(
    "CAN-8",
    kind="safety",
    profile="Control",
    level="SHOULD",
    promise="A stop that came too late is told so: its answer can be told from that of one that takes effect.",
    tested_by="cancel at the end of the run, and as its last call is answered",
    anomaly="false certainty",
    minimum=2,
    causes=(
        "cancel answers that it was taken, whatever state the run is in",
        "the update that found nothing to cancel counts as a success",
    ),
    learnt_from=("F04",),
)
def a_late_stop_is_told_so(history: History) -> Finding:
    facts = look(history)
    told = [one for one in facts.ordered("cancel") if any(ask.outcome != "indefinite" for ask in one.asks)]
    done = [seen for seen in facts.statuses if seen.status.state in {"done", "failed"}]
    tested = [
        one for one in told if any(seen.answered < one.asked_at for seen in done) or one.disposition == "too-late"
    ]
    found = (_misled(facts, one, done) for one in told)
    return Finding(len(tested), tuple(one for one in found if one))


def _misled(facts: Facts, stop: Command, done: list[Seen]) -> Violation | None:
    """A stop that says that it was in time though the run had ended, or ends as if there had been none; or the reverse."""
    if stop.ok_at is None:
        return None
    before = next((seen for seen in done if seen.answered < stop.asked_at), None)
    if before is not None and stop.disposition != "too-late":
        sentence = (
            f"Run {facts.history.run!r} was shown {before.status.state} before it was cancelled, and the stop was answered "
            f"{_quoted(stop.disposition)}."
        )
        return blame("false certainty", sentence, (before.answered, stop.asked_at, stop.ok_at))
    last = facts.last_seen()
    if last is None or last.asked < stop.ok_at:
        return None
    was_told, became = stop.disposition, last.status.state
    is_only = len(facts.ordered("cancel")) == len(stop.asks) == 1  # a repeat may come too late for what it repeats
    if (was_told, became) == ("accepted", "done") or ((was_told, became) == ("too-late", "cancelled") and is_only):
        sentence = f"The stop was answered {_quoted(was_told)}, and the run is {became}."
        return blame("false certainty", sentence, (stop.asked_at, stop.ok_at, last.answered))
    return None


def _quoted(disposition: str | None) -> str:
    return "like any other" if disposition is None else repr(disposition)

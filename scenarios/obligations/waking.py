"""SCH-5 6 12: what becomes of events that nobody needs, of waits that hear nothing, and of events that meet a timeout."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from scenarios.history import ACCEPTED, History
from scenarios.index import Facts, look
from scenarios.obligations.registry import blame, obligation
from scenarios.obligations.scheduling import begin_ns, may_be_unable
from scenarios.obligations.signals import SET_ASIDE
from scenarios.observed import Ask, Seen, Signal
from scenarios.plan import Wait
from scenarios.tenure import is_calm
from scenarios.verdict import Finding, Violation

#: Ends after which a run takes nothing any more; one that is blocked may.
_OVER = frozenset({"done", "failed", "cancelled"})
#: The words for an event that is not going to be used, and for one that came before.
_NOT_USED = SET_ASIDE | {"duplicate"}
#: How late a timer may be noticed: nobody polls less often.
_LATE_NS = 1_000_000_000


@obligation(
    "SCH-5",
    kind="safety",
    profile="Control",
    promise="A signal that comes again, too late, or for nobody is answered as was declared for such, and each time alike.",
    tested_by="signals repeated, sent after the end, and by a name that nothing waits for",
    anomaly=("false certainty", "torn view"),
    minimum=3,
    causes=(
        "whatever comes is acknowledged, and what cannot be used is dropped",
        "a repeat is looked at anew, as things are by then",
        "a signal is looked up among the waits that are open, and an exception says that there is none",
        "a run that has ended by something unresolved calls signals late, and takes them when a late word lets it go on",
    ),
    learnt_from=("F21", "F26"),
)
def events_meet_their_disposition(history: History) -> Finding:
    facts = look(history)
    exercised = 0
    found: list[Violation] = []
    for signal in facts.signals:
        rule = _rule(facts, signal)
        told = [ask for ask in signal.asks if ask.outcome == "error" or (ask.outcome == "ok" and ask.disposition)]
        if rule is not None:
            exercised += bool(told)
            found += [one for ask in signal.asks if (one := _not_as_declared(facts, signal, ask, rule))]
        repeats = list(_repeats(signal))
        exercised += len(repeats)
        found += [one for first, again in repeats if (one := _answered_anew(facts, signal, first, again))]
        found += [one for one in (_used_all_the_same(facts, signal),) if one]
    return Finding(exercised, tuple(found))


@attrs.frozen
class _Rule:
    """What is declared for a signal, in words, and the answers that agree with it."""

    kind: str
    may_be_refused: bool
    must_be_told: bool  # a bare acknowledgement would say that it is used
    dispositions: frozenset[str]


def _rule(facts: Facts, signal: Signal) -> _Rule | None:
    """The rule for a signal that certainly nothing can use; None for one that something may."""
    declared = facts.history.declared
    is_late = any(seen.status.state in _OVER and seen.answered < signal.asked_at for seen in facts.statuses)
    is_named = any(wait.signal == signal.name for wait in facts.history.plan.waits())
    refuses_late, refuses_unmatched = declared.late_signal == "refused", declared.unmatched_signal == "refused"
    if is_named:
        return _Rule("came when the run was over", refuses_late, refuses_late, _NOT_USED) if is_late else None
    refusable = refuses_unmatched or refuses_late  # the run may have ended, unseen
    kept = frozenset() if refuses_unmatched or is_late else frozenset({"buffered"})
    return _Rule("is one that nothing waits for", refusable, refuses_unmatched, _NOT_USED | kept)


def _not_as_declared(facts: Facts, signal: Signal, ask: Ask, rule: _Rule) -> Violation | None:
    if ask.answered_at is None or ask.outcome == "indefinite":
        return None
    evidence = (ask.at, ask.answered_at)
    if ask.outcome == "error":
        is_known = any(seen.status.state != "unknown" for seen in facts.seen_after(ask.answered_at))
        if rule.may_be_refused or not is_known or may_be_unable(facts, ask.answered_at):
            return None
        return blame(
            "torn view", f"Signal {signal.id!r} {rule.kind}; by declaration it is taken, and it was refused.", evidence
        )
    if ask.disposition in rule.dispositions or (ask.disposition is None and not rule.must_be_told):
        return None
    said = "acknowledged like any other" if ask.disposition is None else f"called {ask.disposition}"
    return blame("false certainty", f"Signal {signal.id!r} {rule.kind}, and it was {said}.", evidence)


def _repeats(signal: Signal) -> Iterator[tuple[Ask, Ask]]:
    """The first acknowledgement of a signal, with each later asking that was answered definitely."""
    first = next((ask for ask in signal.asks if ask.outcome == "ok"), None)
    if first is None or first.answered_at is None:
        return
    for ask in signal.asks:
        if ask.at > first.answered_at and ask.outcome != "indefinite":
            yield first, ask


def _answered_anew(facts: Facts, signal: Signal, first: Ask, again: Ask) -> Violation | None:
    """A repeat whose answer contradicts the first one: what is used stays used, and what came too late stays late."""
    evidence = tuple(at for at in (first.answered_at, again.at, again.answered_at) if at is not None)
    if again.outcome == "error":
        is_known = any(seen.status.state != "unknown" for seen in facts.seen_after(again.at))
        is_unable = may_be_unable(facts, again.at if again.answered_at is None else again.answered_at)
        if facts.history.declared.late_signal == "refused" or not is_known or is_unable:
            return None
        return blame(
            "torn view", f"Signal {signal.id!r} was acknowledged, and refused when it was sent again.", evidence
        )
    was, now = first.disposition, again.disposition
    if was not in {"released", "late"} or now in {None, was, "duplicate"}:
        return None
    return blame("torn view", f"Signal {signal.id!r} was {was}; sent again, it was {now}.", evidence)


def _used_all_the_same(facts: Facts, signal: Signal) -> Violation | None:
    """A signal that was called late when it first came, and that a wait of its name is shown to have taken later."""
    first = next((ask for ask in signal.asks if ask.outcome == "ok"), None)
    if first is None or first.answered_at is None or first.disposition != "late" or signal.nonce is None:
        return None
    waits = [wait.id for wait in facts.history.plan.waits() if wait.signal == signal.name]
    for seen in facts.seen_after(first.answered_at):
        taken = next((wait for wait in waits if seen.accepted().get(wait) == signal.nonce), None)
        if taken is not None:
            sentence = f"Signal {signal.id!r} was called late, and {taken!r} is shown to have ended by it."
            return blame("torn view", sentence, (first.at, first.answered_at, seen.asked, seen.answered), taken)
    return None


@obligation(
    "SCH-6",
    kind="safety",
    profile="Control",
    promise="A wait that was given a time ends when that is over, not earlier, whatever was down meanwhile.",
    tested_by="nothing is heard until long after the time of a wait, and worker or server are killed while it is on",
    anomaly=("stuck", "out of order"),
    minimum=2,
    causes=(
        "the timeout is a timer in memory of the process that began to wait",
        "the time is counted from when the process came up",
        "timeouts are looked at only when something else happens to the run",
    ),
    learnt_from=("F38",),
)
def waits_end_with_their_time(history: History) -> Finding:
    facts = look(history)
    waits = [wait for wait in history.plan.waits() if wait.timeout_ns is not None]
    if facts.struck("jump"):
        return Finding()  # whose clock is right is another question
    found = [one for wait in waits if (one := _overdue(facts, wait) or _too_early(facts, wait))]
    return Finding(sum(_silent(facts, wait) for wait in waits), tuple(found))


def _silent(facts: Facts, wait: Wait) -> int:
    """How often it was tested: a wait that ended by its timeout, and each death while it was on."""
    over, on = timed_out(facts, wait), first_on(facts, wait)
    if over is None:
        return 0
    return 1 + (0 if on is None else sum(on.answered < death < over.answered for death in facts.deaths))


def first_on(facts: Facts, wait: Wait) -> Seen | None:
    """The first status that shows a wait open for certain."""
    return next((seen for seen in facts.statuses if _is_on(facts, seen, wait)), None)


def _is_on(facts: Facts, seen: Seen, wait: Wait) -> bool:
    status, shown = seen.status, seen.operation(wait.id)
    if status.state not in {"waiting", "running"} or status.paused or status.cancel is not None:
        return False
    if shown is None:
        names = [one.signal for one in facts.history.plan.waits()]
        return (status.state, status.on) == ("waiting", wait.signal) and names.count(wait.signal) == 1
    if shown.state != "planned" or shown.ready is not None:
        return shown.state == "planned" and bool(shown.ready)
    needs = [seen.operation(one) for one in facts.before[wait.id]]
    is_free = all(one is not None and one.state in ACCEPTED for one in needs)
    return is_free and not facts.history.plan.guards(wait.id)


def timed_out(facts: Facts, wait: Wait) -> Seen | None:
    """The first status that shows a wait ended without a signal, as far as answers are shown."""
    return next((seen for seen in facts.statuses if facts.shows_answers and _ended_without(seen, wait)), None)


def _ended_without(seen: Seen, wait: Wait) -> bool:
    shown = seen.operation(wait.id)
    return shown is not None and shown.state == "succeeded" and shown.nonce is None


def _overdue(facts: Facts, wait: Wait) -> Violation | None:
    """A wait that is shown on long after its time, with everybody there to end it."""
    on = first_on(facts, wait)
    if on is None or facts.ordered("pause"):
        return None
    latest_ns = facts.at_ns(on.answered) + (wait.timeout_ns or 0) + _LATE_NS
    for seen in facts.statuses:
        late_ns = facts.at_ns(seen.asked) - latest_ns - facts.lost_ns(facts.at_ns(on.answered), facts.at_ns(seen.asked))
        if late_ns > 0 and _is_on(facts, seen, wait) and is_calm(facts, seen, _LATE_NS):
            lasts = (facts.at_ns(seen.asked) - facts.at_ns(on.answered)) / 1e9
            sentence = (
                f"{wait.id!r} waits {(wait.timeout_ns or 0) / 1e9:g} s at most, and had been on for {lasts:.3g} s."
            )
            return blame("stuck", sentence, (on.answered, seen.asked, seen.answered), wait.id)
    return None


def _too_early(facts: Facts, wait: Wait) -> Violation | None:
    """A wait that ended without a signal before its time can have been over."""
    over = timed_out(facts, wait)
    if over is None or any(one.name == wait.signal and one.asked_at < over.answered for one in facts.signals):
        return None
    end_ns = _timeout_at_ns(facts, wait, over.answered)
    if end_ns is None or facts.at_ns(over.answered) >= end_ns:
        return None
    early = (end_ns - facts.at_ns(over.answered)) / 1e9
    sentence = f"{wait.id!r} was shown ended without a signal {early:.3g} s before its time can have been over."
    return blame("out of order", sentence, (over.answered,), wait.id)


@obligation(
    "SCH-12",
    kind="safety",
    profile="Control",
    promise="A wait ends in one way: timed out, it takes no later event, which is there for the next wait of its name.",
    tested_by="signals sent just after the time of a wait, with another wait of the same name open; the server down meanwhile",
    anomaly=("stale acceptance", "torn view", "amnesia", "duplicate effect"),
    minimum=2,
    causes=(
        "a wait that timed out stays registered for its event",
        "timer and signal each look whether the wait has ended, and then write",
        "waking clears all that is waited for, also what was added since it was looked at",
    ),
    learnt_from=("F21", "F33", "F37", "F51"),
)
def wait_ends_in_one_way(history: History) -> Finding:
    facts = look(history)
    waits = [wait for wait in history.plan.waits() if wait.timeout_ns is not None]
    exercised = sum(_crossings(facts, wait) for wait in waits)
    found: list[Violation] = []
    for wait in waits:
        found += [one for one in (_both_ways(facts, wait), _handed_on(facts, wait), _swallowed(facts, wait)) if one]
        found += _twice(facts, wait)
    found += _taken_by_nobody(facts)
    return Finding(exercised, tuple(found))


def _crossings(facts: Facts, wait: Wait) -> int:
    """Signals of its name that were acknowledged when the time of this wait was over, or may have been."""
    count = 0
    if not any(wait.id in seen.accepted() for seen in facts.statuses):
        return count  # nobody has seen how it ended
    for signal in facts.signals:
        if signal.name == wait.signal and signal.ok_at is not None:
            end_ns = _timeout_at_ns(facts, wait, signal.asked_at)
            count += end_ns is not None and end_ns <= facts.at_ns(signal.ok_at) and first_on(facts, wait) is not None
    return count


def _timeout_at_ns(facts: Facts, wait: Wait, limit: int) -> int | None:
    """The earliest moment at which the time of a wait can be over, by what was seen before event `limit`."""
    begun_ns = begin_ns(facts, wait.id, limit)
    return None if begun_ns is None else begun_ns + (wait.timeout_ns or 0) - facts.history.declared.timer_grain_ns


def _both_ways(facts: Facts, wait: Wait) -> Violation | None:
    """Shown ended without a signal in one status, and with one in another."""
    over = timed_out(facts, wait)
    if over is None:
        return None
    other = next((seen for seen in facts.statuses if seen.accepted().get(wait.id) is not None), None)
    if other is None:
        return None
    sentence = f"{wait.id!r} was shown timed out, and also ended by a signal."
    return blame("torn view", sentence, (over.answered, other.answered), wait.id)


def _handed_on(facts: Facts, wait: Wait) -> Violation | None:
    """What a signal brought is handed on as the answer of a wait that timed out."""
    over = timed_out(facts, wait)
    request = next((one for one in facts.sent if wait.id in one.carries), None)
    if over is None or request is None:
        return None
    sentence = f"{wait.id!r} was shown timed out, and {request.op!r} hands on what a signal brought for it."
    return blame("torn view", sentence, (over.answered, request.at), wait.id)


def _swallowed(facts: Facts, wait: Wait) -> Violation | None:
    """It timed out, though a signal was acknowledged while it alone was waiting for one of that name, and in time."""
    over = timed_out(facts, wait)
    others = [one for one in facts.history.plan.waits() if one.signal == wait.signal and one.id != wait.id]
    for signal in facts.signals if over is not None else ():
        in_time = signal.name == wait.signal and signal.ok_at is not None and signal.disposition not in SET_ASIDE
        if not in_time or signal.ok_at is None or not _was_on_before(facts, wait, signal.asked_at):
            continue
        end_ns = _timeout_at_ns(facts, wait, signal.asked_at)
        is_alone = all(_was_over_before(facts, one, signal.asked_at) for one in others)
        if is_alone and end_ns is not None and facts.at_ns(signal.ok_at) < end_ns and not facts.struck("jump"):
            sentence = f"{signal.id!r} was acknowledged while {wait.id!r} waited for it, which timed out all the same."
            return blame("amnesia", sentence, (signal.ok_at, over.answered if over else signal.ok_at), wait.id)
    return None


def _was_on_before(facts: Facts, wait: Wait, index: int) -> bool:
    on = first_on(facts, wait)
    return on is not None and on.answered < index


def _was_over_before(facts: Facts, wait: Wait, index: int) -> bool:
    """Had a status shown this wait ended, in whatever way, by event `index`?"""
    return any(seen.answered < index and wait.id in seen.accepted() for seen in facts.statuses)


def _taken_by_nobody(facts: Facts) -> Iterator[Violation]:
    """Signals that are said to have released something, when every wait of their name, or the one that is named, was over."""
    for signal in facts.signals:
        first = next((ask for ask in signal.asks if ask.outcome == "ok"), None)
        named = [wait for wait in facts.history.plan.waits() if wait.signal == signal.name]
        if first is None or first.answered_at is None or first.disposition != "released" or not named:
            continue
        consumer = str(first.body.get("consumer") or "")
        takers = [wait for wait in named if consumer == wait.id or consumer.endswith(f":{wait.id}")] or named
        if all(_was_over_before(facts, wait, signal.asked_at) for wait in takers):
            sentence = (
                f"Signal {signal.id!r} is said to have released {takers[0].id!r}, which had ended before it was sent."
            )
            yield blame("stale acceptance", sentence, (signal.asked_at, first.answered_at), takers[0].id)


def _twice(facts: Facts, wait: Wait) -> Iterator[Violation]:
    """The journal has it ended more than once."""
    for said in facts.journals:
        ends = [one for one in said.body.transitions if one.operation == wait.id and one.to_state in ACCEPTED]
        if len(ends) > 1:
            sentence = f"The journal has {wait.id!r} ended {len(ends)} times."
            yield blame("duplicate effect", sentence, (said.asked, said.answered), wait.id)
            return

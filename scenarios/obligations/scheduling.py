"""SCH-1 3 4: timers keep their time, repeated deliveries count once, and an early signal does not vanish."""

from __future__ import annotations

from collections.abc import Iterator

from scenarios.history import TERMINAL, Died, History, Paused
from scenarios.index import Facts, look
from scenarios.lineage import uses
from scenarios.obligations.registry import blame, obligation
from scenarios.obligations.signals import deciding_ask, loss, lost, used_twice, was_early
from scenarios.observed import Ask
from scenarios.plan import Sleep, Wait
from scenarios.story import STORAGE_ACTIONS
from scenarios.verdict import Finding, Violation


@obligation(
    "SCH-1",
    kind="safety",
    profile="Control",
    promise="A durable timer fires once and never early, also over restarts.",
    tested_by="kill and pause while a timer runs",
    anomaly=("out of order", "duplicate effect"),
    minimum=1,
    causes=(
        "the timer lives in memory and is taken for fired, or forgotten, after a restart",
        "the remaining time is recorded instead of the moment it ends",
        "a timer is taken out of its table before what it wakes is recorded",
    ),
    learnt_from=("F11", "F25", "F28", "F38", "F48"),
)
def timer_fires_once_and_never_early(history: History) -> Finding:
    facts = look(history)
    sleeps = history.plan.sleeps()
    tested = [sleep for sleep in sleeps if _slept_through_trouble(facts, sleep)]
    early = (violation for sleep in sleeps if (violation := _fired_early(facts, sleep)))
    twice = (violation for sleep in sleeps if (violation := _fired_twice(facts, sleep)))
    return Finding(len(tested), (*early, *twice))


def begin_ns(facts: Facts, op: str, limit: int) -> int | None:
    """The earliest moment `op` can have begun, by what was seen before event `limit`; None when no start was asked."""
    start = next(iter(facts.asked("start")), None)
    if start is None or start.at >= limit:
        return None
    ends = (_end_ns(facts, before, limit) for before in facts.before[op])
    return max([start.event.at_ns, *(end for end in ends if end is not None)])


def _end_ns(facts: Facts, op: str, limit: int) -> int | None:
    """The earliest moment `op` can have ended, by what was seen before event `limit`; None when nothing tells."""
    leaf = facts.history.plan.leaf(op)
    if isinstance(leaf, Sleep):
        begin = begin_ns(facts, op, limit)
        return None if begin is None else begin + leaf.ns - facts.history.declared.timer_grain_ns
    if isinstance(leaf, Wait):
        return wait_ns(facts, leaf, limit)
    if op not in facts.calls or not facts.history.plan.is_owed(op):
        return None  # what is tolerated or left out may end in other ways
    replies = [one.reply.at_ns for one in facts.requests if one.op == op and one.settled_before(limit) and one.reply]
    told = [facts.at_ns(one.asked_at) for one in facts.notices(op) if one.asked_at < limit]
    return min((*replies, *told), default=None)


def wait_ns(facts: Facts, wait: Wait, limit: int) -> int | None:
    """The earliest moment a wait can have ended: as its signal was sent, or by its own timeout."""
    ends = [facts.at_ns(one.asked_at) for one in facts.signals if one.name == wait.signal and one.asked_at < limit]
    if wait.timeout_ns is not None:
        begin = begin_ns(facts, wait.id, limit)
        if begin is None:
            return None
        ends.append(begin + wait.timeout_ns - facts.history.declared.timer_grain_ns)
    return min(ends, default=None)


def _firings(facts: Facts, sleep: Sleep) -> Iterator[tuple[int, str]]:
    """Events that show the timer has fired, with what they show; not in order."""
    for request in facts.sent:
        if sleep.id in facts.ancestors[request.op] and not request.event.lookup:
            yield request.at, f"{request.op!r} was dispatched"
    for seen in facts.statuses:
        shown = seen.operation(sleep.id)
        if seen.status.state == "done" and facts.is_settled(seen, sleep.id):
            yield seen.answered, "the run was shown done"
        elif shown is not None and shown.state == "succeeded":
            yield seen.answered, "it was shown as ended"


def _fired_early(facts: Facts, sleep: Sleep) -> Violation | None:
    """It never fires early by the clock of its runtime, which is not the observer's once it has jumped."""
    for at, what in sorted(_firings(facts, sleep)):
        end = _end_ns(facts, sleep.id, at)
        if end is not None and facts.at_ns(at) < end and not facts.struck("jump", at):
            early = _duration(end - facts.at_ns(at))
            sentence = f"Timer {sleep.id!r} lasts {_duration(sleep.ns)}, but {what} {early} before it can have ended."
            return blame("out of order", sentence, (*_causes(facts, sleep, at), at), sleep.id)
    return None


def _duration(ns: int) -> str:
    return f"{ns / 1_000_000:g} ms" if ns >= 1000 else f"{ns} ns"


def _causes(facts: Facts, sleep: Sleep, limit: int) -> tuple[int, ...]:
    """The events from which the timer's time is counted: the start, and the answers of what comes before it."""
    starts = [ask.at for ask in facts.asked("start")[:1]]
    before = facts.before[sleep.id]
    replies = [one.replied_at for one in facts.requests if one.op in before and one.settled_before(limit)]
    return tuple(at for at in (*starts, *replies[:1]) if at is not None)


def _fired_twice(facts: Facts, sleep: Sleep) -> Violation | None:
    """What follows the timer was dispatched again for no reason; a repeated delivery would be a reason of its own."""
    if repeated_asks(facts):
        return None
    for op in facts.after[sleep.id]:
        pair = next(iter(facts.unexplained(op)), None) if op in facts.calls else None
        if pair is not None:
            sentence = f"Timer {sleep.id!r} fired twice: {op!r} was dispatched, answered, and dispatched again."
            return blame("duplicate effect", sentence, (pair[0].at, pair[1].at), sleep.id)
    return None


def _slept_through_trouble(facts: Facts, sleep: Sleep) -> bool:
    """Was a worker killed or paused when this timer cannot have ended yet, and did the timer fire later?"""
    fired = min((at for at, _ in _firings(facts, sleep)), default=None)
    begin = begin_ns(facts, sleep.id, fired) if fired is not None else None
    if fired is None or begin is None:
        return False
    events = facts.history.events
    halts = (at for at in facts.halts if at < fired and isinstance(events[at], Died | Paused))
    return any(begin <= facts.at_ns(at) < begin + sleep.ns for at in halts)


def repeated_asks(facts: Facts) -> tuple[Ask, ...]:
    """Starts and signals asked again, with the same id, before the run was seen to have ended."""
    ended = next((seen.answered for seen in facts.statuses if seen.status.state in TERMINAL), len(facts.history.events))
    starts = facts.asked("start")[1:]
    signals = (ask for signal in facts.signals for ask in signal.asks[1:])
    return tuple(sorted((ask for ask in (*starts, *signals) if ask.at < ended), key=lambda ask: ask.at))


def has_answers(facts: Facts) -> bool:
    """Has any receiver answered the run? Before that there is nothing that could be accepted, or done, a second time."""
    return any(one.answer is not None or one.told for one in facts.sent)


@obligation(
    "SCH-3",
    kind="safety",
    profile="Control",
    promise="A delivery that is repeated is accepted once: no operation is worked twice for it.",
    tested_by="start and signal repeated with the same id while the run is going on",
    anomaly="duplicate effect",
    minimum=2,
    causes=(
        "a repeated message is not recognised by its id",
        "the check for a known id and the acceptance are two transactions",
        "a repeated start puts the run into the queue a second time",
    ),
    learnt_from=("F16", "F22", "F48"),
)
def repeated_delivery_counts_once(history: History) -> Finding:
    facts = look(history)
    repeats = repeated_asks(facts)
    if not repeats:
        return Finding()
    twice = (violation for op in facts.calls if (violation := _worked_again(facts, op, repeats)))
    signals = [signal for signal in facts.signals if len(signal.asks) > 1]
    return Finding(len(repeats) if has_answers(facts) else 0, (*twice, *used_twice(facts, signals)))


def _worked_again(facts: Facts, op: str, repeats: tuple[Ask, ...]) -> Violation | None:
    for one, two in facts.unexplained(op):
        cause = next((ask for ask in repeats if ask.at < two.at), None)
        if cause is not None:
            sentence = (
                f"A {cause.event.verb} was delivered twice, and {op!r} was worked a second time though its first request was "
                "answered and nothing had gone wrong."
            )
            return blame("duplicate effect", sentence, (cause.at, one.at, two.at), op)
    return None


@obligation(
    "SCH-4",
    kind="safety",
    profile="Control",
    promise="A signal that arrives before its wait begins is kept for it or refused, as declared, and never silently gone.",
    tested_by="signal sent right after the start, before its wait can have begun; then kill",
    anomaly=("amnesia", "false certainty", "torn view"),
    minimum=1,
    causes=(
        "signals go to registered waiters only, and there is none yet",
        "the wait is registered after the check for what has arrived",
        "what has arrived early is kept in memory, and a crash empties it",
    ),
    learnt_from=("F26", "F35", "F36"),
)
def early_signal_is_kept_or_refused(history: History) -> Finding:
    facts = look(history)
    early = [
        signal
        for signal in facts.signals
        if any(ask.outcome != "indefinite" and was_early(facts, ask, signal.name) for ask in signal.asks)
    ]
    gone = [
        loss(facts, suspects, "came before its wait and was acknowledged")
        for suspects in lost(facts)
        if all(was_early(facts, deciding_ask(one), one.name) for one in suspects)
    ]
    return Finding(len(early), (*gone, *_refused_yet_used(facts), *_not_as_declared(facts)))


def _not_as_declared(facts: Facts) -> Iterator[Violation]:
    """Early signals of a run that is known, refused though nothing was in the way and they are declared to be kept."""
    start = facts.start_ok()
    if facts.history.declared.early_signal != "buffered" or start is None or start.answered_at is None:
        return
    for ask in (ask for signal in facts.signals for ask in signal.asks if was_early(facts, ask, signal.name)):
        is_plain = start.answered_at < ask.at and not facts.stopped_at(ask.at)
        if ask.outcome != "error" or ask.answered_at is None or not is_plain or may_be_unable(facts, ask.answered_at):
            continue
        is_known = any(seen.status.state not in {"unknown", *TERMINAL} for seen in facts.seen_after(ask.answered_at))
        if is_known and not facts.halted(start.at, ask.answered_at) and not facts.ordered("cancel"):
            sentence = f"Signal {ask.event.id!r} came before its wait; by declaration it is kept, and it was refused."
            yield blame("torn view", sentence, (start.answered_at, ask.at, ask.answered_at))
            return


def may_be_unable(facts: Facts, index: int) -> bool:
    """May a harness have to answer with an error at event `index`, as its storage has failed or is failing?"""
    return facts.held_up(index) or any(facts.struck(action, index) for action in STORAGE_ACTIONS)


def _refused_yet_used(facts: Facts) -> Iterator[Violation]:
    for signal in facts.signals:
        waits = {wait.id for wait in facts.history.plan.waits() if wait.signal == signal.name}
        used = next((use for use in uses(facts) if use.op in waits and use.nonce == signal.nonce), None)
        if signal.refused and used is not None:
            sentence = f"Signal {signal.id!r} ({signal.name}) was refused every time, but {used.op!r} ended with it."
            yield blame("false certainty", sentence, (signal.asked_at, used.at), used.op)

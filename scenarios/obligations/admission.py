"""SCH-7 8 9: what happens when there is more work than room, than time, or than places to wait in."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from scenarios.history import ACCEPTED, TERMINAL, Died, History, Received, Replied
from scenarios.index import Facts, look
from scenarios.joining import asks_of, other_runs, statuses_of
from scenarios.obligations.registry import blame, obligation
from scenarios.observed import Ask, Seen
from scenarios.plan import Call, Compensate, Model
from scenarios.stops import may_lose
from scenarios.tenure import patience_ns
from scenarios.terms import ON_ITS_WAY_NS
from scenarios.verdict import Finding, Violation


@obligation(
    "SCH-7",
    kind="safety",
    profile="Control",
    promise="When there is no room for more, a start is refused in so many words; what was admitted is kept, and no worker has "
    "more in hand than it has slots.",
    tested_by="many runs started at once, kills while they are going on, and more calls at a time than a worker has slots",
    anomaly=("amnesia", "phantom effect", "overspend"),
    minimum=2,
    causes=(
        "what is beyond the limit is acknowledged, and dropped from the end of a queue",
        "the limit is looked at, and the run admitted, in two steps",
        "slots are counted when work is handed out, and not when an answer brings more",
        "a worker takes the slots of one that it believes dead, and is wrong",
    ),
    learnt_from=("F27",),
)
def admission_tells_when_it_is_full(history: History) -> Finding:
    facts = look(history)
    beside = [_beside(history, run) for run in other_runs(history)]
    refused = [one for one in beside if one.is_refused]
    found = [violation for one in beside if (violation := _dropped(facts, one) or _worked_all_the_same(facts, one))]
    is_served = any(one.ok is not None for one in beside) and all(one.has_ended for one in beside if one.ok is not None)
    fullest = _fullest(facts)
    slots = history.declared.slots
    found += _beyond_slots(facts, fullest)
    is_full = slots is not None and fullest is not None and fullest.count >= slots
    return Finding(len(refused) + is_served + is_full, tuple(found))


@attrs.frozen
class _Beside:
    """Another run that was started beside the one that is judged."""

    run: str
    starts: tuple[Ask, ...]
    statuses: tuple[Seen, ...]

    @property
    def ok(self) -> Ask | None:
        """The first acknowledgement of its start."""
        return next((ask for ask in self.starts if ask.outcome == "ok"), None)

    @property
    def is_refused(self) -> bool:
        """Was its start refused for certain, each time?"""
        return all(ask.outcome == "error" for ask in self.starts)

    @property
    def has_ended(self) -> bool:
        return any(seen.status.state in TERMINAL for seen in self.statuses)


def _beside(history: History, run: str) -> _Beside:
    asks = asks_of(history, run)
    return _Beside(run, tuple(ask for ask in asks if ask.event.verb == "start"), statuses_of(asks))


def _dropped(facts: Facts, one: _Beside) -> Violation | None:
    """It was admitted, and is unknown later."""
    if one.ok is None or one.ok.answered_at is None or facts.struck("wipe") or facts.closed_as() == "stopped":
        return None
    for seen in one.statuses:
        if seen.asked > one.ok.answered_at and seen.status.state == "unknown":
            sentence = f"Run {one.run!r} was admitted beside {facts.history.run!r}, and there is none of that name now."
            return blame("amnesia", sentence, (one.ok.answered_at, seen.asked, seen.answered))
    return None


def _worked_all_the_same(facts: Facts, one: _Beside) -> Violation | None:
    """Every start of it was refused, and something of it was sent."""
    if not one.is_refused:
        return None
    sent = (n for n, event in enumerate(facts.history.events) if isinstance(event, Received) and event.run == one.run)
    first = next(sent, None)
    if first is None:
        return None
    sentence = f"The start of run {one.run!r} was refused, and it was worked all the same."
    return blame("phantom effect", sentence, (one.starts[0].answered_at or one.starts[0].at, first))


@attrs.frozen
class _Load:
    """How many requests one worker had open at one event, with the events of their receipt."""

    worker: int
    at: int
    received: tuple[int, ...]

    @property
    def count(self) -> int:
        return len(self.received)


def _fullest(facts: Facts) -> _Load | None:
    """The most requests that one living worker certainly waited for at a time, of whatever run."""
    open_: dict[int, dict[int, int]] = {}  # worker → call → index
    fullest: _Load | None = None
    callers: dict[int, int] = {}
    patience = patience_ns(facts)
    for index, event in enumerate(facts.history.events):
        match event:
            case Received(call=call, incarnation=worker):
                if facts.held_up(index) or facts.paused.get(worker) or facts.died.get(worker, index) < index:
                    continue
                if event.op in facts.ancestors and may_lose(facts, event.op):
                    continue  # nobody has to wait for it once another has won
                callers[call] = worker
                mine = open_.setdefault(worker, {})
                mine[call] = index
                waited = [at for at in mine.values() if event.at_ns - facts.at_ns(at) < patience]
                if fullest is None or len(waited) > fullest.count:
                    fullest = _Load(worker, index, tuple(waited))
            case Replied(call=call) if call in callers:
                open_[callers[call]].pop(call, None)
            case Died(incarnation=worker):
                open_.pop(worker, None)
                callers = {call: one for call, one in callers.items() if one != worker}
            case _:
                pass
    return fullest


def _beyond_slots(facts: Facts, fullest: _Load | None) -> Iterator[Violation]:
    """A worker that has more in hand than it may. One that gave up by force what was stopped may have room again."""
    slots = facts.history.declared.slots
    if slots is None or fullest is None or fullest.count <= slots or facts.ordered("cancel"):
        return
    sentence = f"Worker {fullest.worker} has {slots} slots, and waited for {fullest.count} answers at one time."
    yield blame("overspend", sentence, fullest.received)


@obligation(
    "SCH-8",
    kind="safety",
    profile="Control",
    promise="What is still queued when the time of its run is over is not dispatched any more.",
    tested_by="more work than slots, and a deadline that passes while some of it is queued; the server or the workers down",
    anomaly="resurrection",
    minimum=2,
    causes=(
        "the deadline is looked at when work is queued, and not when it is taken out",
        "what is in a worker's own queue is out of reach",
        "after a restart all that was due is handed out first, and timers are looked at later",
    ),
    learnt_from=(),
)
def queued_work_keeps_its_deadline(history: History) -> Finding:
    facts = look(history)
    start, deadline_ns = facts.start_ok(), history.plan.deadline_ns
    if start is None or start.answered_at is None or deadline_ns is None or facts.struck("jump"):
        return Finding()
    end_ns = facts.at_ns(start.answered_at) + deadline_ns
    over = next((n for n, event in enumerate(history.events) if event.at_ns > end_ns), None)
    ended = next((seen for seen in facts.statuses if seen.status.state in TERMINAL), None)
    if over is None:
        return Finding()
    queued = [op for op in _bound(facts) if _is_queued(facts, op, over)]
    found = [one for op in queued if (one := _sent_late(facts, op, start.answered_at, end_ns))]
    return Finding(len(queued) if ended is not None and ended.status.state != "done" else 0, tuple(found))


def _bound(facts: Facts) -> Iterator[str]:
    """What a deadline holds for: not what undoes, nor what lives on by itself."""
    for op, call in facts.calls.items():
        is_let_go = any(guard.kind == "detached" for guard in facts.history.plan.guards(op))
        if isinstance(call, Call | Model) and not isinstance(call, Compensate) and not is_let_go:
            yield op


def _is_queued(facts: Facts, op: str, index: int) -> bool:
    """Had all that it depends on been answered by event `index`, and it not been sent?"""
    is_free = all(facts.accepted_at.get(one, index) < index for one in facts.before[op])
    return is_free and not any(one.at < index for one in facts.dispatches(op))


def _sent_late(facts: Facts, op: str, start: int, end_ns: int) -> Violation | None:
    request = next(iter(facts.dispatches(op)), None)
    if request is None or facts.late(request) or facts.held_up(request.at):
        return None
    late_ns = request.event.at_ns - end_ns
    if late_ns <= ON_ITS_WAY_NS + facts.lost_ns(facts.at_ns(start), request.event.at_ns):
        return None
    sentence = f"{op!r} was queued when the time of its run was over, and dispatched {late_ns / 1e9:.3g} s after that."
    return blame("resurrection", sentence, (start, request.at), op)


@obligation(
    "SCH-9",
    kind="liveness",
    profile="Control",
    level="SHOULD",
    promise="What waits holds no worker's slot: with more waits open than there are slots, work gets on.",
    tested_by="many times more waits open than a worker has slots, with calls beside them; kills meanwhile",
    anomaly="stuck",
    minimum=2,
    causes=(
        "a wait is a coroutine, or a thread, of the worker",
        "the slot is held until the whole run moves on",
        "waits are worked off by polling, each in its turn",
    ),
    learnt_from=("F43",),
)
def waiting_takes_no_slot(history: History) -> Finding:
    facts = look(history)
    slots = history.declared.slots
    crowds = [seen for seen in facts.statuses if slots is not None and len(_open_waits(facts, seen)) > slots]
    if not crowds:
        return Finding()
    first, last = crowds[0], crowds[-1]
    moved = [op for op in facts.calls if any(first.answered < one.at < last.asked for one in facts.dispatches(op))]
    stuck = _stuck_behind(facts, crowds[-1]) if facts.closed_as() == "bound" else None
    return Finding(len(moved), (stuck,) if stuck else (), facts.closed_as() == "slow")


def _open_waits(facts: Facts, seen: Seen) -> list[str]:
    """The waits that a status shows to have begun and not ended."""
    shown = (seen.operation(wait.id) for wait in facts.history.plan.waits())
    return [one.id for one in shown if one is not None and one.state == "planned" and one.ready]


def _stuck_behind(facts: Facts, crowd: Seen) -> Violation | None:
    """A call that may move, and was never sent, when the run was given up with all those waits open."""
    last = facts.last_seen()
    if last is None or last.answered != crowd.answered or last.status.paused or facts.quiet is None:
        return None
    if last.status.state in TERMINAL or last.status.cancel is not None or facts.code_changed():
        return None
    for op in facts.calls:
        shown = last.operation(op)
        is_free = shown is not None and shown.state == "planned" and shown.ready
        if is_free and all(_is_accepted(last, one) for one in facts.before[op]) and not facts.dispatches(op):
            count = len(_open_waits(facts, last))
            sentence = (
                f"{count} waits were open, more than a worker has slots, and {op!r}, which may move, never was sent."
            )
            return blame("stuck", sentence, (last.asked, last.answered), op)
    return None


def _is_accepted(seen: Seen, op: str) -> bool:
    shown = seen.operation(op)
    return shown is not None and shown.state in ACCEPTED

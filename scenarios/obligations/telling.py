"""STA-1 2 3 4 5: a run is told of to anybody; what is told only grows, leaves nothing out, guesses nothing, and says why."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence

from scenarios.bodies import EventEntry, EventPage
from scenarios.chronicle import is_own
from scenarios.endings import may_be_escalated
from scenarios.history import TERMINAL, History
from scenarios.index import Facts, look
from scenarios.obligations.registry import blame, obligation
from scenarios.observed import Ask, Said, Seen
from scenarios.reasons import other_failure
from scenarios.verdict import Finding, Violation

#: Work that has taken so many workers with it may be given up as deadly.
_DEADLY = 3


@obligation(
    "STA-1",
    kind="safety",
    profile="Control",
    promise="Whoever holds the handle of a task is told how it stands, whatever connection it was submitted through.",
    tested_by="the worker that took the start is killed or stopped, and another one is asked",
    anomaly="amnesia",
    minimum=2,
    causes=(
        "runs are kept by the session that submitted them",
        "the registry of running tasks is memory of one process",
        "a handle is an object of a client and no name",
    ),
    learnt_from=(),
)
def status_by_handle_from_anywhere(history: History) -> Finding:
    facts = look(history)
    start = facts.start_ok()
    if start is None or start.answered_at is None:
        return Finding()
    later = [ask for ask in _later_asks(facts, start) if ask.outcome == "ok"]
    found = [
        blame(
            "amnesia",
            f"Worker {start.event.incarnation} had acknowledged the run; {_whom(start, ask)} knows nothing of it.",
            (start.answered_at, ask.answered_at or ask.at),
        )
        for ask in later
        if not _is_told(ask) and not facts.struck("wipe", ask.answered_at)
    ]
    elsewhere = sum(ask.event.incarnation != start.event.incarnation for ask in later)
    return Finding(elsewhere, tuple(found[:1]))


def _later_asks(facts: Facts, start: Ask) -> Iterator[Ask]:
    """Questions after the acknowledgement, to whoever gave it and to others; none while disks fail."""
    for ask in facts.asked("status"):
        is_stormy = facts.storm[0] < ask.at < facts.storm[1]
        if ask.at > (start.answered_at or 0) and not is_stormy:
            yield ask


def _whom(start: Ask, ask: Ask) -> str:
    same = ask.event.incarnation == start.event.incarnation
    return "asked later, it" if same else f"worker {ask.event.incarnation}"


def _is_told(ask: Ask) -> bool:
    return ask.answer is not None and ask.answer.status is not None and ask.answer.status.state != "unknown"


@obligation(
    "STA-2",
    kind="safety",
    profile="Control",
    promise="To one observer the version of a run never goes back, and two looks that differ have different versions.",
    tested_by="statuses asked one after the other, over every restart, over pauses, and over the handing over of a result",
    anomaly="torn view",
    minimum=3,
    causes=(
        "the version is counted in memory, and begins anew with the process",
        "some changes are written without a new version",
        "a status is read from a replica or a cache that lags behind",
    ),
    learnt_from=(),
)
def versions_only_grow(history: History) -> Finding:
    facts = look(history)
    versioned = [seen for seen in facts.statuses if seen.status.version is not None]
    pairs = [pair for pair in itertools.pairwise(versioned) if _follows(*pair)]
    found = [violation for one, other in pairs if (violation := _torn(one, other))]
    return Finding(len(pairs), tuple(found[:1]))


def _follows(one: Seen, other: Seen) -> bool:
    """Was the other asked for after the one had been answered, of the same pursuit?"""
    return one.answered < other.asked and one.status.attempt == other.status.attempt


def _torn(one: Seen, other: Seen) -> Violation | None:
    before, after = one.status.version, other.status.version
    assert before is not None
    assert after is not None
    if after < before:
        return blame(
            "torn view", f"Version {before} was shown, and later version {after}.", (one.answered, other.answered)
        )
    if after == before and _shown(one) != _shown(other):
        sentence = f"Two looks at version {before} differ, so that nobody can tell which is the older one."
        return blame("torn view", sentence, (one.answered, other.answered))
    return None


def _shown(seen: Seen) -> object:
    """What must not change under one version: how the run stands, what was done to it, and its operations and answers.

    In which order a status lists them says nothing.
    """
    status = seen.status
    operations = Counter((op.id, op.state, op.nonce) for op in status.operations)
    approvals = Counter((one.operation, one.digest, one.state) for one in status.approvals)
    stands = (status.state, status.paused, status.cancel, status.delivered)
    return stands, operations, approvals, dict(status.result or {})


@obligation(
    "STA-3",
    kind="safety",
    profile="Control",
    promise="Who comes back with the last cursor misses no event, and an event that is told again has the cursor it had.",
    tested_by="events read on from cursors new and old, over every restart",
    anomaly=("amnesia", "torn view"),
    minimum=2,
    causes=(
        "frames that carry no event move the cursor",
        "a cursor is given out before its event is committed, so that a later one is seen first",
        "events are numbered in memory, and anew after a restart",
        "an old cursor is answered from where the stream is now",
        "some kinds of change make no event",
    ),
    learnt_from=("F20", "F52", "F53"),
)
def cursor_leaves_no_gap(history: History) -> Finding:
    facts = look(history)
    pages = [page for page in facts.pages if page.after is not None and page.body.next is not None]
    known: dict[int, tuple[EventEntry, int]] = {}
    found: list[Violation] = []
    for page in pages:
        found += _renumbered(page, known)
    for page in pages:
        found += _gaps(page, known)
    found += _untold(facts, pages)
    resumed = sum(1 for page in pages if page.after)
    return Finding(resumed, tuple(found[:1]))


def _renumbered(page: Said[EventPage], known: dict[int, tuple[EventEntry, int]]) -> Iterator[Violation]:
    """Events told under a cursor that another one had; learns what this page tells."""
    for entry in page.body.events:
        first, at = known.setdefault(entry.cursor, (entry, page.answered))
        if first != entry:
            sentence = f"Cursor {entry.cursor} was {_named(first)}, and later {_named(entry)}."
            yield blame("torn view", sentence, (at, page.answered))


def _gaps(page: Said[EventPage], known: dict[int, tuple[EventEntry, int]]) -> Iterator[Violation]:
    """Events between the cursor asked from and the one to go on from that this page left out."""
    told = {entry.cursor for entry in page.body.events}
    assert page.after is not None
    assert page.body.next is not None
    for cursor in sorted(known):
        if page.after < cursor <= page.body.next and cursor not in told:
            entry, at = known[cursor]
            sentence = (
                f"Read on from cursor {page.after} and told to go on from {page.body.next}, a reader misses "
                f"event {cursor} ({_named(entry)})."
            )
            yield blame("amnesia", sentence, (page.answered, at))


def _untold(facts: Facts, pages: Sequence[Said[EventPage]]) -> Iterator[Violation]:
    """Calls of the run that two looks show in different states, with no event in between, though all events were read."""
    read = max((page.asked for page in pages if not page.body.events), default=0)
    told = [(entry.operation, entry.version) for page in pages for entry in page.body.events if entry.operation]
    if any(version is None for _, version in told):
        return
    looks = [seen for seen in facts.statuses if seen.status.version is not None and seen.answered < read]
    for earlier, later in itertools.pairwise(looks):
        first, last = earlier.status.version or 0, later.status.version or 0
        for one in later.status.operations if _follows(earlier, later) else ():
            before = earlier.operation(one.id)
            if before is None or before.state == one.state or one.id not in facts.calls or not is_own(one.id):
                continue
            if not any(op == one.id and first < (version or 0) <= last for op, version in told):
                sentence = (
                    f"{one.id!r} was shown as {before.state} at version {first} and as {one.state} at version {last}, and who "
                    "has read all events has been told of none in between."
                )
                yield blame("amnesia", sentence, (earlier.answered, later.answered, read), one.id)


def _named(entry: EventEntry) -> str:
    return f"{entry.kind!r} of {entry.operation!r}" if entry.operation else f"{entry.kind!r} of the run"


@obligation(
    "STA-4",
    kind="safety",
    profile="Control",
    promise="That nothing is heard of a worker is never told as a failure of its work.",
    tested_by="the worker is stopped or killed with a call in hand, and statuses are asked meanwhile",
    anomaly="false certainty",
    minimum=2,
    causes=(
        "a lease that ran out is recorded as the failure of what it covered",
        "the health of a worker and the outcome of its work share one field",
    ),
    learnt_from=("F19", "F50"),
)
def silence_is_no_failure(history: History) -> Finding:
    facts = look(history)
    exercised = 0
    for op in facts.calls:
        in_hand = [(request, facts.cut_at(request)) for request in facts.dispatches(op)]
        if sum(cut is not None for _, cut in in_hand) >= _DEADLY:
            continue
        for request, cut in in_hand:
            if cut is None or (request.replied_at is not None and request.replied_at < cut):
                continue
            after = facts.seen_after(cut)
            exercised += bool(after)
            told = next((seen for seen in after if _tells_failure(facts, seen, op)), None)
            if told is not None:
                sentence = (
                    f"Worker {request.event.incarnation} fell silent with {op!r} in hand, which is told as a failure."
                )
                return Finding(exercised, (blame("false certainty", sentence, (request.at, cut, told.answered), op),))
    return Finding(exercised)


def _tells_failure(facts: Facts, seen: Seen, op: str) -> bool:
    """Is this operation, or the run, told as failed with no reason for it but the silence?"""
    if other_failure(facts, seen.answered) or may_be_escalated(facts, seen.answered):
        return False
    shown = seen.operation(op)
    return (shown is not None and shown.state == "failed") or seen.status.state == "failed"


@obligation(
    "STA-5",
    kind="safety",
    profile="Control",
    promise="A run that has ended and is not done says why: what failed, who stopped it, or what is unresolved.",
    tested_by="runs that fail, are stopped, denied, run out of means, or end with an effect unresolved",
    anomaly="torn view",
    minimum=2,
    causes=(
        "the reason is logged and not stored",
        "only exceptions have a text, and stops and limits have none",
        "the end and its reason are written one after the other",
    ),
    learnt_from=(),
)
def end_has_its_reason(history: History) -> Finding:
    facts = look(history)
    ends = [seen for seen in facts.statuses if seen.status.state in TERMINAL]
    silent = next((seen for seen in ends if not _says_why(seen)), None)
    others = {seen.status.state for seen in ends} - {"done"}
    if silent is None:
        return Finding(len(others))
    sentence = f"The run ended {silent.status.state}, and its status does not say why."
    return Finding(max(len(others), 1), (blame("torn view", sentence, (silent.answered,)),))


def _says_why(seen: Seen) -> bool:
    """Does it? That it is done is a reason of its own."""
    return seen.status.state == "done" or bool(seen.status.error or seen.status.reason)

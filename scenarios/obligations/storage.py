"""DUR-11: storage that fails is answered with an error or a stop, never with an acknowledgement of what is lost."""

from __future__ import annotations

from collections.abc import Iterator

from scenarios.history import STORM, Died, Fired, History
from scenarios.index import Facts, look
from scenarios.obligations.durable import recomputed, taken_back
from scenarios.obligations.registry import blame, firsts, obligation
from scenarios.obligations.signals import lost
from scenarios.verdict import Finding, Violation

#: Interruptions that strike the storage of a unit.
_AT_STORAGE = ("full", "eio", "flip")


@obligation(
    "DUR-11",
    kind="safety",
    profile="Durable",
    promise="A storage fault (no space, a failed write or sync, a flipped bit) leads to a clear error or a stop, and never to "
    "the loss of anything that was acknowledged, or to an acknowledgement of what is lost.",
    tested_by="the disk full for a while, a write or sync that fails once, one bit of the store turned over; drawn disk faults",
    anomaly=("amnesia", "torn view"),
    minimum=3,
    causes=(
        "an error of the commit or of its sync is logged, and the answer is sent all the same",
        "after a sync that failed, what is in the cache is taken for what is on the disk",
        "what is read from storage is believed: neither pages nor the end of the log are checked",
    ),
    learnt_from=("F03", "F20"),
)
def storage_faults_lose_nothing(history: History) -> Finding:
    facts = look(history)
    faults = _faults(facts)
    tested = [fault for fault in faults if _had_something(facts, fault) and _was_looked_at(facts, fault)]
    if not faults:
        return Finding()
    found = (*_forgotten(facts, faults[0]), *_other(facts, faults[0]), *_signals(facts), *_again(facts, faults[0]))
    return Finding(len(tested), firsts(found))


def _faults(facts: Facts) -> tuple[int, ...]:
    """Indexes of the storage faults that struck: those of the kit, and stops in the middle of a storm."""
    struck = {at for at, action, _ in facts.fired if action in _AT_STORAGE}
    begins, ends = facts.storm
    events = facts.history.events
    stops = {
        at
        for at in facts.deaths
        if begins < at < ends and isinstance(event := events[at], Died) and event.cause == "exited"
    }
    return tuple(sorted(struck | stops))


def _had_something(facts: Facts, fault: int) -> bool:
    """Had anything been acknowledged by then?"""
    start = facts.start_ok()
    return start is not None and start.answered_at is not None and start.answered_at < fault


def _was_looked_at(facts: Facts, fault: int) -> bool:
    """Was it seen what came of it: a status that was asked later, or that the target has stopped?"""
    return bool(facts.seen_after(fault)) or facts.closed_as() == "stopped"


def _forgotten(facts: Facts, since: int) -> Iterator[Violation]:
    """A status, asked after the start was acknowledged, knows of no such run."""
    start = facts.start_ok()
    if start is None or start.answered_at is None or facts.struck("wipe"):
        return
    for seen in facts.seen_after(start.answered_at):
        if seen.status.state == "unknown" and since < seen.answered:
            sentence = (
                f"The start of run {facts.history.run!r} was acknowledged and its storage failed ({_what(facts, since)}); a "
                "status asked after that says that there is no such run."
            )
            yield blame("amnesia", sentence, (start.answered_at, since, seen.asked, seen.answered))
            return


def _other(facts: Facts, since: int) -> Iterator[Violation]:
    """What had been shown as accepted is gone, or another."""
    for one in taken_back(facts):
        if since < max(one.evidence):
            name = "torn view" if one.anomaly == "torn view" else "amnesia"
            sentence = f"Storage failed ({_what(facts, since)}), and {one.sentence}"
            yield blame(name, sentence, (*one.evidence, since), one.operation)


def _signals(facts: Facts) -> Iterator[Violation]:
    """Signals that were acknowledged, and are waited for at the end all the same."""
    for suspects in lost(facts):
        oks = [one.ok_at for one in suspects if one.ok_at is not None]
        sentence = (
            f"Storage failed, and signal {suspects[0].id!r}, which was acknowledged, was still waited for at the end."
        )
        yield blame("amnesia", sentence, (*oks, *(() if facts.closed is None else (facts.closed,))))


def _again(facts: Facts, since: int) -> Iterator[Violation]:
    """Accepted operations that were worked again later by a worker that came up after the fault."""
    for op in facts.calls:
        one = recomputed(facts, op)
        if one is not None and since < max(one.evidence):
            sentence = f"Storage failed ({_what(facts, since)}), and {one.sentence}"
            yield blame("amnesia", sentence, (*one.evidence, since), op)


def _what(facts: Facts, index: int) -> str:
    event = facts.history.events[index]
    return event.label if isinstance(event, Fired) else f"a {STORM}"

"""DUR-6: work that was accepted gets to its end, and to no other end than something has led to."""

from __future__ import annotations

import re
from collections.abc import Iterator

from scenarios.endings import causeless_ends, idle_end
from scenarios.history import History
from scenarios.index import Facts, look
from scenarios.obligations.registry import blame, obligation
from scenarios.obligations.signals import SET_ASIDE
from scenarios.plan import Leaf, Sleep, Wait
from scenarios.verdict import Finding, Violation

#: The label of a wall clock that is set back.
_SET_BACK = re.compile(r"jump@[^~]*~-")
#: States in which an operation that was sent waits for its next try.
_TO_BE_SENT_AGAIN = frozenset({"planned", "unknown"})


@obligation(
    "DUR-6",
    kind="liveness",
    profile="Durable",
    promise="Accepted work that can go on reaches an end once faults have stopped, storage is back and a worker is up; a fault "
    "that it can get over is no reason to end it without success.",
    tested_by="every interruption, followed by quiet",
    anomaly="stuck",
    minimum=3,
    causes=(
        "recovery runs once at boot and gives up on its first error",
        "a claim or lease of the dead worker is never taken over",
        "a state that nothing sweeps: claimed but not queued, recorded but not journalled",
        "a restart fails whatever it finds unfinished, or a lost answer fails its run, though it may be asked again",
        "what settles a doubt later than its answer settles that alone, and not what waits for it",
        "whether a run is over is looked at while what follows on its last step is only half done",
    ),
    learnt_from=("F02", "F06", "F18", "F43", "F54"),
)
def work_reaches_an_end(history: History) -> Finding:
    facts = look(history)
    reason = facts.closed_as()
    if reason is None or facts.quiet is None or facts.closed is None or not _was_accepted(facts):
        return Finding()
    if reason == "stopped":
        return Finding(0, tuple(_without_cause(facts))[:1])  # it has come to no end
    exercised = 1 if any(at < facts.closed for at in facts.troubles) else 0
    if reason != "bound":
        return Finding(exercised, tuple(_without_cause(facts))[:1], slow=reason == "slow")
    if lacks_word(facts) or is_held(facts):
        return Finding()
    last = facts.last_seen()
    state = f"it was last shown {last.status.state}" if last else "no status ever showed it"
    sentence = (
        f"Faults had stopped and a worker was up, but run {history.run!r} had not ended after four times the bound; "
        f"{state}."
    )
    evidence = (facts.quiet, *((last.answered,) if last else ()), facts.closed)
    return Finding(exercised, (blame("stuck", sentence, evidence),))


def _without_cause(facts: Facts) -> Iterator[Violation]:
    """The run ended without success, and nothing had happened that it could not have got over."""
    for seen in causeless_ends(facts):
        status = seen.status
        why = status.reason or status.error
        sentence = (
            f"Run {facts.history.run!r} ended {status.state}{f' ({why})' if why else ''}, and nothing that can be seen has led "
            "to it: no refusal, no limit, no command, and no outcome that cannot be found out."
        )
        yield blame("stuck", sentence, (seen.asked, seen.answered))
    idle = idle_end(facts)
    if idle is not None:
        seen, op = idle
        sentence = (
            f"Run {facts.history.run!r} ended blocked, and nothing of it is in doubt: everything that {op!r} waits for was "
            "accepted, and it was never sent."
        )
        yield blame("stuck", sentence, (seen.asked, seen.answered), op)


def _was_accepted(facts: Facts) -> bool:
    shown = any(seen.status.state != "unknown" for seen in facts.statuses)
    return facts.start_ok() is not None or shown or bool(facts.requests)


def lacks_word(facts: Facts) -> bool:
    """Has the run come to where it needs somebody's word, which as far as the outside can tell was never given?"""
    return _lacks_signal(facts) or _lacks_decision(facts)


def _lacks_signal(facts: Facts) -> bool:
    """Has the run come to a wait for which no signal was ever acknowledged, as far as the outside can tell?"""
    sent = [one.name for one in facts.signals if one.ok_at is not None and one.disposition not in SET_ASIDE]
    waits = [wait for wait in facts.history.plan.waits() if wait.timeout_ns is None]
    reached = [wait.signal for wait in waits if facts.may_have_begun(wait.id)]
    return any(sent.count(name) < reached.count(name) for name in reached)


def _lacks_decision(facts: Facts) -> bool:
    """Has the run come to an approval on which nobody's word stands?

    A word falls when authority is withdrawn or something else is proposed after it.
    """
    withdrawn = [at for changes in facts.authority.values() for at, granted in changes if not granted]
    for approve in facts.history.plan.approvals():
        words = [one.ok_at for one in facts.decisions(approve.id) if one.ok_at is not None]
        fallen = (*withdrawn, *(steer.asked_at for steer in facts.steers(approve.of)))
        if facts.may_have_begun(approve.id) and max(words, default=-1) <= max(fallen, default=-1):
            return True
    return False


def is_held(facts: Facts) -> bool:
    """May the run rightly stand still: paused and never certainly let go, under code that is not its own, or waiting for an
    hour that is not yet by a clock that was set back?
    """
    return facts.code_changed() or may_be_paused(facts) or _may_wait_for_its_hour(facts)


def _may_wait_for_its_hour(facts: Facts) -> bool:
    """Was a wall clock set back, and may the run be at a timer, a time-out or a delay that ends by it? Whose clock is right is
    another question.
    """
    if not any(_SET_BACK.match(label) for _, _, label in facts.fired):
        return False
    return any(_may_be_timed(facts, leaf) for leaf in facts.history.plan.leaves())


def _may_be_timed(facts: Facts, leaf: Leaf) -> bool:
    """Is it, as far as the last status tells, a timer that is not over, a wait that will be, or a call to be sent again?"""
    last = facts.last_seen()
    shown = last.operation(leaf.id) if last is not None else None
    if isinstance(leaf, Sleep) or (isinstance(leaf, Wait) and leaf.timeout_ns is not None):
        return leaf.id not in facts.accepted_at and facts.may_have_begun(leaf.id)
    return shown is not None and shown.state in _TO_BE_SENT_AGAIN and bool(facts.dispatches(leaf.id))


def may_be_paused(facts: Facts) -> bool:
    """May a pause hold the run at its end? One that was not acknowledged before the run was let go on for the last time may
    come to the harness after that.
    """
    let_go = max((one.asked_at for one in facts.ordered("unpause") if one.ok_at is not None), default=-1)
    pauses = [one for one in facts.ordered("pause") if any(ask.outcome != "error" for ask in one.asks)]
    return any(one.ok_at is None or one.ok_at > let_go for one in pauses)

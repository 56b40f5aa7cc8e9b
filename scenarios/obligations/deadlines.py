"""DLN-1 2 3: the time a run was given holds to its end, is handed on, and hangs on nobody who asked."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from scenarios.history import TERMINAL, History
from scenarios.index import Facts, look
from scenarios.obligations.registry import blame, obligation
from scenarios.tenure import is_calm
from scenarios.terms import ON_ITS_WAY_NS, Term, bound_by_time, term_of
from scenarios.verdict import Finding, Violation


@obligation(
    "DLN-1",
    kind="safety",
    profile="Budget",
    promise="The deadline a run is given with its start holds through restarts and retries: nothing is begun after it.",
    tested_by="worker and server down until shortly before the deadline of a run that tries again and again, or sleeps",
    anomaly=("replenished allowance", "stuck"),
    minimum=2,
    causes=(
        "the time left is counted from when the process came up",
        "every try, or every continuation, sets the timer anew",
        "the deadline is looked at only when something is sent, so that a run that waits is never ended",
        "a timer in memory watches over it, which nobody sets again after a restart",
    ),
    learnt_from=("F38",),
)
def deadline_holds_through_restarts_and_retries(history: History) -> Finding:
    facts = look(history)
    term = term_of(facts, history.plan.deadline_ns)
    if term is None:
        return Finding()
    return Finding(_ran_out(facts, term), (*_begun_after(facts, term), *_waiting_after(facts, term)))


def _ran_out(facts: Facts, term: Term) -> int:
    """How many crashes and repeats there were in the time of a run whose deadline passed before it was done."""
    ended = next((seen for seen in facts.statuses if seen.status.state in TERMINAL), None)
    if ended is None or ended.status.state == "done" or facts.at_ns(ended.answered) < term.end_ns - ON_ITS_WAY_NS:
        return 0
    crashes = sum(term.from_at < at < ended.asked for at in facts.deaths)
    repeats = sum(max(0, len(facts.dispatches(op)) - 1) for op in facts.calls)
    return crashes + repeats


def _begun_after(facts: Facts, term: Term) -> Iterator[Violation]:
    late = next((one for one in bound_by_time(facts) if term.is_over(facts, one.at)), None)
    if late is not None:
        seconds = (late.event.at_ns - facts.at_ns(term.from_at)) / 1e9
        deadline_ns = facts.history.plan.deadline_ns or 0
        sentence = f"The run had {deadline_ns / 1e9:g} s from its start; {late.op!r} was sent after {seconds:.3g} s."
        yield blame("replenished allowance", sentence, (term.from_at, late.at), late.op)


def _waiting_after(facts: Facts, term: Term) -> Iterator[Violation]:
    """A run that only waits when its time has been over for a while, with everybody there who could end it."""
    for seen in facts.statuses:
        asked_ns = facts.at_ns(seen.asked)
        if seen.status.state != "waiting" or not term.is_over(facts, seen.asked):
            continue
        if is_calm(facts, seen, ON_ITS_WAY_NS):
            late = (asked_ns - term.end_ns) / 1e9
            sentence = f"The deadline of the run passed {late:.3g} s ago, and it is shown waiting."
            yield blame("stuck", sentence, (term.from_at, seen.asked, seen.answered))
            return


@obligation(
    "DLN-2",
    kind="safety",
    profile="Budget",
    level="SHOULD",
    promise="With each request goes the time that is left of the run's, less and less of it.",
    tested_by="a run of several stages with rests between them and a deadline far away",
    anomaly=("amnesia", "replenished allowance"),
    minimum=3,
    causes=(
        "receivers are given a timeout of the client's own, whatever is left of the run",
        "the whole time is handed on with every request",
        "what was left is worked out when a request is first written down, and repeated as it was",
    ),
    learnt_from=("F19",),
)
def time_left_is_handed_on(history: History) -> Finding:
    facts = look(history)
    term = term_of(facts, history.plan.deadline_ns)
    sent = bound_by_time(facts) if term is not None else []
    found: list[Violation] = []
    silent = next((one for one in sent if one.event.remaining_ns is None), None)
    if silent is not None:
        sentence = f"The run has a deadline, and {silent.op!r} was sent without the time that is left."
        found.append(blame("amnesia", sentence, (silent.at,), silent.op))
    for one in sent:
        told_ns = one.event.remaining_ns
        if term is not None and told_ns is not None and term.is_over(facts, one.at, told_ns):
            left_ns = term.end_ns - one.event.at_ns
            sentence = (
                f"{one.op!r} was told of {told_ns / 1e9:.3g} s, when {left_ns / 1e9:.3g} s were left of the run's time."
            )
            found.append(blame("replenished allowance", sentence, (term.from_at, one.at), one.op))
            break
    return Finding(len(sent), tuple(found))


@obligation(
    "DLN-3",
    kind="safety",
    profile="Budget",
    promise="A task goes on when whoever asked for it has gone.",
    tested_by="kill or pause of the process that had the start acknowledged, before the run has ended",
    anomaly="amnesia",
    minimum=3,
    causes=(
        "a run is a coroutine of the connection that asked for it, and is cancelled with that",
        "a client that is gone is taken for one that has changed its mind",
        "runs are kept under the session of the client, which ends with it",
    ),
    learnt_from=("F19",),
)
def task_outlives_the_connection_that_asked(history: History) -> Finding:
    facts = look(history)
    start = facts.start_ok()
    if start is None or start.answered_at is None or facts.struck("wipe", len(history.events)):
        return Finding()
    asker = start.event.incarnation
    moments = (facts.died.get(asker), *facts.paused.get(asker, ()))
    gone = min((at for at in moments if at is not None and at > start.answered_at), default=None)
    ended = next((seen.asked for seen in facts.statuses if seen.status.state in TERMINAL), None)
    if gone is None or (ended is not None and ended < gone):
        return Finding()
    return Finding(
        1 if facts.seen_after(gone) else 0, tuple(itertools.islice(_given_up(facts, start.answered_at, gone), 1))
    )


def _given_up(facts: Facts, start: int, gone: int) -> Iterator[Violation]:
    """The run was stopped, or forgotten, though nobody had asked for that."""
    if facts.ordered("cancel") or facts.ordered("decide"):
        return
    for seen in facts.seen_after(gone):
        if seen.status.state in {"cancelled", "unknown"}:
            sentence = f"The process that asked for the run had gone; then the run was {seen.status.state}, unasked."
            yield blame("amnesia", sentence, (start, gone, seen.asked, seen.answered))

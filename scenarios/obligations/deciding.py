"""APR-5 6 7: whose decision counts, how often, and what becomes of an approval that nobody can use any more."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from scenarios.consent import (
    Bar,
    asking,
    bars,
    counting,
    is_asked_again,
    is_reopened,
    is_stranger,
    lookups,
    release,
    released_at,
    shown,
    was_told_yes,
)
from scenarios.history import TERMINAL, History
from scenarios.index import Facts, look
from scenarios.obligations.registry import blame, obligation
from scenarios.observed import Command, Seen
from scenarios.outlived import went_on
from scenarios.plan import Approve
from scenarios.verdict import Finding, Violation
from scenarios.versions import ends_fit, misfits

#: Who is told no so often, with no new decision and nothing else in between that explains it, asks in a loop.
_ASKED_IN_VAIN = 4


@obligation(
    "APR-5",
    kind="safety",
    profile="Control",
    promise="One approval releases one operation, once; of two decisions that contradict each other one is taken.",
    tested_by="decisions repeated, and given both ways; processes killed while an approval is used",
    anomaly=("duplicate effect", "torn view"),
    minimum=3,
    causes=(
        "an approval that has released something can still be taken",
        "a decision is looked for by its run, not by the operation it is about",
        "the second decision overwrites the first, and both are told that they count",
    ),
    learnt_from=("F14",),
)
def one_approval_releases_once(history: History) -> Finding:
    facts = look(history)
    approvals = history.plan.approvals()
    tested = sum(_decided_again(facts, one) + _died_over(facts, one) for one in approvals)
    found = (*_released_twice(facts), *_released_another(facts), *_both_ways(facts))
    return Finding(tested, found)


def _decided_again(facts: Facts, approve: Approve) -> int:
    """How often somebody decided about it once it had been decided."""
    decisions = facts.decisions(approve.id)
    first = min((one.ok_at for one in decisions if one.ok_at is not None), default=None)
    return 0 if first is None else sum(ask.at > first for one in decisions for ask in one.asks)


def _died_over(facts: Facts, approve: Approve) -> int:
    """How many processes died after it was given and before what it releases was accepted, with the run going on."""
    first = min((one.ok_at for one in facts.decisions(approve.id) if one.ok_at is not None), default=None)
    end = facts.accepted_at.get(approve.of, len(facts.history.events))
    return 0 if first is None else sum(first < death < end and went_on(facts, death) for death in facts.deaths)


def _released_twice(facts: Facts) -> Iterator[Violation]:
    """Decided more than once, and dispatched once more though its answer had been sent and nothing had happened."""
    for approve in facts.history.plan.approvals():
        asks = [ask for one in facts.decisions(approve.id) for ask in one.asks]
        pair = next(facts.unexplained(approve.of), None) if len(asks) > 1 and approve.of in facts.calls else None
        if pair is not None and min(ask.at for ask in asks) < pair[1].at:
            sentence = f"{approve.id!r} was decided {len(asks)} times, and {approve.of!r} was dispatched again."
            yield blame("duplicate effect", sentence, (pair[0].at, pair[1].at), approve.of)


def _released_another(facts: Facts) -> Iterator[Violation]:
    """Dispatched when nobody had decided about it, and somebody had approved something else."""
    approvals = facts.history.plan.approvals()
    for approve in approvals:
        sent = release(facts, approve)
        if sent is None or any(one.asked_at < sent.at for one in facts.decisions(approve.id)):
            continue
        other = next((one for one in approvals if one.of != approve.of and counting(facts, one, sent.at)), None)
        if other is not None:
            sentence = (
                f"{other.id!r} had been approved, and {approve.of!r} was dispatched, which nobody had decided about."
            )
            yield blame(
                "duplicate effect", sentence, (counting(facts, other, sent.at)[0].asked_at, sent.at), approve.of
            )


def _both_ways(facts: Facts) -> Iterator[Violation]:
    """Both told that they count: a yes and a no, with nothing in between that had asked again."""
    for approve in facts.history.plan.approvals():
        taken = [one for one in facts.decisions(approve.id) if one.ok_at is not None]
        yes = next((one for one in taken if (one.decision, one.disposition) == ("approve", "approved")), None)
        no = next((one for one in taken if (one.decision, one.disposition) == ("deny", "denied")), None)
        if yes is None or no is None or facts.steers(approve.of) or _is_somebody_out(facts):
            continue
        first, second = sorted((yes.ok_at or 0, no.ok_at or 0))
        if not is_reopened(facts, approve, first, second):
            sentence = f"{approve.id!r} was approved and denied, and both were told that they count."
            yield blame("torn view", sentence, (first, second), approve.id)


def _is_somebody_out(facts: Facts) -> bool:
    """Was anybody's authority withdrawn? What they had decided may be asked again."""
    return any(not granted for changes in facts.authority.values() for _, granted in changes)


@obligation(
    "APR-6",
    kind="safety",
    profile="Control",
    promise="A decision by somebody who has no authority is refused.",
    tested_by="a decision by a stranger, sent before anybody else has decided",
    anomaly="phantom effect",
    minimum=1,
    causes=(
        "whoever knows the id of an approval may decide about it",
        "who decided is what the decision says, and nobody asks who may",
        "only approvals are looked at, and anybody may deny",
    ),
    learnt_from=(),
)
def stranger_decides_nothing(history: History) -> Finding:
    facts = look(history)
    forged = [one for one in facts.decisions() if is_stranger(facts, one.actor, _answered(one))]
    found = []
    for one in forged:
        if one.ok_at is not None and one.disposition in {None, "approved", "denied"}:
            sentence = f"{one.actor!r}, who has no authority, decided about {one.about!r}, and was told that it counts."
            found.append(blame("phantom effect", sentence, (one.asked_at, one.ok_at), one.about))
    tested = [one for one in forged if any(ask.outcome != "indefinite" for ask in one.asks)]
    return Finding(len(tested), (*found, *_released_by_strangers(facts, forged)))


def _answered(decision: Command) -> int:
    last = decision.asks[-1]
    return last.at if last.answered_at is None else last.answered_at


def _released_by_strangers(facts: Facts, forged: list[Command]) -> Iterator[Violation]:
    """Dispatched when none but strangers had decided."""
    for approve in facts.history.plan.approvals():
        sent = release(facts, approve)
        before = [one for one in facts.decisions(approve.id) if sent is not None and one.asked_at < sent.at]
        if sent is not None and before and all(one in forged for one in before):
            sentence = (
                f"{approve.of!r} was dispatched, and nobody but {before[0].actor!r}, who has no authority, had decided."
            )
            yield blame("phantom effect", sentence, (before[0].asked_at, sent.at), approve.of)


@obligation(
    "APR-7",
    kind="liveness",
    profile="Control",
    promise="An approval that can release nothing any more is shown so, and its run comes to a stated end: it neither waits on "
    "nor asks over and over.",
    tested_by="denials, the end of a validity, runs that end or go another way meanwhile, and code that does not fit the run",
    anomaly=("stuck", "torn view"),
    minimum=3,
    causes=(
        "an expired approval is a wait that nothing ends",
        "who may not release it puts it back into the queue, and claims it again",
        "the end of a run leaves its open questions as they are",
    ),
    learnt_from=(),
)
def useless_approval_ends(history: History) -> Finding:
    facts = look(history)
    approvals = history.plan.approvals()
    tested = sum(_is_useless(facts, approve) for approve in approvals)
    found = (*_still_waiting(facts), *_asked_in_vain(facts), *_still_asking(facts))
    return Finding(tested, found, slow=not found and tested > 0 and facts.closed_as() == "slow")


def _is_useless(facts: Facts, approve: Approve) -> bool:
    """Did it come to be asked for, and then to be good for nothing?"""
    first = next(asking(facts, approve), None)
    end = released_at(facts, approve)
    if first is None or first.answered > end:
        return False
    over = any(seen.status.state in TERMINAL for seen in facts.seen_after(first.answered))
    return (
        _bar(facts, approve) is not None or (over and release(facts, approve) is None) or _met_misfit(facts, first, end)
    )


def _bar(facts: Facts, approve: Approve) -> Bar | None:
    """What barred it before anything was released, and for good; nothing where it is shown to have been used."""
    end = released_at(facts, approve)
    if any(one.state == "released" for _, one in shown(facts, approve)):
        return None
    found = (bar for bar in bars(facts, approve) if bar.at < end and not is_asked_again(facts, approve, bar, end))
    return next(found, None)


def _met_misfit(facts: Facts, first: Seen, end: int) -> bool:
    """Did a process come up while it was asked for whose code does not go on with the run?"""
    return any(first.answered < comer.at < end for comer in misfits(facts))


def _still_waiting(facts: Facts) -> Iterator[Violation]:
    """The run was still waiting at the very end, for what could not be used any more."""
    last = facts.last_seen()
    if facts.closed is None or facts.closed_as() != "bound" or last is None or last.status.state in TERMINAL:
        return
    for approve in facts.history.plan.approvals():
        if last.status.on not in {None, approve.id} or release(facts, approve) is not None:
            continue
        bar = _bar(facts, approve)
        if bar is not None:
            sentence = f"{approve.id!r} {bar.words}, and the run was still {last.status.state} at the end."
            yield blame("stuck", sentence, (bar.at, last.answered, facts.closed), approve.id)
        elif last.status.on == approve.id and any(misfits(facts)) and not ends_fit(facts):
            sentence = (
                f"The run was still waiting for {approve.id!r} at the end, and no code was there that goes on with it."
            )
            yield blame("stuck", sentence, (last.answered, facts.closed), approve.id)


def _asked_in_vain(facts: Facts) -> Iterator[Violation]:
    """The desk said no again and again, and nobody had decided anew in between."""
    for approve in facts.history.plan.approvals():
        decided = [ask.at for one in facts.decisions(approve.id) for ask in one.asks]
        bounds = [*decided, len(facts.history.events)]
        for start, end in itertools.pairwise(bounds):
            actors = {one.actor for one in facts.decisions(approve.id)}
            asked = lookups(facts, approve, start, end)
            vain = [one for one in asked if not any(was_told_yes(facts, actor, one) for actor in actors)]
            if vain and len(vain) - _halts(facts, vain[0].at, vain[-1].at) >= _ASKED_IN_VAIN:
                sentence = f"After {approve.id!r} was decided the desk was asked, and said no, {len(vain)} times over."
                yield blame("stuck", sentence, (start, vain[0].at, vain[-1].at), approve.id)
                break


def _halts(facts: Facts, start: int, end: int) -> int:
    """How much came between two events that may make somebody ask again."""
    return sum(start < at < end for at in facts.halts)


def _still_asking(facts: Facts) -> Iterator[Violation]:
    """The run is over, and still shows an approval as asked for."""
    for approve in facts.history.plan.approvals():
        for seen, one in shown(facts, approve):
            if one.state == "pending" and seen.status.state in TERMINAL - {"blocked"}:
                sentence = f"The run was {seen.status.state}, and {approve.id!r} was still shown as asked for."
                yield blame("torn view", sentence, (seen.answered,), approve.id)
                break

"""BUD-1 2 3 4: what a run may use is reserved before it is used, survives restarts, and is never free while nobody knows."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from scenarios.history import TERMINAL, History
from scenarios.index import PROMPT_NS, Facts, look
from scenarios.obligations.registry import blame, obligation
from scenarios.spending import (
    Charge,
    Kind,
    booked,
    charges,
    counted,
    demand,
    is_detached,
    is_exact,
    is_uncut,
    limited,
    put_down_before,
    shown,
    spent,
    underestimated,
)
from scenarios.stops import may_lose
from scenarios.terms import bound_by_time, term_of
from scenarios.verdict import Finding, Violation


def _held(facts: Facts, found: Sequence[Charge], index: int) -> frozenset[int]:
    """Requests under way at event `index` whose workers have had no mishap: nothing can have been settled of them."""
    return frozenset(one.at for one in found if one.open_at(index) and is_uncut(facts, one, index))


@obligation(
    "BUD-1",
    kind="safety",
    profile="Budget",
    promise="Whenever work is admitted, what is used, reserved and unknown is within the allowance, also side by side.",
    tested_by="requests side by side whose reservations do not fit into the allowance together, answers that took more than "
    "was reserved, and time that is slept away",
    anomaly="overspend",
    minimum=3,
    causes=(
        "whether there is enough is looked up first and written down later, so that two are let in by one look",
        "only what was confirmed counts, and not what those under way may still cost",
        "each worker, or each try, has the whole allowance for itself",
        "an answer that took more than was reserved is booked as what was reserved",
        "the time that a run may take is written down, and nobody looks at the clock",
    ),
    learnt_from=("F57",),
)
def admissions_stay_within_the_allowance(history: History) -> Finding:
    facts = look(history)
    found = charges(facts)
    exercised = 0
    violations: list[Violation] = []
    for kind, most in limited(facts):
        if demand(facts, kind) > most:
            exercised += sum(one.amount(kind) > 0 for one in found)
        violations += _overdrawn(facts, kind, most, found)
        violations += _shown_overdrawn(facts, kind, most)
    if (tokens := underestimated(facts)) is not None:
        exercised += sum(one.used > one.tokens and not one.is_lost for one in found)
        violations += _overdrawn_by_more(facts, tokens, found)
    return Finding(exercised, (*violations, *_crowded(facts, found), *_after_its_time(facts)))


def _overdrawn(facts: Facts, kind: Kind, most: int, found: Sequence[Charge]) -> Iterator[Violation]:
    """The first request that did not fit beside what was certainly used and reserved as it arrived."""
    for charge in found:
        held = _held(facts, found, charge.at)
        before = spent(kind, found, charge.at, held)
        if charge.amount(kind) and before + charge.amount(kind) > most:
            sentence = (
                f"{charge.op!r} was sent and may cost {charge.amount(kind)} {kind} where {before} of {most} were "
                f"used or reserved already."
            )
            evidence = (one.at for one in found if one.at <= charge.at and one.weight(kind, charge.at, held))
            yield blame("overspend", sentence, (*evidence, charge.at), charge.op)
            return


def _overdrawn_by_more(facts: Facts, most: int, found: Sequence[Charge]) -> Iterator[Violation]:
    """Where more may be used than was set aside, the first request that did not fit beside what was certainly put down."""
    for charge in found:
        held = _held(facts, found, charge.at)
        put_down = {one.at: put_down_before(facts, one, charge, held) for one in found if one.at < charge.at}
        before = sum(put_down.values())
        if charge.tokens and before + charge.tokens > most:
            sentence = (
                f"{charge.op!r} was sent and may cost {charge.tokens} tokens where {before} of {most} were used or reserved "
                f"already, by what had taken more than was set aside for it."
            )
            yield blame(
                "overspend", sentence, (*(at for at, tokens in put_down.items() if tokens), charge.at), charge.op
            )
            return


def _shown_overdrawn(facts: Facts, kind: Kind, most: int) -> Iterator[Violation]:
    for seen, usage in shown(facts, kind):
        if booked(usage) > most:
            sentence = (
                f"A status shows {usage.consumed} {kind} consumed, {usage.reserved} reserved and {usage.unknown} unknown; "
                f"{most} were allowed."
            )
            yield blame("overspend", sentence, (seen.asked, seen.answered))
            return


def _crowded(facts: Facts, found: Sequence[Charge]) -> Iterator[Violation]:
    """More requests under way at once than were allowed, all of them so young that nobody has given up on one."""
    allowance = facts.history.plan.allowance
    most = allowance.concurrency if allowance is not None else None
    for charge in found if most is not None else ():
        if facts.late(charge.request) or facts.halted(0, charge.at):
            continue
        young = charge.request.event.at_ns - PROMPT_NS
        kept = (one for one in found if one.request.event.at_ns > young and not may_lose(facts, one.op))
        beside = [one for one in kept if one.open_at(charge.at)]
        if most is not None and len(beside) + 1 > most:
            sentence = f"{charge.op!r} was sent beside {len(beside)} others, where {most} at a time were allowed."
            yield blame("overspend", sentence, (*(one.at for one in beside), charge.at), charge.op)
            return


def _after_its_time(facts: Facts) -> Iterator[Violation]:
    """The first operation that was begun when all the time that the run may take had passed."""
    allowance = facts.history.plan.allowance
    allowed_ns = allowance.elapsed_ns if allowance is not None else None
    term = term_of(facts, allowed_ns)
    firsts = {one.op: one for one in reversed(bound_by_time(facts))} if term is not None else {}
    late = next((one for one in reversed(firsts.values()) if term is not None and term.is_over(facts, one.at)), None)
    if late is not None and term is not None and allowed_ns is not None:
        seconds = (late.event.at_ns - facts.at_ns(term.from_at)) / 1e9
        sentence = f"The run may take {allowed_ns / 1e9:g} s in all, and {late.op!r} was begun after {seconds:.3g} s."
        yield blame("overspend", sentence, (term.from_at, late.at), late.op)


@obligation(
    "BUD-2",
    kind="safety",
    profile="Budget",
    promise="A restart neither frees what was used or reserved, nor counts it a second time.",
    tested_by="kill of worker and server around the answers of a model",
    anomaly=("replenished allowance", "torn view"),
    minimum=3,
    causes=(
        "what is used is counted in memory, or by the attempt, and each begins with nothing",
        "reservations live with the process that made them",
        "recovery adds up the journal on top of a sum that was stored",
        "an answer that is reported again after a crash is settled again",
    ),
    learnt_from=("F57",),
)
def restart_neither_frees_nor_counts_twice(history: History) -> Finding:
    facts = look(history)
    found = charges(facts)
    exercised = 0
    violations: list[Violation] = []
    for kind, _ in limited(facts):
        first = next((one.at for one in found if one.amount(kind)), None)
        told = shown(facts, kind)
        deaths = [at for at in facts.deaths if first is not None and first < at and told and at < told[-1][0].asked]
        exercised += len(deaths)
        violations += _fallen(facts, kind)
        if deaths:
            violations += [*_freed(facts, kind, found, deaths[0]), *_twice(facts, kind, deaths[0])]
    return Finding(exercised, tuple(violations[:1]))


def _fallen(facts: Facts, kind: Kind) -> Iterator[Violation]:
    """What was once shown as consumed is consumed for good, restart or not."""
    for (earlier, before), (later, after) in itertools.pairwise(shown(facts, kind)):
        if earlier.answered < later.asked and after.consumed < before.consumed:
            sentence = f"{before.consumed} {kind} were shown as consumed, and later {after.consumed}."
            deaths = (at for at in facts.deaths if at < later.answered)
            yield blame("replenished allowance", sentence, (earlier.answered, *deaths, later.asked, later.answered))
            return


def _freed(facts: Facts, kind: Kind, found: Sequence[Charge], death: int) -> Iterator[Violation]:
    """After a restart less counts against the allowance than was certainly used, and reserved for what is under way."""
    for seen, usage in shown(facts, kind):
        if seen.asked < death:
            continue
        held = _held(facts, found, seen.answered)
        least = spent(kind, found, seen.asked, held)
        if booked(usage) < least:
            sentence = (
                f"{least} {kind} had been used or were reserved for what was under way; after a restart "
                f"{booked(usage)} count against the allowance."
            )
            evidence = (one.at for one in found if one.at < seen.asked and one.weight(kind, seen.asked, held))
            yield blame("replenished allowance", sentence, (*evidence, death, seen.asked, seen.answered))
            return


def _twice(facts: Facts, kind: Kind, death: int) -> Iterator[Violation]:
    """After a restart more is shown as consumed than the services have counted."""
    for seen, usage in shown(facts, kind) if is_exact(facts) else ():
        most = counted(facts, kind, seen.answered)
        if seen.asked > death and usage.consumed > most:
            sentence = (
                f"What was answered counts for {most} {kind} at most; after a restart {usage.consumed} are shown as "
                "consumed."
            )
            yield blame("torn view", sentence, (death, seen.asked, seen.answered))
            return


@obligation(
    "BUD-3",
    kind="safety",
    profile="Budget",
    promise="What a lost answer has cost is held as unknown: it is not free, and not confirmed either.",
    tested_by="answers of a model that are dropped or reset on their way, and such as do not say what they have cost",
    anomaly=("replenished allowance", "false certainty"),
    minimum=1,
    causes=(
        "a request without an answer gives its reservation back",
        "an answer without a price counts as one that has cost nothing",
        "a lost answer is booked as if all that was reserved had been used",
        "the reservation stays as it is for ever, as if the request were still under way",
    ),
    learnt_from=("F57",),
)
def usage_of_a_lost_answer_stays_unknown(history: History) -> Finding:
    facts = look(history)
    kinds = dict(limited(facts))
    lost = [one for one in charges(facts) if one.tokens and one.is_lost and not is_detached(facts, one)]
    told = shown(facts, "tokens")
    if "tokens" not in kinds or not told or facts.notices():
        return Finding()
    if (freed := _freed_unmetered(facts)) is not None:
        return Finding(1, (freed,))
    exercised = sum(one.replied_by(told[-1][0].asked) for one in (*lost, *_unmetered(facts)))
    for seen, usage in told:
        gone = [one for one in lost if one.replied_by(seen.asked)]
        need = sum(one.tokens for one in gone)
        evidence = (
            *(one.at for one in gone),
            *(one.request.replied_at or 0 for one in gone),
            seen.asked,
            seen.answered,
        )
        if gone and usage.reserved + usage.unknown < need:
            sentence = (
                f"Answers that may have cost {need} tokens were lost; a status shows {usage.unknown} unknown and "
                f"{usage.reserved} reserved."
            )
            return Finding(exercised, (blame("replenished allowance", sentence, evidence, gone[0].op),))
        if gone and seen.status.state in TERMINAL and usage.unknown < need:
            sentence = (
                f"The run has ended with lost answers of {need} tokens, and {usage.unknown} are shown as unknown."
            )
            return Finding(exercised, (blame("false certainty", sentence, evidence, gone[0].op),))
        known = sum(one.told for one in charges(facts) if one.replied_by(seen.answered) and not one.is_lost)
        if gone and is_exact(facts) and usage.consumed > known:
            sentence = (
                f"Answers that may count for {known} tokens have been sent; {usage.consumed} are shown as consumed, so a lost "
                "answer was booked as if it had come."
            )
            return Finding(exercised, (blame("false certainty", sentence, evidence, gone[0].op),))
    return Finding(exercised)


def _unmetered(facts: Facts) -> list[Charge]:
    """What was answered without its price."""
    return [one for one in charges(facts) if one.tokens and one.is_unmetered and not is_detached(facts, one)]


def _freed_unmetered(facts: Facts) -> Violation | None:
    """What an answer has cost that does not say so, shown as free beside what the others have cost."""
    unmetered = _unmetered(facts)
    for seen, usage in shown(facts, "tokens"):
        gone = [one for one in unmetered if one.replied_by(seen.asked)]
        need = sum(one.tokens for one in gone)
        if gone and booked(usage) < need:
            sentence = (
                f"Answers that may have cost {need} tokens did not say what they have cost, and {booked(usage)} count against "
                "the allowance."
            )
            evidence = (*(one.at for one in gone), seen.asked, seen.answered)
            return blame("replenished allowance", sentence, evidence, gone[0].op)
    return None


@obligation(
    "BUD-4",
    kind="safety",
    profile="Budget",
    promise="When the hold on a request that was sent runs out, the request does not become free.",
    tested_by="kill of the worker behind a request to a model, until its lease has run out",
    anomaly=("replenished allowance", "overspend"),
    minimum=1,
    causes=(
        "reservations have a time to live, whatever became of what they were made for",
        "work that is taken back from the dead takes its reservation back too, though its request had left",
        "a request whose worker is gone counts as never sent",
    ),
    learnt_from=("F48",),
)
def expired_hold_does_not_free_a_sent_request(history: History) -> Finding:
    facts = look(history)
    kinds = dict(limited(facts))
    found = [one for one in charges(facts) if one.tokens]
    told = shown(facts, "tokens")
    if "tokens" not in kinds or not told or facts.notices():
        return Finding()
    orphans = [one for one in found if _is_orphan(facts, one)]
    exercised = sum((facts.cut_at(one.request) or 0) < told[-1][0].asked for one in orphans)
    for seen, usage in told:
        sent = [one for one in orphans if one.at < seen.asked]
        need = sum(one.tokens for one in sent)
        if usage.reserved + usage.unknown < need:
            sentence = (
                f"Requests that may cost {need} tokens were sent and nobody knows their end; a status shows {usage.reserved} "
                f"reserved and {usage.unknown} unknown."
            )
            evidence = (*(one.at for one in sent), seen.asked, seen.answered)
            return Finding(exercised, (blame("replenished allowance", sentence, evidence, sent[0].op),))
    for charge in found:
        before = spent("tokens", found, charge.at, frozenset(one.at for one in orphans if one.at < charge.at))
        if before + charge.tokens > kinds["tokens"] and any(one.at < charge.at for one in orphans):
            sentence = (
                f"{charge.op!r} was sent and may cost {charge.tokens} tokens; {before} of {kinds['tokens']} used or held by "
                "those whose end nobody knows."
            )
            evidence = (*(one.at for one in orphans if one.at < charge.at), charge.at)
            return Finding(exercised, (blame("overspend", sentence, evidence, charge.op),))
    return Finding(exercised)


def _is_orphan(facts: Facts, charge: Charge) -> bool:
    """Was it sent, and its worker gone or stopped before anything was replied, which nothing ever was?"""
    is_open = charge.request.replied_at is None and facts.cut_at(charge.request) is not None
    return is_open and not is_detached(facts, charge)

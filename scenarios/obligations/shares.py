"""BUD-5 6 7 8: shares of an allowance, what is given back of it, what is kept of it, and what is said when it is used up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from scenarios.history import ACCEPTED, IN_DOUBT, History
from scenarios.index import Facts, look
from scenarios.obligations.registry import blame, obligation
from scenarios.observed import Seen
from scenarios.plan import Call, Child, Choice, Compensate, Model, Sleep, Wait
from scenarios.spending import (
    Charge,
    Kind,
    booked,
    charges,
    ended,
    held,
    is_detached,
    is_exact,
    limited,
    lives,
    reserve,
    shown,
    spent,
)
from scenarios.unwinding import has_effect
from scenarios.verdict import Finding, Violation

#: The code that says that an allowance is used up.
EXHAUSTED = "allowance-exhausted"


@obligation(
    "BUD-5",
    kind="safety",
    profile="Budget",
    promise="What a child may use comes out of its owner's allowance, and a child uses no more than that.",
    tested_by="children with shares beside work of their owner, which do not fit into the allowance all at once",
    anomaly="overspend",
    minimum=3,
    causes=(
        "every task has an account of its own, and nothing is taken from the one above",
        "the share is looked at when the child ends, and not set aside as it begins",
        "a child's requests are charged to whoever sends them, which has no limit",
    ),
    learnt_from=("F57",),
)
def shares_come_out_of_the_owners_allowance(history: History) -> Finding:
    facts = look(history)
    sharing = [leaf for leaf in history.plan.leaves() if isinstance(leaf, Child) and leaf.share is not None]
    found = charges(facts)
    exercised = 0
    violations: list[Violation] = []
    for child in sharing:
        mine = [one for one in found if one.op.startswith(f"{child.id}/")]
        exercised += bool(mine)
        for kind in ("calls", "tokens"):
            violations += _beyond_share(facts, child, kind, mine)
    for kind, most in limited(facts):
        tested, over = _together(facts, kind, most, sharing, found)
        exercised += tested
        violations += over
    return Finding(exercised, tuple(violations))


def _beyond_share(facts: Facts, child: Child, kind: Kind, mine: Sequence[Charge]) -> Iterator[Violation]:
    most = getattr(child.share, kind)
    for charge in mine if most is not None else ():
        before = spent(kind, mine, charge.at, held(facts, mine, charge.at))
        if charge.amount(kind) and before + charge.amount(kind) > most:
            sentence = (
                f"Child {child.id!r} has a share of {most} {kind}; {before} of them were used or reserved as {charge.op!r} was "
                f"sent, which may cost {charge.amount(kind)}."
            )
            yield blame("overspend", sentence, (one.at for one in mine if one.at <= charge.at), charge.op)
            return


def _together(
    facts: Facts, kind: Kind, most: int, sharing: Sequence[Child], found: Sequence[Charge]
) -> tuple[int, list[Violation]]:
    """Requests that were sent while children had their shares set aside, and the first one that did not fit beside these."""
    tested = 0
    for charge in found:
        shares = {child.id: getattr(child.share, kind) or 0 for child in sharing if lives(child, found, charge.at)}
        beside = [one for one in found if one.op.partition("/")[0] not in shares]
        if not charge.amount(kind) or charge not in beside or not any(shares.values()):
            continue
        tested += 1
        before = spent(kind, beside, charge.at, held(facts, beside, charge.at))
        if sum(shares.values()) + before + charge.amount(kind) > most:
            sentence = (
                f"{charge.op!r} was sent and may cost {charge.amount(kind)} {kind}; of {most}, {before} were used or reserved, "
                f"and {sum(shares.values())} given to {', '.join(sorted(shares))}."
            )
            return tested, [blame("overspend", sentence, (one.at for one in found if one.at <= charge.at), charge.op)]
    return tested, []


@obligation(
    "BUD-6",
    kind="safety",
    profile="Budget",
    level="SHOULD",
    promise="When an answer is settled, what was reserved and not used is free again.",
    tested_by="answers of a model that use less than was set aside for them",
    anomaly="overspend",
    minimum=2,
    causes=(
        "what was reserved is booked as used, whatever the answer says",
        "the reservation is taken off the sum only when the run ends",
        "settling adds what was used and leaves what was reserved where it is",
    ),
    learnt_from=("F43",),
)
def settling_gives_the_remainder_back(history: History) -> Finding:
    facts = look(history)
    last = ended(facts)
    found = [one for one in charges(facts) if one.tokens]
    told = {seen.answered: usage for seen, usage in shown(facts, "tokens")}
    usage = told.get(last.answered) if last is not None else None
    if "tokens" not in dict(limited(facts)) or last is None or usage is None or not is_exact(facts):
        return Finding()
    if facts.halted(0, last.answered) or any(one.at > last.asked for one in found):
        return Finding()  # what was reserved and never arrived is nobody's to see
    exercised = sum(one.request.answer is not None and one.used < one.tokens for one in found)
    known = sum(one.used if _is_metered(one) else one.most for one in found)
    if booked(usage) > known:
        sentence = (
            f"The answers have cost {known} tokens at most, and {booked(usage)} count against the allowance in the end."
        )
        evidence = (*(one.at for one in found), last.asked, last.answered)
        return Finding(exercised, (blame("overspend", sentence, evidence),))
    return Finding(exercised)


def _is_metered(one: Charge) -> bool:
    """Is it known what it has cost: it was answered with the price, or did nothing?"""
    return one.request.idle or (one.request.answer is not None and not one.is_unmetered)


@obligation(
    "BUD-7",
    kind="liveness",
    profile="Budget",
    level="SHOULD",
    promise="Checks and compensations have a share of the allowance that nothing else can use up.",
    tested_by="work that asks for more than its share, before it is checked or undone",
    anomaly=("overspend", "stuck"),
    minimum=2,
    causes=(
        "the reserve is a number that nothing looks at",
        "checks and compensations draw on the same sum as everything else, and come last",
        "a run that has used up its allowance is ended on the spot",
    ),
    learnt_from=("F27",),
)
def checks_and_cleanup_keep_their_share(history: History) -> Finding:
    facts = look(history)
    every = charges(facts)
    work = [one for one in every if not one.is_cleanup]
    exercised = 0
    violations: list[Violation] = []
    for kind, most in limited(facts):
        kept = reserve(history.plan.allowance, kind)
        for charge in work if kept else ():
            before = spent(kind, work, charge.at, held(facts, work, charge.at))
            if charge.amount(kind) and before + charge.amount(kind) > most - kept:
                sentence = (
                    f"{charge.op!r} was sent beyond the {most - kept} {kind} that no check or compensation needs."
                )
                violations.append(
                    blame("overspend", sentence, (one.at for one in work if one.at <= charge.at), charge.op)
                )
                break
        if kept and kind == "calls":
            privileged = [*(one.at for one in every if one.is_cleanup), *_checks(facts)]
            used_up = _used_up_at(facts, work, most - kept)
            exercised += sum(used_up is not None and at > used_up for at in privileged)
            violations += _not_cleaned_up(facts, used_up, kept - len(privileged))
    return Finding(exercised, tuple(violations))


def _checks(facts: Facts) -> tuple[int, ...]:
    return tuple(one.at for one in facts.others if one.event.service == "checker" and not one.event.lookup)


def _used_up_at(facts: Facts, work: Sequence[Charge], most: int) -> int | None:
    """Index from which on nothing of the share of ordinary work is left; uploads count once each."""
    uploads = {one.op: one.at for one in reversed(facts.others) if one.event.service == "store"}
    used = sorted((*(one.at for one in work if one.amount("calls")), *uploads.values()))
    return used[most - 1] if 0 < most <= len(used) else None


def _not_cleaned_up(facts: Facts, used_up: int | None, left: int) -> Iterator[Violation]:
    """What was done and is to be undone, and never was, though what is left of the reserve would do for all of it.

    A request that a death or the world took on its way was seen by nobody, and may have been one.
    """
    last = ended(facts)
    if used_up is None or last is None or last.status.state == "done" or facts.ordered("cancel"):
        return
    if used_up < facts.storm[1]:
        return
    left -= sum(at > used_up for at in facts.deaths)
    accepted = last.accepted()
    undo = [leaf for leaf in facts.history.plan.leaves() if isinstance(leaf, Compensate) and leaf.of in accepted]
    owed = [leaf.id for leaf in undo if has_effect(facts, leaf.of) and not facts.dispatches(leaf.id)]
    if owed and len(owed) <= left and last.asked > used_up:
        sentence = f"The allowance was used up, and {', '.join(owed)} never ran though {left} calls were kept for that."
        yield blame("stuck", sentence, (used_up, last.asked, last.answered), owed[0])


@obligation(
    "BUD-8",
    kind="safety",
    profile="Budget",
    promise="A run that ends because its allowance is used up says so, and shows how much of it went where.",
    tested_by="plans that ask for more tokens, calls or time than they are allowed",
    anomaly="amnesia",
    minimum=2,
    causes=(
        "what cannot be afforded fails like a refused request",
        "the run is left as it is, with nothing that could move",
        "the reason is in a log of the server, and not in the status",
    ),
    learnt_from=("F13", "F57"),
)
def exhaustion_is_a_stated_reason(history: History) -> Finding:
    facts = look(history)
    last = ended(facts)
    if last is None or last.status.state not in {"failed", "blocked"} or _has_another_reason(facts, last):
        return Finding()
    why = next(_exhausted(facts, last), None)
    if why is None:
        return Finding()
    kind, words, evidence = why
    evidence = (*evidence, last.asked, last.answered)
    told = last.status.reason or ""
    if EXHAUSTED not in told:
        sentence = f"{words}; the run is {last.status.state}, and its reason is {told!r}."
        return Finding(1, (blame("amnesia", sentence, evidence),))
    if kind not in (last.status.usage or {}):
        return Finding(1, (blame("amnesia", f"{words}; no status shows what was used of it.", evidence),))
    return Finding(1)


def _has_another_reason(facts: Facts, last: Seen) -> bool:
    """May the run have ended for something else than its allowance?"""
    plan = facts.history.plan
    plain = Call | Model | Sleep | Wait | Compensate | Choice
    harmless = all(isinstance(leaf, plain) for leaf in plan.leaves()) and not {"retries", "poison"} & plan.needs()
    unclear = any(shown.state in IN_DOUBT for shown in last.status.operations)
    lost = any(one.request.unanswered for one in charges(facts))
    told = facts.refusal_before(last.answered) or facts.ordered("cancel") or facts.code_changed()
    late = plan.deadline_ns is not None
    return bool(not harmless or unclear or lost or told or late)


def _exhausted(facts: Facts, last: Seen) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    """What was certainly used up as the run ended: the kind, words for it, and the requests that did it."""
    plan, found = facts.history.plan, charges(facts)
    for kind, most in limited(facts):
        work = [one for one in found if not one.is_cleanup and not is_detached(facts, one)]
        used = spent(kind, work, last.asked, frozenset())
        ours = most - reserve(plan.allowance, kind)
        for op in _barred(facts, last):
            leaf = facts.calls[op]
            need = 1 if kind == "calls" else leaf.tokens if isinstance(leaf, Model) else 0
            if need and used + need > ours:
                words = f"{used} of {ours} {kind} were used, and {op!r} could not have its {need}"
                yield kind, words, tuple(one.at for one in work if one.weight(kind, last.asked, frozenset()))
    yield from _out_of_time(facts, last)


def _out_of_time(facts: Facts, last: Seen) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    allowance, start = facts.history.plan.allowance, facts.start_ok()
    allowed_ns = allowance.elapsed_ns if allowance is not None else None
    if allowed_ns is None or start is None or facts.struck("jump"):
        return
    if facts.at_ns(last.answered) >= start.event.at_ns + allowed_ns:
        yield "elapsed_ns", f"The run was allowed {allowed_ns / 1e9:g} s", (start.at,)


def _barred(facts: Facts, last: Seen) -> Iterator[str]:
    """Operations whose turn had come as the run ended, and that were never sent."""
    plan = facts.history.plan
    accepted = {shown.id for shown in last.status.operations if shown.state in ACCEPTED}
    for op, leaf in facts.calls.items():
        had_its_turn = set(facts.before[op]) <= accepted and not plan.guards(op) and not isinstance(leaf, Compensate)
        if had_its_turn and not facts.dispatches(op):
            yield op

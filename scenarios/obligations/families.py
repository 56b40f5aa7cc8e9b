"""CHI-1 2 3: no child outlives its owner unseen, each is joined once, and what it may use and take fits into its owner's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from scenarios.history import TERMINAL, History
from scenarios.index import Facts, look
from scenarios.kinship import (
    ALIVE,
    OVER,
    answered_at,
    inside,
    is_let_go,
    name_of,
    over_at,
    own_children,
    shown,
    shows_children,
)
from scenarios.obligations.registry import blame, obligation
from scenarios.observed import Request, Seen
from scenarios.outlived import went_on
from scenarios.plan import Child, Compensate
from scenarios.repetition import timely
from scenarios.spending import KINDS, Charge, Kind, charges, held, lives, spent
from scenarios.terms import ON_ITS_WAY_NS
from scenarios.verdict import Finding, Violation

#: How long after its owner's end a request of a child may still arrive that was on its way by then.
_STRAY_NS = 250_000_000


@obligation(
    "CHI-1",
    kind="safety",
    profile="Control",
    promise="No child outlives its owner unnoticed: it ends with it, or it was let go and its owner says so.",
    tested_by="owners that fail, are stopped, or meet crashes, while their children and grandchildren are under way",
    anomaly=("leak", "amnesia"),
    minimum=3,
    causes=(
        "a run that fails is over when its own steps are, whoever of its children still works",
        "only a stop is handed down to children, and a failure is not",
        "who belongs to whom is kept in memory, so that a restart makes orphans",
        "children that were let go are in nobody's list",
    ),
    learnt_from=(),
)
def no_child_outlives_its_owner_unnoticed(history: History) -> Finding:
    facts = look(history)
    end = next((seen for seen in facts.statuses if _is_over(facts, seen)), None)
    if end is None:
        return Finding()
    owned, let_go = own_children(facts, detached=False), own_children(facts, detached=True)
    begun = [child for child in (*owned, *let_go) if any(one.at < end.asked for one in inside(facts, child))]
    found: list[Violation] = []
    for child in owned:
        wrong = _outlives(facts, child) or _works_on(facts, child, end)
        found += [wrong] if wrong else []
    for child in let_go if shows_children(facts) else ():
        wrong = _is_in_no_list(facts, child)
        found += [wrong] if wrong else []
    lodgers = sum(child.detached for child in begun) if shows_children(facts) else 0
    exercised = lodgers + (sum(not child.detached for child in begun) if end.status.state != "done" else 0)
    return Finding(exercised, tuple(found))


def _is_over(facts: Facts, seen: Seen) -> bool:
    """Does a status show the run over? One that is blocked over its code is not."""
    is_held = seen.status.state == "blocked" and (facts.struck("deploy") or facts.struck("second"))
    return seen.status.state in TERMINAL and not is_held


def _outlives(facts: Facts, child: Child) -> Violation | None:
    for seen in facts.statuses:
        one = shown(facts, seen, child)
        if _is_over(facts, seen) and one is not None and one.state in ALIVE:
            sentence = (
                f"Run {facts.history.run!r} was shown {seen.status.state}, and its child {one.run!r} {one.state}."
            )
            return blame("leak", sentence, (seen.asked, seen.answered), child.id)
    return None


def _works_on(facts: Facts, child: Child, end: Seen) -> Violation | None:
    """Something that a child began long after its owner had been shown to be over."""
    for request in inside(facts, child):
        is_first = not any(one.op == request.op and one.at < request.at for one in facts.sent)
        over_ns, at_ns = facts.at_ns(end.answered), facts.at_ns(request.at)
        stray_ns = _STRAY_NS + facts.lost_ns(over_ns - _STRAY_NS, at_ns)
        is_late = at_ns - over_ns > stray_ns and not facts.held_up(request.at)
        is_free = is_let_go(facts, request.op) or _is_reopened(facts, end, request.at)
        if is_first and is_late and not is_free and not facts.late(request):
            sentence = (
                f"Run {facts.history.run!r} was over, and its child {child.id!r} began {request.op!r} after that."
            )
            return blame("leak", sentence, (end.asked, end.answered, request.at), request.op)
    return None


def _is_reopened(facts: Facts, end: Seen, index: int) -> bool:
    """May a run that was blocked over an unknown outcome have gone on since, as its receiver gave word of it?"""
    return end.status.state == "blocked" and any(end.asked < one.asked_at < index for one in facts.notices())


def _is_in_no_list(facts: Facts, child: Child) -> Violation | None:
    """A child that was let go, and that a status of its owner does not list as such."""
    first = next(iter(inside(facts, child)), None)
    for seen in facts.statuses if first is not None else ():
        one = shown(facts, seen, child)
        if (
            first is None
            or seen.asked < first.at
            or seen.status.state == "unknown"
            or (one is not None and one.detached)
        ):
            continue
        what = "does not list it" if one is None else "lists it as its own"
        sentence = f"{name_of(facts, child)!r} was let go, and a status of the run that began it {what}."
        return blame("amnesia", sentence, (first.at, seen.asked, seen.answered), child.id)
    return None


@obligation(
    "CHI-2",
    kind="safety",
    profile="Control",
    promise="The end of a child is accepted once, and what it has done is not done again.",
    tested_by="kills between the end of a child and what follows on it; children that end early beside others that do not",
    anomaly=("duplicate effect", "torn view", "stuck"),
    minimum=2,
    causes=(
        "the child's end and its acceptance are two transactions, and a crash between them begins the child anew",
        "recovery begins all the children of a run again, also those that have ended",
        "an end is announced once, to whoever waits at that moment",
        "every announcement of an end is taken for another one",
    ),
    learnt_from=("F08", "F12", "F15"),
)
def child_is_joined_once(history: History) -> Finding:
    facts = look(history)
    exercised = 0
    found: list[Violation] = []
    for child in own_children(facts, detached=False):
        answered, over = answered_at(facts, child), over_at(facts, child)
        if answered is not None:
            exercised += sum(at > answered and went_on(facts, at) for at in facts.deaths)
        wrong = (over is not None and _begins_anew(facts, child, over)) or _joined_twice(facts, child)
        wrong = wrong or _waited_for_ever(facts, child)
        found += [wrong] if wrong else []
    return Finding(exercised, tuple(found))


def _begins_anew(facts: Facts, child: Child, over: int) -> Violation | None:
    """Something that a child sent, to have it carried out, when it was over already; that took effect, and well, before."""
    for request in inside(facts, child):
        is_owned = not is_let_go(facts, request.op) and request.op in facts.calls and not request.event.lookup
        if not is_owned or request.at < over or request not in timely(facts, request.op):
            continue
        if any(one.op == request.op and one.settled_before(over) for one in facts.requests):
            sentence = f"Child {child.id!r} was over, and {request.op!r} was sent again."
            return blame("duplicate effect", sentence, (over, request.at), request.op)
    return None


def _joined_twice(facts: Facts, child: Child) -> Violation | None:
    """A journal in which the run has taken a child's end more than once."""
    if not facts.journals:
        return None
    said = facts.journals[-1]
    ends = [row.to_state for row in said.body.transitions if row.operation == child.id and row.to_state in _ENDS]
    if len(ends) <= 1:
        return None
    name = "duplicate effect" if len(set(ends)) == 1 else "torn view"
    sentence = f"The run has taken the end of child {child.id!r} {len(ends)} times: {', '.join(ends)}."
    return blame(name, sentence, (said.asked, said.answered), child.id)


_ENDS = frozenset({"succeeded", "failed"})


def _waited_for_ever(facts: Facts, child: Child) -> Violation | None:
    """A child that has succeeded, and a run that can go no further, as it has never taken that; no other child is at work."""
    last = facts.last_seen()
    if last is None or not _goes_no_further(facts, last):
        return None
    one, leaf = shown(facts, last, child), last.operation(child.id)
    others = (shown(facts, last, other) for other in own_children(facts, detached=False))
    is_left = (
        leaf is not None
        and leaf.state in {"planned", "dispatched"}
        and all(o is None or o.state in OVER for o in others)
    )
    if one is None or one.state not in {"succeeded", "done"} or not is_left:
        return None
    sentence = f"Child {child.id!r} is {one.state}, and the run, which is {last.status.state}, has never taken its end."
    return blame("stuck", sentence, (last.asked, last.answered), child.id)


def _goes_no_further(facts: Facts, last: Seen) -> bool:
    """Is the run blocked, or not over when it was to be long since?"""
    is_late = facts.closed_as() == "bound" and last.status.state not in TERMINAL
    return is_late or (last.status.state == "blocked" and _is_over(facts, last))


@attrs.frozen
class _Purse:
    """What a child's share comes out of: an allowance, and the charges to it."""

    whose: str
    most: int
    found: tuple[Charge, ...]
    sharing: tuple[Child, ...]  # children that have a share of it, the one in question too


@obligation(
    "CHI-3",
    kind="safety",
    profile="Control",
    promise="The time and the allowance of a child fit into its owner's.",
    tested_by="children with shares that do not all fit, children of children, and families with a deadline",
    anomaly=("overspend", "replenished allowance"),
    minimum=3,
    causes=(
        "a child's share is compared with the whole, and not with what is left of it",
        "a child has its time counted from its own beginning",
        "a child is a run like any other, and knows nothing of who began it",
    ),
    learnt_from=(),
)
def child_fits_into_its_owner(history: History) -> Finding:
    facts = look(history)
    tested, found = _by_share(facts)
    told, late = _by_time(facts)
    return Finding(tested + told, (*found, *late))


def _by_share(facts: Facts) -> tuple[int, list[Violation]]:
    """Children as they were first heard of, and whether their shares fitted in with what was used and given by then."""
    every = charges(facts)
    exercised = 0
    found: list[Violation] = []
    for child in (one for one in facts.history.plan.children() if one.share is not None):
        first = next((one for one in every if one.op.startswith(f"{child.id}/")), None)
        purses = {kind: _purse(facts, child, kind, every) for kind in KINDS} if first is not None else {}
        exercised += any(purses.values())
        for kind, purse in purses.items():
            wrong = _unfitting(facts, child, kind, purse, first) if purse is not None and first is not None else None
            found += [wrong] if wrong else []
    return exercised, found


def _purse(facts: Facts, child: Child, kind: Kind, every: Sequence[Charge]) -> _Purse | None:
    """The nearest allowance above a child that limits this kind; None where none does, or the child asks for nothing of it."""
    plan, above = facts.history.plan, child.id
    while getattr(child.share, kind):
        above = above.rpartition("/")[0]
        owner = plan.leaf(above)
        allowed = owner.share if isinstance(owner, Child) else plan.allowance if not above else None
        most = getattr(allowed, kind) if allowed is not None else None
        if most is not None:
            start = f"{above}/" if above else ""
            mine = tuple(one for one in every if one.op.startswith(start))
            sharing = tuple(
                one for one in plan.children() if one.id.startswith(start) and getattr(one.share, kind, None)
            )
            top = tuple(one for one in sharing if not any(one.id.startswith(f"{other.id}/") for other in sharing))
            return _Purse(above, most, mine, top)
        if not above:
            return None
    return None


def _unfitting(facts: Facts, child: Child, kind: Kind, purse: _Purse, first: Charge) -> Violation | None:
    others = [one for one in purse.sharing if one is not child and lives(one, purse.found, first.at)]
    apart = (child, *others)
    beside = [one for one in purse.found if not any(one.op.startswith(f"{other.id}/") for other in apart)]
    used = spent(kind, beside, first.at, held(facts, beside, first.at))
    given, asked = sum(getattr(one.share, kind) for one in others), getattr(child.share, kind)
    if used + given + asked <= purse.most:
        return None
    whose = f"child {purse.whose!r}" if purse.whose else "the run"
    sentence = (
        f"Child {child.id!r} was begun with a share of {asked} {kind}; of the {purse.most} of {whose}, {used} were used and "
        f"{given} given away."
    )
    return blame("overspend", sentence, (*(one.at for one in purse.found if one.at <= first.at),), child.id)


def _by_time(facts: Facts) -> tuple[int, list[Violation]]:
    """Requests of owned children, and whether they were in the time of the run, and were told of no more than that."""
    deadline_ns, start = facts.history.plan.deadline_ns, facts.start_ok()
    if deadline_ns is None or start is None or start.answered_at is None or facts.struck("jump"):
        return 0, []
    end_ns = facts.at_ns(start.answered_at) + deadline_ns
    sent = [one for one in _of_owned(facts) if not facts.held_up(one.at)]
    found = (_beyond(facts, request, start.answered_at, end_ns) for request in sent)
    return len(sent), [one for one in found if one][:1]


def _of_owned(facts: Facts) -> Iterator[Request]:
    inner = facts.history.plan.operations_of_children()
    for one in facts.requests:
        is_work = not one.event.lookup and not isinstance(facts.calls.get(one.op), Compensate)
        if one.op in inner and is_work and not is_let_go(facts, one.op) and not facts.late(one):
            yield one


def _beyond(facts: Facts, request: Request, start: int, end_ns: int) -> Violation | None:
    told_ns = request.event.remaining_ns
    left_ns = end_ns - request.event.at_ns
    margin_ns = ON_ITS_WAY_NS + facts.lost_ns(facts.at_ns(start), request.event.at_ns)
    if left_ns + margin_ns < 0:
        sentence = f"{request.op!r} was sent {-left_ns / 1e9:.3g} s after the time of the run was over."
    elif told_ns is not None and told_ns > left_ns + margin_ns:
        sentence = (
            f"{request.op!r} was told of {told_ns / 1e9:.3g} s, when {left_ns / 1e9:.3g} s were left of the run's time."
        )
    else:
        return None
    return blame("replenished allowance", sentence, (start, request.at), request.op)

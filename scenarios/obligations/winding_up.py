"""CAN-5 7: a stop reaches everything that the run owns and nothing that it has let go, and the cleanup it owes gets done."""

from __future__ import annotations

from collections.abc import Iterator

from scenarios.history import ACCEPTED, TERMINAL, History
from scenarios.index import Facts, look
from scenarios.joining import asks_of, other_runs, statuses_of
from scenarios.kinship import ALIVE
from scenarios.obligations.registry import blame, obligation
from scenarios.obligations.stopping import admitted
from scenarios.observed import Seen
from scenarios.plan import Child
from scenarios.stops import accepted_stop, ended, is_inherited, senders
from scenarios.unwinding import has_effect, learnt_at
from scenarios.verdict import Finding, Violation


@obligation(
    "CAN-5",
    kind="safety",
    profile="Control",
    promise="A stop ends the run's children and theirs with it; a detached child lives on, with an owner and a handle of its "
    "own.",
    tested_by="cancel of a run with children, grandchildren and a detached child, or with runs beside it, and kills meanwhile",
    anomaly=("resurrection", "leak", "amnesia"),
    minimum=3,
    causes=(
        "the stop is written to the run and never handed down",
        "the run is over when its own steps are, whoever of its children still works",
        "all that was started by the run is stopped, also what was started to outlive it",
        "runs are found by the beginning of their names, and a stop reaches whose name begins alike",
        "a detached child is kept in its parent's records only, and found through it",
    ),
    learnt_from=("F39",),
)
def descendants_stop_with_their_owner(history: History) -> Finding:
    facts = look(history)
    stop = accepted_stop(facts)
    children = history.plan.children()
    strangers = other_runs(history)
    if stop is None or stop.ok_at is None or not (children or strangers):
        return Finding()
    ends = [seen for seen in ended(facts) if seen.status.state == "cancelled"]
    owned = [op for op in senders(facts) if is_inherited(facts, op)]
    begun = [op for op in owned if any(request.at < stop.ok_at for request in facts.dispatches(op))]
    let_go = [child for child in children if child.detached and "/" not in child.id and _has_begun(facts, child)]
    found = [one for op in owned if (one := admitted(facts, op, stop.ok_at))]
    found += _orphans(facts, ends[:1])
    found += [one for child in let_go if (one := _taken_along(facts, child))]
    found += [one for run in strangers if (one := _mistaken(facts, run, stop.ok_at))]
    return Finding(len(begun) + len(let_go) + any(_is_seen(facts, run, stop.ok_at) for run in strangers), tuple(found))


def _orphans(facts: Facts, ends: list[Seen]) -> Iterator[Violation]:
    """Children of its own that a cancelled run shows alive."""
    let_go = {f"{facts.history.run}/{child.id}" for child in facts.history.plan.children() if child.detached}
    for seen in ends:
        for child in seen.status.children:
            if child.run not in let_go and not child.detached and child.state in ALIVE:
                sentence = f"The run was shown cancelled, and its child {child.run!r} {child.state}."
                yield blame("leak", sentence, (seen.asked, seen.answered), child.run)


def _has_begun(facts: Facts, child: Child) -> bool:
    """Was a child certainly admitted: its leaf accepted, or something of it sent?"""
    inner = facts.history.plan.operations_of_children()
    sent = any(inner.get(request.op, ("", ""))[0] == child.id for request in facts.sent)
    return sent or child.id in facts.accepted_at


def _taken_along(facts: Facts, child: Child) -> Violation | None:
    """What a status of a detached child says that nobody had stopped, when it was stopped or is unknown all the same."""
    name = f"{facts.history.run}/{child.id}"
    asks = asks_of(facts.history, name)
    if any(ask.event.verb == "cancel" for ask in asks) or facts.struck("wipe"):
        return None
    begun = facts.accepted_at.get(child.id, len(facts.history.events))
    sent = (one.at for one in facts.sent if one.op.startswith(f"{child.id}/"))
    since = min((begun, *sent))
    for seen in statuses_of(asks):
        evidence = (since, seen.asked, seen.answered)
        if seen.status.state == "cancelled":
            sentence = f"The stop of run {facts.history.run!r} has also stopped {name!r}, which was let go."
            return blame("leak", sentence, evidence, child.id)
        if seen.status.state == "unknown" and seen.asked > since:
            sentence = f"{name!r} was begun and let go, and there is no run of that name."
            return blame("amnesia", sentence, evidence, child.id)
    return None


def _is_seen(facts: Facts, run: str, stopped: int) -> bool:
    """Was it asked after the stop how another run stands, so that it would have been seen to be stopped with this one?"""
    return any(seen.asked > stopped for seen in statuses_of(asks_of(facts.history, run)))


def _mistaken(facts: Facts, run: str, stopped: int) -> Violation | None:
    """What shows another run, which nobody has told to stop, as stopped with this one."""
    asks = asks_of(facts.history, run)
    if any(ask.event.verb == "cancel" for ask in asks):
        return None
    seen = next((one for one in statuses_of(asks) if one.status.state == "cancelled"), None)
    if seen is None:
        return None
    sentence = f"The stop of run {facts.history.run!r} has also stopped run {run!r}, which has nothing to do with it."
    return blame("leak", sentence, (stopped, seen.asked, seen.answered))


@obligation(
    "CAN-7",
    kind="liveness",
    profile="Control",
    level="SHOULD",
    promise="The cleanup that a stopped run owes is done before the run is called over, also when it is interrupted.",
    tested_by="cancel of a run with effects to undo, and kills while they are undone",
    anomaly=("lost effect", "stuck"),
    minimum=3,
    causes=(
        "cleanup hangs on failure, and a stop is none",
        "what is still to be undone is a list in memory",
        "whoever takes over sees a stopped run, and leaves it alone",
    ),
    learnt_from=("F39",),
)
def cleanup_gets_done(history: History) -> Finding:
    facts = look(history)
    stop, last = accepted_stop(facts), facts.last_seen()
    if stop is None or stop.ok_at is None or last is None or history.plan.allowance is not None:
        return Finding()
    owed = [(of, undo.id) for of, undo in history.plan.compensations().items() if _is_owed(facts, of, undo.id, last)]
    if last.status.state == "cancelled" and last.asked > stop.ok_at:
        left = [pair for pair in owed if not _is_taken_up(facts, pair[1], last)]
        return Finding(
            len(owed), tuple(_left_undone(pair, stop.ok_at, last) for pair in left), facts.closed_as() == "slow"
        )
    if facts.closed_as() == "bound" and last.status.state not in TERMINAL and owed:
        sentence = f"The stop was acknowledged and the faults had ceased, but {owed[0][1]!r} was never done with."
        return Finding(len(owed), (blame("stuck", sentence, (stop.ok_at, last.answered), owed[0][1]),))
    return Finding()


def _is_owed(facts: Facts, of: str, undo: str, last: Seen) -> bool:
    """Was an effect of the run itself accepted by the end, with nothing that keeps it from being undone?

    What cannot be undone keeps what is older from being undone.
    """
    if (
        is_inherited(facts, undo)
        or not has_effect(facts, of)
        or facts.accepted_at.get(of, last.answered + 1) > last.answered
    ):
        return False
    names = {one.id for one in facts.history.plan.compensations().values()}
    if not last.status.operations and any(facts.dispatches(one) and learnt_at(facts, one) is None for one in names):
        return False
    return not any(
        one.id in names and one.state in {"failed", "unknown", "unresolved"} for one in last.status.operations
    )


def _is_taken_up(facts: Facts, undo: str, last: Seen) -> bool:
    """Did a compensation reach its receiver, and does the run not say that it is still to be done?"""
    shown = last.operation(undo)
    return bool(facts.dispatches(undo)) and (shown is None or shown.state in ACCEPTED)


def _left_undone(pair: tuple[str, str], stop: int, last: Seen) -> Violation:
    of, undo = pair
    sentence = f"{of!r} had been accepted, and the stopped run is called over without {undo!r} having been done."
    return blame("lost effect", sentence, (stop, last.asked, last.answered), undo)

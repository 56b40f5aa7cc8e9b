"""SCH-2 10 11: work on its way from one place to the next is neither lost nor doubled, and holds up nobody else."""

from __future__ import annotations

from collections.abc import Iterator

from scenarios.history import ACCEPTED, TERMINAL, History
from scenarios.index import Facts, look
from scenarios.obligations.ends import is_held
from scenarios.obligations.registry import blame, firsts, obligation
from scenarios.observed import Request
from scenarios.plan import Artifact, Call, Check, Choice, Compensate, Leaf, Model, Nondet, Sleep, Wait
from scenarios.verdict import Finding, Violation

_OPEN = frozenset({"planned", "dispatched", "unknown"})


@obligation(
    "SCH-2",
    kind="safety",
    profile="Control",
    promise="A change of state and the dispatch that follows from it are committed together: no work is stuck for want of it, "
    "and none comes from nowhere.",
    tested_by="workers and engine killed between an answer and the work that it releases",
    anomaly=("stuck", "phantom effect"),
    minimum=3,
    causes=(
        "the state is committed, and what follows is put into a queue afterwards",
        "what follows is handed out first, and the state is committed when there is time",
        "nothing looks for work that is due by its state and in no queue",
    ),
    learnt_from=("F11", "F18"),
)
def change_and_dispatch_are_one(history: History) -> Finding:
    facts = look(history)
    tested = [death for death in facts.deaths if _died_between(facts, death)]
    dead = facts.deaths[0] if facts.deaths else None
    stuck = () if dead is None else stranded(facts, dead, "a process died")
    released = (one for one in stuck if one.operation is not None and _waits_for_dispatch(facts, one.operation))
    return Finding(len(tested), (*released, *_from_nowhere(facts)))


def _waits_for_dispatch(facts: Facts, op: str) -> bool:
    """Does the last status show it as released by something, and never sent?"""
    last = facts.last_seen()
    shown = last.operation(op) if last is not None else None
    return shown is not None and shown.state == "planned" and bool(facts.before[op])


def _died_between(facts: Facts, death: int) -> bool:
    """Had something been answered, and what it releases not been sent, when this died; and was it sent later?"""
    for op in facts.calls:
        first = next(iter(facts.dispatches(op)), None)
        before = [one for one in facts.before[op] if one in facts.calls]
        if (
            first is not None
            and before
            and first.at > death
            and all(facts.answered_before(one, death) for one in before)
        ):
            return True
    return False


def _from_nowhere(facts: Facts) -> Iterator[Violation]:
    """The first request of an operation after a crash, though something before it had never been answered."""
    for op in facts.calls:
        first = next(iter(facts.dispatches(op)), None)
        if first is None or not any(death < first.at for death in facts.deaths):
            continue
        missing = next(facts.missing(op, first.at), None)
        if missing is not None:
            death = max(death for death in facts.deaths if death < first.at)
            sentence = (
                f"A process died, and {op!r} was dispatched though {missing!r}, which releases it, had no answer yet."
            )
            yield blame("phantom effect", sentence, (death, first.at), op)
            return


@obligation(
    "SCH-10",
    kind="safety",
    profile="Control",
    promise="Work that moves between timers, queue, workers and what is done is neither lost nor doubled, also when one of the "
    "moves fails.",
    tested_by="the disk full or failing, and processes killed, while several timers and calls are due at once",
    anomaly=("stuck", "lost effect", "duplicate effect"),
    minimum=3,
    causes=(
        "what is due is taken out of the timers before it is in the queue",
        "work of the dead is put back as if it had never been sent",
        "a batch is moved in one go, and what comes after the one that fails is forgotten",
    ),
    learnt_from=("F11",),
)
def moving_loses_and_doubles_nothing(history: History) -> Finding:
    facts = look(history)
    moments = sorted({*facts.deaths, *(at for at, action, _ in facts.fired if action in {"full", "eio"})})
    if not moments:
        return Finding()
    tested = [moment for moment in moments if _on_the_move(facts, moment) > 1 and _is_told_of(facts, moment)]
    found = (*stranded(facts, moments[0], "a move was cut short"), *_left_out(facts), *_doubled(facts, moments[0]))
    return Finding(len(tested), firsts(found))


def _is_told_of(facts: Facts, index: int) -> bool:
    """Is it told after event `index` what has become of operations: of each, or that all that is owed is done?"""
    written = any(said.asked > index and said.body.transitions for said in facts.journals)
    return written or any(seen.status.operations or seen.status.state == "done" for seen in facts.seen_after(index))


def _on_the_move(facts: Facts, index: int) -> int:
    """How many leaves had been released by event `index`, and were certainly not known to have ended?"""
    return sum(
        all(facts.accepted_at.get(need, index) < index for need in facts.before[leaf.id])
        and facts.accepted_at.get(leaf.id, index) >= index
        for leaf in _own_turn(facts)
        if isinstance(leaf, Sleep | Wait | Call | Model)
    )


def _left_out(facts: Facts) -> Iterator[Violation]:
    """The run is shown done, and something that it owes as not done."""
    for seen in facts.statuses:
        for one in seen.status.operations:
            if seen.status.state == "done" and one.state in _OPEN and facts.history.plan.is_owed(one.id):
                sentence = f"The run was shown done, and {one.id!r}, which belongs to it, as {one.state}."
                yield blame("lost effect", sentence, (seen.asked, seen.answered), one.id)


def _doubled(facts: Facts, since: int) -> Iterator[Violation]:
    """What may be sent once took effect twice, or something was accepted twice."""
    for call in facts.of("blind"):
        made = [one for one in facts.dispatches(call.id) if one.applied_at is not None]
        if len(made) > 1 and made[1].at > since and not any(map(facts.late, made)):
            yield _twice(call.id, "took effect", made)
    for said in facts.journals:
        accepted: dict[str, int] = {}
        for one in said.body.transitions:
            if one.to_state in ACCEPTED and one.from_state not in ACCEPTED and not facts.is_revocable(one.operation):
                accepted[one.operation] = accepted.get(one.operation, 0) + 1
        for op in sorted(op for op, times in accepted.items() if times > 1 and op in facts.ancestors):
            sentence = f"The journal has {op!r} accepted {accepted[op]} times."
            yield blame("duplicate effect", sentence, (said.asked, said.answered), op)


def _twice(op: str, what: str, requests: list[Request]) -> Violation:
    sentence = f"{op!r} can be neither looked up nor repeated, and {what} twice."
    return blame("duplicate effect", sentence, (requests[0].at, requests[1].at), op)


@obligation(
    "SCH-11",
    kind="safety",
    profile="Control",
    promise="One piece of work that cannot be dispatched does not strand its neighbours, nor itself.",
    tested_by="a call that cannot be put into words, in one batch with calls that can; kills of worker and engine",
    anomaly=("stuck", "lost effect"),
    minimum=2,
    causes=(
        "a batch is handed out as a whole, and an error in one item ends the handing out",
        "the background task that dispatches dies of the error, unseen",
        "the item is put back at the head of the queue, again and again",
    ),
    learnt_from=("F22", "F40"),
    scenarios=("misfit",),
)
def misfit_strands_nobody(history: History) -> Finding:
    facts = look(history)
    misfits = [call for call in history.plan.calls() if isinstance(call, Call) and "poison" in call.params]
    tested = [call for call in misfits if any(_was_served(facts, call, other) for other in facts.calls)]
    if not misfits:
        return Finding()
    reached = next((at for at in map(facts.accepted_at.get, facts.before[misfits[0].id]) if at is not None), 0)
    stuck = stranded(facts, reached, f"{misfits[0].id!r} could not be dispatched")
    return Finding(len(tested), firsts((*stuck, *_not_sent(facts, misfits[0]))))


def _was_served(facts: Facts, misfit: Call, other: str) -> bool:
    """Is `other` a neighbour that has been carried out, of a misfit that was shown to have failed?"""
    failed = any(
        (shown := seen.operation(misfit.id)) is not None and shown.state == "failed" for seen in facts.statuses
    )
    neighbours = (
        other != misfit.id and misfit.id not in facts.ancestors[other] and other not in facts.ancestors[misfit.id]
    )
    return failed and neighbours and other in facts.accepted_at


def _not_sent(facts: Facts, misfit: Call) -> Iterator[Violation]:
    """The run is done, and a neighbour of the misfit that it owes was never sent."""
    done = next((seen for seen in facts.statuses if seen.status.state == "done"), None)
    for op, call in facts.calls.items():
        owed = facts.history.plan.is_owed(op) and "poison" not in call.params
        if done is not None and owed and not any(one.at < done.answered for one in facts.dispatches(op)):
            sentence = (
                f"{misfit.id!r} could not be dispatched, and {op!r} beside it never was, though the run was shown done."
            )
            yield blame("lost effect", sentence, (done.asked, done.answered), op)


# ---- what they share


def _own_turn(facts: Facts) -> Iterator[Leaf]:
    """Leaves that have their turn whatever is decided, in the run itself."""
    plan = facts.history.plan
    inner = plan.operations_of_children()
    for leaf in plan.leaves():
        if not isinstance(leaf, Choice | Compensate) and not plan.guards(leaf.id) and leaf.id not in inner:
            yield leaf


def stranded(facts: Facts, since: int, cause: str) -> Iterator[Violation]:
    """Work that nothing was in the way of, and that had not ended when the run was given up, long after the last fault."""
    last = facts.last_seen()
    if (
        last is None
        or facts.closed is None
        or facts.closed_as() != "bound"
        or facts.quiet is None
        or last.answered < since
    ):
        return
    status = last.status
    if status.state in TERMINAL or status.paused or status.cancel is not None or is_held(facts):
        return
    for leaf in _own_turn(facts):
        shown = last.operation(leaf.id)
        moves = isinstance(leaf, Call | Model | Artifact | Check | Sleep | Nondet) or (
            isinstance(leaf, Wait) and leaf.timeout_ns is not None
        )
        if moves and shown is not None and shown.state in _OPEN and _is_free(facts, leaf):
            sentence = (
                f"Since {cause}, {leaf.id!r} has been shown as {shown.state}: all that it waits for was accepted, and long "
                "after the last fault it had not ended."
            )
            yield blame("stuck", sentence, (since, last.answered, facts.closed), leaf.id)


def _is_free(facts: Facts, leaf: Leaf) -> bool:
    """Does the last status show everything that this leaf depends on as accepted?"""
    last = facts.last_seen()
    needs = tuple(facts.history.plan.dependencies().predecessors(leaf.id))
    shown = [last.operation(one) if last is not None else None for one in needs]
    return all(one is not None and one.state in ACCEPTED for one in shown)

"""DUR-4: one status shows one state, in which a result and all that follows from it are there together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from scenarios.chronicle import is_own
from scenarios.history import ACCEPTED, History, OperationStatus
from scenarios.index import Facts, look
from scenarios.obligations.registry import blame, obligation
from scenarios.observed import Seen
from scenarios.plan import Call, Choice, Compensate, Wait
from scenarios.verdict import Finding, Violation, short

#: States of an operation that can still be waited for: what depends on it has not been released.
_AHEAD = frozenset({"planned", "dispatched", "unknown"})
#: Phases in which what may move is shown so.
_MOVING = frozenset({None, "admitted", "running", "waiting"})


@obligation(
    "DUR-4",
    kind="safety",
    profile="Durable",
    promise="Acceptance is atomic: one and the same status shows a result, its operation's state and the work it releases, or "
    "none of them.",
    tested_by="statuses asked all the time, with work and its successors in all of them; kills in between",
    anomaly="torn view",
    minimum=3,
    causes=(
        "the result is committed first, and what depends on it is released in a second transaction",
        "a status is put together from several reads with commits in between",
        "an index of what is ready is kept beside the states and follows them later",
    ),
    learnt_from=("F09", "F10", "F56"),
)
def acceptance_is_atomic(history: History) -> Finding:
    facts = look(history)
    before = _direct(facts)
    tested = sum(_shows_release(facts, seen, before) for seen in facts.statuses)
    found: dict[str | None, Violation] = {}
    for seen in facts.statuses:
        for one in (*_early(facts, seen), *_late(facts, seen, before), *_split(facts, seen)):
            found.setdefault(one.operation, one)
    return Finding(tested, tuple(found.values()))


def _direct(facts: Facts) -> Mapping[str, tuple[str, ...]]:
    """Leaf → all it directly depends on, for leaves that are owed their turn as soon as that is accepted.

    Left out is what a decision may leave out or take back, and what depends on such things.
    """
    plan = facts.history.plan
    graph = plan.dependencies()
    plain = {
        leaf.id for leaf in plan.leaves() if not isinstance(leaf, Choice | Compensate) and not plan.guards(leaf.id)
    }
    steady = {leaf for leaf in plain if not facts.is_revocable(leaf)}
    found = {leaf: tuple(graph.predecessors(leaf)) for leaf in graph if leaf in plain}
    return {leaf: needs for leaf, needs in found.items() if needs and steady.issuperset(needs)}


def _released(seen: Seen, needs: tuple[str, ...]) -> bool:
    """Does this status show all of these as accepted, operation by operation?"""
    shown = [seen.operation(one) for one in needs]
    return all(one is not None and one.state in ACCEPTED for one in shown)


def _shows_release(facts: Facts, seen: Seen, before: Mapping[str, tuple[str, ...]]) -> bool:
    """Is something to be seen here that was released and has not ended, with the word whether it may move?"""
    if not _is_moving(facts, seen):
        return False
    shown = ((one, before.get(one.id, ())) for one in seen.status.operations)
    return any(
        one.ready is not None and one.state in _AHEAD and needs and _released(seen, needs) for one, needs in shown
    )


def _is_moving(facts: Facts, seen: Seen) -> bool:
    """Is everything released at once in the state shown? Not in a run that is being stopped, fails, or is short of means."""
    status, plan = seen.status, facts.history.plan
    bound = plan.allowance is not None or plan.deadline_ns is not None
    told = any(one.asked_at < seen.answered for one in facts.commands if one.verb in {"cancel", "pause"})
    stopping = told or status.cancel is not None or bool(status.paused) or status.phase not in _MOVING
    failing = any(one.state in {"failed", "unresolved"} for one in status.operations)
    return status.state in {"running", "waiting"} and not (bound or stopping or failing)


def _late(facts: Facts, seen: Seen, before: Mapping[str, tuple[str, ...]]) -> Iterator[Violation]:
    """Everything is accepted, and what waited for it is shown as not released."""
    if not _is_moving(facts, seen):
        return
    for one in seen.status.operations:
        needs = before.get(one.id, ())
        if one.ready is False and one.state == "planned" and needs and _released(seen, needs):
            sentence = (
                f"One status shows {_names(needs)} as accepted, and {one.id!r}, which needs no more, as not ready."
            )
            yield blame("torn view", sentence, (seen.asked, seen.answered), one.id)


def _early(facts: Facts, seen: Seen) -> Iterator[Violation]:
    """Something is shown as released, and what it depends on as not accepted."""
    for one in seen.status.operations:
        if not (one.ready is True or _has_begun(one)) or one.id not in facts.before:
            continue
        for need in facts.before[one.id]:
            shown = seen.operation(need)
            if shown is not None and shown.state in _AHEAD and not facts.is_revocable(need):
                sentence = (
                    f"One status shows {one.id!r} as released, and {need!r}, which comes before it, as {shown.state}."
                )
                yield blame("torn view", sentence, (seen.asked, seen.answered), one.id)
                break


def _has_begun(one: OperationStatus) -> bool:
    return one.state in {"dispatched", "unknown", *ACCEPTED}


def _split(facts: Facts, seen: Seen) -> Iterator[Violation]:
    """The result has an answer that the same status shows as not accepted, or another one than it, or lacks it."""
    if seen.status.state != "done":
        return
    result = seen.status.result or {}
    for one in seen.status.operations if result else ():
        is_answered = one.state in ACCEPTED and one.nonce is not None and _is_due(facts, one.id)
        if is_answered and one.id not in result:
            sentence = f"One status shows {one.id!r} as accepted with an answer, and has none of it in its result."
            yield blame("torn view", sentence, (seen.asked, seen.answered), one.id)
    for op in result:
        shown = seen.operation(op)
        if shown is not None and shown.state in _AHEAD and op in facts.ancestors:
            sentence = f"One status has the answer of {op!r} in its result and shows the operation as {shown.state}."
            yield blame("torn view", sentence, (seen.asked, seen.answered), op)
        elif shown is not None and shown.nonce not in {None, result[op]} and _has_one_answer(facts, op):
            sentence = (
                f"One status has {short(result[op])} as the answer of {op!r} in its result, and {short(shown.nonce)} "
                "beside it."
            )
            yield blame("torn view", sentence, (seen.asked, seen.answered), op)


def _has_one_answer(facts: Facts, op: str) -> bool:
    """Is it a call or a wait of the run's own, which the result of a done run has with the answer that was accepted?"""
    return isinstance(facts.history.plan.leaf(op), Call | Wait) and is_own(op)


def _is_due(facts: Facts, op: str) -> bool:
    """Does the result of a done run have it, whatever was decided on the way?"""
    return _has_one_answer(facts, op) and facts.history.plan.is_owed(op)


def _names(ops: tuple[str, ...]) -> str:
    return " and ".join(repr(op) for op in ops)

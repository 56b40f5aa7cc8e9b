"""DUR-7 8 9 12: operations keep their identity, their order and their own effects, and an unresolved one stays visible."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator

from scenarios.endings import may_be_escalated
from scenarios.history import IN_DOUBT, TERMINAL, History
from scenarios.index import Facts, look
from scenarios.obligations.registry import blame, obligation
from scenarios.observed import Request, Seen
from scenarios.plan import SEMANTICS, Artifact, Check, Fail, Leaf, Requester, Wait
from scenarios.publishing import verdicts
from scenarios.reasons import other_failure
from scenarios.turns import out_of_turn
from scenarios.verdict import Finding, Violation

#: States of a run that is pursued, or was with success.
_GOES_ON = frozenset({"running", "waiting", "done"})


@obligation(
    "DUR-7",
    kind="safety",
    profile="Durable",
    promise="The ids of an attempt and of its operations survive recovery, while each activation of a worker gets an "
    "execution id of its own.",
    tested_by="kill and restart, with statuses before and after that show ids",
    anomaly=("amnesia", "torn view"),
    minimum=2,
    causes=(
        "ids are drawn at random when the flow is rerun, instead of recorded or derived from names",
        "recovery makes a new attempt for the same pursuit",
        "the execution id is the host's name, so that a restart under the same name looks like the old process",
    ),
    learnt_from=("F31", "F47", "F50"),
)
def ids_survive_recovery(history: History) -> Finding:
    facts = look(history)
    deaths = [death for death in facts.deaths if _shows_ids(facts, death)]
    found = (*_attempt_changed(facts), *_taken_up_again(facts), *_operation_vanished(facts), *_execution_kept(facts))
    return Finding(len(deaths), found)


def _shows_ids(facts: Facts, death: int) -> bool:
    """Are there statuses with ids on both sides of a death?"""
    shown = [seen for seen in facts.statuses if _attempt(facts, seen) is not None or _listed(facts, seen)]
    return any(seen.answered < death for seen in shown) and any(seen.asked > death for seen in shown)


def _attempt(facts: Facts, seen: Seen) -> str | None:
    return seen.status.attempt if facts.history.declared.shows_attempts else None


def _listed(facts: Facts, seen: Seen) -> tuple[str, ...]:
    return tuple(op.id for op in seen.status.operations) if facts.history.declared.shows_operations else ()


def _attempt_changed(facts: Facts) -> Iterator[Violation]:
    shown = [seen for seen in facts.statuses if _attempt(facts, seen) is not None]
    for before, after in itertools.pairwise(shown):
        if before.status.attempt != after.status.attempt and facts.death_between(before.asked, after.answered):
            if any(_ended_without_success(seen) for seen in facts.statuses if seen.answered < after.answered):
                return  # a pursuit that ended may be taken up anew, by a new attempt
            sentence = (
                f"A process died and run {facts.history.run!r} was recovered, but its attempt {before.status.attempt} "
                f"became {after.status.attempt}."
            )
            yield blame("amnesia", sentence, (before.answered, after.asked, after.answered))
            return


def _taken_up_again(facts: Facts) -> Iterator[Violation]:
    """A pursuit that had failed or been cancelled is shown alive, or done, under its old id. One that is blocked may go on."""
    ends = [seen for seen in facts.statuses if seen.status.state in {"failed", "cancelled"} and _attempt(facts, seen)]
    for end in ends[:1]:
        for seen in facts.seen_after(end.answered):
            if facts.struck("wipe", seen.answered):
                return  # who has forgotten the end may count its attempts anew
            if seen.status.state in _GOES_ON and _attempt(facts, seen) == end.status.attempt:
                sentence = (
                    f"Attempt {end.status.attempt} of run {facts.history.run!r} was shown {end.status.state}, and later "
                    f"{seen.status.state}: to take the run up anew takes a new attempt."
                )
                yield blame("torn view", sentence, (end.answered, seen.asked, seen.answered))
                return


def _ended_without_success(seen: Seen) -> bool:
    return seen.status.state in TERMINAL and seen.status.state != "done"


def _operation_vanished(facts: Facts) -> Iterator[Violation]:
    shown = [seen for seen in facts.statuses if _listed(facts, seen) and seen.status.state not in TERMINAL - {"done"}]
    for before, after in itertools.pairwise(shown):
        still = frozenset(_listed(facts, after))
        gone = [op for op in _listed(facts, before) if op not in still]
        if gone and facts.death_between(before.answered, after.asked):
            sentence = (
                f"Operation {gone[0]!r} was shown before a process died, and is not shown under that id afterwards."
            )
            yield blame("amnesia", sentence, (before.answered, after.asked, after.answered), gone[0])
            return


def _execution_kept(facts: Facts) -> Iterator[Violation]:
    """The old execution id is still shown though every worker it can have belonged to is dead and a new one works."""
    if not facts.history.declared.shows_attempts or facts.is_stormy:
        return  # what a dead worker had asked for may come late in a storm, and then it is given work once more
    first: dict[str, Seen] = {}
    for after in facts.statuses:
        execution = after.status.execution
        if execution is None:
            continue
        before = first.setdefault(execution, after)
        new = next((one for one in facts.requests if _is_successor(facts, one, before, after)), None)
        if new is not None:
            sentence = (
                f"Worker {new.event.incarnation} came up after the old one had died and worked on run "
                f"{facts.history.run!r}, but the execution id is still {execution}."
            )
            yield blame("torn view", sentence, (before.answered, new.at, after.asked, after.answered))
            return


def _is_successor(facts: Facts, request: Request, before: Seen, after: Seen) -> bool:
    """Did a worker send this that came up when every worker there was at `before` had died?

    What it sends for a child is that child's execution.
    """
    if request.op in facts.history.plan.operations_of_children():
        return False
    born = facts.started.get(request.event.incarnation, -1)
    if not before.answered < born < request.at < after.asked or facts.late(request):
        return False
    elders = [worker for worker in facts.workers if facts.started[worker] < before.answered]
    return bool(elders) and all(facts.died.get(worker, request.at) < born for worker in elders)


@obligation(
    "DUR-8",
    kind="safety",
    profile="Durable",
    promise="An operation is dispatched only after everything it depends on was accepted, and never when a decision leaves it "
    "out.",
    tested_by="parallel branches, waits and chains, with kills and lost replies in between; branches, loops and races",
    anomaly="out of order",
    minimum=3,
    causes=(
        "a join counts ended branches instead of asking which ones were accepted",
        "recovery dispatches all recorded operations at once",
        "completion is inferred from the absence of work",
        "a decision says what goes on, and nobody ends what does not",
    ),
    learnt_from=("F12", "F13", "F30"),
)
def dispatched_only_after_its_dependencies(history: History) -> Finding:
    facts = look(history)
    exercised = 0
    found: list[Violation] = []
    for op in (*facts.calls, *dict.fromkeys(request.op for request in facts.others)):
        dispatches = [request for request in facts.dispatches(op) if facts.ancestors[op]]
        exercised += any(_after_trouble(facts, request) for request in dispatches)
        early = next(((one, name) for one in dispatches for name in _missing(facts, one)), None)
        if early is not None:
            request, name = early
            sentence = f"{op!r} was dispatched before {name!r}, on which it depends, had {_ending(facts, name)}."
            found.append(blame("out of order", sentence, (request.at,), op))
    for one in out_of_turn(facts):
        since = () if one.since is None else (one.since,)
        sentence = f"{one.request.op!r} was dispatched out of turn: {one.why}."
        found.append(blame("out of order", sentence, (*since, one.request.at), one.request.op))
    return Finding(exercised, tuple(found))


def _after_trouble(facts: Facts, request: Request) -> bool:
    return any(at < request.at for at in facts.troubles)


def _missing(facts: Facts, request: Request) -> Iterator[str]:
    """Operations certainly before this request's that nobody can have accepted yet: calls, then others, in written order."""
    yield from facts.missing(request.op, request.at)
    ancestors = facts.ancestors[request.op]
    yield from (
        leaf.id for leaf in facts.history.plan.leaves() if leaf.id in ancestors and _is_barred(facts, leaf, request.at)
    )
    for wait in facts.history.plan.waits():
        bound = wait.timeout_ns is None and wait.id in facts.ancestors[request.op]
        if bound and not _signalled(facts, wait.signal, request.at):
            yield wait.id


def _is_barred(facts: Facts, leaf: Leaf, index: int) -> bool:
    """Is this an upload that was not committed by event `index`, a required check without a word, or the run's own failure?"""
    match leaf:
        case Artifact(id=op):
            return not any(one.applied_at is not None and one.applied_at < index for one in _commits(facts, op))
        case Check(id=op, required=True):
            return not any(one.at < index for one in verdicts(facts, op))
        case Fail():
            return True
        case _:
            return False


def _commits(facts: Facts, op: str) -> Iterator[Request]:
    return (one for one in facts.dispatches(op) if one.event.part is None)


def _signalled(facts: Facts, name: str, index: int) -> bool:
    return any(ask.event.name == name and ask.at < index for ask in facts.asked("signal"))


def _ending(facts: Facts, op: str) -> str:
    match facts.history.plan.leaf(op):
        case Wait(signal=signal):
            return f"been sent its signal {signal!r}"
        case Artifact():
            return "been committed"
        case Fail():
            return "ended well, which a failure never does"
        case _:
            return "been answered"


@obligation(
    "DUR-9",
    kind="safety",
    profile="Durable",
    promise="Two operations with equal parameters are two operations, each with an effect and a key of its own; one "
    "operation sent twice is one.",
    tested_by="equal steps side by side and one after the other",
    anomaly=("lost effect", "key drift"),
    minimum=1,
    causes=(
        "the key, or the memo's address, is a digest of the parameters without the operation's id",
        "equal steps are told apart by the order in which they happen to arrive",
    ),
    learnt_from=("F16", "F31", "F55"),
)
def equal_operations_stay_apart(history: History) -> Finding:
    facts = look(history)
    done = next((seen for seen in facts.statuses if seen.status.state == "done"), None)
    if done is None:
        return Finding()
    groups = [group for group in _equals(facts) if all(facts.is_settled(done, call.id) for call in group)]
    found = [violation for group in groups for violation in _merged(facts, group, done)]
    return Finding(len(groups), tuple(found))


def _equals(facts: Facts) -> list[list[Requester]]:
    groups: dict[tuple[str, str], list[Requester]] = {}
    for call in facts.calls.values():
        groups.setdefault((call.service, json.dumps(dict(call.params), sort_keys=True, default=str)), []).append(call)
    return [group for group in groups.values() if len(group) > 1]


def _merged(facts: Facts, group: list[Requester], done: Seen) -> Iterator[Violation]:
    owners: dict[str, Request] = {}
    for call in group:
        dispatches = [request for request in facts.dispatches(call.id) if request.at < done.answered]
        if not any(request.applied_at is not None and request.applied_at < done.answered for request in dispatches):
            sentence = (
                f"The run was shown done, but {call.id!r} had no effect of its own: an equal operation stood in for it."
            )
            evidence = (*(request.at for request in dispatches), done.answered)
            yield blame("lost effect", sentence, evidence, call.id)
        for request in dispatches:
            key = request.event.key
            if key is None or SEMANTICS[call.service] != "keyed":
                continue
            owner = owners.setdefault(key, request)
            if owner.op != call.id:
                sentence = f"The equal operations {owner.op!r} and {call.id!r} were sent with one and the same key."
                yield blame("key drift", sentence, (owner.at, request.at), call.id)
                break


@obligation(
    "DUR-12",
    kind="safety",
    profile="Durable",
    promise="A run that ended may keep an unresolved operation: it stays shown as unresolved, and neither it nor the run is "
    "relabelled failed for it.",
    tested_by="reply lost on an effect that can be neither looked up nor repeated, with statuses after the end",
    anomaly="false certainty",
    minimum=1,
    causes=(
        "unknown is stored as an error like any other",
        "a sweep at the end of a run closes whatever is still open as failed",
    ),
    learnt_from=("F14", "F49"),
)
def unresolved_stays_unresolved(history: History) -> Finding:
    facts = look(history)
    ends = [seen for seen in facts.statuses if seen.status.state in TERMINAL]
    kept: dict[str, Seen] = {}
    found: dict[str, Violation] = {}
    for seen in ends:
        for op in seen.status.operations:
            if op.state in IN_DOUBT and op.id in facts.calls:
                kept.setdefault(op.id, seen)
        for op_id, before in kept.items():
            if violation := _relabelled(facts, op_id, before, seen):
                found.setdefault(op_id, violation)
    return Finding(len(kept), tuple(found.values()))


def _relabelled(facts: Facts, op: str, before: Seen, now: Seen) -> Violation | None:
    if other_failure(facts, now.answered) or may_be_escalated(facts, now.answered):
        return None  # something really was refused, killed its workers, or the like, and may have failed the run
    shown = now.operation(op)
    evidence = tuple(dict.fromkeys((before.answered, now.asked, now.answered)))
    if shown is not None and shown.state == "failed" and before.answered < now.asked:
        sentence = f"The run ended with {op!r} unresolved; a status asked later says that {op!r} failed."
        return blame("false certainty", sentence, evidence, op)
    if now.status.state == "failed":
        sentence = f"The run is shown failed on account of {op!r}, of which nobody knows whether it took effect."
        return blame("false certainty", sentence, evidence, op)
    return None

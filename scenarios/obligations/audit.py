"""JRN-8 9: a trail that only grows and says who did what, and control that is never taken for a result."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator

import attrs

from scenarios.bodies import AuditEntry, Journal
from scenarios.chronicle import chains, is_own
from scenarios.consent import bars
from scenarios.history import History
from scenarios.index import Facts, look
from scenarios.obligations.registry import blame, obligation
from scenarios.observed import Command, Said, Seen
from scenarios.plan import Approve, Artifact, Call, Check, Compensate, Model, Requester, Wait
from scenarios.verdict import Finding, Violation, short

_NAMED = ("actor", "authority", "action", "target")


@obligation(
    "JRN-8",
    kind="safety",
    profile="Durable",
    level="SHOULD",
    promise="The audit trail only grows; each line names actor, authority, action, target and time, what was accepted and "
    "decided has one, and the states that were shown are those that the journal went through.",
    tested_by="the trail read again and again between crashes and decisions, and held against every status",
    anomaly=("amnesia", "torn view"),
    minimum=4,
    causes=(
        "there is one line for each operation, which is updated",
        "a line says what happened, and not who asked for it",
        "the trail is made from the state when it is asked for",
    ),
    learnt_from=(),
)
def audit_trail_only_grows(history: History) -> Finding:
    facts = look(history)
    trails = [said for said in facts.journals if said.body.audit]
    forgets = [at for at, action, _ in facts.fired if action == "forget"]
    kept = [
        (before, after)
        for before, after in itertools.pairwise(trails)
        if not any(before.asked < at < after.answered for at in forgets)
    ]
    found = [
        *(wrong for before, after in kept for wrong in _rewritten(before, after)),
        *(wrong for said in trails for wrong in _incomplete(said)),
    ]
    decided = _decisions(facts, trails[-1].asked) if trails and not forgets else ()
    if trails and not forgets:
        found += [*_unnamed_decisions(decided, trails[-1], facts), *_unnamed_effects(facts, trails[-1])]
    if facts.journals:
        found += _never_logged(facts, facts.journals[-1])
    return Finding(len(kept) + len(decided), _first_of_each(found))


def _first_of_each(found: list[Violation]) -> tuple[Violation, ...]:
    return tuple({(one.anomaly, one.operation): one for one in reversed(found)}.values())


def _rewritten(before: Said[Journal], after: Said[Journal]) -> Iterator[Violation]:
    """Lines that were there, and are another or none now."""
    lines = {line.sequence: line for line in after.body.audit}
    for line in before.body.audit:
        now = lines.get(line.sequence)
        if now == line:
            continue
        what = "is gone" if now is None else "is another one now"
        anomaly = "amnesia" if now is None else "torn view"
        sentence = f"Line {line.sequence} of the audit trail ({line.action} {line.target!r} by {line.actor!r}) {what}."
        yield blame(anomaly, sentence, (before.answered, after.asked, after.answered), line.target or None)


def _incomplete(said: Said[Journal]) -> Iterator[Violation]:
    """Lines that do not name everything, and numbers that two lines share."""
    seen: set[int] = set()
    for line in said.body.audit:
        missing = [name for name in _NAMED if not getattr(line, name).strip()] + (["time"] if line.at_ns <= 0 else [])
        if missing:
            sentence = f"Line {line.sequence} of the audit trail has no {' and no '.join(missing)}: {_told(line)}."
            yield blame("amnesia", sentence, (said.asked, said.answered), line.target or None)
        if line.sequence in seen:
            sentence = f"Two lines of the audit trail have the number {line.sequence}."
            yield blame("torn view", sentence, (said.asked, said.answered))
        seen.add(line.sequence)


def _told(line: AuditEntry) -> str:
    return ", ".join(f"{name} {value!r}" for name, value in attrs.asdict(line).items() if name in _NAMED)


def _decisions(facts: Facts, before: int) -> tuple[Command, ...]:
    """Decisions that had been acknowledged before event `before`."""
    return tuple(one for one in facts.decisions() if one.ok_at is not None and one.ok_at < before)


def _unnamed_decisions(decided: tuple[Command, ...], said: Said[Journal], facts: Facts) -> Iterator[Violation]:
    for one in decided:
        leaf = facts.history.plan.leaf(one.about or "")
        targets = {one.about, leaf.of if isinstance(leaf, Approve) else None}
        if not any(line.actor == one.actor and _names(line, targets) for line in said.body.audit):
            sentence = f"{one.actor!r} decided about {one.about!r}, and no line of the audit trail says so."
            yield blame("amnesia", sentence, (one.ok_at or one.asked_at, said.asked, said.answered), one.about)


def _names(line: AuditEntry, targets: Collection[str | None]) -> bool:
    """Is this line about one of these operations, by its id alone or behind that of its run, as in `r1:a`?"""
    return line.target in targets or line.target.rpartition(":")[2] in targets


def _unnamed_effects(facts: Facts, said: Said[Journal]) -> Iterator[Violation]:
    """Calls that were accepted before the trail was read, and are in no line of it."""
    for op in facts.calls:
        at = facts.accepted_at.get(op)
        if at is None or at >= said.asked or not is_own(op) or not facts.dispatches(op):
            continue
        if not any(_names(line, {op}) for line in said.body.audit):
            sentence = f"{op!r} was carried out and accepted, and the audit trail does not say by whom."
            yield blame("amnesia", sentence, (at, said.asked, said.answered), op)


def _never_logged(facts: Facts, said: Said[Journal]) -> Iterator[Violation]:
    """States that a status showed, and that the journal's transitions do not lead through in this order."""
    shown = _one_after_the_other(facts, said.asked)
    for operation, rows in chains(said.body).items():
        if facts.is_revocable(operation):
            continue
        path = ["planned", *(row.to_state for row in rows)]
        for seen in shown:
            status = seen.operation(operation)
            if status is None:
                continue
            if status.state not in path:
                sentence = f"A status showed {operation!r} {status.state}, and its journal never led there from what was shown."
                yield blame("torn view", sentence, (seen.asked, seen.answered, said.asked, said.answered), operation)
                break
            path = path[path.index(status.state) :]


def _one_after_the_other(facts: Facts, before: int) -> list[Seen]:
    """Statuses answered before event `before`, each asked when the one before it had been answered."""
    found: list[Seen] = []
    for seen in facts.statuses:
        if seen.answered < before and (not found or seen.asked > found[-1].answered):
            found.append(seen)
    return found


@obligation(
    "JRN-9",
    kind="safety",
    profile="Durable",
    promise="A stop or a pause is no step's result: what it meets under way is accepted with what its receiver or its signal "
    "said, failed when it was refused, and nothing else.",
    tested_by="cancel and pause while calls, waits and timers are on, then going on and a look at what came of them",
    anomaly="false certainty",
    minimum=3,
    causes=(
        "cancellation is an exception, and the step's memo keeps exceptions as results",
        "everything that is open is closed as failed when the run is stopped",
        "what a wait is woken with is its answer, also when it is a stop that wakes it",
    ),
    learnt_from=("F01", "F07"),
)
def control_is_no_result(history: History) -> Finding:
    facts = look(history)
    stop = next((one for one in facts.commands if one.verb in {"cancel", "pause"} and one.ok_at is not None), None)
    if stop is None or stop.ok_at is None or stop.disposition == "too-late":
        return Finding()
    after = [seen for seen in facts.statuses if seen.answered > stop.asked_at]
    tells = any(seen.answered > stop.ok_at and (seen.status.operations or seen.status.result) for seen in after)
    met = _met(facts, stop.asked_at) if tells else frozenset[str]()
    found: dict[str, Violation] = {}
    for seen in after:
        for op, wrong in _made_up(facts, seen, stop):
            found.setdefault(op, wrong)
    return Finding(len(met), tuple(found.values()))


def _met(facts: Facts, index: int) -> frozenset[str]:
    """What was under way at event `index`: calls without an answer, and what the run was waiting for."""
    sent = (one for one in facts.sent if one.at < index and is_own(one.op))
    calls = {one.op for one in sent if not any(o.op == one.op and o.settled_before(index) for o in facts.sent)}
    shown = [seen.status for seen in facts.statuses if seen.answered < index]
    waits = {shown[-1].on} if shown and shown[-1].state == "waiting" and shown[-1].on is not None else set()
    return frozenset(calls | {f"on {name}" for name in waits})


def _made_up(facts: Facts, seen: Seen, stop: Command) -> Iterator[tuple[str, Violation]]:
    """Operations that a status shows ended in a way that nobody but the stop can have brought about."""
    shown = {op.id: op for op in seen.status.operations}
    for op, nonce in seen.accepted().items():
        if is_own(op) and not _was_given(facts, op, nonce, seen.answered):
            with_ = f"with {short(nonce)!r}, which nobody had given" if nonce else "though nobody had answered it"
            yield op, _by_control(f"{op!r} is shown accepted {with_}", seen, stop, op)
    for op, call in facts.calls.items():
        if op in shown and shown[op].state == "failed" and is_own(op) and _can_only_be_refused(facts, call, seen):
            yield op, _by_control(f"{op!r} is shown failed, though nobody had refused it", seen, stop, op)


def _was_given(facts: Facts, op: str, nonce: str | None, before: int) -> bool:
    """Is an accepted answer one that a receiver, a signal or a notice had brought by event `before`?

    What a harness decides by itself (a timer, a wait that timed out, a drawn value, a child) is given by nobody.
    """
    leaf = facts.history.plan.leaf(op)
    if isinstance(leaf, Wait):
        names = {one.nonce for one in facts.signals if one.name == leaf.signal and one.asked_at < before}
        return nonce in names or (nonce is None and (leaf.timeout_ns is not None or bool(names)))
    if isinstance(leaf, Approve):
        decided = {one.nonce for one in facts.decisions(op) if one.asked_at < before}
        return nonce in decided or (nonce is None and bool(decided))
    if not isinstance(leaf, Call | Model | Compensate | Artifact | Check):
        return True
    replies = {one.reply.nonce for one in facts.sent if one.op == op and one.reply and (one.replied_at or 0) < before}
    given = {one for one in replies if one} | {one.nonce for one in facts.notices(op) if one.nonce}
    return bool(given) or _was_refused_and_tolerated(facts, op, before) if nonce is None else nonce in given


def _was_refused_and_tolerated(facts: Facts, op: str, before: int) -> bool:
    """Had it come to a definite refusal by event `before`, its receiver's or one of its worker's own tools, that counts?"""
    call = facts.calls.get(op)
    is_unsendable = isinstance(call, Call) and "poison" in call.params
    return facts.is_tolerated(op) and (is_unsendable or facts.refusal_before(before, op))


def _can_only_be_refused(facts: Facts, call: Requester, seen: Seen) -> bool:
    """Is a refusal the only thing that can have failed this call, and was there none by the time of this status?

    Whoever decides that it may not be done refuses it too.
    """
    plan = facts.history.plan
    gates = [one for one in plan.approvals() if one.of == call.id]
    denied = any(
        one.asked_at < seen.answered for gate in gates for one in facts.decisions(gate.id) if one.decision == "deny"
    )
    if denied or any(bar.at <= seen.answered for gate in gates for bar in bars(facts, gate)):
        return False
    limited = plan.allowance is not None or plan.deadline_ns is not None or facts.code_changed()
    if not isinstance(call, Call) or limited or call.tries is not None or call.elapsed_ns is not None:
        return False
    sent = [one for one in facts.sent if one.op == call.id and one.at < seen.answered]
    return "poison" not in call.params and not any(one.idle for one in sent)


def _by_control(what: str, seen: Seen, stop: Command, op: str) -> Violation:
    sentence = f"{what}; it was under way, or still to come, when {stop.verb!r} was acknowledged."
    return blame(
        "false certainty", sentence, (stop.asked_at, stop.ok_at or stop.asked_at, seen.asked, seen.answered), op
    )

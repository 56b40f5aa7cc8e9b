"""DUR-1 2 3 5: what was acknowledged or accepted stays so, and is used and not redone."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

from scenarios.history import ACCEPTED, TERMINAL, History, Received, Replied
from scenarios.index import Facts, look
from scenarios.joining import of_kind
from scenarios.lineage import fork, given
from scenarios.obligations.registry import blame, firsts, obligation
from scenarios.obligations.scheduling import has_answers
from scenarios.observed import Request, Seen
from scenarios.outlived import went_on
from scenarios.plan import Artifact, Call, Child, Choice, Model, Nondet, Sleep, Wait
from scenarios.verdict import Finding, Violation, short


@obligation(
    "DUR-1",
    kind="safety",
    profile="Durable",
    promise="A task whose start was acknowledged is still there, under the same id, after any later crash.",
    tested_by="kill or power loss right after the acknowledgement, and at any time later",
    anomaly="amnesia",
    minimum=3,
    causes=(
        "the start is acknowledged before the transaction that records it has committed",
        "the database does not sync its log (journal off, synchronous off), or a new file's directory entry was never synced",
        "recovery lists only the tasks of its own worker name, and skips the rest for ever",
    ),
    learnt_from=("F02", "F34", "F39"),
)
def acknowledged_task_survives(history: History) -> Finding:
    facts = look(history)
    start = facts.start_ok()
    if start is None or start.answered_at is None:
        return Finding()
    ok = start.answered_at
    tested = [death for death in facts.deaths if death > ok and facts.seen_after(death)]
    for seen in facts.seen_after(ok):
        gone = seen.status.state == "unknown" and not facts.struck("wipe", seen.answered)
        if gone and facts.death_between(ok, seen.asked):
            death = max(at for at in facts.deaths if at < seen.asked)
            sentence = (
                f"The start of run {history.run!r} was acknowledged, then a process died; a status asked after that "
                "says that there is no such run."
            )
            return Finding(len(tested), (blame("amnesia", sentence, (ok, death, seen.asked, seen.answered)),))
    return Finding(len(tested))


@obligation(
    "DUR-2",
    kind="safety",
    profile="Durable",
    promise="A result is shown as accepted only once it is durable: what was shown once never vanishes, never changes, "
    "and is an answer that somebody really gave.",
    tested_by="kill around the commit of a result, with statuses asked before and after",
    anomaly=("false certainty", "torn view"),
    minimum=3,
    causes=(
        "status is read from memory that runs ahead of the database",
        "the result row and the operation's state are written in two transactions",
        "a checkpoint is written by a background thread that the status does not wait for",
    ),
    learnt_from=("F09", "F10", "F42"),
)
def shown_result_is_durable(history: History) -> Finding:
    facts = look(history)
    tested = [
        death
        for death in facts.deaths
        if _may_have_shown(facts, death) and any(seen.accepted() for seen in facts.seen_after(death))
    ]
    return Finding(len(tested), firsts((*taken_back(facts), *_made_up(facts))))


def _may_have_shown(facts: Facts, death: int) -> bool:
    """Was a result shown before that death, or could one have been: had a status listed operations once there was an answer?

    What nobody had been shown yet cannot vanish: a worker that is killed while it calls has only its memory to lose.
    """
    seen_before = [seen for seen in facts.statuses if seen.answered < death]
    return any(seen.accepted() or _could_tell(facts, seen) for seen in seen_before)


def _could_tell(facts: Facts, seen: Seen) -> bool:
    listed = bool(seen.status.operations)
    return listed and any(request.settled_before(seen.asked) for request in facts.requests)


def taken_back(facts: Facts) -> Iterator[Violation]:
    """Results shown once and gone, or other, in a status asked later."""
    first: dict[str, tuple[Seen, str | None]] = {}
    for seen in facts.statuses:
        for op, (before, nonce) in first.items():
            if before.answered < seen.asked and (violation := _contradiction(facts, op, before, nonce, seen)):
                yield violation
        for op, shown in seen.accepted().items():
            known = first.get(op)
            if known is None or (known[1] is None and shown is not None):
                first[op] = (seen, shown)


def _contradiction(facts: Facts, op: str, before: Seen, nonce: str | None, now: Seen) -> Violation | None:
    if facts.is_revocable(op) or facts.struck("wipe", now.answered):
        return None
    evidence = (before.answered, now.asked, now.answered)
    if (how := _is_gone(facts, op, before, now)) is not None:
        sentence = f"{op!r} was shown as accepted; a status asked later {how}."
        return blame("false certainty", sentence, evidence, op)
    shown = now.accepted().get(op)
    if nonce is not None and shown is not None and shown != nonce:
        sentence = (
            f"{op!r} was shown as accepted with answer {short(nonce)}; a status asked later shows {short(shown)} in its "
            "place."
        )
        return blame("torn view", sentence, evidence, op)
    return None


def _is_gone(facts: Facts, op: str, before: Seen, now: Seen) -> str | None:
    """How a status fails to show what an earlier one showed as accepted; None when it does not fail."""
    if now.status.state == "unknown":
        return "knows no such run"
    if before.status.state == "done" and now.status.state != "done":
        return f"says that the run, shown done before, is {now.status.state}"
    if op in (now.status.result or {}):
        return None
    listed = now.operation(op)
    if listed is not None:
        return None if listed.state in ACCEPTED else f"says that it is {listed.state}"
    closed = now.status.state in TERMINAL and now.status.state != "done"
    if facts.history.declared.shows_operations and now.status.operations and not closed:
        return "no longer lists it"
    return None


def _made_up(facts: Facts) -> Iterator[Violation]:
    """Results shown as accepted that nobody had given by then: no service's answer and no command has that nonce.

    What a harness draws or decides itself (a value, the end of a timer or of a child, the way of a branch) nobody gives it.
    """
    given: dict[str, int] = {}
    for index, event in of_kind(facts.history, Replied):
        if event.delivery == "sent" and event.nonce is not None:
            given.setdefault(event.nonce, index)
    for command in facts.commands:
        if command.nonce is not None:
            given[command.nonce] = min(given.get(command.nonce, command.asked_at), command.asked_at)
    drawn = {leaf.id for leaf in facts.history.plan.leaves() if isinstance(leaf, Nondet | Sleep | Child | Choice)}
    for seen in facts.statuses:
        for op, nonce in seen.accepted().items():
            known = op in facts.ancestors and op not in drawn and nonce is not None
            if known and nonce is not None and given.get(nonce, seen.answered) >= seen.answered:
                sentence = (
                    f"{op!r} is shown as accepted with answer {short(nonce)}, which nobody had been given by then."
                )
                yield blame("false certainty", sentence, (seen.asked, seen.answered), op)


@obligation(
    "DUR-3",
    kind="safety",
    profile="Durable",
    promise="An accepted result is reused and never worked out again, and everything downstream carries that one result and "
    "no other.",
    tested_by="kill after an acceptance, with services that answer differently every time",
    anomaly=("amnesia", "forked lineage"),
    minimum=3,
    causes=(
        "results are kept in memory or written only when the whole run ends",
        "a step's result is committed after the next step was dispatched",
        "recovery restarts the flow, or a whole group of parallel steps, instead of its unfinished parts",
        "what a step hands on is put together anew by position or by type, and not by whose answer it is",
    ),
    learnt_from=("F08", "F09", "F12", "F56"),
)
def accepted_result_is_reused(history: History) -> Finding:
    facts = look(history)
    tested = [
        death
        for death in facts.deaths
        if any(facts.accepted_at.get(op, death) < death for op in facts.calls)
        and any(up > death for up in facts.started.values())
        and _is_kept_through(facts, death)
    ]
    again = (violation for op in facts.calls if (violation := recomputed(facts, op)))
    forked = (violation for op in facts.ancestors if (violation := _forked(facts, op)))
    return Finding(len(tested), (*again, *forked, *_not_handed_on(facts)))


def _is_kept_through(facts: Facts, death: int) -> bool:
    """Was there anything to reuse after a death: did the run go on, or is an accepted result shown?

    A run that is unknown or stands still works nothing again, whatever it has forgotten.
    """
    return went_on(facts, death) or any(seen.accepted() for seen in facts.seen_after(death))


def recomputed(facts: Facts, op: str) -> Violation | None:
    """A request for `op` that certainly left its worker after `op` was accepted.

    Certain when the worker came up after that, or when nothing whatever could have made it repeat an answered request
    that was still under way.
    """
    known = facts.accepted_at.get(op)
    if known is None:
        return None
    needless = {later.at for _, later in facts.unexplained(op)}
    for request in facts.dispatches(op):
        born = facts.started.get(request.event.incarnation, -1)
        if request.at > known and not facts.late(request) and (born > known or request.at in needless):
            sentence = (
                f"{op!r} had been accepted ({_how_known(facts, known)}), yet worker {request.event.incarnation} worked it "
                "again."
            )
            born_at = (born,) if born > known else ()
            return blame("amnesia", sentence, (known, *born_at, request.at), op)
    return None


def _how_known(facts: Facts, index: int) -> str:
    event = facts.history.events[index]
    return f"{event.op!r} was dispatched after it" if isinstance(event, Received) else "a status had shown it"


def _forked(facts: Facts, op: str) -> Violation | None:
    if (split := fork(facts, op)) is None:
        return None
    one, other = split
    first, second = f"{short(one.nonce)} was {one.where} first", f"{short(other.nonce)} was {other.where}"
    sentence = f"Two answers of {op!r} were used: {first}, then {second}."
    return blame("forked lineage", sentence, (one.at, other.at), op)


def _not_handed_on(facts: Facts) -> Iterator[Violation]:
    """The first request of each operation without an answer that its plan has it hand on, or with one that nobody had given."""
    known = given(facts)
    named = {leaf.id: leaf.carries for leaf in facts.history.plan.leaves() if isinstance(leaf, Call | Model | Artifact)}
    for op, names in named.items():
        told = [name for name in names if _has_answers(facts, name)]
        sent = [(request, name) for request in facts.dispatches(op) for name in told if _carries_out(request)]
        for request, name in sent:
            nonce = request.carries.get(name)
            if nonce is None and name in facts.ancestors[op]:
                sentence = f"{op!r} was sent without the answer of {name!r}, which the plan has it hand on."
                yield blame("amnesia", sentence, (request.at,), op)
                break
            if nonce is not None and known.get(name, {}).get(nonce, request.at) >= request.at:
                sentence = (
                    f"{op!r} was sent with {short(nonce)} as the answer of {name!r}, which nobody had given to that."
                )
                yield blame("forked lineage", sentence, (request.at,), op)
                break


def _carries_out(request: Request) -> bool:
    """Was it certainly sent to have its operation carried out? To remove parts, or to cancel long work, hands on nothing."""
    if request.event.service not in _TAKE_BACK:
        return True
    return request.event.part is not None or request.applied_at is not None or request.answer is not None


#: Services that can be asked to take back what was begun there.
_TAKE_BACK = frozenset({"store", "operation"})


def _has_answers(facts: Facts, name: str) -> bool:
    """Is it accepted with an answer, whatever happens?"""
    leaf = facts.history.plan.leaf(name)
    certain = isinstance(leaf, Model | Artifact) or (isinstance(leaf, Call) and not leaf.tolerate)
    return certain or (isinstance(leaf, Wait) and leaf.timeout_ns is None)


@obligation(
    "DUR-5",
    kind="safety",
    profile="Durable",
    promise="Submitting the same task again, because the acknowledgement was lost or several submit at once, makes no second "
    "task: all callers get the one answer.",
    tested_by="acknowledgement of the start thrown away and start asked again; start repeated while running and at the end",
    anomaly=("duplicate effect", "torn view"),
    minimum=1,
    causes=(
        "the task id is checked and inserted in two statements",
        "the id is made by the server, so that a repeated submission is a new task",
        "a repeated submission re-enters the run without asking whether somebody is at it already",
    ),
    learnt_from=("F15", "F22", "F48"),
)
def same_task_submitted_again_is_one_task(history: History) -> Finding:
    facts = look(history)
    starts = facts.asked("start")
    repeats = [start for start in starts[1:] if start.outcome == "ok"]
    if len(starts) < 2:
        return Finding()
    second = starts[1].at
    found = (
        *_answers_disagree(facts),
        *_results_differ(facts, second),
        *_attempts_differ(facts, second),
        *_second_work(facts, second),
    )
    return Finding(len(repeats) if has_answers(facts) else 0, found)


def _answers_disagree(facts: Facts) -> Iterator[Violation]:
    """A start refused after an earlier one was acknowledged, with nothing in between to excuse it."""
    ok = facts.start_ok()
    if ok is None or ok.answered_at is None:
        return
    for start in facts.asked("start"):
        refused = start.at > ok.answered_at and start.outcome == "error" and start.answered_at is not None
        if refused and start.answered_at is not None and not facts.halted(ok.at, start.answered_at):
            sentence = (
                f"The start of run {facts.history.run!r} was acknowledged, and the same start asked again was refused."
            )
            yield blame("torn view", sentence, (ok.at, ok.answered_at, start.at, start.answered_at))
            return


def _results_differ(facts: Facts, second: int) -> Iterator[Violation]:
    done = [seen for seen in facts.statuses if seen.status.state == "done" and seen.status.result is not None]
    for seen in done[1:]:
        if seen.answered > second and _differs(done[0].status.result, seen.status.result):
            sentence = (
                f"Run {facts.history.run!r} was started twice with one id and was shown with two different results."
            )
            yield blame("duplicate effect", sentence, (second, done[0].answered, seen.answered))
            return


def _differs(one: Mapping[str, str] | None, other: Mapping[str, str] | None) -> bool:
    return dict(one or {}) != dict(other or {})


def _attempts_differ(facts: Facts, second: int) -> Iterator[Violation]:
    if not facts.history.declared.shows_attempts:
        return
    shown = [seen for seen in facts.statuses if seen.status.attempt is not None]
    for before, after in itertools.pairwise(shown):
        if after.answered < second or before.status.attempt == after.status.attempt:
            continue
        if not facts.death_between(before.asked, after.answered) and not _pursued_anew(facts, after.answered):
            sentence = (
                f"Run {facts.history.run!r} was started twice with one id; its attempt was {before.status.attempt} and "
                f"became {after.status.attempt}."
            )
            yield blame("duplicate effect", sentence, (before.answered, second, after.answered))
            return


def _pursued_anew(facts: Facts, index: int) -> bool:
    """Had the run ended without success before `index`? Then a new pursuit, with a new attempt id, is right."""
    return any(
        seen.answered < index and seen.status.state in TERMINAL and seen.status.state != "done"
        for seen in facts.statuses
    )


def _second_work(facts: Facts, since: int) -> Iterator[Violation]:
    """Answered requests repeated for no reason after event `since`."""
    for op in facts.calls:
        pair = next(((one, two) for one, two in facts.unexplained(op) if two.at > since), None)
        if pair:
            yield _worked_twice(facts, since, *pair)


def _worked_twice(facts: Facts, since: int, one: Request, two: Request) -> Violation:
    sentence = (
        f"Run {facts.history.run!r} was started again with the same id, and {one.op!r} was worked a second time though its "
        "first request was answered and nothing had gone wrong."
    )
    return blame("duplicate effect", sentence, (since, one.at, two.at), one.op)

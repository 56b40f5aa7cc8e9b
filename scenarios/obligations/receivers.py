"""EFF-7 9 10: what receivers say beside an answer, and asking them what became of a request."""

from __future__ import annotations

from collections.abc import Iterator

from scenarios.endings import may_be_escalated
from scenarios.history import ACCEPTED, IN_DOUBT, TERMINAL, History
from scenarios.index import Facts, look
from scenarios.obligations.registry import blame, obligation
from scenarios.observed import Command, Request, Seen
from scenarios.plan import Call, Requester
from scenarios.reasons import other_failure
from scenarios.repetition import answer_before, is_calm, repeats_of_refusals, timely
from scenarios.terms import ON_ITS_WAY_NS
from scenarios.verdict import Finding, Violation

#: More questions than this, all of them unanswered, are a search without bounds.
LOOKUPS_MAX = 100
#: So many since faults have stopped, and the last of them just before the end: a search that is under way, and goes on.
_MANY_LOOKUPS = 10


@obligation(
    "EFF-7",
    kind="safety",
    profile="Effects",
    promise="A receiver that is still at it, one that has failed for good, and one that has forgotten the key are told apart: "
    "asked again later, taken at its word, and not asked again.",
    tested_by="answers later than their caller waits, refusals whose reply is lost, and outages longer than keys live",
    anomaly=("false certainty", "overspend", "amnesia", "duplicate effect"),
    minimum=3,
    causes=(
        "a conflict over a key is handled like any other refusal, or like an answer",
        "every failure of a repeat is tried again, also the one that the receiver has saved",
        "the age of a key is not known when a request is repeated, or begins anew with every start",
    ),
    learnt_from=("F54",),
)
def conflict_failure_and_expiry_are_told_apart(history: History) -> Finding:
    facts = look(history)
    exercised = 0
    found: list[Violation] = []
    for call in facts.of("keyed"):
        for check in (_conflicts, _saved_failures, _expired_keys):
            tested, violation = check(facts, call)
            exercised += tested
            found += [violation] if violation is not None else []
    return Finding(exercised, tuple(found))


def _conflicts(facts: Facts, call: Requester) -> tuple[int, Violation | None]:
    """Replies that the receiver is at it already, and what was made of them."""
    said = [
        one
        for one in facts.dispatches(call.id)
        if one.reply is not None and (one.reply.kind, one.reply.delivery) == ("busy", "sent")
    ]
    if not said:
        return 0, None
    first, at = said[0], facts.accepted_at.get(call.id)
    if at is not None and first.at < at and not facts.is_tolerated(call.id) and not answer_before(facts, call.id, at):
        sentence = f"{call.service} said that {call.id!r} is still under way; that was taken for its answer."
        return len(said), blame("false certainty", sentence, (first.at, at), call.id)
    return len(said), next(_failed_of_conflict(facts, call, first), None)


def _failed_of_conflict(facts: Facts, call: Requester, first: Request) -> Iterator[Violation]:
    if first.replied_at is None or (isinstance(call, Call) and (call.tries is not None or call.elapsed_ns is not None)):
        return
    for seen in facts.seen_after(first.replied_at):
        shown = seen.operation(call.id)
        is_failed = shown is not None and shown.state == "failed"
        if is_failed and not facts.refusal_before(seen.answered, call.id) and not _escalated(facts, seen.answered):
            sentence = f"{call.service} said that {call.id!r} is still under way; it is shown as failed."
            yield blame("false certainty", sentence, (first.at, seen.asked, seen.answered), call.id)


def _escalated(facts: Facts, index: int) -> bool:
    """Was there, by event `index`, a reason to give an operation up that no receiver has to do with?"""
    return may_be_escalated(facts, index) or other_failure(facts, index)


def _saved_failures(facts: Facts, call: Requester) -> tuple[int, Violation | None]:
    """Failures that were handed out again under their key, and what was made of them."""
    said = [one for one in timely(facts, call.id) if _is_saved_failure(one)]
    if not said:
        return 0, None
    for earlier, later in repeats_of_refusals(facts, call.id):
        if _is_saved_failure(earlier):
            sentence = (
                f"{call.service} has saved that {call.id!r} failed, and said so; it was asked again all the same."
            )
            return len(said), blame("overspend", sentence, (earlier.at, later.at), call.id)
    return len(said), next(_otherwise_shown(facts, call, said[-1]), None)


def _is_saved_failure(request: Request) -> bool:
    return request.refused and request.reply is not None and request.reply.kind == "saved"


def _otherwise_shown(facts: Facts, call: Requester, last: Request) -> Iterator[Violation]:
    """Statuses that show the failed call as a success, or that end with nobody knowing."""
    if last.replied_at is None:
        return
    for seen in facts.seen_after(last.replied_at):
        shown = seen.operation(call.id)
        if shown is None:
            continue
        evidence = (last.at, seen.asked, seen.answered)
        is_refusal = shown.nonce is None and facts.is_tolerated(call.id)  # and that is what was accepted
        if shown.state in ACCEPTED and not is_refusal and not answer_before(facts, call.id, seen.answered):
            sentence = f"{call.service} has saved that {call.id!r} failed; it is shown as {shown.state}."
            yield blame("false certainty", sentence, evidence, call.id)
        elif _is_forgotten(facts, last, seen) and shown.state in IN_DOUBT:
            sentence = (
                f"{call.service} said that {call.id!r} has failed for good; the run has ended with it {shown.state}."
            )
            yield blame("amnesia", sentence, evidence, call.id)


def _is_forgotten(facts: Facts, last: Request, seen: Seen) -> bool:
    """Had the run ended, with nothing that could have kept the last word on this call from it?"""
    is_last = last == facts.dispatches(last.op)[-1]
    return (
        seen.status.state in TERMINAL
        and is_last
        and facts.is_prompt(last)
        and not facts.halted(last.at, seen.asked)
        and facts.cancelled_at() is None
    )


def _expired_keys(facts: Facts, call: Requester) -> tuple[int, Violation | None]:
    """Was a request of unknown outcome repeated after its key had been forgotten? One whose key did expire is a test."""
    lifetime_ns = facts.history.declared.key_lifetime_ns
    sent = timely(facts, call.id)
    if lifetime_ns is None or not sent or facts.struck("jump"):
        return 0, None
    if not facts.uncertain(sent[0]) or not facts.history.events:
        return 0, None
    for later in sent[1:]:
        earlier = _first_in_doubt(facts, sent, later)
        is_open = facts.accepted_at.get(call.id, later.at) >= later.at and facts.uncertain(sent[0], later.at)
        apart_ns = later.event.at_ns - earlier.event.at_ns
        margin_ns = ON_ITS_WAY_NS + facts.lost_ns(earlier.event.at_ns, later.event.at_ns)
        if is_open and apart_ns >= lifetime_ns + margin_ns and not facts.held_up(later.at):
            sentence = (
                f"What became of {call.id!r} was unknown, and {call.service} had forgotten its key, which it keeps for "
                f"{lifetime_ns / 1e9:g} s; it was sent again."
            )
            return 1, blame("duplicate effect", sentence, (earlier.at, later.at), call.id)
    over_ns = sent[0].event.at_ns + lifetime_ns
    settled = any(one.settled_before(len(facts.history.events)) for one in sent if one.event.at_ns < over_ns)
    is_over = facts.at_ns(len(facts.history.events) - 1) >= over_ns
    return int(is_over and not settled and call.id not in facts.accepted_at), None


def _first_in_doubt(facts: Facts, sent: tuple[Request, ...], later: Request) -> Request:
    """The first use of the key that may have made the receiver save it, since it last said that it knows the key."""
    before = [one for one in sent if one.at < later.at]
    busy = [n for n, one in enumerate(before) if one.reply is not None and one.reply.kind == "busy"]
    since = before[busy[-1] if busy else 0 :]
    return next((one for one in since if facts.uncertain(one, later.at)), since[-1])


@obligation(
    "EFF-9",
    kind="liveness",
    profile="Effects",
    level="SHOULD",
    promise="A receiver's late word that an effect happened settles the unknown it is about, and no other.",
    tested_by="a notice of an effect whose reply was lost, sent twice, and another of an effect that nobody asked for",
    anomaly=("stuck", "false certainty"),
    minimum=1,
    causes=(
        "a notice is only looked at while its call is being waited for",
        "a notice that comes before the loss has been noticed is thrown away",
        "notices are matched by run or by receiver instead of by operation",
    ),
    learnt_from=("F21", "F35"),
)
def notice_settles_its_own_unknown(history: History) -> Finding:
    facts = look(history)
    heard = [one for one in facts.notices() if one.ok_at is not None]
    mine = facts.calls.keys() - facts.history.plan.operations_of_children().keys()
    unknown = [one for one in heard if one.about in mine and _was_unknown(facts, one)]
    tested = [one for one in unknown if _is_told_of(facts, one)]
    found = [violation for one in heard if (violation := _misplaced(facts, one)) is not None]
    found += [violation for one in tested if (violation := _unheeded(facts, one)) is not None]
    return Finding(len(tested), tuple(found), slow=bool(tested) and not found and facts.closed_as() == "slow")


def _was_unknown(facts: Facts, notice: Command) -> bool:
    """Had nobody answered the operation of a notice when it was given?"""
    op = notice.about or ""
    sent = [one for one in facts.dispatches(op) if one.at < notice.asked_at]
    known = facts.accepted_at.get(op, notice.asked_at) < notice.asked_at
    return bool(sent) and not known and all(one.unanswered for one in facts.requests if one.op == op)


def _is_told_of(facts: Facts, notice: Command) -> bool:
    """Is it seen what came of a notice: its operation in a status, or what follows on it?"""
    op = notice.about or ""
    shown = any(seen.operation(op) is not None for seen in facts.seen_after(notice.ok_at or notice.asked_at))
    return shown or op in facts.accepted_at


def _unheeded(facts: Facts, notice: Command) -> Violation | None:
    """A notice that was taken, and whose operation is still shown as unknown when all is over."""
    op, last = notice.about or "", facts.last_seen()
    if last is None or notice.ok_at is None or facts.quiet is None or last.asked < notice.ok_at:
        return None
    if facts.closed_as() in {None, "stopped"}:
        return None
    shown = last.operation(op)
    if shown is None or shown.state not in IN_DOUBT or last.status.state in {"failed", "cancelled"}:
        return None
    sentence = f"{facts.calls[op].service} told that {op!r} had happened, which nobody knew; it is still {shown.state}."
    return blame("stuck", sentence, (notice.asked_at, last.asked, last.answered), op)


def _misplaced(facts: Facts, notice: Command) -> Violation | None:
    """An operation that is shown as settled by a notice of something else."""
    assert notice.ok_at is not None
    for seen in facts.seen_after(notice.asked_at):
        for op, nonce in seen.accepted().items():
            is_open = op in facts.calls and op != notice.about and not answer_before(facts, op, seen.answered)
            if is_open and (nonce == notice.nonce or _is_first_to_show(facts, op, notice.asked_at)):
                sentence = (
                    f"A receiver told of {notice.about!r}, and {op!r}, which nobody knows of, is shown as settled."
                )
                return blame("false certainty", sentence, (notice.asked_at, seen.asked, seen.answered), op)
    return None


def _is_first_to_show(facts: Facts, op: str, index: int) -> bool:
    """Had this operation been sent, and not been known as accepted, by event `index`?"""
    sent = any(one.at < index for one in facts.dispatches(op))
    return sent and not facts.is_tolerated(op) and facts.accepted_at.get(op, index) >= index


@obligation(
    "EFF-10",
    kind="safety",
    profile="Effects",
    promise="Asking what became of a request is work of its own, of bounded tries that are not the request's, and may end with "
    "the outcome openly unresolved.",
    tested_by="look-ups that fail, for a while and for good",
    anomaly=("stuck", "overspend", "false certainty"),
    minimum=2,
    causes=(
        "a look-up that fails is asked again for ever",
        "look-ups and requests are counted by the same counter",
        "a search that was given up leaves the request as failed, or as if nothing had been sent",
    ),
    learnt_from=("F40", "F54"),
)
def search_is_bounded_and_may_end_unresolved(history: History) -> Finding:
    facts = look(history)
    exercised = 0
    found: list[Violation] = []
    for call in facts.of("lookup"):
        failed = [one for one in facts.lookups(call.id) if one.unanswered and not facts.late(one)]
        exercised += bool(failed)
        checks = (_endless(facts, call, failed), _given_up(facts, call), _hidden_end(facts, call, failed))
        found += [one for one in checks if one is not None][:1]
    return Finding(exercised, tuple(found))


def _endless(facts: Facts, call: Requester, failed: list[Request]) -> Violation | None:
    """Questions without end: more of them than anybody would ask, or still being asked when all is over."""
    asked = facts.lookups(call.id)
    if not failed or failed[-1] != asked[-1]:
        return None
    if len(failed) > LOOKUPS_MAX:
        sentence = f"{call.service} was asked {len(failed)} times what became of {call.id!r}, and never told."
        return blame("overspend", sentence, (failed[0].at, failed[-1].at), call.id)
    last, quiet = facts.last_seen(), facts.quiet
    if last is None or quiet is None or facts.closed is None or facts.closed_as() != "bound":
        return None
    since = [one for one in failed if one.at > quiet]
    if last.status.state in TERMINAL or len(since) < _MANY_LOOKUPS or not _only_this(facts, call):
        return None
    sentence = (
        f"{call.service} was asked {len(failed)} times what became of {call.id!r}; the search has not come to an end."
    )
    return blame("stuck", sentence, (failed[0].at, failed[-1].at, facts.closed), call.id)


def _only_this(facts: Facts, call: Requester) -> bool:
    """Is this the only operation of which nobody knows?"""
    return all(facts.answered_before(one.op, len(facts.history.events)) for one in facts.requests if one.op != call.id)


def _given_up(facts: Facts, call: Requester) -> Violation | None:
    """Given up with tries left, though a look-up had said that nothing had happened and nothing was in the way."""
    last = facts.last_seen()
    tries = call.tries if isinstance(call, Call) else None
    sent = facts.dispatches(call.id)
    if last is None or not sent or tries is None or len(sent) >= tries or not is_calm(facts, last.answered):
        return None
    shown = last.operation(call.id)
    cleared = any(
        one.reply is not None and one.reply.kind == "missing" for one in facts.lookups(call.id) if one.at > sent[-1].at
    )
    stopped = (
        any(one.verb in {"cancel", "decide"} for one in facts.commands) or facts.history.plan.deadline_ns is not None
    )
    if not cleared or stopped or shown is None or shown.state not in {"failed", "unresolved"}:
        return None
    failed_too = any(one.state == "failed" for one in last.status.operations if one.id != call.id)
    if last.status.state not in TERMINAL or failed_too or _is_limited(facts, call):
        return None
    sentence = (
        f"{call.service} told that nothing had come of {call.id!r}, which may be tried {tries} times and was tried "
        f"{len(sent)}; it was given up as {shown.state}, as if look-ups were tries."
    )
    return blame("stuck", sentence, (sent[-1].at, last.asked, last.answered), call.id)


def _is_limited(facts: Facts, call: Requester) -> bool:
    """May the call have been given up for another reason: its time, the run's means, or a failure beside it?"""
    timed = isinstance(call, Call) and call.elapsed_ns is not None
    others = any(one.refused for one in facts.requests if one.op != call.id)
    return timed or others or facts.history.plan.allowance is not None


def _hidden_end(facts: Facts, call: Requester, failed: list[Request]) -> Violation | None:
    """The search was given up, and the call is shown as if its outcome were known."""
    if not failed or failed[-1].replied_at is None:
        return None
    for seen in facts.seen_after(failed[-1].replied_at):
        shown = seen.operation(call.id)
        told = any(not one.unanswered for one in facts.requests if one.op == call.id and one.at < seen.answered)
        told = told or any(one.asked_at < seen.answered for one in facts.notices(call.id))
        if shown is not None and not told and shown.state in {*ACCEPTED, "failed"}:
            sentence = (
                f"Nobody could tell what became of {call.id!r} at {call.service}, and it is shown as {shown.state}."
            )
            return blame("false certainty", sentence, (failed[-1].at, seen.asked, seen.answered), call.id)
    return None

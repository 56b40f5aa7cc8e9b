"""JRN-1 2 3 4: what the journal holds of every request, and how states change in it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

from scenarios.bodies import Invocation, Journal, Transition
from scenarios.chronicle import LEGAL, by_leaf, chains, deeds, is_own
from scenarios.history import History
from scenarios.index import Facts, look
from scenarios.obligations.registry import blame, obligation
from scenarios.observed import Request, Said
from scenarios.plan import Call, Compensate
from scenarios.verdict import Finding, Violation


@obligation(
    "JRN-1",
    kind="safety",
    profile="Durable",
    promise="Before the first byte of a request leaves, the journal holds the intent for good: the operation, its key, the "
    "digest of its parameters and the attempt.",
    tested_by="kill and power loss while a request is at its receiver, then a look at the journal",
    anomaly="phantom effect",
    minimum=3,
    causes=(
        "the request is recorded together with its answer",
        "a repeat is not recorded, as there is a record of the first try",
        "the intent is queued to be written, and the request does not wait for it",
    ),
    learnt_from=("F18",),
)
def intent_is_written_before_the_request(history: History) -> Finding:
    facts = look(history)
    tested: set[str] = set()
    found: dict[str, Violation] = {}
    for said in _journals(facts, "invocations"):
        rows = by_leaf(row for row in said.body.invocations if row.action != "lookup")
        for op, requests in deeds(facts, said.asked).items():
            tested |= {op} if any(_was_cut(facts, request, said.asked) for request in requests) else set()
            if (missing := _without_intent(facts, requests, rows.get(op, []))) is not None:
                found.setdefault(op, _phantom(missing, rows.get(op, []), said))
        for one in _alike(facts, rows, said):
            found.setdefault(str(one.operation), one)
    return Finding(len(tested), tuple(found.values()))


def _alike(facts: Facts, rows: Mapping[str, list[Invocation]], said: Said[Journal]) -> Iterator[Violation]:
    """Calls that the plan has ask for different things, and whose invocations have one digest. Directions may change both."""
    first: dict[str, Call] = {}
    for call in facts.calls.values():
        is_plain = isinstance(call, Call) and is_own(call.id) and not facts.steers(call.id)
        for row in rows.get(call.id, ()) if is_plain else ():
            other = first.setdefault(row.digest, call) if row.digest and isinstance(call, Call) else call
            if other.params != call.params:
                sentence = (
                    f"{other.id!r} and {call.id!r} ask for different things, and the journal has one digest of both."
                )
                yield blame("phantom effect", sentence, (said.asked, said.answered), call.id)


def _journals(facts: Facts, tells: str) -> list[Said[Journal]]:
    """The journals that have such a list."""
    return [said for said in facts.journals if tells in said.body.tells]


def _was_cut(facts: Facts, request: Request, before: int) -> bool:
    """Did a process die while this request had no answer yet?"""
    ends = request.replied_at if request.replied_at is not None and not request.unanswered else before
    return facts.death_between(request.at, min(ends, before))


def _without_intent(facts: Facts, requests: list[Request], rows: list[Invocation]) -> Request | None:
    """The first request that no row accounts for: by its key, or as one try more than there are rows."""
    tries = 0
    latest: dict[int, Request] = {}
    for request in requests:
        before = latest.get(request.event.incarnation)
        latest[request.event.incarnation] = request
        tries += before is None or _was_over(facts, before, request)
        if tries > sum(_intends(row, request) for row in rows):
            return request
    return None


def _was_over(facts: Facts, before: Request, after: Request) -> bool:
    """Had a worker certainly been answered before it sent this for the same operation? Then it is another try."""
    if before.reply is None or before.answer is None or not isinstance(facts.calls.get(before.op), Call | Compensate):
        return False
    stopped = any(before.at < at < after.at for at in facts.paused.get(before.event.incarnation, ()))
    return facts.is_prompt(before) and not stopped and not facts.is_stormy


def _intends(row: Invocation, request: Request) -> bool:
    key = request.event.key
    return bool(row.digest and row.attempt) and (key is None or row.key == key)


def _phantom(request: Request, rows: list[Invocation], said: Said[Journal]) -> Violation:
    lacking = "no invocation of it" if not rows else f"only {len(rows)} of it, none of them with what was sent"
    if any(_intends(row, request) for row in rows):
        lacking = "no invocation for this try"
    sentence = f"{request.op!r} was received by its service, and the journal asked for afterwards has {lacking}."
    return blame("phantom effect", sentence, (request.at, said.asked, said.answered), request.op)


@obligation(
    "JRN-2",
    kind="safety",
    profile="Durable",
    promise="An operation changes its state only along the listed transitions, each from the state that the one before led "
    "to; what comes late or would lead back is refused.",
    tested_by="late words of workers that were stopped, replies lost, kills in the middle of a call",
    anomaly="torn view",
    minimum=2,
    causes=(
        "a late report overwrites the state, whatever that is by now",
        "lost work is put back into the queue as if it had never been sent",
        "a reaper goes by a list that it read before the operation ended",
    ),
    learnt_from=("F16", "F17", "F49"),
)
def states_change_as_listed(history: History) -> Finding:
    facts = look(history)
    found: dict[str, Violation] = {}
    tested: set[str] = set()
    for said in _journals(facts, "transitions"):
        late = {row.operation for row in said.body.rejected}
        for operation, rows in chains(said.body).items():
            if operation in late or any(row.to_state == "unknown" for row in rows):
                tested.add(operation)
            if (wrong := _broken_link(rows)) is not None:
                found.setdefault(operation, _illegal(operation, *wrong, said))
    return Finding(len(tested), tuple(found.values()))


def _broken_link(rows: tuple[Transition, ...]) -> tuple[Transition | None, Transition] | None:
    """The first transition that is none of the listed, or does not begin where the one before it ended."""
    befores: Iterator[Transition | None] = itertools.chain((None,), rows)
    for before, row in zip(befores, rows, strict=False):
        begins = {"planned", ""} if before is None else {before.to_state}
        created = before is None and not row.from_state and row.to_state == "planned"
        if row.from_state not in begins or not (created or (row.from_state, row.to_state) in LEGAL):
            return before, row
    return None


def _illegal(operation: str, before: Transition | None, row: Transition, said: Said[Journal]) -> Violation:
    was = "planned" if before is None else before.to_state
    by = f" by {row.move!r}" if row.move else ""
    if row.from_state in {was, ""}:
        sentence = f"The journal shows {operation!r} going from {was} to {row.to_state}{by}, which no operation may."
    else:
        sentence = f"The journal leaves {operation!r} {was}, and goes on from {row.from_state} to {row.to_state}{by}."
    return blame("torn view", sentence, (said.asked, said.answered), operation)


@obligation(
    "JRN-3",
    kind="safety",
    profile="Durable",
    promise="A call whose outcome got lost is written down as unknown before anything else comes of it, and never as failed.",
    tested_by="replies dropped, reset and turned into 503, and workers killed over a call",
    anomaly="false certainty",
    minimum=3,
    causes=(
        "there is one state for everything that is no success",
        "a call that got no answer is tried again inside the worker, and nobody is told",
        "work taken back from the dead goes straight to the next worker",
    ),
    learnt_from=(),
)
def unknown_is_written_as_unknown(history: History) -> Finding:
    facts = look(history)
    tested: set[str] = set()
    found: dict[str, Violation] = {}
    for said in _journals(facts, "transitions"):
        written = by_leaf(row for rows in chains(said.body).values() for row in rows)
        for op, requests in deeds(facts, said.asked).items():
            lost = next((one for one in requests if _was_lost(one, said.asked)), None)
            rows = written.get(op, [])
            if lost is None or not rows:
                continue
            again = _follow_up(facts, lost, said.asked)
            refused = any(
                one.idle for one in deeds(facts, said.answered).get(op, requests)
            )  # also as it was being read
            hasty = _failed_at_once(rows) and _only_refusals_fail(facts, op) and not refused
            quiet = again is not None and all(row.to_state != "unknown" for row in rows)
            tested |= {op} if again is not None or rows[-1].to_state != "dispatched" else set()
            if hasty or quiet:
                found.setdefault(op, _certain(lost, again, said, is_failed=hasty))
    return Finding(len(tested), tuple(found.values()))


def _was_lost(request: Request, before: int) -> bool:
    """Was nothing definite ever answered to this request? (Uploads are many requests in one try, most without a nonce.)"""
    return request.unanswered and request.at < before and request.event.service != "store"


def _follow_up(facts: Facts, lost: Request, before: int) -> Request | None:
    """What was sent next for the operation, by somebody who must have given the first up: a repeat or a question."""
    return next(
        (one for one in facts.sent if one.op == lost.op and lost.at < one.at < before and not facts.late(one)), None
    )


def _only_refusals_fail(facts: Facts, op: str) -> bool:
    """Is there no answer that is a failure? (A checker's may be one, and a model's of the wrong shape.)"""
    return isinstance(facts.calls.get(op), Call | Compensate)


def _failed_at_once(rows: list[Transition]) -> bool:
    return any((row.from_state, row.to_state) == ("dispatched", "failed") for row in rows)


def _certain(lost: Request, again: Request | None, said: Said[Journal], *, is_failed: bool) -> Violation:
    if is_failed:
        what = "and the journal says that it failed, though nobody refused it"
    else:
        what = "and it was followed up, with no word in the journal that its outcome was unknown"
    sentence = f"Nothing definite was answered to {lost.op!r}, {what}."
    evidence = (lost.at, *(() if again is None else (again.at,)), said.asked, said.answered)
    return blame("false certainty", sentence, evidence, lost.op)


@obligation(
    "JRN-4",
    kind="safety",
    profile="Durable",
    promise="The ids that the outside gave to a request and to what it made are written down with the invocation that was "
    "told them.",
    tested_by="replies lost and then looked up or asked for again, then a look at the journal",
    anomaly="amnesia",
    minimum=2,
    causes=(
        "of an answer only the part that the flow uses is kept",
        "what a look-up finds is stored as the operation's result, apart from any invocation",
    ),
    learnt_from=(),
)
def outside_ids_are_kept(history: History) -> Finding:
    facts = look(history)
    tested: set[str] = set()
    found: dict[str, Violation] = {}
    for said in _journals(facts, "invocations"):
        rows = by_leaf(said.body.invocations)
        for op, nonce in _accepted_before(facts, said.asked).items():
            named = [one for one in facts.sent if one.op == op and _brought(one, nonce, said.asked)]
            if not named or facts.notices(op):
                continue
            if any(_was_lost(one, named[-1].at) for one in facts.sent if one.op == op):
                tested.add(op)
            known = {row.external for row in rows.get(op, [])}
            if not known & {one.reply.external for one in named if one.reply}:
                found.setdefault(op, _forgotten(named[-1], said))
    return Finding(len(tested), tuple(found.values()))


def _accepted_before(facts: Facts, index: int) -> dict[str, str]:
    """The run's own operations that a status before event `index` shows as accepted, each with its answer."""
    shown = (seen.accepted() for seen in facts.statuses if seen.answered < index)
    return {op: nonce for accepted in shown for op, nonce in accepted.items() if nonce and is_own(op)}


def _brought(request: Request, nonce: str, before: int) -> bool:
    """Was this request answered with the accepted nonce and with an id of its own?"""
    if request.answer != nonce or request.replied_at is None or request.replied_at > before:
        return False
    return request.reply is not None and request.reply.external is not None


def _forgotten(request: Request, said: Said[Journal]) -> Violation:
    external = request.reply.external if request.reply else None
    sentence = (
        f"The answer accepted of {request.op!r} came with the receiver's id {external!r}, and no invocation of it in the "
        "journal has that id."
    )
    return blame(
        "amnesia", sentence, (request.at, request.replied_at or request.at, said.asked, said.answered), request.op
    )

"""Edits of a history that was right: some leave it right, as what shows less or names things otherwise, and some make it wrong.

`RIGHT` maps a name to an edit after which nobody may be blamed. `WRONG` maps one to an edit and the obligation that it breaks;
such an edit returns None for a history that it does not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from scenarios.history import (
    ACCEPTED,
    Answered,
    Applied,
    Asked,
    Event,
    History,
    OperationStatus,
    Received,
    Replied,
    Stalled,
    Status,
    Usage,
)
from scenarios.index import look
from scenarios.plan import SEMANTICS, Call

OTHER = "f" * 12
Edit = Callable[[History], History | None]
RIGHT: dict[str, Callable[[History], History]] = {}
WRONG: dict[str, tuple[str, Edit]] = {}


def of_events(history: History, change: Callable[[Event], Event]) -> History:
    return attrs.evolve(history, events=tuple(change(event) for event in history.events))


def of_statuses(history: History, change: Callable[[Status], Status], after: int = -1) -> History:
    """The statuses of the run itself that were asked after an event are changed."""
    wanted = {seen.answered for seen in look(history).statuses if seen.asked > after}
    events = list(history.events)
    for at, event in enumerate(events):
        if at in wanted and isinstance(event, Answered) and event.status is not None:
            events[at] = attrs.evolve(event, status=change(event.status))
    return attrs.evolve(history, events=tuple(events))


def of_operation(op: str, **fields: Any) -> Callable[[Status], Status]:
    def change(status: Status) -> Status:
        shown = (attrs.evolve(one, **fields) if one.id == op else one for one in status.operations)
        return attrs.evolve(status, operations=tuple(shown))

    return change


def of_bodies(history: History, verbs: set[str], change: Callable[[Mapping[str, Any]], dict[str, Any]]) -> History:
    """What was answered to these verbs is changed."""
    asks = {event.ask for event in history.events if isinstance(event, Asked) and event.verb in verbs}

    def told(event: Event) -> Event:
        if isinstance(event, Answered) and event.ask in asks and event.body is not None:
            return attrs.evolve(event, body=change(event.body))
        return event

    return of_events(history, told)


def inserted(history: History, at: int, *events: Event) -> History:
    return attrs.evolve(history, events=(*history.events[: at + 1], *events, *history.events[at + 1 :]))


def without_calls(history: History, calls: set[int]) -> History:
    kept = (one for one in history.events if not (isinstance(one, Received | Applied | Replied) and one.call in calls))
    return attrs.evolve(history, events=tuple(kept))


# --- which leave it right -----------------------------------------------------------------------------------------------
def right(name: str) -> Callable[[Callable[[History], History]], Callable[[History], History]]:
    def register(edit: Callable[[History], History]) -> Callable[[History], History]:
        RIGHT[name] = edit
        return edit

    return register


#: What a harness need not have: fields of a status, and of what it shows of an operation.
_LESS: Mapping[str, Any] = {
    "version": None, "phase": None, "dependency": None, "usage": None, "children": (), "approvals": (), "signals": None,
    "delivered": None, "paused": None, "cancel": None,
}  # fmt: skip


#: Fields that tell what somebody has asked for, and how that is asked; where nobody has, a status is all that tells of it.
_ASKED = {"paused": "pause", "cancel": "cancel"}


def _without(field: str, value: Any) -> Callable[[History], History]:
    def edit(history: History) -> History:
        asked = {event.verb for event in history.events if isinstance(event, Asked)}
        if _ASKED.get(field, "status") not in {*asked, "status"}:
            return history
        return of_statuses(history, lambda status: attrs.evolve(status, **{field: value}))

    return edit


RIGHT.update({f"statuses have no {field}": _without(field, value) for field, value in _LESS.items()})


def _barely(one: OperationStatus) -> OperationStatus:
    return OperationStatus(one.id, one.state, one.nonce)


@right("operations have a state and an answer only")
def _(history: History) -> History:
    return of_statuses(
        history, lambda status: attrs.evolve(status, operations=tuple(_barely(one) for one in status.operations))
    )


@right("no status lists any operation")
def _(history: History) -> History:
    plain = attrs.evolve(history, declared=attrs.evolve(history.declared, shows_operations=False))
    return of_statuses(plain, lambda status: attrs.evolve(status, operations=()))


@right("what is listed comes in another order")
def _(history: History) -> History:
    def change(status: Status) -> Status:
        return attrs.evolve(
            status, operations=status.operations[::-1], children=status.children[::-1], approvals=status.approvals[::-1]
        )

    # What is listed twice counts as it is listed first.
    twice = any(
        len({one.id for one in seen.status.operations}) < len(seen.status.operations) for seen in look(history).statuses
    )
    return history if twice else of_statuses(history, change)


@right("every body has a field that nobody knows")
def _(history: History) -> History:
    return of_bodies(
        history, {"journal", "events", "artifacts", "signal", "decide", "cancel"}, lambda body: {**body, "zz": [{}]}
    )


@right("every other status is lost on its way")
def _(history: History) -> History:
    events = list(history.events)
    for seen in look(history).statuses[::2]:
        told = events[seen.answered]
        events[seen.answered] = Answered(told.at_ns, getattr(told, "ask", 0), "indefinite", "lost")
    return attrs.evolve(history, events=tuple(events))


@right("it all happened at another time")
def _(history: History) -> History:
    return of_events(history, lambda event: attrs.evolve(event, at_ns=event.at_ns + 10**15))


@right("requests, questions and processes are numbered otherwise")
def _(history: History) -> History:
    def change(event: Event) -> Event:
        names = {"call", "ask", "incarnation"} & {field.name for field in attrs.fields(type(event))}
        return attrs.evolve(event, **{name: getattr(event, name) + 1000 for name in names})

    return of_events(history, change)


@right("the observer's machine stood still at the end")
def _(history: History) -> History:
    last = len(history.events) - 1
    return inserted(history, last - 1, Stalled(history.events[last].at_ns, 10**9)) if last > 0 else history


# --- which make it wrong --------------------------------------------------------------------------------------------------
def wrong(name: str, breaks: str) -> Callable[[Edit], Edit]:
    def register(edit: Edit) -> Edit:
        WRONG[name] = (breaks, edit)
        return edit

    return register


def _first_accepted(history: History) -> tuple[str, int] | None:
    """A call and the answer of a status that first shows it as accepted, where another status follows that lists it too."""
    facts = look(history)
    for place, seen in enumerate(facts.statuses):
        for one in seen.status.operations:
            follows = any(
                later.operation(one.id) and later.asked > seen.answered for later in facts.statuses[place + 1 :]
            )
            if one.state in ACCEPTED and one.nonce and one.id in facts.calls and follows:
                return one.id, seen.answered
    return None


@wrong("what was accepted is planned again", "DUR-2")
def _(history: History) -> History | None:
    found = _first_accepted(history)
    if found is None or any(seen.status.result for seen in look(history).statuses):
        return None
    return of_statuses(history, of_operation(found[0], state="planned", nonce=None), found[1])


@wrong("what was accepted has another answer", "DUR-2")
def _(history: History) -> History | None:
    found = _first_accepted(history)
    if found is None:
        return None
    op, at = found

    def change(status: Status) -> Status:
        result = {one: OTHER if one == op else nonce for one, nonce in (status.result or {}).items()}
        return attrs.evolve(of_operation(op, nonce=OTHER)(status), result=result if status.result else status.result)

    return of_statuses(history, change, at)


@wrong("a run that was acknowledged is unknown", "STA-1")
def _(history: History) -> History | None:
    facts = look(history)
    start, last = facts.start_ok(), facts.last_seen()
    if (
        start is None
        or last is None
        or last.asked < (start.answered_at or 0)
        or facts.struck("wipe")
        or facts.is_stormy
    ):
        return None
    return of_statuses(history, lambda _: Status("unknown"), last.asked - 1)


@wrong("the version goes back", "STA-2")
def _(history: History) -> History | None:
    told = [seen for seen in look(history).statuses if seen.status.version and seen.status.attempt is None]
    if len(told) < 2 or told[-2].answered > told[-1].asked:
        return None
    back = (told[-2].status.version or 0) - 1
    return of_statuses(history, lambda status: attrs.evolve(status, version=back), told[-1].asked - 1)


@wrong("the result lacks what the same status shows", "DUR-4")
def _(history: History) -> History | None:
    for seen in look(history).statuses:
        for one in seen.status.operations if seen.status.state == "done" else ():
            kept = {op: nonce for op, nonce in (seen.status.result or {}).items() if op != one.id}
            is_due = one.id in look(history).calls and history.plan.is_owed(one.id) and "/" not in one.id
            if one.state in ACCEPTED and one.nonce and is_due and kept:
                return of_statuses(history, lambda status, kept=kept: attrs.evolve(status, result=kept), seen.asked - 1)  # type: ignore[misc]
    return None


@wrong("an answered request is sent again with another key", "EFF-2")
def _(history: History) -> History | None:
    for one in look(history).requests:
        is_keyed = one.event.key is not None and SEMANTICS[one.event.service] == "keyed"
        if one.answer is not None and is_keyed and one.replied_at is not None and not one.event.lookup:
            again = attrs.evolve(
                one.event, call=10**6, key=f"{one.event.key}:again", at_ns=history.events[one.replied_at].at_ns
            )
            return inserted(history, one.replied_at, again)
    return None


@wrong("its key is sent with other parameters", "EFF-3")
def _(history: History) -> History | None:
    for one in look(history).requests:
        if one.answer is not None and one.event.key is not None and one.replied_at is not None and not one.event.lookup:
            again = attrs.evolve(one.event, call=10**6, params="0" * 32, at_ns=history.events[one.replied_at].at_ns)
            return inserted(history, one.replied_at, again)
    return None


@wrong("an effect that a run needs to be done is missing", "EFF-11")
def _(history: History) -> History | None:
    facts = look(history)
    if not any(seen.status.state == "done" for seen in facts.statuses):
        return None
    for op in facts.calls:
        if history.plan.is_owed(op) and all(seen.operation(op) is None for seen in facts.statuses):
            return without_calls(history, {one.event.call for one in facts.requests if one.op == op})
    return None


@wrong("what a run needs to be done is planned still", "EFF-11")
def _(history: History) -> History | None:
    facts = look(history)
    done = next((seen for seen in facts.statuses if seen.status.state == "done"), None)
    for one in done.status.operations if done is not None else ():
        if done is not None and one.id in facts.calls and history.plan.is_owed(one.id):
            cut = without_calls(history, {request.event.call for request in facts.requests if request.op == one.id})
            return of_statuses(cut, of_operation(one.id, state="planned", nonce=None))
    return None


@wrong("it was approved with a digest that nobody proposed", "APR-2")
def _(history: History) -> History | None:
    return _decided_otherwise(history, digest="0" * 32)


@wrong("it was approved by a stranger", "APR-6")
def _(history: History) -> History | None:
    return _decided_otherwise(history, actor="nobody")


def _decided_otherwise(history: History, **fields: Any) -> History | None:
    """All decisions are changed, where one of them has released what it is about and no direction was given."""
    facts = look(history)
    released = [
        one
        for one in history.plan.approvals()
        if not facts.steers(one.of)
        and (sent := next(iter(facts.dispatches(one.of)), None)) is not None
        and any(said.decision == "approve" and said.ok_at and said.ok_at < sent.at for said in facts.decisions(one.id))
    ]
    if not released or facts.authority:
        return None
    return of_events(
        history,
        lambda event: attrs.evolve(event, **fields) if isinstance(event, Asked) and event.verb == "decide" else event,
    )


@wrong("what was consumed is free again", "BUD-2")
def _(history: History) -> History | None:
    facts, allowance = look(history), history.plan.allowance
    kind = "tokens" if allowance is not None and allowance.tokens is not None else "calls"
    told = [seen for seen in facts.statuses if (seen.status.usage or {}).get(kind, Usage()).consumed]
    if not told or told[0].answered > told[-1].asked or getattr(allowance, kind, None) is None:
        return None
    return of_statuses(
        history, lambda status: attrs.evolve(status, usage={**(status.usage or {}), kind: Usage()}), told[0].answered
    )


@wrong("a run that has failed goes on under its old attempt", "DUR-7")
def _(history: History) -> History | None:
    last = look(history).last_seen()
    if last is None or last.status.state not in {"failed", "cancelled"} or not history.declared.shows_attempts:
        return None
    at_ns, status = history.events[last.answered].at_ns, attrs.evolve(last.status, state="running", attempt="t1")
    before = of_statuses(history, lambda status: attrs.evolve(status, attempt="t1"))
    again = Asked(at_ns, 10**6, "status", history.run, 1), Answered(at_ns, 10**6, "ok", status=status)
    return inserted(before, last.answered, *again)


@wrong("the journal has one digest of all that was asked for", "JRN-1")
def _(history: History) -> History | None:
    facts = look(history)
    rows = [
        row for said in facts.journals[-1:] for row in said.body.invocations if row.digest and row.action != "lookup"
    ]
    calls = [facts.calls.get(row.operation) for row in rows if not facts.steers(row.operation)]
    if len({repr(one.params) for one in calls if isinstance(one, Call)}) < 2:
        return None

    def change(body: Mapping[str, Any]) -> dict[str, Any]:
        return {**body, "invocations": [{**row, "digest": "0" * 32} for row in body.get("invocations", ())]}

    return of_bodies(history, {"journal"}, change)

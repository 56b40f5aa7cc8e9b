"""Events joined into what judges ask for; every function takes events and returns values, and none blames anybody."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import attrs

from scenarios.bodies import ArtifactEntry, EventPage, Journal, artifacts_of, events_of, journal_of
from scenarios.history import (
    ACCEPTED,
    STORM,
    Answered,
    Applied,
    Asked,
    Authority,
    Died,
    Fired,
    History,
    Paused,
    Quiet,
    Received,
    Replied,
    Resumed,
    Started,
)
from scenarios.interruption import ASKING_ACTIONS, actions_of
from scenarios.observed import Ask, Command, Request, Said, Seen
from scenarios.plan import RESERVED_SIGNALS, Approve, Artifact, Check, Plan
from scenarios.remembered import latest

T = TypeVar("T")

#: Verbs that tell a run something, by a command id.
COMMANDS = frozenset({"signal", "decide", "cancel", "pause", "unpause"})


@latest
def by_kind(history: History) -> Mapping[type, Sequence[tuple[int, Any]]]:
    """The events of each kind, with their places in the history."""
    found: dict[type, list[tuple[int, Any]]] = {}
    for at, event in enumerate(history.events):
        found.setdefault(type(event), []).append((at, event))
    return found


def of_kind(history: History, kind: type[T]) -> Sequence[tuple[int, T]]:
    """The events of one kind, with their places in the history."""
    return by_kind(history).get(kind, ())


def of_kinds(history: History, *kinds: type) -> list[tuple[int, Any]]:
    """The events of some kinds, in order."""
    return sorted(itertools.chain.from_iterable(of_kind(history, kind) for kind in kinds), key=_place)


def _place(placed: tuple[int, object]) -> int:
    return placed[0]


def requests_of(history: History) -> tuple[tuple[Request, ...], tuple[Request, ...]]:
    """Requests of this run's planned calls, and those of its artifacts, checks and approvals.

    Others (wrong service, unknown operation) are the adapter's affair.
    """
    calls = {call.id: call.service for call in history.plan.calls()}
    services = calls | _other_services(history.plan)
    open_: dict[int, Request] = {}
    for index, event in of_kinds(history, Received, Applied, Replied):
        if isinstance(event, Received):
            if event.run == history.run and services.get(event.op) == event.service:
                open_.setdefault(event.call, Request(index, event, carries=_carried(history.plan, event)))
        elif (request := open_.get(event.call)) is not None:
            open_[event.call] = _joined(request, index, event)
    ordered = sorted(open_.values(), key=lambda request: request.at)
    return tuple(one for one in ordered if one.op in calls), tuple(one for one in ordered if one.op not in calls)


def _carried(plan: Plan, event: Received) -> Mapping[str, str]:
    """What a request hands on, by names of the whole plan, whichever plan it was told by."""
    child, slash, _ = event.op.rpartition("/")
    names = {name: f"{child}{slash}{name}" for name in event.carries}
    return {names[name] if plan.leaf(names[name]) else name: nonce for name, nonce in event.carries.items()}


def _other_services(plan: Plan) -> dict[str, str]:
    services = {Artifact: "store", Check: "checker", Approve: "desk"}
    return {leaf.id: services[type(leaf)] for leaf in plan.leaves() if isinstance(leaf, Artifact | Check | Approve)}


def _joined(request: Request, index: int, event: Applied | Replied) -> Request:
    if isinstance(event, Applied):
        return request if request.applied_at is not None else attrs.evolve(request, applied_at=index)
    return request if request.reply is not None else attrs.evolve(request, replied_at=index, reply=event)


def asks_of(history: History, run: str | None = None) -> tuple[Ask, ...]:
    """What was asked of the run, or of another one by its name, each with its answer."""
    wanted = history.run if run is None else run
    open_: dict[int, Ask] = {}
    for index, event in of_kinds(history, Asked, Answered):
        if isinstance(event, Asked):
            if event.run == wanted:
                open_.setdefault(event.ask, Ask(index, event))
        elif (ask := open_.get(event.ask)) is not None and ask.answer is None:
            open_[event.ask] = Ask(ask.at, ask.event, index, event)
    return tuple(sorted(open_.values(), key=lambda ask: ask.at))


def other_runs(history: History) -> tuple[str, ...]:
    """The runs that were started beside the one that is judged, in order."""
    names = (one.run for _, one in of_kind(history, Asked) if one.verb == "start")
    return tuple(dict.fromkeys(name for name in names if name != history.run))


def statuses_of(asks: Iterable[Ask]) -> tuple[Seen, ...]:
    seen = [
        Seen(ask.at, ask.answered_at, ask.answer.status)
        for ask in asks
        if ask.event.verb == "status" and ask.outcome == "ok" and ask.answer and ask.answered_at and ask.answer.status
    ]
    return tuple(sorted(seen, key=lambda one: one.answered))


def commands_of(asks: Iterable[Ask]) -> tuple[Command, ...]:
    """Commands by verb, name and id, in order of their first asking. One without an id is a command by itself."""
    found: dict[tuple[str, str, str], list[Ask]] = {}
    for ask in asks:
        event = ask.event
        if event.verb in COMMANDS and (event.verb != "signal" or (event.name is not None and event.id is not None)):
            found.setdefault((event.verb, event.name or "", event.id or f"ask {event.ask}"), []).append(ask)
    return tuple(Command(verb, id_, name, same[0].nonce, tuple(same)) for (verb, name, id_), same in found.items())


def signals_among(commands: Iterable[Command]) -> tuple[Command, ...]:
    """Signals of the plan's own: what the kit says by its reserved names is something else."""
    return tuple(one for one in commands if one.verb == "signal" and one.name not in RESERVED_SIGNALS)


def said(asks: Iterable[Ask], verb: str, read: Callable[[Mapping[str, Any]], T]) -> tuple[Said[T], ...]:
    """Everything answered to `verb`, read by `read`, in order of answers."""
    found = [
        Said(ask.at, ask.answered_at, read(ask.body), _number(ask.payload.get("after")))
        for ask in asks
        if ask.event.verb == verb and ask.outcome == "ok" and ask.answered_at is not None and ask.body
    ]
    return tuple(sorted(found, key=lambda one: one.answered))


def journals_among(asks: Iterable[Ask]) -> tuple[Said[Journal], ...]:
    return said(asks, "journal", journal_of)


def pages_among(asks: Iterable[Ask]) -> tuple[Said[EventPage], ...]:
    return said(asks, "events", events_of)


def listings_among(asks: Iterable[Ask]) -> tuple[Said[tuple[ArtifactEntry, ...]], ...]:
    return said(asks, "artifacts", artifacts_of)


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None


def accepted_of(
    plan: Plan, requests: Iterable[Request], statuses: Iterable[Seen], ancestors: Mapping[str, frozenset[str]]
) -> dict[str, int]:
    """Operation → the first event from which it is known accepted."""
    known: dict[str, int] = {}

    def learn(ops: Iterable[str], index: int) -> None:
        for op in ops:
            if op in ancestors:
                known[op] = min(known.get(op, index), index)

    for request in requests:
        if not request.event.lookup:
            learn(ancestors[request.op], request.at)
    owed = [op for op in ancestors if plan.is_owed(op)]
    for seen in statuses:
        learn(seen.accepted(), seen.answered)
        if seen.status.state == "waiting":
            learn(_behind(plan, seen.status.on, ancestors), seen.answered)
        if seen.status.state == "done":
            open_ = {shown.id for shown in seen.status.operations if shown.state not in ACCEPTED}
            learn((op for op in owed if op not in open_), seen.answered)
    return known


def _behind(plan: Plan, on: str | None, ancestors: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """What a run that waits for this signal or decision must have done, whichever of the waits it is."""
    waits = [ancestors[wait.id] for wait in plan.waits() if wait.signal == on]
    approvals = [ancestors[approve.id] for approve in plan.approvals() if approve.id == on]
    behind = waits + approvals
    return frozenset.intersection(*behind) if behind else frozenset()


def first_of(history: History, kind: type[Started | Died]) -> dict[int, int]:
    """Incarnation → index of its first event of this kind."""
    found: dict[int, int] = {}
    for index, event in of_kind(history, kind):
        found.setdefault(event.incarnation, index)
    return found


def workers_of(history: History, requests: Iterable[Request]) -> tuple[int, ...]:
    units = {event.incarnation: event.unit for _, event in of_kind(history, Started)}
    working = {units.get(request.event.incarnation) for request in requests}
    return tuple(incarnation for incarnation, unit in units.items() if unit in working)


def pauses_of(history: History) -> dict[int, tuple[int, ...]]:
    found: dict[int, tuple[int, ...]] = {}
    for index, event in of_kind(history, Paused):
        found[event.incarnation] = (*found.get(event.incarnation, ()), index)
    return found


def storm_of(history: History) -> tuple[int, int]:
    begins = next((at for at, event in of_kind(history, Fired) if event.label == STORM), None)
    if begins is None:
        return 0, 0
    ends = next((at for at, _ in of_kind(history, Quiet)), len(history.events))
    return begins, ends


def fired_of(history: History) -> tuple[tuple[int, str, str], ...]:
    """Interruptions that took place: index, action, label. What may follow one in its label fires by itself."""
    return tuple(
        (index, next(iter(actions_of(event.label)), ""), event.label) for index, event in of_kind(history, Fired)
    )


def authority_of(history: History) -> dict[str, tuple[tuple[int, bool], ...]]:
    """Actor → the events at which its authority changed."""
    found: dict[str, tuple[tuple[int, bool], ...]] = {}
    for index, event in of_kind(history, Authority):
        found[event.actor] = (*found.get(event.actor, ()), (index, event.granted))
    return found


def halts_of(history: History) -> tuple[int, ...]:
    """The events that stop, resume or disturb workers or services."""
    return tuple(at for at, event in of_kinds(history, Died, Paused, Resumed, Fired) if _is_halt(event))


def _is_halt(event: Died | Paused | Resumed | Fired) -> bool:
    if not isinstance(event, Fired):
        return True
    # A label may be a chain ("repeat@ack:start+kill@…"): it is harmless only if every action in it is.
    actions = actions_of(event.label)
    return not actions or any(action not in ASKING_ACTIONS for action in actions)


def stopped_spans(commands: Iterable[Command], end: int) -> Iterator[tuple[int, int]]:
    """The spans of events in which the run was certainly paused: from an acknowledged pause to the next going on asked, or to a
    stop, after which it is over with the pause, and cleaned up after.
    """
    commands = tuple(commands)
    goes_on = sorted(ask.at for one in commands if one.verb in {"unpause", "cancel"} for ask in one.asks)
    for one in commands:
        if one.verb == "pause" and one.ok_at is not None:
            begin = one.ok_at
            # One asked before the acknowledgement may have been carried out after it.
            after = [at for at in goes_on if at > one.asked_at]
            if not after or after[0] > begin:
                yield begin, next(iter(after), end)

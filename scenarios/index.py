"""Facts derived once from a history and shared by every judge: who asked what, who answered, who was alive, what is known.

`look(history)` returns the `Facts`. Three rules make them sound:

- a status is an interval: what it shows was true at some instant between its Asked and its Answered. What it *has* is
  therefore known from the answer on, and what it *lacks* contradicts only what was known before it was asked;
- an operation is *known accepted* when a status shows it so, or when something the plan puts after it was dispatched;
- a request is *late* when its worker had already died, or had been paused with a newer one up: it may have been on
  its way for any length of time, so it proves nothing about what its worker would do now.

Nothing here blames anybody; it only joins events.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Iterator, Mapping

import attrs

from scenarios.history import (
    ACCEPTED,
    STORM,
    Answered,
    Applied,
    Asked,
    Closed,
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
from scenarios.observed import Ask, Request, Seen, Signal
from scenarios.plan import SEMANTICS, Requester, Semantics

#: A service that answered within this time answered before any sane client gave up on it (a scripted "slow" is longer).
PROMPT_NS = 150_000_000
#: Actions that touch only what the kit asks; they give a harness no reason to repeat a call.
_ASKING_ACTIONS = ("repeat", "early", "lose-ack")


@attrs.frozen
class Facts:
    """Everything the judges share about one history. Lists are in order of observation."""

    history: History
    requests: tuple[Request, ...]
    asks: tuple[Ask, ...]
    statuses: tuple[Seen, ...]
    signals: tuple[Signal, ...]
    before: Mapping[str, tuple[str, ...]]  # leaf → the leaves directly before it
    after: Mapping[str, tuple[str, ...]]
    ancestors: Mapping[str, frozenset[str]]  # leaf → everything it depends on
    calls: Mapping[str, Requester]
    accepted_at: Mapping[str, int]  # op → first event from which it is known accepted
    started: Mapping[int, int]  # incarnation → index
    workers: tuple[int, ...]  # incarnations of the units that send requests; others (an engine, a store) only serve
    died: Mapping[int, int]
    paused: Mapping[int, tuple[int, ...]]
    deaths: tuple[int, ...]  # indexes of Died
    storm: tuple[int, int]  # indexes between which the world itself misbehaved; the same twice for none
    halts: tuple[int, ...]  # indexes of Died, Paused, Resumed and of every Fired that touches workers or services
    troubles: tuple[int, ...]  # halts, and replies that were lost or said 5xx
    quiet: int | None
    closed: int | None

    # --- requests -------------------------------------------------------------------------------------------------

    def dispatches(self, op: str) -> tuple[Request, ...]:
        """Requests to carry out `op` (lookups left out)."""
        return tuple(request for request in self.requests if request.op == op and not request.event.lookup)

    def lookups(self, op: str) -> tuple[Request, ...]:
        return tuple(request for request in self.requests if request.op == op and request.event.lookup)

    def of(self, *semantics: Semantics) -> tuple[Requester, ...]:
        """The plan's calls to services with one of these semantics, in written order."""
        return tuple(call for call in self.calls.values() if SEMANTICS[call.service] in semantics)

    def late(self, request: Request) -> bool:
        """May this request have been on its way since before its worker lost its right to work?"""
        worker = request.event.incarnation
        if self.died.get(worker, request.at) < request.at:
            return True
        halted = any(at < request.at for at in self.paused.get(worker, ()))
        return halted and any(other > worker and at < request.at for other, at in self.started.items())

    def cut_at(self, request: Request) -> int | None:
        """When the worker behind a request was first killed or paused after sending it; None if it never was."""
        worker = request.event.incarnation
        moments = [at for at in (self.died.get(worker), *self.paused.get(worker, ())) if at is not None]
        return min((at for at in moments if at > request.at), default=None)

    def uncertain(self, request: Request, before: int | None = None) -> bool:
        """Could the harness be left not knowing what became of this request (as of event `before`)?

        Nothing definite was sent, or the worker was cut before the operation is known accepted.
        """
        end = len(self.history.events) if before is None else before
        definite = request.replied_at is not None and request.replied_at < end and not request.unanswered
        if not definite or request.idle:
            return not definite
        cut = self.cut_at(request)
        return cut is not None and cut < end and cut < self.accepted_at.get(request.op, end)

    def unexplained(self, op: str) -> Iterator[tuple[Request, Request]]:
        """Pairs of an answered request and a repeat of it that no crash, pause, lost reply, error or delay explains."""
        timely = [request for request in self.dispatches(op) if not self.late(request)]
        for earlier, later in itertools.pairwise(timely):
            if earlier.answer is not None and self._promptly(earlier) and not self.halted(earlier.at, later.at):
                yield earlier, later

    def _promptly(self, request: Request) -> bool:
        return request.reply is not None and request.reply.at_ns - request.event.at_ns < PROMPT_NS

    def answered_before(self, op: str, index: int) -> bool:
        """Had anything definite been sent for `op` before event `index`?"""
        return any(request.op == op and request.settled_before(index) for request in self.requests)

    def may_have_begun(self, leaf: str) -> bool:
        """Can the run have come as far as this leaf? Not while a call before it has had no definite answer at all."""
        end = len(self.history.events)
        return all(self.answered_before(op, end) for op in self.ancestors[leaf] if op in self.calls)

    def refusal_before(self, index: int, op: str | None = None) -> bool:
        """Was a definite refusal sent before `index`, for `op` or for any operation?"""
        return any(
            request.refused and request.settled_before(index)
            for request in self.requests
            if op is None or request.op == op
        )

    # --- time -----------------------------------------------------------------------------------------------------

    def halted(self, start: int, end: int) -> bool:
        """Did anything stop, resume or disturb workers or services between two events?"""
        begins, ends = self.storm
        return _between(self.halts, start, end) or (start < ends and begins < end)

    def death_between(self, start: int, end: int) -> bool:
        return _between(self.deaths, start, end)

    def at_ns(self, index: int) -> int:
        return self.history.events[index].at_ns

    # --- asks and statuses ----------------------------------------------------------------------------------------

    def asked(self, verb: str) -> tuple[Ask, ...]:
        return tuple(ask for ask in self.asks if ask.event.verb == verb)

    def start_ok(self) -> Ask | None:
        """The first start that was acknowledged."""
        return next((ask for ask in self.asked("start") if ask.outcome == "ok"), None)

    def seen_after(self, index: int) -> tuple[Seen, ...]:
        """Statuses asked after event `index`."""
        return tuple(seen for seen in self.statuses if seen.asked > index)

    def last_seen(self) -> Seen | None:
        return self.statuses[-1] if self.statuses else None

    def closed_as(self) -> str | None:
        event = self.history.events[self.closed] if self.closed is not None else None
        return event.reason if isinstance(event, Closed) else None


_last: tuple[History, Facts] | None = None


def look(history: History) -> Facts:
    """The facts of `history`. A pure function; the latest answer is kept, as every judge asks for the same one."""
    global _last  # noqa: PLW0603 - a memo of one, keyed by identity: histories hold mappings and cannot be hashed
    if _last is None or _last[0] is not history:
        _last = (history, _derive(history))
    return _last[1]


def _derive(history: History) -> Facts:
    import networkx as nx

    graph = history.plan.dependencies()
    ancestors = {leaf.id: frozenset(nx.ancestors(graph, leaf.id)) for leaf in history.plan.leaves()}
    calls = {call.id: call for call in history.plan.calls()}
    requests = _requests(history, calls)
    asks = _asks(history)
    statuses = _statuses(asks)
    halts = tuple(index for index, event in enumerate(history.events) if _is_halt(event))
    lost = (request.replied_at for request in requests if request.unanswered and request.replied_at is not None)
    return Facts(
        history=history,
        requests=requests,
        asks=asks,
        statuses=statuses,
        signals=_signals(asks),
        before={leaf: tuple(graph.predecessors(leaf)) for leaf in ancestors},
        after={leaf: tuple(graph.successors(leaf)) for leaf in ancestors},
        ancestors=ancestors,
        calls=calls,
        accepted_at=_accepted(history, requests, statuses, ancestors),
        started=_first(history, Started),
        workers=_workers(history, requests),
        died=_first(history, Died),
        paused=_pauses(history),
        deaths=tuple(index for index, event in enumerate(history.events) if isinstance(event, Died)),
        storm=_storm(history),
        halts=halts,
        troubles=tuple(sorted({*halts, *lost})),
        quiet=next((index for index, event in enumerate(history.events) if isinstance(event, Quiet)), None),
        closed=next((index for index, event in enumerate(history.events) if isinstance(event, Closed)), None),
    )


def _requests(history: History, calls: Mapping[str, Requester]) -> tuple[Request, ...]:
    """Requests of this run's planned calls. Others (wrong service, unknown operation) are the adapter's affair."""
    open_: dict[int, Request] = {}
    for index, event in enumerate(history.events):
        if isinstance(event, Received):
            call = calls.get(event.op)
            if event.run == history.run and call is not None and call.service == event.service:
                open_.setdefault(event.call, Request(index, event))
        elif isinstance(event, Applied | Replied) and (request := open_.get(event.call)) is not None:
            open_[event.call] = _joined(request, index, event)
    return tuple(sorted(open_.values(), key=lambda request: request.at))


def _joined(request: Request, index: int, event: Applied | Replied) -> Request:
    if isinstance(event, Applied):
        return request if request.applied_at is not None else attrs.evolve(request, applied_at=index)
    return request if request.reply is not None else attrs.evolve(request, replied_at=index, reply=event)


def _asks(history: History) -> tuple[Ask, ...]:
    open_: dict[int, Ask] = {}
    for index, event in enumerate(history.events):
        if isinstance(event, Asked) and event.run == history.run:
            open_.setdefault(event.ask, Ask(index, event))
        elif isinstance(event, Answered) and (ask := open_.get(event.ask)) is not None and ask.answer is None:
            open_[event.ask] = attrs.evolve(ask, answered_at=index, answer=event)
    return tuple(sorted(open_.values(), key=lambda ask: ask.at))


def _statuses(asks: Iterable[Ask]) -> tuple[Seen, ...]:
    seen = [
        Seen(ask.at, ask.answered_at, ask.answer.status)
        for ask in asks
        if ask.event.verb == "status" and ask.outcome == "ok" and ask.answer and ask.answered_at and ask.answer.status
    ]
    return tuple(sorted(seen, key=lambda one: one.answered))


def _signals(asks: Iterable[Ask]) -> tuple[Signal, ...]:
    by_id: dict[tuple[str, str], list[Ask]] = {}
    for ask in asks:
        if ask.event.verb == "signal" and ask.event.name is not None and ask.event.id is not None:
            by_id.setdefault((ask.event.name, ask.event.id), []).append(ask)
    return tuple(Signal(id_, name, found[0].event.nonce, tuple(found)) for (name, id_), found in by_id.items())


def _accepted(
    history: History,
    requests: Iterable[Request],
    statuses: Iterable[Seen],
    ancestors: Mapping[str, frozenset[str]],
) -> dict[str, int]:
    known: dict[str, int] = {}

    def learn(ops: Iterable[str], index: int) -> None:
        for op in ops:
            if op in ancestors:
                known[op] = min(known.get(op, index), index)

    for request in requests:
        if not request.event.lookup:
            learn(ancestors[request.op], request.at)
    for seen in statuses:
        learn(seen.accepted(), seen.answered)
        if seen.status.state == "waiting":
            behind = [ancestors[wait.id] for wait in history.plan.waits() if wait.signal == seen.status.on]
            learn(frozenset.intersection(*behind) if behind else (), seen.answered)
        if seen.status.state == "done":
            open_ = {shown.id for shown in seen.status.operations if shown.state not in ACCEPTED}
            learn((op for op in ancestors if op not in open_), seen.answered)
    return known


def _first(history: History, kind: type[Started | Died]) -> dict[int, int]:
    found: dict[int, int] = {}
    for index, event in enumerate(history.events):
        if isinstance(event, kind):
            found.setdefault(event.incarnation, index)
    return found


def _workers(history: History, requests: Iterable[Request]) -> tuple[int, ...]:
    units = {event.incarnation: event.unit for event in history.events if isinstance(event, Started)}
    working = {units.get(request.event.incarnation) for request in requests}
    return tuple(incarnation for incarnation, unit in units.items() if unit in working)


def _pauses(history: History) -> dict[int, tuple[int, ...]]:
    found: dict[int, tuple[int, ...]] = {}
    for index, event in enumerate(history.events):
        if isinstance(event, Paused):
            found[event.incarnation] = (*found.get(event.incarnation, ()), index)
    return found


def _storm(history: History) -> tuple[int, int]:
    begins = next(
        (n for n, event in enumerate(history.events) if isinstance(event, Fired) and event.label == STORM), None
    )
    if begins is None:
        return 0, 0
    ends = next((n for n, event in enumerate(history.events) if isinstance(event, Quiet)), len(history.events))
    return begins, ends


def _is_halt(event: object) -> bool:
    if isinstance(event, Fired):
        # A label may be a chain ("repeat@ack:start+kill@…"): it is harmless only if every action in it is.
        actions = [part.rpartition("+")[2] for part in event.label.split("@")[:-1]]
        return not actions or any(action not in _ASKING_ACTIONS for action in actions)
    return isinstance(event, Died | Paused | Resumed)


def _between(indexes: tuple[int, ...], start: int, end: int) -> bool:
    position = bisect.bisect_right(indexes, start)
    return position < len(indexes) and indexes[position] < end

"""Facts derived once from a history and shared by every judge: who asked what, who answered, who was alive, what is known.

`look(history)` returns the `Facts`. Three rules make them sound:

- a status is an interval: what it shows was true at some instant between its Asked and its Answered. What it *has* is
  therefore known from the answer on, and what it *lacks* contradicts only what was known before it was asked;
- an operation is *known accepted* when a status shows it so, or when something the plan puts after it was dispatched;
- a request is *late* when its worker had already died, or had been paused with a newer one up: it may have been on
  its way for any length of time, so it proves nothing about what its worker would do now.

Order is meant as it is certain: what a decision of the plan may leave out (the arm not taken, the losers of a race) precedes
only what depends on the same decision. Nothing here blames anybody; `scenarios.joining` joins the events.
"""

from __future__ import annotations

import bisect
import functools
import itertools
from collections.abc import Iterator, Mapping

import attrs

from scenarios.bodies import ArtifactEntry, EventPage, Journal
from scenarios.history import ACCEPTED, Closed, Died, History, Quiet, Resumed, Stalled, Started
from scenarios.joining import (
    accepted_of,
    asks_of,
    authority_of,
    commands_of,
    fired_of,
    first_of,
    halts_of,
    journals_among,
    listings_among,
    of_kind,
    pages_among,
    pauses_of,
    requests_of,
    signals_among,
    statuses_of,
    stopped_spans,
    storm_of,
    workers_of,
)
from scenarios.observed import Ask, Command, Request, Said, Seen, Signal
from scenarios.plan import SEMANTICS, Approve, Call, Check, Model, Requester, Semantics
from scenarios.remembered import latest

#: A service that answered within this time answered before any sane client gave up on it (a scripted "slow" is longer).
PROMPT_NS = 150_000_000
#: States of an operation that a run which is done has nothing left in, if its plan owes it.
_STILL_TO_COME = frozenset({"planned", "dispatched"})
#: A segment that the world has lost comes a second later, and so may what is said because of it.
_LINGERS_NS = 2_000_000_000
#: Who has authority, unless it was withdrawn.
AUTHORISED = ("alice",)


@attrs.frozen(slots=False)  # or every attribute is looked for by `__getattr__`, for the cached ones
class Facts:
    """Everything the judges share about one history. Lists are in order of observation."""

    history: History
    requests: tuple[Request, ...]  # of calls, models and compensations
    others: tuple[Request, ...]  # of artifacts, checks and approvals (asking the desk)
    asks: tuple[Ask, ...]
    statuses: tuple[Seen, ...]
    signals: tuple[Signal, ...]  # of the plan's own
    commands: tuple[Command, ...]  # these, and directions, notices, decisions, cancellations, pauses and goings on
    journals: tuple[Said[Journal], ...]
    pages: tuple[Said[EventPage], ...]
    listings: tuple[Said[tuple[ArtifactEntry, ...]], ...]  # of artifacts
    before: Mapping[str, tuple[str, ...]]  # leaf → the leaves directly and certainly before it
    after: Mapping[str, tuple[str, ...]]
    ancestors: Mapping[str, frozenset[str]]  # leaf → everything it certainly depends on
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
    fired: tuple[tuple[int, str, str], ...]  # index, action and label of each interruption
    authority: Mapping[str, tuple[tuple[int, bool], ...]]  # actor → when it was granted or withdrawn
    stopped: tuple[tuple[int, int], ...]  # spans of events in which the run was certainly paused
    quiet: int | None
    closed: int | None

    # --- requests -------------------------------------------------------------------------------------------------

    def dispatches(self, op: str) -> tuple[Request, ...]:
        """Requests to carry out `op` (lookups left out)."""
        return self._by_op.get((op, False), ())

    def lookups(self, op: str) -> tuple[Request, ...]:
        return self._by_op.get((op, True), ())

    @functools.cached_property
    def _by_op(self) -> Mapping[tuple[str, bool], tuple[Request, ...]]:
        """Requests of each operation, without and with look-ups, of the list that its kind of operation is in."""
        found: dict[tuple[str, bool], list[Request]] = {}
        for requests, are_calls in ((self.requests, True), (self.others, False)):
            for request in requests:
                if (request.op in self.calls) is are_calls:
                    found.setdefault((request.op, request.event.lookup), []).append(request)
        return {key: tuple(requests) for key, requests in found.items()}

    @functools.cached_property
    def sent(self) -> tuple[Request, ...]:
        """Everything this run's operations sent, in order of observation."""
        return tuple(sorted((*self.requests, *self.others), key=lambda request: request.at))

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

    def asleep(self, request: Request) -> bool:
        """Was its worker stopped when this request came in, so that it could not take the answer?"""
        worker = request.event.incarnation
        stop = max((at for at in self.paused.get(worker, ()) if at < request.at), default=request.at)
        since = self.history.events[stop : request.at]
        return bool(since) and not any(isinstance(one, Resumed) and one.incarnation == worker for one in since)

    def cut_at(self, request: Request) -> int | None:
        """When the worker behind a request was first killed or paused after sending it; None if it never was."""
        worker = request.event.incarnation
        moments = [at for at in (self.died.get(worker), *self.paused.get(worker, ())) if at is not None]
        return min((at for at in moments if at > request.at), default=None)

    def uncertain(self, request: Request, before: int | None = None) -> bool:
        """Could the harness be left not knowing what became of this request (as of event `before`)?

        Nothing definite was sent, or the worker was cut before the operation is known accepted: also while the request was on
        its way, so that nobody was there to be answered.
        """
        end = len(self.history.events) if before is None else before
        definite = request.replied_at is not None and request.replied_at < end and not request.unanswered
        if not definite or request.idle:
            return not definite
        died = self.died.get(request.event.incarnation, request.at)
        cut = died if died < request.at else self.cut_at(request)
        return cut is not None and cut < end and cut < self.accepted_at.get(request.op, end)

    def unexplained(self, op: str) -> Iterator[tuple[Request, Request]]:
        """Pairs of an answered request and a repeat of it that no crash, pause, lost reply, error or delay explains.

        Nor an answer of the wrong shape, which a harness may ask for again.
        """
        leaf = self.calls.get(op)
        if isinstance(leaf, Model) and "wrong" in leaf.script:
            return
        timely = [request for request in self.dispatches(op) if not self.late(request)]
        for earlier, later in itertools.pairwise(timely):
            calm = not self.asleep(earlier) and not self.halted(earlier.at, later.at)
            if calm and earlier.answer is not None and self.is_prompt(earlier):
                yield earlier, later

    def is_prompt(self, request: Request) -> bool:
        """Was it answered before any sane client gave up on it?"""
        return request.reply is not None and self.is_young(request, request.reply.at_ns)

    def is_young(self, request: Request, at_ns: int) -> bool:
        """Had it just been sent? When the machine stood still it may have waited to be seen."""
        return self.age_ns(request, at_ns) < PROMPT_NS

    def age_ns(self, request: Request, at_ns: int) -> int:
        """How long before `at_ns` it may have been sent: it may have waited for as long as nobody looked."""
        since_ns = request.event.at_ns - PROMPT_NS
        stalls = (one for _, one in of_kind(self.history, Stalled))
        return at_ns - request.event.at_ns + sum(one.ns for one in stalls if since_ns < one.at_ns < at_ns + one.ns)

    def answered_before(self, op: str, index: int) -> bool:
        """Had anything definite been sent for `op` before event `index`? (A receiver's notice is definite.)"""
        settled = any(request.op == op and request.settled_before(index) for request in self.requests)
        return settled or any(one.asked_at < index for one in self.notices(op))

    def may_have_begun(self, leaf: str) -> bool:
        """Can the run have come as far as this leaf? Not while a call before it has had no definite answer at all."""
        return not any(self.missing(leaf, len(self.history.events)))

    def missing(self, leaf: str, index: int) -> Iterator[str]:
        """Calls certainly before `leaf` that nothing definite had been sent for before event `index`, in written order.

        What is tolerated may have been given up without an answer.
        """
        for op in self.calls:
            if op in self.ancestors[leaf] and not self.is_tolerated(op) and not self.answered_before(op, index):
                yield op

    def refusal_before(self, index: int, op: str | None = None) -> bool:
        """Was a definite refusal sent before `index`, for `op` or for any operation?"""
        return any(
            request.settled_before(index) for request in self._refused_requests if op is None or request.op == op
        )

    @functools.cached_property
    def _refused_requests(self) -> tuple[Request, ...]:
        return tuple(request for request in self.requests if request.refused)

    # --- time -----------------------------------------------------------------------------------------------------

    def held_up(self, index: int) -> bool:
        """Did the world misbehave at event `index`, or had it until just then, so that it may have been on its way since?"""
        begins, ends = self.storm
        if index < begins or not self.is_stormy:
            return False
        return index < ends or self.at_ns(index) - self.at_ns(ends) <= _LINGERS_NS

    def halted(self, start: int, end: int) -> bool:
        """Did anything stop, resume or disturb workers or services between two events?"""
        begins, ends = self.storm
        return _between(self.halts, start, end) or (start < ends and begins < end)

    def death_between(self, start: int, end: int) -> bool:
        return _between(self.deaths, start, end)

    def at_ns(self, index: int) -> int:
        return self.history.events[index].at_ns

    def lost_ns(self, since_ns: int, until_ns: int) -> int:
        """How much of this time the machine stood still: what anybody began in it may take so much longer to be seen."""
        stalls = (one for _, one in of_kind(self.history, Stalled))
        return sum(max(0, min(until_ns, one.at_ns) - max(since_ns, one.at_ns - one.ns)) for one in stalls)

    # --- asks and statuses ----------------------------------------------------------------------------------------

    def asked(self, verb: str) -> tuple[Ask, ...]:
        """Asks of a verb. A start that misuses the run's id for another plan is none of the run's (see `misuses`)."""
        return self._asked.get(verb, ())

    @functools.cached_property
    def _asked(self) -> Mapping[str, tuple[Ask, ...]]:
        found: dict[str, list[Ask]] = {}
        for ask in self.asks:
            if not _is_misuse(ask):
                found.setdefault(ask.event.verb, []).append(ask)
        return {verb: tuple(asks) for verb, asks in found.items()}

    def misuses(self) -> tuple[Ask, ...]:
        """Starts of another plan under the run's id."""
        return tuple(ask for ask in self.asks if _is_misuse(ask))

    def ordered(self, verb: str) -> tuple[Command, ...]:
        """Commands of a verb: `cancel`, `pause`, `unpause`, `decide`."""
        return tuple(one for one in self.commands if one.verb == verb)

    def decisions(self, approve: str | None = None) -> tuple[Command, ...]:
        """Decisions (of this approval)."""
        return tuple(one for one in self.ordered("decide") if approve in {None, one.about})

    def steers(self, op: str | None = None) -> tuple[Command, ...]:
        """Directions (for this operation), in the order in which they were given."""
        return self._reserved("steer", op)

    def notices(self, op: str | None = None) -> tuple[Command, ...]:
        """Receivers' notices (of this operation's effect)."""
        return self._reserved("notice", op)

    def _reserved(self, name: str, op: str | None) -> tuple[Command, ...]:
        return tuple(
            one for one in self.commands if (one.verb, one.name) == ("signal", name) and op in {None, one.about}
        )

    def cancelled_at(self) -> int | None:
        """Index of the first acknowledgement that the run will be cancelled; one that came too late is none."""
        oks = (one.ok_at for one in self.ordered("cancel") if one.disposition != "too-late")
        return min((at for at in oks if at is not None), default=None)

    def stopped_at(self, index: int) -> bool:
        """Was the run certainly paused at event `index`?"""
        return any(begin < index < end for begin, end in self.stopped)

    def has_authority(self, actor: str | None, index: int) -> bool:
        """May `actor` decide, as of event `index`?"""
        changes = [granted for at, granted in self.authority.get(actor or "", ()) if at < index]
        return changes[-1] if changes else actor in AUTHORISED

    @functools.cached_property
    def shows_answers(self) -> bool:
        """Do statuses tell with what an operation was accepted? Where none ever does, no answer shown says nothing."""
        return any(shown.nonce is not None for seen in self.statuses for shown in seen.status.operations)

    def start_ok(self) -> Ask | None:
        """The first start that was acknowledged."""
        return self._start_ok

    @functools.cached_property
    def _start_ok(self) -> Ask | None:
        return next((ask for ask in self.asked("start") if ask.outcome == "ok"), None)

    def seen_after(self, index: int) -> tuple[Seen, ...]:
        """Statuses asked after event `index`."""
        return tuple(seen for seen in self.statuses if seen.asked > index)

    def last_seen(self) -> Seen | None:
        return self.statuses[-1] if self.statuses else None

    def is_revocable(self, op: str) -> bool:
        """May what was accepted of `op` be taken back? A decision, once something else is proposed; a check, once its subject
        has a newer version.
        """
        return isinstance(self.history.plan.leaf(op), Approve | Check)

    def is_tolerated(self, op: str) -> bool:
        """Is a definite refusal an outcome of this operation that may be accepted, without an answer?"""
        call = self.calls.get(op)
        return isinstance(call, Call) and call.tolerate

    def is_settled(self, done: Seen, op: str) -> bool:
        """Does a done status leave `op` among what was carried out?

        It may keep one failed, skipped or unresolved, and say so; what it does not list, or lists as still to come, was carried
        out if the plan owes it. A refusal that is tolerated is an outcome that it may have accepted, without an answer.
        """
        shown = done.operation(op)
        if shown is None or shown.state in _STILL_TO_COME:
            return self.history.plan.is_owed(op)
        return shown.state in ACCEPTED and (shown.nonce is not None or not self.is_tolerated(op))

    # --- what was done to it ---------------------------------------------------------------------------------------

    @property
    def is_stormy(self) -> bool:
        """Did the world itself misbehave for a while, so that what was on its way may have come late, twice or never?"""
        return self.storm != (0, 0)

    def struck(self, action: str, before: int | None = None) -> bool:
        """Did an interruption of this kind take place (before event `before`)?"""
        return any(name == action and (before is None or at < before) for at, name, _ in self.fired)

    def expired(self, op: str, before: int) -> bool:
        """Had a receiver forgotten the key of `op` before its time, by event `before`?"""
        return any(at < before and label.startswith(f"expire@{op}#") for at, _, label in self.fired)

    def codes(self) -> tuple[tuple[int, str], ...]:
        """The code versions that workers came up with, and when."""
        return self._codes

    @functools.cached_property
    def _codes(self) -> tuple[tuple[int, str], ...]:
        events = ((at, self.history.events[at]) for at in sorted(self.started[worker] for worker in self.workers))
        return tuple((at, event.code) for at, event in events if isinstance(event, Started))

    def code_changed(self) -> bool:
        """Does the latest worker run other code than the first?"""
        codes = self.codes()
        return bool(codes) and codes[-1][1] != codes[0][1]

    def closed_as(self) -> str | None:
        event = self.history.events[self.closed] if self.closed is not None else None
        return event.reason if isinstance(event, Closed) else None


@latest
def look(history: History) -> Facts:
    """The facts of `history`."""
    plan, events = history.plan, history.events
    graph = plan.dependencies()
    ancestors = plan.certain()
    requests, others = requests_of(history)
    asks = asks_of(history)
    statuses = statuses_of(asks)
    commands = commands_of(asks)
    halts = halts_of(history)
    sent = sorted((*requests, *others), key=lambda request: request.at)
    lost = (request.replied_at for request in sent if request.unanswered and request.replied_at is not None)
    return Facts(
        history=history,
        requests=requests,
        others=others,
        asks=asks,
        statuses=statuses,
        signals=signals_among(commands),
        commands=commands,
        journals=journals_among(asks),
        pages=pages_among(asks),
        listings=listings_among(asks),
        before={leaf: tuple(one for one in graph.predecessors(leaf) if one in ancestors[leaf]) for leaf in ancestors},
        after={leaf: tuple(one for one in graph.successors(leaf) if leaf in ancestors[one]) for leaf in ancestors},
        ancestors=ancestors,
        calls={call.id: call for call in plan.calls()},
        accepted_at=accepted_of(plan, sent, statuses, ancestors),
        started=first_of(history, Started),
        workers=workers_of(history, sent),
        died=first_of(history, Died),
        paused=pauses_of(history),
        deaths=tuple(at for at, _ in of_kind(history, Died)),
        storm=storm_of(history),
        halts=halts,
        troubles=tuple(sorted({*halts, *lost})),
        fired=fired_of(history),
        authority=authority_of(history),
        stopped=tuple(stopped_spans(commands, len(events))),
        quiet=next((at for at, _ in of_kind(history, Quiet)), None),
        closed=next((at for at, _ in of_kind(history, Closed)), None),
    )


def _is_misuse(ask: Ask) -> bool:
    return ask.event.verb == "start" and ask.event.payload is not None


def _between(indexes: tuple[int, ...], start: int, end: int) -> bool:
    position = bisect.bisect_right(indexes, start)
    return position < len(indexes) and indexes[position] < end

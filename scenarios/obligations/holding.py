"""OWN-4 6 10: work goes to another when its owner is gone, only then, and whatever the clocks say."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from scenarios.history import TERMINAL, Answered, Asked, History, Received
from scenarios.index import Facts, look
from scenarios.obligations.registry import blame, obligation
from scenarios.observed import Request
from scenarios.plan import SEMANTICS
from scenarios.reasons import is_fragile
from scenarios.repetition import timely
from scenarios.tenure import Overtaken, is_known_only_by, long_held, overtaken, stops, twins
from scenarios.verdict import Finding, Violation

#: Stopped for so many leases, with a successor up, an owner has certainly stalled.
_LEASES = 5


@attrs.frozen
class _Loss:
    """A request whose worker was lost before anything was answered; `op` is what it had in hand, `lost` is when that was, and
    `until` when it was to be another's.
    """

    request: Request
    op: str
    lost: int
    until: int
    has_stalled: bool


@obligation(
    "OWN-4",
    kind="liveness",
    profile="Ownership",
    promise="Work whose owner has died or stalled is given to another, which need not wait for the first to come back.",
    tested_by="kill the owner, or stop it for many leases, with a call in hand, also one that it has not sent yet",
    anomaly="stuck",
    minimum=2,
    causes=(
        "an owner counts as alive as long as anybody of its name is",
        "only a broken connection gives work back, and a stopped process keeps its connections",
        "the search for lost work stops at the first error it meets",
    ),
    learnt_from=("F02", "F28", "F50"),
)
def lost_work_is_given_to_another(history: History) -> Finding:
    facts = look(history)
    every = (*_orphans(facts), *_stalled(facts), *_unsent(facts))
    losses = [one for one in every if _can_be_taken(facts, one)]
    taken = [one for one in losses if _was_taken(facts, one)]
    found: dict[str, Violation] = {}
    for one in losses:
        if one not in taken and (one.has_stalled or _is_left(facts)):
            found.setdefault(one.op, _left(one))
    tested = len(taken) + len(found)
    return Finding(tested, tuple(found.values()), slow=tested > 0 and facts.closed_as() == "slow")


def _orphans(facts: Facts) -> Iterator[_Loss]:
    """The last request of each call whose worker died before it was answered."""
    end = len(facts.history.events)
    for op in facts.calls:
        for request in timely(facts, op):
            died = facts.died.get(request.event.incarnation)
            if died is not None and request.at < died and (request.replied_at is None or request.replied_at > died):
                yield _Loss(request, op, died, end if facts.closed is None else facts.closed, has_stalled=False)


def _unsent(facts: Facts) -> Iterator[_Loss]:
    """Questions at the desk whose workers died over them: each had what was approved in hand, and had not sent it."""
    end = len(facts.history.events) if facts.closed is None else facts.closed
    for approve in facts.history.plan.approvals():
        for asked in facts.lookups(approve.id):
            died = facts.died.get(asked.event.incarnation)
            if died is not None and asked.at < died and (asked.replied_at is None or asked.replied_at > died):
                yield _Loss(asked, approve.of, died, end, has_stalled=False)


def _stalled(facts: Facts) -> Iterator[_Loss]:
    """Requests whose worker was stopped for many leases, with a successor up and nothing else in the way."""
    lease_ns = facts.history.declared.lease_ns
    if lease_ns is None or facts.is_stormy:
        return
    for worker, paused, resumed in stops(facts):
        ups = sorted(at for at in _ready(facts, paused) if at < resumed)
        if (
            not ups
            or facts.at_ns(resumed) - facts.at_ns(ups[0]) < _LEASES * lease_ns
            or facts.death_between(paused, resumed)
        ):
            continue
        for op in facts.calls:
            for request in timely(facts, op):
                is_open = request.replied_at is None or request.replied_at > paused
                if request.event.incarnation == worker and request.at < paused and is_open:
                    yield _Loss(request, op, paused, resumed, has_stalled=True)


def _ready(facts: Facts, after: int) -> Iterator[int]:
    """When each worker that was started after some moment first said anything, to a receiver or to the kit: what takes its time
    to start is not there yet.
    """
    events = facts.history.events
    asked = {one.ask: one.incarnation for one in events if isinstance(one, Asked)}
    heard = dict[int, int]()
    for at, one in enumerate(events):
        match one:
            case Received():
                heard.setdefault(one.incarnation, at)
            case Answered() if one.ask in asked and one.outcome != "indefinite":
                heard.setdefault(asked[one.ask], at)
    return (heard[other] for other in facts.workers if other in heard and facts.started.get(other, -1) > after)


def _can_be_taken(facts: Facts, one: _Loss) -> bool:
    """Was it not sent, or is it repeatable or can it be looked up; and is it wanted by the run whatever is decided?"""
    plan = facts.history.plan
    if plan.guards(one.op) or facts.cancelled_at() is not None or facts.stopped:
        return False
    if one.op != one.request.op:
        return not facts.struck("revoke")
    return SEMANTICS[facts.calls[one.op].service] != "blind" and not is_fragile(facts)


def _was_taken(facts: Facts, one: _Loss) -> bool:
    """Did another worker ask for it, or about it, in time?"""
    return any(
        other.op in {one.op, one.request.op}
        and other.event.incarnation != one.request.event.incarnation
        and one.lost < other.at < one.until
        for other in facts.sent
    )


def _is_left(facts: Facts) -> bool:
    """Is the run still open though nothing has been in its way for long?"""
    last = facts.last_seen()
    over = last is not None and last.status.state in TERMINAL
    return facts.closed_as() == "bound" and facts.quiet is not None and facts.start_ok() is not None and not over


def _left(one: _Loss) -> Violation:
    op, worker = one.op, one.request.event.incarnation
    how = "was stopped for long" if one.has_stalled else "died"
    sentence = f"Worker {worker} {how} with {op!r} in hand, and nobody took it over."
    return blame("stuck", sentence, (one.request.at, one.lost), op)


@obligation(
    "OWN-6",
    kind="safety",
    profile="Ownership",
    promise="A clock that jumps takes no work from its owner, and lets no result of a replaced one count.",
    tested_by="the wall clocks of engine and worker set an hour ahead and back over calls that take long, and over pauses",
    anomaly=("duplicate effect", "stale acceptance"),
    minimum=1,
    causes=(
        "leases are moments of the wall clock",
        "the worker compares its own clock with the engine's",
        "the owner is judged by the time of day it last wrote down",
    ),
    learnt_from=("F25",),
    scenarios=("clocks",),
)
def jumping_clock_moves_no_ownership(history: History) -> Finding:
    facts = look(history)
    jumps = [at for at, action, _ in facts.fired if action == "jump"]
    if not jumps:
        return Finding()
    held = [one for one in long_held(facts) if any(at < (one.replied_at or 0) for at in jumps)]
    rivals = [one for one in overtaken(facts) if jumps[0] < one.resumed and is_known_only_by(facts, one.old)]
    doubled = [(one, other) for one, other in twins(facts) if jumps[0] < other.at]
    found = [_doubled(one, other, jumps) for one, other in doubled]
    found += [violation for one in rivals if (violation := _stale(facts, one, jumps))]
    return Finding(len(held) + len(rivals) + len(doubled), tuple(found))


def _doubled(one: Request, other: Request, jumps: list[int]) -> Violation:
    sentence = (
        f"A clock had jumped; worker {one.event.incarnation} was alive and waited for {one.op!r}, and worker "
        f"{other.event.incarnation} was given it as well."
    )
    return blame("duplicate effect", sentence, (jumps[0], one.at, other.at), one.op)


def _stale(facts: Facts, one: Overtaken, jumps: list[int]) -> Violation | None:
    seen = next(
        (seen for seen in facts.seen_after(one.resumed) if seen.accepted().get(one.old.op) == one.old.answer), None
    )
    if seen is None:
        return None
    sentence = (
        f"A clock had jumped; {one.old.op!r} had gone from worker {one.old.event.incarnation} to worker "
        f"{one.new.event.incarnation}, and the answer of the first was accepted."
    )
    evidence = (jumps[0], one.old.at, one.new.at, one.resumed, seen.answered)
    return blame("stale acceptance", sentence, evidence, one.old.op)


@obligation(
    "OWN-10",
    kind="safety",
    profile="Ownership",
    promise="An owner that is alive gets no twin: not for being slow, for working long, for being quiet, nor for its name.",
    tested_by="answers that take longer than a lease, and a second worker of the same name",
    anomaly="duplicate effect",
    minimum=2,
    causes=(
        "a lease counts from when the work was given out, and is not renewed",
        "a worker that comes up takes back what anybody of its name held",
        "a connection on which nothing was said for long counts as broken",
    ),
    learnt_from=("F19", "F48", "F50", "F51"),
)
def living_owner_gets_no_twin(history: History) -> Finding:
    facts = look(history)
    calm = not facts.struck("jump")
    pairs = list(twins(facts)) if calm else []
    tested = list(long_held(facts)) if calm else []
    found: dict[str, Violation] = {}
    for earlier, later in pairs:
        found.setdefault(earlier.op, _twin(earlier, later))
    return Finding(len(tested) + len(found), tuple(found.values()))


def _twin(earlier: Request, later: Request) -> Violation:
    one, other = earlier.event.incarnation, later.event.incarnation
    waited_ms = (later.event.at_ns - earlier.event.at_ns) // 1_000_000
    whom = "the same worker" if one == other else f"worker {other}"
    sentence = (
        f"Worker {one} was alive and had waited for {earlier.op!r} for {waited_ms} ms when {whom} was given it as well."
    )
    return blame("duplicate effect", sentence, (earlier.at, later.at), earlier.op)

"""RTY-1 2 3 4 5 6: how often something is tried, how soon again, and when no more."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from scenarios.history import TERMINAL, Died, History
from scenarios.index import PROMPT_NS, Facts, look
from scenarios.obligations.registry import blame, obligation
from scenarios.observed import Request
from scenarios.outlived import went_on
from scenarios.plan import Call, Loop, Model, Plan, Requester
from scenarios.repetition import is_calm, repeats_of_refusals, timely
from scenarios.terms import ON_ITS_WAY_NS
from scenarios.unrolling import walk
from scenarios.verdict import Finding, Violation

#: So many clients in one outage make a herd; with fewer, chance could look like keeping step.
_HERD = 10
#: Waits between tries that are compared: the first and the sixth, which has grown by this factor at least. A busy machine
#: adds to both, and what has doubled five times is more than that.
_GAPS = 6
_GROWTH = 1.5
#: Waits that differ by no more than this part of them keep step; what the network adds now and then is nobody's choice, so
#: that many keeping step are enough.
_IN_STEP = 0.05
_MANY = 2 / 3
#: In this part of a usual wait so many do not come by chance; and a wait is usual after so many failures.
_PART = 1 / 2
_ALMOST_ALL = 0.9
_FAILURES = 4


def _limited(facts: Facts) -> list[tuple[Call, int]]:
    """The calls that may be tried so many times, with the limit."""
    return [(call, call.tries) for call in facts.calls.values() if isinstance(call, Call) and call.tries is not None]


@obligation(
    "RTY-1",
    kind="safety",
    profile="Effects",
    promise="All the requests that carry out one operation, over all crashes and workers, stay within its limit of tries.",
    tested_by="kill of worker and server between the tries of a call that goes on failing",
    anomaly="overspend",
    minimum=3,
    causes=(
        "tries are counted in memory, so that a restart begins anew",
        "tries are counted by each worker for itself",
        "a try is counted when it is reported, so that those whose worker died are free",
    ),
    learnt_from=("F43", "F46"),
)
def tries_stay_within_their_limit(history: History) -> Finding:
    facts = look(history)
    exercised = 0
    found: list[Violation] = []
    for call, tries in _limited(facts):
        sent = facts.dispatches(call.id)
        exercised += sum(facts.death_between(one.at, two.at) for one, two in itertools.pairwise(sent))
        if len(sent) > tries:
            workers = len({request.event.incarnation for request in sent})
            by = f"by {workers} workers" if workers > 1 else "by one worker"
            sentence = f"{call.id!r} may be tried {tries} times, and was sent {len(sent)} times {by}."
            found.append(blame("overspend", sentence, (request.at for request in sent), call.id))
    return Finding(exercised, tuple(found))


@obligation(
    "RTY-2",
    kind="safety",
    profile="Effects",
    promise="The limit on the time for an operation runs from its first try, through every crash.",
    tested_by="worker or server down for longer than a failing call may go on",
    anomaly="overspend",
    minimum=1,
    causes=(
        "the time is taken by a stopwatch of the process, which a restart starts anew",
        "the limit is looked at when a try fails, and not again before the next one leaves",
        "each try has the whole time for itself",
    ),
    learnt_from=("F51",),
)
def elapsed_time_runs_from_the_first_try(history: History) -> Finding:
    facts = look(history)
    exercised = 0
    found: list[Violation] = []
    for call in facts.calls.values():
        sent = timely(facts, call.id)
        if not isinstance(call, Call) or call.elapsed_ns is None or not sent or facts.struck("jump"):
            continue
        until_ns = sent[0].event.at_ns + call.elapsed_ns
        exercised += _ran_out_unsettled(facts, call, sent[0], until_ns)
        late = [one for one in sent if one.event.at_ns > until_ns + _on_its_way_ns(facts, sent[0], one)]
        if late and not facts.held_up(late[0].at):
            sentence = (
                f"{call.id!r} may be tried for {call.elapsed_ns / 1e9:g} s, and was sent "
                f"{(late[0].event.at_ns - sent[0].event.at_ns) / 1e9:.3g} s after its first try."
            )
            found.append(blame("overspend", sentence, (sent[0].at, late[0].at), call.id))
    return Finding(exercised, tuple(found))


def _on_its_way_ns(facts: Facts, first: Request, one: Request) -> int:
    """How long after its time a request may arrive."""
    return ON_ITS_WAY_NS + facts.lost_ns(first.event.at_ns, one.event.at_ns)


def _ran_out_unsettled(facts: Facts, call: Call, first: Request, until_ns: int) -> bool:
    """Did the time of a call run out over a crash that the run outlived, with nobody having answered it until then?"""
    events = facts.history.events
    over = next((index for index, event in enumerate(events) if event.at_ns > until_ns), None)
    if over is None or facts.answered_before(call.id, over):
        return False
    return any(first.at < death < over and went_on(facts, death) for death in facts.deaths)


@obligation(
    "RTY-3",
    kind="safety",
    profile="Effects",
    promise="What a receiver definitely refuses is not sent again unchanged, and the caller is told why the run failed.",
    tested_by="receivers that answer 4xx",
    anomaly=("overspend", "amnesia"),
    minimum=3,
    causes=(
        "every error is retried, whatever it says",
        "a refusal is wrapped in an error of another kind on its way up, which counts as passing",
        "the status of a failed run says that it failed, and no more",
    ),
    learnt_from=("F40",),
)
def refusal_is_not_repeated_and_is_told(history: History) -> Finding:
    facts = look(history)
    exercised = 0
    found: list[Violation] = []
    for call in facts.calls.values():
        exercised += sum(request.refused for request in timely(facts, call.id))
        pair = next(repeats_of_refusals(facts, call.id), None)
        if pair is not None:
            earlier, later = pair
            status = earlier.reply.status if earlier.reply is not None else 0
            sentence = f"{call.service} refused {call.id!r} for good ({status}); it was sent again as it was."
            found.append(blame("overspend", sentence, (earlier.at, later.at), call.id))
    found += _untold(facts)
    return Finding(exercised, tuple(found))


def _untold(facts: Facts) -> Iterator[Violation]:
    """A run that failed after a refusal, and whose status gives no reason at all when all is over."""
    last = facts.last_seen()
    if last is None or facts.closed is None or last.status.state != "failed" or not facts.refusal_before(last.asked):
        return
    details = [shown.detail for shown in last.status.operations if shown.state == "failed"]
    if not any(text and text.strip() for text in (last.status.error, last.status.reason, *details)):
        refused = next(one for one in facts.requests if one.refused)
        sentence = (
            f"{refused.event.service} refused {refused.op!r}, run {facts.history.run!r} failed, and no status says why."
        )
        yield blame("amnesia", sentence, (refused.at, last.asked, last.answered), refused.op)


@obligation(
    "RTY-4",
    kind="safety",
    profile="Effects",
    level="SHOULD",
    promise="Waits between tries grow, and clients that failed together do not come back together.",
    tested_by="a dozen calls side by side in one outage of their receiver, also with the server killed meanwhile",
    anomaly="overspend",
    minimum=1,
    causes=(
        "the wait between tries is a constant",
        "the wait doubles, by the same formula for everybody and with nothing left to chance",
        "a restart takes all that is waited with for due",
    ),
    learnt_from=("F40",),
)
def waits_grow_and_keep_no_step(history: History) -> Finding:
    facts = look(history)
    herds = list(_waiting(facts))
    if (stampede := next((one for herd in herds if (one := _at_once(facts, *herd))), None)) is not None:
        return Finding(1, (stampede,))
    herd = [gaps for call in facts.calls.values() if (gaps := _gaps(facts, call))]
    if len(herd) < _HERD:
        return Finding(len(herds))
    evidence = tuple(request.at for _, requests in herd for request in (requests[0], requests[-1]))
    first, last = (sorted(waits[number] for waits, _ in herd)[len(herd) // 2] for number in (0, _GAPS - 1))
    if last < _GROWTH * first:
        sentence = (
            f"{len(herd)} calls failed {_GAPS} times each; their waits before the last repeat (about {last / 1e6:.3g} ms) were "
            f"hardly longer than before the first ({first / 1e6:.3g} ms)."
        )
        return Finding(1, (blame("overspend", sentence, evidence),))
    waits_ns = [waits[_GAPS - 1] for waits, _ in herd]
    together = _in_step(waits_ns)
    if together >= _MANY * len(herd):
        sentence = (
            f"{len(herd)} calls failed {_GAPS} times each, and {together} of them waited as long before the last repeat as the "
            f"others (about {last / 1e6:.3g} ms)."
        )
        return Finding(1, (blame("overspend", sentence, evidence),))
    return Finding(1)


def _waiting(facts: Facts) -> Iterator[tuple[int, int, list[tuple[Request, Request]]]]:
    """Deaths of a server while a herd of failed calls was waited with: the event, how long they are usually waited with (ns),
    and of each call the request that had failed and the next one.
    """
    for died in facts.deaths:
        death = facts.history.events[died]
        pairs = [pair for call in facts.calls.values() if (pair := _waited_with(facts, call, died))]
        if len(pairs) < _HERD or not isinstance(death, Died) or death.incarnation in facts.workers:
            continue
        waits_ns = sorted(wait_ns for wait_ns, _, _ in pairs)
        yield died, waits_ns[len(pairs) // 2], [(failed, repeat) for _, failed, repeat in pairs]


def _waited_with(facts: Facts, call: Requester, died: int) -> tuple[int, Request, Request] | None:
    """How long a call was last waited with, the request that failed before a death, and the one that followed after that; None
    where somebody was away in that time, who may have been waited for instead.
    """
    before = [one for one in facts.dispatches(call.id) if one.at < died]
    after = [one for one in facts.dispatches(call.id) if one.at > died]
    if len(before) < _FAILURES or not after or _was_held(facts, after[0]):
        return None
    if any(one.reply is None or (one.replied_at or died) >= died or one.reply.kind != "error" for one in before):
        return None
    assert before[-2].reply is not None
    if facts.death_between(before[-2].at, before[-1].at):
        return None
    return before[-1].event.at_ns - before[-2].reply.at_ns, before[-1], after[0]


def _was_held(facts: Facts, request: Request) -> bool:
    """Had the run been asked to pause before this request, so that it may have waited for that to end?"""
    return any(one.asked_at < request.at for one in facts.ordered("pause"))


def _at_once(facts: Facts, died: int, wait_ns: int, herd: Sequence[tuple[Request, Request]]) -> Violation | None:
    """Almost all of them come in a part of their time, because the server was away for a moment."""
    over_ns = facts.at_ns(died) + int(wait_ns * _PART)
    early = [repeat for _, repeat in herd if repeat.event.at_ns <= over_ns]
    if len(early) < _ALMOST_ALL * len(herd):
        return None
    sentence = (
        f"{len(herd)} calls had failed and were waited with for about {wait_ns / 1e6:.3g} ms when the server died; "
        f"{len(early)} of them came in the first half of that, as soon as it was back."
    )
    return blame("overspend", sentence, (*(failed.at for failed, _ in herd), died, *(one.at for one in early)))


def _in_step(waits_ns: Sequence[int]) -> int:
    """How many of the waits are the same, as near as can be seen: the most that lie within `_IN_STEP` of one."""
    return max(sum(low <= other <= low * (1 + _IN_STEP) for other in waits_ns) for low in waits_ns)


def _gaps(facts: Facts, call: Requester) -> tuple[list[int], tuple[Request, ...]] | None:
    """How long a call was waited with before each of its first repeats, with the requests; None unless it failed often enough,
    by errors only, and undisturbed.
    """
    sent = facts.dispatches(call.id)[: _GAPS + 1]
    if len(sent) <= _GAPS or facts.halted(0, sent[-1].at) or _was_held(facts, sent[-1]):
        return None
    if facts.lost_ns(sent[0].event.at_ns, sent[-1].event.at_ns) > PROMPT_NS:  # waits were longer than the worker's own
        return None
    waits: list[int] = []
    for earlier, later in itertools.pairwise(sent):
        reply = earlier.reply
        if reply is None or earlier.replied_at is None or (reply.kind, reply.delivery) != ("error", "sent"):
            return None
        waits.append(later.event.at_ns - reply.at_ns)
    return waits, sent


@obligation(
    "RTY-5",
    kind="safety",
    profile="Effects",
    promise="Layers of retries do not multiply: one of them owns repetition, and counts every request there is.",
    tested_by="receivers that go on failing, with nothing else disturbed",
    anomaly="overspend",
    minimum=2,
    causes=(
        "the client library retries what the worker retries and the workflow retries again",
        "a task queue delivers anew what its handler has tried several times already",
        "only the outermost layer counts",
    ),
    learnt_from=("F46", "F48"),
)
def layers_of_retries_do_not_multiply(history: History) -> Finding:
    facts = look(history)
    last = facts.last_seen()
    limits = {call.id: tries for call, tries in _limited(facts)}
    exercised = 0
    found: list[Violation] = []
    if last is None or not is_calm(facts, last.asked):
        return Finding()
    for call in facts.calls.values():
        sent = [request for request in facts.dispatches(call.id) if request.at < last.asked]
        shown = last.operation(call.id)
        told = shown.tries if shown is not None and last.status.state in TERMINAL else None
        if len(sent) < 2 or (told is None and call.id not in limits):
            continue
        exercised += 1
        counted = min(one for one in (told, limits.get(call.id)) if one is not None)
        if len(sent) > counted:
            by = "counted" if counted == told else "allowed"
            sentence = (
                f"{call.id!r} was sent {len(sent)} times where {counted} tries were {by}, and nothing had crashed."
            )
            found.append(blame("overspend", sentence, (*(request.at for request in sent), last.answered), call.id))
    return Finding(exercised, tuple(found))


@obligation(
    "RTY-6",
    kind="safety",
    profile="Effects",
    promise="An agent that goes on proposing what is rejected comes to a bound, and the run says why it was stopped.",
    tested_by="a model in a loop all of whose proposals are refused",
    anomaly=("overspend", "amnesia"),
    minimum=2,
    causes=(
        "a refused proposal is handed back to the model without counting the turn",
        "the bound is kept by the process that runs the loop, and starts anew with it",
        "the loop is left silently, as if there were nothing more to do",
    ),
    learnt_from=("F13", "F57"),
)
def stubborn_agent_is_stopped(history: History) -> Finding:
    facts = look(history)
    exercised = 0
    found: list[Violation] = []
    for loop, models, proposals in _agents(history.plan):
        rejected = [one for op in proposals for one in facts.dispatches(op) if one.refused]
        exercised += len({one.op for one in rejected})
        if rejected and (violation := _unbounded(facts, loop, models, rejected)):
            found.append(violation)
        elif rejected:
            found += _stopped_silently(facts, loop, rejected)
    return Finding(exercised, tuple(found))


def _agents(plan: Plan) -> Iterator[tuple[Loop, Sequence[str], Sequence[str]]]:
    """Loops in which a model proposes what may be refused: with the ids of every round's models and proposals."""
    for loop in plan.operations():
        if not isinstance(loop, Loop):
            continue
        body = [op for child in loop.children for op in walk(child)]
        models = [op.id for op in body if isinstance(op, Model)]
        proposals = [op.id for op in body if isinstance(op, Call) and op.tolerate]
        if models and proposals:
            rounds = range(1, loop.times + 1)
            yield (
                loop,
                [f"{op}@{k}" for k in rounds for op in models],
                [f"{op}@{k}" for k in rounds for op in proposals],
            )


def _unbounded(facts: Facts, loop: Loop, models: Sequence[str], rejected: Sequence[Request]) -> Violation | None:
    """Was the model asked more often than the loop may turn, though nothing had been lost?"""
    again = [later for op in models if op in facts.calls for _, later in facts.unexplained(op)]
    turns = [facts.dispatches(op)[0] for op in models if op in facts.calls and facts.dispatches(op)]
    if not again or len(turns) + len(again) <= len(models):
        return None
    sentence = (
        f"What the model proposed in {loop.id!r} was refused; the loop turns {loop.times} times at most, and the model was "
        f"asked {len(turns) + len(again)} times."
    )
    return blame("overspend", sentence, (rejected[0].at, *(one.at for one in (*turns, *again))), loop.id)


def _stopped_silently(facts: Facts, loop: Loop, rejected: Sequence[Request]) -> Iterator[Violation]:
    """A run that ended without success after its proposals were refused, and gives no reason when all is over."""
    last = facts.last_seen()
    if (
        last is None
        or facts.closed is None
        or last.status.state not in TERMINAL - {"done"}
        or last.asked < rejected[-1].at
    ):
        return
    if not any(text and text.strip() for text in (last.status.error, last.status.reason)):
        sentence = (
            f"What the model proposed in {loop.id!r} was refused {len(rejected)} times; the run is {last.status.state}, and no "
            "status says why."
        )
        yield blame("amnesia", sentence, (rejected[-1].at, last.asked, last.answered), loop.id)

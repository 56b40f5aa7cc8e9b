"""VER-1 to VER-4: code that does not fit is noticed and loses nothing, and code that fits goes on."""

from __future__ import annotations

from collections.abc import Iterator

from scenarios.history import History
from scenarios.index import Facts, look
from scenarios.obligations.ends import lacks_word
from scenarios.obligations.registry import blame, obligation
from scenarios.observed import Seen
from scenarios.reasons import is_fragile
from scenarios.verdict import Finding, Violation
from scenarios.versions import Comer, comers, ends_fit, goes_on, is_older, misfits, moves, restored_at, work_at


@obligation(
    "VER-1",
    kind="safety",
    profile="Evolution",
    promise="Code that does not fit what is saved of a run is noticed as soon as it meets it, and does not go on with it.",
    tested_by="code deployed, of a worker beside or of the engine, that does not go on with work that is under way",
    anomaly="silent divergence",
    minimum=3,
    causes=(
        "saved work does not say by which code it was written",
        "code is compared by the name of its function only, so that steps may move unnoticed",
        "a recorded result is handed to whichever step comes next",
        "a store is opened without a look at its schema's version",
    ),
    learnt_from=("F31",),
)
def code_that_does_not_fit_is_noticed(history: History) -> Finding:
    facts = look(history)
    met = [one for one in misfits(facts) if not _is_left_behind(facts, one)]
    tested = [one for one in met if any(seen.answered > one.at for seen in facts.statuses)]
    found = (wrong for one in met if (wrong := _went_on(facts, one)) is not None)
    return Finding(len(tested), tuple(found))


def _is_left_behind(facts: Facts, one: Comer) -> bool:
    """Is it a worker of code older than the work? (VER-4)"""
    return one.unit in _working(facts) and is_older(facts, one.code, one.work)


def _working(facts: Facts) -> frozenset[str]:
    """The units that send requests; the last that was started is one of them."""
    units = {getattr(facts.history.events[at], "unit", "") for at in (facts.started[one] for one in facts.workers)}
    return frozenset(units) or frozenset({"worker"})


def _went_on(facts: Facts, one: Comer) -> Violation | None:
    """The first thing that a misfit did with the work."""
    if one.unit in _working(facts):
        return _sent_by(facts, one)
    served = next((seen for seen in facts.statuses if one.at < seen.asked and seen.answered < one.gone), None)
    if served is None or served.status.state == "unknown":
        return None
    sentence = f"{_capital(one)} took up a run of code {one.work} and showed it as {served.status.state}."
    return blame("silent divergence", sentence, (one.at, served.asked, served.answered))


def _sent_by(facts: Facts, one: Comer) -> Violation | None:
    for request in facts.sent:
        if request.event.incarnation != one.incarnation or request.at < one.at or facts.late(request):
            continue
        work = work_at(facts, request.at)
        if not goes_on(facts, one.code, work):
            sentence = f"{_capital(one)} sent {request.op!r} of a run whose work is of code {work}."
            return blame("silent divergence", sentence, (one.at, request.at), request.op)
    return None


def _capital(one: Comer) -> str:
    text = str(one)
    return text[:1].upper() + text[1:]


@obligation(
    "VER-2",
    kind="liveness",
    profile="Evolution",
    promise="Work that is under way when code is deployed is brought to its end by code that fits it.",
    tested_by="newer code deployed that goes on with the work of the older, in the middle of a run",
    anomaly="stuck",
    minimum=2,
    causes=(
        "work is bound to the very build it began under, and that build is gone after a deployment",
        "which code fits is asked once, when the work is admitted",
    ),
    learnt_from=(),
)
def fitting_code_finishes_what_is_under_way(history: History) -> Finding:
    facts = look(history)
    newer = [one for one in comers(facts) if one.code != one.work and goes_on(facts, one.code, one.work)]
    if not newer or facts.closed is None:
        return Finding()
    reason = facts.closed_as()
    stuck = _left_lying(facts)
    found = () if stuck is None else (blame("stuck", stuck, (newer[-1].at, *_last(facts), facts.closed)),)
    return Finding(1, found, slow=reason == "slow")


def _last(facts: Facts) -> tuple[int, ...]:
    last = facts.last_seen()
    return () if last is None else (last.answered,)


#: How many times the grace of a stop the news that a worker is there may take to whoever shows the run blocked.
_NEWS_GRACES = 3


def _left_lying(facts: Facts) -> str | None:
    """Why a run is held not to have gone on though code that fits is there; None where it did, or may have another reason."""
    last, declared = facts.last_seen(), facts.history.declared
    if last is None or not ends_fit(facts) or lacks_word(facts):
        return None
    if facts.closed_as() == "bound" and not _is_paused(facts):
        return f"A worker whose code fits is up, and run {facts.history.run!r} does not end; it is shown {last.status.state}."
    explained = _has_reasons(facts) or _shows_reason(facts, last) or _leaves_unknown(facts)
    since_ns = facts.at_ns(last.answered) - facts.at_ns(max(facts.started.values()))
    has_had_time = since_ns >= _NEWS_GRACES * (declared.grace_ns or 0)
    is_over = facts.closed_as() in {"settled", "slow"} and has_had_time
    if last.status.state == "blocked" and not explained and is_over:
        return f"A worker whose code fits is up, and run {facts.history.run!r} is still shown blocked: {last.status.reason}."
    return None


def _is_paused(facts: Facts) -> bool:
    return bool(facts.ordered("pause"))


def _shows_reason(facts: Facts, seen: Seen) -> bool:
    """Does a status show an operation that explains why the run cannot go on: failed, given up, or not to be repeated?"""
    blind = {call.id for call in facts.of("blind")}
    return any(
        one.state in {"failed", "unresolved"} or (one.state == "unknown" and one.id in blind)
        for one in seen.status.operations
    )


def _leaves_unknown(facts: Facts) -> bool:
    """Is there a call that can be neither looked up nor repeated, and that nobody ever answered for certain?"""
    return any(facts.uncertain(one) for call in facts.of("blind") for one in facts.dispatches(call.id))


def _has_reasons(facts: Facts) -> bool:
    """May the run have ended for what happened to it, whatever code there was?"""
    stopped = facts.ordered("cancel") or facts.ordered("decide")
    return is_fragile(facts) or bool(stopped) or facts.refusal_before(len(facts.history.events))


@obligation(
    "VER-3",
    kind="safety",
    profile="Evolution",
    promise="Code that was refused has cost nothing: all that was accepted is still there, and with fitting code restored the "
    "run goes on from where it was.",
    tested_by="code deployed that does not fit, then code that does; an engine of an older schema, then the present one",
    anomaly=("amnesia", "false certainty", "duplicate effect", "stuck"),
    minimum=2,
    causes=(
        "a run that meets code which does not fit is failed",
        "what could not be continued is taken off the queue, and nothing puts it back",
        "the older program writes into the newer store before it has looked at its version",
    ),
    learnt_from=(),
)
def a_refusal_loses_nothing(history: History) -> Finding:
    facts = look(history)
    refused = [(one, back) for one in misfits(facts) if (back := restored_at(facts, one)) is not None]
    tested = [(one, back) for one, back in refused if any(seen.asked > back for seen in facts.statuses)]
    found = [wrong for one, back in tested for wrong in _lost(facts, one, back)]
    if tested and (stuck := _left_lying(facts)) is not None and facts.closed is not None:
        found.append(blame("stuck", stuck, (tested[-1][1], *_last(facts), facts.closed)))
    return Finding(len(tested), tuple(found[:1]))


def _lost(facts: Facts, one: Comer, back: int) -> Iterator[Violation]:
    yield from _given_up(facts, one)
    for op, at in facts.accepted_at.items():
        if at > one.at or facts.is_revocable(op):
            continue
        for seen in facts.seen_after(back):
            shown = seen.operation(op)
            if shown is not None and shown.state not in {"succeeded", "reconciled"}:
                sentence = (
                    f"{op!r} was accepted before code {one.code} was refused, and is shown {shown.state} after it."
                )
                yield blame("amnesia", sentence, (at, one.at, back, seen.answered), op)
                return
        for request in facts.dispatches(op):
            born = facts.started[request.event.incarnation]
            if request.at > back and born > one.at and not facts.late(request):
                sentence = f"{op!r} was accepted before code {one.code} was refused, and is sent again after it."
                yield blame("duplicate effect", sentence, (at, one.at, back, request.at), op)
                return


def _given_up(facts: Facts, one: Comer) -> Iterator[Violation]:
    """A status that shows the run forgotten, or ended without success for nothing else that happened to it."""
    for seen in facts.seen_after(one.at):
        status = seen.status
        if status.state == "unknown":
            sentence = f"Since code {one.code} came up the run is not known any more."
            yield blame("amnesia", sentence, (one.at, seen.answered))
            return
        if status.state in {"failed", "cancelled"} and not _has_reasons(facts):
            if _shows_reason(facts, seen):
                return
            sentence = f"Nothing of the run had failed, and since code {one.code} came up it is shown {status.state}."
            yield blame("false certainty", sentence, (one.at, seen.answered))
            return


@obligation(
    "VER-4",
    kind="safety",
    profile="Evolution",
    promise="A worker with older code leaves work alone that newer code has written.",
    tested_by="workers of old and new code side by side, and the old code deployed again after the new",
    anomaly="stale acceptance",
    minimum=2,
    causes=(
        "the version of the work is that of its beginning, and is not changed by who goes on with it",
        "workers take from one queue whatever they run",
    ),
    learnt_from=(),
)
def old_code_leaves_newer_work_alone(history: History) -> Finding:
    facts = look(history)
    old = [*_older_comers(facts)]
    tested = [one for one in old if any(request.at > one.at for request in facts.sent)]
    found = [wrong for one in old if (wrong := _took_newer(facts, one)) is not None]
    return Finding(len(tested), (*found, *_took_what_follows(facts)))


def _older_comers(facts: Facts) -> Iterator[Comer]:
    return (one for one in misfits(facts) if _is_left_behind(facts, one))


def _took_newer(facts: Facts, one: Comer) -> Violation | None:
    """What a worker sent that came up when the work was of newer code already."""
    wrong = _sent_by(facts, one)
    if wrong is None:
        return None
    sentence = wrong.sentence.removesuffix(".") + ", which is newer."
    return blame("stale acceptance", sentence, wrong.evidence, wrong.operation)


def _took_what_follows(facts: Facts) -> Iterator[Violation]:
    """What an old worker that had been there before sent, of operations that only newer code can have released."""
    for moved, work in moves(facts)[1:]:
        for request in facts.sent:
            born = facts.started[request.event.incarnation]
            code = getattr(facts.history.events[born], "code", "")
            if not born < moved < request.at or facts.late(request) or goes_on(facts, code, work) is not False:
                continue
            if is_older(facts, code, work) and _follows(facts, request.op, moved, request.at):
                sentence = (
                    f"Worker {request.event.incarnation} runs code {code}, and sent {request.op!r}, which follows from what "
                    f"code {work} did."
                )
                yield blame("stale acceptance", sentence, (born, moved, request.at), request.op)
                return


def _follows(facts: Facts, op: str, moved: int, at: int) -> bool:
    """Does it depend on something first sent after the work became newer?"""
    for before in sorted(facts.ancestors.get(op, ())):
        sent = [one.at for one in facts.sent if one.op == before]
        if sent and moved <= sent[0] < at:
            return True
    return False

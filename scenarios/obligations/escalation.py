"""OWN-8 9: what kills its workers is given up after a while; and one death is one, however often it is noticed."""

from __future__ import annotations

from scenarios.history import TERMINAL, History
from scenarios.index import Facts, look
from scenarios.obligations.registry import blame, obligation
from scenarios.observed import Seen
from scenarios.plan import SEMANTICS, Call, Requester
from scenarios.repetition import timely
from scenarios.tenure import deaths_over
from scenarios.verdict import Finding, Violation


@obligation(
    "OWN-8",
    kind="safety",
    profile="Ownership",
    promise="Work that has killed as many workers as are allowed to it is not begun again: the run ends, and says so.",
    tested_by="the worker killed at every request of one call",
    anomaly=("overspend", "stuck"),
    minimum=1,
    causes=(
        "a death leaves no trace in what the next owner reads",
        "only failures that are reported count against the limit",
        "the count is kept by the worker, and dies with it",
    ),
    learnt_from=("F46",),
)
def deadly_work_is_escalated(history: History) -> Finding:
    facts = look(history)
    limit = history.declared.deaths_max
    if limit is None:
        return Finding()
    exercised = 0
    found: list[Violation] = []
    for op in facts.calls:
        deaths = deaths_over(facts, op)
        if len(deaths) < limit:
            continue
        exercised += 1
        begun = next((one for one in timely(facts, op) if one.at > deaths[limit - 1]), None)
        if begun is not None:
            whom = f"worker {begun.event.incarnation}"
            sentence = f"{op!r} had killed {limit} workers, as many as are allowed, and was given to {whom}."
            found.append(blame("overspend", sentence, (*deaths[:limit], begun.at), op))
        elif facts.closed is not None and facts.closed_as() == "bound" and not _is_over(facts):
            sentence = f"{op!r} had killed {limit} workers; it was not begun again, but the run never ended either."
            found.append(blame("stuck", sentence, (deaths[-1], facts.closed), op))
    return Finding(exercised, tuple(found))


def _is_over(facts: Facts) -> bool:
    last = facts.last_seen()
    return last is not None and last.status.state in TERMINAL


@obligation(
    "OWN-9",
    kind="safety",
    profile="Ownership",
    promise="One death uses up one try, however often it is noticed.",
    tested_by="the worker killed over a call that may be tried twice, and the engine killed beside it",
    anomaly="overspend",
    minimum=1,
    causes=(
        "whoever looks for the dead counts a try each time, as the first look has not been handled yet",
        "both the lease and the broken connection are counted",
        "a run that lost its worker goes back with no tries left",
    ),
    learnt_from=("F43", "F46"),
)
def one_death_is_one_try(history: History) -> Finding:
    facts = look(history)
    exercised = 0
    found: list[Violation] = []
    for call in history.plan.calls():
        deaths = deaths_over(facts, call.id)
        if not deaths or facts.is_stormy:
            continue
        exercised += len(deaths) if any(_is_counted(facts, call, seen) for seen in facts.seen_after(deaths[0])) else 0
        shown = (_overcounted(facts, call.id, seen) for seen in facts.seen_after(deaths[0]))
        violation = next((one for one in shown if one), None)
        if violation is None and isinstance(call, Call):
            violation = _gave_up_early(facts, call, deaths)
        found += [violation] if violation else []
    return Finding(exercised, tuple(found))


def _is_counted(facts: Facts, call: Requester, seen: Seen) -> bool:
    """Does a status tell how often a call was tried, or what came of one that nothing but its number of tries can end?"""
    shown = seen.operation(call.id)
    is_limited = isinstance(call, Call) and call.tries is not None and _may_be_repeated(facts, call)
    is_told = shown is not None and shown.tries is not None
    return is_told or (is_limited and (shown is not None or seen.status.state == "done"))


def _most_tries(facts: Facts, op: str, seen: Seen) -> int:
    """The most tries that `op` can have had by this status: every request, and one more for every time that a worker was
    killed or stopped, or a connection not made, before its request was seen.
    """
    sent = sum(one.at < seen.answered for one in facts.dispatches(op))
    over = [at for at in deaths_over(facts, op) if at < seen.answered]
    halted = sum(at < seen.answered for at in facts.halts)
    under_way = 1  # an intent whose request is still to be seen
    return sent + max(0, halted - 2 * len(over)) + under_way


def _overcounted(facts: Facts, op: str, seen: Seen) -> Violation | None:
    shown = seen.operation(op)
    if shown is None or shown.tries is None or shown.tries <= _most_tries(facts, op, seen):
        return None
    deaths = [at for at in deaths_over(facts, op) if at < seen.answered]
    sent = sum(one.at < seen.answered for one in facts.dispatches(op))
    sentence = (
        f"{op!r} had been sent {_times(sent)} and {_deaths(len(deaths))} had come over it, but it is shown as tried "
        f"{_times(shown.tries)}."
    )
    return blame("overspend", sentence, (*deaths, seen.asked, seen.answered), op)


def _gave_up_early(facts: Facts, call: Call, deaths: tuple[int, ...]) -> Violation | None:
    """It may be repeated, has tries left, and nothing but deaths had happened to it when it was given up."""
    last = facts.last_seen()
    if (
        last is None
        or call.tries is None
        or not _may_be_repeated(facts, call)
        or last.status.state not in {"failed", "blocked"}
    ):
        return None
    shown = last.operation(call.id)
    ended = shown is not None and shown.state in {"failed", "unresolved"}
    limit = facts.history.declared.deaths_max
    if not ended or len(facts.deaths) >= (limit or len(facts.deaths) + 1):
        return None
    used = _most_tries(facts, call.id, last) - 1
    if used >= call.tries:
        return None
    sentence = (
        f"{call.id!r} may be tried {_times(call.tries)}; it was sent {_times(len(facts.dispatches(call.id)))}, its worker "
        "died, and it was given up."
    )
    return blame("overspend", sentence, (*deaths, last.asked, last.answered), call.id)


def _may_be_repeated(facts: Facts, call: Call) -> bool:
    """Is there nothing but its tries that could have ended it?"""
    plan = facts.history.plan
    free = SEMANTICS[call.service] in {"keyed", "read"} and call.elapsed_ns is None and "poison" not in call.params
    whole = plan.allowance is None and plan.deadline_ns is None and not facts.code_changed()
    stopped = any(one.verb in {"cancel", "decide"} for one in facts.commands)
    lost = any(one.replied_at is not None and one.answer is None for one in facts.dispatches(call.id))
    return free and whole and not stopped and not lost and not facts.struck("expire")


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def _deaths(count: int) -> str:
    return "one death" if count == 1 else f"{count} deaths"

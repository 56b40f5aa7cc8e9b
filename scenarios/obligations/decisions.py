"""VER-5: decisions come out the same, whoever has to come to them again.

A decision is known by what it left out: an operation that is shown as skipped. A harness that replays tells more: what its
code has asked for so far, in order, and that a run cannot go on since its code and its history part.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from scenarios.bodies import HistoryEntry
from scenarios.history import History
from scenarios.index import Facts, look
from scenarios.obligations.registry import blame, obligation
from scenarios.observed import Said, Seen
from scenarios.verdict import Finding, Violation
from scenarios.versions import comers, goes_on

#: Words by which harnesses tell that code and history do not fit together.
_PARTED = ("diverge", "nondetermin", "non-determin", "history mismatch")
#: What is under way or was carried out was not left out.
_TAKEN = frozenset({"dispatched", "succeeded", "reconciled", "unknown", "unresolved"})


@obligation(
    "VER-5",
    kind="safety",
    profile="Evolution",
    promise="What was decided once is decided alike again: by whichever process, from a history told in whichever pieces.",
    tested_by="processes killed after races and choices were decided; each that comes up reads what happened in other pieces",
    anomaly="changed decision",
    minimum=3,
    causes=(
        "outcomes are told to a replay in another order than they were accepted in",
        "what wins depends on how many messages came together",
        "branches are walked in the order of a set, which changes with the hash seed",
        "what a process happens to have in memory decides what is written down",
    ),
    learnt_from=("F30", "F31", "F32", "F55"),
)
def decisions_come_out_the_same(history: History) -> Finding:
    facts = look(history)
    return Finding(_tested(facts), tuple(_changed(facts))[:1])


def _tested(facts: Facts) -> int:
    """How many deaths lie between a decision that was shown and something that was sent after it, by whoever took over."""
    decided = min((seen.answered for seen in facts.statuses if _left_out(seen)), default=None)
    if decided is None:
        return 0
    sent = [one.at for one in facts.sent if not facts.late(one)]
    return sum(decided < death < max(sent, default=-1) for death in facts.deaths)


def _changed(facts: Facts) -> Iterator[Violation]:
    yield from _taken_after_all(facts)
    yield from _rewritten(facts)
    yield from _parted(facts)


def _left_out(seen: Seen) -> tuple[str, ...]:
    return tuple(one.id for one in seen.status.operations if one.state == "skipped")


def _taken_after_all(facts: Facts) -> Iterator[Violation]:
    """An operation that had been left out, and is carried out all the same."""
    since: dict[str, int] = {}
    for seen in facts.statuses:
        for op in _left_out(seen):
            since.setdefault(op, seen.answered)
        for shown in seen.status.operations:
            if shown.state in _TAKEN and since.get(shown.id, seen.asked) < seen.asked:
                sentence = f"{shown.id!r} was decided against, and is shown {shown.state} later."
                yield blame("changed decision", sentence, (since[shown.id], seen.answered), shown.id)
                return
    for request in facts.sent:
        left = since.get(request.op)
        if left is not None and left < facts.started[request.event.incarnation] and not facts.late(request):
            sentence = f"{request.op!r} was decided against, and a worker that came up later sent it."
            yield blame("changed decision", sentence, (left, request.at), request.op)
            return


def _rewritten(facts: Facts) -> Iterator[Violation]:
    """A place of a history that is told in two ways."""
    told: dict[tuple[str | None, int, int], tuple[HistoryEntry, Said[object]]] = {}
    for said in facts.journals:
        for entry in said.body.history:
            place = (entry.attempt, entry.segment, entry.number)
            first, when = told.setdefault(place, (entry, said))  # type: ignore[arg-type]
            if first != entry:
                sentence = (
                    f"Place {entry.number} of the history was {first.kind} {first.operation!r}, and is now {entry.kind} "
                    f"{entry.operation!r}."
                )
                yield blame("changed decision", sentence, (when.answered, said.answered), entry.operation)
                return


def _parted(facts: Facts) -> Iterator[Violation]:
    """A run that does not fit its own code any more, though only code came up that goes on with it."""
    codes = {code for _, code in facts.codes()}
    came = list(comers(facts))
    fits = len(codes) == 1 or (bool(came) and all(goes_on(facts, one.code, one.work) for one in came))
    for before, seen in itertools.pairwise([None, *facts.statuses]):
        reason = (seen.status.reason or seen.status.error or "") if seen is not None else ""
        if seen is not None and fits and any(word in reason.lower() for word in _PARTED):
            sentence = f"The code did not change, and does not go on with its own history: {reason}"
            yield blame("changed decision", sentence, (*(() if before is None else (before.answered,)), seen.answered))
            return

"""OWN-1: one operation, one accepted transition, however many workers believe that it is theirs."""

from __future__ import annotations

from collections.abc import Iterator

from scenarios.history import History, Resumed
from scenarios.index import Facts, look
from scenarios.lineage import fork, uses
from scenarios.obligations.registry import blame, obligation
from scenarios.obligations.scheduling import has_answers, repeated_asks
from scenarios.verdict import Finding, short


@obligation(
    "OWN-1",
    kind="safety",
    profile="Ownership",
    promise="An operation is accepted at most once, whatever duplicates, stale workers and races there are.",
    tested_by="a worker paused until another one has taken over, then let go; start and signal repeated",
    anomaly="stale acceptance",
    minimum=1,
    causes=(
        "acceptance is a check followed by an unconditional write",
        "the lease is checked when work is taken, and not again when its result is committed",
        "the new owner's generation is not part of the condition of the update",
    ),
    learnt_from=("F05", "F17", "F47", "F49"),
)
def accepted_at_most_once(history: History) -> Finding:
    facts = look(history)
    rivals = (*_takeovers(facts), *(ask.at for ask in repeated_asks(facts)))
    if not rivals:
        return Finding()
    found = []
    for op in facts.ancestors:
        split = fork(facts, op)
        if split is None or facts.death_between(split[0].at, split[1].at):
            continue  # a crash in between explains a second answer without any rival
        before = [at for at in rivals if at < split[1].at]
        if before:
            one, other = split
            sentence = (
                f"{op!r} had been accepted with answer {short(one.nonce)}; with two at work on the run it became "
                f"{short(other.nonce)}."
            )
            found.append(blame("stale acceptance", sentence, (max(before), one.at, other.at), op))
    seen = max((use.at for use in uses(facts)), default=-1)
    return Finding(sum(at < seen for at in rivals) if has_answers(facts) else 0, tuple(found))


def _takeovers(facts: Facts) -> Iterator[int]:
    """Moments at which a paused worker came back after a newer one had worked on the run."""
    for index, event in enumerate(facts.history.events):
        if isinstance(event, Resumed) and any(
            request.event.incarnation > event.incarnation and pause < request.at
            for pause in facts.paused.get(event.incarnation, ())
            if pause < index
            for request in facts.requests
        ):
            yield index

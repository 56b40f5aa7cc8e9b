"""DUR-13: an id stands for one piece of work; other work under it is refused."""

from __future__ import annotations

from collections.abc import Iterator

from scenarios.history import History
from scenarios.index import Facts, look
from scenarios.obligations.durable import taken_back
from scenarios.obligations.registry import blame, obligation
from scenarios.observed import Ask
from scenarios.verdict import Finding, Violation


@obligation(
    "DUR-13",
    kind="safety",
    profile="Durable",
    level="SHOULD",
    promise="Other work submitted under a known task id is refused, and the task that is known stays as it was.",
    tested_by="another plan started under the id of the run: while it works, while it waits, and at its end",
    anomaly=("false certainty", "amnesia"),
    minimum=1,
    causes=(
        "a known id is answered without a look at what was asked for",
        "what is asked for is kept under its id, and the later one overwrites the earlier",
        "the fingerprint is forgotten with the task's clean-up, its result is not",
    ),
    learnt_from=("F15",),
)
def other_work_under_a_known_id_is_refused(history: History) -> Finding:
    facts = look(history)
    tested = [ask for ask in facts.misuses() if ask.outcome != "indefinite" and _known_at(facts, ask) is not None]
    return Finding(len(tested), (*_acknowledged(facts, tested), *_changed(facts, tested)))


def _known_at(facts: Facts, ask: Ask) -> int | None:
    """The event by which the run itself was acknowledged, before this, which is about other work, was asked."""
    start = facts.start_ok()
    if ask.payload == facts.history.plan.to_json():
        return None
    known = start.answered_at if start is not None else None
    return known if known is not None and known < ask.at else None


def _acknowledged(facts: Facts, asks: list[Ask]) -> Iterator[Violation]:
    for ask in asks:
        known = _known_at(facts, ask)
        if ask.outcome == "ok" and known is not None and ask.answered_at is not None:
            sentence = (
                f"Run {facts.history.run!r} was known; another plan was started under its id, and acknowledged as if it were "
                "the same."
            )
            yield blame("false certainty", sentence, (known, ask.at, ask.answered_at))
            return


def _changed(facts: Facts, asks: list[Ask]) -> Iterator[Violation]:
    """What the run had shown before is gone, or other, in what it shows after."""
    for ask in asks:
        after = ask.answered_at if ask.answered_at is not None else ask.at
        for one in taken_back(facts):
            if min(one.evidence) < ask.at and after < max(one.evidence):
                sentence = f"Another plan was started under the id of run {facts.history.run!r}. {one.sentence}"
                yield blame("amnesia", sentence, (*one.evidence, ask.at, after), one.operation)
                return

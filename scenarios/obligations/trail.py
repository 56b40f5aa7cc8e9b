"""JRN-5 6 7: what must not be written down, what must, and what recovery must do without."""

from __future__ import annotations

from collections.abc import Iterator

from scenarios.bodies import Journal, Transition
from scenarios.chronicle import chains, leaf_of
from scenarios.history import History, Scanned
from scenarios.index import Facts, look
from scenarios.obligations.registry import blame, obligation
from scenarios.observed import Said
from scenarios.plan import Approve, Compensate
from scenarios.verdict import Finding, Violation


@obligation(
    "JRN-5",
    kind="safety",
    profile="Durable",
    promise="A secret that a call hands over is found in no byte of the store, and in no status, event, artifact, journal or "
    "log.",
    tested_by="secrets with calls that are answered, lost, refused and impossible to send, then a search of all that was "
    "written and told",
    anomaly="leak",
    minimum=6,
    causes=(
        "requests are stored as they are sent, so as to be repeated",
        "an error's text quotes the request, and becomes the reason that is stored and shown",
        "a traceback or a debug log has the headers in it",
    ),
    learnt_from=(),
)
def secrets_are_written_nowhere(history: History) -> Finding:
    facts = look(history)
    brought = next((one for one in facts.sent if one.event.secret), None)
    exercised = 0
    found: dict[str, Violation] = {}
    for index, event in enumerate(history.events):
        if not isinstance(event, Scanned):
            continue
        exercised += len(event.places) if brought else 0
        for trace in event.found:
            place, _, name = trace.partition(":")
            carried = f", which {brought.op!r} had brought to its receiver," if brought else ""
            sentence = f"The secret {name!r}{carried} is there to be read in what was searched as {place!r}."
            evidence = (index,) if brought is None else (brought.at, index)
            found.setdefault(trace, blame("leak", sentence, evidence, brought.op if brought else None))
    return Finding(exercised, tuple(found.values()))


@obligation(
    "JRN-6",
    kind="safety",
    profile="Durable",
    level="SHOULD",
    promise="The journal says why: at every skip, repeat, reconciliation and compensation, and where somebody decided or has "
    "still to settle something by hand.",
    tested_by="races and branches, lost answers, look-ups, failures that are undone, approvals; then a reading of the journal",
    anomaly="amnesia",
    minimum=4,
    causes=(
        "reasons go to a log, and only states are stored",
        "the reason is a column of the state, which the next step overwrites",
    ),
    learnt_from=(),
)
def steps_aside_keep_their_reason(history: History) -> Finding:
    facts = look(history)
    tested: set[tuple[str, int]] = set()
    found: dict[tuple[str, int], Violation] = {}
    for said in facts.journals:
        for what, row in _steps_aside(facts, said.body):
            tested.add((row.operation, row.sequence))
            if not (row.reason or "").strip():
                found.setdefault((row.operation, row.sequence), _unexplained(what, row, said))
    return Finding(len(tested), tuple(found.values()))


def _steps_aside(facts: Facts, journal: Journal) -> Iterator[tuple[str, Transition]]:
    """Transitions that are no plain progress, each with what it is called."""
    for operation, rows in chains(journal).items():
        leaf = facts.history.plan.leaf(leaf_of(operation))
        for row in rows:
            match row.from_state, row.to_state:
                case _, "skipped":
                    yield "skipped", row
                case "unknown", "dispatched":
                    yield "sent again", row
                case _, "reconciled":
                    yield "reconciled", row
                case _, "unresolved":
                    yield "left to be settled by hand", row
                case "planned", "dispatched" if isinstance(leaf, Compensate):
                    yield "carried out to undo something", row
                case "planned", _ if isinstance(leaf, Approve):
                    yield "decided", row


def _unexplained(what: str, row: Transition, said: Said[Journal]) -> Violation:
    sentence = (
        f"{row.operation!r} was {what}, from {row.from_state} to {row.to_state}, and the journal has no reason for it."
    )
    return blame("amnesia", sentence, (said.asked, said.answered), row.operation)

"""JRN-5 6 7: what must not be written down, what must, and what recovery must do without."""

from __future__ import annotations

from scenarios.history import History, Scanned
from scenarios.index import look
from scenarios.obligations.registry import blame, obligation
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

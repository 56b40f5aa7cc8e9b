"""JRN-5 6 7: what must not be written down, what must, and what recovery must do without."""

from __future__ import annotations

from collections.abc import Iterator

from scenarios.bodies import Journal, Transition
from scenarios.chronicle import chains, is_own, leaf_of
from scenarios.history import History, Scanned
from scenarios.index import Facts, look
from scenarios.joining import of_kind
from scenarios.obligations.registry import blame, obligation
from scenarios.observed import Said
from scenarios.plan import SEMANTICS, Approve, Compensate
from scenarios.verdict import Finding, Violation, short


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
    for index, event in of_kind(history, Scanned):
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


@obligation(
    "JRN-7",
    kind="safety",
    profile="Durable",
    promise="When the audit trail is deleted, recovery decides as it would with it: nothing accepted is done again or lost, "
    "and what is open is sent under the same key, looked up or left alone as before.",
    tested_by="the audit trail deleted while calls are open and waits are on, then a restart",
    anomaly=("key drift", "duplicate effect", "amnesia"),
    minimum=3,
    causes=(
        "keys, or what was tried before, are read back from the audit trail or a transcript",
        "whether a call had been sent is looked up among the log's lines",
    ),
    learnt_from=(),
)
def recovery_needs_no_trail(history: History) -> Finding:
    facts = look(history)
    loss = next((at for at, action, _ in facts.fired if action == "forget"), None)
    if loss is None:
        return Finding()
    begun = dict.fromkeys(one.op for one in facts.sent if one.at < loss and is_own(one.op))
    tested = [op for op in begun if _is_shown_after(facts, op, loss)]
    found = [wrong for op in begun if (wrong := _decided_otherwise(facts, op, loss)) is not None]
    return Finding(len(tested), (*found, *_gone(facts, loss)))


def _is_shown_after(facts: Facts, op: str, loss: int) -> bool:
    """Was anything seen of an operation once the harness had come back without its trail?"""
    return any(one.op == op and one.at > loss for one in facts.sent) or any(
        op in seen.accepted() or seen.operation(op) is not None for seen in facts.seen_after(loss)
    )


def _decided_otherwise(facts: Facts, op: str, loss: int) -> Violation | None:
    """What recovery did about an operation that no journal could have told it to do."""
    before = [one for one in facts.dispatches(op) if one.at < loss]
    after = [one for one in facts.dispatches(op) if one.at > loss and not facts.late(one)]
    if not before or not after or op not in facts.calls:
        return None
    last, again = before[-1], after[0]
    evidence = (last.at, loss, again.at)
    if again.event.key != last.event.key or again.event.params != last.event.params:
        sentence = f"{op!r} was sent again when the trail was gone, under another key or for something else."
        return blame("key drift", sentence, evidence, op)
    if facts.is_stormy:
        return None  # it may have been on its way since before
    if facts.accepted_at.get(op, loss) < loss:
        sentence = f"{op!r} had been accepted, and was carried out once more when the trail was gone."
        return blame("duplicate effect", sentence, evidence, op)
    semantics = SEMANTICS[again.event.service]
    asked = any(last.at < one.at < again.at for one in facts.lookups(op))
    if not last.idle and (semantics == "blind" or (semantics == "lookup" and not asked)):
        sentence = f"{op!r} may have taken effect already, and was simply sent again when the trail was gone."
        return blame("duplicate effect", sentence, evidence, op)
    return None


def _gone(facts: Facts, loss: int) -> Iterator[Violation]:
    """What a status had shown before the loss of the trail, and a status asked for after it contradicts."""
    known = [seen for seen in facts.statuses if seen.answered < loss and seen.status.state != "unknown"]
    for later in facts.seen_after(loss) if known else ():
        before = known[-1]
        if later.status.state == "unknown":
            sentence = f"Run {facts.history.run!r} is unknown since the trail is gone."
            yield blame("amnesia", sentence, (before.answered, loss, later.asked, later.answered))
            return
        for op, nonce in before.accepted().items():
            shown = later.operation(op)
            if shown is not None and nonce and shown.nonce != nonce and not facts.is_revocable(op):
                sentence = f"{op!r} was shown accepted with {short(nonce)}, and is no longer since the trail is gone."
                yield blame("amnesia", sentence, (before.answered, loss, later.asked, later.answered), op)
                return

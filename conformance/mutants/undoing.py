"""Mutants of CMP-1 to CMP-5: undone in another order, too much, twice, half, with other inputs, and without a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from conformance.mutants import Patch, mutant
from reference_runtime import views
from reference_runtime.acceptance import Acceptance
from reference_runtime.compensation import Compensation
from reference_runtime.control import Control
from reference_runtime.intents import Intents
from reference_runtime.ownership import Ownership
from reference_runtime.progress import Progress
from reference_runtime.server import Server

if TYPE_CHECKING:
    from reference_runtime.model import Json, Move, Outcome, Tally
    from reference_runtime.retries import Limits
    from reference_runtime.rows import Operation
    from reference_runtime.store import Store

#: As often as nothing is ever tried.
_WITHOUT_END = 1_000_000


def _on_restart(patch: Patch, statement: str) -> None:
    """A server that comes up runs one statement on what it finds, as if that had been kept in memory."""

    def init(self: Server, store: Store, **options: Any) -> None:
        original(self, store, **options)
        with store._transaction():  # noqa: SLF001 - a mutant goes where it should not
            store.db.execute(statement)

    original = Server.__init__
    patch.replace(Server, "__init__", init)


def _next_by(patch: Patch, order: str) -> None:
    """The compensation whose turn it is comes first by another order."""

    def next_undo(self: Compensation, attempt: str) -> str | None:
        sql = (
            "SELECT o.id FROM operation o JOIN operation e ON e.attempt = o.attempt AND e.id = o.subject WHERE o.attempt = ?"
            " AND o.kind = 'compensate' AND o.state = 'planned' AND o.acceptance IS NOT NULL"
        )
        row = self._row(f"{sql} ORDER BY {order} LIMIT 1", attempt)
        return None if row is None else str(row[0])

    patch.replace(Compensation, "next_undo", next_undo)


@mutant("undone-forwards", "CMP-1", shown_by="saga/undisturbed")
def undone_forwards(patch: Patch) -> None:
    """What was done first is undone first."""
    _next_by(patch, "o.acceptance")


@mutant("undone-by-plan", "CMP-1", shown_by="crossing/undisturbed")
def undone_by_plan(patch: Patch) -> None:
    """Effects are undone in reverse order of the plan, whichever of them was there first."""
    _next_by(patch, "e.position DESC")


@mutant("unknown-undone-too", "CMP-1", shown_by="mislaid/undisturbed")
def unknown_undone_too(patch: Patch) -> None:
    """What may have happened is undone like what did happen."""

    def next_undo(self: Compensation, attempt: str) -> str | None:
        row = self._row(
            "SELECT o.id FROM operation o JOIN operation e ON e.attempt = o.attempt AND e.id = o.subject WHERE o.attempt = ?"
            " AND o.kind = 'compensate' AND o.state = 'planned' AND e.state = 'unresolved' ORDER BY e.position LIMIT 1",
            attempt,
        )
        return original(self, attempt) if row is None else str(row[0])

    original = Compensation.next_undo
    patch.replace(Compensation, "next_undo", next_undo)


@mutant("undone-again-by-restart", "CMP-1", shown_by="saga/kill@no-flight#1.replied(engine)")
def undone_again_by_restart(patch: Patch) -> None:
    """How far undoing has come is kept in memory: a restarted server begins with all of it again."""
    _on_restart(
        patch,
        "UPDATE operation SET state = 'planned', due_ns = NULL WHERE kind = 'compensate' AND state = 'succeeded'"
        " AND attempt IN (SELECT id FROM attempt WHERE outcome IS NULL)",
    )


@mutant("undoing-in-memory", "CMP-2", shown_by="saga/kill@no-car#1.received(engine)")
def undoing_in_memory(patch: Patch) -> None:
    """What a failed run has still to undo is a list in memory, which a restart begins empty."""
    _on_restart(
        patch,
        "UPDATE operation SET state = 'skipped', due_ns = NULL WHERE kind = 'compensate' AND state = 'planned'"
        " AND attempt IN (SELECT id FROM attempt WHERE failing IS NOT NULL AND outcome IS NULL)",
    )


@mutant("undo-of-the-dead-left", "CMP-2", shown_by="saga/kill@no-hotel#1.applied")
def undo_of_the_dead_left(patch: Patch) -> None:
    """A step back whose worker dies stays with it: nobody takes it up, and the run waits for it."""

    def reclaim(self: Ownership, generation: int) -> None:
        sql = (
            "SELECT 1 FROM lease l JOIN operation o ON o.attempt = l.attempt AND o.id = l.operation WHERE l.generation = ?"
            " AND o.kind = 'compensate'"
        )
        if self._row(sql, generation) is None:
            original(self, generation)

    original = Ownership.reclaim
    patch.replace(Ownership, "reclaim", reclaim)


@mutant("failed-undo-passed-over", "CMP-3", shown_by="jammed/undisturbed")
def failed_undo_passed_over(patch: Patch) -> None:
    """An undo that does not succeed is passed over, as the run has failed anyway."""

    def end(self: Acceptance, op: Operation, move: Move, reason: str) -> bool:
        if op.kind == "compensate":
            self.skip(op, reason)
            return True
        return original(self, op, move, reason)

    original = Acceptance._end  # noqa: SLF001 - a mutant goes where it should not
    patch.replace(Acceptance, "_end", end)


@mutant("undo-tried-without-end", "CMP-3", shown_by="jammed/undisturbed")
def undo_tried_without_end(patch: Patch) -> None:
    """An undo is tried until it succeeds."""

    def limits_of(self: Acceptance, op: Operation) -> Limits:
        found = original(self, op)
        return attrs.evolve(found, tries=_WITHOUT_END) if op.kind == "compensate" else found

    original = Acceptance.limits_of
    patch.replace(Acceptance, "limits_of", limits_of)


@mutant("late-word-ends-anew", "CMP-3", shown_by="forfeit/unmatched@end")
def late_word_ends_anew(patch: Patch) -> None:
    """How a run that is left for somebody to see ends is worked out anew at every word that comes, by its failure alone."""

    def as_it_ends(self: Progress, attempt: str, outcome: Outcome) -> Outcome:
        has_ended = self._attempt(attempt).outcome is not None
        return outcome if has_ended else original(self, attempt, outcome)

    original = Progress._as_it_ends  # noqa: SLF001 - a mutant goes where it should not
    patch.replace(Progress, "_as_it_ends", as_it_ends)


@mutant("undone-is-undone", "CMP-4", shown_by="saga/kill@no-flight#1.replied(engine)")
def undone_is_undone(patch: Patch) -> None:
    """A call that was undone is shown as if it had never been made."""

    def status(store: Store, task: str) -> Json:
        found = original(store, task)
        undone = {
            of
            for (of,) in store.db.execute(
                "SELECT subject FROM operation WHERE attempt = ? AND kind = 'compensate' AND state = 'succeeded'",
                (found.get("attempt"),),
            )
        }
        for one in found.get("operations", ()):
            if one["id"] in undone:
                one.update(state="skipped", nonce=None)
        return found

    original = views.status
    patch.replace(views, "status", status)


@mutant("undone-leaves-the-journal", "CMP-4", shown_by="saga/undisturbed")
def undone_leaves_the_journal(patch: Patch) -> None:
    """What was undone is taken out of the journal, with what undid it."""

    def journal(store: Store, task: str) -> Json:
        found = original(store, task)
        rows = store.db.execute(
            "SELECT o.id, o.subject FROM operation o JOIN attempt a ON a.id = o.attempt WHERE a.task = ?"
            " AND kind = 'compensate' AND state = 'succeeded'",
            (task,),
        ).fetchall()
        undone = {name for row in rows for name in row}
        found["transitions"] = [one for one in found["transitions"] if one["operation"] not in undone]
        return found

    original = views.journal
    patch.replace(views, "journal", journal)


@mutant("undo-without-inputs", "CMP-5", shown_by="estate/undisturbed")
def undo_without_inputs(patch: Patch) -> None:
    """An undo is told what to undo, and not what that was answered with."""

    def undo_request(self: Compensation, spec: str, operation: str, _nonce: str | None) -> str:
        return original(self, spec, operation, None)

    original = Compensation.undo_request
    patch.replace(Compensation, "undo_request", undo_request)


@mutant("undo-as-of-today", "CMP-5", shown_by="bequest/steer@waiting:word>refund")
def undo_as_of_today(patch: Patch) -> None:
    """What an undo says is worked out when it is sent, from what the run says by then."""

    def request_for(self: Ownership, op: Operation) -> str:
        if op.kind != "compensate" or op.state != "planned":
            return original(self, op)
        subject = op.subject or ""
        return self.undo_request(op.spec, subject, self.accepted_answers(op.attempt, [subject]).get(subject))

    original = Intents.request_for
    patch.replace(Intents, "request_for", request_for)
    patch.replace(Control, "is_steerable", lambda _self, op: op.state == "planned")


@mutant("failure-not-undone", "CMP-2", shown_by="saga/undisturbed")
def failure_not_undone(patch: Patch) -> None:
    """Only runs that are stopped are cleaned up after; one that fails is left as it is."""

    def begin_undo(self: Compensation, attempt: str) -> bool:
        return self.is_halted(attempt) and original(self, attempt)

    original = Compensation.begin_undo
    patch.replace(Compensation, "begin_undo", begin_undo)


@mutant("late-failure-not-undone", "CMP-2", shown_by="belated/notice@end>letter")
def late_failure_not_undone(patch: Patch) -> None:
    """A run is cleaned up after as it ends first, and not when a late word makes it fail after that."""

    def clean_up(self: Progress, attempt: str, outcome: Outcome, tally: Tally) -> tuple[Outcome | None, Tally]:
        has_ended = self._attempt(attempt).outcome is not None
        return (outcome, tally) if has_ended else original(self, attempt, outcome, tally)

    original = Progress._clean_up  # noqa: SLF001 - a mutant goes where it should not
    patch.replace(Progress, "_clean_up", clean_up)

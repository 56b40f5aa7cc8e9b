"""Mutants of CAN-1 to CAN-8: stops that are forgotten, not heeded, over too early, and that reach too far or too short."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import attrs

from conformance.mutants import Patch, mutant
from conformance.mutants.restarts import on_restart
from reference_runtime import views
from reference_runtime.acceptance import NOTHING_KNOWN, Acceptance
from reference_runtime.children import Children
from reference_runtime.compensation import Compensation
from reference_runtime.control import Control
from reference_runtime.model import canonical
from reference_runtime.progress import Progress
from reference_runtime.waits import GRACE

if TYPE_CHECKING:
    from collections.abc import Callable

    from reference_runtime.model import Facts, Grant, Json, Move, Report, Tally
    from reference_runtime.rows import Operation
    from reference_runtime.store import Store


def _on_cancelled(patch: Patch, change: Callable[[Json], Json | None]) -> None:
    """A status of a cancelled run shows each of its operations as `change` has it; None leaves one out."""

    def status(store: Store, task: str) -> Json:
        found = original(store, task)
        if found["state"] == "cancelled":
            changed = [change(one) for one in found["operations"]]
            found["operations"] = [one for one in changed if one is not None]
        return found

    original = views.status
    patch.replace(views, "status", status)


@mutant("stop-in-memory", "CAN-1", shown_by="recall/cancel@reserve#1.received+kill@reserve#1.applied(engine)")
def stop_in_memory(patch: Patch) -> None:
    """A stop is kept in the memory of the server, and a restart goes on with the run."""
    on_restart(patch, "UPDATE attempt SET halt = NULL WHERE outcome IS NULL")


@mutant("stop-not-looked-at", "CAN-1", shown_by="deaf/cancel@ask#1.received")
def stop_not_looked_at(patch: Patch) -> None:
    """What a step of a stopped run opens by its end is dispatched like anything else."""
    patch.replace(Progress, "_close", lambda _self, _op: None)


@mutant("accepted-is-quiescent", "CAN-2", shown_by="recall/cancel@letter#1.received+delay@letter#1.applied")
def accepted_is_quiescent(patch: Patch) -> None:
    """A stop counts as quiescent as soon as it is accepted."""
    patch.replace(Control, "is_quiescent", lambda _self, _attempt: True)


@mutant("children-not-counted", "CAN-2", shown_by="household/cancel@kid/school#1.received+delay@kid/school#1.applied")
def children_not_counted(patch: Patch) -> None:
    """A stop counts as quiescent when nothing of the run itself is under way, whatever its children do."""

    def is_quiescent(self: Control, attempt: str) -> bool:
        return self._row("SELECT 1 FROM lease WHERE attempt = ?", attempt) is None

    patch.replace(Control, "is_quiescent", is_quiescent)


@mutant("late-result-wins", "CAN-3", shown_by="deaf/cancel@close#1.received+pause@close#1.applied")
def late_result_wins(patch: Patch) -> None:
    """The late result of the last step turns a run that was called cancelled into a successful one."""

    def settle(
        self: Acceptance, grant: Grant, report: Report, answer: Json | None, detail: str, facts: Facts = NOTHING_KNOWN
    ) -> Any:
        op = self._operation(grant.attempt, grant.operation)
        outcome = self._value("SELECT outcome FROM attempt WHERE id = ?", op.attempt)
        if (report, op.state, outcome) != ("succeeded", "unresolved", "cancelled"):
            return original(self, grant, report, answer, detail, facts)
        with self._transaction():
            self.db.execute(
                "UPDATE operation SET state = 'succeeded', answer = ? WHERE attempt = ? AND id = ?",
                (canonical(answer or {}), op.attempt, op.id),
            )
            self.db.execute("UPDATE attempt SET outcome = 'succeeded', reason = NULL WHERE id = ?", (op.attempt,))
        return None

    original = Acceptance.settle
    patch.replace(Acceptance, "settle", settle)


@mutant("stop-overwrites-the-end", "CAN-3", shown_by="recall/cancel@end")
def stop_overwrites_the_end(patch: Patch) -> None:
    """A run is cancelled whether or not it has ended, and however it has."""
    patch.replace(Control, "cancel_disposition", lambda _self, _outcome: "accepted")
    patch.replace(Progress, "has_ended_for_good", lambda _self, _outcome: False)


@mutant("cancelled-run-forgets", "CAN-3", shown_by="recall/cancel@waiting:consent")
def cancelled_run_forgets(patch: Patch) -> None:
    """A cancelled run shows all its operations as skipped, also those that have had their effects."""
    _on_cancelled(patch, lambda one: {**one, "state": "skipped", "nonce": None})


@mutant("stop-settles-doubts", "CAN-4", shown_by="deaf/cancel@knock#1.received+delay@knock#1.applied")
def stop_settles_doubts(patch: Patch) -> None:
    """What nobody knows the outcome of when a run is stopped counts as failed."""

    def end(self: Acceptance, op: Operation, move: Move, reason: str) -> bool:
        return original(self, op, "exhaust" if self.is_halted(op.attempt) else move, reason)

    original = Acceptance._end  # noqa: SLF001 - a mutant goes where it should not
    patch.replace(Acceptance, "_end", end)


@mutant("doubts-not-listed", "CAN-4", shown_by="astray/cancel@waiting:word")
def doubts_not_listed(patch: Patch) -> None:
    """A cancelled run lists what it has results of, and nothing else."""
    _on_cancelled(patch, lambda one: one if one["state"] in ("succeeded", "reconciled") else None)


@mutant("children-go-on", "CAN-5", shown_by="household/cancel@kid/school#1.received+delay@kid/school#1.applied")
def children_go_on(patch: Patch) -> None:
    """A stop is not handed down: the run waits until its children have done all that they were to do."""
    patch.replace(Children, "stop_children", lambda _self, _attempt, _reason: 0)


@mutant(
    "over-before-its-children", "CAN-5", shown_by="household/cancel@kid/school#1.received+delay@kid/school#1.applied"
)
def over_before_its_children(patch: Patch) -> None:
    """A run that is stopped neither stops its children nor waits for them."""

    def tally(self: Progress, attempt: str) -> Tally:
        found = original(self, attempt)
        return attrs.evolve(found, children=False) if found.stopping else found

    original = Progress.tally
    patch.replace(Progress, "tally", tally)
    patch.replace(Children, "stop_children", lambda _self, _attempt, _reason: 0)


@mutant("detached-stopped-too", "CAN-5", shown_by="household/cancel@lodger/bed#1.received")
def detached_stopped_too(patch: Patch) -> None:
    """A stop takes every child that the run has begun along, also those that it has let go."""

    def stop_children(self: Children, attempt: str, reason: str) -> int:
        rows = self._rows(
            "SELECT a.id FROM child c JOIN attempt a ON a.task = c.task WHERE c.attempt = ? AND a.outcome IS NULL"
            " AND c.owner = 'detached'",
            attempt,
        )
        for (child,) in rows:
            self._stop(child, reason)
        return original(self, attempt, reason)

    original = Children.stop_children
    patch.replace(Children, "stop_children", stop_children)


@mutant("namesakes-stopped-too", "CAN-5", shown_by="crowded/crowd@ack:start=6+cancel@serve#1.received")
def namesakes_stopped_too(patch: Patch) -> None:
    """A stop takes along whose name begins like that of the run: that is how children are called, and others too."""

    def cancel(self: Control, task: str, id_: str) -> Json:
        answer = original(self, task, id_)
        attempts = self._rows("SELECT attempt FROM task WHERE id LIKE ? || '-%' ORDER BY id", task)
        with self._transaction():
            for (attempt,) in attempts if answer["disposition"] == "accepted" else ():
                self.halt(attempt)
                self._conclude(attempt)
        return answer

    original = Control.cancel
    patch.replace(Control, "cancel", cancel)


@mutant("grace-in-memory", "CAN-6", shown_by="deaf/cancel@ask#1.received+delay@ask#1.applied+kill@t+75000000ns(engine)")
def grace_in_memory(patch: Patch) -> None:
    """When the grace of a stop is over is kept in the memory of the server that took the stop."""
    on_restart(patch, "DELETE FROM timer WHERE operation = ''")  # `waits.GRACE`


@mutant("grace-without-end", "CAN-6", shown_by="deaf/cancel@ask#1.received+delay@ask#1.applied")
def grace_without_end(patch: Patch) -> None:
    """Nothing is done when the grace is over: a stopped run waits for its calls for as long as they take."""
    patch.replace(Control, "_grace_over", lambda _self, _attempt: None)


@mutant(
    "children-without-grace",
    "CAN-6",
    shown_by="household/cancel@kid/friend/toss#1.received+delay@kid/friend/toss#1.applied",
)
def children_without_grace(patch: Patch) -> None:
    """When the grace is over what is under way is taken from the run itself, and not from its children."""

    def grace_over(self: Control, attempt: str) -> None:
        if self.owning_attempt(attempt) is None:
            original(self, attempt)

    original = Control._grace_over  # noqa: SLF001 - a mutant goes where it should not
    patch.replace(Control, "_grace_over", grace_over)


@mutant(
    "grace-begun-anew",
    "CAN-6",
    shown_by="pester/cancel@knock#1.received+delay@knock#1.applied+cancel@t+180000000ns+cancel@t+180000000ns+cancel@t+180000000ns",
)
def grace_begun_anew(patch: Patch) -> None:
    """Every stop gives what is under way its grace, also one of a run that is being stopped already."""

    def halt(self: Control, attempt: str) -> None:
        original(self, attempt)
        self.start_timer(attempt, GRACE, time.time_ns() + self.policy.grace_ns)

    original = Control.halt
    patch.replace(Control, "halt", halt)


@mutant("no-cleanup-after-a-stop", "CAN-7", shown_by="unwind/cancel@waiting:final")
def no_cleanup_after_a_stop(patch: Patch) -> None:
    """Only runs that fail are cleaned up after; one that is stopped is left as it is."""

    def begin_undo(self: Compensation, attempt: str) -> bool:
        return not self.is_halted(attempt) and original(self, attempt)

    original = Compensation.begin_undo
    patch.replace(Compensation, "begin_undo", begin_undo)


@mutant("cleanup-in-memory", "CAN-7", shown_by="unwind/cancel@waiting:final+kill@unhotel#1.received(engine)")
def cleanup_in_memory(patch: Patch) -> None:
    """What is still to be undone in a stopped run is a list in memory, which a restart begins empty."""
    on_restart(
        patch,
        "UPDATE operation SET state = 'skipped', due_ns = NULL WHERE kind = 'compensate' AND state = 'planned'"
        " AND attempt IN (SELECT id FROM attempt WHERE halt IS NOT NULL AND outcome IS NULL)",
    )


@mutant("never-too-late", "CAN-8", shown_by="recall/cancel@end")
def never_too_late(patch: Patch) -> None:
    """Every stop is answered as if it had been in time; one that was not changes nothing."""

    def cancel(self: Control, task: str, id_: str) -> Json:
        original(self, task, id_)
        return {"disposition": "accepted"}

    original = Control.cancel
    patch.replace(Control, "cancel", cancel)

"""Mutants of CPL-1 to CPL-4: runs that are over too early, and results whose way is not told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.mutants import Patch, mutant
from reference_runtime.checks import Checks
from reference_runtime.delivery import Delivery
from reference_runtime.server import Server

if TYPE_CHECKING:
    from reference_runtime.model import Report
    from reference_runtime.rows import Operation
    from reference_runtime.store import Store


@mutant("stale-pass-counts", "CPL-1", shown_by="replace/delay@proof#1.applied")
def stale_pass_counts(patch: Patch) -> None:
    """A check that has passed once has passed, whatever replaces its subject."""
    patch.replace(Checks, "is_current", lambda _self, _check: True)


def _counts_as(patch: Patch, outcome: str, counted: Report) -> None:
    """What a checker says of a subject counts as something else, at the gate of the run too."""

    def finding_report(self: Checks, found: str, *, is_required: bool) -> Report:
        return counted if found == outcome else original(self, found, is_required=is_required)

    original = Checks.finding_report
    patch.replace(Checks, "finding_report", finding_report)
    if counted == "succeeded":
        patch.replace(Checks, "gate", lambda _self, _attempt: None)


@mutant("unavailable-lets-through", "CPL-2", shown_by="closed/undisturbed")
def unavailable_lets_through(patch: Patch) -> None:
    """Where nobody is there to check, nothing is wrong."""
    _counts_as(patch, "unavailable", "succeeded")


@mutant("skipped-lets-through", "CPL-2", shown_by="waived/undisturbed")
def skipped_lets_through(patch: Patch) -> None:
    """A check that was left out is not missed."""
    _counts_as(patch, "skipped", "succeeded")


@mutant("timeout-is-failure", "CPL-2", shown_by="endless/undisturbed")
def timeout_is_failure(patch: Patch) -> None:
    """A check that took too long has failed."""
    _counts_as(patch, "timeout", "failed")


@mutant("unavailable-told-as-timeout", "CPL-2", shown_by="closed/undisturbed")
def unavailable_told_as_timeout(patch: Patch) -> None:
    """Whatever a checker could not say, the run ends with one and the same reason."""

    def unanswered(self: Checks, attempt: str) -> str | None:
        reason = original(self, attempt)
        return None if reason is None else f"check-timeout:{reason.partition(':')[2]}"

    original = Checks.unanswered
    patch.replace(Checks, "unanswered", unanswered)


@mutant("verdicts-in-memory", "CPL-3", shown_by="handover/kill@file#1.applied(engine)")
def verdicts_in_memory(patch: Patch) -> None:
    """A server that comes up knows nothing of the verdicts there were before."""

    def init(self: Server, store: Store, **options: Any) -> None:
        original(self, store, **options)
        store.db.execute("DELETE FROM verdict")

    original = Server.__init__
    patch.replace(Server, "__init__", init)
    patch.replace(Checks, "gate", lambda _self, _attempt: None)
    patch.replace(Checks, "recheck", lambda _self, _attempt: 0)


@mutant("checked-by-nobody", "CPL-3", shown_by="handover/wipe@file#1.applied")
def checked_by_nobody(patch: Patch) -> None:
    """A verdict is kept without who made it."""

    def choose_subject(self: Checks, op: Operation) -> None:
        original(self, op)
        self.db.execute("UPDATE verdict SET checker = '' WHERE attempt = ? AND operation = ?", (op.attempt, op.id))

    original = Checks.choose_subject
    patch.replace(Checks, "choose_subject", choose_subject)


@mutant("ready-is-delivered", "CPL-4", shown_by="handover/kill@end(engine)")
def ready_is_delivered(patch: Patch) -> None:
    """A result counts as handed over as soon as there is one."""

    def prepare_result(self: Delivery, attempt: str) -> None:
        original(self, attempt)
        self.db.execute("UPDATE delivery SET state = 'delivered' WHERE attempt = ?", (attempt,))

    original = Delivery.prepare_result
    patch.replace(Delivery, "prepare_result", prepare_result)


@mutant("delivery-forgotten", "CPL-4", shown_by="handover/cancel@end")
def delivery_forgotten(patch: Patch) -> None:
    """Nobody notes that a result was handed over."""
    patch.replace(Delivery, "deliver", lambda _self, _task: False)

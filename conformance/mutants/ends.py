"""Mutants of DUR-6 and SIG-3 that end a run over what it could have got over."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import attrs

from conformance.mutants import Patch, mutant
from conformance.mutants.restarts import on_restart
from reference_runtime.acceptance import Acceptance
from reference_runtime.approvals import Approvals

if TYPE_CHECKING:
    from reference_runtime.model import Remedy, Semantics
    from reference_runtime.retries import Limits
    from reference_runtime.rows import Operation
    from reference_runtime.store import Store


@mutant("restart-fails-runs", "DUR-6", shown_by="tour/kill@reserve#1.applied(engine)")
def restart_fails_runs(patch: Patch) -> None:
    """A server that comes up fails every run that has not ended, as interrupted."""

    def fail(store: Store) -> None:
        for (attempt,) in store._rows("SELECT id FROM attempt WHERE outcome IS NULL"):  # noqa: SLF001 - as a mutant may
            store.fail_run(attempt, "interrupted: the server was restarted")
            store._conclude(attempt)  # noqa: SLF001 - as a mutant may

    on_restart(patch, fail)


@mutant("restart-fails-what-is-asked", "DUR-6", shown_by="direction/kill@draft#1.applied(engine)")
def restart_fails_what_is_asked(patch: Patch) -> None:
    """A server that comes up fails every run in which somebody is to be asked: it knows of no question any more."""

    def fail(store: Store) -> None:
        asked = "SELECT DISTINCT o.attempt FROM operation o JOIN attempt a ON a.id = o.attempt"
        for (attempt,) in store._rows(f"{asked} WHERE o.kind = 'approve' AND a.outcome IS NULL"):  # noqa: SLF001 - as above
            store.fail_run(attempt, "interrupted: the server was restarted")
            store._conclude(attempt)  # noqa: SLF001 - as above

    on_restart(patch, fail)


@mutant("lost-answer-ends-run", "DUR-6", shown_by="tour/kill@reserve#1.applied")
def lost_answer_ends_run(patch: Patch) -> None:
    """A call whose answer was lost is given up, whatever its receiver allows."""

    def on_unknown(_self: Acceptance, _semantics: Semantics) -> Remedy:
        return "none"

    patch.replace(Acceptance, "on_unknown", on_unknown)


@mutant("held-work-is-blocked", "SIG-3", shown_by="hold/halt@pack#1.received")
def held_work_is_blocked(patch: Patch) -> None:
    """What a step of a paused run opens counts as held for good, so that nothing can move once the run may go on."""

    def is_held(self: Approvals, attempt: str, operation: str) -> Any:
        paused = self._value("SELECT paused FROM attempt WHERE id = ?", attempt)
        return bool(paused) or original(self, attempt, operation)

    original = Approvals.is_held
    patch.replace(Approvals, "is_held", is_held)


@mutant("one-try-is-all", "DUR-6", shown_by="two-tries/drop@pay#1.applied")
def one_try_is_all(patch: Patch) -> None:
    """What may be tried a number of times is given up after the first."""

    def limits_of(self: Acceptance, op: Operation) -> Limits:
        limits = original(self, op)
        is_limited = json.loads(op.spec).get("tries") is not None
        return attrs.evolve(limits, tries=1) if is_limited else limits

    original = Acceptance.limits_of
    patch.replace(Acceptance, "limits_of", limits_of)

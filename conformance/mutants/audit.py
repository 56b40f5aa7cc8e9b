"""Mutants of JRN-8 and JRN-9: a trail that can be rewritten or names too little, and control that becomes a result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.mutants import Patch, mutant
from reference_runtime.audit import Audit
from reference_runtime.control import Control
from reference_runtime.model import canonical

if TYPE_CHECKING:
    from reference_runtime.model import Json, Move


@mutant("audit-updated-in-place", "JRN-8", shown_by="receivers/kill@shipment#1.applied")
def audit_updated_in_place(patch: Patch) -> None:
    """The trail has one line for each kind of action on a target, which is brought up to date."""

    def audit(self: Audit, task: str, actor: str, authority: str, action: str, target: str, detail: str = "") -> None:
        (guard,) = self._rows("SELECT sql FROM sqlite_schema WHERE name = 'audit_stays'")[0]
        self.db.execute("DROP TRIGGER audit_stays")
        self.db.execute(
            "UPDATE audit SET actor = ?, authority = ?, detail = ? WHERE task = ? AND action = ? AND target = ?",
            (actor, authority, detail, task, action, target),
        )
        is_known = self.db.changes() > 0
        self.db.execute(guard)
        if not is_known:
            original(self, task, actor, authority, action, target, detail)

    original = Audit.audit
    patch.replace(Audit, "audit", audit)


def _leave_out(patch: Patch, *names: str) -> None:
    """Every line lacks these."""

    def audit(self: Audit, task: str, actor: str, authority: str, action: str, target: str, detail: str = "") -> None:
        said = {"actor": actor, "authority": authority, "action": action, "target": target}
        original(self, task, **(said | dict.fromkeys(names, "")), detail=detail)

    original: Any = Audit.audit
    patch.replace(Audit, "audit", audit)


@mutant("audit-without-actor", "JRN-8", shown_by="tour/kill@reserve#1.applied")
def audit_without_actor(patch: Patch) -> None:
    """The trail says what was done, and not by whom."""
    _leave_out(patch, "actor")


@mutant("audit-without-authority", "JRN-8", shown_by="tour/kill@reserve#1.applied")
def audit_without_authority(patch: Patch) -> None:
    """The trail says who did it, and not by what right."""
    _leave_out(patch, "authority")


@mutant("decisions-by-the-engine", "JRN-8", shown_by="gate/undisturbed")
def decisions_by_the_engine(patch: Patch) -> None:
    """A decision is on the trail under the name of the engine that took it, and not of the person who made it."""

    def audit(self: Audit, task: str, actor: str, authority: str, action: str, target: str, detail: str = "") -> None:
        original(self, task, "engine" if action == "decide" else actor, authority, action, target, detail)

    original = Audit.audit
    patch.replace(Audit, "audit", audit)


# ---- control as a result


def _close(store: Control, attempt: str, kind: str, state: str, move: Move, nonce: str | None) -> None:
    """End what is under way of this kind by what stopped it."""
    where = "WHERE o.attempt = ? AND o.kind = ? AND o.state = ? AND o.opened_ns IS NOT NULL"
    for op in store._operations(where, attempt, kind, state):  # noqa: SLF001 - a mutant goes where it should not
        answer = None if nonce is None else canonical({"nonce": nonce})
        store._move(op, move, op.generation, op.version, answer, "cancelled: by whoever stopped the run")  # noqa: SLF001 - as above
        store._release(op.generation)  # noqa: SLF001 - as above
        if nonce is not None:
            store._advance(op.attempt, op.id)  # noqa: SLF001 - as above


@mutant("stop-fails-calls", "JRN-9", shown_by="interlude/cancel@pack#1.applied")
def stop_fails_calls(patch: Patch) -> None:
    """A call that is under way when its run is stopped has failed, as far as the journal goes."""

    def halt(self: Control, attempt: str) -> None:
        original(self, attempt)
        _close(self, attempt, "call", "dispatched", "refuse", None)

    original = Control.halt
    patch.replace(Control, "halt", halt)


@mutant("stop-answers-waits", "JRN-9", shown_by="interlude/cancel@waiting:word")
def stop_answers_waits(patch: Patch) -> None:
    """A wait or an approval that a stop or a pause wakes takes that for its signal or its decision."""

    def halt(self: Control, attempt: str) -> None:
        for kind in ("wait", "approve"):
            _close(self, attempt, kind, "planned", "release", "cancelled")
        original(self, attempt)

    def pause(self: Control, task: str, id_: str) -> Json:
        answer = original_pause(self, task, id_)
        with self._transaction():
            for kind in ("wait", "approve"):
                _close(self, self._current_attempt(task), kind, "planned", "release", "paused")
        return answer

    original, original_pause = Control.halt, Control.pause
    patch.replace(Control, "halt", halt)
    patch.replace(Control, "pause", pause)


@mutant("pause-is-the-answer", "JRN-9", shown_by="interlude/halt@pack#1.applied")
def pause_is_the_answer(patch: Patch) -> None:
    """A call that is under way when its run is paused is accepted with the pause as its answer."""

    def pause(self: Control, task: str, id_: str) -> Json:
        answer = original(self, task, id_)
        with self._transaction():
            _close(self, self._current_attempt(task), "call", "dispatched", "accept", "paused")
        return answer

    original = Control.pause
    patch.replace(Control, "pause", pause)

"""Mutants of JRN-8 and JRN-9: a trail that can be rewritten or names too little, and control that becomes a result."""

from __future__ import annotations

from typing import Any

from conformance.mutants import Patch, mutant
from reference_runtime.audit import Audit


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

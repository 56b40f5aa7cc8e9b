"""Mutants of DUR-8 that carry out what a decision has left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.mutants import Patch, mutant
from reference_runtime.branching import Branching

if TYPE_CHECKING:
    from reference_runtime.rows import Operation


@mutant("branch-always-first-arm", "DUR-8", shown_by="signposts/undisturbed")
def branch_always_first_arm(patch: Patch) -> None:
    """A branch takes its first arm, whatever the answer that it goes by."""
    patch.replace(Branching, "choose_arm", lambda _self, _nonce: "A")


@mutant("both-arms", "DUR-8", shown_by="signposts/undisturbed")
def both_arms(patch: Patch) -> None:
    """What a decision is against is not left out: both arms are carried out, and who lost a race goes on."""
    patch.replace(Branching, "against", lambda _self, _gate, _chosen: [])


@mutant("loser-goes-on", "DUR-8", shown_by="heat/undisturbed")
def loser_goes_on(patch: Patch) -> None:
    """Only what had begun counts for nothing once a race is won; what follows on it goes on as if nothing had been decided."""

    def against(self: Branching, gate: Operation, chosen: str) -> list[Operation]:
        return [op for op in original(self, gate, chosen) if op.state != "planned"]

    original = Branching.against
    patch.replace(Branching, "against", against)

"""Mutants of commits that several share: somebody is told before it. All are of the configuration that puts commits off."""

from __future__ import annotations

from conformance.mutants import Patch, mutant
from reference_runtime.gathering import Gathering


@mutant("shown-before-the-commit", "DUR-2", shown_by="tour/kill@waiting:release(engine)", config="delayed")
def shown_before_the_commit(patch: Patch) -> None:
    """Who only looks is not kept waiting for the commit that others share, and is shown what is not durable yet."""
    _answer_at_once(patch, "status")


@mutant(
    "paused-before-the-commit",
    "SIG-3",
    shown_by="halt-all/halt@kid/shoes#1.received+kill@kid/shoes#1.applied(engine)",
    config="delayed",
)
def paused_before_the_commit(patch: Patch) -> None:
    """A pause that comes while others share a commit is acknowledged before that."""
    _answer_at_once(patch, "pause")


def _answer_at_once(patch: Patch, at_once: str) -> None:
    """Have this verb answered before the commit."""

    def awaits_commit(self: Gathering, verb: str) -> bool:
        return verb != at_once and original(self, verb)

    original = Gathering.awaits_commit
    patch.replace(Gathering, "awaits_commit", awaits_commit)

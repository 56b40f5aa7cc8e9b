"""Mutants of DUR-3 that hand on other answers than the plan says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.mutants import Patch, mutant
from reference_runtime.intents import Intents
from reference_runtime.ownership import Ownership

if TYPE_CHECKING:
    from collections.abc import Callable, Collection


def _handed(patch: Patch, change: Callable[[dict[str, str]], dict[str, str]]) -> None:
    """What a request hands on is as `change` has it."""

    def answers(self: Ownership, attempt: str, names: Collection[str]) -> dict[str, str]:
        return change(original(self, attempt, names))

    original = Intents.accepted_answers
    patch.replace(Intents, "accepted_answers", answers)


@mutant("nothing-handed-on", "DUR-3", shown_by="chain/undisturbed")
def nothing_handed_on(patch: Patch) -> None:
    """No request hands anything on."""
    _handed(patch, lambda _found: {})


@mutant("last-not-handed-on", "DUR-3", shown_by="tour/undisturbed")
def last_not_handed_on(patch: Patch) -> None:
    """Of several answers that a request is to hand on, the last is left out."""
    _handed(patch, lambda found: dict(list(found.items())[: max(1, len(found) - 1)]))


@mutant("handed-on-crosswise", "DUR-3", shown_by="tour/undisturbed")
def handed_on_crosswise(patch: Patch) -> None:
    """Of several answers that a request is to hand on, each goes under the name of another."""
    _handed(patch, lambda found: dict(zip(found, list(found.values())[::-1], strict=True)))


@mutant("handed-on-made-up", "DUR-3", shown_by="chain/undisturbed")
def handed_on_made_up(patch: Patch) -> None:
    """What a request hands on is made of the names of operations, and nobody has given it."""
    _handed(patch, lambda found: {name: name.encode().hex().ljust(12, "0") for name in found})

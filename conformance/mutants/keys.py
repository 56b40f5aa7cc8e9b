"""Mutants of EFF-2: keys that are one operation's own only as far as somebody has looked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.mutants import Patch, mutant
from reference_runtime.intents import Intents
from reference_runtime.ownership import Ownership
from reference_runtime.retries import KEYED

if TYPE_CHECKING:
    from reference_runtime.rows import Operation


@mutant("key-without-child", "EFF-2", shown_by="namesakes/undisturbed")
def key_without_child(patch: Patch) -> None:
    """The key is made of the id that was submitted and the operation's own: all of a family share theirs."""

    def key_for(self: Ownership, op: Operation) -> str | None:
        key = original(self, op)
        return None if key is None else f"{op.task.partition('/')[0]}:{op.id}"

    original = Intents.key_for
    patch.replace(Intents, "key_for", key_for)


@mutant("key-without-run", "EFF-2", shown_by="crowded/crowd@ack:start=8")
def key_without_run(patch: Patch) -> None:
    """The key is the operation's id, which is the same in every run of one plan."""
    patch.replace(Intents, "key_for", lambda _self, op: op.id if op.semantics in KEYED else None)

"""Mutants of recovery: decided by chance, and restored differently."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.mutants import Patch, mutant
from reference_runtime.acceptance import Acceptance
from reference_runtime.gathering import Gathering
from reference_runtime.intents import Intents
from reference_runtime.ownership import Ownership
from reference_runtime.server import Server

if TYPE_CHECKING:
    from collections.abc import Collection

    from reference_runtime.model import Json, Remedy, Report, Semantics

#: As long as the column that a schema might have had.
COLUMN_CHARACTERS = 4096


@mutant("answered-before-the-commit", "JRN-1", shown_by="fanout/kill@engine.boundary#61")
def answered_before_the_commit(patch: Patch) -> None:
    """What is taken together with what others say is acknowledged at once, and made durable a moment later."""

    async def committed(self: Gathering) -> None:
        assert self.nursery is not None
        self.nursery.start_soon(original, self)

    original = Gathering.committed
    patch.replace(Gathering, "committed", committed)


@mutant("remedy-by-chance", "DUR-10", shown_by="relapse/kill@parcel#1.applied+kill@*#2.received")
def remedy_by_chance(patch: Patch) -> None:
    """Whether an unknown effect is looked up or made again is drawn, and not decided by what is known of it."""

    def on_unknown(self: Acceptance, semantics: Semantics) -> Remedy:
        if semantics == "lookup" and self.rng.random() < 1 / 2:
            return "repeat"
        return original(self, semantics)

    original = Acceptance.on_unknown
    patch.replace(Acceptance, "on_unknown", on_unknown)


@mutant("key-of-this-engine", "DUR-10", shown_by="relapse/kill@pay#1.applied+kill@*#1.received")
def key_of_this_engine(patch: Patch) -> None:
    """A recovery makes a key of its own for what it sends again."""

    def key_for(self: Ownership, op: Any) -> str | None:
        key = original(self, op)
        return f"{key}:{op.deaths}" if key is not None and op.deaths else key

    original = Intents.key_for
    patch.replace(Intents, "key_for", key_for)


@mutant("long-results-cut", "DUR-14", shown_by="sizes/kill@waiting:gate(engine)")
def long_results_cut(patch: Patch) -> None:
    """Results read back after a restart are cut to the length of a column; those still in memory are whole."""
    whole: set[str] = set()

    async def settle(self: Server, grant: Json, report: Report, answer: Json, **more: Any) -> Json:
        whole.add(str(answer.get("nonce", "")))
        return await original_settle(self, grant, report, answer, **more)

    def accepted_answers(self: Ownership, attempt: str, names: Collection[str]) -> dict[str, str]:
        found = original(self, attempt, names)
        return {name: text if text in whole else text[:COLUMN_CHARACTERS] for name, text in found.items()}

    def restarted(self: Server, *args: Any, **kwargs: Any) -> None:
        whole.clear()  # memory of the process that died
        original_init(self, *args, **kwargs)

    original, original_settle, original_init = Intents.accepted_answers, Server.settle, Server.__init__
    patch.replace(Intents, "accepted_answers", accepted_answers)
    patch.replace(Server, "settle", settle)
    patch.replace(Server, "__init__", restarted)

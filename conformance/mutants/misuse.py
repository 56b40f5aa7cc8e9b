"""Mutants of what an id stands for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from conformance.mutants import Patch, mutant
from reference_runtime.model import Refusal
from reference_runtime.server import Server
from reference_runtime.store import Store

if TYPE_CHECKING:
    from reference_runtime.model import Json


@mutant("conflict-is-the-same", "DUR-13", shown_by="homonym/misuse@waiting:nod")
def conflict_is_the_same(patch: Patch) -> None:
    """A known id is answered with its task, whatever is asked for under it."""

    def admission(self: Store, task: str, fingerprint: str) -> Literal["new", "same", "conflict"]:
        found = original(self, task, fingerprint)
        return "same" if found == "conflict" else found

    original = Store.admission
    patch.replace(Store, "admission", admission)


@mutant("later-plan-wins", "DUR-13", shown_by="homonym/misuse@end")
def later_plan_wins(patch: Patch) -> None:
    """Another plan under a known id is refused, and yet takes the place of the first."""

    async def submit(self: Server, task: str, plan: Json) -> Json:
        try:
            return await original(self, task, plan)
        except Refusal:
            with self.store._transaction():  # noqa: SLF001 - a mutant goes where it should not
                self.store._admit(task, plan)  # noqa: SLF001 - as above
            raise

    original = Server.submit
    patch.replace(Server, "submit", submit)

"""What several mutants are made of: a server that does something to what it finds as it comes up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reference_runtime.server import Server

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.mutants import Patch
    from reference_runtime.store import Store


def on_restart(patch: Patch, change: str | Callable[[Store], object]) -> None:
    """A server that comes up runs one statement on what it finds, or one function, as if that had been kept in memory."""

    def init(self: Server, store: Store, **options: Any) -> None:
        original(self, store, **options)
        with store._transaction():  # noqa: SLF001 - a mutant goes where it should not
            if isinstance(change, str):
                store.db.execute(change)
            else:
                change(store)

    original = Server.__init__
    patch.replace(Server, "__init__", init)

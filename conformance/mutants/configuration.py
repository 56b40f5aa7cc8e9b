"""Mutants of settings: the store's file kept in a mode that a loss of power gets the better of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.mutants import Patch, mutant
from reference_runtime import schema

if TYPE_CHECKING:
    from collections.abc import Mapping


def _settings(**changed: tuple[str, object]) -> Mapping[str, tuple[str, object]]:
    return {**schema.PRAGMAS, **changed}


@mutant("synchronous-normal", "DUR-1", shown_by="tour/power@ack:start(engine)")
def synchronous_normal(patch: Patch) -> None:
    """The store runs with synchronous=NORMAL, which leaves a commit to the log without a sync of it."""
    patch.replace(schema, "PRAGMAS", _settings(synchronous=("NORMAL", 1)))


@mutant("synchronous-off", "DUR-1", shown_by="tour/power@ack:start(engine)")
def synchronous_off(patch: Patch) -> None:
    """The store runs with synchronous=OFF: nothing is synced at all."""
    patch.replace(schema, "PRAGMAS", _settings(synchronous=("OFF", 0)))


@mutant("journal-mode-delete", "SIG-1", shown_by="tour/power@ack:signal:release(engine)")
def journal_mode_delete(patch: Patch) -> None:
    """The store keeps a rollback journal whose removal commits, and is not synced: it may come back and undo the commit."""
    settings = _settings(locking_mode=("NORMAL", "normal"), journal_mode=("DELETE", "delete"))
    patch.replace(schema, "PRAGMAS", settings)

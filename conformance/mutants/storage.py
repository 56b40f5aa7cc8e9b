"""Mutants of how faults of the storage are taken."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import apsw

from conformance.mutants import Patch, mutant
from reference_runtime import integrity, schema
from reference_runtime.transactions import Transactions

if TYPE_CHECKING:
    from collections.abc import Iterator


@mutant("commit-error-swallowed", "DUR-11", shown_by="vault/eio@engine.boundary#67")
def commit_error_swallowed(patch: Patch) -> None:
    """An error of the storage at a commit is passed over, and the caller is told that all is well."""

    @contextlib.contextmanager
    def transaction(self: Transactions) -> Iterator[None]:
        is_outer = not self.db.in_transaction
        try:
            with original(self):
                yield
        except (apsw.IOError, apsw.FullError):
            if not is_outer:
                raise
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")

    original = Transactions._transaction  # noqa: SLF001 - a mutant goes where it should not
    patch.replace(Transactions, "_transaction", transaction)


@mutant("damaged-page-served", "DUR-11", shown_by="vault/kill@waiting:nod(engine)+flip@end(engine)")
def damaged_page_served(patch: Patch) -> None:
    """Pages are read without a look at their checksums."""
    patch.replace(integrity, "_checksum", lambda _page, _offset: bytes(4))


@mutant("cut-log-believed", "DUR-11", shown_by="vault/flip@waiting:nod(engine)")
def cut_log_believed(patch: Patch) -> None:
    """Where the log ends is taken from the log itself, though it may have been cut by damage."""
    patch.replace(schema, "log_damage", lambda _path, _frames: None)


@mutant("failed-sync-forgotten", "DUR-11", shown_by="alarms/eio@engine.boundary#60=fsync+power@end(engine)")
def failed_sync_forgotten(patch: Patch) -> None:
    """Whoever opens the store takes what it reads for durable, also after a sync that failed."""
    patch.replace(schema, "_make_durable", lambda _db, _log: None)

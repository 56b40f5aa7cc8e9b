"""A mutant of APR-3 whose approvals are good for longer than they were to be."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from conformance.mutants import Patch, mutant
from conformance.mutants.restarts import on_restart

if TYPE_CHECKING:
    from reference_runtime.store import Store

_LIMITED = """SELECT p.attempt, p.operation, o.spec FROM approval p JOIN operation o ON o.attempt = p.attempt
    AND o.id = p.operation WHERE p.expires_ns IS NOT NULL AND p.state IN ('pending', 'approved')"""


@mutant("validity-renewed-by-restart", "APR-3", shown_by="signatures/kill@waiting:board(engine)~2000000000ns")
def validity_renewed_by_restart(patch: Patch) -> None:
    """The time for which approvals are good begins anew when a server comes up."""

    def renew(store: Store) -> None:
        for attempt, operation, spec in store.db.execute(_LIMITED).fetchall():
            until_ns = time.time_ns() + json.loads(str(spec))["validity_ns"]
            for table, column in (("approval", "expires_ns"), ("timer", "due_ns")):
                change = f"UPDATE {table} SET {column} = ? WHERE attempt = ? AND operation = ?"  # noqa: S608 - constants
                store.db.execute(change, (until_ns, attempt, operation))

    on_restart(patch, renew)

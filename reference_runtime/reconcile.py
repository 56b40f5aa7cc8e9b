"""Reconciling: the search for what became of a call whose outcome nobody knows, as an operation of its own.

A search has an id, `<attempt>:<operation>?<n>`, counts its own questions, and ends with what it came to: `found`,
`missing`, or `unresolved` when its questions are used up. Calls and questions never count against each other.
"""

from __future__ import annotations

import time
from typing import Literal

from reference_runtime.rows import Operation, Rows

Result = Literal["found", "missing", "unresolved", "noticed"]


class Reconcile(Rows):
    """The rows of `reconcile`; at most one search of an operation is open."""

    def lookups(self, op: Operation) -> int:
        """The questions asked in the open search, 0 when there is none."""
        return int(self._value(f"SELECT tries FROM reconcile {_OPEN}", op.attempt, op.id) or 0)

    def open_search(self, op: Operation) -> None:
        """Begin a search unless one is open."""
        self.db.execute(
            "INSERT INTO reconcile SELECT ?1 || ':' || ?2 || '?' || (1 + count(*)), ?1, ?2, 0, ?3, NULL, NULL"
            " FROM reconcile WHERE attempt = ?1 AND operation = ?2 HAVING count(*) = count(ended_ns)",
            (op.attempt, op.id, time.time_ns()),
        )

    def count_lookup(self, op: Operation, by: int = 1) -> None:
        """One question more of the open search; `by` -1: it was handed back unasked."""
        self.db.execute(f"UPDATE reconcile SET tries = tries + ? {_OPEN}", (by, op.attempt, op.id))

    def end_search(self, op: Operation, result: Result) -> None:
        """End the open search, if one is open."""
        self.db.execute(
            f"UPDATE reconcile SET ended_ns = ?, result = ? {_OPEN}", (time.time_ns(), result, op.attempt, op.id)
        )


_OPEN = "WHERE attempt = ? AND operation = ? AND ended_ns IS NULL"

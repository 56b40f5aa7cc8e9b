"""Delivery: a result is *prepared* in the transaction that ends its run, and *delivered* once somebody was given it."""

from __future__ import annotations

import time

from reference_runtime.rows import Parts


class Delivery(Parts):
    """The rows of `delivery`, one a task."""

    def prepare_result(self, attempt: str) -> None:
        """Note that an attempt's result is there to be handed over, and has not been."""
        self.db.execute(
            "INSERT INTO delivery SELECT task, id, 'prepared', ? FROM attempt WHERE id = ?"
            " ON CONFLICT DO UPDATE SET attempt = excluded.attempt, state = 'prepared', at_ns = excluded.at_ns",
            (time.time_ns(), attempt),
        )

    def deliver(self, task: str) -> bool:
        """Note that a task's result was given to somebody who asked for it; whether it was for the first time."""
        with self._transaction():
            self.db.execute(
                "UPDATE delivery SET state = 'delivered', at_ns = ? WHERE task = ? AND state = 'prepared'",
                (time.time_ns(), task),
            )
            is_first = self.db.changes() == 1
            if is_first:
                self._touch(self._current_attempt(task))
            return is_first

"""Unparking: an operator has a workflow's turn tried again that was put aside.

A turn is parked when its code diverged or was refused, or when worker after worker was lost over it. Other code takes it up by
itself; where the code was not at fault (a machine without memory, a module that was mended in place) somebody has to say so.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from reference_runtime.model import Json
from reference_runtime.turns import Turns

Retried: TypeAlias = Literal["accepted", "nothing-parked", "too-late"]


class Unparking(Turns):
    """Giving parked turns another chance."""

    def retry(self, task: str, id_: str) -> Json:
        """Offer a parked turn to every code again, with no death counted. Its disposition: accepted; nothing-parked where there
        is nothing to try again, and nothing was changed; too-late for a task that has ended or is to stop.
        """
        with self._transaction():
            known = self.known_command(task, id_, "retry", {})
            if known is not None:
                return known
            attempt = self._current_attempt(task)
            return self.keep_command(task, id_, "retry", {}, self._disposed(attempt, self._retried(attempt)))

    def _retried(self, attempt: str) -> Retried:
        if self._value("SELECT outcome IS NOT NULL OR halt IS NOT NULL FROM attempt WHERE id = ?", attempt):
            return "too-late"
        parked = self._value("SELECT parked FROM workflow WHERE attempt = ? AND ended IS NULL", attempt)
        if parked is None:
            return "nothing-parked"
        self.db.execute("UPDATE workflow SET parked = NULL, refused = '[]', deaths = 0 WHERE attempt = ?", (attempt,))
        self._log_run(attempt, "unparked", parked)
        self._touch(attempt)
        self._conclude(attempt)
        return "accepted"

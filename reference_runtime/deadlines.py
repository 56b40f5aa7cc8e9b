"""Deadlines: a run ends when its time is over, whatever it is at then, and also when it only waits.

The moment is a timer of the run itself, kept by the wall clock with all the others, so that neither a restart nor a retry
renews it. What was sent is followed to its end; nothing new is sent but what undoes effects, and the question what became
of one.
"""

from __future__ import annotations

from reference_runtime.ownership import Ownership
from reference_runtime.waits import DEADLINE


class Deadlines(Ownership):
    """The timer that ends a run."""

    def arm_deadline(self, task: str, attempt: str) -> None:
        """Keep when the time of an attempt is over, as it is admitted; nothing for one that may take for ever."""
        ends = self.ends_at(task)
        if ends is not None:
            self.start_timer(attempt, DEADLINE, ends[0])

    def _conclude(self, attempt: str) -> None:
        has_ended = self._attempt(attempt).outcome is not None
        super()._conclude(attempt)
        stands = self._attempt(attempt)
        if has_ended and stands.outcome is None:  # a late word lets it go on: within the time that it had
            self.arm_deadline(stands.task, attempt)

    def _time_over(self, attempt: str) -> None:
        if self.is_stopped(attempt):
            return
        ends = self.ends_at(str(self._value("SELECT task FROM attempt WHERE id = ?", attempt)))
        assert ends is not None, f"{attempt} had a timer and has no deadline"
        for op in self._operations("WHERE o.attempt = ? AND o.state = 'unknown' AND o.due_ns IS NOT NULL", attempt):
            if self.keeps_time(op):
                self._end_unaffordable(op, ends[1])
        self.fail_run(attempt, ends[1])
        self._conclude(attempt)

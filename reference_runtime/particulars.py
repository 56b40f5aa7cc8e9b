"""Particulars: what single kinds of operations add to the way that all of them go.

The general flow (claim, intent, report, end) is the same for every operation and asks here, at four places, for what is
particular: whether it can be afforded, what its request says, how its answer counts, and what follows from its end.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from reference_runtime.children import Children
from reference_runtime.model import Json, Report
from reference_runtime.rows import Operation


class Particulars(Children):
    """The four questions, answered by kind."""

    def affords(self, op: Operation, now_ns: int) -> bool:
        """Reserve what one invocation of `op` may cost, in the transaction that gives it out. False: it is not given out.

        What can never be afforded any more, or is past its deadline, ends here, with the reason its run ends with.
        """
        answer = self.reserve(op, now_ns)
        if isinstance(answer, bool):
            return answer
        self._end_unaffordable(op, answer)
        self._conclude(op.attempt)
        return False

    def _end_unaffordable(self, op: Operation, reason: str) -> None:
        if op.state == "planned":
            self._move(op, "decline", op.generation, op.version, None, reason)
        else:
            self._move(op, "give_up" if op.in_doubt else "exhaust", op.generation, op.version, None, reason)
        if op.kind != "compensate":
            self.fail_run(op.attempt, reason)

    def prepare(self, op: Operation) -> None:
        """Put on record what this invocation is about, in the transaction that records its intent."""
        if op.kind == "check":
            self.choose_subject(op)

    def params_of(self, op: Operation) -> Json:
        """The parameters of an operation's request, fixed when they are first recorded."""
        if op.kind == "artifact":
            return self.stage(op)
        params: Json = json.loads(op.spec)["params"]
        return params

    def particular_fields(self, op: Operation) -> Json:
        """What this one invocation's request says beside its parameters."""
        return self.subject_fields(op, op.generation) if op.kind == "check" else {}

    def reading(self, op: Operation, report: Report, answer: Mapping[str, Any] | None) -> tuple[Report, str]:
        """How a holder's report counts, and why if otherwise than it says: an answer may not be what was asked for."""
        if report != "succeeded" or answer is None:
            return report, ""
        if op.kind == "check":
            counted, reason = self.take_verdict(op, answer)
            return counted, "" if counted == "succeeded" else reason
        if op.kind == "artifact" and not self.verified(op, answer):
            return "failed", f"digest-mismatch: the store has {answer.get('digest')}"
        return report, ""

    def is_final(self, op: Operation) -> bool:
        """Whether an operation that came to nothing is not to be tried again: its checker was told to leave it, or enough."""
        if op.kind != "check":
            return False
        verdict = self.verdict(op.attempt, op.id)
        return not self.is_repeatable(verdict.outcome if verdict else "", op.tries)

    def follow(self, op: Operation, report: Report, answer: Mapping[str, Any] | None) -> None:
        """What follows from a report that counted, in its transaction: usage settled, versions entered, checks made again."""
        self.settle_usage(op, report, answer, time.time_ns())
        if report not in ("succeeded", "found"):
            return
        if op.kind == "artifact":
            self.register(op)
        elif op.kind == "sweep":
            self.swept(op, answer or {})
        if op.kind in ("artifact", "check", "sweep"):
            self.recheck(op.attempt)

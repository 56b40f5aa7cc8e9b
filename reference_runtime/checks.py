"""Completion checks: success needs a passing verdict on the very version that is current at the end.

What a check is about (name, version, digest) is fixed with each of its intents and comes back with its verdict; both are
rows, and survive. The four verdicts and "skipped" are told apart, and only `passed` lets success through. A version that
is replaced makes its verdict stale: the check is made again, as an operation of its own, a bounded number of times.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from reference_runtime.artifacts import Artifacts
from reference_runtime.ids import made_for
from reference_runtime.model import ACCEPTED, Json, Report
from reference_runtime.rows import Operation

Finding = Literal["passed", "failed", "unavailable", "timeout", "skipped"]
FINDINGS: tuple[Finding, ...] = ("passed", "failed", "unavailable", "timeout", "skipped")
#: Most invocations of one check, and most checks that a replaced version makes necessary again.
CHECK_TRIES = 3


class Verdict(NamedTuple):
    """What a check was asked about, and what it found; `outcome` is empty until then."""

    subject: str
    version: int
    digest: str
    outcome: str


class Checks(Artifacts):
    """Subjects, verdicts, staleness and the gate."""

    # -- subjects

    def choose_subject(self, op: Operation) -> None:
        """Fix what this invocation is about, in the transaction that records its intent."""
        name = self.subject_name(op)
        version, digest = self.current_version(op.task, name)
        self.db.execute(
            "INSERT OR IGNORE INTO verdict VALUES (?, ?, ?, ?, ?, ?, ?, '', ?)",
            (op.attempt, op.id, op.generation, op.tool, name, version, digest, time.time_ns()),
        )

    def subject_name(self, op: Operation) -> str:
        """The name of the artifact that a check is about."""
        name = self._value("SELECT spec ->> 'name' FROM operation WHERE attempt = ? AND id = ?", op.attempt, op.subject)
        return str(name)

    def subject_fields(self, op: Operation, generation: int) -> Json:
        """What the request of one invocation says it is about: `subject`, `version`, `digest`."""
        verdict = self.verdict(op.attempt, op.id, generation)
        if verdict is None:
            return {}
        return {"subject": verdict.subject, "version": verdict.version, "digest": verdict.digest}

    def verdict(self, attempt: str, operation: str, generation: int | None = None) -> Verdict | None:
        """The verdict of one invocation of a check, or of its last one."""
        row = self._row(
            "SELECT subject, version, digest, outcome FROM verdict WHERE attempt = ?1 AND operation = ?2"
            " AND generation = ifnull(?3, generation) ORDER BY generation DESC LIMIT 1",
            attempt,
            operation,
            generation,
        )
        return None if row is None else Verdict(*row)

    # -- verdicts

    def take_verdict(self, op: Operation, answer: Mapping[str, Any]) -> tuple[Report, str]:
        """Keep what a checker found about what it was asked; how it counts, and why.

        An answer about another version, or with no known finding, says nothing about this one.
        """
        asked = self.verdict(op.attempt, op.id, op.generation)
        told = Verdict(*(answer.get(name) for name in ("subject", "version", "digest", "outcome")))  # type: ignore[arg-type]
        if asked is None or told[:3] != asked[:3] or told.outcome not in FINDINGS:
            return "unknown", "check-mismatch"
        self.db.execute(
            "UPDATE verdict SET outcome = ?, at_ns = ? WHERE attempt = ? AND operation = ? AND generation = ?",
            (told.outcome, time.time_ns(), op.attempt, op.id, op.generation),
        )
        is_required = bool(json.loads(op.spec).get("required", True))
        return self.finding_report(told.outcome, is_required=is_required), f"check-{told.outcome}"

    def finding_report(self, outcome: str, *, is_required: bool) -> Report:
        """How a finding counts: passed and failed are results, the others leave it unknown whether the subject is good."""
        if outcome == "passed" or not is_required:
            return "succeeded"
        return "failed" if outcome == "failed" else "unknown"

    def is_repeatable(self, outcome: str, tries: int) -> bool:
        """Whether a checker is asked again: it could not say, and was not told to leave the check out."""
        return outcome != "skipped" and tries < CHECK_TRIES

    # -- staleness

    def recheck(self, attempt: str) -> int:
        """Plan a check anew wherever the version it passed has been replaced; how many. A run that is ending needs none."""
        if self.is_stopped(attempt):
            return 0
        planned = 0
        for leaf in self._required(attempt):
            chain = self._chain(attempt, leaf)
            last = chain[-1]
            if last.state not in ACCEPTED or self.is_current(last) or len(chain) >= CHECK_TRIES:
                continue
            self._plan_recheck(chain[0], len(chain) + 1)
            planned += 1
        return planned

    def is_current(self, check: Operation) -> bool:
        """Whether the last verdict of a check is about the version that is current now."""
        verdict = self.verdict(check.attempt, check.id)
        return verdict is not None and verdict[1:3] == self.current_version(check.task, verdict.subject)

    def _required(self, attempt: str) -> list[str]:
        rows = self._rows(
            "SELECT id FROM operation WHERE attempt = ? AND kind = 'check' AND NOT void AND state != 'skipped'"
            " AND spec ->> 'recheck' IS NULL AND ifnull(spec ->> 'required', 1) ORDER BY position",
            attempt,
        )
        return [str(row[0]) for row in rows]

    def _chain(self, attempt: str, leaf: str) -> list[Operation]:
        """A check of the plan and those that were made in its place, in order."""
        names = [leaf, *(made_for(leaf, str(n)) for n in range(2, CHECK_TRIES + 1))]
        marks = ", ".join("?" * len(names))
        return self._operations(
            f"WHERE o.attempt = ? AND o.id IN ({marks}) ORDER BY length(o.id), o.id", attempt, *names
        )

    def _plan_recheck(self, leaf: Operation, nth: int) -> None:
        self.db.execute(
            "INSERT INTO operation (attempt, id, position, kind, tool, semantics, spec, signal, state, tries, generation,"
            " version, subject, opened_ns, due_ns)"
            " SELECT attempt, ?1, (SELECT max(position) + 1 FROM operation WHERE attempt = ?2), kind, tool, semantics,"
            " json_set(spec, '$.recheck', 1), '', 'planned', 0, 0, 0, subject, ?3, ?3"
            " FROM operation WHERE attempt = ?2 AND id = ?4",
            (made_for(leaf.id, str(nth)), leaf.attempt, time.time_ns(), leaf.id),
        )

    # -- the gate

    def unanswered(self, attempt: str) -> str | None:
        """The reason of a run that is stuck on a check which nobody could come to a verdict on."""
        row = self._row(
            "SELECT reason, id FROM operation WHERE attempt = ? AND kind = 'check' AND state = 'unresolved' AND NOT void"
            " ORDER BY position LIMIT 1",
            attempt,
        )
        return None if row is None else f"{row[0].partition(':')[0]}: {row[1]}"

    def gate(self, attempt: str) -> str | None:
        """Why success is not let through: a required check whose last verdict is not `passed` on the current version."""
        for leaf in self._required(attempt):
            check = self._chain(attempt, leaf)[-1]
            verdict = self.verdict(attempt, check.id)
            if verdict is None or verdict.outcome != "passed":
                found = verdict.outcome if verdict is not None and verdict.outcome else "missing"
                return f"check-{found}: {leaf}"
            if not self.is_current(check):
                return f"check-stale: {leaf} passed version {verdict.version} of {verdict.subject}, which was replaced"
        return None

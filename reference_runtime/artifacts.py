"""Artifacts: content is staged, verified by its digest, and accepted as a new version of its name.

An *upload* is on record before its first byte leaves, so there is no content that the store does not know of. An accepted
entry never changes (the file refuses it): a replacement is the next version, and the older one is superseded by being
older. What was uploaded by an operation that ended without being accepted is an *orphan*: a sweep, an operation like any
other, looks whether it was committed after all, and either registers it or removes it: once what was sent can no longer be
on its way. Owned content is never swept. What the store refuses to clear away is *abandoned*, and listed so.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from reference_runtime.budget import Budget
from reference_runtime.contents import content, digest_of
from reference_runtime.ids import made_for
from reference_runtime.model import Json, canonical
from reference_runtime.rows import Operation

SWEEP = "sweep"
SWEEP_TRIES = 20
#: Ends of an operation after which nobody will commit what it has staged.
ENDED = ("failed", "unresolved", "skipped")


class Artifacts(Budget):
    """Uploads, accepted versions, and the sweeping of what belongs to nobody."""

    # -- staging

    def stage(self, op: Operation) -> Json:
        """Put an upload on record, in the transaction that records its intent; what its requests say.

        `location` is the operation's own for ever, so that every invocation goes on with what earlier ones have put there.
        """
        spec = json.loads(op.spec)
        data = content(op.task, op.id, int(spec["size"]))
        location, digest = self.location_for(op), digest_of(data)
        self.db.execute(
            "INSERT OR IGNORE INTO upload VALUES (?, ?, ?, ?, ?, ?, 'staged')",
            (op.attempt, op.id, spec["name"], len(data), digest, location),
        )
        return {
            "name": spec["name"],
            "location": location,
            "size": len(data),
            "digest": digest,
            "parts": int(spec["parts"]),
        }

    def location_for(self, op: Operation) -> str:
        """Where an operation's content lies: a place no other operation uses."""
        return f"{op.attempt}:{op.id}"

    # -- accepting

    def verified(self, op: Operation, answer: Mapping[str, Any]) -> bool:
        """Whether what the store says it has committed is, by its digest, what was meant to be uploaded."""
        known = self._value("SELECT digest FROM upload WHERE attempt = ? AND operation = ?", op.attempt, op.id)
        return known is not None and known == answer.get("digest")

    def current_version(self, task: str, name: str) -> tuple[int, str]:
        """The newest accepted version of `name` and its digest; `(0, "")` before the first."""
        row = self._row(
            "SELECT version, digest FROM artifact WHERE task = ? AND name = ? ORDER BY version DESC LIMIT 1", task, name
        )
        return (0, "") if row is None else (int(row[0]), str(row[1]))

    def register(self, op: Operation) -> int:
        """Enter an upload as the next version of its name, once; that version. An entry that is there is not touched."""
        name, size, digest, location = self._rows(
            "SELECT name, size, digest, location FROM upload WHERE attempt = ? AND operation = ?", op.attempt, op.id
        )[0]
        version = self.next_version(op.task, name)
        self.db.execute(
            "INSERT INTO artifact SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8"
            " WHERE NOT EXISTS (SELECT 1 FROM artifact WHERE task = ?1 AND location = ?7)",
            (op.task, name, version, digest, size, op.id, location, time.time_ns()),
        )
        self._end_upload(op.attempt, op.id, "accepted")
        return version

    def next_version(self, task: str, name: str) -> int:
        """The version that follows the current one; the table holds each once, so two can never be the same."""
        return self.current_version(task, name)[0] + 1

    def _end_upload(self, attempt: str, operation: str, state: str) -> None:
        self.db.execute("UPDATE upload SET state = ? WHERE attempt = ? AND operation = ?", (state, attempt, operation))

    # -- orphans

    def orphans(self, attempt: str) -> list[str]:
        """The operations of an attempt that have staged content nobody will commit any more, and no sweep yet."""
        rows = self._rows(
            "SELECT u.operation, o.state, EXISTS (SELECT 1 FROM lease l WHERE l.attempt = u.attempt AND"
            " l.operation = u.operation) FROM upload u"
            " JOIN operation o ON o.attempt = u.attempt AND o.id = u.operation"
            " WHERE u.attempt = ?1 AND u.state = 'staged' AND NOT EXISTS"
            " (SELECT 1 FROM operation s WHERE s.attempt = ?1 AND s.subject = u.operation AND s.kind = 'sweep')"
            " ORDER BY o.position",
            attempt,
        )
        return [operation for operation, state, leased in rows if not self.is_owned(state, bool(leased))]

    def is_owned(self, state: str, is_leased: bool) -> bool:
        """Whether an upload is still somebody's: its operation may yet be accepted, or a worker has it in hand."""
        return is_leased or state not in ENDED

    def plan_sweeps(self, attempt: str) -> int:
        """Make a sweep for every orphan, in the transaction that orphaned it; how many."""
        orphans = self.orphans(attempt)
        for operation in orphans:
            self._plan_sweep(self._operation(attempt, operation))
        return len(orphans)

    def sweep_due_ns(self, op: Operation) -> int:
        """When what an operation has sent can no longer be on its way: at once, unless it is not known what became of it."""
        last_ns = self._value(
            "SELECT max(ended_ns) FROM invocation WHERE attempt = ? AND operation = ? AND report = 'unknown'",
            op.attempt,
            op.id,
        )
        return time.time_ns() if last_ns is None else int(last_ns) + self.policy.landing_ns

    def _plan_sweep(self, op: Operation) -> None:
        params = {"location": self.location_for(op)}
        spec = canonical({"params": params, "carries": [], "script": [], "tries": SWEEP_TRIES})
        self.db.execute(
            "INSERT INTO operation (attempt, id, position, kind, tool, semantics, spec, signal, state, tries, generation,"
            " version, subject, opened_ns, due_ns)"
            " SELECT ?1, ?3, (SELECT max(position) + 1 FROM operation WHERE attempt = ?1), 'sweep', 'store', 'read',"
            " ?4, '', 'planned', 0, 0, 0, ?2, ?5, ?6",
            (op.attempt, op.id, made_for(op.id, SWEEP), spec, time.time_ns(), self.sweep_due_ns(op)),
        )

    def swept(self, sweep: Operation, answer: Mapping[str, Any]) -> None:
        """Take what a sweep found: content that was committed after all is registered, and what waited for it goes on; other
        content than was meant stays there, abandoned; anything else is gone.
        """
        assert sweep.subject is not None
        op = self._operation(sweep.attempt, sweep.subject)
        if not answer.get("committed"):
            self._end_upload(op.attempt, op.id, "removed")
        elif self.verified(op, answer):
            kept = canonical({"nonce": answer.get("nonce")})
            is_news = self._move(op, "notice", op.generation, op.version, kept, "found by a sweep")
            self.register(op)
            if is_news:
                self.settle_usage(op, "found", None, time.time_ns())
                self._advance(op.attempt, op.id)
        else:
            self.abandon(sweep)

    def abandon(self, sweep: Operation) -> None:
        """Note that a sweep has come to nothing: what lies at the orphan's location stays there, for all to see."""
        assert sweep.subject is not None
        self._end_upload(sweep.attempt, sweep.subject, "abandoned")

    # -- showing

    def artifacts(self, task: str) -> Json:
        """Every version ever accepted (`accepted`, `superseded`) and every upload that was not: `partial` or `abandoned`."""
        self._current_attempt(task)
        accepted = self._rows(
            "SELECT name, version, digest, size, operation, location, iif(version = max(version) OVER (PARTITION BY name),"
            " 'accepted', 'superseded') FROM artifact WHERE task = ? ORDER BY name, version",
            task,
        )
        partial = self._rows(
            "SELECT u.name, NULL, u.digest, u.size, u.operation, u.location, iif(u.state = 'staged', 'partial', u.state)"
            " FROM upload u JOIN attempt a ON a.id = u.attempt"
            " WHERE a.task = ? AND u.state IN ('staged', 'abandoned') ORDER BY u.attempt, u.operation",
            task,
        )
        names = ("name", "version", "digest", "size", "operation", "location", "state")
        return {"artifacts": [dict(zip(names, row, strict=True)) for row in [*accepted, *partial]]}

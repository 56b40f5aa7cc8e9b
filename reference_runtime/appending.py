"""Appending: what a workflow asks for becomes history and operations, inside the transaction that takes its turn.

From there on operations are those of plans. What a workflow does not wait for any more is abandoned by a command too, so that
a rerun does the same: what was not begun is skipped, what was dispatched counts for nothing.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence

import attrs

from reference_runtime import documents, plan
from reference_runtime.approvals import Approval
from reference_runtime.commands import ABANDON
from reference_runtime.control import Control
from reference_runtime.leaves import PlanError, Step, Tools, read_leaf
from reference_runtime.model import Json, Move, canonical
from reference_runtime.rows import Operation

#: Commands that only note how the workflow went on: they are over when they are recorded.
DECISIONS = ("race", "branch")
UNHEARD = "unheard: the branch that waited was stopped"


class Appending(Control):
    """Commands in, operations out."""

    @abstractmethod
    def _plan_operations(self, attempt: str, position: int, steps: Sequence[Step]) -> None:
        """Write steps down as operations of an attempt, from `position` on."""

    def _append(self, attempt: str, number: int, command: Json, steps: Mapping[str, Step]) -> None:
        spec = command["spec"]
        self.db.execute(
            "INSERT OR IGNORE INTO command_history VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                attempt,
                number,
                command["branch"],
                command["sequence"],
                command["kind"],
                command["id"],
                command["digest"],
                canonical(spec),
            ),
        )
        if self.db.changes() == 0:
            raise PlanError(f"operation {command['id']!r} was asked for before; each needs an id of its own")
        if command["kind"] == ABANDON:
            for operation in spec["operations"]:
                self._abandon(attempt, operation)
            return
        for leaf in (spec, *_mentioned(spec)):
            self._plan(attempt, steps[leaf["id"]])
        if command["kind"] in DECISIONS:
            op = self._operation(attempt, command["id"])
            move: Move = "skip" if spec["state"] == "skipped" else "release"
            self._move(op, move, op.generation, op.version, None, "decided: by the workflow")
            others = canonical([leaf["id"] for leaf in spec["others"]])
            self._skip_planned(attempt, "o.id IN (SELECT value FROM json_each(?))", f"decided by {op.id}", others)
        elif command["kind"] == "compensate":
            self._note_undo(attempt, spec["of"])
        else:
            self._open(attempt, command["id"], steps[command["id"]].kind)

    def _plan(self, attempt: str, step: Step) -> None:
        """Write an operation down, unless an approval that is about it did so before. Raises `PlanError` for a child whose plan
        says more than is read.
        """
        if self._row("SELECT 1 FROM operation WHERE attempt = ? AND id = ?", attempt, step.id) is None:
            if step.kind == "child":  # one of a plan was looked at when that was submitted
                documents.check_spelling(step.more["plan"])
            position = self._value("SELECT count(*) FROM operation WHERE attempt = ?", attempt)
            self._plan_operations(attempt, position, (step,))

    def _note_undo(self, attempt: str, operation: str) -> None:
        """Give a compensation its place in the order, should what it undoes have been accepted before it was noted."""
        if self._row("SELECT 1 FROM operation WHERE attempt = ? AND id = ? AND accepted", attempt, operation):
            self.record_undo(attempt, operation)

    def _abandon(self, attempt: str, operation: str) -> None:
        """A branch that waited for this is gone: what was not begun is skipped, what was dispatched counts for nothing, and
        a signal that was taken and never heard is free again.
        """
        op = self._operation(attempt, operation)
        if op.state == "planned":
            self.skip(op, UNHEARD)
        elif op.state in ("dispatched", "unknown", "unresolved"):
            self.void(op)
        elif op.kind == "wait":
            self.db.execute(
                "UPDATE event SET consumer = NULL WHERE consumer = ? AND disposition IS NULL",
                (f"{attempt}:{operation}",),
            )
            self.db.execute(
                "UPDATE operation SET reason = ? WHERE attempt = ? AND id = ?", (UNHEARD, attempt, operation)
            )

    def _end_given_up(self, attempt: str, commands: Sequence[Json]) -> None:
        """End what was opened, now or before, and can release nothing or be released no more, once all of a turn is appended:
        what was given up in it may have been asked anew.
        """
        if not self._attempt(attempt).has_approvals:
            return
        self.end_pointless_approvals(attempt)
        for command in commands:
            about = self._approved_by(attempt, command["spec"]) if command["kind"] == ABANDON else [command["id"]]
            for operation in about:
                self.end_unreleasable(attempt, operation)

    def end_pointless(self, leaf: Operation) -> None:
        """End an approval that can release nothing; where it is skipped, who waits for it is told."""
        super().end_pointless(leaf)
        self.db.execute(
            "INSERT INTO outcome_history SELECT w.attempt, w.outcomes + 1, o.id FROM workflow w"
            " JOIN command_history c ON c.attempt = w.attempt JOIN operation o ON o.attempt = c.attempt AND o.id = c.id"
            " WHERE w.attempt = ? AND o.id = ? AND o.state = 'skipped'",
            (leaf.attempt, leaf.id),
        )
        if self.db.changes():
            self.db.execute(
                "UPDATE workflow SET outcomes = outcomes + 1, is_due = 1 WHERE attempt = ?", (leaf.attempt,)
            )

    def _approved_by(self, attempt: str, abandoned: Json) -> list[str]:
        """What the approvals among abandoned operations are about."""
        rows = self._rows(
            "SELECT DISTINCT subject FROM approval WHERE attempt = ? AND operation IN (SELECT value FROM json_each(?))"
            " ORDER BY subject",
            attempt,
            canonical(abandoned["operations"]),
        )
        return [str(row[0]) for row in rows]

    def approvals_of(self, attempt: str, operation: str) -> list[Approval]:
        """The approvals that this operation still has to be released by; none that was given up and then asked for anew."""
        found = super().approvals_of(attempt, operation)
        return [one for one in found if one.state != "withdrawn" or not self._is_asked_anew(one)]

    def _is_asked_anew(self, approval: Approval) -> bool:
        sql = """SELECT 1 FROM command_history gone, json_each(gone.spec, '$.operations') name JOIN command_history later
            ON later.attempt = gone.attempt AND later.number > gone.number WHERE gone.attempt = ? AND gone.kind = ?
            AND name.value = ? AND later.kind = 'approve' AND later.spec ->> 'of' = ?"""
        return self._row(sql, approval.attempt, ABANDON, approval.operation, approval.subject) is not None

    def _skip_planned(self, attempt: str, condition: str, reason: str, *values: object) -> None:
        where = f"WHERE o.attempt = ? AND o.state = 'planned' AND {condition} ORDER BY o.position"
        for op in self._operations(where, attempt, *values):
            self.skip(op, reason)


def _mentioned(spec: Json) -> tuple[Json, ...]:
    """The further leaves that a command is about: what an approval is for, what a decision leaves out."""
    return (*([spec["action"]] if "action" in spec else []), *spec.get("others", ()))


def steps_of(commands: Sequence[Json], tools: Tools) -> dict[str, Step]:
    """The operations that commands ask for, by id. Raises `PlanError` for one that cannot be."""
    leaves = [leaf for one in commands if one["kind"] != ABANDON for leaf in (one["spec"], *_mentioned(one["spec"]))]
    return {leaf["id"]: _step(leaf, tools) for leaf in leaves}


def _step(leaf: Json, tools: Tools) -> Step:
    if leaf["op"] in DECISIONS:
        return Step(leaf["id"], leaf["op"], subject=leaf.get("of"))
    try:
        step = read_leaf(leaf["op"], leaf, tools)
    except KeyError as error:
        raise PlanError(f"operation {leaf['id']!r}: no kind {error}") from None
    if step.kind == "child":  # before anything is set aside for it
        try:
            documents.parse(step.more["plan"], tools)
            plan.check_share(step)
        except PlanError as error:
            raise PlanError(f"child {leaf['id']!r:.80}: {error.message}") from None
    return attrs.evolve(step, tolerate=bool(leaf.get("tolerate")))

"""Turns: how a workflow moves in the store.

A *turn* is leased to one execution when anything its workflow waits for was accepted. The execution reruns the function
against the history and reports what it asks for next; the store appends these commands and opens their operations in one
transaction, fenced by the turn's generation and the length of the history it was made from. From there on operations are
those of plans: claimed, settled, timed and paid for by the same rows.

Nothing but outcomes enters a history. Stopping, pausing and failing a task take turns away instead, so that no later run
of the function is ever told of them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import attrs

from reference_runtime import plan
from reference_runtime.appending import Appending, steps_of
from reference_runtime.commands import Command, Divergence
from reference_runtime.documents import INTERPRETER, replayed, workflow_of
from reference_runtime.evolution import FITS
from reference_runtime.leaves import Step
from reference_runtime.model import Json, Refusal, Rejected, Tally, canonical

_TURN = """SELECT a.task, w.attempt, w.name, w.input, w.segment, w.length, w.outcomes, w.generation
    FROM workflow w JOIN attempt a ON a.id = w.attempt"""
_FREE = """w.is_due AND w.generation IS NULL AND w.ended IS NULL AND NOT a.paused AND a.failing IS NULL AND a.halt IS NULL
    AND NOT EXISTS (SELECT 1 FROM child c WHERE c.task = a.task AND c.is_accepted AND c.owner != 'detached')"""
#: There is a history by which it can be told whether this code goes on with it.
_FOLLOWED = "(w.length > 0 AND a.code IN (SELECT value FROM json_each(?2)))"


@attrs.frozen
class Turn:
    """A leased turn: which workflow, how far its history goes, and under which generation it may be continued."""

    task: str
    attempt: str
    workflow: str
    input: str  # JSON
    segment: int
    length: int
    outcomes: int
    generation: int


class Turns(Appending):
    """Leasing turns, appending commands, ending and cutting histories."""

    # -- beginning

    def begin_workflow(self, attempt: str, document: object) -> None:
        """Make an attempt, in the transaction that admits it, a workflow whose first turn is due; nothing for a plan.

        What the interpreter will ask for is known: its operations are there from the beginning, to be shown and steered.
        """
        found = workflow_of(document)
        if found is None:
            return
        self._forget(attempt)
        self.db.execute(
            "INSERT INTO workflow (attempt, name, input, segment, length, outcomes, is_due, refused)"
            " VALUES (?, ?, ?, 1, 0, 0, 1, '[]')",
            (attempt, found[0], canonical(found[1])),
        )
        if found[0] == INTERPRETER:
            self._plan_operations(attempt, 0, tuple(map(_asked_for_later, plan.read_again(found[1], self.tools))))

    def tally(self, attempt: str) -> Tally:
        """How the attempt stands; a workflow that is not over is one more thing that moves.

        One that waits for nothing but an effect nobody could establish does not: it is blocked until somebody settles that.
        """
        tally = super().tally(attempt)
        if not self._attempt(attempt).is_workflow:
            return tally
        row = self._row(
            "SELECT w.generation, w.is_due AND w.parked IS NULL FROM workflow w JOIN attempt a ON a.id = w.attempt"
            " WHERE w.attempt = ? AND w.ended IS NULL AND a.failing IS NULL AND a.halt IS NULL",
            attempt,
        )
        if row is None:
            return tally
        if self._attempt(attempt).is_handed_over:  # its owner went on without it, and its function gets no turn
            return attrs.evolve(tally, pending=True)
        is_leased, is_due = row[0] is not None, bool(row[1])
        return attrs.evolve(
            tally,
            leased=tally.leased or is_leased,
            runnable=tally.runnable or (is_due and not is_leased),
            waiting=tally.waiting or not (is_due or is_leased or tally.unresolved),
        )

    def workflow_shown(self, attempt: str) -> Json:
        """What a status says otherwise because the attempt is a workflow: what parks it, or the value it returned."""
        row = self._row(
            "SELECT w.parked, w.value FROM workflow w JOIN attempt a ON a.id = w.attempt WHERE w.attempt = ?"
            " AND (a.outcome IS NULL OR a.outcome = 'succeeded')",
            attempt,
        )
        parked, value = row or (None, None)
        if parked is not None:
            return {"state": "blocked", "on": None, "error": parked, "reason": parked}
        result = None if value is None else json.loads(value)
        return {} if result is None else {"result": result}

    # -- leasing

    def turn_is_due(self) -> bool:
        """Whether some workflow may move."""
        return (
            self._row(f"SELECT 1 FROM workflow w JOIN attempt a ON a.id = w.attempt WHERE {_FREE} LIMIT 1") is not None
        )

    def claim_turns(self, execution: str, codes: Mapping[str, str], holding: Collection[int], limit: int) -> list[Turn]:
        """Lease up to `limit` due turns of the workflows whose code (by name) `execution` has.

        A workflow that this very code could not continue is left to others, and so is one that the execution's code may not go
        on with; without a history there is nothing that could be followed. What got lost on the way comes first.
        """
        runs = self.code_of(execution)
        able, proving = (None, None) if runs is None else (canonical(runs.continues), canonical(runs.replays))
        with self._transaction():
            lost = self._turns("WHERE w.execution = ? AND w.generation IS NOT NULL ORDER BY w.generation", execution)
            turns = [turn for turn in lost if turn.generation not in holding][:limit]
            for name, code in sorted(codes.items()):
                free = self._turns(
                    f"WHERE ({FITS} OR {_FOLLOWED}) AND {_FREE} AND w.name = ?3"
                    " AND NOT EXISTS (SELECT 1 FROM json_each(w.refused) r WHERE r.value = ?4) ORDER BY w.attempt LIMIT ?5",
                    able,
                    proving,
                    name,
                    code,
                    limit - len(turns),
                )
                leased = [self._lease_turn(turn, execution, code) for turn in free]
                turns += [turn for turn in leased if turn is not None]
            return turns

    def leased_turn(self, generation: int) -> Turn | None:
        """The turn that is leased under this generation, None when none is."""
        found = self._turns("WHERE w.generation = ?", generation)
        return found[0] if found else None

    def _turns(self, where: str, *values: object) -> list[Turn]:
        return [Turn(*row) for row in self._rows(f"{_TURN} {where}", *values)]

    def _lease_turn(self, turn: Turn, execution: str, code: str) -> Turn | None:
        """Lease a turn, of work that is of this code from now on; None where it could not be carried over.

        A history that is to be followed first stays of the code it has.
        """
        if self.is_fit(turn.attempt, execution):
            if self.take_up(turn.attempt, execution) == "refused":
                return None
            turn = self._turns("WHERE w.attempt = ?", turn.attempt)[0]
        generation = self.new_generation()
        self.db.execute(
            "UPDATE workflow SET generation = ?, execution = ?, code = ?, is_due = 0 WHERE attempt = ?",
            (generation, execution, code, turn.attempt),
        )
        self._carried_out_by(turn.attempt, execution)
        self._conclude(turn.attempt)
        return attrs.evolve(turn, generation=generation)

    def is_due(self, attempt: str, may_replay: bool) -> bool:
        """Whether anything of an attempt could be taken up by fitting code, its turn included."""
        if super().is_due(attempt, may_replay):
            return True
        rests = " AND w.length = 0" if may_replay else ""
        where = f"WHERE w.attempt = ? AND w.parked IS NULL AND {_FREE}{rests}"
        return bool(self._row(f"SELECT 1 FROM workflow w JOIN attempt a ON a.id = w.attempt {where}", attempt))

    def leases(self) -> list[tuple[int, str]]:
        """Every lease that was not given back, of operations and of turns: generation and execution."""
        rows = self._rows("SELECT generation, execution FROM workflow WHERE generation IS NOT NULL ORDER BY generation")
        return super().leases() + [(row[0], row[1]) for row in rows]

    def reclaim(self, generation: int) -> None:
        """Take back a lease whose holder went silent; a turn is due again, for nothing left it.

        A turn over which too many holders in a row were lost is parked instead: its code takes its worker with it.
        """
        with self._transaction():
            attempt = self._release_turn(generation)
            if attempt is None:
                super().reclaim(generation)
                return
            if self.is_stopped(attempt):  # nobody is given it again, whatever became of its holder
                return
            deaths, code = self._rows(
                "UPDATE workflow SET deaths = deaths + 1 WHERE attempt = ? RETURNING deaths, code", attempt
            )[0]
            if deaths >= self.policy.deaths_max:
                self._park_workflow(attempt, code, f"turn-exhausted: {deaths} workers in a row were lost over one turn")

    def _take_back_unsent(self, generation: int) -> None:
        if self._release_turn(generation) is None:
            super()._take_back_unsent(generation)

    def _release_turn(self, generation: int) -> str | None:
        """Make a leased turn due again; its attempt, None when this is no turn's lease."""
        attempt: str | None = self._value(
            "UPDATE workflow SET generation = NULL, execution = NULL, is_due = 1 WHERE generation = ? RETURNING attempt",
            generation,
        )
        if attempt is not None:
            self._conclude(attempt)
        return attempt

    def history(self, turn: Turn, known: Sequence[int] = ()) -> tuple[list[Json], list[Json], bool]:
        """A turn's commands and outcomes, in order, and whether they begin where its holder's knowledge ends.

        `known`: segment, commands and outcomes that the holder still has of this workflow.
        """
        is_warm = len(known) == 3 and list(known[:2]) == [turn.segment, turn.length]
        names = ("branch", "sequence", "kind", "id", "digest")
        found = f"SELECT {', '.join(names)} FROM command_history WHERE attempt = ? ORDER BY number"
        commands = [] if is_warm else self._rows(found, turn.attempt)
        outcomes = self._rows(
            "SELECT o.id, o.state, o.answer, o.reason FROM outcome_history h JOIN operation o ON o.attempt = h.attempt"
            " AND o.id = h.operation WHERE h.attempt = ? AND h.number > ? AND h.number <= ? ORDER BY h.number",
            turn.attempt,
            known[2] if is_warm else 0,
            turn.outcomes,
        )
        said = [dict(zip(names, row, strict=True)) for row in commands]
        return said, [_outcome(*row) for row in outcomes], is_warm

    # -- continuing

    def park_turn(
        self, turn: Turn, code: str, reason: str, expected: str | None = None, got: Sequence[Json] = ()
    ) -> Rejected | None:
        """This code cannot go on with this history: nothing of it is lost, and other code may take it up.

        `expected`: the id of the command that history has where the code has another one, which is in `got` if it was told.
        """
        with self._transaction():
            if not self.holds_turn(turn):
                return self._reject_turn(turn)
            self._park_workflow(turn.attempt, code, self._spelled_out(turn.attempt, reason, expected, got))
            return None

    def _spelled_out(self, attempt: str, reason: str, expected: str | None, got: Sequence[Json]) -> str:
        """A divergence with what both commands say: whoever ran the code was told history's by its digest only."""
        row = self._row(
            "SELECT branch, sequence, kind, id, digest, spec FROM command_history WHERE attempt = ? AND id = ?",
            attempt,
            expected,
        )
        if row is None:
            return reason
        told = Command(*row[:5])
        said = attrs.evolve(told, spec=json.loads(row[5]))
        if got:
            return str(Divergence(said.branch, said.sequence, said, Command(**got[0])))
        return reason.replace(str(told), str(said), 1)

    def _park_workflow(self, attempt: str, code: str, reason: str) -> None:
        self.db.execute(
            "UPDATE workflow SET generation = NULL, execution = NULL, is_due = 1, deaths = 0, parked = ?,"
            " refused = json_insert(refused, '$[#]', ?) WHERE attempt = ?",
            (reason, code, attempt),
        )
        self._log_run(attempt, "parked", reason)
        self._conclude(attempt)

    def take_turn(
        self, turn: Turn, code: str, commands: Sequence[Json], end: Json, execution: str
    ) -> tuple[Rejected | None, Turn | None]:
        """Append what a workflow asks for, open its operations, and end it where it is over: one transaction.

        `turn.outcomes` is how many outcomes it was given; when there are more by then, the next turn is leased at once.
        `end` is empty while it goes on. Raises `PlanError` for an operation that cannot be.
        """
        steps = steps_of(commands, self.tools)
        with self._transaction():
            if not self.holds_turn(turn):
                return self._reject_turn(turn), None
            return None, self._continue(turn, code, commands, steps, end, execution)

    def go_on(
        self, turn: Turn, told: Json, code: str, commands: Sequence[Json], end: Json, execution: str
    ) -> tuple[bool, Turn | None]:
        """Take what a workflow asks for after a result that was settled in this very transaction, without a lease of its own:
        whether it was taken, and the next turn where there is one at once.

        Its function was told the result (`told`) before that was durable. It counts if the store says the same of it, and
        nothing else came in between; if not, nothing of it is taken, and the turn is as due as ever. Both are one
        transaction, so nobody ever sees a command whose reason might be lost.
        """
        if not self._may_go_on(turn, told, code, execution):
            return False, None
        touched = dict(self._touched)
        try:
            with self._part():
                following = self._continue(turn, code, commands, steps_of(commands, self.tools), end, execution)
        except Refusal:  # whoever takes the turn is told of it
            self._touched = touched  # a child that was admitted is there no more
            return False, None
        return True, following

    def _may_go_on(self, turn: Turn, told: Json, code: str, execution: str) -> bool:
        free = self._turns(
            f"WHERE {_FREE} AND w.attempt = ? AND NOT EXISTS (SELECT 1 FROM json_each(w.refused) r WHERE r.value = ?)",
            turn.attempt,
            code,
        )
        if not free or (free[0].segment, free[0].length, free[0].outcomes) != (
            turn.segment,
            turn.length,
            turn.outcomes,
        ):
            return False
        _, outcomes, _ = self.history(free[0], [turn.segment, turn.length, turn.outcomes - 1])
        return outcomes == [told] and self.take_up(turn.attempt, execution) == "kept"

    def _continue(
        self, turn: Turn, code: str, commands: Sequence[Json], steps: Mapping[str, Step], end: Json, execution: str
    ) -> Turn | None:
        self.take_up(turn.attempt, execution)
        self.db.execute(
            "UPDATE workflow SET generation = NULL, execution = NULL, is_due = outcomes > ?1,"
            " length = length + ?2, code = ?3, deaths = 0, parked = NULL, refused = '[]' WHERE attempt = ?4",
            (turn.outcomes, len(commands), code, turn.attempt),
        )
        for number, command in enumerate(commands, turn.length + 1):
            self._append(turn.attempt, number, command, steps)
        self._end_given_up(turn.attempt, commands)
        self._end_workflow(turn, end)
        self._wake_waits(turn.attempt)
        self._conclude_later(turn.attempt)
        following = self._turns(f"WHERE {_FREE} AND w.attempt = ?", turn.attempt)
        return self._lease_turn(following[0], execution, code) if following else None

    def holds_turn(self, turn: Turn) -> bool:
        """Whether the turn's holder may still speak for it: nobody else was given it, its history is as it was, and
        its task was not stopped in between.
        """
        row = self._row("SELECT generation, segment, length FROM workflow WHERE attempt = ?", turn.attempt)
        return row == (turn.generation, turn.segment, turn.length) and not self.is_stopped(turn.attempt)

    def _reject_turn(self, turn: Turn) -> Rejected:
        """Keep a word that does not count as evidence; a lease its holder still has is over with it."""
        self.db.execute(
            "INSERT INTO evidence (attempt, operation, generation, report, detail, at_ns) VALUES (?, '', ?, 'turn', '', ?)",
            (turn.attempt, turn.generation, time.time_ns()),
        )
        self._release_turn(turn.generation)
        return Rejected(f"generation {turn.generation} no longer owns the turn of {turn.attempt}")

    # -- ends

    def _end_workflow(self, turn: Turn, end: Json) -> None:
        match end:
            case {"returned": value}:
                self._over(turn.attempt, "returned", value)
                self._skip_planned(
                    turn.attempt, "o.kind != 'compensate' AND o.opened_ns IS NULL", "the workflow returned"
                )
            case {"raised": reason}:
                self._over(turn.attempt, "raised", None)
                self.fail_run(turn.attempt, reason)
            case {"continued": state}:
                self._cut(turn, state)

    def _over(self, attempt: str, ended: str, value: object) -> None:
        self.db.execute(
            "UPDATE workflow SET ended = ?, value = ?, is_due = 0 WHERE attempt = ?", (ended, canonical(value), attempt)
        )

    def _cut(self, turn: Turn, state: object) -> None:
        """Begin the next segment with `state` and no history; signals that no wait has taken simply stay where they are."""
        self.db.execute("DELETE FROM command_history WHERE attempt = ?", (turn.attempt,))
        self.db.execute("DELETE FROM outcome_history WHERE attempt = ?", (turn.attempt,))
        self.db.execute(
            "UPDATE workflow SET segment = segment + 1, input = ?, length = 0, outcomes = 0, is_due = 1"
            " WHERE attempt = ?",
            (canonical(state), turn.attempt),
        )
        self._log_run(turn.attempt, "continued", f"segment {turn.segment + 1}")


def _asked_for_later(step: Step) -> Step:
    """A step as an operation that the interpreter will ask for: when it may begin, the workflow says; so do its children."""
    more = {**step.more, "plan": replayed(step.more["plan"])} if step.kind == "child" else step.more
    return attrs.evolve(step, needs=(), more=more)


def accepted(operation: str, answer: Mapping[str, Any] | None) -> Json:
    """What a workflow is told of an operation with this result, once that is accepted."""
    return _outcome(operation, "succeeded", canonical(answer) if answer else None, None)


def _outcome(id_: str, state: str, answer: str | None, reason: str | None) -> Json:
    ended = "failed" if state == "failed" else "succeeded"
    said: Any = None if answer is None else json.loads(answer)
    return {"operation": id_, "state": ended, "answer": said, "reason": reason or ""}

"""Ownership: who carries an operation out, and the intent that is durable before anything leaves.

A lease is permission for one invocation. Where the receiver's contract allows a repeat or a question, the intent is
recorded in the transaction that leases, and its holder gets a ticket: one commit, one round trip. A *blind* receiver allows
neither, so a holder that never got the word must not count as one that acted on it: it is granted first, and its intent is
recorded when the holder asks for it. What was handed out and got lost on the way is handed out again, under the same lease.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import attrs

from reference_runtime.acceptance import NOTHING_KNOWN
from reference_runtime.evolution import FITS, Code
from reference_runtime.intents import Intents
from reference_runtime.model import Facts, Grant, Rejected, Report, Ticket
from reference_runtime.retries import decide
from reference_runtime.rows import Operation

Lease = Grant | Ticket
#: What was in hand so often as a worker died is *suspected* of it. All that a worker had in hand counts a death, as nobody can
#: tell which it was; but only one suspect at a time is in one worker's hands, so that the culprit takes no other along.
SUSPECT_DEATHS = 2
#: A condition on the operation `o`, for the number of the parameter that is the execution: it would not meet another suspect.
_MAY_BE_MET = f"""(o.deaths < {SUSPECT_DEATHS} OR NOT EXISTS (SELECT 1 FROM lease l CROSS JOIN operation s
    ON s.attempt = l.attempt AND s.id = l.operation WHERE l.execution = ?{{}} AND s.deaths >= {SUSPECT_DEATHS}))"""
#: How many generations are taken at a time: a lease then writes nothing down that only counts.
GENERATIONS_AHEAD = 32
#: How many tries' backoff it waits until authority is asked for again that nobody could tell of.
RELEASE_TRIES = 5


class Ownership(Intents):
    """Claiming, dispatching, handing back and taking back."""

    def new_generation(self) -> int:
        """The number of a lease; it never repeats."""
        return self._next("generation", GENERATIONS_AHEAD)

    def new_execution(self, name: str) -> str:
        """An id for one activation of a worker; it never repeats, whatever the worker is called."""
        with self._transaction():
            return f"{name}#{self._next('execution')}"

    def welcome(self, name: str, code: Code) -> str:
        """Begin one activation of a worker, of which it is written down what it runs: its execution."""
        with self._transaction():
            execution = self.new_execution(name)
            self.introduce(execution, code)
            return execution

    def claim(self, execution: str, holding: Collection[int], limit: int) -> list[Lease]:
        """Lease up to `limit` claimable operations to `execution`.

        Leases a claim gave it and that it does not list in `holding` come first: the answer got lost on the way.
        """
        again = [one for one in self._handed_out(execution, None) if one.generation not in holding][:limit]
        if not self.runnable(time.time_ns(), min(1, limit - len(again)), execution):
            return again  # most who ask while nothing happens: not worth a transaction
        with self._transaction():
            return again + self._take(execution, limit - len(again), None)

    def turn(
        self,
        grant: Grant,
        report: Report,
        answer: Mapping[str, Any] | None,
        detail: str,
        facts: Facts = NOTHING_KNOWN,
        *,
        execution: str,
        limit: int,
        going_on: Callable[[], object] | None = None,
    ) -> tuple[Rejected | None, list[Lease]]:
        """Settle, and lease the next operations to the same execution: one transaction for a whole step. `going_on`: what makes
        some of them, once the result is taken.

        Asked again (the answer was lost), it hands out what it handed out before and nothing else.
        """
        with self._transaction(), self._concluding_once() as unconcluded:
            is_repeat = self._already_settled(grant, report, answer, detail)
            if (rejected := self.settle(grant, report, answer, detail, facts)) is not None:
                return rejected, []
            if is_repeat:
                return None, self._handed_out(execution, grant.generation)
            if going_on is not None:
                going_on()
            leases = self._take(execution, limit, grant.generation)
            if unconcluded and len(leases) < limit:
                self._conclude_rest()  # which may make something due
                leases += self._take(execution, limit - len(leases), grant.generation)
            return None, leases

    @contextmanager
    def _concluding_once(self) -> Iterator[dict[str, None]]:
        """Conclude an attempt once for what is settled of it and given out of it: as it stands after both."""
        self._unconcluded = dict[str, None]()
        try:
            yield self._unconcluded
            self._conclude_rest()
        finally:
            self._unconcluded = None

    def _conclude_rest(self) -> None:
        while self._unconcluded:
            self._conclude(self._unconcluded.popitem()[0])

    def runnable(self, now_ns: int, limit: int, execution: str | None = None) -> list[Operation]:
        """The operations a worker may take now, the longest due first: of work that the code of `execution` may go on with."""
        within, beyond = self.within(execution, 5)
        where = (
            f"WHERE o.due_ns <= ?2 AND NOT a.paused AND {FITS} AND {_MAY_BE_MET.format(4)}{within}"
            " ORDER BY o.due_ns, o.attempt, o.position LIMIT ?3"
        )
        return self._operations(where, self.fits(execution), now_ns, limit, execution, *beyond) if limit > 0 else []

    def next_work_ns(self, execution: str | None = None) -> int | None:
        """When the next operation becomes claimable (by this execution)."""
        within, beyond = self.within(execution, 3)
        due_ns: int | None = self._value(
            "SELECT o.due_ns FROM operation o JOIN attempt a ON a.id = o.attempt"
            f" WHERE o.due_ns IS NOT NULL AND NOT a.paused AND {FITS} AND {_MAY_BE_MET.format(2)}{within}"
            " ORDER BY o.due_ns LIMIT 1",
            self.fits(execution),
            execution,
            *beyond,
        )
        return due_ns

    def leases(self) -> list[tuple[int, str]]:
        """Every lease that was not given back: generation and execution."""
        rows = self._rows("SELECT generation, execution FROM lease ORDER BY generation")
        return [(row[0], row[1]) for row in rows]

    def leased_for(self, generation: int) -> tuple[str, str]:
        """The attempt and the operation that a lease is for; the operation of a turn is empty, and so is all of none."""
        row = self._row(
            "SELECT attempt, operation FROM lease WHERE generation = ?1"
            " UNION ALL SELECT attempt, '' FROM workflow WHERE generation = ?1",
            generation,
        )
        return ("", "") if row is None else (row[0], row[1])

    def _take(self, execution: str, limit: int, source: int | None) -> list[Lease]:
        now_ns = time.time_ns()
        leases, passed_over, suspects = list[Lease](), set[str](), 0
        for op in self.runnable(now_ns, limit, execution):
            if suspects and op.deaths >= SUSPECT_DEATHS:
                continue
            if op.attempt in passed_over:  # what was just read of it may no longer hold
                continue
            if passed_over and self._operation(op.attempt, op.id) != op:  # nor of what belongs to it, or it to
                continue
            is_changed = self.take_up(op.attempt, execution) != "kept"
            if is_changed or self._ended_by_its_limits(op, now_ns) or not self.affords(op, now_ns):
                passed_over.add(op.attempt)
            else:
                leases.append(self._lease(op, execution, source))
                suspects += op.deaths >= SUSPECT_DEATHS
        for attempt in dict.fromkeys(lease.attempt for lease in leases):
            self._carried_out_by(attempt, execution)
            self._conclude_leased(attempt)
            if self._unconcluded is not None:
                self._unconcluded.pop(attempt, None)
        return leases

    def _conclude_leased(self, attempt: str) -> None:
        """Bring an attempt in line that has a lease; as one that runs already and is to go on, it stands as it did."""
        stands = self._attempt(attempt)
        if (stands.condition, stands.outcome, stands.reason, stands.halt) == ("running", None, None, None):
            self._touch(attempt)
        else:
            self._conclude(attempt)

    def _carried_out_by(self, attempt: str, execution: str) -> None:
        if self._attempt(attempt).execution != execution:
            self._set_attempt(attempt, "execution = ?", execution)

    def _ended_by_its_limits(self, op: Operation, now_ns: int) -> bool:
        """End a call whose time or key has run out while it waited to be claimed; whether it was ended."""
        if op.state != "unknown" or op.remedy != "repeat":
            return False
        verdict, reason = decide("repeat", self.past_of(op, "repeat"), self.limits_of(op), now_ns)
        if verdict == "repeat":
            return False
        self._end(op, "give_up" if verdict == "give_up" else "exhaust", f"{reason}: before try {op.tries + 1}")
        self._conclude(op.attempt)
        return True

    def _lease(self, op: Operation, execution: str, source: int | None) -> Lease:
        generation = self.new_generation()
        self.db.execute(
            "INSERT INTO lease (generation, attempt, operation, execution, source) VALUES (?, ?, ?, ?, ?)",
            (generation, op.attempt, op.id, execution, source),
        )
        self.audit(op.task, execution, f"lease {generation}", "claim", op.id)
        if self.intends_with_lease(op) and not self.authority_for(op):
            ticket = self._intend(op, Grant(op.attempt, op.id, op.generation, op.version), generation)
            assert ticket is not None, f"{op} was claimable and could not be dispatched"
            return ticket
        self.db.execute(
            "UPDATE operation SET generation = ?, version = version + 1, due_ns = NULL"
            " WHERE attempt = ? AND id = ? AND generation = ? AND version = ?",
            (generation, op.attempt, op.id, op.generation, op.version),
        )
        return self._with_authority(op, Grant(op.attempt, op.id, generation, op.version + 1))

    def _handed_out(self, execution: str, source: int | None) -> list[Lease]:
        """The leases `execution` still has from one source, as they were handed out."""
        rows = self._rows(
            "SELECT attempt, operation FROM lease WHERE execution = ? AND source IS ? ORDER BY generation",
            execution,
            source,
        )
        return [self._lease_again(self._operation(*row)) for row in rows]

    def _lease_again(self, op: Operation) -> Lease:
        if self._open_invocation(op.generation):
            return self._ticket(op)
        return self._with_authority(op, Grant(op.attempt, op.id, op.generation, op.version))

    def _with_authority(self, op: Operation, grant: Grant) -> Grant:
        """A grant that says whose authority has to be asked for before it may be dispatched."""
        return attrs.evolve(grant, task=op.task, authority=self.authority_for(op))

    # -- intents

    def dispatch(self, grant: Grant) -> Ticket | Rejected:
        """Record the intent to call: durable when this returns, and only then may a byte leave.

        Asked again under the same lease (the acknowledgement was lost), the same ticket comes back.
        """
        with self._transaction():
            op = self._operation(grant.attempt, grant.operation)
            if op.generation == grant.generation and self._open_invocation(grant.generation):
                return self._ticket(op)
            is_late = self.too_late(op, time.time_ns())
            is_held = (op.generation, op.version) == (grant.generation, grant.version)  # or it has no say in a release
            ticket = (
                self._intend(op, grant, grant.generation)
                if is_held and not is_late and self.release(op, grant.granted)
                else None
            )
            if ticket is None:
                self._give_back(grant)
                return self._reject(grant, "dispatch", "")
            return ticket

    def _give_back(self, grant: Grant) -> None:
        """Make an operation claimable again that its holder may not dispatch as it was granted; it is not what it was."""
        lease = (
            grant.generation,
            grant.attempt,
            grant.operation,
        )  # or it is somebody else's, who says nothing of this one
        if self._row("SELECT 1 FROM lease WHERE generation = ? AND attempt = ? AND operation = ?", *lease) is None:
            return
        self._drop_lease(grant.attempt, grant.operation)
        op = self._operation(grant.attempt, grant.operation)
        is_unclear = len(grant.granted) < len(grant.authority)
        self._reschedule(op, None, time.time_ns() + (self.backoff_ns(RELEASE_TRIES) if is_unclear else 0))
        self._conclude(op.attempt)

    # -- the end of a lease

    def reclaim(self, generation: int) -> None:
        """Take back a lease whose holder went silent. Noticing it again changes nothing: one death counts once."""
        with self._transaction():
            row = self._row("SELECT attempt, operation FROM lease WHERE generation = ?", generation)
            if row is None:
                return
            op = self._operation(row[0], row[1])
            usage = self.silent_usage(is_dispatched=self._open_invocation(generation))
            self.settle_usage(op, usage, None, time.time_ns())
            if self._open_invocation(generation):
                report = self.assume_of_silence(op)
                self._end_invocation(generation, report, "the lease ran out")
                self._apply(self._count_death(op), report, generation, op.version, None, "the lease ran out")
            else:
                self._release(generation)
                self._reschedule(op, None, time.time_ns())
            self._conclude(op.attempt)

    def assume_of_silence(self, op: Operation) -> Report:
        """What is taken to have come of a dispatched invocation whose holder went silent: nothing is known of it."""
        return "unknown"

    def _count_death(self, op: Operation) -> Operation:
        self.db.execute("UPDATE operation SET deaths = deaths + 1 WHERE attempt = ? AND id = ?", (op.attempt, op.id))
        return op._replace(deaths=op.deaths + 1)

    def hand_back(self, execution: str) -> list[int]:
        """Take back every lease of an execution that says it is over and that nothing was sent under these.

        They may be claimed at once, and cost no try. The generations that were handed back.
        """
        with self._transaction():
            held = [generation for generation, holder in self.leases() if holder == execution]
            for generation in held:
                self._take_back_unsent(generation)
            return held

    def _take_back_unsent(self, generation: int) -> None:
        row = self._row("SELECT attempt, operation FROM lease WHERE generation = ?", generation)
        if row is None:  # what was handed back before it has decided against it
            return
        attempt, operation = row
        op = self._operation(attempt, operation)
        if is_intended := self._open_invocation(generation):
            self._end_invocation(generation, "unsent", "handed back")
            self._move(op, "lose", generation, op.version, None, "handed-back: the worker stopped")
            op = self.take_back_try(op._replace(version=op.version + 1))
        self._release(generation)
        self.settle_usage(op, "unsent", None, time.time_ns())
        op = op._replace(remedy=op.remedy or "repeat")
        if not (is_intended and self.heed_notice(op)) and not self.end_when_stopped(op, "handed back unsent"):
            self._reschedule(op, op.remedy, time.time_ns())
        self._conclude(attempt)

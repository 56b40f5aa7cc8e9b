"""Mutants of workers that leave: what they hand back is lost, sent twice, charged for, or somebody else's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.mutants import Patch, mutant
from reference_runtime.acceptance import Acceptance
from reference_runtime.budget import Budget
from reference_runtime.ownership import Ownership
from reference_runtime.worker import Outcome, Worker

if TYPE_CHECKING:
    from reference_runtime.model import Report, Ticket
    from reference_runtime.rows import Operation


@mutant("handed-back-is-lost", "SCH-10", shown_by="shift-change/leave@open#1.replied~2000000ns")
def handed_back_is_lost(patch: Patch) -> None:
    """What a worker hands back as it leaves is taken out of its hands, and put into nobody else's."""

    def hand_back(self: Ownership, execution: str) -> list[int]:
        released = original(self, execution)
        with self._transaction():
            for generation in released:
                self.db.execute(
                    "UPDATE operation SET due_ns = NULL WHERE generation = ? AND state IN ('planned', 'unknown')",
                    (generation,),
                )
        return released

    original = Ownership.hand_back
    patch.replace(Ownership, "hand_back", hand_back)


@mutant("handed-back-ends-its-run", "DUR-6", shown_by="namesake/leave@ask#1.replied~2000000ns")
def handed_back_ends_its_run(patch: Patch) -> None:
    """Whoever leaves counts as killed, as many times as may be, by all that it has in hand."""

    def take_back(self: Ownership, generation: int) -> None:
        self.db.execute(
            "UPDATE operation SET deaths = ? WHERE (attempt, id) IN"
            " (SELECT attempt, operation FROM lease WHERE generation = ?)",
            (self.policy.deaths_max, generation),
        )
        self.reclaim(generation)

    patch.replace(Ownership, "_take_back_unsent", take_back)


@mutant("handed-back-without-tries", "OWN-9", shown_by="shift-change/leave@open#1.replied~2000000ns+kill@pay#1.applied")
def handed_back_without_tries(patch: Patch) -> None:
    """Who leaves uses up every try that is left of what it had in hand."""

    def take_back_try(self: Ownership, op: Operation) -> Operation:
        tries = max(op.tries, self.limits_of(op).tries - 1)
        self.db.execute("UPDATE operation SET tries = ? WHERE attempt = ? AND id = ?", (tries, op.attempt, op.id))
        return op._replace(tries=tries)

    patch.replace(Acceptance, "take_back_try", take_back_try)


@mutant("handed-back-while-under-way", "EFF-5", shown_by="shift-change/leave@letter#1.received")
def handed_back_while_under_way(patch: Patch) -> None:
    """Who is asked to leave does so at once, and hands back what is under way as if it had never been sent."""

    async def leave(self: Worker) -> None:
        await self.client.call("release", {"execution": self.execution})

    patch.replace(Worker, "_leave", leave)


@mutant("cut-off-is-failed", "EFF-8", shown_by="shift-change/leave@letter#1.received")
def cut_off_is_failed(patch: Patch) -> None:
    """Who is asked to leave waits for nothing that is under way, and reports it as failed."""

    async def leave(self: Worker) -> None:
        self.grace_ns = 0
        await original_leave(self)

    async def invoke(self: Worker, ticket: Ticket) -> Outcome:
        outcome = await original_invoke(self, ticket)
        return Outcome("failed", detail="the worker stopped") if outcome.report == "unknown" else outcome

    original_leave, original_invoke = Worker._leave, Worker._invoke_until_stopped  # noqa: SLF001 - as above
    patch.replace(Worker, "_leave", leave)
    patch.replace(Worker, "_invoke_until_stopped", invoke)


@mutant(
    "handed-back-by-name",
    "OWN-10",
    shown_by="namesake/second@ask#1.received+delay@ask#1.applied+leave@search#1.received=other",
)
def handed_back_by_name(patch: Patch) -> None:
    """Who leaves hands back whatever anybody of its name has in hand."""

    def hand_back(self: Ownership, execution: str) -> list[int]:
        name = execution.partition("#")[0]
        holders = {holder for _, holder in self.leases() if holder.partition("#")[0] == name}
        return [generation for holder in sorted(holders | {execution}) for generation in original(self, holder)]

    original = Ownership.hand_back
    patch.replace(Ownership, "hand_back", hand_back)


@mutant("handed-back-is-paid", "BUD-2", shown_by="unspent/leave@hear#1.replied~2000000ns")
def handed_back_is_paid(patch: Patch) -> None:
    """What is handed back unsent is booked as used, as it had been set aside."""

    def settlement(self: Budget, kind: Any, report: Report, held: int, used: int | None) -> tuple[int, int]:
        return (held, 0) if report == "unsent" else original(self, kind, report, held, used)

    original = Budget.settlement
    patch.replace(Budget, "settlement", settlement)

"""Mutants of JRN-1 to JRN-4: intents without what matters, transitions that nobody listed, losses and ids not written down."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.mutants import Patch, mutant
from reference_runtime.acceptance import Acceptance
from reference_runtime.intents import Intents
from reference_runtime.ownership import Ownership
from reference_runtime.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Collection

    from reference_runtime.model import Grant, Move, Rejected, Remedy, Report
    from reference_runtime.ownership import Lease
    from reference_runtime.rows import Operation


@mutant("key-written-with-answer", "JRN-1", shown_by="tour/kill@reserve#1.received")
def key_written_with_answer(patch: Patch) -> None:
    """An intent is recorded without its key and its digest, which are added when the answer comes."""

    def record_intent(self: Ownership, op: Operation, generation: int) -> None:
        original(self, op, generation)
        kept = self._rows("SELECT key, digest FROM invocation WHERE generation = ?", generation)[0]
        later[generation] = kept
        self.db.execute("UPDATE invocation SET key = NULL, digest = '' WHERE generation = ?", (generation,))

    def end_invocation(
        self: Acceptance, generation: int, report: Report, detail: str, external: str | None = None
    ) -> None:
        original_end(self, generation, report, detail, external)
        if generation in later and report in ("succeeded", "failed", "found"):
            self.db.execute(
                "UPDATE invocation SET key = ?, digest = ? WHERE generation = ?", (*later.pop(generation), generation)
            )

    later: dict[int, tuple[object, ...]] = {}
    original, original_end = Intents._record_intent, Acceptance._end_invocation  # noqa: SLF001 - a mutant goes where it should not
    patch.replace(Intents, "_record_intent", record_intent)
    patch.replace(Acceptance, "_end_invocation", end_invocation)


@mutant("repeat-without-intent", "JRN-1", shown_by="tour/kill@reserve#1.applied")
def repeat_without_intent(patch: Patch) -> None:
    """A repeat goes by the intent of the try before it: no invocation of its own is recorded."""

    def record_intent(self: Ownership, op: Operation, generation: int) -> None:
        original(self, op, generation)
        self.db.execute(
            "DELETE FROM invocation WHERE attempt = ? AND operation = ? AND action = 'call' AND generation < ?",
            (op.attempt, op.id, generation),
        )

    original = Intents._record_intent  # noqa: SLF001 - a mutant goes where it should not
    patch.replace(Intents, "_record_intent", record_intent)


@mutant("intent-without-sync", "JRN-1", shown_by="tour/power@reserve#1.applied(engine)")
def intent_without_sync(patch: Patch) -> None:
    """An intent is committed without waiting for the disk: a power cut can take it back when the request has left."""

    def claim(self: Ownership, execution: str, holding: Collection[int], limit: int) -> list[Lease]:
        self.db.execute("PRAGMA synchronous = OFF")
        try:
            return original(self, execution, holding, limit)
        finally:
            self.db.execute("PRAGMA synchronous = FULL")

    original = Ownership.claim
    patch.replace(Ownership, "claim", claim)


@mutant("late-word-unsettles", "JRN-2", shown_by="survey/pause@north#1.applied")
def late_word_unsettles(patch: Patch) -> None:
    """A report that comes too late makes an operation unknown that somebody else has brought to its end."""

    def fence(self: Rows, move: Move, generation: int, version: int) -> tuple[str, tuple[object, ...]]:
        if not late:
            return original_fence(self, move, generation, version)
        return "state = 'succeeded'", ()

    def reject(self: Acceptance, grant: Grant, report: str, detail: str) -> Rejected:
        late.append(grant.generation)
        op = self._operation(grant.attempt, grant.operation)
        self._move(op, "lose", op.generation, op.version, None, "outcome-unknown: two answers")
        late.clear()
        return original(self, grant, report, detail)

    late: list[int] = []
    original, original_fence = Acceptance._reject, Rows.fence  # noqa: SLF001 - a mutant goes where it should not
    patch.replace(Rows, "fence", fence)
    patch.replace(Acceptance, "_reject", reject)


@mutant("lost-is-planned-again", "JRN-2", shown_by="tour/kill@reserve#1.applied")
def lost_is_planned_again(patch: Patch) -> None:
    """A call that got lost and may be repeated goes back to where it had never been sent."""

    def reschedule(self: Acceptance, op: Operation, remedy: Remedy | None, due_ns: int) -> None:
        original(self, op, remedy, due_ns)
        if remedy == "repeat" and op.semantics != "lookup":
            self._move(op, "lose", op.generation, op.version + 1, None, "planned again")
            self.db.execute(
                "UPDATE operation SET state = 'planned', due_ns = ? WHERE attempt = ? AND id = ? AND state = 'unknown'",
                (due_ns, op.attempt, op.id),
            )
            self.db.execute(
                "UPDATE transition SET state = 'planned' WHERE task = ?1 AND sequence ="
                " (SELECT max(sequence) FROM transition WHERE task = ?1)",
                (op.task,),
            )

    original = Acceptance._reschedule  # noqa: SLF001 - a mutant goes where it should not
    patch.replace(Acceptance, "_reschedule", reschedule)


def _log(patch: Patch, *, is_told: bool) -> None:
    """Losses are left out of the journal, or told as failures."""

    def log(
        self: Rows, op: Operation, move: Move, reason: str | None, condition: str, values: Any, under: object
    ) -> None:
        if move == "lose" and not is_told:
            return
        original(self, op, move, reason, condition, values, under)
        if move == "lose":
            self.db.execute(
                "UPDATE transition SET state = 'failed' WHERE task = ?1 AND state = 'unknown' AND sequence ="
                " (SELECT max(sequence) FROM transition WHERE task = ?1)",
                (op.task,),
            )

    original = Rows._log_transition  # noqa: SLF001 - a mutant goes where it should not
    patch.replace(Rows, "_log_transition", log)


@mutant("loss-goes-untold", "JRN-3", shown_by="chain/drop@buy#1.applied")
def loss_goes_untold(patch: Patch) -> None:
    """A call whose answer got lost is sent again, and the journal never says that its outcome was unknown."""
    _log(patch, is_told=False)


@mutant("loss-told-as-failure", "JRN-3", shown_by="chain/reset@buy#1.applied")
def loss_told_as_failure(patch: Patch) -> None:
    """The journal calls a call failed whose answer got lost, as it does one that was refused."""
    _log(patch, is_told=True)


@mutant("lookup-drops-ids", "JRN-4", shown_by="receivers/kill@shipment#1.applied")
def lookup_drops_ids(patch: Patch) -> None:
    """Of what a look-up finds only the answer is kept, and not the receiver's id."""

    def end_invocation(
        self: Acceptance, generation: int, report: Report, detail: str, external: str | None = None
    ) -> None:
        original(self, generation, report, detail, None if report == "found" else external)

    original = Acceptance._end_invocation  # noqa: SLF001 - a mutant goes where it should not
    patch.replace(Acceptance, "_end_invocation", end_invocation)


@mutant("repeat-drops-ids", "JRN-4", shown_by="chain/drop@buy#1.applied")
def repeat_drops_ids(patch: Patch) -> None:
    """The receiver's id is kept of the first try only, as if any answer were the answer to that."""

    def end_invocation(
        self: Acceptance, generation: int, report: Report, detail: str, external: str | None = None
    ) -> None:
        is_first = self._value(
            "SELECT min(i.generation) FROM invocation i JOIN invocation o ON o.attempt = i.attempt"
            " AND o.operation = i.operation WHERE o.generation = ?",
            generation,
        )
        original(self, generation, report, detail, external if is_first == generation else None)

    original = Acceptance._end_invocation  # noqa: SLF001 - a mutant goes where it should not
    patch.replace(Acceptance, "_end_invocation", end_invocation)

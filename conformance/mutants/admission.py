"""Mutants of SCH-7 to SCH-9: more than there is room for, work that is handed out after its time, and waits that take slots."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from conformance.mutants import Patch, mutant
from reference_runtime.budget import Budget
from reference_runtime.deadlines import Deadlines
from reference_runtime.intents import Intents
from reference_runtime.model import Receipt, Refusal
from reference_runtime.ownership import Ownership
from reference_runtime.store import Store
from reference_runtime.worker import FOR_EVER, SLOTS, Worker

if TYPE_CHECKING:
    from reference_runtime.model import Grant, Json, Ticket
    from reference_runtime.rows import Operation

_OPEN_WAITS = "SELECT count(*) FROM operation WHERE kind = 'wait' AND state = 'planned' AND opened_ns IS NOT NULL"


@mutant("dropped-beyond-the-limit", "SCH-7", shown_by="crowded/crowd@ack:start=8")
def dropped_beyond_the_limit(patch: Patch) -> None:
    """A task for which there is no room is acknowledged like any other, and dropped."""

    def submit(self: Store, task: str, plan: object) -> Receipt:
        try:
            return original(self, task, plan)
        except Refusal as no:
            if no.code != "over-capacity":
                raise
            return Receipt(task, f"{task}.1")

    original = Store.submit
    patch.replace(Store, "submit", submit)


@mutant("slots-not-counted", "SCH-7", shown_by="counters/undisturbed")
def slots_not_counted(patch: Patch) -> None:
    """A worker asks for as much work as it has slots, whatever it has in hand already."""

    async def claim(self: Worker) -> list[Grant | Ticket]:
        ask = {"execution": self.execution, "holding": sorted(self._holding), "limit": self.slots}
        asked = trio.current_time()
        return self._taken(await self.client.call("claim", ask, FOR_EVER), asked)

    patch.replace(Worker, "_claim", claim)


@mutant("queue-outlives-the-deadline", "SCH-8", shown_by="closing/kill@c1#1.received(engine)~1800000000ns")
def queue_outlives_the_deadline(patch: Patch) -> None:
    """Once it is in the queue, work is handed out whenever its turn comes; the deadline is a word to receivers."""

    def fields_for(self: Ownership, op: Operation) -> Json:
        found = original(self, op)
        return {**found, "remaining_ns": max(1, found["remaining_ns"])} if "remaining_ns" in found else found

    original = Intents.fields_for
    patch.replace(Intents, "fields_for", fields_for)
    patch.replace(Budget, "past_deadline", lambda _self, _remaining_ns: False)
    patch.replace(Deadlines, "arm_deadline", lambda _self, _task, _attempt: None)


@mutant("waits-take-slots", "SCH-9", shown_by="lobby/undisturbed")
def waits_take_slots(patch: Patch) -> None:
    """Each wait that is open takes a slot of those that work is handed out for."""

    def runnable(self: Ownership, now_ns: int, limit: int, execution: str | None = None) -> list[Operation]:
        return original(self, now_ns, limit - int(self._value(_OPEN_WAITS)), execution)

    def next_work_ns(self: Ownership, execution: str | None = None) -> int | None:
        return None if self._value(_OPEN_WAITS) >= SLOTS else next_hour(self, execution)

    original, next_hour = Ownership.runnable, Ownership.next_work_ns
    patch.replace(Ownership, "runnable", runnable)
    patch.replace(Ownership, "next_work_ns", next_work_ns)

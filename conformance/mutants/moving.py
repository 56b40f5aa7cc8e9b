"""Mutants of work on its way: lost, doubled, and held up by a neighbour."""

from __future__ import annotations

import time

import trio

from conformance.mutants import Patch, mutant
from reference_runtime.model import Ticket
from reference_runtime.ownership import Ownership
from reference_runtime.server import Server
from reference_runtime.waits import Waits
from reference_runtime.worker import Worker

#: Between one timer and the next of a batch.
PACE_S = 0.03


@mutant("timers-taken-out-first", "SCH-10", shown_by="alarms/kill@letter1#1.received(engine)")
def timers_taken_out_first(patch: Patch) -> None:
    """All timers that are due are taken out at once, and then fired one after the other from memory."""
    taken: list[tuple[str, str]] = []

    def fire_timers(self: Waits) -> int:
        due = self.due_timers(time.time_ns())
        if not due:
            return 0
        with self._transaction():
            for attempt, operation in due:
                self.db.execute(
                    "UPDATE timer SET fired_ns = due_ns WHERE attempt = ? AND operation = ?", (attempt, operation)
                )
        taken.extend(due)
        return len(due)

    async def keep_time(self: Server) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fire, self)
            await original(self)

    async def fire(self: Server) -> None:
        taken.clear()  # memory of the process that died
        while True:
            await trio.sleep(PACE_S)
            if taken:
                with self.store._transaction():  # noqa: SLF001 - as above
                    self.store._fire(*taken.pop(0))  # noqa: SLF001 - as above
                self.notify()

    original = Server._keep_time  # noqa: SLF001 - as above
    patch.replace(Server, "_keep_time", keep_time)
    patch.replace(Waits, "fire_timers", fire_timers)


@mutant("running-put-back", "SCH-10", shown_by="alarms/kill@letter1#1.applied")
def running_put_back(patch: Patch) -> None:
    """What a dead worker was at is put back into the queue as if it had never been sent."""

    def reclaim(self: Ownership, generation: int) -> None:
        with self._transaction():
            row = self._row("SELECT attempt, operation FROM lease WHERE generation = ?", generation)
            if row is None:
                return
            self.db.execute(
                "UPDATE operation SET state = 'planned', due_ns = 0, version = version + 1"
                " WHERE attempt = ? AND id = ? AND state IN ('planned', 'dispatched')",
                row,
            )
            self._release(generation)
            self._conclude(row[0])

    patch.replace(Ownership, "reclaim", reclaim)


@mutant("batch-ends-at-misfit", "SCH-11", shown_by="misfit/undisturbed")
def batch_ends_at_misfit(patch: Patch) -> None:
    """A worker begins with what it was handed out one by one, and stops at the first that cannot be put into words."""

    async def begin(self: Worker, nursery: trio.Nursery) -> None:
        while True:
            for lease in await self._claim():
                if isinstance(lease, Ticket) and "poison" in lease.params:
                    break
                nursery.start_soon(self._work_off, lease)

    patch.replace(Worker, "_begin", begin)

"""Mutants of DLN-1 to DLN-3: time that begins anew, that nobody is told of, and runs that hang on who asked for them.

And one of BUD-1: time that is allowed, and never over.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import trio

from conformance.mutants import Patch, mutant
from reference_runtime.acceptance import Acceptance
from reference_runtime.budget import Budget
from reference_runtime.deadlines import Deadlines
from reference_runtime.intents import Intents
from reference_runtime.ownership import Ownership
from reference_runtime.server import Server
from reference_runtime.waits import DEADLINE

if TYPE_CHECKING:
    from reference_runtime.model import Json
    from reference_runtime.rows import Operation
    from reference_runtime.store import Store

_RENEWED = "SELECT at_ns - submitted_ns FROM deadline d JOIN task t ON t.id = d.task WHERE d.task = deadline.task"


def _renew(store: Ownership, now_ns: int) -> None:
    """Give every run that has not ended all of its time again."""
    store.db.execute(f"UPDATE deadline SET at_ns = ? + ({_RENEWED})", (now_ns,))  # noqa: S608 - a constant
    store.db.execute(
        "UPDATE timer SET due_ns = (SELECT at_ns FROM deadline d JOIN attempt a ON a.task = d.task WHERE a.id = attempt)"
        " WHERE operation = ? AND fired_ns IS NULL",
        (DEADLINE,),
    )


@mutant("deadline-renewed-by-restart", "DLN-1", shown_by="doze/kill@ask#1.replied(engine)~1800000000ns")
def deadline_renewed_by_restart(patch: Patch) -> None:
    """The time of a run is counted from when the server came up."""

    def init(self: Server, store: Store, **options: Any) -> None:
        original(self, store, **options)
        with store._transaction():  # noqa: SLF001 - a mutant goes where it should not
            _renew(store, time.time_ns())

    original = Server.__init__
    patch.replace(Server, "__init__", init)


@mutant("deadline-renewed-by-retry", "DLN-1", shown_by="curfew/undisturbed")
def deadline_renewed_by_retry(patch: Patch) -> None:
    """Every try has all the time that the run had at its beginning."""

    def remedy(self: Acceptance, op: Operation, *args: Any) -> None:
        assert isinstance(self, Ownership)
        _renew(self, time.time_ns())
        original(self, op, *args)

    original = Acceptance._remedy  # noqa: SLF001 - a mutant goes where it should not
    patch.replace(Acceptance, "_remedy", remedy)


@mutant("deadline-only-at-dispatch", "DLN-1", shown_by="doze/undisturbed")
def deadline_only_at_dispatch(patch: Patch) -> None:
    """The deadline is looked at when something is to be sent, and a run that waits goes on waiting."""
    patch.replace(Deadlines, "arm_deadline", lambda _self, _task, _attempt: None)


@mutant("deadline-ends-with-the-run", "DLN-1", shown_by="hearsay/notice@end>letter")
def deadline_ends_with_the_run(patch: Patch) -> None:
    """A run that ends over something unresolved loses its deadline, and has none as a late word lets it go on."""

    def conclude(self: Deadlines, attempt: str) -> None:
        super(Deadlines, self)._conclude(attempt)

    patch.replace(Deadlines, "_conclude", conclude)


@mutant("deadline-kept-to-itself", "DLN-2", shown_by="relay/undisturbed")
def deadline_kept_to_itself(patch: Patch) -> None:
    """Nobody downstream is told how much time there is."""

    def fields_for(self: Ownership, op: Operation) -> Json:
        return {name: value for name, value in original(self, op).items() if name != "remaining_ns"}

    original = Intents.fields_for
    patch.replace(Intents, "fields_for", fields_for)


@mutant("whole-time-handed-on", "DLN-2", shown_by="relay/undisturbed")
def whole_time_handed_on(patch: Patch) -> None:
    """Every request is told of all the time that the run had at its beginning."""

    def fields_for(self: Ownership, op: Operation) -> Json:
        fields = original(self, op)
        if "remaining_ns" in fields:
            sql = "SELECT d.at_ns - t.submitted_ns FROM deadline d JOIN task t ON t.id = d.task WHERE d.task = ?"
            fields["remaining_ns"] = self._value(sql, op.task)
        return fields

    original = Intents.fields_for
    patch.replace(Intents, "fields_for", fields_for)


@mutant("task-of-a-connection", "DLN-3", shown_by="timer/kill@ack:start")
def task_of_a_connection(patch: Patch) -> None:
    """A task is stopped when the connection that it was submitted over is gone."""
    asked: dict[trio.lowlevel.Task, list[str]] = {}

    async def submit(self: Server, task: str, plan: Json) -> Json:
        asked[trio.lowlevel.current_task()].append(task)
        return await original_submit(self, task, plan)

    async def converse(self: Server, stream: trio.abc.Stream) -> None:
        mine = asked[trio.lowlevel.current_task()] = []
        await original_converse(self, stream)
        for task in mine:
            self.store.cancel(task, "the connection is gone")
        self.notify()

    original_submit, original_converse = Server.submit, Server._converse  # noqa: SLF001 - a mutant goes where it should not
    patch.replace(Server, "submit", submit)
    patch.replace(Server, "_converse", converse)


@mutant("elapsed-not-limited", "BUD-1", shown_by="siesta/undisturbed")
def elapsed_not_limited(patch: Patch) -> None:
    """How long a run may take in all is written down, and nobody looks at the clock."""

    def ends_at(self: Budget, task: str) -> tuple[int, str] | None:
        found = original(self, task)
        return None if found is not None and found[1].startswith("allowance") else found

    original = Budget.ends_at
    patch.replace(Budget, "ends_at", ends_at)
    patch.replace(Budget, "elapsed_exhausted", lambda _self, _account, _now_ns: False)

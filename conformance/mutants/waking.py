"""Mutants of SCH-4 to SCH-6 and SCH-12: events that are lost or answered anyhow, waits without an end, crossed timeouts."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from conformance.mutants import Patch, mutant
from conformance.mutants.restarts import on_restart
from reference_runtime import waits
from reference_runtime.model import Refusal, canonical
from reference_runtime.waits import Waits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reference_runtime.model import Json

_TIMED_OUT = """SELECT o.attempt, o.id FROM task t JOIN operation o ON o.attempt = t.attempt
    WHERE t.id = ? AND o.signal = ? AND o.kind = 'wait' AND o.state = 'succeeded' AND o.answer IS NULL
    ORDER BY o.position LIMIT 1"""


@mutant("late-is-buffered", "SCH-5", shown_by="doorbell/late-signal@end+kill@end(engine)")
def late_is_buffered(patch: Patch) -> None:
    """A signal that nobody has used is called buffered, whether or not anybody is left who could."""
    patch.replace(Waits, "disposition_of", lambda _self, consumer, **_: "released" if consumer else "buffered")


@mutant("late-and-used", "SCH-5", shown_by="hearsay/late-signal@end+notice@end>letter")
def late_and_used(patch: Patch) -> None:
    """A signal to a run that has ended unresolved is called late, and is there when a late word lets the run go on."""
    patch.replace(waits, "is_over", lambda outcome: outcome is not None)


@mutant("repeat-refused", "SCH-5", shown_by="doorbell/repeat@ack:signal:ring")
def repeat_refused(patch: Patch) -> None:
    """A signal that is known already is refused."""

    def known_signal(self: Waits, task: str, id_: str, name: str, payload: Mapping[str, Any]) -> bool:
        if original(self, task, id_, name, payload):
            raise Refusal("known-signal", f"signal {id_!r} of task {task!r} is known")
        return False

    original = Waits.known_signal
    patch.replace(Waits, "known_signal", known_signal)


@mutant("timeout-in-memory", "SCH-6", shown_by="vigil/kill@waiting:reply(engine)+late-signal@waiting:reply")
def timeout_in_memory(patch: Patch) -> None:
    """The times of waits are kept in the memory of the server that saw them begin."""
    on_restart(
        patch,
        "DELETE FROM timer WHERE EXISTS (SELECT 1 FROM operation o"
        " WHERE o.attempt = timer.attempt AND o.id = timer.operation AND o.kind = 'wait')",
    )


@mutant(
    "timeout-counts-anew", "SCH-6", shown_by="watch/kill@waiting:reply(engine)~1500000000ns+late-signal@waiting:reply"
)
def timeout_counts_anew(patch: Patch) -> None:
    """A server that comes up begins the waits that it finds again, with all their time."""
    on_restart(
        patch,
        "UPDATE timer SET due_ns = unixepoch('subsec') * 1000000000 + (SELECT o.spec ->> 'timeout_ns' FROM operation o"
        " WHERE o.attempt = timer.attempt AND o.id = timer.operation) WHERE fired_ns IS NULL AND EXISTS (SELECT 1"
        " FROM operation o WHERE o.attempt = timer.attempt AND o.id = timer.operation AND o.kind = 'wait')",
    )


@mutant("half-the-time", "SCH-6", shown_by="vigil/late-signal@waiting:reply")
def half_the_time(patch: Patch) -> None:
    """A wait is given half of the time that it asked for."""

    def start_timer(self: Waits, attempt: str, operation: str, due_ns: int) -> None:
        kind = self._value("SELECT kind FROM operation WHERE attempt = ? AND id = ?", attempt, operation)
        now_ns = time.time_ns()
        original(self, attempt, operation, now_ns + (due_ns - now_ns) // 2 if kind == "wait" else due_ns)

    original = Waits.start_timer
    patch.replace(Waits, "start_timer", start_timer)


def _take_late(patch: Patch, *, overwrites: bool) -> None:
    """A signal goes to a wait of its name that timed out, which may even end with it once more."""

    def buffer_signal(self: Waits, task: str, id_: str, name: str, payload: Mapping[str, Any]) -> None:
        original(self, task, id_, name, payload)
        row = self._row(_TIMED_OUT, task, name)
        if row is None:
            return
        self.db.execute("UPDATE event SET consumer = ? WHERE task = ? AND id = ?", (":".join(row), task, id_))
        if overwrites:
            self.db.execute("UPDATE operation SET answer = ? WHERE attempt = ? AND id = ?", (canonical(payload), *row))

    original = Waits.buffer_signal
    patch.replace(Waits, "buffer_signal", buffer_signal)


@mutant("timed-out-wait-listens", "SCH-12", shown_by="tryst/late-signal@waiting:first")
def timed_out_wait_listens(patch: Patch) -> None:
    """A wait that timed out is still registered for its signal, and takes it away from the open one."""
    _take_late(patch, overwrites=False)


@mutant("late-event-overwrites", "SCH-12", shown_by="vigil/late-signal@waiting:reply")
def late_event_overwrites(patch: Patch) -> None:
    """A signal that comes after the timeout is written over it."""
    _take_late(patch, overwrites=True)


_UNUSED = "FROM event WHERE task = ? AND name = ? AND id != ? AND consumer IS NULL AND disposition IS NULL"


@mutant("one-early-event-a-name", "SCH-4", shown_by="doorbell/early@ack:start:ring+early@ack:start:knock")
def one_early_event_a_name(patch: Patch) -> None:
    """While one event of a name is waiting to be used, another one is acknowledged and goes nowhere."""

    def signal(self: Waits, task: str, id_: str, name: str, payload: Mapping[str, Any]) -> Json:
        if self._row(f"SELECT 1 {_UNUSED}", task, name, id_):
            return {"id": id_, "disposition": "buffered", "consumer": None}
        return original(self, task, id_, name, payload)

    original = Waits.signal
    patch.replace(Waits, "signal", signal)


@mutant("latest-early-event-wins", "SCH-4", shown_by="doorbell/early@ack:start:ring+early@ack:start:knock")
def latest_early_event_wins(patch: Patch) -> None:
    """Of several events of a name that nobody has used yet, the latest takes the place of the others."""

    def buffer_signal(self: Waits, task: str, id_: str, name: str, payload: Mapping[str, Any]) -> None:
        self.db.execute(f"DELETE {_UNUSED}", (task, name, id_))
        original(self, task, id_, name, payload)

    original = Waits.buffer_signal
    patch.replace(Waits, "buffer_signal", buffer_signal)


@mutant(
    "early-events-in-memory",
    "SCH-4",
    shown_by="tour/early@ack:start:release+kill@reserve#1.applied(engine)",
)
def early_events_in_memory(patch: Patch) -> None:
    """An event that nobody has used yet is kept in the memory of the server, and goes with it."""
    on_restart(patch, "DELETE FROM event WHERE consumer IS NULL AND disposition IS NULL")

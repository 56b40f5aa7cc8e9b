"""Mutants of STA-1 to STA-5: what is told of a run is told to few, goes back, leaves out, guesses, or gives no reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.mutants import Patch, mutant
from conformance.mutants.restarts import on_restart
from reference_runtime import events, looking, views
from reference_runtime.control import Control
from reference_runtime.delivery import Delivery
from reference_runtime.handle import Handle
from reference_runtime.progress import Progress
from reference_runtime.server import Server

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reference_runtime.model import Json, Outcome, Receipt
    from reference_runtime.rows import Rows
    from reference_runtime.store import Store

#: Events that a forgetful server remembers.
_KEPT = 3


@mutant("told-to-its-submitter", "STA-1", shown_by="tour/kill@waiting:release")
def told_to_its_submitter(patch: Patch) -> None:
    """A client knows the tasks that it submitted itself, and of no other."""
    mine: dict[Handle, set[str]] = {}

    async def submit(self: Handle, task: str, plan: Mapping[str, Any]) -> Receipt:
        receipt = await original_submit(self, task, plan)
        mine.setdefault(self, set()).add(task)
        return receipt

    async def status(self: Handle, task: str) -> Json:
        return await original_status(self, task) if task in mine.get(self, ()) else {"state": "unknown"}

    original_submit, original_status = Handle.submit, Handle.status
    patch.replace(Handle, "submit", submit)
    patch.replace(Handle, "status", status)


@mutant("version-counted-in-memory", "STA-2", shown_by="tour/kill@waiting:release(engine)")
def version_counted_in_memory(patch: Patch) -> None:
    """A server counts the versions of a task from one, whatever the servers before it have shown."""
    first: dict[str, int] = {}

    def init(self: Server, *args: Any, **options: Any) -> None:
        first.clear()  # memory of the process that died
        original_init(self, *args, **options)

    def status(store: Store, task: str) -> Json:
        found = original_status(store, task)
        if "version" in found:
            found["version"] -= first.setdefault(task, found["version"]) - 1
        return found

    original_init, original_status = Server.__init__, views.status
    patch.replace(Server, "__init__", init)
    patch.replace(views, "status", status)


@mutant("change-without-version", "STA-2", shown_by="tour/undisturbed")
def change_without_version(patch: Patch) -> None:
    """What follows from an acceptance is written without a new version of the task."""
    patch.replace(Progress, "_touch", lambda _self, _attempt: None)


@mutant("pause-without-version", "STA-2", shown_by="hold/halt@waiting:word")
def pause_without_version(patch: Patch) -> None:
    """That a run is paused, or goes on, is a setting of it and no change."""
    setting: list[bool] = []

    def set_paused(self: Control, *said: str, is_paused: bool) -> Json:
        setting.append(True)
        try:
            return original(self, *said, is_paused=is_paused)
        finally:
            setting.pop()

    def touch(self: Progress, attempt: str) -> None:
        if not setting:
            original_touch(self, attempt)

    original, original_touch = Control._set_paused, Progress._touch  # noqa: SLF001 - a mutant goes where it should not
    patch.replace(Control, "_set_paused", set_paused)
    patch.replace(Progress, "_touch", touch)


@mutant("delivery-without-version", "STA-2", shown_by="tour/kill@end")
def delivery_without_version(patch: Patch) -> None:
    """That a result was handed over is written down beside the run, whose version stays."""

    def deliver(self: Delivery, task: str) -> bool:
        with self._transaction():
            self.db.execute("UPDATE delivery SET state = 'delivered' WHERE task = ? AND state = 'prepared'", (task,))
            return self.db.changes() == 1

    patch.replace(Delivery, "deliver", deliver)


@mutant("frames-move-the-cursor", "STA-3", shown_by="tour/kill@waiting:release(engine)")
def frames_move_the_cursor(patch: Patch) -> None:
    """The frame that ends every page, and carries no event, counts as one."""
    patch.replace(events, "next_cursor", lambda after, found: int(found[-1]["cursor"]) + 1 if found else after)


@mutant("losses-make-no-event", "STA-3", shown_by="stingy/undisturbed")
def losses_make_no_event(patch: Patch) -> None:
    """That nobody knows what became of an operation is a state of it, and is told to nobody who reads events."""
    patch.replace(
        events,
        "_EVENTS",
        "SELECT sequence, state, operation, version, attempt FROM transition WHERE task = ? AND sequence > ?"
        " AND state != 'unknown' ORDER BY sequence LIMIT ?",
    )


@mutant("full-page-skips-one", "STA-3", shown_by="calendar/undisturbed")
def full_page_skips_one(patch: Patch) -> None:
    """A page that is full says to go on behind the first event that had no room on it."""

    def next_cursor(after: int, found: list[Json]) -> int:
        return original(after, found) + (len(found) == events.PAGE)

    original = events.next_cursor
    patch.replace(events, "next_cursor", next_cursor)


@mutant("old-cursor-from-now", "STA-3", shown_by="tour/kill@waiting:release(engine)")
def old_cursor_from_now(patch: Patch) -> None:
    """A reader who was away for more than a few events is told the latest only."""

    def latest(rows: Rows, task: str, after: int) -> Json:
        last = original(rows, task, 0)["next"]
        return original(rows, task, max(after, last - _KEPT))

    original = events.events
    patch.replace(looking, "events", latest)


@mutant("silence-told-as-failure", "STA-4", shown_by="relapse/kill@parcel#1.applied+kill@*#2.received")
def silence_told_as_failure(patch: Patch) -> None:
    """An operation of which nothing has been heard is shown as failed until something is."""

    def status(store: Store, task: str) -> Json:
        found = original(store, task)
        for operation in found.get("operations", ()):
            if operation["state"] == "unknown":
                operation["state"] = "failed"
        return found

    original = views.status
    patch.replace(views, "status", status)


@mutant("end-without-reason", "STA-5", shown_by="receivers/reset@mail#1.applied")
def end_without_reason(patch: Patch) -> None:
    """An attempt that does not succeed ends without a word."""

    def reason(_self: Progress, _attempt: str, _outcome: Outcome | None) -> str | None:
        return None

    patch.replace(Progress, "_reason", reason)


@mutant("stop-without-reason", "STA-5", shown_by="recall/cancel@pay#1.applied")
def stop_without_reason(patch: Patch) -> None:
    """An attempt that was stopped ends without a word."""

    def reason(self: Progress, attempt: str, outcome: Outcome | None) -> str | None:
        return None if outcome == "cancelled" else original(self, attempt, outcome)

    original = Progress._reason  # noqa: SLF001 - a mutant goes where it should not
    patch.replace(Progress, "_reason", reason)


@mutant("reasons-in-memory", "STA-5", shown_by="invalid/kill@end(engine)")
def reasons_in_memory(patch: Patch) -> None:
    """Why a run ended is known to the server that saw it end."""
    on_restart(patch, "UPDATE attempt SET reason = NULL WHERE outcome IS NOT NULL")

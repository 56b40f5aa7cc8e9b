"""Mutants of ART-1 to ART-6: what is published is not whole, does not stay, or leaves something behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.mutants import Patch, mutant
from conformance.mutants.restarts import on_restart
from reference_runtime import control
from reference_runtime.acceptance import Acceptance
from reference_runtime.artifacts import Artifacts
from reference_runtime.model import canonical
from reference_runtime.performing import Performer
from reference_runtime.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reference_runtime.model import Json
    from reference_runtime.rows import Operation
    from reference_runtime.store import Store
    from reference_runtime.tools import Request


@mutant("kept-on-the-worker", "ART-1", shown_by="publish/wipe@announce#1.received")
def kept_on_the_worker(patch: Patch) -> None:
    """An entry names the file that its worker uploaded from, which is on the worker's disk."""

    def artifacts(self: Artifacts, task: str) -> Json:
        listed = original(self, task)
        for one in listed["artifacts"]:
            one["location"] = f"worker:/tmp/{one['operation']}"
        return listed

    original = Artifacts.artifacts
    patch.replace(Artifacts, "artifacts", artifacts)


@mutant("other-bytes-listed", "ART-1", shown_by="dispute/wipe@end")
def other_bytes_listed(patch: Patch) -> None:
    """The size of an entry is worked out from the number of its parts, which need not be full."""

    def artifacts(self: Artifacts, task: str) -> Json:
        listed = original(self, task)
        for one in listed["artifacts"]:
            one["size"] += -one["size"] % 64
        return listed

    original = Artifacts.artifacts
    patch.replace(Artifacts, "artifacts", artifacts)


@mutant("parts-count-as-published", "ART-2", shown_by="publish/kill@report#1.applied")
def parts_count_as_published(patch: Patch) -> None:
    """An upload that finds something of an earlier one at its place takes its work for done."""

    async def publish(self: Performer, request: Request, *, is_repeat: bool) -> Json:
        there = await self._there(request) if is_repeat else {}
        if there.get("parts") and not there.get("committed"):
            params = request.params
            return {"nonce": f"file:{params['location']}", "digest": params["digest"], "location": params["location"]}
        return await original(self, request, is_repeat=is_repeat)

    original = Performer.publish
    patch.replace(Performer, "publish", publish)


@mutant("listed-before-commit", "ART-2", shown_by="publish/kill@report#3.applied")
def listed_before_commit(patch: Patch) -> None:
    """An upload is listed as accepted from its first byte on."""

    def artifacts(self: Artifacts, task: str) -> Json:
        listed = original(self, task)
        for one in listed["artifacts"]:
            if one["state"] == "partial":
                one |= {"state": "accepted", "version": self.next_version(task, one["name"])}
        return listed

    original = Artifacts.artifacts
    patch.replace(Artifacts, "artifacts", artifacts)


@mutant("orphans-stay", "ART-3", shown_by="retract/cancel@report#2.received+kill@report#2.applied")
def orphans_stay(patch: Patch) -> None:
    """Nothing looks at what ended runs have half uploaded."""
    patch.replace(Artifacts, "orphans", lambda _self, _attempt: [])


@mutant(
    "sweeps-in-memory",
    "ART-3",
    shown_by="retract/cancel@report#3.received+kill@report#3.applied+kill@t+700000000ns(engine)",
)
def sweeps_in_memory(patch: Patch) -> None:
    """What is to be cleared away later is kept in the memory of the server; the next one takes it for done."""

    def forget(store: Store) -> None:
        rows = store.db.execute(
            "UPDATE operation SET state = 'succeeded', due_ns = NULL WHERE kind = 'sweep' AND state = 'planned'"
            " RETURNING attempt"
        ).fetchall()
        for (attempt,) in rows:
            store._conclude(str(attempt))  # noqa: SLF001 - a mutant goes where it should not

    on_restart(patch, forget)


@mutant("found-and-not-registered", "ART-3", shown_by="retract/cancel@report#4.received+kill@report#4.applied")
def found_and_not_registered(patch: Patch) -> None:
    """A sweep that finds content committed leaves it alone, and strikes it off."""

    def swept(self: Artifacts, sweep: Operation, answer: Mapping[str, Any]) -> None:
        original(self, sweep, {**answer, "committed": False})

    original = Artifacts.swept
    patch.replace(Artifacts, "swept", swept)


@mutant("swept-under-way", "ART-4", shown_by="retract/cancel@report#3.received+delay@report#4.received")
def swept_under_way(patch: Patch) -> None:
    """A run that begins to end is swept at once, whoever is at work on what it uploads."""

    def conclude(self: Progress, attempt: str) -> None:
        if self.is_stopped(attempt):
            self.plan_sweeps(attempt)
        original(self, attempt)

    original = Progress._conclude  # noqa: SLF001 - a mutant goes where it should not
    patch.replace(Progress, "_conclude", conclude)
    patch.replace(Artifacts, "is_owned", lambda _self, _state, _is_leased: False)


@mutant("swept-with-the-rest", "ART-4", shown_by="retract/cancel@report#2.received+kill@report#2.applied")
def swept_with_the_rest(patch: Patch) -> None:
    """Clearing up after an upload clears all entries of its run."""

    def swept(self: Artifacts, sweep: Operation, answer: Mapping[str, Any]) -> None:
        original(self, sweep, answer)
        self.db.execute("DROP TRIGGER IF EXISTS artifact_keeps")
        self.db.execute("DELETE FROM artifact WHERE task = ?", (sweep.task,))

    original = Artifacts.swept
    patch.replace(Artifacts, "swept", swept)


@mutant("replaced-in-place", "ART-5", shown_by="replace/undisturbed")
def replaced_in_place(patch: Patch) -> None:
    """A name has one entry, and the last one published wins."""

    def register(self: Artifacts, op: Operation) -> int:
        name = self._value("SELECT name FROM upload WHERE attempt = ? AND operation = ?", op.attempt, op.id)
        self.db.execute("DROP TRIGGER IF EXISTS artifact_keeps")
        self.db.execute("DELETE FROM artifact WHERE task = ? AND name = ?", (op.task, name))
        return original(self, op)

    original = Artifacts.register
    patch.replace(Artifacts, "register", register)


@mutant("failure-throws-away", "ART-6", shown_by="dispute/undisturbed")
def failure_throws_away(patch: Patch) -> None:
    """Only a run that succeeded has artifacts."""

    def artifacts(self: Artifacts, task: str) -> Json:
        outcome = self._value("SELECT a.outcome FROM task t JOIN attempt a ON a.id = t.attempt WHERE t.id = ?", task)
        return {"artifacts": []} if outcome in ("failed", "cancelled") else original(self, task)

    original = Artifacts.artifacts
    patch.replace(Artifacts, "artifacts", artifacts)


@mutant(
    "stop-ends-the-sweep",
    "ART-3",
    shown_by="retract/cancel@report#2.received+kill@report#2.applied+reset@report#3.received+cancel@t+1000000ns",
)
def stop_ends_the_sweep(patch: Patch) -> None:
    """A stop ends all that is to be tried again, and with it what clears up after an earlier stop."""

    def end_when_stopped(self: Acceptance, op: Operation, why: str = "not tried again") -> bool:
        if op.kind == "sweep" and op.remedy == "repeat" and self.is_halted(op.attempt):
            return self._end(op, "give_up", f"cancelled: {why}")
        return original(self, op, why)

    original = Acceptance.end_when_stopped
    patch.replace(Acceptance, "end_when_stopped", end_when_stopped)


@mutant(
    "word-for-content",
    "ART-6",
    shown_by="retract/cancel@report#4.received+kill@report#4.applied+notice@t+1000000ns>report",
)
def word_for_content(patch: Patch) -> None:
    """A receiver's word that an upload happened settles it, and its content, never registered, is in no list."""
    patch.replace(control, "TOLD", control.TOLD | {"artifact"})


@mutant("found-and-left", "DUR-6", shown_by="heirloom/kill@report#0.applied")
def found_and_left(patch: Patch) -> None:
    """An upload that a sweep finds committed is registered, and what waited for it goes on waiting."""

    def swept(self: Artifacts, sweep: Operation, answer: Mapping[str, Any]) -> None:
        op = self._operation(sweep.attempt, str(sweep.subject))
        if not answer.get("committed") or not self.verified(op, answer):
            original(self, sweep, answer)
            return
        self._move(
            op, "notice", op.generation, op.version, canonical({"nonce": answer.get("nonce")}), "found by a sweep"
        )
        self.register(op)

    original = Artifacts.swept
    patch.replace(Artifacts, "swept", swept)

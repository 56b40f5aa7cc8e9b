"""The mutants: one function each, whose docstring says what it breaks. See `conformance.mutants` for how they are used."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import trio

from conformance.mutants import Patch, mutant
from reference_runtime import views
from reference_runtime.acceptance import NOTHING_KNOWN, Acceptance
from reference_runtime.intents import Intents
from reference_runtime.model import canonical
from reference_runtime.ownership import Ownership
from reference_runtime.progress import Progress
from reference_runtime.server import Server
from reference_runtime.store import Store
from reference_runtime.waits import Waits
from reference_runtime.worker import Outcome, Worker

if TYPE_CHECKING:
    from reference_runtime.model import Facts, Grant, Json, Remedy, Report, Semantics, Ticket
    from reference_runtime.rows import Operation

#: How long a mutant that puts off a commit puts it off: longer than the way of an answer to its caller.
LATER_S = 0.03
#: How long a result is shown that is still to be committed: for some looks of an observer.
SHOWN_S = 0.1


# ---- durable progress


@mutant("ack-before-commit", "DUR-1", shown_by="tour/kill@ack:start(engine)")
def ack_before_commit(patch: Patch) -> None:
    """The server acknowledges a task first and commits it a moment later."""

    async def submit(self: Server, task: str, plan: Json) -> Json:
        known = self.store.db.execute("SELECT 1 FROM task WHERE id = ?", (task,)).fetchone()
        if known:
            return await original(self, task, plan)
        assert self.nursery is not None
        self.nursery.start_soon(commit, self, task, plan)
        return {"task": task, "attempt": f"{task}.1"}

    async def commit(self: Server, task: str, plan: Json) -> None:
        await trio.sleep(LATER_S)
        await original(self, task, plan)

    original = Server.submit
    patch.replace(Server, "submit", submit)


@mutant("show-before-commit", "DUR-2", shown_by="baton/kill@t+75000000ns(engine)")
def show_before_commit(patch: Patch) -> None:
    """A status shows a result as accepted while its acceptance is still to be committed."""
    shown: dict[str, dict[str, str]] = {}

    async def settle(self: Server, grant: Json, report: Report, answer: Json, **more: Any) -> Json:
        if report == "succeeded" and "nonce" in answer:
            shown.setdefault(grant["attempt"], {})[grant["operation"]] = answer["nonce"]
            await trio.sleep(SHOWN_S)
        return await original(self, grant, report, answer, **more)

    def status(store: Store, task: str) -> Json:
        found = original_status(store, task)
        early = shown.get(str(found.get("attempt")), {})
        for operation in found.get("operations", ()):
            if operation["id"] in early and operation["nonce"] is None:
                operation |= {"state": "succeeded", "nonce": early[operation["id"]]}
        return found

    def restarted(self: Server, *args: Any, **kwargs: Any) -> None:
        shown.clear()  # memory of the process that died
        original_init(self, *args, **kwargs)

    original, original_status, original_init = Server.settle, views.status, Server.__init__
    patch.replace(Server, "settle", settle)
    patch.replace(Server, "__init__", restarted)
    patch.replace(views, "status", status)


@mutant("recompute-accepted", "DUR-3", shown_by="chain/kill@buy#1.applied(engine)")
def recompute_accepted(patch: Patch) -> None:
    """A restarted server runs the last accepted call of every unfinished task again."""

    def init(self: Server, store: Store, **options: Any) -> None:
        original(self, store, **options)
        with store._transaction():  # noqa: SLF001 - a mutant goes where it should not
            store.db.execute(
                "UPDATE operation SET state = 'planned', answer = NULL, due_ns = 0, version = version + 1"
                " WHERE (attempt, position) IN (SELECT o.attempt, max(o.position) FROM operation o"
                " JOIN attempt a ON a.id = o.attempt WHERE o.kind = 'call' AND o.accepted AND a.outcome IS NULL"
                " GROUP BY o.attempt)"
            )

    original = Server.__init__
    patch.replace(Server, "__init__", init)


@mutant("second-task-on-resubmit", "DUR-5", shown_by="tour/lose-ack@ack:start")
def second_task_on_resubmit(patch: Patch) -> None:
    """A task submitted again under its id is a new attempt beside the first."""
    patch.replace(Store, "admission", lambda _self, _task, _fingerprint: "new")


@mutant("never-reassign", "DUR-6", shown_by="tour/kill@reserve#1.applied")
def never_reassign(patch: Patch) -> None:
    """Work whose worker died stays with the dead."""
    patch.replace(Ownership, "reclaim", lambda _self, _generation: None)


@mutant("execution-id-reused", "DUR-7", shown_by="tour/kill@waiting:release")
def execution_id_reused(patch: Patch) -> None:
    """Every activation of a worker goes by the same execution id."""
    patch.replace(Ownership, "new_execution", lambda _self, name: f"{name}#1")


@mutant("dispatch-before-dependency", "DUR-8", shown_by="tour/undisturbed")
def dispatch_before_dependency(patch: Patch) -> None:
    """Every operation may begin at once, whatever it depends on."""
    patch.replace(Progress, "dependencies_met", lambda _self, _missing: True)


@mutant("merge-equal-operations", "DUR-9", shown_by="branches/kill@ack:start(engine)")
def merge_equal_operations(patch: Patch) -> None:
    """A worker answers a call from its memory of an equal call, so that two operations become one."""
    memory: dict[str, Outcome] = {}
    under_way: dict[tuple[str, str], trio.Lock] = {}

    async def invoke(self: Worker, ticket: Ticket) -> Outcome:
        same = canonical([ticket.attempt, ticket.tool, ticket.params, dict(ticket.carries)])
        async with under_way.setdefault((self.execution, same), trio.Lock()):
            if same not in memory or memory[same].report != "succeeded":
                memory[same] = await original(self, ticket)
            return memory[same]

    original = Worker.invoke
    patch.replace(Worker, "invoke", invoke)


@mutant("unresolved-is-failed", "DUR-12", shown_by="receivers/kill@mail#1.applied")
def unresolved_is_failed(patch: Patch) -> None:
    """An attempt that ends with an unresolved effect is relabelled failed."""

    def outcome(self: Progress, tally: Any) -> Any:
        ended = original(self, tally)
        return "failed" if ended == "unresolved" else ended

    original = Progress.outcome
    patch.replace(Progress, "outcome", outcome)


# ---- external effects


@mutant("no-key", "EFF-1", shown_by="tour/kill@reserve#1.applied")
def no_key(patch: Patch) -> None:
    """Calls to idempotent receivers are sent without their key."""
    patch.replace(Worker, "key_for", lambda _self, _ticket: None)


@mutant("new-key-on-retry", "EFF-2", shown_by="tour/kill@reserve#1.applied")
def new_key_on_retry(patch: Patch) -> None:
    """Each invocation of an operation gets a key of its own."""
    patch.replace(
        Worker, "key_for", lambda _self, ticket: f"{ticket.key}:{ticket.invocation}" if ticket.key is not None else None
    )


@mutant("parameters-drift", "EFF-3", shown_by="tour/drop@reserve#1.applied")
def parameters_drift(patch: Patch) -> None:
    """A repeat sends other parameters under the same key."""

    def params_for(_self: Worker, ticket: Ticket) -> Json:
        return {**ticket.params, "invocation": ticket.invocation} if ticket.invocation > 1 else dict(ticket.params)

    patch.replace(Worker, "params_for", params_for)


def _on_unknown(patch: Patch, semantics: Semantics, remedy: Remedy) -> None:
    def on_unknown(self: Acceptance, of: Semantics) -> Remedy:
        return remedy if of == semantics else original(self, of)

    original = Acceptance.on_unknown
    patch.replace(Acceptance, "on_unknown", on_unknown)


@mutant("repeat-without-lookup", "EFF-4", shown_by="receivers/kill@shipment#1.applied")
def repeat_without_lookup(patch: Patch) -> None:
    """An unknown effect that could be looked up is simply made again."""
    _on_unknown(patch, "lookup", "repeat")


@mutant("retry-blind-unknown", "EFF-5", shown_by="receivers/drop@mail#1.applied")
def retry_blind_unknown(patch: Patch) -> None:
    """An unknown effect that can be neither looked up nor repeated is made again."""
    _on_unknown(patch, "blind", "repeat")


@mutant("read-left-unknown", "EFF-6", shown_by="chain/drop@quote#1.applied")
def read_left_unknown(patch: Patch) -> None:
    """A read whose answer was lost is given up instead of read again."""
    _on_unknown(patch, "read", "none")


@mutant("error-is-failure", "EFF-8", shown_by="tour/error-after@reserve#1.applied")
def error_is_failure(patch: Patch) -> None:
    """A 5xx, a reset or a timeout after dispatch is taken for a failure."""

    def outcome_of(self: Worker, error: Exception, ticket: Ticket) -> Report:
        found = original(self, error, ticket)
        return "failed" if found == "unknown" and ticket.action == "call" else found

    original = Worker.outcome_of
    patch.replace(Worker, "outcome_of", outcome_of)


@mutant("assume-it-happened", "EFF-11", shown_by="tour/kill@ship#1.received")
def assume_it_happened(patch: Patch) -> None:
    """A dispatched call whose worker went silent is taken for done."""
    patch.replace(Ownership, "assume_of_silence", lambda _self, _op: "succeeded")


@mutant("intent-after-call", "EFF-12", shown_by="tour/kill@reserve#1.applied")
def intent_after_call(patch: Patch) -> None:
    """The intent to call is recorded only together with the call's result."""

    class LaterError(Exception):
        """Carries the ticket out of a transaction that is rolled back."""

    def intend(self: Ownership, op: Operation, grant: Grant, generation: int) -> Any:
        try:
            with self.db:  # a savepoint
                ticket = original_intend(self, op, grant, generation)
                if ticket is None:
                    return None
                raise LaterError(ticket)  # noqa: TRY301 - rolls the savepoint back
        except LaterError as later:
            self._forget_all()
            self.db.execute(
                "UPDATE operation SET generation = ?, due_ns = NULL WHERE attempt = ? AND id = ?",
                (generation, op.attempt, op.id),
            )
            return later.args[0]

    def settle(
        self: Acceptance, grant: Grant, report: Report, answer: Json | None, detail: str, facts: Facts = NOTHING_KNOWN
    ) -> Any:
        with self._transaction():
            op = self._operation(grant.attempt, grant.operation)
            if op.generation == grant.generation and op.version < grant.version:
                before = grant.__class__(grant.attempt, grant.operation, grant.generation, op.version)
                assert isinstance(self, Ownership)
                original_intend(self, op, before, grant.generation)
            return original_settle(self, grant, report, answer, detail, facts)

    original_intend, original_settle = Intents._intend, Acceptance.settle  # noqa: SLF001 - a mutant goes where it should not
    patch.replace(Intents, "_intend", intend)
    patch.replace(Acceptance, "settle", settle)


# ---- ownership


@mutant("accept-stale-generation", "OWN-1", shown_by="survey/pause@north#1.applied")
def accept_stale_generation(patch: Patch) -> None:
    """A result counts whoever sends it, also after the operation went to another worker."""

    def settle(
        self: Acceptance, grant: Grant, report: Report, answer: Json | None, detail: str, facts: Facts = NOTHING_KNOWN
    ) -> Any:
        op = self._operation(grant.attempt, grant.operation)
        if report != "succeeded" or (op.generation, op.version) == (grant.generation, grant.version):
            return original(self, grant, report, answer, detail, facts)
        with self._transaction():
            self.db.execute(
                "UPDATE operation SET state = 'succeeded', answer = ?, due_ns = NULL, version = version + 1"
                " WHERE attempt = ? AND id = ?",
                (canonical(answer or {}), op.attempt, op.id),
            )
            self._release(op.generation)
            self._advance(op.attempt, op.id)
            self._conclude(op.attempt)
        return None

    original = Acceptance.settle
    patch.replace(Acceptance, "settle", settle)


# ---- signals


def _waits_for(store: Progress, task: str, name: str) -> bool:
    found = store._row(  # noqa: SLF001 - a mutant goes where it should not
        "SELECT 1 FROM operation o JOIN attempt a ON a.id = o.attempt WHERE a.task = ? AND o.signal = ?"
        " AND o.state = 'planned' AND o.opened_ns IS NOT NULL",
        task,
        name,
    )
    return found is not None


@mutant("signal-in-memory", "SIG-1", shown_by="tour/kill@ack:signal:release(engine)")
def signal_in_memory(patch: Patch) -> None:
    """A signal that something waits for is acknowledged first and stored a moment later."""

    async def signal(self: Server, task: str, id: str, name: str, payload: Json) -> Json:
        if not _waits_for(self.store, task, name):
            return await original(self, task, id, name, payload)
        assert self.nursery is not None
        self.nursery.start_soon(store_it, self, task, id, name, payload)
        return {"id": id, "disposition": "released", "consumer": None}

    async def store_it(self: Server, task: str, id_: str, name: str, payload: Json) -> None:
        await trio.sleep(LATER_S)
        await original(self, task, id_, name, payload)

    original = Server.signal
    patch.replace(Server, "signal", signal)


@mutant("signal-ids-ignored", "SIG-2", shown_by="twice/repeat@ack:signal:review")
def signal_ids_ignored(patch: Patch) -> None:
    """A signal repeated under its id is one more signal."""

    def buffer_signal(self: Progress, task: str, id_: str, name: str, payload: Json) -> None:
        count = self._value("SELECT count(*) FROM event WHERE task = ?", task)
        original(self, task, f"{id_}~{count}", name, payload)

    def disposition(_self: Progress, _task: str, id_: str) -> Json:
        return {"id": id_, "disposition": "buffered", "consumer": None}

    original = Waits.buffer_signal
    patch.replace(Waits, "known_signal", lambda _self, _task, _id, _name, _payload: False)
    patch.replace(Waits, "buffer_signal", buffer_signal)
    patch.replace(Waits, "_disposition", disposition)


# ---- waking


@mutant("timer-in-memory", "SCH-1", shown_by="timer/kill@waiting:cool(engine)")
def timer_in_memory(patch: Patch) -> None:
    """The hour of a timer lives in memory; a restarted server takes every timer it finds for due."""
    memory: dict[tuple[str, str], int] = {}

    def start_timer(self: Progress, attempt: str, operation: str, due_ns: int) -> None:
        memory[attempt, operation] = due_ns
        original(self, attempt, operation, due_ns)

    def due_timers(self: Progress, now_ns: int) -> list[tuple[str, str]]:
        rows = self._rows("SELECT attempt, operation FROM timer WHERE fired_ns IS NULL ORDER BY attempt, operation")
        return [(row[0], row[1]) for row in rows if memory.get((row[0], row[1]), 0) <= now_ns]

    def restarted(self: Server, *args: Any, **kwargs: Any) -> None:
        memory.clear()
        original_init(self, *args, **kwargs)

    original, original_init = Waits.start_timer, Server.__init__
    patch.replace(Waits, "start_timer", start_timer)
    patch.replace(Waits, "due_timers", due_timers)
    patch.replace(Server, "__init__", restarted)


@mutant("delivery-runs-twice", "SCH-3", shown_by="chain/repeat@quote#1.received")
def delivery_runs_twice(patch: Patch) -> None:
    """A start delivered again while the task runs puts its running calls into the queue once more."""

    def admission(self: Store, task: str, fingerprint: str) -> Any:
        found = original(self, task, fingerprint)
        if found == "same":
            self.db.execute(
                "DELETE FROM lease WHERE generation IN (SELECT o.generation FROM operation o JOIN task t"
                " ON t.attempt = o.attempt WHERE t.id = ? AND o.state = 'dispatched')",
                (task,),
            )
            self.db.execute(
                "UPDATE operation SET due_ns = 0, version = version + 1, state = 'unknown', remedy = 'repeat'"
                " WHERE state = 'dispatched' AND attempt = (SELECT attempt FROM task WHERE id = ?)",
                (task,),
            )
        return found

    original = Store.admission
    patch.replace(Store, "admission", admission)


@mutant("drop-early-signal", "SCH-4", shown_by="tour/early@ack:start:release")
def drop_early_signal(patch: Patch) -> None:
    """A signal that comes before its wait is acknowledged and thrown away."""

    def signal(self: Progress, task: str, id_: str, name: str, payload: Json) -> Json:
        if _waits_for(self, task, name):
            return original(self, task, id_, name, payload)
        return {"id": id_, "disposition": "buffered", "consumer": None}

    original = Waits.signal
    patch.replace(Waits, "signal", functools.wraps(original)(signal))

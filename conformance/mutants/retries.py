"""Mutants of RTY-1 to RTY-6: tried too often, too long, too soon, and without an end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from conformance.mutants import Patch, mutant
from reference_runtime import views
from reference_runtime.acceptance import Acceptance
from reference_runtime.intents import Intents
from reference_runtime.ownership import Ownership
from reference_runtime.progress import Progress
from reference_runtime.server import Server
from reference_runtime.tools import Rejected
from reference_runtime.worker import Outcome, Worker

if TYPE_CHECKING:
    from reference_runtime.model import Json, Remedy, Report, Ticket
    from reference_runtime.retries import Past
    from reference_runtime.rows import Operation
    from reference_runtime.store import Store

#: How often a layer that should not repeat anything does so.
INNER_TRIES = 3


def _on_restart(patch: Patch, column: str, value: str) -> None:
    """A server that comes up sets `column` of all that is under way, as if it had been kept in memory."""

    def init(self: Server, store: Store, **options: Any) -> None:
        original(self, store, **options)
        with store._transaction():  # noqa: SLF001 - a mutant goes where it should not
            store.db.execute(
                f"UPDATE operation SET {column} = {value} WHERE state IN ('dispatched', 'unknown')"  # noqa: S608
            )

    original = Server.__init__
    patch.replace(Server, "__init__", init)


@mutant("tries-forgotten-by-restart", "RTY-1", shown_by="stingy/kill@nag#1.replied+kill@*#1.replied(engine)")
def tries_forgotten_by_restart(patch: Patch) -> None:
    """The tries of what is under way are counted in the server's memory: a restart begins anew."""
    _on_restart(patch, "tries", "0")


@mutant("tries-counted-by-worker", "RTY-1", shown_by="stingy/kill@nag#1.replied(engine)+kill@*#1.replied")
def tries_counted_by_worker(patch: Patch) -> None:
    """Each worker counts its own tries, and knows nothing of those of a worker that died."""

    def past_of(self: Acceptance, op: Operation, remedy: Remedy) -> Past:
        own = self._value(
            "SELECT count(*) FROM invocation WHERE attempt = ?1 AND operation = ?2 AND action = 'call' AND execution ="
            " (SELECT execution FROM invocation WHERE attempt = ?1 AND operation = ?2 ORDER BY generation DESC LIMIT 1)",
            op.attempt,
            op.id,
        )
        return attrs.evolve(original(self, op, remedy), tries=int(own))

    original = Acceptance.past_of
    patch.replace(Acceptance, "past_of", past_of)


@mutant("time-begins-anew", "RTY-2", shown_by="hasty/kill@hurry#2.replied(engine)~1600000000ns")
def time_begins_anew(patch: Patch) -> None:
    """The time for an operation is taken by the server's own stopwatch, which a restart starts anew."""
    _on_restart(patch, "first_ns", "unixepoch('subsec') * 1000000000")


@mutant("time-not-looked-at-again", "RTY-2", shown_by="hasty/kill@hurry#2.received~1600000000ns")
def time_not_looked_at_again(patch: Patch) -> None:
    """Whether there is time left is asked when a try fails, and not when the next one leaves."""
    patch.replace(Ownership, "_ended_by_its_limits", lambda _self, _op, _now_ns: False)


@mutant("time-of-the-last-try", "RTY-2", shown_by="dogged/undisturbed")
def time_of_the_last_try(patch: Patch) -> None:
    """The time for an operation begins with each try of it, so that only a wait between two of them can be too long."""
    original = Intents.intended
    patch.replace(Intents, "intended", lambda self, op: original(self, op._replace(first_ns=None)))


@mutant("refusal-is-retried", "RTY-3", shown_by="invalid/undisturbed")
def refusal_is_retried(patch: Patch) -> None:
    """A definite no is tried again like everything else."""

    def outcome_of(self: Worker, error: Exception, ticket: Ticket) -> Report:
        return "busy" if isinstance(error, Rejected) else original(self, error, ticket)

    original = Worker.outcome_of
    patch.replace(Worker, "outcome_of", outcome_of)


@mutant("failed-for-no-reason", "RTY-3", shown_by="invalid/undisturbed")
def failed_for_no_reason(patch: Patch) -> None:
    """The status of a failed run says that it failed, and no more."""

    def status(store: Store, task: str) -> Json:
        found = original(store, task)
        if found["state"] == "failed":
            found |= {"error": None, "reason": None}
            found["operations"] = [{**one, "detail": None} for one in found["operations"]]
        return found

    original = views.status
    patch.replace(views, "status", status)


@mutant("constant-waits", "RTY-4", shown_by="herd/undisturbed")
def constant_waits(patch: Patch) -> None:
    """The wait between tries does not grow."""

    def backoff_ns(self: Acceptance, _tries: int, retry_after_ns: int = 0) -> int:
        return original(self, 1, retry_after_ns)

    original = Acceptance.backoff_ns
    patch.replace(Acceptance, "backoff_ns", backoff_ns)


@mutant("waits-end-with-the-server", "RTY-4", shown_by="herd/kill@t+750000000ns(engine)", config="replay")
def waits_end_with_the_server(patch: Patch) -> None:
    """How long a repeat is waited with is known to the server that saw the try fail: the next one sends them all at once."""
    _on_restart(patch, "due_ns", "iif(due_ns IS NULL, NULL, 0)")


@mutant("waits-in-step", "RTY-4", shown_by="herd/undisturbed")
def waits_in_step(patch: Patch) -> None:
    """The wait between tries doubles, and leaves nothing to chance."""

    def backoff_ns(self: Acceptance, tries: int, retry_after_ns: int = 0) -> int:
        return retry_after_ns or min(self.policy.backoff_ns_min << max(tries - 1, 0), self.policy.backoff_ns_max)

    patch.replace(Acceptance, "backoff_ns", backoff_ns)


@mutant("worker-retries-too", "RTY-5", shown_by="stingy/undisturbed")
def worker_retries_too(patch: Patch) -> None:
    """A worker tries each call three times before it reports, and the store counts that as one."""

    async def invoke(self: Worker, ticket: Ticket) -> Outcome:
        for _ in range(INNER_TRIES - 1):
            outcome = await original(self, ticket)
            if outcome.report != "unknown":
                return outcome
        return await original(self, ticket)

    original = Worker.invoke
    patch.replace(Worker, "invoke", invoke)


@mutant("agent-without-end", "RTY-6", shown_by="stubborn/undisturbed")
def agent_without_end(patch: Patch) -> None:
    """A refused proposal goes back to the model, which is asked again in the same round."""

    def refused(self: Progress, op: Operation, reason: str) -> None:
        model = self._value(
            "SELECT o.id FROM dependency d JOIN operation o ON o.attempt = d.attempt AND o.id = d.needs"
            " WHERE d.attempt = ? AND d.operation = ? AND o.kind = 'model'",
            op.attempt,
            op.id,
        )
        if model is None:
            original(self, op, reason)
            return
        again = "UPDATE operation SET state = 'planned', version = version + 1"
        where = "WHERE attempt = ? AND id = ?"
        self.db.execute(f"{again}, answer = NULL, due_ns = 0 {where}", (op.attempt, model))
        self.db.execute(f"{again}, missing = 1, opened_ns = NULL, due_ns = NULL {where}", (op.attempt, op.id))

    original = Progress._refused  # noqa: SLF001 - a mutant goes where it should not
    patch.replace(Progress, "_refused", refused)


# Rounds of an agent cannot be broken in the replay style: the function asks for each under a name of its own, which the journal
# takes once, and one that the plan does not have is a stray call, which the kit does not judge but reports. What is left there
# is what is said when it is over.
@mutant("agent-ends-without-a-word", "RTY-6", shown_by="stubborn/undisturbed", config="replay")
def agent_ends_without_a_word(patch: Patch) -> None:
    """The workflow that gave up is shown as failed, and nothing says why."""

    def status(store: Store, task: str) -> Json:
        found = original(store, task)
        return found | ({"error": None, "reason": None} if found["state"] == "failed" else {})

    original = views.status
    patch.replace(views, "status", status)

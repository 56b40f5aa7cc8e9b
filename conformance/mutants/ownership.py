"""Mutants of ownership: the word of somebody who has been replaced counts, work is lost or doubled, deaths are miscounted."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import trio

from conformance.mutants import Patch, mutant
from conformance.mutants.restarts import on_restart
from reference_runtime.acceptance import NOTHING_KNOWN, Acceptance
from reference_runtime.holding import NS, Holding
from reference_runtime.intents import Intents
from reference_runtime.model import Rejected
from reference_runtime.ownership import Ownership
from reference_runtime.server import Server

if TYPE_CHECKING:
    from collections.abc import Callable

    from reference_runtime.model import Facts, Grant, Json, Report, Ticket
    from reference_runtime.ownership import Lease
    from reference_runtime.rows import Operation

_MINUTE_NS = 60 * NS


@mutant("first-word-wins", "OWN-2", shown_by="succession/pause@quote#1.received+delay@quote#2.applied")
def first_word_wins(patch: Patch) -> None:
    """As long as nothing is accepted of an operation, a result counts whoever brings it, also one that was replaced."""

    def settle(
        self: Acceptance, grant: Grant, report: Report, answer: Json | None, detail: str, facts: Facts = NOTHING_KNOWN
    ) -> Any:
        op = self._operation(grant.attempt, grant.operation)
        if report == "succeeded" and op.state == "dispatched" and op.generation != grant.generation:
            grant = grant.__class__(grant.attempt, grant.operation, op.generation, op.version)
        return original(self, grant, report, answer, detail, facts)

    original = Acceptance.settle
    patch.replace(Acceptance, "settle", settle)


@mutant("dispatch-what-was-claimed", "OWN-3", shown_by="direction/steer@consent#1.received>letter")
def dispatch_what_was_claimed(patch: Patch) -> None:
    """What was granted is dispatched as it was read then, whatever has been written to it since."""
    read: dict[int, str] = {}

    def lease(self: Ownership, op: Operation, execution: str, source: int | None) -> Lease:
        made = original_lease(self, op, execution, source)
        read[made.generation] = self.request_for(op)
        return made

    def dispatch(self: Ownership, grant: Grant) -> Ticket | Rejected:
        with self._transaction():
            op = self._operation(grant.attempt, grant.operation)
            if op.generation != grant.generation or op.version == grant.version or op.state != "planned":
                return original_dispatch(self, grant)
            now = grant.__class__(grant.attempt, grant.operation, op.generation, op.version)
            ticket = self._intend(op._replace(request=read.get(grant.generation)), now, grant.generation)
            return ticket or original_dispatch(self, grant)

    original_lease, original_dispatch = Ownership._lease, Ownership.dispatch  # noqa: SLF001 - a mutant goes where it should not
    patch.replace(Ownership, "_lease", lease)
    patch.replace(Ownership, "dispatch", dispatch)


def _name_of(execution: str) -> str:
    return execution.partition("#")[0]


def _hold_for(terms: int) -> Callable[[Server, int, str], None]:
    def hold(self: Server, generation: int, execution: str) -> None:
        self._holders[generation] = (execution, trio.current_time() + terms * self.lease_ns / NS)

    return hold


@mutant("dead-by-name", "OWN-4", shown_by="succession/kill@quote#1.applied")
def dead_by_name(patch: Patch) -> None:
    """A worker counts as alive as long as anybody of its name asks for work, so that the dead keep theirs."""

    async def claim(self: Server, execution: str, holding: list[int], limit: int) -> Json:
        for generation, (holder, _) in list(self._holders.items()):
            if _name_of(holder) == _name_of(execution):
                self._hold(generation, holder)
        return await original(self, execution, holding, limit)

    original = Server.claim
    patch.replace(Server, "claim", claim)
    patch.replace(Holding, "_hold", _hold_for(5))  # longer than from one asking to the next


@mutant("stalled-keeps-work", "OWN-4", shown_by="succession/pause@note#1.applied")
def stalled_keeps_work(patch: Patch) -> None:
    """Work is taken back after forty terms of silence only: who has stalled is left to come back."""
    patch.replace(Holding, "_hold", _hold_for(40))


@mutant("unsent-keeps-its-owner", "OWN-4", shown_by="direction/kill@consent#1.received")
def unsent_keeps_its_owner(patch: Patch) -> None:
    """Of what a dead worker had in hand that is taken back which it had sent; the rest was never begun."""

    def reclaim(self: Ownership, generation: int) -> None:
        if self._open_invocation(generation):
            original(self, generation)

    original = Ownership.reclaim
    patch.replace(Ownership, "reclaim", reclaim)


@mutant("token-of-the-operation", "OWN-5", shown_by="fence/kill@lock#1.applied")
def token_of_the_operation(patch: Patch) -> None:
    """The fencing token is fixed with the first intent, as the key is, and says the same for every owner."""
    first: dict[tuple[str, str], int] = {}

    def fields_for(self: Ownership, op: Operation) -> Json:
        fields = original(self, op)
        if "token" in fields:
            fields["token"] = first.setdefault((op.attempt, op.id), fields["token"])
        return fields

    original = Intents.fields_for
    patch.replace(Intents, "fields_for", fields_for)


@mutant("token-of-the-worker", "OWN-5", shown_by="fence/kill@write#1.received+kill@write#2.applied")
def token_of_the_worker(patch: Patch) -> None:
    """Every worker counts its own fencing tokens, from one."""
    counts: dict[str, int] = {}

    def fields_for(self: Ownership, op: Operation) -> Json:
        fields = original(self, op)
        if "token" in fields:
            holder = str(self._value("SELECT execution FROM lease WHERE generation = ?", op.generation))
            counts[holder] = fields["token"] = counts.get(holder, 0) + 1
        return fields

    original = Intents.fields_for
    patch.replace(Intents, "fields_for", fields_for)


@mutant(
    "minute-by-wall-clock", "OWN-6", shown_by="clocks/jump@look#1.received(engine)~3600000000000ns+delay@look#1.applied"
)
def minute_by_wall_clock(patch: Patch) -> None:
    """An owner has to have begun within a minute by the wall clock: when that is set, nobody has."""

    def _hold(self: Server, generation: int, execution: str) -> None:
        begun_ns.setdefault((self, generation), time.time_ns())
        original_hold(self, generation, execution)

    async def heartbeat(self: Server, execution: str, generations: list[int]) -> Json:
        for generation in generations:
            if abs(time.time_ns() - begun_ns.get((self, generation), time.time_ns())) > _MINUTE_NS:
                self._let_go(generation)
                self.store.reclaim(generation)
                self.notify()
        return await original(self, execution, generations)

    begun_ns: dict[tuple[Server, int], int] = {}
    original, original_hold = Server.heartbeat, Holding._hold  # noqa: SLF001 - a mutant goes where it should not
    patch.replace(Holding, "_hold", _hold)
    patch.replace(Server, "heartbeat", heartbeat)


@mutant("rejected-is-forgotten", "OWN-7", shown_by="succession/pause@quote#1.applied")
def rejected_is_forgotten(patch: Patch) -> None:
    """What a replaced owner brings is refused, and nothing is kept of it."""

    def reject(_self: Acceptance, grant: Grant, _report: str, _detail: str) -> Rejected:
        return Rejected(f"generation {grant.generation} no longer owns {grant.attempt}:{grant.operation}")

    patch.replace(Acceptance, "_reject", reject)


@mutant("deaths-not-counted", "OWN-8", shown_by="poison/kill@bomb#0.received")
def deaths_not_counted(patch: Patch) -> None:
    """A worker that dies leaves no trace on what it had in hand, which is given to the next one, and the next."""
    patch.replace(Ownership, "_count_death", lambda _self, op: op)


@mutant("deaths-in-memory", "OWN-8", shown_by="poison/kill@bomb#0.received+kill@bomb#3.received(engine)")
def deaths_in_memory(patch: Patch) -> None:
    """Deaths are counted in the memory of the server."""
    on_restart(patch, "UPDATE operation SET deaths = 0")


@mutant("death-counted-at-every-look", "OWN-9", shown_by="two-tries/kill@pay#1.applied")
def death_counted_at_every_look(patch: Patch) -> None:
    """Whoever looks for the dead looks three times before one is buried, and each look uses up a try."""

    def reclaim(self: Ownership, generation: int) -> None:
        row = self._row("SELECT attempt, operation FROM lease WHERE generation = ?", generation)
        for _ in range(2 if row and self._open_invocation(generation) else 0):
            self.db.execute("UPDATE operation SET tries = tries + 1 WHERE attempt = ? AND id = ?", row)
        original(self, generation)

    original = Ownership.reclaim
    patch.replace(Ownership, "reclaim", reclaim)


@mutant("death-takes-all-tries", "OWN-9", shown_by="two-tries/kill@pay#1.received")
def death_takes_all_tries(patch: Patch) -> None:
    """A call whose worker died goes back with no tries left."""

    def count_death(self: Ownership, op: Operation) -> Operation:
        op = original(self, op)
        tries = max(op.tries, self.limits_of(op).tries)
        self.db.execute("UPDATE operation SET tries = ? WHERE attempt = ? AND id = ?", (tries, op.attempt, op.id))
        return op._replace(tries=tries)

    original = Ownership._count_death  # noqa: SLF001 - a mutant goes where it should not
    patch.replace(Ownership, "_count_death", count_death)


@mutant("lease-by-age", "OWN-10", shown_by="patience/delay@search#1.applied")
def lease_by_age(patch: Patch) -> None:
    """A lease counts from when the work was given out, and nothing its owner says extends it."""

    async def heartbeat(self: Server, execution: str, generations: list[int]) -> Json:
        before = dict(self._holders)
        told = await original(self, execution, generations)
        self._holders.update(before)
        return told

    original = Server.heartbeat
    patch.replace(Server, "heartbeat", heartbeat)


@mutant("namesake-takes-over", "OWN-10", shown_by="patience/second@search#1.received+delay@search#1.applied")
def namesake_takes_over(patch: Patch) -> None:
    """A worker that comes up is taken for the one of its name that was there before, and gets what that one holds."""

    async def hello(self: Server, name: str, code: Json) -> Json:
        for generation, execution in self.store.leases():
            if _name_of(execution) == name:
                self._let_go(generation)
                self.store.reclaim(generation)
        self.notify()
        return await original(self, name, code)

    original = Server.hello
    patch.replace(Server, "hello", hello)


@mutant(
    "one-lease-extended",
    "OWN-10",
    shown_by="waiting-rooms/delay@*#1.received+delay@*#1.received+delay@*#1.received",
)
def one_lease_extended(patch: Patch) -> None:
    """A worker's sign of life extends the first of its leases, and the others run out."""

    async def heartbeat(self: Server, execution: str, generations: list[int]) -> Json:
        before = {one: self._holders[one] for one in generations[1:] if one in self._holders}
        told = await original(self, execution, generations)
        self._holders.update(before)
        return told

    original = Server.heartbeat
    patch.replace(Server, "heartbeat", heartbeat)

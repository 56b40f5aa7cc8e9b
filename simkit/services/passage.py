"""The passage of one request through the outside: `received → applied → replied`, with a gate at each barrier.

    Outside     all services with their state; numbers calls and effects; tells a `Recorder` every fact in exact order
    Gate        asked at each barrier: let it pass (None), or a `Fault`; whatever it does (kill, hold) happens inside it
    Channel     the way back to one caller, whatever the transport

At `received` nothing has happened yet, except that a keyed request holds its key. At `applied` effect and saved answer
are there and the reply is not. At `replied` the reply's bytes were handed to the network. `applied` is a barrier only
for requests that were executed: a saved answer, a conflict or a lookup passes from `received` to `replied`.

    fault           at received                     at applied
    drop, reset     nothing happens, no reply       the effect stays, no reply
    delay           waits, then goes on             waits, then replies
    cut             (cannot be)                     the effect stays, the reply breaks off in the middle
    error-before    503, nothing happens            (cannot be)
    error-after     executed, then 503              503, the effect stays
    gone            stops: the caller was killed    stops: the effect stays

Every reply tells the receiver's own id of its request (`Reply.identified`), a saved answer another one than the first time.

Every fact is recorded before anybody else can act on it: a reply before its bytes leave. That order is the order of
observation the judges rely on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, Literal, Protocol, TypeAlias

import attrs
import trio

from simkit.services.contracts import (
    KEY_LIFETIME_NS,
    NO_REPLY,
    UNAVAILABLE,
    Reply,
    Request,
    Settled,
    Ticket,
)
from simkit.services.state import Services

Barrier: TypeAlias = Literal["received", "applied", "replied"]
Delivery: TypeAlias = Literal["sent", "dropped", "reset"]
FaultKind: TypeAlias = Literal["drop", "reset", "delay", "cut", "error-before", "error-after", "gone"]

#: How long an answer scripted as "slow" waits, unless the outside was told otherwise.
SLOW_NS: Final = 200_000_000


@attrs.frozen
class Fault:
    """What happens to one request at one barrier; `ns` is how long a delay lasts."""

    kind: FaultKind
    ns: int = 0


#: `await gate(call, request, nth, barrier)`; `nth` counts the requests of one (run, op) from 1, lookups apart.
Gate: TypeAlias = Callable[[int, Request, int, Barrier], Awaitable[Fault | None]]


async def open_gate(_call: int, _request: Request, _nth: int, _barrier: Barrier) -> Fault | None:
    """The gate that lets everything pass."""
    return None


class Channel(Protocol):
    """The way back to one caller. None of the four raises when the caller is gone already."""

    async def send(self, reply: Reply) -> None:
        """Hand the reply to the network, without yielding to another task first."""

    async def cut(self, reply: Reply) -> None:
        """Hand the first half of the reply to the network, then end the connection."""

    async def reset(self) -> None:
        """Break the connection so that the caller sees a reset."""

    async def drop(self) -> None:
        """Never answer, but keep the connection open; returns at once."""


class Recorder(Protocol):
    """Told every fact, synchronously, at the moment and in the order it becomes true."""

    def received(self, call: int, request: Request, incarnation: int, digest: str) -> None: ...

    def applied(self, call: int, effect: int, nonce: str) -> None: ...

    def replied(self, call: int, reply: Reply, delivery: Delivery) -> None: ...

    def stored(self, location: str, state: Literal["staged", "committed", "removed"]) -> None: ...

    def authority(self, actor: str, *, granted: bool) -> None: ...


async def _sleep_ns(ns: int) -> None:
    await trio.sleep(ns / 1_000_000_000)


@attrs.frozen
class _Visit:
    """One request on its way through."""

    call: int
    nth: int
    ticket: Ticket
    gate: Gate
    channel: Channel


class Outside:
    """The world beyond every crash: all services, one numbering of calls and effects, one order of facts.

    `nonce` gives a fresh string each time: from `secrets` where the target could guess, from the tape in a simulation.
    """

    def __init__(
        self,
        nonce: Callable[[], str],
        recorder: Recorder,
        now_ns: Callable[[], int],
        *,
        slow_ns: int = SLOW_NS,
        key_lifetime_ns: int = KEY_LIFETIME_NS,
    ) -> None:
        self._services = Services(nonce, now_ns, key_lifetime_ns=key_lifetime_ns)
        self._recorder = recorder
        self._slow_ns = slow_ns
        self._calls = 0
        self._requests: dict[tuple[str, str, bool], int] = {}

    @property
    def services(self) -> Services:
        """What the kit may look into and change: artifacts, saved keys, authority."""
        return self._services

    def grant(self, actor: str) -> None:
        """Give `actor` authority at the desk, on record."""
        self._services.grant(actor)
        self._recorder.authority(actor, granted=True)

    def revoke(self, actor: str) -> None:
        """Withdraw the authority of `actor`, on record."""
        self._services.revoke(actor)
        self._recorder.authority(actor, granted=False)

    @property
    def calls(self) -> int:
        """How many requests there have been."""
        return self._calls

    @property
    def effects(self) -> int:
        """How many effects there have been."""
        return self._services.effects

    async def serve(self, request: Request, incarnation: int, gate: Gate, channel: Channel) -> None:
        """Take one request of worker `incarnation` through all barriers.

        Calls never wait for each other here: one that is held at its gate leaves every other free to pass.
        """
        self._calls += 1
        nth = self._count(request)
        ticket = self._services.begin(self._calls, request)
        self._recorder.received(ticket.call, request, incarnation, ticket.digest)
        try:
            await self._pass(_Visit(ticket.call, nth, ticket, gate, channel))
        finally:
            self._services.abandon(ticket)

    def _count(self, request: Request) -> int:
        name = (request.run, request.op, request.lookup)
        self._requests[name] = self._requests.get(name, 0) + 1
        return self._requests[name]

    async def _pass(self, visit: _Visit) -> None:
        entry = visit.ticket.request.scripted(visit.nth)
        before = await self._at(visit, "received") or _SCRIPTED_BEFORE.get(entry)
        if before and before.kind != "error-after":
            await self._finish(visit, UNAVAILABLE if before.kind == "error-before" else NO_REPLY, before)
            return
        settled = self._services.settle(visit.ticket, entry)
        after = await self._apply(visit, settled) or before or await self._scripted_after(entry)
        reply = settled.reply
        if after and after.kind == "error-after":
            reply = attrs.evolve(UNAVAILABLE, usage=reply.usage)  # what was metered stays on record, whatever is told
        await self._finish(visit, reply, after)

    async def _at(self, visit: _Visit, barrier: Barrier) -> Fault | None:
        """Ask the gate; a delay is waited out here."""
        fault = await visit.gate(visit.call, visit.ticket.request, visit.nth, barrier)
        if fault and fault.kind not in _POSSIBLE[barrier]:
            raise ValueError(f"{fault.kind} cannot happen at {barrier} (call {visit.call}); {_POSSIBLE[barrier]} can")
        if fault and fault.kind == "delay":
            await _sleep_ns(fault.ns)
            return None
        return fault

    async def _apply(self, visit: _Visit, settled: Settled) -> Fault | None:
        if settled.effect:
            self._recorder.applied(visit.call, settled.effect.number, settled.effect.nonce)
        if settled.placed:
            self._recorder.stored(settled.placed.location, settled.placed.state)
        return await self._at(visit, "applied") if settled.executed else None

    async def _scripted_after(self, entry: str) -> Fault | None:
        if entry == "slow":
            await _sleep_ns(self._slow_ns)
        return _SCRIPTED_AFTER.get(entry)

    async def _finish(self, visit: _Visit, reply: Reply, fault: Fault | None) -> None:
        reply = reply.identified(visit.call)
        match fault.kind if fault else "sent":
            case "gone":
                return
            case "drop":
                self._recorder.replied(visit.call, reply, "dropped")
                await visit.channel.drop()
            case "reset":
                self._recorder.replied(visit.call, reply, "reset")
                await visit.channel.reset()
            case "cut":
                self._recorder.replied(visit.call, reply, "reset")
                await visit.channel.cut(reply)
            case _:
                self._recorder.replied(visit.call, reply, "sent")
                await visit.channel.send(reply)
                await self._at(visit, "replied")


_POSSIBLE: Final[dict[Barrier, tuple[FaultKind, ...]]] = {
    "received": ("drop", "reset", "delay", "error-before", "error-after", "gone"),
    "applied": ("drop", "reset", "delay", "cut", "error-after", "gone"),
    "replied": ("delay", "gone"),
}
_SCRIPTED_BEFORE: Final = {
    "error-before": Fault("error-before"),
    "reset-before": Fault("reset"),
    "down": Fault("error-before"),
}
_SCRIPTED_AFTER: Final = {"error-after": Fault("error-after"), "reset-after": Fault("reset"), "cut": Fault("cut")}

"""What the runtime's tests share: plans in a line, tools that do as they are told, and a runtime on real TCP."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import attrs
import trio

from reference_runtime import Client, Handle, Patience, Policy, Request, Server, Store, Worker
from reference_runtime.model import Grant, Json, Rejected, Report, Ticket
from reference_runtime.ownership import Lease

MS = 1_000_000
DEADLINE_S = 20
#: Everything at once: no test waits for a backoff.
EAGER = Policy(backoff_ns_min=1 * MS, backoff_ns_max=2 * MS)


def call(id_: str, service: str = "ledger", *, carries: tuple[str, ...] = (), **params: object) -> Json:
    return {"op": "call", "id": id_, "service": service, "params": params, "carries": list(carries), "script": []}


def wait(id_: str, signal: str) -> Json:
    return {"op": "wait", "id": id_, "signal": signal}


def sleep(id_: str, ns: int) -> Json:
    return {"op": "sleep", "id": id_, "ns": ns}


def seq(*children: Json, id_: str = "seq") -> Json:
    return {"op": "seq", "id": id_, "children": list(children)}


def par(*children: Json, id_: str = "par") -> Json:
    return {"op": "par", "id": id_, "children": list(children)}


def race(id_: str, *children: Json) -> Json:
    return {"op": "race", "id": id_, "children": list(children)}


def branch(id_: str, on: str, even: Json, odd: Json) -> Json:
    return {"op": "branch", "id": id_, "on": on, "children": [even, odd]}


def loop(id_: str, on: str, times: int, *body: Json) -> Json:
    return {"op": "loop", "id": id_, "on": on, "times": times, "children": list(body)}


def approve(id_: str, of: str, **more: object) -> Json:
    return {"op": "approve", "id": id_, "of": of, **more}


def undo(id_: str, of: str, service: str = "ledger", **params: object) -> Json:
    return {"op": "compensate", "id": id_, "of": of, "service": service, "params": params}


def plan(*children: Json) -> Json:
    return {"version": 1, "root": seq(*children, id_="root")}


def states(status: Json) -> dict[str, str]:
    return {operation["id"]: operation["state"] for operation in status["operations"]}


def take(store: Store) -> tuple[Grant, Ticket]:
    """Claim the one operation there is to claim, with its intent recorded."""
    (lease,) = store.claim("w", [], 1)
    return under(ticket := intended(store, lease)), ticket


def intended(store: Store, lease: Lease) -> Ticket:
    """The ticket of a lease: it came with it, or it is asked for."""
    ticket = lease if isinstance(lease, Ticket) else store.dispatch(lease)
    assert isinstance(ticket, Ticket)
    return ticket


def under(ticket: Ticket) -> Grant:
    """The grant under which a ticket's outcome is settled."""
    return Grant(ticket.attempt, ticket.operation, ticket.generation, ticket.version)


def finish(store: Store, report: Report = "succeeded", nonce: str | None = None) -> Rejected | None:
    """Take the next operation and settle it."""
    grant, ticket = take(store)
    answer = {"nonce": nonce or f"n-{ticket.operation}"} if report in ("succeeded", "found") else None
    return store.settle(grant, report, answer, report)


def in_hand(store: Store) -> dict[str, Ticket]:
    """Everything claimable, claimed and with its intent recorded, by operation."""
    held = [generation for generation, _ in store.leases()]
    return {ticket.operation: ticket for ticket in (intended(store, one) for one in store.claim("w", held, 99))}


def settle(store: Store, ticket: Ticket, report: Report = "succeeded", nonce: str | None = None) -> Rejected | None:
    """Report what an invocation came to."""
    answer = {"nonce": nonce or f"n-{ticket.operation}"} if report in ("succeeded", "found") else None
    return store.settle(under(ticket), report, answer, "" if answer else "because")


def run_out(store: Store) -> list[str]:
    """Let everything claimable succeed until nothing is left to claim; the order in which it was dispatched."""
    order = []
    while tickets := in_hand(store):
        for ticket in tickets.values():
            order.append(ticket.operation)
            settle(store, ticket)
    return order


@attrs.define
class FakeTools:
    """The outside: remembers every request; `script` says what the nth call or look-up of an operation comes to."""

    script: dict[str, list[Exception | Callable[[], object] | None]] = attrs.field(factory=dict)
    calls: list[Request] = attrs.field(factory=list)
    lookups: list[Request] = attrs.field(factory=list)
    effects: dict[str, str] = attrs.field(factory=dict)

    async def call(self, request: Request) -> Json:
        self.calls.append(request)
        nth = sum(one.operation == request.operation for one in self.calls)
        steps = self.script.get(request.operation, [])
        step = steps[nth - 1] if nth <= len(steps) else None
        if isinstance(step, Exception):
            raise step
        if step is not None:
            await step()  # type: ignore[misc]
        return {
            "nonce": self.effects.setdefault(request.key or f"{request.operation}#{nth}", f"{request.operation}#{nth}")
        }

    async def lookup(self, request: Request) -> Json | None:
        self.lookups.append(request)
        found = [nonce for nonce in self.effects.values() if nonce.startswith(f"{request.operation}#")]
        return {"nonce": found[0]} if found else None


@contextlib.asynccontextmanager
async def served(path: Path, *, lease_ns: int = 5000 * MS, port: int = 0) -> AsyncIterator[tuple[Server, int]]:
    """A server on real TCP; its store is closed without ceremony at the end, as a kill would."""
    server = Server(Store.open(str(path), policy=EAGER), lease_ns=lease_ns)
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(server.serve, "127.0.0.1", port)
        try:
            yield server, listeners[0].socket.getsockname()[1]
        finally:
            nursery.cancel_scope.cancel()
            server.store.close()


@contextlib.asynccontextmanager
async def working(path: Path, tools: FakeTools, *, lease_ns: int = 5000 * MS) -> AsyncIterator[Client]:
    """A server, a worker and a client."""
    async with served(path, lease_ns=lease_ns) as (_, port), trio.open_nursery() as nursery:
        nursery.start_soon(Worker(Client("127.0.0.1", port), tools).run)
        async with Client("127.0.0.1", port, patience=Patience(total_ns=DEADLINE_S * 1000 * MS)) as client:
            yield client
        nursery.cancel_scope.cancel()


async def until(client: Handle, task: str, *wanted: str) -> Json:
    """The status of a task once it is in one of these states."""
    with trio.fail_after(DEADLINE_S):
        while (status := await client.status(task))["state"] not in wanted:  # noqa: ASYNC110 - over a network
            await trio.sleep(0.002)
    return status

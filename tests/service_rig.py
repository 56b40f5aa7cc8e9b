"""What the tests of the hosted services share: a recorder, a caller, an outside with counted nonces and a clock to set."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import attrs
import trio
from trio.testing import MockClock

from simkit.services import Barrier, Delivery, Fault, Gate, Outside, Reply, Request, Services, open_gate
from simkit.services.contracts import Settled


@attrs.define
class Facts:
    """A recorder that keeps every fact as a short row."""

    rows: list[tuple[Any, ...]] = attrs.field(factory=list)
    answers: list[Reply] = attrs.field(factory=list)

    def received(self, call: int, request: Request, incarnation: int, digest: str) -> None:
        self.rows.append(("received", call, request.op, incarnation))

    def applied(self, call: int, effect: int, nonce: str) -> None:
        self.rows.append(("applied", call, effect, nonce))

    def replied(self, call: int, reply: Reply, delivery: Delivery) -> None:
        self.answers.append(reply)
        self.rows.append(("replied", call, reply.status, reply.kind, reply.nonce, delivery))

    def stored(self, location: str, state: str) -> None:
        self.rows.append(("stored", location, state))

    def authority(self, actor: str, *, granted: bool) -> None:
        self.rows.append(("authority", actor, granted))

    def of(self, call: int) -> list[str]:
        return [row[0] for row in self.rows if row[1] == call]


@attrs.define
class Caller:
    """A channel that keeps what came back."""

    got: list[Reply | str] = attrs.field(factory=list)

    async def send(self, reply: Reply) -> None:
        self.got.append(reply)

    async def cut(self, reply: Reply) -> None:
        self.got.append("cut")

    async def reset(self) -> None:
        self.got.append("reset")

    async def drop(self) -> None:
        self.got.append("dropped")


@attrs.define
class World:
    """An outside with counted nonces and a settable clock."""

    facts: Facts = attrs.field(factory=Facts)
    now_ns: int = 0
    outside: Outside = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.outside = Outside(counted(), self.facts, lambda: self.now_ns)

    async def ask(self, request: Request, gate: Gate = open_gate) -> Reply | str | None:
        caller = Caller()
        await self.outside.serve(request, 1, gate, caller)
        assert len(caller.got) <= 1
        return caller.got[0] if caller.got else None


def counted() -> Callable[[], str]:
    numbers = itertools.count(1)
    return lambda: f"n{next(numbers)}"


def at(barrier: Barrier, fault: Fault, *, nth: int = 1) -> Gate:
    async def gate(_call: int, _request: Request, n: int, where: Barrier) -> Fault | None:
        return fault if (n, where) == (nth, barrier) else None

    return gate


def replies(*requests: Request, gate: Gate = open_gate) -> list[Reply | str | None]:
    """What a fresh world answers to these requests, one after the other."""

    async def main() -> list[Reply | str | None]:
        world = World()
        return [await world.ask(request, gate) for request in requests]

    return trio.run(main, clock=MockClock(autojump_threshold=0))


def kinds(*requests: Request, gate: Gate = open_gate) -> list[str | None]:
    return [reply.kind if isinstance(reply, Reply) else reply for reply in replies(*requests, gate=gate)]


class Counter:
    """Services by themselves: every request begins and settles at once, in calls numbered from 1."""

    def __init__(self, **settings: Any) -> None:
        self.now_ns = 0
        self.state = Services(counted(), lambda: self.now_ns, **settings)
        self._calls = 0

    def settle(self, request: Request, entry: str = "ok") -> Settled:
        self._calls += 1
        return self.state.settle(self.state.begin(self._calls, request), entry)

    def ask(self, request: Request, entry: str = "ok") -> Reply:
        return self.settle(request, entry).reply

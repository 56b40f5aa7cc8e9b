"""Approvals and stops over real connections: a worker asks the desk, a holder is told to stop."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import trio

from reference_runtime import Client, Request, Unsent, Worker
from reference_runtime.model import Json, approval_digest
from tests.runtime_rig import DEADLINE_S, MS, FakeTools, approve, call, plan, served, until, working

DIGEST = approval_digest("pay", "ledger", {"amount": 5})
GATED = plan(approve("ok", "pay"), call("pay", amount=5))


class Desk(FakeTools):
    """Tools whose desk answers in turn: allowed, refused, or (None) not at all."""

    answers: list[bool | None]

    async def lookup(self, request: Request) -> Json | None:
        if request.tool != "desk":
            return await super().lookup(request)
        self.lookups.append(request)
        answer = self.answers.pop(0)
        if answer is None:
            raise Unsent("the desk is closed")
        return {"allowed": answer, "actor": request.params["actor"]}


async def shows(client: Client, wanted: Callable[[Json], bool]) -> None:
    """Ask until the status is as wanted."""
    with trio.fail_after(DEADLINE_S):
        while not wanted(await client.status("t")):  # noqa: ASYNC110 - over a network
            await trio.sleep(0.002)


def test_a_worker_asks_for_authority_before_it_dispatches(tmp_path):
    """Refused, it dispatches nothing and the leaf asks again; unanswered, it asks again; allowed, the call leaves once."""
    tools = Desk()
    tools.answers = [False, None, True]

    async def main() -> None:
        async with working(tmp_path / "s.db", tools) as client:
            await client.submit("t", GATED)
            await until(client, "t", "waiting")
            await client.decide("t", "1", "ok", "approve", digest=DIGEST, actor="alice", nonce="n1")
            await shows(client, lambda status: bool(tools.lookups) and status["state"] == "waiting")
            assert tools.calls == []
            await client.decide("t", "2", "ok", "approve", digest=DIGEST, actor="alice", nonce="n2")
            done = await until(client, "t", "done")
            assert done["approvals"][0]["state"] == "released"

    trio.run(main)
    assert [(one.task, one.operation, one.params) for one in tools.lookups] == [("t", "ok", {"actor": "alice"})] * 3
    assert [one.operation for one in tools.calls] == ["pay"]


def test_a_holder_is_told_of_a_stop(tmp_path):
    """Its heartbeat brings the word: the stop is delivered while the call is under way, and quiescent after it."""
    begun, go_on = trio.Event(), trio.Event()

    async def slow() -> None:
        begun.set()
        await go_on.wait()

    tools = FakeTools(script={"a": [slow]})

    async def main() -> None:
        async with served(tmp_path / "s.db", lease_ns=200 * MS) as (_, port), trio.open_nursery() as nursery:
            nursery.start_soon(Worker(Client("127.0.0.1", port), tools).run)
            async with Client("127.0.0.1", port) as client:
                await client.submit("t", plan(call("a"), call("b")))
                await begun.wait()
                assert await client.cancel("t", "c") == {"disposition": "accepted"}
                await shows(client, lambda status: status["cancel"] == "delivered")
                go_on.set()
                ended = await until(client, "t", "cancelled")
                assert (ended["cancel"], ended["operations"][0]["state"]) == ("quiescent", "succeeded")
            nursery.cancel_scope.cancel()

    trio.run(main)
    assert [one.operation for one in tools.calls] == ["a"]


def test_a_call_that_is_deaf_to_a_stop_is_given_up(tmp_path):
    """When the grace is over the run ends without it, and its worker's slot is free for others."""
    begun = trio.Event()

    async def deaf() -> None:
        begun.set()
        await trio.sleep_forever()

    tools = FakeTools(script={"a": [deaf]})

    async def main() -> None:
        async with served(tmp_path / "s.db", lease_ns=150 * MS) as (server, port), trio.open_nursery() as nursery:
            server.store.policy = attrs.evolve(server.store.policy, grace_ns=300 * MS)
            nursery.start_soon(Worker(Client("127.0.0.1", port), tools, slots=1).run)
            async with Client("127.0.0.1", port) as client:
                await client.submit("t", plan(call("a")))
                await begun.wait()
                await client.cancel("t", "c")
                ended = await until(client, "t", "cancelled")
                assert (ended["cancel"], ended["operations"][0]["state"]) == ("quiescent", "unresolved")
                await client.submit("u", plan(call("b")))
                await until(client, "u", "done")
            nursery.cancel_scope.cancel()

    trio.run(main)
    assert [one.operation for one in tools.calls] == ["a", "b"]

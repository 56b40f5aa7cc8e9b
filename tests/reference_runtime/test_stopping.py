"""A worker that is told to stop: what it has begun comes to an end, and the rest is there for the next one at once."""

from __future__ import annotations

import json

import pytest
import trio
import trio.testing

from reference_runtime import Client, Worker
from reference_runtime.log import Log
from tests.runtime_rig import MS, FakeTools, call, par, plan, served, states, until

#: So long that nothing in these tests is ever taken back for silence.
LEASE_NS = 3600 * 1000 * MS


def test_what_is_in_hand_is_finished(tmp_path):
    """The call under way is answered and counts; nothing else is begun, and `run` returns."""
    reached, go_on = trio.Event(), trio.Event()
    logged: list[str] = []

    async def slow():
        reached.set()
        await go_on.wait()

    tools = FakeTools({"a": [slow]})

    async def main():
        async with served(tmp_path / "s.db", lease_ns=LEASE_NS) as (_, port), Client("127.0.0.1", port) as client:
            await client.submit("t", plan(call("a"), call("b")))
            async with trio.open_nursery() as nursery:
                worker = Worker(Client("127.0.0.1", port), tools, log=Log(logged.append))
                nursery.start_soon(worker.run)
                await reached.wait()
                worker.stop()
                await client.call("ping", {})
                go_on.set()
            return states(await client.status("t"))

    assert trio.run(main) == {"a": "succeeded", "b": "planned"}
    assert [one.operation for one in tools.calls] == ["a"]
    assert [json.loads(line)["event"] for line in logged] == ["ready", "calling", "stopping", "reported", "released"]


@pytest.mark.parametrize(("service", "state"), [("ledger", "unknown"), ("mailer", "unresolved")])
def test_what_does_not_end_in_time_is_reported_as_unknown(tmp_path, service, state):
    """After the grace a call is given up with the truth about it, so that nobody has to wait for the lease to end."""
    reached = trio.Event()

    async def endless():
        reached.set()
        await trio.sleep_forever()

    async def main():
        async with served(tmp_path / "s.db", lease_ns=LEASE_NS) as (server, port), Client("127.0.0.1", port) as client:
            await client.submit("t", plan(call("a", service)))
            async with trio.open_nursery() as nursery:
                worker = Worker(Client("127.0.0.1", port), FakeTools({"a": [endless]}), grace_ns=1 * MS)
                nursery.start_soon(worker.run)
                await reached.wait()
                worker.stop()
            assert server.store.leases() == []
            return states(await client.status("t"))

    assert trio.run(main) == {"a": state}


def test_what_was_never_begun_goes_to_the_next_worker_at_once(tmp_path):
    """A ticket whose holder stops before its first byte is handed back: one call in all, and one try."""
    tools = FakeTools()

    async def main():
        async with served(tmp_path / "s.db", lease_ns=LEASE_NS) as (_, port), Client("127.0.0.1", port) as client:
            await client.submit("t", plan(par(call("a"), call("b", "mailer"))))
            first = (await client.call("hello", {"name": "w", "code": {}}))["execution"]
            leased = await client.call("claim", {"execution": first, "holding": [], "limit": 2})
            assert (len(leased["tickets"]), len(leased["grants"])) == (1, 1)
            released = await client.call("release", {"execution": first})
            assert len(released["released"]) == 2
            assert await client.call("release", {"execution": first}) == {"released": []}
            async with trio.open_nursery() as nursery:
                nursery.start_soon(Worker(Client("127.0.0.1", port), tools).run)
                status = await until(client, "t", "done")
                nursery.cancel_scope.cancel()
            return status

    status = trio.run(main)
    assert sorted(one.operation for one in tools.calls) == ["a", "b"]
    assert status["execution"] == "worker#2"


def test_a_worker_stops_without_a_server():
    """Told to stop while it waits for its first word with the server, it stops."""

    async def main():
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        port = listener.socket.getsockname()[1]
        await listener.aclose()
        worker = Worker(Client("127.0.0.1", port), FakeTools())
        with trio.fail_after(5):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(worker.run)
                await trio.testing.wait_all_tasks_blocked()
                worker.stop()

    trio.run(main)


def test_a_worker_stops_though_its_server_is_gone(tmp_path):
    """It has nothing in hand, and its last word is taken by nobody: that is no reason to end otherwise than it was told to."""
    logged: list[str] = []

    async def main():
        async with trio.open_nursery() as nursery:
            async with served(tmp_path / "s.db") as (server, port):
                worker = Worker(Client("127.0.0.1", port), FakeTools(), log=Log(logged.append))
                nursery.start_soon(worker.run)
                while not server._work:  # noqa: ASYNC110 - until it waits for work
                    await trio.sleep(0.001)
            worker.stop()

    trio.run(main)
    assert [json.loads(line)["event"] for line in logged] == ["ready", "stopping"]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("style", ["plan", "workflow"])
def test_who_has_left_is_given_nothing(tmp_path, when, style):
    """It asks for work as it hands back what it has, or is heard only afterwards: what it hands back is for others."""
    codes = {"codes": {"w": "1"}, "warm": {}, "batch": 0}
    document = plan(call("a")) if style == "plan" else {"version": 1, "workflow": "w", "input": None}

    async def main():
        async with served(tmp_path / "s.db", lease_ns=LEASE_NS) as (server, port), Client("127.0.0.1", port) as client:
            server.poll_ns = 50 * MS

            async def ask(execution, holding):
                said = {"execution": execution, "holding": holding, "limit": 1}
                verb, field = ("claim", "tickets") if style == "plan" else ("claim_turns", "turns")
                more = {} if style == "plan" else codes
                return [one["generation"] for one in (await client.call(verb, said | more))[field]]

            async def ask_again():
                assert await ask("w#1", held) == []

            await client.submit("t", document)
            held = await ask("w#1", [])
            async with trio.open_nursery() as nursery:
                if when == "before":
                    nursery.start_soon(ask_again)
                    while not (server._work or server._turns):  # noqa: ASYNC110 - until it waits
                        await trio.sleep(0.001)
                assert (await client.call("release", {"execution": "w#1"}))["released"] == held
                if when == "after":
                    nursery.start_soon(ask_again)
            return held, await ask("w#2", [])

    held, others = trio.run(main)
    assert len(held) == len(others) == 1
    assert others > held

"""Server, client and worker end to end: real TCP, a real file, an outside that fails in every way."""

from __future__ import annotations

import functools
import json
import time

import pytest
import trio
import trio.testing

from reference_runtime import Client, Patience, Refusal, Server, Store, Unreachable, Worker, embedded
from reference_runtime.holding import NS, RECLAIMED_MAX
from reference_runtime.log import Log
from reference_runtime.model import Json
from reference_runtime.rpc import LINE_BYTES_MAX, Lines
from reference_runtime.server import LEASE_NS
from reference_runtime.tools import Busy, Rejected, Unknown, Unsent
from tests.runtime_rig import (
    EAGER,
    MS,
    FakeTools,
    call,
    par,
    plan,
    seq,
    served,
    sleep,
    states,
    until,
    wait,
    working,
)


def test_a_plan_runs_to_its_result(tmp_path):
    """Calls, branches, a wait and a sleep come to one result, and every call carries what it must."""
    tools = FakeTools()
    work = plan(
        call("a"),
        par(call("b", carries=("a",)), seq(wait("w", "go"), sleep("s", 1 * MS))),
        call("c", carries=("b", "w")),
    )

    async def main():
        async with working(tmp_path / "s.db", tools) as client:
            receipt = await client.submit("t", work)
            assert (await until(client, "t", "waiting"))["on"] == "go"
            await client.signal("t", "1", "go", {"nonce": "n-w"})
            status = await until(client, "t", "done")
            assert status["result"] == {"a": "a#1", "b": "b#1", "w": "n-w", "c": "c#1"}
            assert (status["attempt"], status["execution"]) == (receipt.attempt, "worker#1")

    trio.run(main)
    assert {one.operation: dict(one.carries) for one in tools.calls} == {
        "a": {},
        "b": {"a": "a#1"},
        "c": {"b": "b#1", "w": "n-w"},
    }


@pytest.mark.parametrize(
    ("service", "failure", "state", "invocations", "lookups"),
    [
        ("ledger", Unknown("503"), "done", 2, 0),
        ("ledger", Busy("409"), "done", 2, 0),
        ("reader", Unknown("reset"), "done", 2, 0),
        ("registry", Unknown("timeout"), "done", 2, 1),
        ("mailer", Unknown("timeout"), "blocked", 1, 0),
        ("mailer", Unsent("refused"), "done", 2, 0),
        ("ledger", Rejected("400"), "failed", 1, 0),
        ("ledger", ZeroDivisionError("a bug in the tool"), "done", 2, 0),
        ("mailer", ZeroDivisionError("a bug in the tool"), "blocked", 1, 0),
    ],
)
def test_every_way_to_fail(tmp_path, service, failure, state, invocations, lookups):
    """What a failed call leads to is decided by what it says and by the receiver's contract."""
    tools = FakeTools({"a": [failure]})

    async def main():
        async with working(tmp_path / "s.db", tools) as client:
            await client.submit("t", plan(call("a", service)))
            await until(client, "t", state)

    trio.run(main)
    assert (len(tools.calls), len(tools.lookups)) == (invocations, lookups)
    assert len({one.key for one in tools.calls}) == 1


def test_an_effect_whose_answer_was_lost_is_found(tmp_path):
    """Where the receiver can be asked, the effect of a lost answer is reconciled and not repeated."""
    tools = FakeTools()

    async def applied_then_lost():
        tools.effects["a"] = "a#1"
        raise Unknown("reset")

    tools.script["a"] = [applied_then_lost]

    async def main():
        async with working(tmp_path / "s.db", tools) as client:
            await client.submit("t", plan(call("a", "registry")))
            status = await until(client, "t", "done")
            (shown,) = status["operations"]
            assert (shown["state"], shown["nonce"]) == ("reconciled", "a#1")

    trio.run(main)
    assert len(tools.calls) == 1


def test_a_slow_owner_is_not_doubled(tmp_path):
    """A call that takes many lease terms stays with its worker, whose heartbeats keep it."""
    tools = FakeTools({"a": [functools.partial(trio.sleep, 0.5)]})

    async def main():
        async with working(tmp_path / "s.db", tools, lease_ns=100 * MS) as client, trio.open_nursery() as nursery:
            nursery.start_soon(Worker(Client(client.host, client.port), tools, name="idle").run)
            await client.submit("t", plan(call("a", "mailer")))
            assert (await until(client, "t", "done", "blocked"))["state"] == "done"
            nursery.cancel_scope.cancel()

    trio.run(main)
    assert len(tools.calls) == 1


def test_work_of_a_worker_that_went_silent_is_given_to_another(tmp_path):
    """A worker that dies with an intent on record loses it when its lease ends; the next one sends the same key."""
    reached = trio.Event()
    tools = FakeTools({"a": [lambda: _reach(reached)]})

    async def main():
        async with served(tmp_path / "s.db", lease_ns=50 * MS) as (_, port), Client("127.0.0.1", port) as client:
            await client.submit("t", plan(call("a")))
            async with trio.open_nursery() as nursery:
                nursery.start_soon(Worker(Client("127.0.0.1", port), tools).run)
                await reached.wait()
                nursery.cancel_scope.cancel()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(Worker(Client("127.0.0.1", port), tools).run)
                status = await until(client, "t", "done")
                nursery.cancel_scope.cancel()
            assert (status["attempt"], status["execution"]) == ("t.1", "worker#2")
            reports = [row["report"] for row in (await client.journal("t"))["invocations"]]
            assert reports == ["unknown", "succeeded"]

    trio.run(main)
    assert [one.key for one in tools.calls] == ["t.1:a"] * 2


async def _reach(reached: trio.Event) -> None:
    reached.set()
    await trio.sleep_forever()


def test_the_next_server_goes_on_where_the_last_one_was_killed(tmp_path):
    """Worker and client outlive their server: they find the next one on the same port, and nothing is done twice."""
    tools = FakeTools()

    async def main():
        ends = [trio.Event(), trio.Event()]
        tools.script["b"] = [lambda: _stop_and_wait(*ends)]
        async with trio.open_nursery() as nursery:
            async with served(tmp_path / "s.db") as (_, port), Client("127.0.0.1", port) as client:
                nursery.start_soon(Worker(Client("127.0.0.1", port), tools).run)
                await client.submit("t", plan(call("a"), call("b"), call("c")))
                await ends[0].wait()
            ends[1].set()
            async with served(tmp_path / "s.db", port=port), Client("127.0.0.1", port) as client:
                status = await until(client, "t", "done")
                assert status["result"] == {"a": "a#1", "b": "b#1", "c": "c#1"}
                nursery.cancel_scope.cancel()

    trio.run(main)
    assert [one.operation for one in tools.calls] == ["a", "b", "c"]


async def _stop_and_wait(here: trio.Event, go_on: trio.Event) -> None:
    here.set()
    await go_on.wait()


def test_answers_that_get_lost_change_nothing(tmp_path):
    """With every third answer of the server thrown away, everything still happens once."""
    tools = FakeTools()

    async def main():
        async with served(tmp_path / "s.db") as (_, port), trio.open_nursery() as nursery:
            listeners = await nursery.start(_lossy_proxy, port)
            lossy = listeners[0].socket.getsockname()[1]
            nursery.start_soon(Worker(Client("127.0.0.1", lossy), tools).run)
            async with Client("127.0.0.1", lossy) as client:
                await client.submit("t", plan(*(call(f"c{n}", "mailer") for n in range(6)), wait("w", "go")))
                await until(client, "t", "waiting")
                await client.signal("t", "1", "go", {"nonce": "n"})
                await until(client, "t", "done")
            nursery.cancel_scope.cancel()

    trio.run(main)
    assert [one.operation for one in tools.calls] == [f"c{n}" for n in range(6)]


async def _lossy_proxy(port: int, task_status: trio.TaskStatus[list[trio.SocketListener]]) -> None:
    answers = 0

    async def relay(near: trio.abc.Stream) -> None:
        nonlocal answers
        async with near, await trio.open_tcp_stream("127.0.0.1", port) as far:
            asked, answered = Lines(near), Lines(far)
            try:
                while (line := await asked.receive()) is not None:
                    await far.send_all(line + b"\n")
                    answer = await answered.receive()
                    answers += 1
                    if answers % 3 == 0 or answer is None:
                        return
                    await near.send_all(answer + b"\n")
            except (OSError, trio.BrokenResourceError):
                return

    await trio.serve_tcp(relay, 0, host="127.0.0.1", task_status=task_status)


def test_many_submits_at_once_are_one_task(tmp_path):
    """All callers of the same id get the same answer."""

    async def main():
        async with served(tmp_path / "s.db") as (_, port), trio.open_nursery() as nursery:
            receipts = []

            async def submit():
                async with Client("127.0.0.1", port) as client:
                    receipts.append(await client.submit("t", plan(call("a"))))

            for _ in range(8):
                nursery.start_soon(submit)
            while len(receipts) < 8:
                await trio.lowlevel.checkpoint()
        assert len(set(receipts)) == 1

    trio.run(main)


def test_a_timer_fires_without_anybody_asking(tmp_path):
    """A sleep ends by the server's own clock, not early, with no worker there."""

    async def main():
        async with served(tmp_path / "s.db") as (_, port), Client("127.0.0.1", port) as client:
            began_ns = time.time_ns()
            await client.submit("t", plan(sleep("s", 30 * MS), sleep("z", 0)))
            await until(client, "t", "done")
            assert time.time_ns() - began_ns >= 30 * MS

    trio.run(main)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"garbage", "not a JSON line"),
        (b"[]", "an object with an integer id"),
        (b'{"id": 1, "verb": "fly", "params": {}}', "unknown verb 'fly'"),
        (b'{"id": 1, "verb": "serve", "params": {}}', "unknown verb 'serve'"),
        (b'{"id": 1, "verb": "status", "params": 3}', "params must be an object"),
        (b'{"id": 1, "verb": "status", "params": {"task": 3}}', "task must be str"),
        (b'{"id": 1, "verb": "status", "params": {"task": "t", "colour": 1}}', "unknown fields colour"),
        (b'{"id": 1, "verb": "dispatch", "params": {"grant": {"lease": 1}}}', "grant:"),
        (
            (
                b'{"id": 1, "verb": "settle", "params": {"grant": {}, "report": "well", "answer": {}, "detail": "",'
                b' "facts": {}, "execution": "w", "limit": 0}}'
            ),
            "report 'well'",
        ),
    ],
)
def test_a_bad_request_is_refused_by_name_and_the_connection_lives(tmp_path, line, said):
    """Whatever comes over the wire is answered with what is wrong with it, and the next request is served."""

    async def main():
        async with served(tmp_path / "s.db") as (_, port):
            stream = await trio.open_tcp_stream("127.0.0.1", port)
            lines = Lines(stream)
            await stream.send_all(line + b"\n")
            answer = json.loads(await lines.receive() or b"")
            assert answer["error"]["code"] == "bad-request"
            assert said in answer["error"]["message"]
            await lines.send({"id": 2, "verb": "ping", "params": {}})
            assert "ok" in json.loads(await lines.receive() or b"")
            await stream.aclose()

    trio.run(main)


def test_an_endless_line_ends_the_connection(tmp_path):
    """A line over the bound is not collected for ever."""

    async def main():
        async with served(tmp_path / "s.db") as (_, port):
            stream = await trio.open_tcp_stream("127.0.0.1", port)
            with trio.fail_after(10), pytest.raises(trio.BrokenResourceError):
                await stream.send_all(b"x" * (64 * LINE_BYTES_MAX))
            await trio.aclose_forcefully(stream)

    trio.run(main)


def test_silence_is_told_apart_from_no(tmp_path):
    """No server: Unreachable, after the caller's patience. A server that refuses: Refusal, at once."""

    async def main():
        async with served(tmp_path / "s.db") as (_, port), Client("127.0.0.1", port) as client:
            with pytest.raises(Refusal, match="unknown-task"):
                await client.signal("t", "1", "go", {})
        with pytest.raises(Unreachable):
            await Client("127.0.0.1", port, patience=Patience(total_ns=20 * MS)).status("t")

    trio.run(main)


def test_a_server_that_was_away_blames_nobody(tmp_path):
    """When the server itself stood still longer than a lease, its holders get a full term before it takes work back."""
    clock = trio.testing.MockClock()

    async def main():
        async with served(tmp_path / "s.db", lease_ns=40 * MS) as (_, port), Client("127.0.0.1", port) as client:
            await client.submit("t", plan(call("a", "mailer")))
            (grant,) = (await client.call("claim", {"execution": "w", "holding": [], "limit": 1}))["grants"]
            ticket = await client.call("dispatch", {"grant": grant})
            clock.jump(100)
            beat = await client.call("heartbeat", {"execution": "w", "generations": [ticket["generation"]]})
            assert beat == {"lost": [], "stopping": []}
            assert states(await client.status("t")) == {"a": "dispatched"}

    trio.run(main, clock=clock)


def test_a_lease_ends_after_a_whole_term_of_silence(tmp_path):
    """Not before the term is over, and then at once: the holder hears that it lost it."""
    clock = trio.testing.MockClock()
    lease_ns = 10_000 * MS

    async def main():
        async with served(tmp_path / "s.db", lease_ns=lease_ns) as (_, port), Client("127.0.0.1", port) as client:
            await client.submit("t", plan(call("a", "mailer")))
            (grant,) = (await client.call("claim", {"execution": "w", "holding": [], "limit": 1}))["grants"]
            await client.call("dispatch", {"grant": grant})
            for seconds, state in ((4, "dispatched"), (4, "dispatched"), (1.9, "dispatched"), (0.2, "unresolved")):
                clock.jump(seconds)
                assert states(await client.status("t")) == {"a": state}
            beat = await client.call("heartbeat", {"execution": "w", "generations": [grant["generation"]]})
            assert beat == {"lost": [grant["generation"]], "stopping": []}

    trio.run(main, clock=clock)


def test_leases_that_run_out_together_are_taken_back_by_the_handful(tmp_path):
    """Between two handfuls others are answered, and whoever says then that it lives keeps what it still has."""
    clock = trio.testing.MockClock()

    async def main():
        store = Store.open(str(tmp_path / "s.db"))
        store.submit("t", plan(par(*(call(f"s{number}") for number in range(2 * RECLAIMED_MAX)))))
        leases = store.claim("w", [], 2 * RECLAIMED_MAX)
        server = Server(store)
        server._hold_all()
        clock.jump(LEASE_NS / NS)
        assert server.reassign()
        left = sorted(server._holders)
        assert (len(leases) - len(left), len(store.leases())) == (RECLAIMED_MAX, len(left))
        assert (await server.heartbeat("w", [lease.generation for lease in leases]))["lost"] == [
            lease.generation for lease in leases if lease.generation not in left
        ]
        assert not server.reassign()
        assert sorted(generation for generation, _ in store.leases()) == left
        store.close()

    trio.run(main, clock=clock)


def test_a_servers_log_tells_who_came_and_what_was_taken_back(tmp_path):
    """A worker that goes silent with something in hand: by ids, one event after the other; and what was out at a restart."""
    said: list[tuple[str, Json]] = []

    class Told(Log):
        def __call__(self, event: str, **ids: object) -> None:
            said.append((event, ids))

    async def main():
        store = Store.open(str(tmp_path / "s.db"), policy=EAGER)
        async with embedded(Server(store, lease_ns=50 * MS, log=Told())) as handle:
            await handle.submit("t", plan(call("a")))
            execution = (await handle.call("hello", {"name": "w", "code": {"version": "7"}}))["execution"]
            (ticket,) = (await handle.call("claim", {"execution": execution, "holding": [], "limit": 1}))["tickets"]
            await until(handle, "t", "running")
            while store.leases():  # noqa: ASYNC110 - the store has no event for it
                await trio.sleep(0.005)
            generation = ticket["generation"]
        (held,) = store.claim("w#2", [], 1)
        async with embedded(Server(store, log=Told())) as handle:
            await handle.call("release", {"execution": "w#2"})
        store.close()
        return generation, held.generation

    first, second = trio.run(main)
    assert said == [
        ("up", {"leases": 0}),
        ("welcomed", {"execution": "w#1", "code": "7"}),
        ("reclaimed", {"attempt": "t.1", "operation": "a", "generation": first, "execution": "w#1"}),
        ("up", {"leases": 1}),
        ("left", {"execution": "w#2", "generations": [second]}),
    ]

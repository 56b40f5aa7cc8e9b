"""Connections: one too many is refused in words, and who stays in the midst of a line is let go."""

from __future__ import annotations

import contextlib
import json
import resource
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock, lockstep_stream_pair, memory_stream_pair

from reference_runtime import Client, Patience, Server, Store, Unreachable, Worker
from reference_runtime.connections import Connections, descriptors_for
from reference_runtime.log import OFF, Log
from reference_runtime.model import Refusal
from reference_runtime.rpc import Lines, parse_answer
from reference_runtime.server import LEASE_NS
from tests.runtime_rig import MS, FakeTools, call, plan, served, until

SHORT = Patience(total_ns=1000 * MS, backoff_ns_max=10 * MS)
PING = b'{"id": 1, "verb": "ping", "params": {}}\n'


@contextlib.asynccontextmanager
async def listening(path: Path, connections_max: int, log: Log = OFF, lease_ns: int = LEASE_NS) -> AsyncIterator[int]:
    server = Server(Store.open(str(path)), lease_ns=lease_ns, connections=Connections(connections_max, log=log))
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(server.serve, "127.0.0.1", 0)
        yield listeners[0].socket.getsockname()[1]
        nursery.cancel_scope.cancel()
    server.store.close()


def test_one_connection_too_many_is_refused_in_words(tmp_path):
    """Its user sees why; nothing of what was asked is done; the log tells of it once. As soon as there is room it is let in."""
    said: list[str] = []

    async def main():
        async with listening(tmp_path / "s.db", 2, Log(said.append)) as port:
            streams = [await trio.open_tcp_stream("127.0.0.1", port) for _ in range(2)]
            for one in streams:
                await one.send_all(PING)
                assert b'"ok"' in await one.receive_some()
            async with Client("127.0.0.1", port, patience=SHORT) as client:
                with pytest.raises((Refusal, Unreachable), match="too-many-connections: 2 connections are open"):
                    await client.submit("t", plan(call("a")))
                await streams.pop().aclose()
                client.patience = Patience()
                assert (await client.status("t"))["state"] == "unknown"
            await streams.pop().aclose()

    trio.run(main)
    assert [json.loads(line)["event"] for line in said] == ["refusing-connections"]


def test_a_request_whose_answer_was_lost_is_not_called_refused():
    """A refusal of the next connection says nothing about what was sent over the one before."""

    async def main():
        accepted = 0

        async def answer(stream: trio.SocketStream) -> None:
            nonlocal accepted
            accepted += 1
            await stream.receive_some()
            if accepted > 1:
                await stream.send_all(b'{"id": null, "error": {"code": "too-many-connections", "message": ""}}\n')

        async with trio.open_nursery() as nursery:
            (listener,) = await nursery.start(partial(trio.serve_tcp, host="127.0.0.1"), answer, 0)
            async with Client("127.0.0.1", listener.socket.getsockname()[1], patience=SHORT) as client:
                with pytest.raises(Unreachable, match="the last one it gave was too-many-connections"):
                    await client.submit("t", plan(call("a")))
            assert accepted > 2
            nursery.cancel_scope.cancel()

    trio.run(main)


@pytest.mark.parametrize("sent", [PING[:10], PING], ids=["never ends its line", "never reads its answer"])
def test_a_peer_in_the_midst_of_a_line_is_let_go(tmp_path, sent):
    """Neither half a request nor an answer that nobody takes is kept for ever; the log says which peer it was."""
    said: list[str] = []

    async def main():
        server = Server(
            Store.open(str(tmp_path / "s.db")), connections=Connections(stall_ns=5000 * MS, log=Log(said.append))
        )
        ours, theirs = lockstep_stream_pair()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(server._keep_time)
            began = trio.current_time()
            async with trio.open_nursery() as conversing:
                conversing.start_soon(server._converse, theirs)
                await ours.send_all(sent)
            assert 5 <= trio.current_time() - began <= 7
            nursery.cancel_scope.cancel()
        server.store.close()

    trio.run(main, clock=MockClock(autojump_threshold=0))
    (line,) = said
    assert json.loads(line) | {"event": "dropped-connection", "reason": "stalled", "seconds": 5.0} == json.loads(line)


def test_a_peer_that_is_slow_or_silent_is_kept(tmp_path):
    """Between lines it may be silent for as long as it likes, and an answer may take long, if only it goes on."""

    async def main():
        server = Server(Store.open(str(tmp_path / "s.db")), connections=Connections(stall_ns=5000 * MS))
        server.store.submit("t", plan(call("a", params={"said": "x" * 3_000_000})))
        ours, theirs = lockstep_stream_pair()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(server._keep_time)
            nursery.start_soon(server._converse, theirs)
            await trio.sleep(100)
            await ours.send_all(b'{"id": 1, "verb": "events", "params": {"task": "t", "after": 0}}\n')
            assert b'"ok"' in await ours.receive_some()
            await trio.sleep(100)
            await ours.send_all(PING)
            assert b'"ok"' in await ours.receive_some()
            nursery.cancel_scope.cancel()
        server.store.close()

    trio.run(main, clock=MockClock(autojump_threshold=0))


def test_a_long_line_is_counted_by_its_pieces():
    """Whoever takes one piece after the other is not late, however long the whole takes."""

    async def main():
        ours, theirs = lockstep_stream_pair()
        lines, late = Lines(theirs), []

        async def read() -> None:
            received = 0
            while received < 2_000_000:
                await trio.sleep(3)
                assert lines.since is not None
                late.append(trio.current_time() - lines.since)
                received += len(await ours.receive_some(256 * 1024))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            await lines.send({"text": "x" * 2_000_000})
        assert lines.since is None
        return late

    late = trio.run(main, clock=MockClock(autojump_threshold=0))
    assert len(late) > 5
    assert max(late) <= 3


def test_a_server_that_was_away_blames_nobody():
    """What it did not read while it stood still is not the peers' doing."""

    async def main():
        known = Connections(stall_ns=5000 * MS)
        _, theirs = memory_stream_pair()
        lines = Lines(theirs)
        assert known.enter(lines)
        lines.since = trio.current_time()
        await trio.sleep(60)
        known.excuse()
        await known.drop_stalled()
        await theirs.send_all(b"it is open")
        await trio.sleep(6)
        await known.drop_stalled()
        with pytest.raises(trio.ClosedResourceError):
            await theirs.send_all(b"")

    trio.run(main, clock=MockClock(autojump_threshold=0))


@pytest.mark.parametrize(
    ("soft", "hard", "asked", "room", "raised"),
    [
        (256, 4096, 1000, 1000, 1064),
        (256, 512, 1000, 448, 512),
        (4096, 4096, 1000, 1000, None),
        (20, 20, 1000, 1, 20),
        (256, resource.RLIM_INFINITY, 1000, 1000, 1064),
        (resource.RLIM_INFINITY, resource.RLIM_INFINITY, 5, 5, None),
    ],
)
def test_there_are_no_more_connections_than_descriptors(monkeypatch, soft, hard, asked, room, raised):
    """The process's limit is raised as far as it is needed and may be; what does not fit is not promised."""
    limits: list[int | None] = [None]
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, pair: limits.append(pair[0]))
    assert descriptors_for(asked) == room
    assert limits[-1] == raised


@pytest.mark.parametrize("answer", [b'{"id": 1, "error": "no"}', b'{"id": 1, "ok": []}', b"[" * 100_000, b"{}", b"1"])
def test_an_answer_that_is_none_counts_as_lost(answer):
    """Somebody else listens there, who speaks JSON, too."""
    with pytest.raises(ValueError, match=r"expected the answer to request 1|nested too deep"):
        parse_answer(answer, 1)


def test_a_refusal_is_raised_where_nothing_else_was_ever_said():
    """What was refused each time was never done, which is more than no answer says."""

    async def main():
        async def answer(stream: trio.abc.Stream) -> None:
            await stream.receive_some()
            await stream.send_all(b'{"id": null, "error": {"code": "too-many-connections", "message": "1"}}\n')

        client = Client("h", 1, patience=Patience(total_ns=3000 * MS, answer_ns=9000 * MS))

        async def connected() -> Lines:
            ours, theirs = memory_stream_pair()
            nursery.start_soon(answer, theirs)
            return Lines(ours)

        client._connect = connected  # type: ignore[method-assign]
        async with trio.open_nursery() as nursery:
            with pytest.raises(Refusal, match="too-many-connections: 1"):
                await client.submit("t", plan(call("a")))
            nursery.cancel_scope.cancel()

    trio.run(main, clock=MockClock(autojump_threshold=0))


def test_a_worker_outlives_a_time_without_room(tmp_path):
    """No connection is to be had for a whole lease's term: its heartbeats are refused, and it goes on with what it has."""
    reached, go_on = trio.Event(), trio.Event()

    async def slow():
        reached.set()
        await go_on.wait()

    async def main():
        room = 3  # for what a worker has open at a time, and for one who asks how the task stands
        async with listening(tmp_path / "s.db", room, lease_ns=100 * MS) as port, trio.open_nursery() as nursery:
            async with Client("127.0.0.1", port) as client:
                await client.submit("t", plan(call("a", "reader")))
            its_own = Client("127.0.0.1", port)
            worker = Worker(its_own, FakeTools({"a": [slow]}), slots=2)
            nursery.start_soon(worker.run)
            await reached.wait()
            others = []
            while not its_own._silent_since:  # until what it asks over a new connection is refused
                others.append(await trio.open_tcp_stream("127.0.0.1", port))
                await trio.sleep(0.02)
            await trio.sleep(0.3)
            for one in others:
                await one.aclose()
            go_on.set()
            async with Client("127.0.0.1", port) as client:
                await until(client, "t", "done")
            nursery.cancel_scope.cancel()

    trio.run(main)


class Middle:
    """Hands on what is said to a server, until `fall_silent`: then every connection there is stays open and says no more."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.open: list[trio.CancelScope] = []

    def fall_silent(self) -> None:
        for one in self.open:
            one.cancel()

    async def converse(self, stream: trio.SocketStream) -> None:
        async with await trio.open_tcp_stream("127.0.0.1", self.port) as beyond:
            with trio.CancelScope() as scope:
                self.open.append(scope)
                async with trio.open_nursery() as both:
                    both.start_soon(self.hand_on, stream, beyond)
                    await self.hand_on(beyond, stream)
                    both.cancel_scope.cancel()
                return
            await trio.sleep_forever()

    async def hand_on(self, source: trio.SocketStream, target: trio.SocketStream) -> None:
        with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            while data := await source.receive_some():
                await target.send_all(data)


def test_an_owner_whose_connections_fall_silent_is_not_doubled(tmp_path):
    """All it had are dead, the idle ones too: it finds a new one before its lease ends, however short that is."""
    reached, go_on = trio.Event(), trio.Event()
    heard: list[object] = []

    async def slow():
        reached.set()
        await go_on.wait()

    async def main():
        async with served(tmp_path / "s.db", lease_ns=2000 * MS) as (server, port), trio.open_nursery() as nursery:
            middle = Middle(port)
            (listener,) = await nursery.start(partial(trio.serve_tcp, middle.converse, 0, host="127.0.0.1"))
            owner = Client("127.0.0.1", listener.socket.getsockname()[1])
            first, second = FakeTools({"a": [slow]}), FakeTools()
            async with Client("127.0.0.1", port) as client:
                await client.submit("t", plan(call("a", "reader")))
                nursery.start_soon(Worker(owner, first).run)
                await reached.wait()
                for _ in range(3):
                    owner._idle.append(await owner._connect())
                middle.fall_silent()
                nursery.start_soon(Worker(Client("127.0.0.1", port), second).run)
                await trio.sleep(3)  # a term and a half, in which it is heard of or loses its lease
                heard.extend(server._holders)
                go_on.set()
                await until(client, "t", "done")
            nursery.cancel_scope.cancel()
        return len(first.calls), len(second.calls)

    assert trio.run(main) == (1, 0)
    assert len(heard) == 1

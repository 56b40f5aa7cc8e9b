"""The simulated wire of the services, on memory streams and on real sockets: lines in, lines out, faults in between."""

from __future__ import annotations

import itertools
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest
import trio
import trio.testing

from simkit.errors import Problem
from simkit.services import (
    Barrier,
    Delivery,
    Fault,
    Gate,
    LineReader,
    LineTooLongError,
    Outside,
    Reply,
    Request,
    encode,
    open_gate,
    serve_connection,
    serve_lines,
)

T = TypeVar("T")
LEDGER = Request("ledger", "r1", "a", "k")


class Deaf:
    """A recorder for tests that look at the wire only."""

    def received(self, call: int, request: Request, incarnation: int, digest: str) -> None: ...

    def applied(self, call: int, effect: int, nonce: str) -> None: ...

    def replied(self, call: int, reply: Reply, delivery: Delivery) -> None: ...

    def stored(self, location: str, state: str) -> None: ...

    def authority(self, actor: str, *, granted: bool) -> None: ...


def outside() -> Outside:
    numbers = itertools.count(1)
    return Outside(lambda: f"n{next(numbers)}", Deaf(), lambda: 0)


def at(barrier: Barrier, fault: Fault) -> Gate:
    async def gate(_call: int, _request: Request, nth: int, where: Barrier) -> Fault | None:
        return fault if (nth, where) == (1, barrier) else None

    return gate


def converse(
    talk: Callable[[trio.abc.Stream, LineReader], Awaitable[T]], gate: Gate = open_gate
) -> tuple[T, list[tuple[int, Problem]]]:
    """Run `talk` against one served connection of worker 7 in memory; also what was reported of the adapter."""
    problems: list[tuple[int, Problem]] = []

    async def main() -> T:
        ours, theirs = trio.testing.memory_stream_pair()
        with trio.fail_after(5):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(
                    serve_connection, theirs, outside(), gate, 7, lambda n, problem: problems.append((n, problem))
                )
                result = await talk(ours, LineReader(ours, 10_000))
                await ours.aclose()
        return result

    # Virtual time: whoever waits out a silence does not wait for luck.
    return trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0)), problems


def test_one_connection_carries_request_after_request() -> None:
    """Replies come back in turn on one connection, and a saved one says it is replayed."""

    async def talk(stream: trio.abc.Stream, reader: LineReader) -> list[Any]:
        got = []
        for _ in range(2):
            await stream.send_all(encode(LEDGER))
            got.append(json.loads(await reader.read() or b""))
        return got

    got, problems = converse(talk)
    assert got == [
        {"status": 200, "body": {"nonce": "n1", "request": "req-000001"}, "replayed": False},
        {"status": 200, "body": {"nonce": "n1", "request": "req-000002"}, "replayed": True},
    ]
    assert problems == []


def test_a_line_that_is_no_request_is_answered_reported_and_survived() -> None:
    """A bad line gets 400 with the field's name, is reported against its worker, and the next request is served."""

    async def talk(stream: trio.abc.Stream, reader: LineReader) -> list[Any]:
        await stream.send_all(b'nonsense\n{"service":"ledger","run":"r1"}\n' + encode(LEDGER))
        return [json.loads(await reader.read() or b"") for _ in range(3)]

    got, problems = converse(talk)
    assert [(row["status"], row["body"].get("field")) for row in got] == [(400, "line"), (400, "op"), (200, None)]
    assert [(number, problem.code) for number, problem in problems] == [(7, "bad-request")] * 2


def test_a_line_without_end_is_refused_and_the_connection_closed() -> None:
    """A line over the bound cannot be cut into requests any more, so the connection ends with the refusal."""

    async def talk(stream: trio.abc.Stream, reader: LineReader) -> tuple[int, bytes | None]:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stream.send_all, b"x" * (1 << 20) + b"yz")
            answer = json.loads(await reader.read() or b"")
        return answer["status"], await reader.read()

    assert converse(talk)[0] == (400, None)


@pytest.mark.parametrize("kind", ["reset", "gone"])
def test_after_a_reset_or_the_callers_death_the_connection_is_over(kind: Any) -> None:
    """No reply comes, only the end of the connection."""

    async def talk(stream: trio.abc.Stream, reader: LineReader) -> bytes | None:
        await stream.send_all(encode(LEDGER))
        return await reader.read()

    assert converse(talk, at("applied", Fault(kind)))[0] is None


def test_a_dropped_reply_leaves_the_connection_open_and_silent() -> None:
    """The caller of a dropped call hears nothing: no reply, no end, not even to what it sends next."""

    async def talk(stream: trio.abc.Stream, reader: LineReader) -> str:
        await stream.send_all(encode(LEDGER) * 2)
        with trio.move_on_after(3):
            return f"heard {await reader.read()!r}"
        return "silence"

    assert converse(talk, at("applied", Fault("drop")))[0] == "silence"


def test_a_caller_that_hangs_up_while_its_call_is_held_blocks_nobody() -> None:
    """The held call goes on without its caller; another connection is served meanwhile."""

    async def main() -> list[str]:
        out, held, release = outside(), trio.Event(), trio.Event()
        told: list[str] = []

        async def gate(_call: int, request: Request, _nth: int, barrier: Barrier) -> Fault | None:
            if request.op == "held" and barrier == "received":
                held.set()
                await release.wait()
            if request.op == "held":
                told.append(barrier)
            return None

        first, one = trio.testing.memory_stream_pair()
        second, two = trio.testing.memory_stream_pair()
        with trio.fail_after(5):
            async with trio.open_nursery() as nursery:
                for stream in (one, two):
                    nursery.start_soon(serve_connection, stream, out, gate, 1, print)
                await first.send_all(encode(Request("mailer", "r1", "held")))
                await held.wait()
                await first.aclose()
                await second.send_all(encode(LEDGER))
                assert json.loads(await LineReader(second, 1_000).read() or b"")["status"] == 200
                await second.aclose()
                release.set()
        return told

    assert trio.run(main)[:2] == ["received", "applied"]


def test_over_tcp_a_reset_is_a_reset() -> None:
    """On sockets the wire breaks a connection by RST, which a caller can tell from an orderly end."""

    async def main() -> None:
        with trio.fail_after(5):
            async with trio.open_nursery() as nursery:
                listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
                gate = at("received", Fault("reset"))
                await nursery.start(serve_lines, listeners, outside(), gate, lambda _: 3, print)
                stream = await trio.open_tcp_stream("127.0.0.1", listeners[0].socket.getsockname()[1])
                async with stream:
                    await stream.send_all(encode(LEDGER))
                    with pytest.raises(trio.BrokenResourceError):
                        await stream.receive_some()
                nursery.cancel_scope.cancel()

    trio.run(main)


def test_a_line_reader_keeps_what_arrived_before_it_was_cancelled() -> None:
    """Half a line, a cancelled read, the other half: one whole line; an unfinished last line is the rest."""

    async def main() -> tuple[bytes | None, bytes | None, bytes]:
        ours, theirs = trio.testing.memory_stream_one_way_pair()
        reader = LineReader(theirs, 100)
        await ours.send_all(b"hal")
        with trio.move_on_after(0.001):
            await reader.read()
        await ours.send_all(b"f\nrest")
        await ours.aclose()
        return await reader.read(), await reader.read(), reader.rest

    assert trio.run(main) == (b"half", None, b"rest")


def test_a_line_reader_bounds_lines_that_have_an_end_too() -> None:
    """A line one byte over the bound is refused even when it arrived whole; one at the bound is read."""

    async def main() -> bytes | None:
        ours, theirs = trio.testing.memory_stream_one_way_pair()
        reader = LineReader(theirs, 4)
        await ours.send_all(b"four\nfive!\n")
        line = await reader.read()
        with pytest.raises(LineTooLongError, match="over 4 bytes"):
            await reader.read()
        return line

    assert trio.run(main) == b"four"

"""TCP streams within one process: what a program meets at each end, on the loopback and in simulation."""

from __future__ import annotations

import socket as stdlib_socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from tests.fidelity.stages import Stage, agree, attempted, connecting, told

LINGER_ZERO = struct.pack("ii", 1, 0)


@asynccontextmanager
async def pair() -> AsyncIterator[tuple[trio.SocketStream, trio.SocketStream]]:
    """Two ends of a connection over the loopback of whoever runs."""
    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    near = await trio.open_tcp_stream("127.0.0.1", listener.socket.getsockname()[1])
    far = await listener.accept()
    await listener.aclose()
    async with near, far:
        yield near, far


async def settled() -> None:
    """Let what is on its way arrive."""
    await trio.sleep(0.1)


def test_nobody_listens(tmp_path: Path) -> None:
    """Connecting is refused, at once."""

    async def program(stage: Stage) -> str:
        return await attempted(connecting(stage.server, stage.port()))

    assert agree(program, tmp_path) == "ECONNREFUSED"


def test_a_stream_has_no_message_bounds(tmp_path: Path) -> None:
    """Partial reads of one send, one read of two sends, and a receive waits while there is nothing."""

    async def program(_: Stage) -> list[object]:
        async with pair() as (near, far):
            await near.send_all(b"abcdef")
            await settled()
            seen: list[object] = [await far.receive_some(2), await far.receive_some(3)]
            await near.send_all(b"ghi")
            await settled()
            seen.append(await far.receive_some(100))
            return [*seen, await attempted(lambda: far.receive_some(1), 0.1)]

    assert agree(program, tmp_path) == [b"ab", b"cde", b"fghi", "waits"]


def test_the_end_of_a_stream_is_read_again_and_again(tmp_path: Path) -> None:
    """After the peer closed: what it had sent, then b"" for ever; a half-closed stream still carries the other way."""

    async def program(_: Stage) -> list[object]:
        async with pair() as (near, far):
            await near.send_all(b"last")
            await near.send_eof()
            seen: list[object] = [await far.receive_some(100), await far.receive_some(100), await far.receive_some(100)]
            await far.send_all(b"still here")
            seen.append(await near.receive_some(100))
            await far.aclose()
            return [*seen, await near.receive_some(100)]

    assert agree(program, tmp_path)[:4] == [b"last", b"", b"", b"still here"]


def test_closing_with_a_linger_of_zero_resets(tmp_path: Path) -> None:
    """The peer meets ECONNRESET on reading, and EPIPE on writing after it."""

    async def program(_: Stage) -> list[str]:
        async with pair() as (near, far):
            near.setsockopt(stdlib_socket.SOL_SOCKET, stdlib_socket.SO_LINGER, LINGER_ZERO)
            await near.aclose()
            await settled()
            return [await attempted(lambda: far.receive_some(1)), await attempted(lambda: far.send_all(b"x"))]

    assert agree(program, tmp_path)[0] == "ECONNRESET"


def test_closing_with_unread_data_resets(tmp_path: Path) -> None:
    """Who does not read what was sent, and closes, sends a reset instead of an end."""

    async def program(_: Stage) -> list[str]:
        async with pair() as (near, far):
            await far.send_all(b"unread")
            await settled()
            await near.aclose()
            await settled()
            return [await attempted(lambda: far.receive_some(1)), await attempted(lambda: far.receive_some(1))]

    assert agree(program, tmp_path)[0] == "ECONNRESET"


def test_sending_to_one_who_closed(tmp_path: Path) -> None:
    """The first send succeeds and is answered by a reset, the next one fails."""

    async def program(_: Stage) -> list[str]:
        async with pair() as (near, far):
            await near.aclose()
            await settled()
            seen = [await attempted(lambda: far.send_all(b"x"))]
            await settled()
            seen.append(await attempted(lambda: far.send_all(b"x")))
            return [*seen, await attempted(lambda: far.receive_some(1))]

    assert agree(program, tmp_path)[:2] == ["None", "EPIPE"]


def test_a_peer_that_does_not_read_blocks_its_sender(tmp_path: Path) -> None:
    """The window fills, the sender waits; once the peer reads, everything arrives in order."""

    async def program(_: Stage) -> list[object]:
        data = bytes(range(256)) * 65536
        async with pair() as (near, far):
            received = bytearray()

            async def send() -> None:
                await near.send_all(data)
                await near.send_eof()

            async with trio.open_nursery() as nursery:
                nursery.start_soon(send)
                await trio.sleep(0.3)
                blocked = not near.socket.did_shutdown_SHUT_WR
                async for part in far:
                    received += part
            return [blocked, received == data]

    assert agree(program, tmp_path) == [True, True]


def test_connections_beyond_the_backlog_wait(tmp_path: Path) -> None:
    """Of six, one more than the backlog of two get through; accepting makes room."""

    async def program(stage: Stage) -> list[object]:
        [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1", backlog=2)
        port = listener.socket.getsockname()[1]
        connected: list[trio.SocketStream] = []

        async def connect() -> None:
            connected.append(await trio.open_tcp_stream("127.0.0.1", port))

        async with trio.open_nursery() as nursery:
            for _ in range(6):
                nursery.start_soon(connect)
            await trio.sleep(0.5)
            at_first = len(connected)
            accepted = [await listener.accept() for _ in range(6)]
        for stream in (*connected, *accepted):
            await stream.aclose()
        await listener.aclose()
        return [at_first, len(connected)]

    assert agree(program, tmp_path) == [3, 6]


def test_addresses_in_use_and_free_again(tmp_path: Path) -> None:
    """A second listener on a port is refused; closing the first one frees it."""

    async def program(stage: Stage) -> str:
        port = stage.port()
        [listener] = await trio.open_tcp_listeners(port, host="127.0.0.1")
        try:
            await trio.open_tcp_listeners(port, host="127.0.0.1")
        except OSError as error:
            seen = told(error)
        await listener.aclose()
        [listener] = await trio.open_tcp_listeners(port, host="127.0.0.1")
        await listener.aclose()
        return seen

    assert agree(program, tmp_path) == "EADDRINUSE"


@pytest.mark.parametrize("way", ["send", "receive"])
def test_closing_a_stream_under_a_waiting_task(tmp_path: Path, way: str) -> None:
    """The task that waits gets ClosedResourceError."""

    async def program(_: Stage) -> str:
        seen: list[str] = []

        async def wait(stream: trio.SocketStream) -> None:
            try:
                await (stream.send_all(bytes(1 << 24)) if way == "send" else stream.receive_some(1))
            except trio.ClosedResourceError as error:
                seen.append(told(error))

        async with pair() as (near, _far), trio.open_nursery() as nursery:
            nursery.start_soon(wait, near)
            await settled()
            await near.aclose()
        return seen[0]

    assert agree(program, tmp_path) == "ClosedResourceError"


def test_connections_waiting_in_the_queue_are_reset_with_their_listener(tmp_path: Path) -> None:
    """Connected but never accepted: closing the listener resets them."""

    async def program(_: Stage) -> str:
        [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
        async with await trio.open_tcp_stream("127.0.0.1", listener.socket.getsockname()[1]) as stream:
            await settled()
            await listener.aclose()
            await settled()
            return await attempted(lambda: stream.receive_some(1))

    assert agree(program, tmp_path) == "ECONNRESET"

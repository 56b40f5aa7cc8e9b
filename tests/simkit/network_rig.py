"""What the tests of the network share: a server process, a client that waits for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio

from simkit.process import Process
from simkit.world import Host

T = TypeVar("T")
MS = 1_000_000
PORT = 7000


async def echo(stream: trio.SocketStream) -> None:
    """Send back what comes, and the end of stream after it."""
    try:
        async for data in stream:
            await stream.send_all(data)
        await stream.send_eof()
    except trio.BrokenResourceError:
        pass


async def silent(_: trio.SocketStream) -> None:
    await trio.sleep_forever()


def serve(host: Host, handler: Callable[[trio.SocketStream], Awaitable[object]] = echo) -> Process:
    async def server() -> None:
        await trio.serve_tcp(handler, PORT)

    return host.start(server, name="server")


async def connected(host: str = "server") -> trio.SocketStream:
    """Connect, trying again while nobody listens yet."""
    for _ in range(100):
        try:
            return await trio.open_tcp_stream(host, PORT)
        except OSError:
            await trio.sleep(0.01)
    raise AssertionError("nobody listens")


async def in_process(host: Host, fn: Callable[[], Awaitable[T]]) -> T:
    status = await host.start(fn).wait()
    if status.error is not None:
        raise status.error
    return status.value


async def read_all(stream: trio.SocketStream) -> bytes:
    return b"".join([data async for data in stream])

"""Connecting to a host by its name or address."""

from __future__ import annotations

import trio


async def connect(host: str, port: int) -> trio.SocketStream:
    """As `trio.open_tcp_stream`, but where there is only one address nothing is raced, and no task needed. Raises OSError."""
    found = await trio.socket.getaddrinfo(host, port, type=trio.socket.SOCK_STREAM)
    if len(found) != 1:
        return await trio.open_tcp_stream(host, port)
    family, kind, protocol, _, address = found[0]
    socket = trio.socket.socket(family, kind, protocol)
    try:
        await socket.connect(address)
    except BaseException:
        socket.close()
        raise
    return trio.SocketStream(socket)

"""Blocking sockets for simulated threads: what would block suspends the thread, and others go on.

`socket.socket` and all that is built on it, such as `http.client`, works in a program of threads, over the simulated
network; with timeouts, without TLS, and without waiting for several sockets at once.
"""

from __future__ import annotations

import errno
import socket as stdlib_socket
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

import trio

from simkit.threaded.program import current_worker
from simkit.threaded.running import in_trio

if TYPE_CHECKING:
    from simkit._guard.sockets import PlainSocket

__all__ = ["call", "can_block", "getaddrinfo", "gethostbyname"]


def can_block(sock: PlainSocket, name: str) -> bool:
    """Whether `sock.name(…)` can be waited for here: in a thread of a simulated program, unless it must not wait at all."""
    return name in _CALLS and current_worker() is not None and sock.gettimeout() != 0


def call(sock: PlainSocket, name: str, *args: Any) -> Any:
    """Call `sock.name(*args)`; `TimeoutError` when it takes longer than the socket's timeout."""
    return in_trio(_within, sock.gettimeout(), _CALLS[name], sock, *args)


async def _within(seconds: float | None, fn: Callable[..., Awaitable[Any]], *args: Any) -> Any:
    if seconds is None:
        return await fn(*args)
    with trio.move_on_after(seconds):
        return await fn(*args)
    raise TimeoutError("timed out")


async def _accept(sock: PlainSocket) -> tuple[PlainSocket, Any]:
    accepted, address = await sock.simulated.accept()
    return type(sock).of(accepted), address


async def _connect(sock: PlainSocket, address: Any) -> None:
    await sock.simulated.connect(address)


async def _connect_ex(sock: PlainSocket, address: Any) -> int:
    try:
        await sock.simulated.connect(address)
    except OSError as error:
        return error.errno or errno.EIO
    return 0


async def _recv(sock: PlainSocket, size: int, flags: int = 0) -> bytes:
    return await sock.simulated.recv(size, flags)


async def _recv_into(sock: PlainSocket, buffer: Any, size: int = 0, flags: int = 0) -> int:
    return await sock.simulated.recv_into(buffer, size, flags)


async def _recvfrom(sock: PlainSocket, size: int, flags: int = 0) -> tuple[bytes, Any]:
    return await sock.simulated.recvfrom(size, flags)


async def _send(sock: PlainSocket, data: Any, flags: int = 0) -> int:
    return await sock.simulated.send(data, flags)


async def _sendall(sock: PlainSocket, data: Any, flags: int = 0) -> None:
    rest = memoryview(data).cast("B")
    while rest:
        rest = rest[await sock.simulated.send(rest, flags) :]


async def _sendto(sock: PlainSocket, *args: Any) -> int:
    return await sock.simulated.sendto(*args)


_CALLS: Final[dict[str, Callable[..., Awaitable[Any]]]] = {
    "accept": _accept,
    "connect": _connect,
    "connect_ex": _connect_ex,
    "recv": _recv,
    "recv_into": _recv_into,
    "recvfrom": _recvfrom,
    "send": _send,
    "sendall": _sendall,
    "sendto": _sendto,
}


def getaddrinfo(host: Any, port: Any, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0) -> Any:  # noqa: A002
    """Stand in for `socket.getaddrinfo`: by the names of the world's hosts."""
    return in_trio(trio.socket.getaddrinfo, host, port, family, type, proto, flags)


def gethostbyname(name: str) -> str:
    """Stand in for `socket.gethostbyname`."""
    return str(getaddrinfo(name, 0, stdlib_socket.AF_INET, stdlib_socket.SOCK_STREAM)[0][4][0])

"""`socket.socket` for code of a simulated event loop: libraries that make the socket themselves, and hand it to the loop.

`sock = socket.socket(…); sock.setblocking(False); await loop.sock_connect(sock, address)` gives a socket of the simulation.
What blocks has no place there: only the loop's own `sock_…` methods do.
"""

from __future__ import annotations

import socket as stdlib_socket
from typing import Any

import trio

__all__ = ["real", "stand_in"]

real = stdlib_socket.socket


class _Kind(type):
    """A simulated socket counts as an instance, and so does a real one."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, trio.socket.SocketType | real)


class stand_in(metaclass=_Kind):  # noqa: N801  # it stands where a class of that style stood
    """Makes a socket of the simulation."""

    def __new__(cls, family: int = -1, type: int = -1, proto: int = -1, fileno: Any = None) -> Any:
        if fileno is not None:
            return real(family, type, proto, fileno)  # the guard refuses it, and says how else
        return trio.socket.socket(
            stdlib_socket.AF_INET if family == -1 else family,
            stdlib_socket.SOCK_STREAM if type == -1 else type,
            max(proto, 0),
        )

"""`socket.socket` in a simulation: made, bound and set to listen as usual, and then handed to trio.

Servers make their sockets by the standard library, and pass them to `trio.socket.from_stdlib_socket`; from there on they
are those of the simulated network. Calls that wait are for simulated threads (`simkit.threaded`): in a task they are refused.
"""

from __future__ import annotations

import functools
import socket as stdlib_socket
import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn, Self

import trio

from simkit._guard import refuse
from simkit._guard.state import here

if TYPE_CHECKING:
    from simkit._network.sockets import SimulatedSocket

_real = stdlib_socket.socket
_WAITING = (
    *("accept", "connect", "connect_ex", "recv", "recv_into", "recvfrom", "recvfrom_into", "recvmsg"),
    *("recvmsg_into", "send", "sendall", "sendfile", "sendmsg", "sendto", "detach", "dup"),
)


class _Kind(type):
    """Real sockets count as instances; a class that is derived inside a simulation is derived from the real one."""

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **kwargs: Any) -> Any:
        if any(isinstance(base, _Kind) for base in bases):
            own = tuple(_real if isinstance(base, _Kind) else base for base in bases)
            return types.new_class(name, own, kwargs, lambda body: body.update(namespace))
        return super().__new__(cls, name, bases, namespace, **kwargs)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _real) or cls in type(instance).__mro__

    def __subclasscheck__(cls, subclass: type) -> bool:
        return subclass is cls or issubclass(subclass, _real)


class PlainSocket(metaclass=_Kind):
    """A socket of the standard library in a simulation: all but what waits."""

    simulated: SimulatedSocket

    def __new__(cls, family: int = -1, type: int = -1, proto: int = -1, fileno: int | None = None) -> Any:  # noqa: A002
        if here() is None or fileno is not None:
            return _real(family, type, proto, fileno)
        kind = stdlib_socket.SOCK_STREAM if type == -1 else type & ~_FLAGS
        simulated = trio.socket.socket(stdlib_socket.AF_INET if family == -1 else family, kind, max(0, proto))
        return cls.of(simulated)

    @classmethod
    def of(cls, simulated: Any) -> Any:
        """One over a socket of the simulated network."""
        made = super().__new__(cls)
        made.simulated = simulated
        made._inheritable = made._closed = False
        made._timeout = None
        made._io_refs = 0
        return made

    _inheritable: bool
    _timeout: float | None
    _closed: bool
    _io_refs: int

    def __getattr__(self, name: str) -> Any:
        if name in _WAITING:
            from simkit.threaded import sockets as blocking

            if blocking.can_block(self, name):
                return functools.partial(blocking.call, self, name)
            return functools.partial(self._refuse, name)
        if name in _SHARED:
            return getattr(self.simulated, name)
        raise AttributeError(f"'socket' object has no attribute {name!r}")

    def __repr__(self) -> str:
        return repr(self.simulated)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc_info: object) -> None:
        self.close()

    def makefile(self, *args: Any, **kwargs: Any) -> Any:
        """A file over it, for threads that may wait; as the real one makes it."""
        make: Any = _real.makefile
        return make(self, *args, **kwargs)

    def close(self) -> None:
        """Close it once no file over it is open."""
        self._closed = True
        self._decref_socketios(0)

    def _decref_socketios(self, count: int = 1) -> None:
        """`socket.SocketIO` calls this when a file is closed."""
        self._io_refs -= count
        if self._closed and self._io_refs <= 0:
            self.simulated.close()

    def bind(self, address: Any) -> None:
        """Take an address at once."""
        self.simulated.bind_now(address)

    def get_inheritable(self) -> bool:
        return self._inheritable

    def set_inheritable(self, inheritable: bool) -> None:
        """Only other programs inherit sockets, and there are none."""
        self._inheritable = inheritable

    def setblocking(self, flag: bool) -> None:
        self._timeout = None if flag else 0.0

    def getblocking(self) -> bool:
        return self._timeout != 0

    def settimeout(self, seconds: float | None) -> None:
        self._timeout = seconds

    def gettimeout(self) -> float | None:
        return self._timeout

    def _refuse(self, name: str, *args: Any, **_kwargs: Any) -> NoReturn:
        raise refuse.refusal("socket.blocking", (name, *args))


#: What is that of the simulated socket.
_SHARED = frozenset(
    (
        *("family", "fileno", "getpeername", "getsockname", "getsockopt", "listen", "proto", "setsockopt"),
        *("shutdown", "type"),
    )
)
#: What Linux lets a caller add to the kind of a socket.
_FLAGS = getattr(stdlib_socket, "SOCK_NONBLOCK", 0) | getattr(stdlib_socket, "SOCK_CLOEXEC", 0)


def _from_stdlib_socket(real: Callable[[Any], Any]) -> Callable[[Any], Any]:
    @functools.wraps(real)
    def stand_in(sock: Any) -> Any:
        if type(sock) is PlainSocket:
            return sock.simulated
        kept = stdlib_socket.socket
        stdlib_socket.socket = _real  # type: ignore[misc]  # trio takes no sockets of another class than this
        try:
            return real(sock)
        finally:
            stdlib_socket.socket = kept  # type: ignore[misc]

    return stand_in


def table() -> Iterator[tuple[types.ModuleType, str, Any, Any]]:
    """Every (module, name, real, stand-in), as `virtual.table` gives them."""
    yield stdlib_socket, "socket", _real, PlainSocket
    wrap = trio.socket.from_stdlib_socket
    yield trio.socket, "from_stdlib_socket", wrap, _from_stdlib_socket(wrap)

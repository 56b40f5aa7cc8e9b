"""trio's socket object on the simulated network: what `trio.SocketStream` and `trio.SocketListener` call, and no more."""

from __future__ import annotations

import errno
import os
import re
import socket as stdlib_socket
import struct
from typing import TYPE_CHECKING, Any, NoReturn, Self

import trio

from simkit._network.endpoint import Address, Endpoint
from simkit._network.keepalive import DEFAULTS, RANGES, Keepalive, wanted
from simkit._network.listening import Listener
from simkit.process import Process, ProcessDead

if TYPE_CHECKING:
    from simkit.network import Network


_DOTTED = re.compile(r"(\d{1,3}\.){3}\d{1,3}", re.ASCII)


class SimulatedSocket(trio.socket.SocketType):
    """A TCP socket of one simulated process, or of the outside."""

    def __init__(self, network: Network, number: int, owner: Process | None, place: str) -> None:
        super().__init__()
        self.number = number
        self.owner = owner
        self.place = place
        self.local: Address = ("0.0.0.0", 0)  # noqa: S104 - an address of the simulation
        self.end: Endpoint | None = None
        self.listener: Listener | None = None
        self._network = network
        self._closed = False
        self._options: dict[tuple[int, int], int | bytes] = {}
        self._probes: Keepalive | None = None

    def __repr__(self) -> str:
        return f"<simulated socket {self.number} of {self.place}, {self.local[0]}:{self.local[1]}>"

    # ---- what does not block

    @property
    def family(self) -> stdlib_socket.AddressFamily:
        return stdlib_socket.AF_INET

    @property
    def type(self) -> stdlib_socket.SocketKind:
        return stdlib_socket.SOCK_STREAM

    @property
    def proto(self) -> int:
        return stdlib_socket.IPPROTO_TCP

    @property
    def did_shutdown_SHUT_WR(self) -> bool:  # noqa: N802 - trio's name
        return self.end is not None and self.end.shut_write

    def fileno(self) -> int:
        return -1 if self._closed else self.number

    def getsockname(self) -> Address:
        self._check()
        return self.local

    def getpeername(self) -> Address:
        return self._connected().remote

    def getsockopt(self, level: int, optname: int, buflen: int | None = None) -> Any:
        self._check()
        if (level, optname) == (stdlib_socket.SOL_SOCKET, stdlib_socket.SO_ACCEPTCONN):
            return int(self.listener is not None)
        usual = DEFAULTS.get((level, optname), 0)
        return self._options.get((level, optname), usual if buflen is None else b"")

    def setsockopt(self, level: int, optname: int, value: Any, optlen: int | None = None) -> None:
        self._check()
        if (level, optname) in RANGES and not (isinstance(value, int) and 1 <= value <= RANGES[level, optname]):
            raise _error(errno.EINVAL)
        self._options[level, optname] = value if isinstance(value, int) else bytes(value or b"")
        self.keep_alive()

    def get_inheritable(self) -> bool:
        return False

    def set_inheritable(self, inheritable: bool) -> None:
        if inheritable:
            _unsupported("inheriting")

    def listen(self, backlog: int = 128) -> None:
        self._check()
        if self.end is not None:
            raise _error(errno.EINVAL)
        if self.listener is None:
            self.listener = self._network.listen(self, max(1, backlog))

    def shutdown(self, flag: int) -> None:
        end = self._connected()
        if flag in {stdlib_socket.SHUT_RD, stdlib_socket.SHUT_RDWR}:
            end.shutdown_read()
        if flag in {stdlib_socket.SHUT_WR, stdlib_socket.SHUT_RDWR}:
            end.shutdown_write()

    def is_readable(self) -> bool:
        if self.listener is not None:
            return bool(self.listener.queue)
        return self._connected().readable

    def close(self) -> None:
        """Close; harmless when closed or dead."""
        if not self._closed:
            self._closed = True
            self._stop_probes()
            if self.listener is not None:
                self.listener.close()
            if self.end is not None:
                self.end.close(reset=self._lingers_zero())
            self._network.forget_socket(self)

    def abort(self) -> None:
        """Close by a reset: what is unsent is lost, and the peer meets ECONNRESET."""
        if self.end is not None:
            self.end.close(reset=True)
        self.close()

    def inherit(self, listening: SimulatedSocket) -> None:
        """Take over the options of the socket that accepted this one, as Linux does."""
        if listening._options:
            self._options.update(listening._options)
            self.keep_alive()

    def keep_alive(self) -> None:
        """Probe the peer as the options say, from now on."""
        settings, probes = wanted(self._options), self._probes
        if self.end is None or (probes is None and settings is None) or (probes and probes.settings == settings):
            return
        self._stop_probes()
        self._probes = None if settings is None else Keepalive(self._network, self.end, settings)

    def die(self, *, reset: bool, drop: bool) -> None:
        """The process is gone."""
        self._closed = True
        self._stop_probes()
        if self.listener is not None:
            self.listener.die()
        if self.end is not None:
            self.end.die(reset=reset, drop=drop)

    def vanish(self) -> None:
        """The machine is off, and nobody is told."""
        self._closed = True
        self._stop_probes()
        if self.listener is not None:
            self.listener.die(silent=True)
        if self.end is not None:
            self.end.vanish()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        *exc_info: object,
    ) -> None:
        self.close()

    # ---- what may block

    async def bind(self, address: Any) -> None:
        self._check()
        host, port = await self._resolved(address, local=True)
        await trio.lowlevel.checkpoint()
        self._network.bind(self, host, port)

    def bind_now(self, address: Any) -> None:
        """As `bind`, without waiting: what a socket of the standard library does."""
        self._check()
        host, port = address
        if host == "":
            host = "0.0.0.0"  # noqa: S104 - an address of the simulation
        self._network.bind(self, host if _DOTTED.fullmatch(host) else self._network.resolve(host), port)

    async def connect(self, address: Any) -> None:
        self._check()
        if self.end is not None:
            raise _error(errno.EISCONN)
        host, port = await self._resolved(address, local=False)
        await trio.lowlevel.checkpoint_if_cancelled()
        try:
            await self._network.connect(self, host, port)
        except trio.Cancelled:
            self.close()  # as trio does: a connect half way is of no use to anyone
            raise

    async def accept(self) -> tuple[trio.socket.SocketType, Address]:
        self._check()
        if self.listener is None:
            raise _error(errno.EINVAL)
        await trio.lowlevel.checkpoint_if_cancelled()
        if self.listener.queue:
            end = self.listener.queue.popleft()
            accepted = self._network.adopt(self, end)  # before the checkpoint: a kill there must reset it
            await trio.lowlevel.cancel_shielded_checkpoint()
        else:
            end = await self.listener.next()
            accepted = self._network.adopt(self, end)
        return accepted, end.remote

    async def recv(self, buflen: int, flags: int = 0, /) -> bytes:
        if self._network.slow_readers:
            buflen = await self._network.read_slowly(self.place, buflen)
        end = self._connected()
        _no_flags(flags)
        await trio.lowlevel.checkpoint_if_cancelled()
        data = end.read(buflen)
        if data is not None:
            await trio.lowlevel.cancel_shielded_checkpoint()
        while data is None:
            await end.reader.wait()
            data = end.read(buflen)
        return data

    async def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
        view = memoryview(buffer).cast("B")
        data = await self.recv(nbytes or len(view), flags)
        view[: len(data)] = data
        return len(data)

    async def send(self, data: Any, flags: int = 0, /) -> int:
        end = self._connected()
        _no_flags(flags)
        await trio.lowlevel.checkpoint_if_cancelled()
        view = memoryview(data).cast("B")
        sent = end.write(view)
        if sent is not None:
            await trio.lowlevel.cancel_shielded_checkpoint()
        while sent is None:
            await end.writer.wait()
            sent = end.write(view)
        return sent

    def send_now(self, data: Any) -> int:
        """Send what the window takes without waiting, and return how much."""
        return self._connected().write(memoryview(data).cast("B")) or 0

    async def wait_writable(self) -> None:
        end = self._connected()
        await trio.lowlevel.checkpoint()
        while not end.writable:
            await end.writer.wait()

    # ---- what a simulated TCP socket does not do

    def detach(self) -> int:
        _unsupported("detach")

    def dup(self) -> trio.socket.SocketType:
        _unsupported("dup")

    async def recvfrom(self, bufsize: int, flags: int = 0, /) -> tuple[bytes, Any]:
        return await self.recv(bufsize, flags), self.getpeername()

    async def sendto(self, *args: Any) -> int:
        _unsupported("sendto")

    # ---- inside

    def _stop_probes(self) -> None:
        if self._probes is not None:
            self._probes.stop()

    def _check(self) -> None:
        if self.owner is not None and self.owner.status is not None:
            raise ProcessDead(f"{self!r} belongs to a process that is gone")
        if self._closed:
            raise _error(errno.EBADF)

    def _connected(self) -> Endpoint:
        self._check()
        if self.end is None:
            raise _error(errno.ENOTCONN)
        return self.end

    def _lingers_zero(self) -> bool:
        """Whether SO_LINGER is on with a time of zero: close resets."""
        value = self._options.get((stdlib_socket.SOL_SOCKET, stdlib_socket.SO_LINGER), b"")
        return isinstance(value, bytes) and len(value) == struct.calcsize("ii") and struct.unpack("ii", value) == (1, 0)

    async def _resolved(self, address: Any, *, local: bool) -> Address:
        host, port = address
        if host == "":
            host = "0.0.0.0" if local else "127.0.0.1"  # noqa: S104 - an address of the simulation
        if isinstance(host, str) and isinstance(port, int) and _DOTTED.fullmatch(host):
            return host, port  # an address already: nothing to ask
        found = await trio.socket.getaddrinfo(host, port, stdlib_socket.AF_INET, stdlib_socket.SOCK_STREAM)
        name, number = found[0][4][:2]
        return str(name), int(number)


def _error(number: int) -> OSError:
    return OSError(number, os.strerror(number))


def _no_flags(flags: int) -> None:
    if flags:
        _unsupported("flags of send and receive")


def _unsupported(what: str) -> NoReturn:
    raise OSError(errno.EOPNOTSUPP, f"simulated sockets have no {what}")

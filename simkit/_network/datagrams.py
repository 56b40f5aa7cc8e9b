"""UDP: single messages, each of which may be lost, doubled or overtaken by another; nobody is told.

What a cut link meets is lost, what a clogged one meets is late. A full receive queue drops what comes. A connected socket
learns by ECONNREFUSED at its next call that nobody is bound where it sent to, as from ICMP.
"""

from __future__ import annotations

import collections
import errno
import os
import socket as stdlib_socket
from typing import TYPE_CHECKING, Any, NamedTuple

import trio

from simkit._network.endpoint import Address
from simkit._network.sockets import SimulatedSocket
from simkit._network.waiter import Waiter

if TYPE_CHECKING:
    from simkit.network import Network
    from simkit.process import Process

DATAGRAM_BYTES_MAX = 65_507
#: So many bytes wait for a program that does not read; as `net.core.rmem_default` on Linux.
QUEUE_BYTES_MAX = 212_992


class Route(NamedTuple):  # one for each address that a socket sends to
    """How messages of a socket come to an address."""

    here: str
    place: str
    link: tuple[str, str]  # both of these
    source: Address
    bound: tuple[int, str, int]  # protocol, place and port of who gets them


class DatagramSocket(SimulatedSocket):
    """A UDP socket of one simulated process, or of the outside."""

    def __init__(self, network: Network, number: int, owner: Process | None, place: str) -> None:
        super().__init__(network, number, owner, place)
        self._queue: collections.deque[tuple[bytes, Address]] = collections.deque()
        self._queued_bytes = 0
        self._reader = Waiter("receiving on")
        self._peer: Address | None = None
        self._refused = False
        #: By address: resolved already, and its host found.
        self._routes: dict[Address, Route] = {}

    @property
    def type(self) -> stdlib_socket.SocketKind:
        return stdlib_socket.SOCK_DGRAM

    @property
    def proto(self) -> int:
        return stdlib_socket.IPPROTO_UDP

    def getpeername(self) -> Address:
        self._check()
        if self._peer is None:
            raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))
        return self._peer

    def listen(self, backlog: int = 128) -> None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    async def accept(self) -> tuple[trio.socket.SocketType, Address]:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    def shutdown(self, flag: int) -> None:
        self.getpeername()

    def is_readable(self) -> bool:
        return bool(self._queue)

    def close(self) -> None:
        """Close; what waits is dropped."""
        self._reader.fail(trio.ClosedResourceError("this socket was closed by another task"))
        super().close()

    def die(self, *, reset: bool, drop: bool) -> None:
        """The process is gone."""
        self._reader.forget()
        self._closed = True

    def vanish(self) -> None:
        """The machine is off."""
        self.die(reset=False, drop=True)

    # ---- what may block

    async def connect(self, address: Any) -> None:
        self._check()
        self._peer = await self._resolved(address, local=False)
        if not self.local[1]:
            self._network.bind(self, "0.0.0.0", 0)  # noqa: S104 - an address of the simulation

    async def sendto(self, *args: Any) -> int:
        target = args[-1]
        route = self._routes.get(target)
        if route is None:
            target = await self._resolved(target, local=False)
        await trio.lowlevel.checkpoint()
        data = args[0] if type(args[0]) is bytes else bytes(args[0])
        if route is None or self._refused or len(data) > DATAGRAM_BYTES_MAX:
            return self._send(data, target)
        if self._closed or (self.owner is not None and self.owner.status is not None):
            self._check()
        self._network.send_datagram(self, data, route)
        return len(data)

    async def send(self, data: Any, flags: int = 0, /) -> int:
        target = self.getpeername()
        await trio.lowlevel.checkpoint()
        return self._send(bytes(data), target)

    async def recvfrom(self, bufsize: int, flags: int = 0, /) -> tuple[bytes, Any]:
        self._check()
        queue = self._queue
        if queue:
            await trio.lowlevel.checkpoint_if_cancelled()
            data, source = queue.popleft()  # before the checkpoint: another task may ask meanwhile
            self._queued_bytes -= len(data)
            await trio.lowlevel.cancel_shielded_checkpoint()
        else:
            while not queue:
                if self._refused:
                    self._tell_refusal()
                await self._reader.wait()
            if self._closed:
                self._check()
            data, source = queue.popleft()
            self._queued_bytes -= len(data)
        return data if len(data) <= bufsize else data[:bufsize], source

    async def recv(self, buflen: int, flags: int = 0, /) -> bytes:
        data, _ = await self.recvfrom(buflen)
        return data

    async def wait_writable(self) -> None:
        self._check()
        await trio.lowlevel.checkpoint()

    # ---- for the network

    def arrived(self, data: bytes, source: Address) -> bool:
        """A message is here; False when there is no room for it."""
        if self._peer is not None and source != self._peer:
            return True  # not for this one, as the peer is another
        if self._queued_bytes + len(data) > QUEUE_BYTES_MAX:
            return False
        self._queue.append((data, source))
        self._queued_bytes += len(data)
        self._reader.wake()
        return True

    def refused(self) -> None:
        """Nobody was bound where the last message went."""
        if self._peer is not None:
            self._refused = True
            self._reader.wake()

    def _send(self, data: bytes, target: Address) -> int:
        self._check()
        if self._refused:
            self._tell_refusal()
        if len(data) > DATAGRAM_BYTES_MAX:
            raise OSError(errno.EMSGSIZE, os.strerror(errno.EMSGSIZE))
        if not self.local[1]:
            self._network.bind(self, "0.0.0.0", 0)  # noqa: S104 - an address of the simulation
        route = self._routes.get(target) or self._network.route(self, target)
        if route is not None:  # else it goes wherever such packets go
            self._routes[target] = route
            self._network.send_datagram(self, data, route)
        return len(data)

    def _tell_refusal(self) -> None:
        self._refused = False
        raise OSError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))

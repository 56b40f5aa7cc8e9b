"""The network half of a simulated event loop: connections, servers, datagrams and names, over the world's own network."""

from __future__ import annotations

import asyncio
import functools
import socket as stdlib_socket
import ssl as stdlib_ssl
from asyncio import sslproto
from collections.abc import Callable
from typing import Any, NoReturn, cast

import trio

from simkit.aio.datagrams import DatagramTransport
from simkit.aio.servers import SimulatedServer
from simkit.aio.transports import StreamTransport

__all__ = ["Networking"]

_BACKLOG = 100


class Networking:
    """What asyncio's loops do with sockets; mixed into the loop."""

    def __init__(self) -> None:
        super().__init__()
        self._open: dict[Any, None] = {}  # transports and servers, in the order in which they were opened

    # ---- streams

    async def create_connection(
        self,
        protocol_factory: Callable[[], Any],
        host: str | None = None,
        port: int | None = None,
        *,
        ssl: Any = None,
        sock: Any = None,
        local_addr: tuple[str, int] | None = None,
        server_hostname: str | None = None,
        ssl_handshake_timeout: float | None = None,
        ssl_shutdown_timeout: float | None = None,
        **_tuning: Any,
    ) -> tuple[asyncio.Transport, Any]:
        """As in asyncio; what tunes the choice between several addresses is taken and means nothing here."""
        if server_hostname is None and ssl:
            server_hostname = host
        if ssl and not server_hostname:
            raise ValueError("You must set server_hostname when using ssl without a host")
        if sock is None:
            if host is None or port is None:
                raise ValueError("host and port was not specified and no sock specified")
            sock = await self._loop.in_trio(_connected, host, port, local_addr)
        elif host is not None or port is not None:
            raise ValueError("host/port and sock can not be specified at the same time")
        waiter: asyncio.Future[None] = self._loop.create_future()
        protocol = protocol_factory()
        transport = self._over(
            sock,
            protocol,
            waiter=waiter,
            ssl=ssl,
            server_hostname=server_hostname,
            handshake_s=ssl_handshake_timeout,
            shutdown_s=ssl_shutdown_timeout,
        )
        try:
            await waiter
        except BaseException:
            transport.close()
            raise
        return transport, protocol

    async def connect_accepted_socket(
        self, protocol_factory: Callable[[], Any], sock: Any, *, ssl: Any = None, **timeouts: Any
    ) -> tuple[asyncio.Transport, Any]:
        """As in asyncio, for a socket of the simulation."""
        protocol, waiter = protocol_factory(), self._loop.create_future()
        transport = self._over(
            sock,
            protocol,
            waiter=waiter,
            ssl=ssl,
            server_side=True,
            handshake_s=timeouts.get("ssl_handshake_timeout"),
            shutdown_s=timeouts.get("ssl_shutdown_timeout"),
        )
        await waiter
        return transport, protocol

    async def create_server(
        self,
        protocol_factory: Callable[[], Any],
        host: Any = None,
        port: int | None = None,
        *,
        sock: Any = None,
        backlog: int = _BACKLOG,
        ssl: Any = None,
        start_serving: bool = True,
        ssl_handshake_timeout: float | None = None,
        ssl_shutdown_timeout: float | None = None,
        **_tuning: Any,
    ) -> SimulatedServer:
        """As in asyncio."""
        if isinstance(ssl, bool):
            raise TypeError("ssl argument must be an SSLContext or None")
        if sock is not None:
            sockets = [_simulated(sock)]
        else:
            hosts = [host] if host is None or isinstance(host, str) else list(host)
            found = await self._loop.in_trio(_listening, list(dict.fromkeys(hosts)), port or 0, backlog)
            sockets = cast("list[Any]", found)
        make = functools.partial(
            self._over,
            ssl=ssl,
            server_side=True,
            handshake_s=ssl_handshake_timeout,
            shutdown_s=ssl_shutdown_timeout,
        )
        server = SimulatedServer(self._loop, sockets, protocol_factory, make)
        self._open[server] = None
        if start_serving:
            await server.start_serving()
        return server

    def _over(
        self,
        sock: Any,
        protocol: Any,
        *,
        waiter: asyncio.Future[None] | None = None,
        ssl: Any = None,
        server_side: bool = False,
        server_hostname: str | None = None,
        server: SimulatedServer | None = None,
        handshake_s: float | None = None,
        shutdown_s: float | None = None,
    ) -> asyncio.Transport:
        """A transport over a connected socket, through TLS when `ssl` says so."""
        sock = _simulated(sock)
        if not ssl:
            return StreamTransport(self._loop, sock, protocol, waiter, server)
        context = stdlib_ssl.create_default_context() if ssl is True else ssl
        make: Any = sslproto.SSLProtocol
        tls = make(
            self._loop,
            protocol,
            context,
            waiter,
            server_side,
            server_hostname,
            ssl_handshake_timeout=handshake_s,
            ssl_shutdown_timeout=shutdown_s,
        )
        StreamTransport(self._loop, sock, tls, None, server)
        return cast("asyncio.Transport", tls._app_transport)  # as asyncio's own loops do

    # ---- datagrams

    async def create_datagram_endpoint(
        self,
        protocol_factory: Callable[[], Any],
        local_addr: Any = None,
        remote_addr: Any = None,
        *,
        sock: Any = None,
        **_tuning: Any,
    ) -> tuple[asyncio.DatagramTransport, Any]:
        """As in asyncio."""
        if sock is None:
            sock = await self._loop.in_trio(_datagram_socket, local_addr, remote_addr)
        protocol, waiter = protocol_factory(), self._loop.create_future()
        transport = DatagramTransport(self._loop, sock, protocol, remote_addr, waiter)
        await waiter
        return transport, protocol

    # ---- sockets that a library made itself

    async def sock_connect(self, sock: Any, address: Any) -> None:
        """As in asyncio."""
        await self._loop.in_trio(_simulated(sock).connect, address)

    async def sock_accept(self, sock: Any) -> tuple[Any, Any]:
        """As in asyncio."""
        return cast("tuple[Any, Any]", await self._loop.in_trio(_simulated(sock).accept))

    async def sock_recv(self, sock: Any, n: int) -> bytes:
        """As in asyncio."""
        return cast("bytes", await self._loop.in_trio(_simulated(sock).recv, n))

    async def sock_recv_into(self, sock: Any, buf: Any) -> int:
        """As in asyncio."""
        return cast("int", await self._loop.in_trio(_simulated(sock).recv_into, buf))

    async def sock_sendall(self, sock: Any, data: Any) -> None:
        """As in asyncio."""
        rest = memoryview(data).cast("B")
        while rest:
            rest = rest[await self._loop.in_trio(_simulated(sock).send, rest) :]

    # ---- names

    async def getaddrinfo(
        self,
        host: Any,
        port: Any,
        *,
        family: int = 0,
        type: int = 0,
        proto: int = 0,
        flags: int = 0,
    ) -> list[Any]:
        """By the names of the world's hosts."""
        found = await self._loop.in_trio(trio.socket.getaddrinfo, host, port, family, type, proto, flags)
        return cast("list[Any]", found)

    async def getnameinfo(self, sockaddr: Any, flags: int = 0) -> tuple[str, str]:
        """By the names of the world's hosts."""
        found = await self._loop.in_trio(trio.socket.getnameinfo, sockaddr, flags)
        return cast("tuple[str, str]", found)

    # ---- inside

    @property
    def _loop(self) -> Any:
        return self

    def opened(self, what: Any) -> None:
        """Remember what is to be closed at the end."""
        self._open[what] = None

    def forget(self, what: Any) -> None:
        """It is closed."""
        self._open.pop(what, None)

    def close_network(self) -> None:
        """The program is over: its sockets are closed, as an operating system would."""
        for one in list(self._open):
            one.shut()
        self._open.clear()

    def drop_network(self) -> None:
        """The process is dead: its sockets are gone already, and whoever holds a transport finds it closing."""
        for one in self._open:
            one.drop()

    # ---- what there is not

    def add_reader(self, fd: Any, callback: Callable[..., object], *args: Any) -> NoReturn:
        """Refused: there are no descriptors to watch."""
        raise _refused("add_reader")

    def add_writer(self, fd: Any, callback: Callable[..., object], *args: Any) -> NoReturn:
        """Refused: there are no descriptors to watch."""
        raise _refused("add_writer")

    def remove_reader(self, fd: Any) -> bool:
        """There is none."""
        return False

    def remove_writer(self, fd: Any) -> bool:
        """There is none."""
        return False


def _simulated(sock: Any) -> Any:
    """The socket of the simulation behind one that a library made by `socket.socket`."""
    return getattr(sock, "simulated", sock)


def _refused(what: str) -> Exception:
    from simkit.aio.loop import unsupported

    return unsupported(what, "streams: asyncio.open_connection and start_server, which are simulated")


async def _connected(host: str, port: int, local: tuple[str, int] | None) -> trio.socket.SocketType:
    sock = trio.socket.socket()
    try:
        if local is not None:
            await sock.bind(local)
        await sock.connect((host, port))
    except BaseException:
        sock.close()
        raise
    return sock


async def _listening(hosts: list[str | None], port: int, backlog: int) -> list[trio.socket.SocketType]:
    sockets: list[trio.socket.SocketType] = []
    try:
        for host in hosts:
            sock = trio.socket.socket()
            sockets.append(sock)
            await sock.bind((host or "", port))
            sock.listen(backlog)
    except BaseException:
        for sock in sockets:
            sock.close()
        raise
    return sockets


async def _datagram_socket(local: Any, remote: Any) -> trio.socket.SocketType:
    sock = trio.socket.socket(stdlib_socket.AF_INET, stdlib_socket.SOCK_DGRAM)
    try:
        if local is not None or remote is None:
            await sock.bind(local or ("", 0))
        if remote is not None:
            await sock.connect(remote)
    except BaseException:
        sock.close()
        raise
    return sock

"""What trio's own hooks call: the socket factory and the resolver of a simulation."""

from __future__ import annotations

import errno
import socket as stdlib_socket
from typing import TYPE_CHECKING, Any

import trio

from simkit._network.datagrams import DatagramSocket
from simkit._network.sockets import SimulatedSocket

if TYPE_CHECKING:
    from simkit.network import Network
    from simkit.world import World


class Factory(trio.abc.SocketFactory):
    """What `trio.socket.socket` asks."""

    def __init__(self, network: Network) -> None:
        self._network = network

    def socket(self, family: int = stdlib_socket.AF_INET, type: int = stdlib_socket.SOCK_STREAM, proto: int = 0) -> Any:  # noqa: A002
        if family != stdlib_socket.AF_INET:
            raise OSError(errno.EAFNOSUPPORT, "the simulated network speaks IPv4")
        if type not in {stdlib_socket.SOCK_STREAM, stdlib_socket.SOCK_DGRAM}:
            raise OSError(errno.EPROTONOSUPPORT, "the simulated network speaks TCP and UDP")
        return self._network.socket(SimulatedSocket if type == stdlib_socket.SOCK_STREAM else DatagramSocket)


class Resolver(trio.abc.HostnameResolver):
    """What `trio.socket.getaddrinfo` asks."""

    def __init__(self, network: Network) -> None:
        self._network = network

    async def getaddrinfo(
        self,
        host: bytes | None,
        port: bytes | str | int | None,
        family: int = 0,
        type: int = 0,  # noqa: A002 - its name there
        proto: int = 0,
        flags: int = 0,
    ) -> Any:
        await trio.lowlevel.checkpoint()
        if family not in {stdlib_socket.AF_UNSPEC, stdlib_socket.AF_INET}:
            raise stdlib_socket.gaierror(stdlib_socket.EAI_FAMILY, "the simulated network speaks IPv4")
        address = self._network.resolve("localhost" if host is None else host.decode("ascii"))
        where = (address, int(port or 0))
        if type == stdlib_socket.SOCK_DGRAM:
            return [(stdlib_socket.AF_INET, stdlib_socket.SOCK_DGRAM, stdlib_socket.IPPROTO_UDP, "", where)]
        return [(stdlib_socket.AF_INET, stdlib_socket.SOCK_STREAM, stdlib_socket.IPPROTO_TCP, "", where)]

    async def getnameinfo(self, sockaddr: Any, flags: int) -> tuple[str, str]:
        await trio.lowlevel.checkpoint()
        host, port = sockaddr[:2]
        return self._network.name_of(host) or host, str(port)


class LateFactory(Factory):
    """The factory of a world, which asks for its network when somebody asks for a socket: most runs have none."""

    def __init__(self, world: World) -> None:
        self._world = world

    @property
    def _network(self) -> Network:  # type: ignore[override]
        return self._world.network


class LateResolver(Resolver):
    """Its resolver, likewise."""

    def __init__(self, world: World) -> None:
        self._world = world

    @property
    def _network(self) -> Network:  # type: ignore[override]
        return self._world.network

"""A simulated TCP and UDP network under trio's own hooks: `trio.open_tcp_stream`, `trio.serve_tcp` and friends, unmodified.

The map: `Network` knows hosts by name and address, holds listeners and connections; `installed(world)` puts it under
trio for the running simulation. `_network` holds the parts: `ether` what lies between places and what goes wrong there,
`pipe` one direction, `endpoint` one end, `connecting` an attempt, `listening` a port, `sockets` trio's socket object,
`datagrams` UDP.

A *place* is a host by its name; the outside, which belongs to no host and is never killed, is the place `OUTSIDE`.
Everything that takes time is a callback timer of the world. What TCP hides, stays hidden: loss and reordering of
packets show as latency, a cut link as a stall until it heals, a broken connection as a reset.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket as stdlib_socket
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

import trio

from simkit._network.addresses import OUTSIDE, OUTSIDE_ADDRESS
from simkit._network.connecting import Attempt
from simkit._network.datagrams import DatagramSocket, Route
from simkit._network.endpoint import Address, Endpoint
from simkit._network.ether import Ether, NetworkOptions
from simkit._network.hooks import Factory, Resolver
from simkit._network.listening import Listener
from simkit._network.sockets import SimulatedSocket
from simkit.process import Process, current_process

if TYPE_CHECKING:
    from simkit.world import World

__all__ = ["OUTSIDE", "Network", "NetworkOptions", "SimulatedSocket", "abort", "installed"]

ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - an address of the simulation
EPHEMERAL_PORT_MIN = 49152
PORT_MAX = 65535
_UDP = stdlib_socket.IPPROTO_UDP
#: Hosts that a message names.
_HOSTS_SHOWN_MAX = 8
#: Protocol, place and port.
_Bound: TypeAlias = tuple[int, str, int]


class Network(Ether):
    """All hosts' TCP and UDP. `fired` counts every fault that really happened."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._aliases: dict[str, str] = {}
        self._places: dict[str, str] = {OUTSIDE_ADDRESS: OUTSIDE}
        self._listeners: dict[tuple[str, int], Listener] = {}
        self._bound: dict[_Bound, SimulatedSocket] = {}
        self._sockets: dict[int, SimulatedSocket] = {}
        self._attempts: dict[int, Attempt] = {}
        self._owned: dict[Process, dict[int, SimulatedSocket]] = {}
        self._numbers = {"socket": 0, "connection": 0}
        self._next_port: dict[str, int] = {}

    # ---- what a test or a driver does to the network

    def alias(self, name: str, host: str = OUTSIDE) -> None:
        """Let `name` resolve to `host`, e.g. the name of a service that the outside runs."""
        self.mention("Network.alias: host", host)
        self._aliases[name] = host

    def reset(self, a: str, b: str) -> int:
        """Break every connection between two places, now and at both ends; return how many."""
        broken = [end for end in self.connections.values() if {end.place, end.peer.place} == {a, b}]
        for end in broken:
            end.break_both()
        if broken:
            self.count("reset", a, b)
        return len(broken)

    # ---- names and addresses

    def place_of(self, process: Process | None) -> str:
        """Return the place of a process."""
        return OUTSIDE if process is None else process.host.name

    def address_of(self, place: str) -> str:
        """Return the address of a place."""
        return OUTSIDE_ADDRESS if place == OUTSIDE else self._world.hosts[place].address

    def resolve(self, name: str) -> str:
        """Return the address that `name` has for the current process; gaierror when there is none."""
        name = self._aliases.get(name, name)
        if name == "localhost":
            return "127.0.0.1"
        if self._weather.foul and self._weather.strikes("dns", self.place_of(current_process()), name):
            raise stdlib_socket.gaierror(stdlib_socket.EAI_AGAIN, "Temporary failure in name resolution")
        if name != OUTSIDE and name not in self._world.hosts:
            raise stdlib_socket.gaierror(stdlib_socket.EAI_NONAME, self._nobody(name))
        return self.address_of(name)

    def _nobody(self, name: str) -> str:
        """What to say of a host that there is not."""
        hosts = [repr(one) for one in (*self._world.hosts, *self._aliases)]
        more = [f"{len(hosts) - _HOSTS_SHOWN_MAX} more"] if len(hosts) > _HOSTS_SHOWN_MAX else []
        there = ", ".join([*hosts[:_HOSTS_SHOWN_MAX], *more]) or "none yet: world.host(name) makes one"
        return f"no host is called {name!r} in this simulation; hosts: {there}"

    def name_of(self, address: str) -> str | None:
        """Return the place that has `address`."""
        place = self._places.get(address)
        if place is None:
            self._places.update((host.address, name) for name, host in self._world.hosts.items())
            place = self._places.get(address)
        return place

    # ---- for sockets

    def socket(self, kind: type[SimulatedSocket] = SimulatedSocket) -> SimulatedSocket:
        """Return a new socket of the current process."""
        owner = current_process()
        return self._new_socket(owner, self.place_of(owner), kind)

    def bind(self, socket: SimulatedSocket, host: str, port: int) -> None:
        """Give a socket an address; port 0 takes a free one."""
        own = self.address_of(socket.place)
        if host not in {ANY_ADDRESS, own} and not _is_loopback(host):
            raise OSError(errno.EADDRNOTAVAIL, f"{os.strerror(errno.EADDRNOTAVAIL)}: {host} is not {socket.place}'s")
        if socket.local[1]:
            raise OSError(errno.EINVAL, "this socket is bound already")
        if port and (socket.proto, socket.place, port) in self._bound:
            raise OSError(errno.EADDRINUSE, f"{os.strerror(errno.EADDRINUSE)}: port {port} of {socket.place}")
        socket.local = (host, port or self._free_port(socket.proto, socket.place))
        self._bound[socket.proto, socket.place, socket.local[1]] = socket

    def listen(self, socket: SimulatedSocket, backlog: int) -> Listener:
        """Let connections come in."""
        if not socket.local[1]:
            self.bind(socket, ANY_ADDRESS, 0)
        listener = Listener(socket.place, socket.local, backlog, self._stop_listening)
        self._listeners[socket.place, socket.local[1]] = listener
        return listener

    async def connect(self, socket: SimulatedSocket, host: str, port: int) -> None:
        """Connect a socket."""
        loopback = _is_loopback(host) or host == ANY_ADDRESS
        place = socket.place if loopback else self.name_of(host)
        if place is None:
            await trio.lowlevel.checkpoint()
            raise OSError(errno.EHOSTUNREACH, f"{os.strerror(errno.EHOSTUNREACH)}: {host}")
        if not socket.local[1]:
            self.bind(socket, ANY_ADDRESS, 0)
        socket.local = ("127.0.0.1" if loopback else self.address_of(socket.place), socket.local[1])
        target = ("127.0.0.1" if loopback else host, port)
        attempt = self._attempts[socket.number] = Attempt(self, (socket.place, socket.local), (place, target))
        try:
            socket.end = await attempt.outcome()
            socket.keep_alive()
        finally:
            self._attempts.pop(socket.number, None)

    def adopt(self, listening: SimulatedSocket, end: Endpoint) -> SimulatedSocket:
        """Return the socket of an accepted connection."""
        socket = self._new_socket(listening.owner, listening.place)
        socket.local, socket.end = end.local, end
        socket.inherit(listening)
        return socket

    def forget_socket(self, socket: SimulatedSocket) -> None:
        """A socket was closed; its port is free again."""
        attempt = self._attempts.pop(socket.number, None)
        if attempt is not None:
            attempt.abandon()
        self._sockets.pop(socket.number, None)
        if socket.owner in self._owned:
            self._owned[socket.owner].pop(socket.number, None)
        key = (socket.proto, socket.place, socket.local[1])
        if self._bound.get(key) is socket:
            del self._bound[key]

    def route(self, socket: DatagramSocket, target: Address) -> Route | None:
        """How messages of a bound socket come to `target`; None when no host has that address."""
        address, port = target
        place = self._places.get(address) or (socket.place if _is_loopback(address) else self.name_of(address))
        if place is None:
            return None
        here = socket.place
        source = ("127.0.0.1" if _is_loopback(address) else self.address_of(here), socket.local[1])
        return Route(here, place, (here, place), source, (_UDP, place, port))

    def send_datagram(self, socket: DatagramSocket, data: bytes, route: Route) -> None:
        """Let a message travel: once, twice or not at all."""
        here, place, link, source, bound = route
        trace, sent = self._world.trace, 0
        if trace.asides is None:
            trace.told.append(("net", "datagram", socket.number, here, place, len(data)))
        else:
            sent = len(trace)
            self.note("datagram", socket.number, here, place, len(data), data)
        if not self._weather.plain:
            self.carry_datagram(here, place, len(data), self._datagram_arrived, socket, data, source, bound, sent)
            return
        road = self._roads.get(link)  # as `carry_datagram`, in a hurry
        if road is None:
            road = self._road(here, place)
        if road.loses is not None and road.loses():
            self.count("datagram-loss", here, place)
            return
        timers, draw = self._timers, road.draw
        arrival = (link, socket, data, source, bound, sent)
        timers.post(timers.now_ns + road.travel_ns[0 if draw is None else draw()], self._arrives, arrival)
        if road.doubles is not None and road.doubles():
            self.count("datagram-duplicate", here, place)
            timers.post(timers.now_ns + road.travel_ns[0 if draw is None else draw()], self._arrives, arrival)

    def _arrives(
        self, link: tuple[str, str], sender: DatagramSocket, data: bytes, source: Address, bound: _Bound, sent: int
    ) -> None:
        """A message is at the end of its link: as `_arrive`, in a hurry."""
        weather = self._weather
        if self.cut or weather.clogged or not weather.plain:
            self._arrive(*link, self._datagram_arrived, (sender, data, source, bound, sent))
            return
        found = self._bound.get(bound)
        if type(found) is not DatagramSocket or found.local[0] != ANY_ADDRESS or self._world.trace.asides is not None:
            self._datagram_arrived(sender, data, source, bound, sent)
        elif not found.arrived(data, source):
            self.count("datagram-overflow")

    def _datagram_arrived(self, sender: DatagramSocket, data: bytes, source: Address, bound: _Bound, sent: int) -> None:
        found = self._bound.get(bound)
        if found is not None and not _reaches(found.local[0], source[0]):
            found = None
        trace = self._world.trace
        if trace.asides is not None:
            owner = None if found is None else found.owner
            trace.aside("arrives", sent, None if owner is None else owner.label)
        if isinstance(found, DatagramSocket):
            if not found.arrived(data, source):
                self.count("datagram-overflow")
        elif self.is_up(bound[1]):
            self.carry_datagram(bound[1], sender.place, 0, sender.refused)

    # ---- for connections

    def listener(self, place: str, local: Address) -> Listener | None:
        """Return who listens there for connections to that address."""
        found = self._listeners.get((place, local[1]))
        return None if found is None or not _reaches(found.local[0], local[0]) else found

    def next_connection(self) -> int:
        """Return a number for a new connection."""
        return self._next("connection")

    def forget(self, connection: int) -> None:
        """A connection is over on both sides."""
        self.connections.pop(connection, None)

    # ---- inside

    def _new_socket(
        self, owner: Process | None, place: str, kind: type[SimulatedSocket] = SimulatedSocket
    ) -> SimulatedSocket:
        socket = kind(self, self._next("socket"), owner, place)
        self._sockets[socket.number] = socket
        if owner is not None:
            owned = self._owned.get(owner)
            if owned is None:
                owned = self._owned[owner] = {}
                owner.on_death(lambda: self._bury(owner))
            owned[socket.number] = socket
        return socket

    def _bury(self, owner: Process) -> None:
        """Tell the peers of a process that died."""
        for socket in self._owned.pop(owner, {}).values():
            if socket.number in self._attempts:
                self._attempts[socket.number].forget_task()
            self.forget_socket(socket)
            killed = owner.status is not None and owner.status.kind == "killed"
            if not owner.host.up:
                self.count("half-open")
                socket.vanish()
                continue
            socket.die(
                reset=killed and self._dies_by_reset(socket),
                drop=killed and self._death_drops(socket),
            )

    def _dies_by_reset(self, socket: SimulatedSocket) -> bool:
        if self.options.death == "sampled":
            return self._stream.choose(f"death:{socket.place}", 2, (3, 1)) == 0
        return self.options.death == "reset"

    def _death_drops(self, socket: SimulatedSocket) -> bool:
        num, den = self.options.death_loses_in_flight
        possible = num > 0 or self._weather.open
        if not possible or not self._stream.chance(f"death-drops:{socket.place}", num, den):
            return False
        self.count("death-drops")
        return True

    def _stop_listening(self, listener: Listener) -> None:
        key = (listener.place, listener.local[1])
        if self._listeners.get(key) is listener:
            del self._listeners[key]

    def _free_port(self, proto: int, place: str) -> int:
        for _ in range(PORT_MAX - EPHEMERAL_PORT_MIN):
            port = self._next_port.get(place, EPHEMERAL_PORT_MIN)
            self._next_port[place] = port + 1 if port < PORT_MAX else EPHEMERAL_PORT_MIN
            if (proto, place, port) not in self._bound:
                return port
        raise OSError(errno.EADDRINUSE, f"{place} has no free port")

    def _next(self, what: str) -> int:
        self._numbers[what] += 1
        return self._numbers[what]


def _reaches(bound: str, address: str) -> bool:
    """Whether what is for `address`, or from its side of the machine, comes to a socket of that machine bound to `bound`."""
    return bound == ANY_ADDRESS or _is_loopback(bound) == _is_loopback(address)


def _is_loopback(address: str) -> bool:
    return address.startswith("127.")


def abort(stream: trio.SocketStream) -> None:
    """Close a simulated stream by a reset: what is unsent is lost, and the peer meets ECONNRESET."""
    socket = stream.socket
    if not isinstance(socket, SimulatedSocket):
        raise TypeError(f"{socket!r} is not on the simulated network")
    socket.abort()


@contextlib.contextmanager
def installed(world: World) -> Iterator[Network]:
    """Put `world.network` under trio in this block; enter it inside the running simulation."""
    network = world.network
    factory = trio.socket.set_custom_socket_factory(Factory(network))
    resolver = trio.socket.set_custom_hostname_resolver(Resolver(network))
    try:
        yield network
    finally:
        trio.socket.set_custom_socket_factory(factory)
        trio.socket.set_custom_hostname_resolver(resolver)

"""A simulated TCP network under trio's own hooks: `trio.open_tcp_stream`, `trio.serve_tcp` and friends, unmodified.

The map: `Network` knows hosts by name and address, holds listeners, links and connections; `installed(world)` puts it
under trio for the running simulation. `_network` holds the parts: `pipe` one direction, `endpoint` one end,
`connecting` an attempt, `listening` a port, `sockets` trio's socket object.

A *place* is a host by its name; the outside, which belongs to no host and is never killed, is the place `OUTSIDE`.
Everything that takes time is a callback timer of the world. What TCP hides, stays hidden: loss and reordering of
packets show as latency, a cut link as a stall until it heals, a broken connection as a reset.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket as stdlib_socket
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal

import attrs
import trio

from simkit._kernel.timers import Timer
from simkit._network.connecting import Attempt
from simkit._network.darkness import Darkness
from simkit._network.endpoint import Address, Endpoint
from simkit._network.hooks import Factory, Resolver
from simkit._network.listening import Listener
from simkit._network.sockets import SimulatedSocket
from simkit._network.weather import STRIKES, Strike, Weather
from simkit._storage.faults import NEVER, Ratio
from simkit.process import Process, current_process

if TYPE_CHECKING:
    from simkit.world import World

__all__ = ["OUTSIDE", "Network", "NetworkOptions", "SimulatedSocket", "abort", "installed"]

#: The place of everything that belongs to no host.
OUTSIDE = "outside"
OUTSIDE_ADDRESS = "10.255.255.254"
ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - an address of the simulation
EPHEMERAL_PORT_MIN = 49152
PORT_MAX = 65535


@attrs.frozen
class NetworkOptions:
    """Shape of the network; times in nanoseconds."""

    latency_ns: int = 500_000
    loopback_latency_ns: int = 20_000
    #: A segment takes the latency times one of these, drawn by the weights beside; the first is the usual case.
    spread: tuple[int, ...] = (1, 2, 4, 16, 64)
    spread_weights: tuple[int, ...] = (60, 20, 12, 6, 2)
    #: How often a segment breaks its connection: both ends meet a reset, what is in flight is lost.
    breaks: Ratio = NEVER
    #: How peers learn that a process was killed: by a reset, by an end of stream, or as the tape says. One that ends by
    #: itself closes its sockets as usual.
    death: Literal["reset", "eof", "sampled"] = "reset"
    #: How often a kill also loses what the process had sent and was still in flight.
    death_loses_in_flight: Ratio = NEVER
    #: How often a segment is lost: sent again, it arrives `stall_ns` later, and all that follows on its connection too.
    stalls: Ratio = NEVER
    stall_ns: int = 1_000_000_000
    #: How often a link is clogged by a segment: for `clog_ns` nothing arrives over it.
    clogs: Ratio = NEVER
    clog_ns: int = 5_000_000_000
    #: How often the first packet of a connection is lost; it is sent again after a second.
    syn_losses: Ratio = NEVER
    #: How often a name does not resolve for now.
    dns_failures: Ratio = NEVER
    datagram_losses: Ratio = NEVER
    datagram_duplicates: Ratio = NEVER
    #: What a link carries in a second, in each direction; None for any amount.
    bytes_per_s: int | None = None
    buffer_bytes: int = 65536
    connect_timeout_ns: int = 130_000_000_000
    #: When TCP gives up on a host that does not answer, as Linux by default.
    retransmit_timeout_ns: int = 924_600_000_000


class Network:
    """All hosts' TCP. `fired` counts every fault that really happened."""

    def __init__(self, world: World) -> None:
        self.connections: dict[int, Endpoint] = {}
        self.fired: dict[str, int] = {}
        self._world = world
        self._stream = world.tape.stream("network")
        self._options = NetworkOptions()
        self._weather = Weather(self, self._stream)
        self._darkness = Darkness(self)
        self._aliases: dict[str, str] = {}
        self._listeners: dict[tuple[str, int], Listener] = {}
        self._bound: dict[tuple[str, int], SimulatedSocket] = {}
        self._cut: dict[tuple[str, str], bool] = {}
        self._held: list[tuple[str, str, Callable[[], object]]] = []
        self._sockets: dict[int, SimulatedSocket] = {}
        self._attempts: dict[int, Attempt] = {}
        self._mourned: list[Process] = []
        self._numbers = {"socket": 0, "connection": 0}
        self._next_port: dict[str, int] = {}

    # ---- what a test or a driver does to the network

    @property
    def options(self) -> NetworkOptions:
        """Latencies and faults; to be replaced at any time."""
        return self._options

    @options.setter
    def options(self, options: NetworkOptions) -> None:
        self._options = options
        self._weather.judge(options)

    def strike_next(self, what: Strike, source: str | None = None, target: str | None = None, *, times: int = 1) -> None:
        """Let a fault happen the next `times` that it can, on the link from `source` to `target`, or any.

        `what` is "break" (a segment breaks its connection), "stall" (one is lost and sent again), "syn-loss" (so is the
        first one of a connection), "dns" (`target` does not resolve), "datagram-loss" or "datagram-duplicate".
        """
        self._weather.ask(what, source, target, times)

    def clog(self, a: str, b: str, ns: int, *, one_way: bool = False) -> None:
        """Let nothing arrive over the link between two places for `ns`; then all of it does. One way: only `a` to `b`."""
        for pair in ((a, b),) if one_way else ((a, b), (b, a)):
            self._weather.clogged[pair] = max(self._weather.clogged.get(pair, 0), self.now_ns + ns)
        self.call_later(ns, self._release)
        self.count("clog")

    def slow_reader(self, place: str, *, pause_ns: int, bytes_max: int = 1024) -> None:
        """Let every receive at `place` take `pause_ns` and give at most `bytes_max`: its peers fill its window."""
        self._weather.slow_readers[place] = (bytes_max, pause_ns)

    def calm(self) -> None:
        """Turn all faults off and mend every link. Latencies, bandwidth and time-outs stay as they are."""
        self._weather.calm()
        off: dict[str, Any] = dict.fromkeys(("breaks", "clogs", *STRIKES.values(), "death_loses_in_flight"), NEVER)
        self.options = attrs.evolve(self._options, **off)
        self._weather.clogged.clear()
        self.heal()

    def alias(self, name: str, host: str = OUTSIDE) -> None:
        """Let `name` resolve to `host`, e.g. the name of a service that the outside runs."""
        self._aliases[name] = host

    def partition(self, a: str, b: str, *, one_way: bool = False) -> None:
        """Cut the link between two places: what is sent arrives only after `heal`. One way: only from `a` to `b`."""
        self._cut[a, b] = True
        if not one_way:
            self._cut[b, a] = True
        self.count("partition")

    def heal(self, a: str | None = None, b: str | None = None) -> None:
        """Mend the link between two places, all links of one, or all there are; what was held up travels again."""
        wanted = [name for name in (a, b) if name is not None]
        self._cut = {pair: True for pair in self._cut if not all(name in pair for name in wanted)}
        self._release()

    def _release(self) -> None:
        """Let travel again what no link holds up any more."""
        clogged, now_ns = self._weather.clogged, self.now_ns
        self._weather.clogged = clogged = {pair: until_ns for pair, until_ns in clogged.items() if until_ns > now_ns}
        held, self._held = self._held, []
        for source, target, resume in held:
            if (source, target) in self._cut or (source, target) in clogged:
                self._held.append((source, target, resume))
            else:
                self.post(source, target, resume)

    def reset(self, a: str, b: str) -> int:
        """Break every connection between two places, now and at both ends; return how many."""
        broken = [end for end in self.connections.values() if {end.place, end.peer.place} == {a, b}]
        for end in broken:
            end.break_both()
        if broken:
            self.count("reset")
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
            raise stdlib_socket.gaierror(stdlib_socket.EAI_NONAME, f"no host is called {name!r} in this simulation")
        return self.address_of(name)

    def name_of(self, address: str) -> str | None:
        """Return the place that has `address`."""
        if address == OUTSIDE_ADDRESS:
            return OUTSIDE
        return next((name for name, host in self._world.hosts.items() if host.address == address), None)

    # ---- for sockets

    def socket(self) -> SimulatedSocket:
        """Return a new socket of the current process."""
        owner = current_process()
        return self._new_socket(owner, self.place_of(owner))

    def bind(self, socket: SimulatedSocket, host: str, port: int) -> None:
        """Give a socket an address; port 0 takes a free one."""
        own = self.address_of(socket.place)
        if host not in {ANY_ADDRESS, own} and not _is_loopback(host):
            raise OSError(errno.EADDRNOTAVAIL, f"{os.strerror(errno.EADDRNOTAVAIL)}: {host} is not {socket.place}'s")
        if socket.local[1]:
            raise OSError(errno.EINVAL, "this socket is bound already")
        if port and (socket.place, port) in self._bound:
            raise OSError(errno.EADDRINUSE, f"{os.strerror(errno.EADDRINUSE)}: port {port} of {socket.place}")
        socket.local = (host, port or self._free_port(socket.place))
        self._bound[socket.place, socket.local[1]] = socket

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
        finally:
            self._attempts.pop(socket.number, None)

    def adopt(self, listening: SimulatedSocket, end: Endpoint) -> SimulatedSocket:
        """Return the socket of an accepted connection."""
        socket = self._new_socket(listening.owner, listening.place)
        socket.local, socket.end = end.local, end
        return socket

    def forget_socket(self, socket: SimulatedSocket) -> None:
        """A socket was closed; its port is free again."""
        attempt = self._attempts.pop(socket.number, None)
        if attempt is not None:
            attempt.abandon()
        self._sockets.pop(socket.number, None)
        key = (socket.place, socket.local[1])
        if self._bound.get(key) is socket:
            del self._bound[key]

    # ---- for connections

    @property
    def now_ns(self) -> int:
        """Virtual time."""
        return self._world.now_ns

    @property
    def buffer_bytes(self) -> int:
        """Window of one direction."""
        return self.options.buffer_bytes

    def call_later(self, delay_ns: int, fn: Callable[[], object]) -> Timer:
        """Set a callback timer of the world."""
        return self._world.call_later(delay_ns, fn)

    def latency_ns(self, source: str, target: str, size: int = 0) -> int:
        """Draw how long one segment travels that carries `size` bytes."""
        options = self._options
        if source == target:
            return options.loopback_latency_ns
        drawn = self._stream.choose(f"latency:{source}>{target}", len(options.spread), options.spread_weights)
        travel_ns = options.latency_ns * options.spread[drawn]
        return travel_ns + self._weather.delay_ns(source, target, size) if self._weather.foul else travel_ns

    def post(self, source: str, target: str, then: Callable[[], object]) -> None:
        """Let a single packet travel, then call; a cut link holds it until it heals."""

        def arrive() -> None:
            if not self.hold(source, target, then):
                then()

        self.call_later(self.latency_ns(source, target), arrive)

    def hold(self, source: str, target: str, resume: Callable[[], object]) -> bool:
        """When the link is cut, keep `resume` for `heal` and return True."""
        if (source, target) not in self._cut and (
            not self._weather.clogged or self._weather.clogged.get((source, target), 0) <= self.now_ns
        ):
            return False
        self._held.append((source, target, resume))
        return True

    def breaks(self, source: str, target: str) -> bool:
        """Draw whether this segment breaks its connection."""
        return self._weather.foul and self._weather.strikes("break", source, target)

    def loses_syn(self, source: str, target: str) -> bool:
        """Draw whether the first packet of a connection is lost."""
        return self._weather.foul and self._weather.strikes("syn-loss", source, target)

    def is_up(self, place: str) -> bool:
        """Whether the machine there is on."""
        return place == OUTSIDE or self._world.hosts[place].up

    def unanswered(self, end: Endpoint) -> None:
        """Something was sent to an end whose machine is off."""
        self._darkness.note(end)

    def booted(self, place: str) -> None:
        """A machine is on again."""
        self._darkness.booted(place)

    @property
    def slow_readers(self) -> dict[str, tuple[int, int]]:
        """Places that read slowly: how many bytes at most, and after which pause."""
        return self._weather.slow_readers

    async def read_slowly(self, place: str, size: int) -> int:
        """Pause before a read at `place`, and return how much of it to do."""
        bytes_max, pause_ns = self._weather.slow_readers.get(place, (size, 0))
        if pause_ns:
            self.count("slow-read")
            await self._world.sleep_ns(pause_ns)
        return min(size, bytes_max)

    def note(self, what: str, connection: int, source: str, target: str, size: int) -> None:
        """Trace an event of the network."""
        self._world.trace.record("net", what, connection, source, target, size)

    def listener(self, place: str, local: Address, source: str) -> Listener | None:
        """Return who listens there for connections from `source`."""
        found = self._listeners.get((place, local[1]))
        if found is None or (_is_loopback(found.local[0]) and source != place):
            return None
        return found

    def next_connection(self) -> int:
        """Return a number for a new connection."""
        return self._next("connection")

    def forget(self, connection: int) -> None:
        """A connection is over on both sides."""
        self.connections.pop(connection, None)

    # ---- inside

    def _new_socket(self, owner: Process | None, place: str) -> SimulatedSocket:
        socket = SimulatedSocket(self, self._next("socket"), owner, place)
        self._sockets[socket.number] = socket
        if owner is not None and not any(owner is known for known in self._mourned):
            self._mourned.append(owner)
            owner.on_death(lambda: self._bury(owner))
        return socket

    def _bury(self, owner: Process) -> None:
        """Tell the peers of a process that died."""
        self._mourned = [known for known in self._mourned if known is not owner]
        for socket in [socket for socket in self._sockets.values() if socket.owner is owner]:
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
        if num <= 0 or not self._stream.chance(f"death-drops:{socket.place}", num, den):
            return False
        self.count("death-drops")
        return True

    def _stop_listening(self, listener: Listener) -> None:
        key = (listener.place, listener.local[1])
        if self._listeners.get(key) is listener:
            del self._listeners[key]

    def _free_port(self, place: str) -> int:
        for _ in range(PORT_MAX - EPHEMERAL_PORT_MIN):
            port = self._next_port.get(place, EPHEMERAL_PORT_MIN)
            self._next_port[place] = port + 1 if port < PORT_MAX else EPHEMERAL_PORT_MIN
            if (place, port) not in self._bound:
                return port
        raise OSError(errno.EADDRINUSE, f"{place} has no free port")

    def _next(self, what: str) -> int:
        self._numbers[what] += 1
        return self._numbers[what]

    def count(self, what: str) -> None:
        """Note that a fault happened."""
        self.fired[what] = self.fired.get(what, 0) + 1


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

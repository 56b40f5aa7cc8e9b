"""What lies between places: latencies, cut and clogged links, bandwidth, machines that are off. `Network` builds on it."""

from __future__ import annotations

import difflib
import errno
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import attrs

from simkit._kernel.timers import Timer
from simkit._network.addresses import OUTSIDE
from simkit._network.darkness import Darkness
from simkit._network.endpoint import Endpoint
from simkit._network.pipe import Pipe
from simkit._network.roads import Road
from simkit._network.weather import STRIKES, Strike, Weather
from simkit._options import at_least, is_whole, need_whole, one_of, ratio
from simkit._storage.faults import NEVER, Ratio
from simkit.errors import wrong

if TYPE_CHECKING:
    from simkit.world import World

#: So much of a message is kept for drawings.
_SHOWN_BYTES = 60


def _spread(instance: Any, _attribute: attrs.Attribute[Any], _value: Any) -> None:
    """As many factors as weights, none negative, at least one weight above zero."""
    factors, weights = instance.spread, instance.spread_weights
    sound = all(
        isinstance(one, tuple) and all(is_whole(part) and part >= 0 for part in one) for one in (factors, weights)
    )
    if not sound or len(factors) != len(weights) or not any(weights):
        expected = "as many factors as weights, whole numbers from 0 on, one weight above 0"
        raise wrong("NetworkOptions.spread, spread_weights", (factors, weights), expected)


@attrs.frozen
class NetworkOptions:
    """Shape of the network; times in nanoseconds. A value that makes no sense is an `OptionError` that names it."""

    latency_ns: int = attrs.field(default=500_000, validator=at_least(0))
    loopback_latency_ns: int = attrs.field(default=20_000, validator=at_least(0))
    #: A segment takes the latency times one of these, drawn by the weights beside; the first is the usual case.
    spread: tuple[int, ...] = (1, 2, 4, 16, 64)
    spread_weights: tuple[int, ...] = attrs.field(default=(60, 20, 12, 6, 2), validator=_spread)
    #: How often a segment breaks its connection: both ends meet a reset, what is in flight is lost.
    breaks: Ratio = attrs.field(default=NEVER, validator=ratio)
    #: How peers learn that a process was killed: by a reset, by an end of stream, or as the tape says. One that ends by
    #: itself closes its sockets as usual.
    death: Literal["reset", "eof", "sampled"] = attrs.field(
        default="reset", validator=one_of("reset", "eof", "sampled")
    )
    #: How often a kill also loses what the process had sent and was still in flight.
    death_loses_in_flight: Ratio = attrs.field(default=NEVER, validator=ratio)
    #: How often a segment is lost: sent again, it arrives `stall_ns` later, and all that follows on its connection too.
    stalls: Ratio = attrs.field(default=NEVER, validator=ratio)
    stall_ns: int = attrs.field(default=1_000_000_000, validator=at_least(0))
    #: How often a link is clogged by a segment: for `clog_ns` nothing arrives over it.
    clogs: Ratio = attrs.field(default=NEVER, validator=ratio)
    clog_ns: int = attrs.field(default=5_000_000_000, validator=at_least(0))
    #: How often the first packet of a connection is lost; it is sent again after a second.
    syn_losses: Ratio = attrs.field(default=NEVER, validator=ratio)
    #: How often a name does not resolve for now.
    dns_failures: Ratio = attrs.field(default=NEVER, validator=ratio)
    datagram_losses: Ratio = attrs.field(default=NEVER, validator=ratio)
    datagram_duplicates: Ratio = attrs.field(default=NEVER, validator=ratio)
    #: What a link carries in a second, in each direction; None for any amount.
    bytes_per_s: int | None = attrs.field(default=None, validator=at_least(1, or_none=True))
    buffer_bytes: int = attrs.field(default=65536, validator=at_least(1))
    connect_timeout_ns: int = attrs.field(default=130_000_000_000, validator=at_least(0))
    #: When TCP gives up on a host that does not answer, as Linux by default.
    retransmit_timeout_ns: int = attrs.field(default=924_600_000_000, validator=at_least(0))


#: What a network begins with.
_USUAL = NetworkOptions()


class Ether:
    """The part of the network that carries, delays and loses."""

    def __init__(self, world: World) -> None:
        self.connections: dict[int, Endpoint] = {}
        self.fired: dict[str, int] = {}
        self._world = world
        self._timers = world.kernel.timers
        self._stream = world.tape.stream("network")
        self._options = _USUAL
        self._weather = Weather(self, self._stream)
        self._darkness = Darkness(self)
        #: Links that are cut, and since when.
        self.cut: dict[tuple[str, str], int] = {}
        #: Links on which nothing is to be asked for but latency, loss and doubling.
        self._roads: dict[tuple[str, str], Road] = {}
        self._mentioned: dict[str, str] = {}
        self._held: list[tuple[str, str, Callable[[], object]]] = []

    # ---- what a test or a driver does to the network

    @property
    def options(self) -> NetworkOptions:
        """Latencies and faults; to be replaced at any time."""
        return self._options

    @options.setter
    def options(self, options: NetworkOptions) -> None:
        self._options = options
        self._weather.judge(options)
        self._roads.clear()

    def partition(self, a: str, b: str, *, one_way: bool = False) -> None:
        """Cut the link between two places: what is sent arrives only after `heal`. One way: only from `a` to `b`."""
        self._mention_link("Network.partition", a, b)
        for pair in ((a, b),) if one_way else ((a, b), (b, a)):
            self.cut.setdefault(pair, self.now_ns)
        self.count("partition", a, b)

    def heal(self, a: str | None = None, b: str | None = None) -> None:
        """Mend the link between two places, all links of one, or all there are; what was held up travels again."""
        wanted = [name for name in (a, b) if name is not None]
        self.cut = {pair: ns for pair, ns in self.cut.items() if not all(name in pair for name in wanted)}
        self._world.trace.aside("net", "heal", a, b)
        self._release()

    def clog(self, a: str, b: str, ns: int, *, one_way: bool = False) -> None:
        """Let nothing arrive over the link between two places for `ns`; then all of it does. One way: only `a` to `b`."""
        self._mention_link("Network.clog", a, b)
        need_whole("Network.clog: ns", ns, 0)
        for pair in ((a, b),) if one_way else ((a, b), (b, a)):
            self._weather.clogged[pair] = max(self._weather.clogged.get(pair, 0), self.now_ns + ns)
        self.call_later(ns, self._release)
        self.count("clog", a, b)

    def slow_reader(self, place: str, *, pause_ns: int, bytes_max: int = 1024) -> None:
        """Let every receive at `place` take `pause_ns` and give at most `bytes_max`: its peers fill its window."""
        self.mention("Network.slow_reader: place", place)
        need_whole("Network.slow_reader: pause_ns", pause_ns, 0)
        need_whole("Network.slow_reader: bytes_max", bytes_max, 1)
        self._weather.slow_readers[place] = (bytes_max, pause_ns)

    def strike_next(
        self, what: Strike, source: str | None = None, target: str | None = None, *, times: int = 1
    ) -> None:
        """Let a fault happen the next `times` that it can, on the link from `source` to `target`, or any.

        `what` is "break" (a segment breaks its connection), "stall" (one is lost and sent again), "syn-loss" (so is the
        first one of a connection), "dns" (`target` does not resolve), "datagram-loss" or "datagram-duplicate".
        """
        need_whole("Network.strike_next: times", times, 1)
        self._weather.ask(what, source, target, times)
        self._roads.clear()

    def spare(self, place: str) -> None:
        """Let no fault be drawn on the links of `place`: it belongs to the test, not to what is tested."""
        self._weather.spared.add(place)
        self._roads.clear()

    def calm(self) -> None:
        """Turn all faults off and mend every link. Latencies, bandwidth and time-outs stay as they are."""
        self._weather.calm()
        off: dict[str, Any] = dict.fromkeys(("breaks", "clogs", *STRIKES.values(), "death_loses_in_flight"), NEVER)
        self.options = attrs.evolve(self._options, **off)
        self._weather.clogged.clear()
        self.heal()

    def mention(self, option: str, *places: str) -> None:
        """Note that these places were named; whether there is such a host shows by the end of the run at the latest."""
        for place in places:
            if not isinstance(place, str):
                raise wrong(option, place, f"the name of a host, or {OUTSIDE!r}")
            self._mentioned.setdefault(place, option)

    def check_mentions(self) -> None:
        """The run is over: a name that no host ever had was a slip, and what was asked for never happened."""
        for place, option in self._mentioned.items():
            if place != OUTSIDE and place not in self._world.hosts:
                near = difflib.get_close_matches(place, [*self._world.hosts, OUTSIDE], n=1)
                hint = f"did you mean {near[0]!r}?" if near else "world.host(name) makes a host"
                raise wrong(option, place, "the name of a host; there was none of that name", hint)

    def _mention_link(self, option: str, a: str, b: str) -> None:
        self.mention(option, a, b)
        if a == b:
            raise wrong(option, (a, b), "two places: no link leads from one to itself")

    # ---- for connections

    @property
    def now_ns(self) -> int:
        """Virtual time."""
        return self._timers.now_ns

    @property
    def buffer_bytes(self) -> int:
        """Window of one direction."""
        return self._options.buffer_bytes

    def call_later(self, delay_ns: int, fn: Callable[[], object]) -> Timer:
        """Set a callback timer of the world."""
        return self._world.call_later(delay_ns, fn)

    def call_at(self, when_ns: int, method: Callable[[], object]) -> None:
        """Call a bound method at `when_ns`; nobody can cancel it."""
        self._timers.post(when_ns, method, ())

    def latency_ns(self, source: str, target: str, size: int = 0) -> int:
        """Draw how long one segment travels that carries `size` bytes."""
        road = self._roads.get((source, target))
        if road is None:
            road = self._road(source, target)
        travel_ns = road.travel_ns[0 if road.draw is None else road.draw()]
        if self._weather.delays and source != target:
            travel_ns += self._weather.delay_ns(source, target, size)
        return travel_ns

    def post(self, source: str, target: str, then: Callable[[], object]) -> None:
        """Let a single packet travel, then call; a cut link holds it until it heals."""

        def arrive() -> None:
            if not self.hold(source, target, then):
                then()

        self.call_later(self.latency_ns(source, target), arrive)

    def carry_datagram(self, source: str, target: str, size: int, then: Callable[..., object], *args: Any) -> None:
        """Let a message travel on its own, then call `then(*args)`: a cut link loses it, and so may a whole one, or
        double it.
        """
        weather, copies = self._weather, 1
        if weather.foul and source != target:
            if weather.open:
                self._leaves(source, target)
            if weather.strikes("datagram-loss", source, target):
                return
            copies += weather.strikes("datagram-duplicate", source, target)
        timers = self._timers
        for _ in range(copies):
            when_ns = timers.now_ns + self.latency_ns(source, target, size)
            timers.post(when_ns, self._arrive, (source, target, then, args))

    def _arrive(self, source: str, target: str, then: Callable[..., object], args: tuple[Any, ...]) -> None:
        """A message is at the end of its link."""
        if (source, target) in self.cut:
            self.count("datagram-cut", source, target)
        elif not self._weather.clogged or not self.hold(source, target, lambda: then(*args)):
            if self._weather.open:
                self.arrives(source, target)
            then(*args)

    def _road(self, source: str, target: str) -> Road:
        spared = self._weather.spares(source, target)
        road = self._roads[source, target] = Road(self._options, self._stream, source, target, spared=spared)
        return road

    def hold(self, source: str, target: str, resume: Callable[[], object]) -> bool:
        """When the link is cut, keep `resume` for `heal` and return True."""
        if (source, target) not in self.cut and (
            not self._weather.clogged or self._weather.clogged.get((source, target), 0) <= self.now_ns
        ):
            return False
        self._held.append((source, target, resume))
        return True

    def breaks(self, source: str, target: str) -> bool:
        """Draw whether this segment breaks its connection."""
        if not self._weather.foul:
            return False
        self._leaves(source, target)
        return self._weather.strikes("break", source, target)

    def arrives(self, source: str, target: str) -> None:
        """A message is about to be there: an open tape may strike its reader down."""
        if self._weather.open and target not in {source, OUTSIDE}:
            striker = self._world.hosts[target].striker
            if striker is not None:
                striker.at_delivery(source)

    def loses_syn(self, source: str, target: str) -> bool:
        """Draw whether the first packet of a connection is lost."""
        return self._weather.foul and self._weather.strikes("syn-loss", source, target)

    def reaches(self, a: str, b: str) -> bool:
        """Whether a packet from `a` would come to `b` now, and its answer back."""
        return self.is_up(b) and not self.is_held_up(a, b) and not self.is_held_up(b, a)

    def is_held_up(self, source: str, target: str) -> bool:
        """Whether a link is cut or clogged now."""
        return (source, target) in self.cut or self._weather.clogged.get((source, target), 0) > self.now_ns

    def is_up(self, place: str) -> bool:
        """Whether the machine there is on."""
        return place == OUTSIDE or self._world.hosts[place].up

    def held(self, pipe: Pipe) -> None:
        """A cut or clogged link holds up what one end sent; when that lasts too long, the sender gives up."""
        since_ns = pipe.held_ns

        def give_up() -> None:
            end = self.sender(pipe)
            if pipe.held_ns == since_ns and pipe.waits_for_answer and end is not None:
                self.count("timed-out", pipe.source, pipe.target)
                end.reset_received(errno.ETIMEDOUT)

        self.call_later(self._options.retransmit_timeout_ns, give_up)

    def unacknowledged(self, pipe: Pipe) -> None:
        """What `pipe` carries arrives, and the link back is cut: its sender, who hears nothing of it, gives up in the end."""
        back = pipe.target, pipe.source
        since_ns = self.cut[back]
        if since_ns == pipe.unheard_ns:
            return
        pipe.unheard_ns = since_ns

        def give_up() -> None:
            end = self.sender(pipe)
            if self.cut.get(back) == since_ns and end is not None and not end.over:
                self.count("timed-out", pipe.source, pipe.target)
                end.reset_received(errno.ETIMEDOUT)

        self.call_later(self._options.retransmit_timeout_ns, give_up)

    def sender(self, pipe: Pipe) -> Endpoint | None:
        """The end that sends into `pipe`."""
        near = self.connections.get(pipe.connection)
        return None if near is None else next(end for end in (near, near.peer) if end.out is pipe)

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

    def note(self, what: str, connection: int, source: str, target: str, size: int, data: bytes = b"") -> None:
        """Trace an event of the network; what a message says is for drawings only."""
        trace = self._world.trace
        if trace.asides is not None and data:
            trace.aside("says", repr(data[:_SHOWN_BYTES])[2:-1])
        trace.told.append(("net", what, connection, source, target, size))  # as `record` would: every message, twice

    def count(self, what: str, *places: str) -> None:
        """Note that a fault happened, and between which places."""
        self.fired[what] = self.fired.get(what, 0) + 1
        self._world.trace.aside("net", what, *places)

    # ---- inside

    def _leaves(self, source: str, target: str) -> None:
        """A message is about to leave: an open tape may strike its sender down."""
        if self._weather.open and source not in {target, OUTSIDE}:
            striker = self._world.hosts[source].striker
            if striker is not None:
                striker.at_send(target)

    def _release(self) -> None:
        """Let travel again what no link holds up any more."""
        clogged, now_ns = self._weather.clogged, self.now_ns
        self._weather.clogged = clogged = {pair: until_ns for pair, until_ns in clogged.items() if until_ns > now_ns}
        held, self._held = self._held, []
        for source, target, resume in held:
            if (source, target) in self.cut or (source, target) in clogged:
                self._held.append((source, target, resume))
            else:
                self.post(source, target, resume)

"""The world: hosts, time and the tape; and `run`, which simulates one program in one.

`run(main, tape=…)` runs `main(world)` on the *outside*: it belongs to no host and no kill reaches it. It starts
processes on hosts, does things to them, and returns; whatever still runs then is dropped.
"""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import attrs

from simkit._kernel import fallback, fingerprint, loop, sleeper, watchdog
from simkit._kernel.kernel import Kernel
from simkit._kernel.timers import BoundMetError, Timer
from simkit._kernel.turn import Turn
from simkit._network.addresses import Addresses
from simkit._options import need_program, need_whole
from simkit.choosing import Choice
from simkit.clock import EPOCH_NS
from simkit.copies import Copies
from simkit.errors import SimkitError, shown_of, wrong
from simkit.host import Host
from simkit.limits import Bound, BoundError, Limits
from simkit.mixups import annotate
from simkit.patience import lost_patience, patience_ns
from simkit.points import PointCount, PointError, Points
from simkit.process import Process
from simkit.strategy import Segment, Strategy, segments
from simkit.surroundings import Surroundings
from simkit.tape import Site, Tape
from simkit.trace import Sink, Trace
from simkit.watching import watchers

if TYPE_CHECKING:
    from simkit.network import Network

T = TypeVar("T")
KernelName = Literal["fast", "fallback"]

__all__ = ["EPOCH_NS", "Host", "Limits", "Outcome", "World", "run"]

_FIRST_PID = 101


@attrs.frozen(slots=False)  # which is made in a third of the time
class Outcome(Generic[T]):
    """What became of a run."""

    value: T | None
    #: What main raised, or why the kernel stopped: DeadlockError, ReplayDivergedError, …
    error: BaseException | None = attrs.field(repr=shown_of)
    bound: Bound | None  # the bound that was met: neither value nor error then
    steps: int
    now_ns: int
    boundaries: Mapping[str, int]  # storage boundaries by host
    departures: Mapping[Site, int]
    failures: tuple[Process, ...]  # processes that ended with an exception of their own
    kernel: KernelName
    trace: Trace = attrs.field(repr=False)
    points: Mapping[str, PointCount] = attrs.field(factory=dict, repr=False)  # named points, see simkit.points
    fired: Mapping[str, int] = attrs.field(factory=dict, repr=False)  # faults that really happened
    stack: str = attrs.field(default="", repr=False)  # where the program stood when a bound was met

    @property
    def digest(self) -> str:
        """Digest of the trace: equal for equal runs."""
        return self.trace.digest()

    @property
    def schedule(self) -> tuple[Segment, ...]:
        """Who took the steps; for `ReplaySchedule`."""
        return segments(self.trace.steps())

    def unwrap(self) -> T:
        """Return the value, or raise the error; meeting a bound is a `BoundError`, which is a RuntimeError."""
        if self.error is not None:
            raise self.error
        if self.bound is not None:
            raise BoundError.of(self.bound, self.steps, self.stack)
        return self.value  # type: ignore[return-value]  # then it is what main returned


class World:
    """One simulation, seen from the outside."""

    def __init__(self, tape: Tape, trace: Trace, kernel: Kernel) -> None:
        self.tape = tape
        self.trace = trace
        #: For the other modules of simkit.
        self.kernel = kernel
        self.hosts: dict[str, Host] = {}
        #: Processes that ended with an exception of their own.
        self.failures: list[Process] = []
        #: What was asked of it and makes no sense, found out in the middle of a run: it ends by the first.
        self.mistakes: list[SimkitError] = []
        self._copies: Copies | None = None
        self._points: Points | None = None
        #: Whether all faults were turned off.
        self.is_calm = False
        self._addresses: Addresses | None = None
        self._pid = _FIRST_PID
        self._network: Network | None = None
        if tape.open:
            self._open(tape)

    def _open(self, tape: Tape) -> None:
        """Let an explorer see the sites, and say when the faults end."""
        if tape.journal is not None:
            tape.journal.moment = self.trace.__len__
        calm_ns, patience = tape.setting("world", "calm"), tape.setting("world", "patience")
        if calm_ns:
            self.call_later(calm_ns, self.calm)
        if calm_ns and patience:
            within_ns = patience_ns(patience)
            self.call_later(calm_ns + within_ns, lost_patience, within_ns)

    @property
    def now_ns(self) -> int:
        """Virtual time since the world began."""
        return self.kernel.timers.now_ns

    @property
    def points(self) -> Points:
        """The named points of the program, made at first use."""
        if self._points is None:
            self._points = Points(self)
        return self._points

    @property
    def copies(self) -> Copies:
        """What the program declares to be copies of one thing: never all damaged."""
        if self._copies is None:
            self._copies = Copies()
        return self._copies

    @property
    def network(self) -> Network:
        """The network, made at first use."""
        if self._network is None:
            from simkit.network import Network

            self._network = Network(self)
            if self.is_calm:
                self._network.calm()
        return self._network

    @property
    def has_network(self) -> bool:
        """Whether the network was ever used."""
        return self._network is not None

    def call_later(self, delay_ns: int, fn: Callable[..., object], *args: Any) -> Timer:
        """Call `fn(*args)` after `delay_ns`, in no task. It must not block, and outlives the process that asked."""
        need_whole("World.call_later: delay_ns", delay_ns)
        return self.kernel.timers.call_at(self.now_ns + max(0, delay_ns), fn, args)

    async def sleep_ns(self, ns: int) -> None:
        """Suspend the calling task for `ns` of virtual time."""
        need_whole("World.sleep_ns", ns, 0)
        await sleeper.sleep_until_ns(self.kernel.timers, self.now_ns + ns)

    def host(self, name: str) -> Host:
        """The host called `name`, made at first use; addresses are given out in that order."""
        host = self.hosts.get(name)
        return self.add_host(name) if host is None else host

    def add_host(self, name: str, *, address: str | None = None) -> Host:
        """Make a host that is not there yet, at an address of its own: the next one, when none is given.

        Raises `OptionError` for a name or an address that another host has, or that no host can have.
        """
        if self._addresses is None:
            self._addresses = Addresses()
        address = self._addresses.give(name, address)
        host = self.hosts[name] = Host(self, name, address)
        return host

    def calm(self) -> None:
        """Turn all faults off: links are mended, clocks put right, disks and points behave, what was paused goes on."""
        self.trace.record("calm")
        self.is_calm = True
        if self._points is not None:
            self._points.calm()
        if self._network is not None:
            self._network.calm()
        for host in self.hosts.values():
            host.calm()

    @property
    def violations(self) -> list[PointError]:
        """What did not hold at a named point."""
        return [] if self._points is None else self._points.violations

    def counts(self) -> dict[str, PointCount]:
        """How often each named point was reached."""
        return {} if self._points is None else self._points.counts()

    def fired(self) -> dict[str, int]:
        """How often each fault really happened, by component and name."""
        if not self.hosts and self._network is None:
            return {}
        parts = {f"disk/{name}": host.disk.fired for name, host in self.hosts.items() if host.has_disk}
        parts |= {f"crash/{name}": host.striker.fired for name, host in self.hosts.items() if host.striker is not None}
        if self._network is not None:
            parts["network"] = self._network.fired
        return {f"{part}:{what}": times for part, fired in parts.items() for what, times in fired.items()}

    def next_pid(self) -> int:
        """A process id that was never used in this world."""
        self._pid += 1
        return self._pid - 1


def run(
    main: Callable[[World], Awaitable[T]],
    *,
    tape: Tape,
    strategy: Strategy | None = None,
    kernel: KernelName = "fast",
    limits: Limits = Limits(),  # noqa: B008  # frozen
    guard: bool = True,
    trace_sink: Sink | None = None,
) -> Outcome[T]:
    """Run `main(world)` in a world of its own and return what became of it; the same arguments give the same run.

    Args:
        main: the outside; when it returns, the run is over.
        tape: where every choice comes from.
        strategy: who takes the next step; None is first come, first served.
        kernel: which loop; "fallback" is slower and gives the same traces.
        limits: when to give up.
        guard: virtualise time and randomness, refuse the real world (see `simkit.guard`).
        trace_sink: an open text file that gets the trace as JSON lines.

    Returns: the outcome; also when main failed. Only KeyboardInterrupt is raised, and a SimkitError when there is a run
    already, in this thread or another: one process simulates one world at a time; an OptionError for arguments that are
    none.
    """
    _check(main, tape, strategy, kernel, limits)
    kernel = _available(kernel)
    choice = None if strategy is None else Choice(strategy)
    trace = Trace(trace_sink)
    record = trace.record_step if trace_sink is None else trace.record_step_and_flush
    core = Kernel(choice, record, steps_max=limits.steps, time_ns_max=limits.time_ns)
    if choice is not None:
        choice.kernel = core
    world = World(tape, trace, core)
    trace.name_tasks(core.names)
    for watcher in watchers:
        watcher.begins(world)
    value, error, bound = None, None, None
    drive = loop.drive if kernel == "fast" else fallback.drive
    watch = watchdog.watching(
        core, trace.__len__, step_s=limits.step_s, memory_bytes=limits.memory_bytes, events_max=limits.events
    )
    with Turn(), watch as watched, Surroundings(world, guard=guard) as refusals:
        try:
            value = core.run(drive, _outside, (main, world))
            if world.has_network:
                world.network.check_mentions()
            getattr(strategy, "finish", _nothing)(core.steps)
        except BoundMetError as met:
            bound = met.args[0]
        except BaseException as raised:  # noqa: BLE001  # any failure is an outcome
            error = raised
    if choice is not None:
        choice.let_go()
    if watched.met is not None and not isinstance(error, SimkitError | KeyboardInterrupt):
        value, error, bound = None, None, watched.met  # whatever the program made of being thrown out
    error = _root_cause(error, [*refusals, *world.mistakes, *world.violations])
    trace.flush()
    if error is not None or world.failures:
        annotate([error, *(process.status.error for process in world.failures if process.status is not None)])
    if error is not None:
        value, bound = None, None
    ended: Outcome[T] = _outcome(world, kernel, watched.stack or core.stood, value, error, bound)
    for watcher in watchers:
        watcher.ends(world, ended)
    return ended


def _outcome(
    world: World, kernel: KernelName, stack: str, value: Any, error: BaseException | None, bound: Bound | None
) -> Outcome[Any]:
    """What became of a world that has come to this end: a value, an error, or a bound that was met."""
    return Outcome(
        value=value,
        error=error,
        bound=bound,
        steps=world.kernel.steps,
        now_ns=world.now_ns,
        boundaries={name: host.boundaries for name, host in world.hosts.items()} if world.hosts else {},
        departures=world.tape.departures(),
        failures=tuple(world.failures),
        kernel=kernel,
        trace=world.trace,
        points=world.counts(),
        fired=world.fired(),
        stack=stack,
    )


_NAMES = "names of strategies are for simkit.search, simkit.campaign and @simkit.test"


def _check(main: object, tape: object, strategy: object, kernel: object, limits: object) -> None:
    need_program("run: main", main)
    if not isinstance(tape, Tape):
        raise wrong("run: tape", tape, "a tape, such as Tape.from_seed(0)")
    if kernel not in ("fast", "fallback"):
        raise wrong("run: kernel", kernel, "fast or fallback")
    if not isinstance(limits, Limits):
        raise wrong("run: limits", limits, "a simkit.Limits")
    if strategy is not None and (isinstance(strategy, type) or not callable(getattr(strategy, "pick", None))):
        raise wrong("run: strategy", strategy, 'a strategy, such as RandomWalk(tape.stream("schedule"))', _NAMES)


def _available(kernel: KernelName) -> KernelName:
    if kernel == "fast" and not fingerprint.is_known():
        warnings.warn(
            "this version of trio is not one that the fast kernel was written for: using the fallback kernel, which is "
            "slower and gives the same traces",
            fingerprint.KernelFallbackWarning,
            stacklevel=3,
        )
        return "fallback"
    return kernel


async def _outside(main: Callable[[World], Awaitable[T]], world: World) -> T:
    """The main task, whatever kind of awaitable `main` gives."""
    return await main(world)


def _root_cause(error: BaseException | None, refusals: list[Any]) -> BaseException | None:
    """A refusal is why the rest happened, also when the program swallowed it; an interrupt is the user's."""
    if isinstance(error, KeyboardInterrupt):
        raise error
    if isinstance(error, BaseExceptionGroup):
        interrupts = error.subgroup(KeyboardInterrupt)
        if interrupts is not None:
            raise KeyboardInterrupt from error
    return refusals[0] if refusals else error


def _nothing(_steps: int) -> None:
    """For strategies that have no say at the end."""

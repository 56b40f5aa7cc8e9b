"""The simulated world: the adapter's own file runs as simulated processes on simulated hosts, under `simkit.run`.

Every unit has a host of its own, so that power can fail for one of them; a worker started while another of its kind is
paused gets a second host. The kit stands on the outside: it serves the hosted world as JSON lines, one port per worker
incarnation. The control channels are wires of its own, on no network: what the kit asks is no part of what it tests.

A run may be stirred: faults of network and disks are drawn for it first (`simkit.swarm`), stay on for a drawn time,
in which only safety counts, and are off from then on, so that liveness counts. They stay within what a harness can be
expected to live with: disks are slow and say that they fail, links break and stall; no data is damaged in silence, clocks
are right, and the kit's own links are spared. Settings of the harness that its manifest names are drawn too, for all of a run.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from traceback import TracebackException
from typing import TYPE_CHECKING, Any, Protocol

import attrs
import trio

from conformance.canaries import canary, is_found
from conformance.control import ControlChannel
from conformance.world import BATCHES, REBATCH, REBUILT, Born, Sighting, unheard
from simkit.disk import CrashState
from simkit.network import OUTSIDE
from simkit.process import Process
from simkit.services.lines import serve_lines
from simkit.swarm import draw_faults
from simkit.wire import wire

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from simkit.errors import Problem
    from simkit.services import Gate, Outside
    from simkit.world import Host, World

#: Ports of the outside and of the engine; incarnation numbers are added to the first.
SERVICES_PORT = 20_000
ENGINE_PORT = 7_000
#: Where the units keep what outlives them.
STATE = "/state"
#: How long the faults of a stirred run stay on, in virtual time; short and long against sleeps, leases and time-outs. Most
#: of the runs have none: where nothing else goes wrong, more can be asked of a harness.
STORMS_NS = (0, 200_000_000, 1_000_000_000, 3_000_000_000, 10_000_000_000)
_STORM_WEIGHTS = (6, 1, 1, 1, 1)


class AdapterModule(Protocol):
    """What an adapter's file must offer to run in simulation."""

    run_engine: Callable[[Mapping[str, str]], Awaitable[Any]]
    run_worker: Callable[[Mapping[str, str], trio.abc.Stream], Awaitable[Any]]


@attrs.define(eq=False)
class SimulatedUnit:
    """One unit as a simulated process."""

    name: str
    incarnation: int
    process: Process
    control: ControlChannel | None = None

    @property
    def alive(self) -> bool:
        return self.process.alive

    async def kill(self, *, power: bool, state: str | None = None) -> None:
        """At this very instant; does not yield."""
        if power:
            self.process.host.power_loss("sample" if state is None else CrashState.from_code(state))
        else:
            self.process.kill()
        if self.process.alive:
            raise RuntimeError(f"{self.process.label} survived its kill")

    def ask_to_leave(self) -> None:
        self.process.terminate()

    @property
    def left_in_order(self) -> bool:
        return self.process.status is not None and self.process.status.kind != "killed"

    async def bury(self) -> None:
        """Nothing outlives a simulated process; does not yield."""

    async def pause(self) -> None:
        self.process.pause()

    async def resume(self) -> None:
        self.process.resume()

    def jump(self, ns: int) -> bool:
        self.process.host.clock.jump(ns)
        return True

    def full(self, on: bool) -> None:
        disk = self.process.host.disk
        disk.capacity_bytes = disk.used_bytes() if on else None

    def flip(self) -> bool:
        """Which bit, the tape says; room that is kept free at the end of a file has nothing in it that could be damaged."""
        host = self.process.host
        files = [
            (len(bytes(node.read(node.size, 0)).rstrip(b"\0")), path)
            for path, node in host.disk.inodes().items()
            if path.startswith(STATE)
        ]
        size, path = max(((size, path) for size, path in files if not path.endswith(REBUILT)), default=(0, ""))
        if size == 0:
            return False
        stream = host.world.tape.stream(f"flip/{host.name}")
        return host.disk.corrupt(path, stream.choose("byte", size), stream.choose("bit", 8))

    def wipe(self) -> None:
        self.process.host.wipe()

    @property
    def ending(self) -> str:
        return self.process.status.kind if self.process.status is not None else ""

    def last_words(self) -> str:
        return str(self.process.status or "")

    def printed(self) -> str:
        """What a program that ends so leaves in its log: every exception by its words; the frames are left out."""
        error = self.process.status.error if self.process.status is not None else None
        return "" if error is None else "".join(TracebackException.from_exception(error, limit=0).format())


class SimulatedWorld:
    """Hosts, services and control channels of one simulated run."""

    def __init__(
        self, world: World, adapter: AdapterModule, environment: Mapping[str, str], nursery: trio.Nursery
    ) -> None:
        self._world = world
        self._adapter = adapter
        self._environment = environment
        self._nursery = nursery
        self._nonces = world.tape.stream("nonces")
        self._outside: Outside | None = None
        self._gate: Gate | None = None

        #: What the adapter sent to the services that could not be read.
        self.problems: list[Problem] = []

        self._storms = False
        self._secrets: dict[str, str] = {}
        self._units: list[SimulatedUnit] = []

    @property
    def stormy(self) -> bool:
        return self._storms

    def stir(self, units: Sequence[str], settings: Mapping[str, Sequence[str]]) -> None:
        """Draw whether this run has faults of its own, which, and when they end; and one value of each of the `settings`, the
        first one as often as all others together.
        """
        world = self._world
        drawn = {name: values[self._drawn(name, len(values))] for name, values in settings.items()}
        self._environment = {**self._environment, **drawn}
        storm_ns = STORMS_NS[world.tape.stream("swarm").choose("storm", len(STORMS_NS), _STORM_WEIGHTS)]
        if storm_ns:
            world.network.spare(OUTSIDE)
            draw_faults(world, units, clocks=False)
            self._storms = True
            world.call_later(storm_ns, self._calm)

    def _drawn(self, name: str, n: int) -> int:
        return self._world.tape.stream("swarm").choose(name, n, (max(1, n - 1), *[1] * (n - 1)))

    def _calm(self) -> None:
        """Faults are off. Unlike by `World.calm`, the scenario goes on: its interruptions strike, who it paused rests."""
        self._world.trace.record("calm")
        self._world.network.calm()
        for host in self._world.hosts.values():
            host.disk.calm()
            for process in host.processes:
                if not process.paused:
                    process.relieve()
        self._storms = False

    def _on_problem(self, _incarnation: int, problem: Problem) -> None:
        self.problems.append(problem)

    def now_ns(self) -> int:
        return self._world.now_ns

    def spent_ns(self) -> int:
        return self._world.now_ns

    def nonce(self) -> str:
        return self._nonces.randbytes("nonce", 6).hex()

    async def sleep_ns(self, ns: int) -> None:
        await self._world.sleep_ns(ns)

    @contextlib.asynccontextmanager
    async def serving(self, outside: Outside, gate: Gate) -> AsyncIterator[None]:
        self._outside, self._gate = outside, gate
        yield

    def fires(self, label: str) -> None:
        self._world.trace.aside("note", label)

    def watch_boundary(self, unit: str, nth: int, strike: Callable[[], None]) -> None:
        self._world.host(unit).at_boundary(nth, strike)

    def fail_once(self, unit: str, nth: int, strike: Callable[[], bool], *, kind: str | None = None) -> None:
        host = self._world.host(unit)

        def fail() -> None:
            if not strike():
                return
            if kind is None:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            host.disk.fail_next(kind, errno.EIO)

        host.at_boundary(nth, fail)

    def entrust(self, names: Sequence[str]) -> Mapping[str, str]:
        self._secrets = {name: canary(self.nonce() + self.nonce()) for name in names}
        return self._secrets

    def scan(self, secrets: Mapping[str, str]) -> Sighting:
        """Every byte of every file on every host, and what units that ended said."""
        found = []
        for name, value in secrets.items():
            disks = (host.disk for host in self._world.hosts.values() if host.has_disk)
            if any(is_found(value, bytes(node.cache)) for disk in disks for node in disk.inodes().values()):
                found.append(f"store:{name}")
            if any(is_found(value, unit.printed().encode()) for unit in self._units):
                found.append(f"logs:{name}")
        return Sighting(("store", "logs"), tuple(found))

    async def launch(
        self, unit: str, incarnation: int, *, code: str = "", forget: str = "", born: Born = unheard
    ) -> SimulatedUnit:
        host = self._world.host(unit)
        if any(process.alive for process in host.processes):
            host = self._world.host(f"{unit}{incarnation}")
        environment = {
            **self._environment,
            "SIMKIT_STATE": STATE,
            "SIMKIT_ENGINE_HOST": "engine",
            "SIMKIT_ENGINE_PORT": str(ENGINE_PORT),
            "SIMKIT_SERVICES": f"lines://outside:{SERVICES_PORT + incarnation}",
            **({"SIMKIT_SECRETS": json.dumps(self._secrets)} if self._secrets else {}),
            **({"SIMKIT_CODE": code} if code else {}),
            **({"SIMKIT_FORGET": forget} if forget else {}),
            REBATCH: str(incarnation % BATCHES),
        }
        if unit == "engine":
            process = host.start(self._adapter.run_engine, environment, name=unit)
            launched = SimulatedUnit(unit, incarnation, process)
        else:
            launched = await self._launch_worker(unit, incarnation, host, environment)
        self._units.append(launched)
        born()  # it has not taken a step
        return launched

    async def _launch_worker(
        self, unit: str, incarnation: int, host: Host, environment: Mapping[str, str]
    ) -> SimulatedUnit:
        await self._nursery.start(self._serve, incarnation)
        ours, theirs = wire(self._world.trace, f"{unit}/{incarnation}")
        process = host.start(self._adapter.run_worker, environment, theirs, name=unit)
        process.on_death(theirs.die)
        return SimulatedUnit(unit, incarnation, process, ControlChannel(ours, ours))

    async def _serve(self, incarnation: int, task_status: trio.TaskStatus[Any]) -> None:
        assert self._outside is not None
        assert self._gate is not None
        listeners = await trio.open_tcp_listeners(SERVICES_PORT + incarnation, host="outside")
        task_status.started()
        await serve_lines(listeners, self._outside, self._gate, incarnation, self._on_problem)

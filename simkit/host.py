"""A simulated machine: a name, an address, a disk that outlives its processes, a wall clock of its own."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from simkit._options import need_whole
from simkit._storage.device import NO_BOUNDARY
from simkit.clock import HostClock
from simkit.errors import wrong
from simkit.process import ExitStatus, Process
from simkit.watching import watchers

if TYPE_CHECKING:
    from simkit.disk import Boundary, CrashMode, CrashState, Disk, Tear
    from simkit.striking import Striker
    from simkit.world import World

__all__ = ["Host"]

_MODES = ("sample", "lose", "keep")


class Host:
    """A simulated machine; `World.host` makes it."""

    def __init__(self, world: World, name: str, address: str) -> None:
        self.world = world
        self.name = name
        self.address = address
        #: Its wall clock.
        self.clock = HostClock(world, name)
        #: Whether it is on; it is off after a silent loss of power, until `boot` or the next `start`.
        self.up = True
        #: Living processes, oldest first.
        self.processes: list[Process] = []
        self._disk: Disk | None = None
        self._watches: dict[int, list[Callable[[], object]]] = {}
        #: Strikes at its boundaries what an open tape says.
        self.striker: Striker | None = None
        if world.tape.open and not world.is_calm:
            from simkit.striking import Striker

            self.striker = Striker(self)
            self.clock.strike()

    @property
    def disk(self) -> Disk:
        """Its disk, made at first use."""
        if self._disk is None:
            from simkit.disk import Disk

            self._disk = Disk(self.name, self.world.tape.stream(f"disk/{self.name}"), self._boundary)
            self._disk.told = self.world.trace.told
            self._disk.on_delay = self._delay
            self._await_watched(0)
            self._disk.spares = functools.partial(self.world.copies.spares, self.name)
            self._disk.covers = functools.partial(self.world.copies.covers, self.name)
            if self.world.is_calm:
                self._disk.calm()
        return self._disk

    @property
    def has_disk(self) -> bool:
        """Whether its disk was ever used."""
        return self._disk is not None

    @property
    def boundaries(self) -> int:
        """How many storage boundaries it has crossed so far."""
        return 0 if self._disk is None else self._disk.boundaries

    def start(
        self, fn: Callable[..., Awaitable[Any]], *args: Any, name: str = "main", version: str | None = None
    ) -> Process:
        """Start a process that runs `fn(*args)`; other code than last time is an upgrade.

        `version` tells in traces, and to strategies, which code it runs: host/name@version#pid. Raises `OptionError` for
        what is no async function, and when the world is over.
        """
        given: object = fn
        if not callable(given):
            if inspect.iscoroutine(given):
                given.close()  # it is never awaited, and need not say so
            raise wrong(
                "Host.start: fn", fn, "an async function and its arguments: start(fn, *args), not start(fn(*args))"
            )
        if self.world.kernel.over:
            raise wrong("Host.start", self.name, "a world that goes on: this one has come to its end")
        if not self.up:
            self.boot()
        for watcher in watchers:
            watcher.starts(self)
        process = Process(self, self.world.next_pid(), name, version)
        self.processes.append(process)
        self.world.trace.record("start", process.label)
        self.world.kernel.spawn_system(process.live, (fn, args), process.label, process)
        return process

    async def supervise(
        self,
        fn: Callable[..., Awaitable[Any]],
        *args: Any,
        name: str = "main",
        after_ns: int = 1_000_000_000,
        restarts: int | None = None,
    ) -> ExitStatus:
        """Run `fn(*args)` in a process, and again whenever that was killed or failed, as a service manager does.

        Args:
            after_ns: how long it takes until the next start.
            restarts: at most so many; None for no bound.

        Returns: how the last process ended, by itself unless there were too many. Call it on the outside.
        """
        while True:
            status = await self.start(fn, *args, name=name).wait()
            if status.kind == "exited" or restarts == 0:
                return status
            restarts = None if restarts is None else restarts - 1
            await self.world.sleep_ns(after_ns)

    def power_loss(self, mode: CrashMode | CrashState = "sample", *, silent: bool = False) -> None:
        """Kill every process, and lose what was not durable.

        Args:
            mode: as the tape decides, "lose" all of it, "keep" all, or exactly one of `Disk.crash_states`.
            silent: the machine stays off until it boots, and tells nobody: its peers are left half open, and find out
                by a timeout, or by a reset when they send to it after it has booted.
        """
        if isinstance(mode, str) and mode not in _MODES:
            raise wrong("Host.power_loss: mode", mode, f"one of {', '.join(_MODES)}, or one of Disk.crash_states()")
        for watcher in watchers:
            watcher.loses_power(self)
        self.world.trace.record("power-loss", self.name, mode if isinstance(mode, str) else mode.code)
        self.up = self.up and not silent
        for process in tuple(self.processes):
            process.kill()
        if self._disk is not None:
            losses = self._disk.crash(mode).losses
            self.world.trace.record("lost", self.name, *(f"{what}={times}" for what, times in losses.items()))

    def wipe(self) -> None:
        """Kill every process, and lose the whole disk, synced or not: the machine starts anew under its old name."""
        self.world.trace.record("wipe", self.name)
        for process in tuple(self.processes):
            process.kill()
        if self._disk is not None:
            self._disk.wipe()

    def boot(self) -> None:
        """Switch it on again after a silent loss of power: from now on it answers, if only with resets."""
        if not self.up:
            self.up = True
            self.world.trace.record("boot", self.name)
            self.world.network.booted(self.name)

    def calm(self) -> None:
        """Turn its faults off: disk and clock behave, what was paused or stalled goes on, nothing strikes at a boundary."""
        self._watches.clear()
        if self.striker is not None:
            self.striker.calm()
        self.clock.calm()
        if self._disk is not None:
            self._await_watched(0)
            self._disk.calm()
        for process in self.processes:
            process.relieve()

    def at_boundary(self, number: int, action: Callable[[], object]) -> None:
        """Call `action` once, right before storage boundary `number` (from 1) takes effect.

        When the action kills the process at work, or cuts the power, the operation does not happen. When it returns a
        `Tear`, only the first bytes of the write happen, and then what the tear says.
        """
        need_whole("Host.at_boundary: number", number, 1)
        self._watches.setdefault(number, []).append(action)
        self._await_watched(self.boundaries)

    def forget(self, process: Process) -> None:
        """A process has ended."""
        self.processes.remove(process)

    def _boundary(self, boundary: Boundary) -> Tear | None:
        actions = self._watches.pop(boundary.number, None)
        if actions is not None:
            self._await_watched(boundary.number)
            tear = _tear_of([action() for action in actions])
            if tear is not None:
                return tear
        return None if self.striker is None else self.striker.at_disk(boundary)

    def _await_watched(self, number: int) -> None:
        """Let the disk ask when the next boundary after `number` is there at which something shall happen, not before."""
        if self._disk is not None and self._disk.on_boundary == self._boundary:  # else it is for others to say
            asks = self.striker is not None and not self.striker.is_calm  # at every boundary
            self._disk.hook_from(
                0 if asks else min((nth for nth in self._watches if nth > number), default=NO_BOUNDARY)
            )

    def _delay(self, owner: object, ns: int) -> None:
        """A call into the disk took its time: whoever made it stands still for so long."""
        self.world.trace.record("slow-io", self.name, ns)
        if isinstance(owner, Process):
            owner.stall(ns)

    def __repr__(self) -> str:
        return f"<Host {self.name} {self.address}>"


def _tear_of(answers: list[object]) -> Tear | None:
    from simkit.disk import Tear

    return next((answer for answer in answers if isinstance(answer, Tear)), None)

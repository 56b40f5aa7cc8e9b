"""The process world: units are real processes with their real storage; the hosted services are real HTTP on loopback.

Every run has a folder of its own, given by the caller, with the state that outlives the units, a log of each
incarnation's error output, and `by-hand.txt`: how to start each of them without the kit.
The port of the engine, where a target has one, is chosen once per run and stays the same over restarts.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import trio

from conformance import machine, ports
from conformance.canaries import canary, is_found
from conformance.control import PROTOCOL, ControlChannel
from conformance.evidence import BY_HAND
from conformance.hosted import Hosted, hosted
from conformance.processes import Processes, UnitProcess, environment
from conformance.world import BATCHES, REBATCH, REBUILT, Sighting, unheard
from conformance.worlds import clocks
from conformance.worlds.clocks import Clock
from conformance.worlds.pulse import Pulse
from conformance.worlds.room import CAN_BE_TAKEN, Room
from simkit.errors import ExitCode, Problem, SimkitError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from conformance.targets import Target
    from conformance.world import Born
    from simkit.services import Gate, Outside

_MS = 1_000_000


@attrs.define(eq=False)
class RealUnit:
    """One unit as a real process."""

    name: str
    incarnation: int
    process: UnitProcess
    state: Path
    room: Room
    clock: Clock | None = None
    control: ControlChannel | None = None

    @property
    def alive(self) -> bool:
        return self.process.alive

    async def kill(self, *, power: bool, state: str | None = None) -> None:
        if power:
            raise SimkitError(_impossible("power"))
        await self.process.kill()

    def ask_to_leave(self) -> None:
        self.process.ask_to_leave()

    @property
    def left_in_order(self) -> bool:
        return self.process.returncode is not None and self.process.returncode >= 0

    async def bury(self) -> None:
        await self.process.end()

    async def pause(self) -> None:
        await self.process.pause()

    async def resume(self) -> None:
        await self.process.resume()

    def jump(self, ns: int) -> bool:
        if self.clock is None:
            raise SimkitError(_impossible(f"a jump of {ns} ns of the clock"))
        return self.clock.jump(ns)

    def full(self, on: bool) -> None:
        if not CAN_BE_TAKEN:
            raise SimkitError(_impossible("a full disk" if on else "a disk with room again"))
        if on:
            self.room.take()
        else:
            self.room.give_back()

    def flip(self) -> bool:
        return _flip_largest(self.state)

    def wipe(self) -> None:
        for path in self.state.iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()

    @property
    def ending(self) -> str:
        return self.process.ending

    def last_words(self) -> str:
        return self.process.last_words()


class ProcessWorld:
    """Launches the units of one run. Use `process_world`, which cleans up."""

    def __init__(self, target: Target, python: str, folder: Path, processes: Processes, engine_port: int) -> None:
        self._target, self._python, self._folder, self._processes = target, python, folder, processes
        self._engine_port = engine_port
        self.pulse = Pulse()
        self._hosted: Hosted | None = None
        self._secrets: dict[str, str] = {}
        self._rooms: dict[str, Room] = {}
        self._clocks: dict[str, Clock] = {}
        #: What the adapter sent to the services that could not be read, and limits of theirs that it met.
        self.problems: list[Problem] = []

    def now_ns(self) -> int:
        return time.monotonic_ns()

    def spent_ns(self) -> int:
        self.pulse.look()
        return time.monotonic_ns() - self.pulse.lost_ns

    @property
    def stormy(self) -> bool:
        return False

    def nonce(self) -> str:
        return secrets.token_hex(8)

    async def sleep_ns(self, ns: int) -> None:
        await trio.sleep(ns / 1e9)

    @contextlib.asynccontextmanager
    async def serving(self, outside: Outside, gate: Gate) -> AsyncIterator[None]:
        async with hosted(outside, self._on_problem, gate=gate) as self._hosted:
            yield

    def _on_problem(self, _incarnation: int, problem: Problem) -> None:
        self.problems.append(problem)

    def fires(self, label: str) -> None:
        """Nobody draws a run on real processes: its history says so."""

    def watch_boundary(self, unit: str, nth: int, strike: Callable[[], None]) -> None:
        raise SimkitError(_impossible(f"boundary {nth} of {unit}"))

    def fail_once(self, unit: str, nth: int, strike: Callable[[], bool], *, kind: str | None = None) -> None:
        raise SimkitError(_impossible(f"boundary {nth} of {unit}"))

    def entrust(self, names: Sequence[str]) -> Mapping[str, str]:
        self._secrets = {name: canary(secrets.token_hex(12)) for name in names}
        return self._secrets

    def scan(self, secrets: Mapping[str, str]) -> Sighting:
        """Every file of every unit's state, and every line of their error output."""
        files = {"store": [*(self._folder / "state").rglob("*")], "logs": [*self._folder.glob("*.log")]}
        found = [
            f"{place}:{name}"
            for place, paths in files.items()
            for name, value in secrets.items()
            if any(is_found(value, path.read_bytes()) for path in paths if path.is_file())
        ]
        return Sighting(tuple(files), tuple(found))

    async def launch(
        self, unit: str, incarnation: int, *, code: str = "", forget: str = "", born: Born = unheard
    ) -> RealUnit:
        assert self._hosted is not None, "units are launched inside `serving`"
        port = await self._hosted.open_port(incarnation)
        with machine.giving("cannot make the folder of a unit", str(self._folder)):
            state = self._state(unit)
            self._clock(unit)
        room = self._rooms.setdefault(unit, Room())
        born()  # now: while it is being started it may run already
        process = await self._processes.start(
            f"{self._target.name} {unit} #{incarnation}",
            room.command(self._target.command(unit, self._python)),
            cwd=self._target.folder,
            env=environment(self._variables(unit, incarnation, port, state, code, forget)),
            stderr=self._folder / f"{unit}-{incarnation}.log",
            control=self._target.manifest.units[unit].control,
        )
        room.belongs_to(process)
        real = RealUnit(unit, incarnation, process, state, room, self._clocks.get(unit))
        try:
            self._note(process)
            await self._greet(real)
        except SimkitError:
            await process.end()
            raise
        return real

    def _note(self, process: UnitProcess) -> None:
        """Write down how to start it without the kit."""
        doing = "cannot note how a unit was started"
        with machine.giving(doing, str(self._folder)), (self._folder / BY_HAND).open("a", encoding="utf-8") as notes:
            notes.write(f"# {process.name}\n{process.by_hand}\n")

    async def _greet(self, unit: RealUnit) -> None:
        """Open its control channel, where it has one."""
        process = unit.process
        if self._target.manifest.units[unit.name].control:
            unit.control = ControlChannel(
                process.stdin, process.stdout, peer=process.name, last_words=process.last_words
            )
            await process.first(lambda: self._hello(unit))

    async def _hello(self, unit: RealUnit) -> None:
        assert unit.control is not None
        answer = await unit.control.ask("hello", self._target.manifest.limits.boot_ms * _MS, protocol=PROTOCOL)
        if answer.outcome != "ok":
            raise SimkitError(
                Problem(
                    "adapter-refused-hello",
                    f"{unit.process.name} refused hello: {answer.detail}",
                    "verb hello",
                    f"an adapter that speaks protocol {PROTOCOL}",
                    "the helper `simkit_adapter` that comes with this simkit speaks it",
                    ExitCode.TARGET,
                )
            )
        for name, ours in (("protocol", PROTOCOL), ("version", self._target.version)):
            if answer.ok.get(name, ours) != ours:
                raise SimkitError(self._someone_else(unit, name, answer.ok[name], ours))

    def _someone_else(self, unit: RealUnit, name: str, said: object, ours: object) -> Problem:
        """It says of itself what a certificate would state otherwise."""
        return Problem(
            "adapter-is-another",
            f"{unit.process.name} says that its {name} is {said!r:.80}, and it was started for {ours!r}",
            f"verb hello, field {name}",
            f"{name} {ours!r}, as the manifest or the target has it, or nothing said of it",
            "is the harness that is installed the one that the manifest names? A certificate states what the manifest says",
            ExitCode.TARGET,
        )

    def demand_sound(self) -> None:
        """Raise SimkitError where something that stands in no history spoilt the run: whatever came of it says nothing."""
        if self.problems:
            raise SimkitError(self.problems[0])
        self.pulse.demand_steady()

    def demand_noticed(self) -> None:
        """Raise SimkitError where a clock was set and nobody has looked at it since."""
        for clock in self._clocks.values():
            clock.demand_noticed()

    def _clock(self, unit: str) -> Mapping[str, str]:
        """How a unit learns of its clock, where it follows one that can be set."""
        if not self._target.manifest.units[unit].clock:
            return {}
        if unit not in self._clocks:
            self._clocks[unit] = Clock(self._folder / f"{unit}.clock")
        return {clocks.VARIABLE: str(self._clocks[unit].path)}

    def _state(self, unit: str) -> Path:
        """What this unit keeps: a folder of its own, where there are several units."""
        state = self._folder / "state"
        if len(self._target.manifest.units) > 1:
            state /= unit
        state.mkdir(parents=True, exist_ok=True)
        return state

    def _variables(self, unit: str, incarnation: int, port: int, state: Path, code: str, forget: str) -> dict[str, str]:
        return {
            **self._target.environment(unit),
            **({"SIMKIT_SECRETS": json.dumps(self._secrets)} if self._secrets else {}),
            **({"SIMKIT_CODE": code} if code else {}),
            **({"SIMKIT_FORGET": forget} if forget else {}),
            **self._clock(unit),
            REBATCH: str(incarnation % BATCHES),
            "SIMKIT_STATE": str(state),
            "SIMKIT_ENGINE_HOST": ports.LOOPBACK,
            "SIMKIT_ENGINE_PORT": str(self._engine_port),
            "SIMKIT_SERVICES": f"http://{ports.LOOPBACK}:{port}",
        }


@contextlib.asynccontextmanager
async def process_world(target: Target, python: str, folder: Path) -> AsyncIterator[ProcessWorld]:
    """A world for one run, with its files in the empty `folder`; every process is gone when the block is left. Raises
    SimkitError for a run that cannot be judged, whatever else it may have ended with.
    """
    with ports.reserved() as engine_port:  # kept until every process is gone
        async with Processes() as processes:
            world = ProcessWorld(target, python, folder, processes, engine_port)
            with world.pulse.beating():
                try:
                    yield world
                except SimkitError:
                    world.demand_sound()  # what went wrong may have gone wrong over that
                    raise
            world.demand_sound()
            world.demand_noticed()


def _flip_largest(state: Path) -> bool:
    """Turn over one bit, chosen at random, of the largest file under `state`; False when there is nothing to damage."""
    files = [path for path in state.rglob("*") if path.is_file() and not path.name.endswith(REBUILT)]
    path = max(files, key=lambda one: (one.stat().st_size, str(one)), default=None)
    if path is None or path.stat().st_size == 0:
        return False
    at = secrets.randbelow(path.stat().st_size)
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ (1 << secrets.randbelow(8))]))
    return True


def _impossible(what: str) -> Problem:
    return Problem(
        "not-in-process-world",
        f"{what} cannot be struck in real processes",
        "process world",
        "what can be done to real processes and their files; `conformance.possible` tells it beforehand",
        "power loss and storage boundaries belong to the simulated world: simkit run",
    )

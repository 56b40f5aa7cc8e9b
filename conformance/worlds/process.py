"""The process world: units are real processes with their real storage; the hosted services are real HTTP on loopback.

Every run has a folder of its own, given by the caller, with the state that outlives the units, a log of each
incarnation's error output, and `by-hand.txt`: how to start each of them without the kit.
The port of the engine, where a target has one, is chosen once per run and stays the same over restarts.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from typing import TYPE_CHECKING

import attrs
import trio

from conformance import ports
from conformance.control import PROTOCOL, ControlChannel
from conformance.evidence import BY_HAND
from conformance.hosted import Hosted, hosted
from conformance.processes import Processes, UnitProcess, environment
from simkit.errors import ExitCode, Problem, SimkitError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from conformance.targets import Target
    from simkit.services import Gate, Outside

_MS = 1_000_000


@attrs.define(eq=False)
class RealUnit:
    """One unit as a real process."""

    name: str
    incarnation: int
    process: UnitProcess
    control: ControlChannel | None = None

    @property
    def alive(self) -> bool:
        return self.process.alive

    async def kill(self, *, power: bool, state: str | None = None) -> None:
        if power:
            raise SimkitError(_impossible("power"))
        await self.process.kill()

    async def pause(self) -> None:
        await self.process.pause()

    async def resume(self) -> None:
        await self.process.resume()

    def last_words(self) -> str:
        return self.process.last_words()


class ProcessWorld:
    """Launches the units of one run. Use `process_world`, which cleans up."""

    def __init__(self, target: Target, python: str, folder: Path, processes: Processes, engine_port: int) -> None:
        self._target, self._python, self._folder, self._processes = target, python, folder, processes
        self._engine_port = engine_port
        self._hosted: Hosted | None = None
        #: What the adapter sent to the services that could not be read.
        self.problems: list[Problem] = []

    def now_ns(self) -> int:
        return time.monotonic_ns()

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

    def watch_boundary(self, unit: str, nth: int, strike: Callable[[], None]) -> None:
        raise SimkitError(_impossible(f"boundary {nth} of {unit}"))

    async def launch(self, unit: str, incarnation: int) -> RealUnit:
        assert self._hosted is not None, "units are launched inside `serving`"
        port = await self._hosted.open_port(incarnation)
        process = await self._processes.start(
            f"{self._target.name} {unit} #{incarnation}",
            self._target.command(unit, self._python),
            cwd=self._target.folder,
            env=environment(self._variables(unit, port)),
            stderr=self._folder / f"{unit}-{incarnation}.log",
            control=self._target.manifest.units[unit].control,
        )
        with (self._folder / BY_HAND).open("a", encoding="utf-8") as notes:
            notes.write(f"# {process.name}\n{process.by_hand}\n")
        real = RealUnit(unit, incarnation, process)
        if self._target.manifest.units[unit].control:
            real.control = ControlChannel(
                process.stdin, process.stdout, peer=process.name, last_words=process.last_words
            )
            await process.first(lambda: self._greet(real))
        return real

    async def _greet(self, unit: RealUnit) -> None:
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

    def _variables(self, unit: str, port: int) -> dict[str, str]:
        state = self._folder / "state"
        state.mkdir(exist_ok=True)
        return {
            **self._target.environment(unit),
            "SIMKIT_STATE": str(state),
            "SIMKIT_ENGINE_HOST": ports.LOOPBACK,
            "SIMKIT_ENGINE_PORT": str(self._engine_port),
            "SIMKIT_SERVICES": f"http://{ports.LOOPBACK}:{port}",
        }


@contextlib.asynccontextmanager
async def process_world(target: Target, python: str, folder: Path) -> AsyncIterator[ProcessWorld]:
    """A world for one run, with its files in the empty `folder`; every process is gone when the block is left."""
    with ports.reserved() as engine_port:  # kept until every process is gone
        async with Processes() as processes:
            yield ProcessWorld(target, python, folder, processes, engine_port)


def _impossible(what: str) -> Problem:
    return Problem(
        "not-in-process-world",
        f"{what} cannot be struck in real processes",
        "process world",
        "kill, pause, reply faults and repeats",
        "power loss and storage boundaries belong to the simulated world: simkit run",
    )

"""A worker in either world, to be launched and struck: as a real process, and the same on simulated hosts."""

from __future__ import annotations

import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import attrs
import trio

from conformance import targets
from conformance.helper.simkit_adapter import serve_streams
from conformance.processes import Processes
from conformance.recorder import Recorder
from conformance.world import Unit, World
from conformance.worlds.process import ProcessWorld
from conformance.worlds.simulated import SimulatedWorld
from simkit import world as simulation
from simkit.services import Outside, open_gate
from simkit.tape import Tape
from simkit.world import Limits

T = TypeVar("T")
SETTINGS = ("SIMKIT_SECRETS", "SIMKIT_CODE", "SIMKIT_FORGET")
#: A worker that keeps what it is told to, and shows the variables it was started with.
PROGRAM = """
import os, sys, time
from simkit_adapter import follow_clock, serve, state_folder
follow_clock()
class Adapter:
    def start(self, run, plan, key):
        (state_folder() / run).write_bytes(key.encode() * 100)
        print(plan["say"], file=sys.stderr, flush=True)
    def status(self, run):
        return {"state": "running"}
    def artifacts(self, run):
        names = sorted(path.name for path in state_folder().iterdir())
        return {"artifacts": [], "env": {name: os.environ.get(name) for name in SETTINGS}, "files": names,
                "clocks": [time.time(), time.time_ns() / 1e9, time.clock_gettime(time.CLOCK_REALTIME)]}
serve(Adapter())
""".replace("SETTINGS", repr(SETTINGS))


def put(path: Path, data: bytes) -> None:
    """Add to a file, which is made where it is not there."""
    with path.open("ab") as file:
        file.write(data)


def listed(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


class Module:
    """The same worker, for simulated hosts; an engine that writes and syncs as it is told to by its variables."""

    def __init__(self) -> None:
        self.failures: list[int | None] = []
        self.hours: list[float] = []

    async def run_engine(self, env: Mapping[str, str]) -> None:
        state = Path(env["SIMKIT_STATE"])
        put(state / "small", b"s")
        put(state / "large", b"\xff" * 4096)
        for _ in range(100):
            self.hours.append(time.time())
            try:
                put(state / "log", b"line")
            except OSError as error:
                self.failures.append(error.errno)
            else:
                self.failures.append(None)
            await trio.sleep(0.1)

    async def run_worker(self, env: Mapping[str, str], control: trio.abc.Stream) -> None:
        state = Path(env["SIMKIT_STATE"])

        class Adapter:
            def start(self, run: str, plan: Any, key: str) -> None:
                put(state / run, key.encode() * 100)

            def artifacts(self, run: str) -> Any:
                shown = {name: env.get(name) for name in SETTINGS}
                return {"artifacts": [], "env": shown, "files": listed(state)}

        async def receive() -> bytes:
            return bytes(await control.receive_some())

        await serve_streams(Adapter(), receive, control.send_all)


def simulated(talk: Callable[[SimulatedWorld, Module], Awaitable[T]], module: Module | None = None) -> T:
    module = module or Module()

    async def main(world: simulation.World) -> T:
        async with trio.open_nursery() as nursery:
            inner = SimulatedWorld(world, module, {}, nursery)  # type: ignore[arg-type]
            async with inner.serving(outside(inner), open_gate):
                told = await talk(inner, module)
            nursery.cancel_scope.cancel()
        return told

    return simulation.run(main, tape=Tape.from_seed(1), limits=Limits(steps=100_000)).unwrap()


def process(
    folder: Path,
    talk: Callable[[ProcessWorld], Awaitable[T]],
    *units: str,
    clock: bool = False,
    program: str = PROGRAM,
    recorder: Recorder | None = None,
) -> T:
    (folder / "adapter").mkdir()
    (folder / "adapter" / "adapter.py").write_text(program)
    naive = targets.parse("naive")
    worker = attrs.evolve(naive.manifest.units["worker"], command=("{python}", "adapter.py"), clock=clock)
    others = {name: attrs.evolve(worker, command=("{python}", "-c", "input()"), control=False) for name in units}
    manifest = attrs.evolve(naive.manifest, units={**others, "worker": worker})
    target = attrs.evolve(naive, folder=folder / "adapter", manifest=manifest)

    async def main() -> T:
        with trio.fail_after(30):
            async with Processes() as processes:
                world = ProcessWorld(target, sys.executable, folder, processes, 1)
                async with world.serving(outside(world, recorder), open_gate):
                    return await talk(world)

    return trio.run(main)


def outside(world: World, recorder: Recorder | None = None) -> Outside:
    return Outside(world.nonce, recorder or Recorder("r", world.now_ns), world.now_ns)


async def shown(unit: Unit) -> dict[str, Any]:
    assert unit.control is not None
    return dict((await unit.control.ask("artifacts", 5_000_000_000, run="r")).ok)


async def kept(unit: Unit, key: str, say: str = "") -> str:
    """Let it keep something; what it says if it could not."""
    assert unit.control is not None
    answer = await unit.control.ask("start", 5_000_000_000, run="r", plan={"say": say}, key=key)
    return "" if answer.outcome == "ok" else answer.detail

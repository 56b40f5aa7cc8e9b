"""Both worlds: what a unit is launched with, what can be done to its machine, and where secrets are looked for."""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import attrs
import pytest
import trio

from conformance import members, targets
from conformance.crew import EXITS_MAX, Crew
from conformance.evidence import BY_HAND
from conformance.helper.simkit_adapter import serve_streams
from conformance.processes import Processes
from conformance.recorder import Recorder
from conformance.subject import subject_of
from conformance.world import Patience, Unit, World
from conformance.worlds.process import ProcessWorld, RealUnit
from conformance.worlds.room import CAN_BE_TAKEN
from conformance.worlds.simulated import SimulatedWorld
from scenarios.history import Died, Received, Resumed, Started
from simkit import world as simulation
from simkit.errors import SimkitError
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


class Broken(Module):
    """An engine that breaks down over what it cannot send, and says what that was."""

    async def run_engine(self, env: Mapping[str, str]) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._send, json.loads(env["SIMKIT_SECRETS"]))

    async def _send(self, secrets: Mapping[str, str]) -> None:
        raise ConnectionError(f"cannot send {secrets['card']}")


def simulated(talk: Callable[[SimulatedWorld, Module], Awaitable[T]], module: Module | None = None) -> T:
    module = module or Module()

    async def main(world: simulation.World) -> T:
        async with trio.open_nursery() as nursery:
            inner = SimulatedWorld(world, module, {}, nursery)  # type: ignore[arg-type]
            async with inner.serving(_outside(inner), open_gate):
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
                async with world.serving(_outside(world, recorder), open_gate):
                    return await talk(world)

    return trio.run(main)


def _outside(world: World, recorder: Recorder | None = None) -> Outside:
    return Outside(world.nonce, recorder or Recorder("r", world.now_ns), world.now_ns)


async def shown(unit: Unit) -> dict[str, Any]:
    assert unit.control is not None
    return dict((await unit.control.ask("artifacts", 5_000_000_000, run="r")).ok)


async def kept(unit: Unit, key: str, say: str = "") -> str:
    """Let it keep something; what it says if it could not."""
    assert unit.control is not None
    answer = await unit.control.ask("start", 5_000_000_000, run="r", plan={"say": say}, key=key)
    return "" if answer.outcome == "ok" else answer.detail


async def launches(world: World) -> list[dict[str, Any]]:
    """The variables of a worker without, and of one with everything."""
    plain = await world.launch("worker", 1)
    first = (await shown(plain))["env"]
    await plain.kill(power=False)
    world.entrust(("card",))
    second = await world.launch("worker", 2, code="2", forget="audit")
    return [first, (await shown(second))["env"]]


@pytest.mark.parametrize("kind", ["simulated", "process"])
def test_a_unit_is_told_its_code_its_secrets_and_what_to_forget(kind: str, tmp_path: Path) -> None:
    """By its environment, and only where there is something to tell."""
    plain, full = simulated(lambda world, _: launches(world)) if kind == "simulated" else process(tmp_path, launches)
    assert plain == dict.fromkeys(SETTINGS)
    assert (full["SIMKIT_CODE"], full["SIMKIT_FORGET"]) == ("2", "audit")
    assert json.loads(full["SIMKIT_SECRETS"])["card"].startswith("canary-")


async def finds(world: World) -> list[tuple[str, ...]]:
    """Where a secret is found before it is written, and after."""
    secrets = world.entrust(("card", "pin"))
    unit = await world.launch("worker", 1)
    before = world.scan(secrets)
    await kept(unit, secrets["card"])
    after = world.scan(secrets)
    assert unit.control is not None
    return [before.places, before.found, after.found]


@pytest.mark.parametrize("kind", ["simulated", "process"])
def test_secrets_are_found_in_what_units_have_stored(kind: str, tmp_path: Path) -> None:
    """By name, and never one that is not there."""
    told = simulated(lambda world, _: finds(world)) if kind == "simulated" else process(tmp_path, finds)
    assert told == [("store", "logs"), (), ("store:card",)]


def test_secrets_are_found_in_logs(tmp_path: Path) -> None:
    """What a program prints to its error output is looked through."""

    async def talk(world: ProcessWorld) -> tuple[str, ...]:
        secrets = world.entrust(("card",))
        await kept(await world.launch("worker", 1), "k", say=secrets["card"])
        return world.scan(secrets).found

    assert process(tmp_path, talk) == ("logs:card",)


def test_secrets_are_found_in_the_words_that_a_simulated_unit_ends_with() -> None:
    """Of every exception in it, as the traceback of a program would have them."""

    async def talk(world: SimulatedWorld, _: Module) -> tuple[str, ...]:
        secrets = world.entrust(("card", "pin"))
        unit = await world.launch("engine", 1)
        while unit.alive:
            await world.sleep_ns(1_000_000)
        return world.scan(secrets).found

    assert simulated(talk, Broken()) == ("logs:card",)


#: Calls as it recovers, long before it speaks to the kit; told to, it ends over it.
EAGER = """
import os, sys
from simkit_adapter import call, serve, state_folder
call({"op": "call", "id": "a", "service": "reader"}, "r", {})
if (state_folder() / "bad").exists():
    sys.exit("bad state")
class Adapter:
    def status(self, run):
        return {"state": "running"}
serve(Adapter())
"""


def test_nothing_is_seen_of_a_worker_before_it_has_started(tmp_path: Path) -> None:
    """In the history its start comes before its first call, also of one that never answers the kit; and then its end."""
    recorder = Recorder("r", time.monotonic_ns)
    subject = subject_of(targets.parse("naive").manifest)

    async def talk(world: ProcessWorld) -> None:
        crew = Crew(world, subject, recorder, Patience(subject.bounds, world.spent_ns))
        await crew.ensure_up()
        assert crew.worker is not None
        await crew.kill(crew.worker)
        (tmp_path / "state" / "bad").touch()
        crew.is_damaged = True
        await crew.ensure_up()

    process(tmp_path, talk, program=EAGER, recorder=recorder)
    seen = [
        (type(one).__name__, one.incarnation) for one in recorder.events if isinstance(one, Started | Received | Died)
    ]
    assert seen == [(kind, worker) for worker in (1, 2) for kind in ("Started", "Received", "Died")]
    assert [one.cause for one in recorder.events if isinstance(one, Died)] == ["killed", "exited"]


#: Ends over its first question, and leaves a child behind that goes on calling.
PARENT = """
import os, time
from simkit_adapter import call, serve
class Adapter:
    def status(self, run):
        return {"state": "running"}
    def start(self, run, plan, key):
        if os.fork():
            os._exit(3)
        if plan["leaves"]:
            os.setsid()
        while True:
            call({"op": "call", "id": "a", "service": "reader"}, "r", {})
            time.sleep(0.02)
serve(Adapter())
"""


#: Calls and calls.
BUSY = """
import threading, time
from simkit_adapter import call, serve
def work():
    while True:
        call({"op": "call", "id": "a", "service": "reader"}, "r", {})
        time.sleep(0.02)
class Adapter:
    def status(self, run):
        return {"state": "running"}
threading.Thread(target=work, daemon=True).start()
serve(Adapter())
"""


@pytest.mark.skipif(not members.SHOWN, reason="only the group is seen here")
@pytest.mark.parametrize("leaves", [False, True])
def test_nothing_is_left_of_a_unit_that_ended(tmp_path: Path, *, leaves: bool) -> None:
    """Once its end is told, no process that it left behind calls any more."""
    recorder = Recorder("r", time.monotonic_ns)
    subject = subject_of(targets.parse("naive").manifest)

    async def talk(world: ProcessWorld) -> None:
        crew = Crew(world, subject, recorder, Patience(subject.bounds, world.spent_ns))
        await crew.ensure_up()
        assert crew.worker is not None
        assert crew.worker.control is not None
        with pytest.raises(SimkitError):
            await crew.worker.control.ask("start", 1_000_000_000, run="r", plan={"leaves": leaves}, key="k")
        while not any(isinstance(one, Received) for one in recorder.events):
            await world.sleep_ns(10_000_000)
        await crew.ensure_up()
        seen = len(recorder.events)
        assert [type(one) for one in recorder.events[-2:]] == [Died, Started]
        await world.sleep_ns(300_000_000)
        assert len(recorder.events) == seen

    process(tmp_path, talk, program=PARENT, recorder=recorder)


@pytest.mark.parametrize("damaged", [False, True])
def test_a_machine_without_room_is_no_refusal_of_the_target(tmp_path: Path, *, damaged: bool) -> None:
    """A worker whose start cannot be noted has ended when that is told, and has not stopped over its storage."""
    recorder = Recorder("r", time.monotonic_ns)
    subject = subject_of(targets.parse("naive").manifest)
    (tmp_path / BY_HAND).symlink_to("/dev/full")

    async def talk(world: ProcessWorld) -> list[object]:
        crew = Crew(world, subject, recorder, Patience(subject.bounds, world.spent_ns))
        crew.is_damaged = damaged
        with pytest.raises(SimkitError, match="machine-short"):
            await crew.ensure_up()
        assert isinstance(recorder.events[-1], Died)
        seen = len(recorder.events)
        await world.sleep_ns(300_000_000)
        return list(recorder.events[seen:])

    assert process(tmp_path, talk, program=BUSY, recorder=recorder) == []


def test_an_end_is_told_once(tmp_path: Path) -> None:
    """Also where the next one does not come up: it is tried as often as is said before the target has stopped."""
    recorder = Recorder("r", time.monotonic_ns)
    subject = subject_of(targets.parse("naive").manifest)

    async def talk(world: ProcessWorld) -> None:
        crew = Crew(world, subject, recorder, Patience(subject.bounds, world.spent_ns))
        await crew.ensure_up()
        assert isinstance(crew.worker, RealUnit)
        (tmp_path / "state" / "bad").touch()
        crew.is_damaged = True
        os.kill(crew.worker.process.pid, signal.SIGKILL)
        await crew.worker.process.wait()
        while not crew.has_stopped:
            await crew.ensure_up()

    process(tmp_path, talk, program=EAGER, recorder=recorder)
    ends = [one.incarnation for one in recorder.events if isinstance(one, Died)]
    assert ends == list(range(1, EXITS_MAX + 2))


def test_a_worker_that_is_let_go_is_awake_before_it_calls(tmp_path: Path) -> None:
    """What it sends while the system wakes it is not taken for what was on its way before."""
    recorder = Recorder("r", time.monotonic_ns)
    subject = subject_of(targets.parse("naive").manifest)

    async def talk(world: ProcessWorld) -> list[type]:
        crew = Crew(world, subject, recorder, Patience(subject.bounds, world.spent_ns))
        await crew.ensure_up()
        assert isinstance(crew.worker, RealUnit)
        unit = crew.worker
        resume = unit.process.resume

        async def slowly() -> None:
            await resume()
            while len(recorder.events) < rested + 4:  # noqa: ASYNC110 - as on a machine that takes its time to tell that it runs
                await trio.sleep(0.01)

        unit.process.resume = slowly  # type: ignore[method-assign]
        await crew.pause(unit)
        await world.sleep_ns(200_000_000)  # what was on its way has come
        rested = len(recorder.events)
        await crew.let_go(unit)
        return [type(one) for one in recorder.events[rested:]]

    kinds = process(tmp_path, talk, program=BUSY, recorder=recorder)
    assert kinds[0] is Resumed
    assert {Resumed, Received} <= set(kinds)


async def wiped(world: World) -> list[list[str]]:
    unit = await world.launch("worker", 1)
    await kept(unit, "k")
    before = (await shown(unit))["files"]
    await unit.kill(power=False)
    unit.wipe()
    return [before, (await shown(await world.launch("worker", 2)))["files"]]


@pytest.mark.parametrize("kind", ["simulated", "process"])
def test_a_wiped_unit_comes_back_with_nothing(kind: str, tmp_path: Path) -> None:
    """What it had stored is gone, and the folder is there."""
    told = simulated(lambda world, _: wiped(world)) if kind == "simulated" else process(tmp_path, wiped)
    assert told == [["r"], []]


def test_one_bit_of_the_largest_file_is_flipped_for_real(tmp_path: Path) -> None:
    """Of a real unit's own folder; where nothing is stored there is nothing to damage."""

    async def talk(world: ProcessWorld) -> tuple[bool, bool, list[int]]:
        unit = await world.launch("worker", 1)
        engine = await world.launch("engine", 2)
        await kept(unit, "\0")
        for one in (unit, engine):
            await one.kill(power=False)
        struck = unit.flip(), engine.flip()
        data = (tmp_path / "state" / "worker" / "r").read_bytes()
        return *struck, [byte for byte in data if byte]

    flipped, nothing, changed = process(tmp_path, talk, "engine")
    assert (flipped, nothing) == (True, False)
    assert len(changed) == 1
    assert changed[0].bit_count() == 1


def test_what_a_real_machine_cannot_do_is_refused(tmp_path: Path) -> None:
    """Loudly: boundaries, and the clock of a unit that does not follow it."""

    async def talk(world: ProcessWorld) -> list[str]:
        unit = await world.launch("worker", 1)
        codes = []
        for strike in (
            lambda: unit.jump(1),
            lambda: world.fail_once("worker", 1, lambda: True),
            lambda: world.watch_boundary("worker", 1, lambda: None),
        ):
            with pytest.raises(SimkitError) as caught:
                strike()
            codes.append(caught.value.problem.code)
        return codes

    assert process(tmp_path, talk) == ["not-in-process-world"] * 3


@pytest.mark.skipif(not CAN_BE_TAKEN, reason="limits of running processes cannot be changed here")
def test_a_real_unit_has_no_room_for_a_while(tmp_path: Path) -> None:
    """It is told at each write, also as another process that was started meanwhile; what was there can be read, and once there
    is room again all is as before.
    """

    async def talk(world: ProcessWorld) -> list[str]:
        first = await world.launch("worker", 1)
        before = await kept(first, "a")
        first.full(True)
        struck = await kept(first, "bb")
        await first.kill(power=False)
        second = await world.launch("worker", 2)
        assert (await shown(second))["files"] == ["r"]
        began_without = await kept(second, "bb")
        first.full(False)
        return [before, struck, began_without, await kept(second, "ccc")]

    before, struck, began_without, after = process(tmp_path, talk)
    assert (before, after) == ("", "")
    assert os.strerror(errno.EFBIG) in struck
    assert os.strerror(errno.EFBIG) in began_without
    assert (tmp_path / "state" / "r").read_bytes() == b"ccc" * 100


def test_the_clock_of_a_real_unit_jumps(tmp_path: Path) -> None:
    """However it asks for the time of day, and as another process of that unit too; before the first look nothing jumps."""

    async def talk(world: ProcessWorld) -> list[list[float]]:
        first = await world.launch("worker", 1)
        assert first.jump(3600 * 10**9) is False
        looks = [(await shown(first))["clocks"]]
        assert first.jump(3600 * 10**9) is True
        looks.append((await shown(first))["clocks"])
        world.demand_noticed()
        await first.kill(power=False)
        second = await world.launch("worker", 2)
        looks.append((await shown(second))["clocks"])
        assert second.jump(-7200 * 10**9) is True
        with pytest.raises(SimkitError, match="jump-missed"):
            world.demand_noticed()
        looks.append((await shown(second))["clocks"])
        world.demand_noticed()
        return looks

    began = time.time()
    looks = process(tmp_path, talk, clock=True)
    for clocks, hours in zip(looks, (0, 1, 1, -1), strict=True):
        assert [round((clock - began) / 3600) for clock in clocks] == [hours] * 3


def test_a_simulated_bit_flips_in_the_largest_file() -> None:
    """Once, and the tape says where."""

    async def talk(world: SimulatedWorld, _: Module) -> list[bool]:
        engine = await world.launch("engine", 1)
        await trio.sleep(0.05)
        await engine.kill(power=False)
        disk = engine.process.host.disk
        before = {path: bytes(node.cache) for path, node in disk.inodes().items()}
        assert engine.flip()
        after = {path: bytes(node.cache) for path, node in disk.inodes().items()}
        assert [path for path in before if before[path] != after[path]] == ["/state/large"]
        return [byte != 0xFF for byte in after["/state/large"]]

    assert simulated(talk).count(True) == 1


def test_a_simulated_disk_is_full_for_a_while() -> None:
    """Writes fail with ENOSPC meanwhile, and succeed before and after."""

    async def talk(world: SimulatedWorld, module: Module) -> list[int | None]:
        engine = await world.launch("engine", 1)
        for on in (True, False):
            await trio.sleep(0.25)
            engine.full(on)
        await trio.sleep(0.25)
        return module.failures

    failures = simulated(talk)
    assert set(failures) == {None, errno.ENOSPC}
    assert (failures[0], failures[-1]) == (None, None)


def test_a_simulated_clock_jumps() -> None:
    """Only the wall clock of that machine, and back where it says so."""

    async def talk(world: SimulatedWorld, module: Module) -> list[float]:
        engine = await world.launch("engine", 1)
        await trio.sleep(0.25)
        engine.jump(-3600 * 10**9)
        await trio.sleep(0.1)
        return module.hours

    *_, before, after = simulated(talk)
    assert before - after == pytest.approx(3600, abs=1)


@pytest.mark.parametrize("strikes", [True, False])
def test_an_operation_of_a_simulated_disk_fails_once(strikes: bool) -> None:
    """At the boundary that was asked for, where the answer there is yes; the next one is fine."""

    async def talk(world: SimulatedWorld, module: Module) -> list[int | None]:
        world.fail_once("engine", 7, lambda: strikes)
        await world.launch("engine", 1)
        await trio.sleep(0.5)
        return module.failures

    failures = simulated(talk)
    assert failures.count(errno.EIO) == (1 if strikes else 0)
    assert failures[-1] is None


def test_a_second_simulated_worker_has_a_machine_of_its_own() -> None:
    """Beside the living one; both answer."""

    async def talk(world: SimulatedWorld, _: Module) -> list[list[str]]:
        first = await world.launch("worker", 1)
        await kept(first, "k")
        second = await world.launch("worker", 2)
        return [(await shown(unit))["files"] for unit in (first, second)]

    assert simulated(talk) == [["r"], []]

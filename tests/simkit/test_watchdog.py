"""The watchdog: programs that never yield, swallow everything, or eat memory end as inconclusive, and the next run is well."""

# ruff: noqa: ASYNC230, BLE001, PTH123, SIM105  # bad programs are what is tested

from __future__ import annotations

import sys
import threading
import time
import types
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio

import simkit
from simkit._kernel import expulsion, hands, watchdog
from simkit.errors import ExitCode
from simkit.limits import BoundError
from simkit.tape import Tape
from simkit.world import KernelName, Limits, Outcome, World, run

Main = Callable[[World], Awaitable[Any]]


def helper() -> int:
    return sum(range(10))


async def spins(_world: World) -> None:
    await trio.sleep(1)
    while True:
        helper()


async def swallows(_world: World) -> None:
    while True:
        try:
            while True:
                helper()
        except BaseException:
            pass


async def swallows_on_every_level(_world: World) -> None:
    async def child() -> None:
        await trio.sleep(0.1)
        while True:
            try:
                while True:
                    try:
                        helper()
                    except BaseException:
                        helper()
                    finally:
                        helper()
            except BaseException:
                pass

    async with trio.open_nursery() as nursery:
        nursery.start_soon(child)
        nursery.start_soon(trio.sleep, 5)


async def spins_in_a_thread(world: World) -> None:
    def work() -> None:
        while True:
            helper()

    async def program() -> None:
        await trio.to_thread.run_sync(work)

    await world.host("a").start(program).wait()


async def sets_timers_for_ever(world: World) -> None:
    def again() -> None:
        world.call_later(1, again)

    again()
    await trio.sleep_forever()


NEVER_YIELD = [spins, swallows, swallows_on_every_level, spins_in_a_thread, sets_timers_for_ever]


async def well(world: World) -> int:
    await trio.sleep(1)
    return await trio.to_thread.run_sync(helper)


def ended(main: Main, kernel: KernelName = "fast", **limits: float) -> Outcome[Any]:
    """The outcome; and whatever it was, the next run in this process knows nothing of it."""
    switch_s, tracer = sys.getswitchinterval(), sys.gettrace()
    outcome = run(main, tape=Tape.from_seed(0), kernel=kernel, limits=Limits(**limits))  # type: ignore[arg-type]
    assert run(well, tape=Tape.from_seed(0)).unwrap() == 45
    assert sys.gettrace() is tracer
    assert expulsion._thread_ident == 0
    for _ in range(100):
        if sys.getswitchinterval() == switch_s:
            break
        time.sleep(0.02)  # until the dog has looked once more
    assert sys.getswitchinterval() == switch_s
    return outcome


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["fast", "fallback"])
@pytest.mark.parametrize("main", NEVER_YIELD)
def test_what_never_yields_is_inconclusive(main: Main, kernel: KernelName) -> None:
    """It is thrown out, whatever it swallows; the outcome says which bound, and the error where the code stood."""
    outcome = ended(main, kernel, step_s=0.5)
    assert (outcome.bound, outcome.error, outcome.value) == ("step-time", None, None)
    with pytest.raises(BoundError) as caught:
        outcome.unwrap()
    problem = caught.value.problem
    assert (problem.code, problem.exit_code) == ("bound-met", ExitCode.INCONCLUSIVE)
    assert "never yields" in problem.what
    if main is not sets_timers_for_ever:
        assert "test_watchdog.py" in problem.where
        assert "the program stood here:\n  File " in problem.hint


@pytest.mark.slow
def test_memory_that_runs_away_is_inconclusive() -> None:
    """Whether it yields or not."""
    kept: list[bytes] = []

    async def yields(_world: World) -> None:
        while True:
            kept.append(b"x" * 5_000_000)
            await trio.sleep(1)

    async def does_not(_world: World) -> None:
        while True:
            kept.append(b"x" * 5_000_000)

    for main in (yields, does_not):
        outcome = ended(main, memory_bytes=200_000_000)
        kept.clear()
        assert (outcome.bound, outcome.error) == ("memory", None)


@pytest.mark.slow
def test_a_trace_that_runs_away_is_inconclusive() -> None:
    """Events without steps: those that a program tells in a loop."""

    async def tells(world: World) -> None:
        while True:
            world.trace.record("more")

    assert ended(tells, events=1000).bound == "events"


@pytest.mark.slow
def test_the_dead_who_go_on_are_thrown_out_and_the_rest_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed process whose code swallows what its handles say: it ends, the world goes on, and it does not matter when."""

    async def program() -> None:
        with open("/file", "wb", buffering=0) as file:
            while True:
                try:
                    file.write(b"x")
                except BaseException:
                    pass

    async def main(world: World) -> tuple[str, int]:
        host = world.host("a")
        process = host.start(program)
        host.at_boundary(3, process.kill)
        await trio.sleep(5)
        return str(process.status), host.disk.size("/file")

    outcome = ended(main)
    assert (outcome.unwrap(), outcome.bound) == (("killed", 1), None)
    for look_s, dead_s, patience_s in ((0.05, 0.0, 0.0), (0.11, 0.3, 0.1)):
        monkeypatch.setattr(watchdog, "LOOK_S", look_s)
        monkeypatch.setattr(watchdog, "_DEAD_S", dead_s)
        monkeypatch.setattr(watchdog, "_PATIENCE_S", patience_s)
        assert ended(main).digest == outcome.digest


_AS_KERNEL = """
def call(fn, out):
    try:
        fn()
    except BaseException as error:
        out.append(type(error).__name__)
"""


@pytest.mark.parametrize(("meant", "told"), [(True, ["EndedError"]), (False, ["goes on"])])
def test_only_who_is_meant_is_thrown_out(meant: bool, told: list[str]) -> None:
    """Whatever comes too late hits nobody: every line asks, in its own thread, whether it still runs for that step."""
    seen: list[str] = []

    def program() -> None:
        beside = threading.Thread(target=expulsion.expel, args=(threading.get_ident(), lambda: meant))
        beside.start()
        beside.join()
        late()
        seen.append("goes on")

    def late() -> None:
        try:
            raise expulsion.EndedError  # noqa: TRY301  # as thrown from beside
        except expulsion.EndedError:
            helper()

    names: dict[str, Any] = {}
    exec(compile(_AS_KERNEL, f"{expulsion._HERE}pretended.py", "exec"), names)
    try:
        names["call"](program, seen)
    finally:
        expulsion.pardon(threading.get_ident())
    assert seen == told


class _Idle:
    """A kernel that stands in one step."""

    def __init__(self) -> None:
        self.stopped: list[str] = []
        self.away = None
        self.runner = types.SimpleNamespace(threads=None)
        self.dead: set[object] = set()

    def stop(self, bound: str) -> None:
        self.stopped.append(bound)


def test_a_busy_machine_ends_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """What counts is for how long the step had a processor, however long it took."""
    kernel = _Idle()
    watch = watchdog.Watch(kernel, lambda: 0, 1.0, 1 << 40, 10)  # type: ignore[arg-type]
    spent = iter(number / 1000 for number in range(2000))
    monkeypatch.setattr(watchdog.Watch, "_spent_s", lambda _: next(spent))
    for _ in range(1000):
        watch.look(0.5, 0, 0)
    assert (watch.met, kernel.stopped) == (None, []), "500 seconds went by, and it had one"
    for _ in range(5):
        watch.look(0.5, 0, 0)
    assert (watch.met, kernel.stopped[:1]) == ("step-time", ["step-time"])


def test_the_clock_of_a_run_is_that_of_its_thread() -> None:
    """What other threads of the process compute is not the program's; of a thread that is gone nothing is told."""
    watch = watchdog.Watch(_Idle(), lambda: 0, 1.0, 1 << 40, 10)  # type: ignore[arg-type]
    before_s = watch._spent_s()
    while watch._spent_s() < before_s + 0.01:
        helper()
    if not hasattr(time, "pthread_getcpuclockid"):
        return
    mine_s, told = watch._spent_s(), []
    stop = threading.Event()

    def beside() -> None:
        hand = hands.Hand(is_kept=False)
        hand.clock = hands.clock_of(threading.get_ident())
        while hand.spent_s() < 1.0:
            helper()
        told.append(hand)
        stop.set()

    thread = threading.Thread(target=beside)
    thread.start()
    stop.wait()
    thread.join()
    assert watch._spent_s() - mine_s < 0.5
    told[0].spent_s()  # and no fault, when there is none any more


def test_whoever_swallows_at_awaits_meets_the_other_bounds() -> None:
    """Steps and virtual time are counted, and a kill runs no code at all."""

    async def stubborn() -> None:
        while True:
            try:
                await trio.sleep(1)
            except BaseException:
                pass

    async def main(world: World, seconds: float) -> str:
        process = world.host("a").start(stubborn)
        await trio.sleep(seconds)
        process.kill()
        return str(await process.wait())

    async def cancelled(_world: World) -> None:
        with trio.move_on_after(1):
            await stubborn()

    assert ended(lambda world: main(world, 3)).unwrap() == "killed"
    assert ended(lambda world: main(world, 1e9), time_ns=10**12).bound == "time"
    assert ended(cancelled, steps=1000).bound == "steps"


def test_a_debugger_may_take_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever stands at a breakpoint is not taken for a program that never yields."""
    frame = sys._getframe()
    assert not watchdog._is_debugged(frame)
    names = {"frame": None}
    exec(compile("import sys\nframe = sys._getframe()", "/usr/lib/python3.11/pdb.py", "exec"), names)
    assert watchdog._is_debugged(names["frame"])


def test_one_simulation_at_a_time() -> None:
    """From inside a simulation, or beside one in another thread, `run` says so and what to do."""
    told: list[str] = []

    def elsewhere() -> None:
        try:
            run(well, tape=Tape.from_seed(0))
        except simkit.SimkitError as error:
            told.append(f"{error.problem.code}: {error.problem.where}; {error.problem.hint}")

    async def main(_world: World) -> None:
        elsewhere()
        await trio.to_thread.run_sync(elsewhere)

    def beside(world: World) -> Any:
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        return well(world)

    run(main, tape=Tape.from_seed(0)).unwrap()
    assert len(told) == 2
    assert told[0].startswith("run-within-run: inside the simulation that is running; what is simulated inside")
    told.clear()
    run(beside, tape=Tape.from_seed(0), guard=False).unwrap()
    assert "another thread has a simulation running" in told[0]
    assert "simkit.campaign" in told[0]

"""Processes: killed without unwinding, paused, resumed, restarted."""

from __future__ import annotations

import contextlib
import gc
import os
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest
import trio

from simkit.process import ExitStatus, Process, current_process
from simkit.tape import Tape
from simkit.world import Limits, Outcome, World, run

Main = Callable[[World], Awaitable[Any]]
S = 1_000_000_000
both_kernels = pytest.mark.parametrize("kernel", ["fast", "fallback"])


def simulate(main: Main, kernel: str = "fast", **options: Any) -> Outcome[Any]:
    outcome = run(main, tape=Tape.from_seed(1), kernel=kernel, **options)  # type: ignore[arg-type]
    gc.collect()  # what the dead would say in passing, they say now
    return outcome


class Late:
    """Counts what the dead do after the instant of death."""

    def __init__(self) -> None:
        self.armed = False
        self.acts: list[str] = []

    def act(self, what: str) -> None:
        if self.armed:
            self.acts.append(what)


class Nasty:
    """Code that gives up in every way there is, and tells."""

    def __init__(self, late: Late) -> None:
        self.act = late.act
        self.lock = trio.Lock()

    async def swallows_everything(self) -> None:
        while True:
            try:
                await trio.sleep(0.01)
            except BaseException:  # noqa: BLE001
                self.act("swallowed")

    async def cleans_up(self) -> None:
        try:
            await trio.sleep_forever()
        finally:
            self.act("finally")
            with trio.CancelScope(shield=True):
                await trio.sleep(1)
            self.act("after shield")

    async def catches(self) -> None:
        try:
            await trio.sleep(1000)
        except BaseException as error:
            self.act(type(error).__name__)
            raise

    @contextlib.contextmanager
    def manager(self) -> Iterator[None]:
        try:
            yield
        finally:
            self.act("context manager")

    @contextlib.asynccontextmanager
    async def async_manager(self) -> AsyncIterator[None]:
        try:
            yield
        finally:
            self.act("async context manager")

    async def manages(self) -> None:
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.manager())
            stack.callback(self.act, "callback")
            async with self.async_manager(), trio.open_nursery() as nursery:
                with self.manager(), trio.move_on_after(0.2):
                    await trio.sleep_forever()
                self.act("timeout")
                nursery.start_soon(trio.sleep_forever)

    async def numbers(self) -> AsyncIterator[int]:
        try:
            while True:
                yield 1
                await trio.sleep(0.01)
        finally:
            self.act("async generator")

    async def iterates(self) -> None:
        generator = self.numbers()
        async for _ in generator:
            async with self.lock:
                await trio.sleep(0.03)

    async def iterates_inside(self) -> None:
        async for _ in self.numbers():
            pass

    async def waits_for_lock(self) -> None:
        async with self.lock:
            self.act("got the lock")

    async def program(self) -> None:
        async with trio.open_nursery() as nursery:
            for task in (self.swallows_everything, self.cleans_up, self.catches, self.manages):
                nursery.start_soon(task)
            nursery.start_soon(self.iterates)
            nursery.start_soon(self.iterates_inside)
            await trio.sleep(0.02)
            nursery.start_soon(self.waits_for_lock)
            with trio.move_on_after(0.15):
                await trio.sleep_forever()
            self.act("body")
            await trio.sleep_forever()


@both_kernels
@pytest.mark.parametrize("at_ns", [1, 10_000_000, 35_000_000, 105_000_000, 160_000_000, 250_000_000])
def test_nothing_of_a_killed_process_runs_after_the_instant(kernel: str, at_ns: int) -> None:
    """No finally, except, context manager or generator of the dead runs: not in the run, not at its end, not later."""
    late = Late()

    async def main(world: World) -> None:
        process = world.host("h").start(Nasty(late).program)
        await world.sleep_ns(at_ns)
        process.kill()
        late.armed = True
        await trio.sleep(5)
        assert world.host("h").processes == []

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        simulate(main, kernel).unwrap()
    assert late.acts == []
    assert [str(warning.message) for warning in told] == []


@both_kernels
def test_what_still_runs_when_main_returns_is_dropped(kernel: str) -> None:
    """The end of the world unwinds no process either, and waits for none."""
    late = Late()

    async def main(world: World) -> int:
        world.host("h").start(Nasty(late).program)
        await world.sleep_ns(35_000_000)
        late.armed = True
        return 7

    outcome = simulate(main, kernel)
    assert (outcome.unwrap(), outcome.now_ns, late.acts) == (7, 35_000_000, [])


@both_kernels
def test_exit_status_tells_how_it_ended(kernel: str) -> None:
    """Returned, raised, left by sys.exit, killed: each is told to whoever waits, failures also in the outcome."""

    async def returns() -> int:
        await trio.sleep(1)
        return 42

    async def raises() -> None:
        raise KeyError("no")

    async def leaves(code: int | None) -> None:
        raise SystemExit(code)

    async def main(world: World) -> list[ExitStatus]:
        host = world.host("h")
        processes = [host.start(returns), host.start(raises), host.start(leaves, None), host.start(leaves, 3)]
        killed = host.start(trio.sleep_forever)
        world.call_later(10, killed.kill)
        statuses = [await process.wait() for process in [*processes, killed]]
        assert await processes[0].wait() is statuses[0]
        return statuses

    outcome = simulate(main, kernel)
    statuses = outcome.unwrap()
    assert [status.kind for status in statuses] == ["exited", "failed", "exited", "failed", "killed"]
    assert statuses[0].value == 42
    assert str(statuses[1]) == "failed: KeyError: 'no'"
    assert [process.pid for process in outcome.failures] == [102, 104]


@both_kernels
def test_tasks_in_foreign_nurseries_die_with_their_process(kernel: str) -> None:
    """Ownership goes by who started a task, not by where it lives; the foreign nursery closes as if it had ended."""
    alive: list[str] = []

    async def beat(name: str) -> None:
        while True:
            alive.append(name)
            await trio.sleep(1)

    async def main(world: World) -> None:
        handed: list[trio.Nursery] = []

        async def opens() -> str:
            async with trio.open_nursery() as nursery:
                handed.append(nursery)
                await trio.sleep(1.5)
            return "closed"

        async def guest() -> None:
            handed[0].start_soon(beat, "guest")
            await trio.sleep_forever()

        opener = world.host("a").start(opens)
        await trio.sleep(0.1)
        visitor = world.host("b").start(guest)
        await trio.sleep(3)
        assert alive == ["guest"] * 3
        visitor.kill()
        status = await opener.wait()
        assert status.value == "closed"
        assert world.now_ns == 3_100_000_000
        assert alive == ["guest"] * 3

    simulate(main, kernel).unwrap()


@both_kernels
def test_a_task_outlives_the_dead_nursery_it_lives_in(kernel: str) -> None:
    """The other way round: the process that opened the nursery dies, the guest goes on; and may end or fail in peace."""
    beats: list[int] = []

    async def main(world: World) -> None:
        handed: list[trio.Nursery] = []

        async def opens() -> None:
            async with trio.open_nursery() as nursery:
                handed.append(nursery)
                await trio.sleep_forever()

        async def beat(times: int) -> None:
            for _ in range(times):
                beats.append(world.now_ns // S)
                await trio.sleep(1)
            raise ValueError("nobody to tell")

        async def guest() -> None:
            handed[0].start_soon(beat, 4)
            handed[0].start_soon(beat, 1_000_000)
            await trio.sleep_forever()

        opener = world.host("a").start(opens)
        await trio.sleep(0)
        await trio.sleep(0)
        world.host("b").start(guest)
        await trio.sleep(1.5)
        opener.kill()
        await trio.sleep(5)

    simulate(main, kernel).unwrap()
    assert beats.count(3) == 2
    assert beats.count(6) == 1


@both_kernels
def test_a_start_that_dies_half_way_does_not_hold_a_foreign_nursery_open(kernel: str) -> None:
    """Killed inside `await nursery.start(…)` of somebody else's nursery: that one closes all the same."""

    async def main(world: World) -> str:
        handed: list[trio.Nursery] = []

        async def opens() -> str:
            async with trio.open_nursery() as nursery:
                handed.append(nursery)
                await trio.sleep(2)
            return "closed"

        async def never_starts(task_status: trio.TaskStatus[None]) -> None:
            await trio.sleep_forever()

        async def guest() -> None:
            await handed[0].start(never_starts)

        opener = world.host("a").start(opens)
        await trio.sleep(0.5)
        visitor = world.host("b").start(guest)
        await trio.sleep(0.5)
        visitor.kill()
        return str((await opener.wait()).value)

    outcome = simulate(main, kernel)
    assert (outcome.unwrap(), outcome.now_ns) == ("closed", 2 * S)


@both_kernels
def test_a_killed_waiter_is_passed_over(kernel: str) -> None:
    """A lock, a channel and a condition shared with the living are not handed to the dead."""

    async def main(world: World) -> list[object]:
        lock = trio.Lock()
        got: list[object] = []
        send, receive = trio.open_memory_channel[str](0)

        async def wants_lock() -> None:
            async with lock:
                got.append(current_process())

        async def wants_message() -> None:
            got.append(await receive.receive())

        async with lock:
            dead = [world.host("h").start(task) for task in (wants_lock, wants_message)]
            await trio.sleep(1)
            for process in dead:
                process.kill()
            living = world.host("h").start(wants_lock)
            world.host("h").start(wants_message)
            await trio.sleep(1)
        await send.send("hello")
        await trio.sleep(1)
        assert not lock.locked()
        return [entry is living if isinstance(entry, Process) else entry for entry in got]

    assert simulate(main, kernel).unwrap() == [True, "hello"]


@both_kernels
def test_deadlines_of_the_dead_do_not_move_the_clock(kernel: str) -> None:
    """With the process gone nothing is due any more: the run ends in a deadlock at once, not after its timeout."""

    async def times_out() -> None:
        with trio.move_on_after(1000):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(trio.sleep, 2000)
                with trio.fail_after(500):
                    await trio.sleep(3000)

    async def main(world: World) -> None:
        process = world.host("h").start(times_out)
        await trio.sleep(1)
        process.kill()
        await trio.sleep_forever()

    outcome = simulate(main, kernel)
    assert type(outcome.error).__name__ == "DeadlockError"
    assert outcome.now_ns == S


@both_kernels
def test_pause_and_resume(kernel: str) -> None:
    """A stopped process takes no step; its timers and messages are waiting for it when it goes on."""

    async def main(world: World) -> list[object]:
        log: list[object] = []
        send, receive = trio.open_memory_channel[int](10)

        async def ticks() -> None:
            while True:
                log.append(("tick", world.now_ns // S))
                with trio.move_on_after(1) as scope:
                    log.append(("got", await receive.receive()))
                    await trio.sleep_forever()
                assert scope.cancelled_caught

        process = world.host("h").start(ticks)
        await trio.sleep(1.5)
        process.pause()
        process.pause()
        assert process.alive
        assert process.paused
        send.send_nowait(1)
        await trio.sleep(10)
        log.append("resume")
        process.resume()
        process.resume()
        await trio.sleep(0.1)
        process.pause()
        process.kill()
        await trio.sleep(10)
        return log

    log = simulate(main, kernel).unwrap()
    assert log[:3] == [("tick", 0), ("tick", 1), "resume"]
    assert set(map(str, log[3:])) <= {"('got', 1)", "('tick', 11)"}
    assert len(log) > 3


@both_kernels
def test_restart_on_the_same_host_is_a_new_process(kernel: str) -> None:
    """Another process id, the same host, other code if one likes; the old one stays dead."""

    async def first() -> int:
        return os.getpid()

    async def second() -> int:
        return -os.getpid()

    async def main(world: World) -> list[Any]:
        host = world.host("h")
        old = host.start(first)
        await old.wait()
        new = host.start(second)
        statuses = [await old.wait(), await new.wait()]
        assert host.processes == []
        return [status.value for status in statuses]

    assert simulate(main, kernel).unwrap() == [101, -102]


@both_kernels
def test_death_is_told_in_order_at_the_instant_however_it_came(kernel: str) -> None:
    """Callbacks run synchronously, in order of registration, once; at once when registered too late."""

    async def main(world: World) -> list[str]:
        told: list[str] = []
        killed = world.host("h").start(trio.sleep_forever)
        killed.on_death(lambda: told.append("first"))
        killed.on_death(lambda: told.append(f"second {killed.alive}"))
        killed.kill()
        killed.kill()
        told.append("after the kill")
        killed.on_death(lambda: told.append("late"))
        exits = world.host("h").start(trio.sleep, 1)
        exits.on_death(lambda: told.append("exit"))
        await exits.wait()
        return told

    assert simulate(main, kernel).unwrap() == ["first", "second False", "after the kill", "late", "exit"]


@both_kernels
def test_a_process_that_kills_itself_ends_at_its_next_await(kernel: str) -> None:
    """Its own code goes on to the next await and no further, and nothing it waits for wakes it."""
    acts: list[str] = []

    async def main(world: World) -> ExitStatus:
        lock = trio.Lock()

        async def suicidal() -> None:
            process = current_process()
            assert process is not None
            try:
                async with lock:
                    process.kill()
                    acts.append("same step")
                    await trio.sleep(0)
                    acts.append("after await")
            finally:
                acts.append("finally")

        async def sibling() -> None:
            async with lock:
                acts.append("sibling")

        async def program() -> None:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(suicidal)
                nursery.start_soon(sibling)

        status = await world.host("h").start(program).wait()
        await trio.sleep(10)
        return status

    assert simulate(main, kernel).unwrap().kind == "killed"
    assert acts == ["same step"]


@both_kernels
def test_who_killed_himself_takes_no_step_more(kernel: str) -> None:
    """Also when his next await is a checkpoint, which puts him among the runnable: the schedule knows nothing of the dead."""

    async def program() -> None:
        process = current_process()
        assert process is not None
        process.kill()
        await trio.lowlevel.checkpoint()

    async def main(world: World) -> None:
        world.host("h").start(program)
        for _ in range(5):
            await trio.lowlevel.checkpoint()

    trace = simulate(main, kernel).trace
    (number,) = (number for number, name in trace.names.items() if name.startswith("h/main"))
    assert trace.steps().count(number) == 1


@both_kernels
def test_current_process_follows_the_running_task(kernel: str) -> None:
    """None on the outside and in callbacks, the process in all its tasks."""

    async def main(world: World) -> None:
        seen: list[object] = []

        async def program() -> None:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(child)

        async def child() -> None:
            seen.append(current_process())
            world.call_later(5, lambda: seen.append(current_process()))

        process = world.host("h").start(program)
        await trio.sleep(1)
        assert current_process() is None
        assert seen == [process, None]
        assert process.label == "h/main#101"

    simulate(main, kernel).unwrap()


@both_kernels
def test_a_dead_task_that_is_woken_all_the_same_stays_dead(kernel: str) -> None:
    """Code that keeps a task and reschedules it after its death wakes nothing and breaks nothing."""

    async def main(world: World) -> list[str]:
        acts: list[str] = []
        kept: list[trio.lowlevel.Task] = []

        async def sleeper() -> None:
            kept.append(trio.lowlevel.current_task())
            await trio.lowlevel.wait_task_rescheduled(lambda _: trio.lowlevel.Abort.FAILED)
            acts.append("woken")

        process = world.host("h").start(sleeper)
        await trio.sleep(1)
        process.kill()
        trio.lowlevel.reschedule(kept[0])
        await trio.sleep(1)
        return acts

    assert simulate(main, kernel).unwrap() == []


@pytest.mark.slow
def test_many_generations_leave_little_behind() -> None:
    """Crash and restart for two thousand times: the collector gets the dead back."""

    async def program() -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(trio.sleep_forever)
            with trio.move_on_after(10):
                await trio.sleep_forever()

    async def main(world: World) -> None:
        for _ in range(200):
            process = world.host("h").start(program)
            await trio.sleep(0.01)
            process.kill()

    simulate(main)
    before = len(gc.get_objects())
    for _ in range(10):
        simulate(main, limits=Limits(steps=10_000))
    assert len(gc.get_objects()) < before + 2000

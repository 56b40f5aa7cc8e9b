"""The fast loop against its oracle: trio's own loop, fed one task a tick, over many seeds of messy programs."""

from __future__ import annotations

import contextlib
import random
from collections.abc import AsyncGenerator, Awaitable, Callable

import pytest
import trio
import trio.testing

from simkit.strategy import RandomWalk, ReplaySchedule
from simkit.tape import Tape
from simkit.trace import first_difference
from simkit.world import Limits, Outcome, World, run

SEEDS = 400
PROGRAM_DEPTH = 4


class OopsError(Exception):
    """What messy programs raise."""


class Mess:
    """A random program: processes, tasks and things they share; every decision comes from `dice`, in program order."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.dice = random.Random(seed)
        self.log: list[object] = []
        self.lock = trio.Lock()
        self.event = trio.Event()
        self.limiter = trio.CapacityLimiter(2)
        self.condition = trio.Condition()
        self.send, self.receive = trio.open_memory_channel[int](self.dice.choice([0, 1, 3]))
        self.foreign: list[trio.Nursery] = []
        self.budget = 250  # tasks and blocks, so that every program ends

    def note(self, *what: object) -> None:
        self.log.append((*what, self.world.now_ns))

    def pause_s(self) -> float:
        return self.dice.choice([0, 0.001, 0.001, 0.002, 0.25, 1.0, 1.0, 0.1 + 0.2])

    async def work(self, depth: int = 0) -> None:
        """Do a few random things."""
        for _ in range(self.dice.randrange(1, 5)):
            self.budget -= 1
            if self.budget < 0:
                return
            await self.dice.choice(self.actions(depth))()

    def actions(self, depth: int) -> list[Callable[[], Awaitable[None]]]:
        leaves: list[Callable[[], Awaitable[None]]] = [
            *(self.sleep, self.checkpoint, self.locked, self.condition_wait, self.produce, self.consume),
            *(self.fail, self.wait_idle, self.callbacks, self.cancel_someone, self.abandon_generator, self.use_limiter),
        ]
        if depth >= PROGRAM_DEPTH:
            return leaves
        blocks: list[Callable[[], Awaitable[None]]] = [
            lambda: self.in_nursery(depth),
            lambda: self.in_scope(depth),
            lambda: self.in_generator(depth),
            lambda: self.tried(depth),
            lambda: self.started(depth),
            lambda: self.in_foreign(depth),
        ]
        return leaves + blocks + blocks

    # ---- leaves

    async def sleep(self) -> None:
        await trio.sleep(self.pause_s())

    async def checkpoint(self) -> None:
        await trio.lowlevel.checkpoint()

    async def locked(self) -> None:
        async with self.lock:
            await trio.sleep(self.pause_s())
        self.note("unlocked")

    async def use_limiter(self) -> None:
        async with self.limiter:
            await trio.lowlevel.checkpoint()

    async def condition_wait(self) -> None:
        async with self.condition:
            if self.dice.random() < 0.5:
                self.condition.notify_all()
            else:
                with trio.move_on_after(0.5):
                    await self.condition.wait()

    async def produce(self) -> None:
        with trio.move_on_after(1):
            await self.send.send(self.dice.randrange(100))

    async def consume(self) -> None:
        with trio.move_on_after(1):
            self.note("got", await self.receive.receive())

    async def fail(self) -> None:
        if self.dice.random() < 0.3:
            raise OopsError(self.dice.randrange(10))
        self.event.set()
        self.event = trio.Event()

    async def wait_idle(self) -> None:
        with trio.move_on_after(0.75):
            await (trio.testing.wait_all_tasks_blocked() if self.dice.random() < 0.5 else self.event.wait())

    async def callbacks(self) -> None:
        for _ in range(2):
            timer = self.world.call_later(self.dice.choice([0, 1000, 250_000_000]), self.note, "callback")
            if self.dice.random() < 0.3:
                timer.cancel()
        trio.lowlevel.current_trio_token().run_sync_soon(self.note, "soon")

    async def cancel_someone(self) -> None:
        if self.foreign and self.dice.random() < 0.3:
            self.foreign[-1].cancel_scope.cancel()
        await trio.lowlevel.cancel_shielded_checkpoint()

    async def abandon_generator(self) -> None:
        async for value in self.numbers():
            self.note("number", value)
            break

    # ---- blocks

    async def numbers(self) -> AsyncGenerator[int]:
        try:
            for number in range(3):
                await trio.lowlevel.checkpoint()
                yield number
        finally:
            self.note("generator closes")
            with trio.CancelScope(shield=True):
                await trio.sleep(0.001)
            self.note("generator closed")

    async def in_nursery(self, depth: int) -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(self.dice.randrange(4)):
                nursery.start_soon(self.work, depth + 1)
            await self.work(depth + 1)
            if self.dice.random() < 0.2:
                nursery.cancel_scope.cancel()

    async def in_scope(self, depth: int) -> None:
        with trio.CancelScope(shield=self.dice.random() < 0.3) as scope:
            scope.deadline = trio.current_time() + self.dice.choice([-1, 0, 0.001, 0.25, 1.0, 1.0, 3.0])
            await self.work(depth + 1)
            if self.dice.random() < 0.3:
                scope.deadline += 1
            await self.work(depth + 1)
        self.note("scope", scope.cancelled_caught)

    async def in_generator(self, depth: int) -> None:
        async with contextlib.aclosing(self.numbers()) as numbers:
            async for _ in numbers:
                await self.work(depth + 1)

    async def tried(self, depth: int) -> None:
        try:
            await self.work(depth + 1)
        except* OopsError as group:
            self.note("caught", len(group.exceptions))
        finally:
            self.note("finally")

    async def started(self, depth: int) -> None:
        async def child(task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED) -> None:
            await self.sleep()
            task_status.started(7)
            await self.work(depth + 1)

        async with trio.open_nursery() as nursery:
            self.note("started", await nursery.start(child))

    async def in_foreign(self, depth: int) -> None:
        """Open a nursery for everybody, or start a task in somebody else's."""
        open_ = [nursery for nursery in self.foreign if not nursery._closed]
        if open_ and self.dice.random() < 0.7:
            with contextlib.suppress(RuntimeError):
                self.dice.choice(open_).start_soon(self.work, depth + 1)
            return
        async with trio.open_nursery() as nursery:
            self.foreign.append(nursery)
            await self.work(depth + 1)

    # ---- the outside

    async def program(self) -> None:
        await self.work()

    async def chaos(self) -> None:
        """Start, kill, pause and resume processes."""
        host = self.world.host("a")
        for _ in range(12):
            action = self.dice.randrange(5)
            living = host.processes
            if action <= 1 or not living:
                process = host.start(self.program)
                process.on_death(lambda: self.note("death"))
            elif action == 2:
                self.dice.choice(living).kill()
            elif action == 3:
                self.dice.choice(living).pause()
            else:
                for process in living:
                    process.resume()
            await trio.sleep(self.pause_s())
        for process in list(host.processes):
            process.resume()


def simulate(seed: int, kernel: str = "fast") -> tuple[Outcome[None], list[object]]:
    """Run one messy program under a random walk."""
    logs: list[list[object]] = []

    async def main(world: World) -> None:
        mess = Mess(world, seed)
        logs.append(mess.log)
        with contextlib.suppress(BaseExceptionGroup):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(mess.chaos)
                nursery.start_soon(mess.program)
        with trio.move_on_after(5):
            for process in list(world.host("a").processes):
                mess.note(str(await process.wait()))

    tape = Tape.from_seed(seed)
    limits = Limits(steps=20_000, time_ns=3600 * 10**9)
    outcome = run(main, tape=tape, strategy=RandomWalk(tape.stream("schedule")), kernel=kernel, limits=limits)  # type: ignore[arg-type]
    return outcome, logs[0]


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, SEEDS, 50))
def test_both_kernels_take_the_same_steps(first: int) -> None:
    """Same seed, same program: equal trace, digest, time, log and end, down to the last event."""
    for seed in range(first, first + 50):
        (fast, fast_log), (slow, slow_log) = simulate(seed), simulate(seed, "fallback")
        assert first_difference(fast.trace, slow.trace) is None, f"seed {seed}"
        assert fast.digest == slow.digest
        assert (fast.steps, fast.now_ns, fast.bound) == (slow.steps, slow.now_ns, slow.bound), f"seed {seed}"
        assert repr(fast.error) == repr(slow.error), f"seed {seed}"
        assert fast_log == slow_log, f"seed {seed}"


def test_the_messy_programs_are_messy() -> None:
    """The oracle would prove little if the programs did little: over a few seeds everything is met."""
    logs: set[str] = set()
    steps = kinds = 0
    traced: set[str] = set()
    for seed in range(60):
        outcome, log = simulate(seed)
        steps += outcome.steps
        logs.update(str(entry[0]) for entry in log)  # type: ignore[index]
        traced.update(event.kind for event in outcome.trace.events())
        kinds += len({process.label for process in outcome.failures})
    assert steps > 60 * 40
    assert {"scope", "got", "callback", "soon", "generator closed", "caught", "started", "death", "unlocked"} <= logs
    assert {"step", "clock", "start", "killed", "pause", "resume", "exited", "failed"} <= traced
    assert kinds > 0


def test_a_recorded_schedule_replays_on_the_other_kernel() -> None:
    """What the fast loop recorded, trio's own loop can take step by step."""
    outcome, log = simulate(11)
    logs: list[list[object]] = []

    async def main(world: World) -> None:
        mess = Mess(world, 11)
        logs.append(mess.log)
        with contextlib.suppress(BaseExceptionGroup):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(mess.chaos)
                nursery.start_soon(mess.program)
        with trio.move_on_after(5):
            for process in list(world.host("a").processes):
                mess.note(str(await process.wait()))

    tape = Tape.from_departures(outcome.departures, entropy=11)
    again = run(main, tape=tape, strategy=ReplaySchedule(outcome.schedule), kernel="fallback")
    assert again.digest == outcome.digest
    assert logs[0] == log

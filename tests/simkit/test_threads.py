"""Simulated threads: trio.to_thread and trio.from_thread, in virtual time and always in the same order."""

from __future__ import annotations

import contextvars
import sys
import threading
import time
from typing import Any

import pytest
import trio

from simkit._kernel import threads
from simkit.guard import RefusedError
from simkit.tape import Tape
from simkit.world import KernelName, Limits, World, run
from tests.simkit.rig import outcome_of, simulate

#: `time.sleep` as programs call it; in a simulated thread no real time passes.
block_for = vars(time)["sleep"]


def test_a_blocking_function_runs_in_virtual_time() -> None:
    """It returns what it returns, others run while it sleeps, and the clock says how long it took."""

    async def main(world: World) -> list[Any]:
        told: list[Any] = []

        def block() -> str:
            block_for(5)
            told.append(("slept", time.monotonic() >= 5))
            return "done"

        async with trio.open_nursery() as nursery:

            @nursery.start_soon
            async def _meanwhile() -> None:
                await trio.sleep(2)
                told.append("meanwhile")

            told.append(await trio.to_thread.run_sync(block))
        return [*told, 5 <= world.now_ns / 1e9 < 6]

    assert simulate(main) == ["meanwhile", ("slept", True), "done", True]


def test_a_failing_function_raises_where_it_is_awaited() -> None:
    """The error comes out of run_sync, as in trio."""

    async def main(_world: World) -> None:
        with pytest.raises(ZeroDivisionError):
            await trio.to_thread.run_sync(lambda: 1 // 0)

    simulate(main)


def test_trio_is_called_back_from_a_thread() -> None:
    """from_thread.run and run_sync run in the kernel, and the thread goes on with what they return."""

    async def main(world: World) -> tuple[int, float]:
        async def double(number: int) -> int:
            await trio.sleep(3)
            return number * 2

        def work() -> int:
            assert trio.from_thread.run_sync(trio.current_time) < 1
            return trio.from_thread.run(double, 21)

        return await trio.to_thread.run_sync(work), world.now_ns // 10**9

    assert simulate(main) == (42, 3)


def test_a_limiter_is_respected() -> None:
    """No more run at once than the limiter lets, and each process has a default limiter of its own."""

    async def main(world: World) -> tuple[int, bool]:
        limiter, running, most = trio.CapacityLimiter(3), 0, 0

        def work() -> None:
            nonlocal running, most
            running += 1
            most = max(most, running)
            block_for(1)
            running -= 1

        async with trio.open_nursery() as nursery:
            for _ in range(10):
                nursery.start_soon(lambda: trio.to_thread.run_sync(work, limiter=limiter))

        async def default() -> object:
            return trio.to_thread.current_default_thread_limiter()

        first, second = [(await world.host(name).start(default).wait()).value for name in "ab"]
        return most, first is not second and first.total_tokens == 40

    assert simulate(main) == (3, True)


async def _contend(_world: World) -> list[str]:
    told: list[str] = []

    def work(name: str) -> None:
        for turn in range(3):
            block_for(0.001)
            told.append(f"{name}{turn}")

    async with trio.open_nursery() as nursery:
        for name in "abcd":
            nursery.start_soon(trio.to_thread.run_sync, work, name)
    return told


def test_the_order_is_that_of_the_seed() -> None:
    """The same seed gives the same interleaving and digest, on both kernels; seeds differ."""
    first, again = outcome_of(_contend, 1), outcome_of(_contend, 1)
    slow = run(_contend, tape=Tape.from_seed(1), kernel="fallback")
    assert first.value == again.value == slow.value
    assert first.digest == again.digest == slow.digest
    assert len({tuple(outcome_of(_contend, seed).unwrap()) for seed in range(10)}) > 1


def test_a_thread_of_the_dead_never_goes_on() -> None:
    """A killed process's thread does nothing more while the world lasts; at its end nothing of it is left."""
    told: list[str] = []

    async def main(world: World) -> list[str]:
        def work() -> None:
            told.append("began")
            block_for(10)
            told.append("went on")

        process = world.host("h").start(trio.to_thread.run_sync, work)
        await trio.sleep(5)
        process.kill()
        await trio.sleep(20)
        return list(told)

    before = threading.active_count()
    assert simulate(main) == ["began"]
    assert told == ["began"]
    assert threading.active_count() == before


def test_a_paused_process_has_paused_threads() -> None:
    """A thread whose process is stopped goes on when that does."""

    async def main(world: World) -> int:
        def work() -> float:
            block_for(1)
            return time.monotonic()

        process = world.host("h").start(trio.to_thread.run_sync, work)
        await trio.sleep(0.5)
        process.pause()
        await trio.sleep(60)
        process.resume()
        return int((await process.wait()).value)

    assert simulate(main) == 60


def test_a_thread_is_guarded_too() -> None:
    """What is refused to tasks is refused to threads, real threads first of all."""

    def start() -> None:
        threading.Thread(target=print).start()

    async def main(_world: World) -> None:
        await trio.to_thread.run_sync(start)

    outcome = outcome_of(main)
    assert isinstance(outcome.error, RefusedError)
    assert outcome.error.problem.where.startswith(f"{__file__}:{start.__code__.co_firstlineno + 1}")


def test_a_thread_that_waits_for_something_real_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock that nobody can release is an error with the line, not a hang."""
    monkeypatch.setattr(threads, "STUCK_S", 0.2)
    lock = threading.Lock()
    lock.acquire()

    def wait() -> None:
        lock.acquire()

    async def main(_world: World) -> None:
        await trio.to_thread.run_sync(wait)

    outcome = outcome_of(main)
    lock.release()
    assert isinstance(outcome.error, threads.ThreadStuckError)
    assert f"{__file__}:{wait.__code__.co_firstlineno + 1}" in outcome.error.problem.where


def test_threads_are_called_as_trio_calls_them() -> None:
    """By function and task, or as told; what else `threading` and trio number counts anew in each run."""

    def work() -> tuple[str, str]:
        return threading.current_thread().name, threading.Thread(target=print).name

    async def main(_world: World) -> list[Any]:
        told: list[Any] = [await trio.to_thread.run_sync(work) for _ in range(2)]
        told.append(await trio.to_thread.run_sync(work, thread_name="mine"))
        limiter = trio.CapacityLimiter(1)
        told += await trio.to_thread.run_sync(
            lambda: [one.name for one in limiter.statistics().borrowers], limiter=limiter
        )
        return told

    names = simulate(main)
    default = "work from main"
    assert names[:3] == [(default, "Thread-1 (print)"), (default, "Thread-2 (print)"), ("mine", "Thread-3 (print)")]
    assert names[3:] == ["trio.to_thread.run_sync-3"]
    before, again, after = threading.Thread().name, simulate(main), threading.Thread().name
    assert again == names
    assert int(after.removeprefix("Thread-")) == int(before.removeprefix("Thread-")) + 1, "outside it counts on"


def test_nothing_of_an_earlier_function_is_found() -> None:
    """Neither in `threading.local` nor in what stands for the thread, in a run nor in the next."""
    mine = threading.local()
    kept: list[threading.Thread] = []
    var = contextvars.ContextVar[str]("var", default="unset")

    def work(number: int) -> tuple[int | None, bool, str]:
        found = getattr(mine, "number", None), hasattr(threading.current_thread(), "mark"), var.get()
        mine.number = number
        threading.current_thread().mark = True  # type: ignore[attr-defined]
        kept.append(threading.current_thread())
        return found

    async def main(_world: World) -> list[Any]:
        return [await trio.to_thread.run_sync(work, number) for number in range(3)]

    assert simulate(main) == [(None, False, "unset")] * 3 == simulate(main)
    assert len(set(kept)) == 6
    assert not set(kept) & set(threading.enumerate())


def test_what_a_function_leaves_is_let_go_of_before_anybody_goes_on() -> None:
    """Not beside the kernel, when a real thread ends."""
    mine = threading.local()
    told: list[str] = []

    class Loud:
        def __del__(self) -> None:
            told.append(f"gone, {len(told)}")

    def work() -> None:
        mine.loud = Loud()
        told.append("worked")

    async def main(_world: World) -> None:
        for _ in range(3):
            await trio.to_thread.run_sync(work)
            told.append("went on")

    simulate(main)
    assert told == ["worked", "gone, 1", "went on", "worked", "gone, 4", "went on", "worked", "gone, 7", "went on"]


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="there the interpreter lets go, after the thread's last line")
def test_letting_go_may_take_time_and_leave_more() -> None:
    """It happens in the function's own thread, as the function did."""
    mine = threading.local()
    told: list[str] = []

    class Loud:
        def __del__(self) -> None:
            told.append(threading.current_thread().name)

    class Slow:
        def __del__(self) -> None:
            block_for(1)
            mine.last = Loud()
            told.append("slow")

    def work() -> None:
        mine.slow = Slow()

    async def main(world: World) -> int:
        await trio.to_thread.run_sync(work, thread_name="it")
        told.append("went on")
        return world.now_ns // 10**9

    assert simulate(main) == 1
    assert told == ["slow", "it", "went on"]


def test_a_thread_that_computes_for_long_is_not_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long it takes: only who has the baton and computes nothing waits for something that never comes."""
    monkeypatch.setattr(threads, "STUCK_S", 0.002)
    thread = threads.SimThread(None, print, print, name="it", fresh=True)  # type: ignore[arg-type]

    class Computing:
        def __init__(self) -> None:
            self.looks = 0

        def spent_s(self) -> float:
            self.looks += 1
            if self.looks == 10:
                thread._back.release()
            return float(self.looks)

    class Waiting:
        def spent_s(self) -> float:
            return 1.0

    computing: Any = Computing()
    waiting: Any = Waiting()
    assert thread._is_back(computing)
    assert computing.looks == 10
    assert not thread._is_back(waiting)


@pytest.mark.parametrize("kernel", ["fast", "fallback"])
def test_threads_that_never_end_meet_the_bound_on_steps(kernel: KernelName) -> None:
    """They take none as tasks do, but each time that one of them goes on counts: by number, not by any clock."""

    def work() -> None:
        while True:
            block_for(0.001)

    async def main(_world: World) -> None:
        await trio.to_thread.run_sync(work)

    ends = [run(main, tape=Tape.from_seed(0), kernel=kernel, limits=Limits(steps=300)) for _ in range(2)]
    assert [end.bound for end in ends] == ["steps", "steps"]
    assert ends[0].now_ns == ends[1].now_ns
    assert ends[0].digest == ends[1].digest


def test_cancelling_abandons_or_waits() -> None:
    """As in trio: without abandon_on_cancel the call outlasts the deadline, with it the thread is left alone."""

    async def timed(world: World, *, abandon: bool) -> float:
        began = world.now_ns
        with trio.move_on_after(1):
            await trio.to_thread.run_sync(block_for, 4, abandon_on_cancel=abandon)
        return (world.now_ns - began) // 10**9

    async def main(world: World) -> tuple[float, float]:
        return await timed(world, abandon=False), await timed(world, abandon=True)

    assert simulate(main) == (4, 1)

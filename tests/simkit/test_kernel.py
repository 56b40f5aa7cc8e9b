"""The kernel: trio's semantics under a virtual clock, bounds, deadlocks, and which loop runs."""

from __future__ import annotations

import math
import subprocess
import sys
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import trio

from simkit._kernel import fingerprint, grave, timers
from simkit._kernel.deadlock import DeadlockError
from simkit._kernel.timers import STALE_MAX, due_ns
from simkit.errors import SimkitError
from simkit.tape import Tape
from simkit.world import Limits, Outcome, World, run

S = 1_000_000_000
both_kernels = pytest.mark.parametrize("kernel", ["fast", "fallback"])


def simulate(main: Callable[[World], Awaitable[Any]], kernel: str = "fast", **options: Any) -> Outcome[Any]:
    return run(main, tape=Tape.from_seed(1), kernel=kernel, **options)  # type: ignore[arg-type]


@both_kernels
def test_time_is_exact_integers(kernel: str) -> None:
    """A thousand times a tenth of a second is a hundred seconds, in nanoseconds, and no real time passes."""

    async def main(world: World) -> tuple[int, float]:
        for _ in range(1000):
            await world.sleep_ns(100_000_000)
        return world.now_ns, trio.current_time()

    assert simulate(main, kernel).unwrap() == (100 * S, 100.0)


@both_kernels
def test_sleep_never_ends_early(kernel: str) -> None:
    """As in trio: after sleeping until a time, that time has come; within a nanosecond."""

    async def main(world: World) -> None:
        for number in range(1, 200):
            deadline = trio.current_time() + number / 7
            await trio.sleep(number / 7)
            assert deadline <= trio.current_time() < deadline + 2e-9 + 1e-15 * deadline
            deadline = trio.current_time() + 0.1
            with trio.move_on_at(deadline):
                await trio.sleep_forever()
            assert trio.current_time() >= deadline

    simulate(main, kernel).unwrap()
    assert due_ns(0.1 + 0.2) == 300_000_001
    assert due_ns(0.3) == 300_000_000


@both_kernels
def test_sleep_checks_its_argument_as_trio_does(kernel: str) -> None:
    """Negative, not a number and for ever mean what they mean outside."""

    async def main(_world: World) -> None:
        with pytest.raises(ValueError, match="non-negative"):
            await trio.sleep(-1)
        with pytest.raises(ValueError, match="NaN"):
            await trio.sleep(math.nan)
        with pytest.raises(TypeError):
            await trio.sleep("1")  # type: ignore[arg-type]
        with trio.move_on_after(3) as scope:
            await trio.sleep(math.inf)
        assert scope.cancelled_caught
        with trio.testing.assert_checkpoints():
            await trio.sleep(0)
        with trio.testing.assert_checkpoints():
            await trio.sleep(1e-12)

    simulate(main, kernel).unwrap()


def test_trio_is_itself_again_after_a_run() -> None:
    """What a run swaps in trio is swapped back: real runs work before, between and after."""
    code = trio.sleep.__code__

    async def real() -> float:
        began = trio.current_time()
        await trio.sleep(0.001)
        return trio.current_time() - began

    async def main(_world: World) -> None:
        assert trio.sleep.__code__ is not code
        raise KeyError("the hard way out")

    simulate(main)
    assert trio.sleep.__code__ is code
    assert trio.run(real) >= 0.001


@both_kernels
def test_what_is_due_together_happens_in_the_order_asked_for(kernel: str) -> None:
    """Callbacks, sleeping tasks and deadlines of one nanosecond: callbacks in order, tasks by their number."""

    async def main(world: World) -> list[str]:
        order: list[str] = []

        async def sleeps(name: str) -> None:
            await world.sleep_ns(S)
            order.append(name)

        async def times_out(name: str) -> None:
            with trio.move_on_after(1):
                await trio.sleep_forever()
            order.append(name)

        async with trio.open_nursery() as nursery:
            for index in range(3):
                world.call_later(S, order.append, f"callback {index}")
                nursery.start_soon(times_out, f"deadline {index}")
                nursery.start_soon(sleeps, f"sleep {index}")
        return order

    tasks = [f"{kind} {index}" for index in range(3) for kind in ("deadline", "sleep")]
    assert simulate(main, kernel).unwrap() == [f"callback {index}" for index in range(3)] + tasks


@both_kernels
def test_callback_timers_can_be_cancelled_and_call_in_no_task(kernel: str) -> None:
    """A cancelled timer neither runs nor moves the clock; one that runs has no current task."""

    async def main(world: World) -> tuple[list[bool], int]:
        seen: list[bool] = []
        far = world.call_later(1000 * S, seen.append, True)
        near = world.call_later(S, lambda: seen.append(trio.lowlevel.in_trio_task()))
        assert (near.when_ns, near.pending) == (S, True)
        far.cancel()
        far.cancel()
        await trio.sleep(2)
        assert not near.pending
        with pytest.raises(trio.WouldBlock):
            trio.open_memory_channel[int](0)[1].receive_nowait()
        return seen, world.now_ns

    assert simulate(main, kernel).unwrap() == ([False], 2 * S)


@both_kernels
def test_an_error_in_a_callback_is_the_outcome(kernel: str) -> None:
    """There is no task to raise it in: the run ends with it."""

    def fails() -> None:
        raise KeyError("in a callback")

    async def main(world: World) -> None:
        world.call_later(S, fails)
        await trio.sleep_forever()

    outcome = simulate(main, kernel)
    assert isinstance(outcome.error, KeyError)
    assert (outcome.now_ns, outcome.value, outcome.bound) == (S, None, None)


@both_kernels
def test_wait_all_tasks_blocked_does_not_move_the_clock(kernel: str) -> None:
    """It returns once all others wait, at the same instant, shortest cushion first."""

    async def main(world: World) -> list[object]:
        order: list[object] = []

        async def waits(cushion: float) -> None:
            await trio.testing.wait_all_tasks_blocked(cushion)
            order.append(cushion)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep, 5)
            for cushion in (0.2, 0.0, 0.1):
                nursery.start_soon(waits, cushion)
            await trio.testing.wait_all_tasks_blocked()
            assert world.now_ns == 0
        return order

    assert simulate(main, kernel).unwrap() == [0.0, 0.1, 0.2]


@both_kernels
def test_abandoned_generators_are_closed_by_the_kernel(kernel: str) -> None:
    """One that is dropped half-way is closed at once, one that main leaves open at the end, in the order of first use."""
    closed: list[str] = []

    async def numbers(name: str) -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            closed.append(name)

    left: list[object] = []

    async def main(_world: World) -> None:
        async for _ in numbers("dropped"):
            break
        await trio.lowlevel.checkpoint()
        await trio.lowlevel.checkpoint()
        assert closed == ["dropped"]
        for name in ("left b", "left a"):
            left.append(numbers(name))
            await anext(left[-1])  # type: ignore[call-overload]

    simulate(main, kernel).unwrap()
    assert closed == ["dropped", "left b", "left a"]


@both_kernels
def test_the_bound_on_steps(kernel: str) -> None:
    """A livelock ends at exactly the bound, as an outcome; no code of the program is unwound for it."""
    unwound: list[str] = []

    async def main(_world: World) -> None:
        try:
            while True:
                await trio.lowlevel.checkpoint()
        finally:
            unwound.append("main")

    outcome = simulate(main, kernel, limits=Limits(steps=500))
    assert (outcome.bound, outcome.steps, outcome.error, outcome.value) == ("steps", 500, None, None)
    with pytest.raises(RuntimeError, match="bound on steps"):
        outcome.unwrap()
    assert unwound == []


@both_kernels
def test_of_a_livelock_the_tasks_are_told(kernel: str) -> None:
    """Who took the most steps is the first, and its line the place of the error; the others follow."""

    async def spins() -> None:
        while True:
            await trio.lowlevel.checkpoint()

    async def main(world: World) -> None:
        world.host("db").start(trio.sleep_forever)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(spins)

    outcome = simulate(main, kernel, limits=Limits(steps=500))
    first, *others = outcome.stack.splitlines()
    line = f"{__file__}:{spins.__code__.co_firstlineno + 2} in "
    assert f"spins at {line}" in first
    assert [other.split()[0] for other in others] == ["main", "db/main#101"]
    with pytest.raises(RuntimeError) as caught:
        outcome.unwrap()
    assert f"where:    {line}" in str(caught.value)


@both_kernels
def test_the_bound_on_time(kernel: str) -> None:
    """The clock stops short of the first timer that lies beyond the bound."""

    async def main(world: World) -> None:
        while True:
            await world.sleep_ns(3 * S)

    outcome = simulate(main, kernel, limits=Limits(time_ns=10 * S))
    assert (outcome.bound, outcome.now_ns) == ("time", 9 * S)


@both_kernels
def test_the_bound_on_callbacks(kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Callbacks that set each other for now, for ever, take no step and move no clock: that ends too."""
    monkeypatch.setattr(timers, "CALLBACKS_MAX", 1000)
    called: list[int] = []

    async def main(world: World) -> None:
        def again() -> None:
            called.append(world.now_ns)
            world.call_later(0, again)

        world.call_later(S, again)
        await trio.sleep(2)

    outcome = simulate(main, kernel)
    assert (outcome.bound, outcome.now_ns, len(called)) == ("callbacks", S, 1001)


@both_kernels
def test_a_deadlock_lists_tasks_and_where_each_waits(kernel: str) -> None:
    """Names, owners, pauses, and the line of the program itself, not of trio."""

    async def waits_for_lock(lock: trio.Lock) -> None:
        async with lock:
            pass

    async def main(world: World) -> None:
        lock = trio.Lock()
        await lock.acquire()
        world.host("db").start(waits_for_lock, lock, name="store")
        world.host("db").start(trio.sleep_forever).pause()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(waits_for_lock, lock)

    error = simulate(main, kernel).error
    assert isinstance(error, DeadlockError)
    text = str(error)
    line = waits_for_lock.__code__.co_firstlineno + 1
    assert f"db/store#101 of db/store#101 at {__file__}:{line} in " in text
    assert "db/main#102 of db/main#102 (paused) at " in text
    assert "4 tasks wait" in text
    assert "main at " in text


@both_kernels
def test_a_deadlock_of_one_task_is_of_one(kernel: str) -> None:
    """It waits."""

    async def main(_world: World) -> None:
        await trio.sleep_forever()

    assert "; 1 task waits:\n" in str(simulate(main, kernel).error)


@both_kernels
def test_a_deadlock_names_no_lines_of_libraries(kernel: str) -> None:
    """A task without a line of the program's is told by the function that it was started with."""

    async def main(world: World) -> None:
        world.host("db").start(trio.serve_tcp, echo, 80)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.Event().wait)
            nursery.start_soon(trio.to_thread.run_sync, trio.from_thread.run, wait)

    async def echo(_stream: trio.SocketStream) -> None:
        """Nobody connects."""

    async def wait() -> None:
        await trio.sleep_forever()

    text = str(simulate(main, kernel).error)
    assert "db/main#101 of db/main#101 at trio.serve_tcp\n" in text
    assert "trio.Event.wait at trio.Event.wait\n" in text
    assert f"trio.to_thread.run_sync at {__file__}:{wait.__code__.co_firstlineno + 1} in " in text
    assert "site-packages" not in text


@both_kernels
def test_foreign_awaits_and_real_io_are_told(kernel: str) -> None:
    """Awaiting something of another framework, or a real descriptor, is an error in the task, not a hang."""

    class Foreign:
        def __await__(self) -> Any:
            yield "a future"

    async def main(_world: World) -> None:
        with pytest.raises(TypeError, match="unrecognized yield message"):
            await Foreign()
        with pytest.raises(SimkitError, match="wait readable"):
            await trio.lowlevel.wait_readable(0)

    simulate(main, kernel).unwrap()


@both_kernels
def test_detached_coroutines(kernel: str) -> None:
    """A task that detaches its coroutine for good is over, as in trio."""

    async def detaches() -> None:
        await trio.lowlevel.permanently_detach_coroutine_object(trio_outcome(3))

    def trio_outcome(value: int) -> Any:
        import outcome

        return outcome.Value(value)

    async def main(_world: World) -> str:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(detaches)
        return "done"

    assert simulate(main, kernel).unwrap() == "done"


@both_kernels
def test_system_tasks_are_cancelled_when_main_returns(kernel: str) -> None:
    """As in trio: the outside's own background tasks are cancelled and unwound before the run ends."""
    unwound: list[str] = []

    async def background() -> None:
        try:
            await trio.sleep_forever()
        finally:
            unwound.append("background")

    async def main(_world: World) -> None:
        trio.lowlevel.spawn_system_task(background)
        await trio.sleep(1)

    simulate(main, kernel).unwrap()
    assert unwound == ["background"]


@both_kernels
def test_a_system_task_that_fails_ends_the_run(kernel: str) -> None:
    """What goes wrong in the nursery around everything is what the run ends with; the outside is cancelled."""

    async def background() -> None:
        raise LookupError("gone")

    async def main(world: World) -> None:
        trio.lowlevel.spawn_system_task(background)
        try:
            await trio.sleep_forever()
        finally:
            world.trace.record("main", "cancelled" if trio.current_effective_deadline() == -math.inf else "well")

    outcome = simulate(main, kernel)
    assert isinstance(outcome.error, BaseExceptionGroup)
    assert [repr(error) for error in outcome.error.exceptions] == ["LookupError('gone')"]
    assert any(event.detail == "cancelled" for event in outcome.trace.events())


@both_kernels
@pytest.mark.parametrize("is_known", [True, False])
def test_the_nursery_around_everything_is_one_of_trio(
    kernel: str, is_known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Made with fewer frames, or by trio's own functions where the version is not known: nobody sees a difference."""
    monkeypatch.setattr(fingerprint, "is_known", lambda: is_known)

    async def background() -> None:
        await trio.sleep_forever()

    async def main(_world: World) -> list[object]:
        task, outermost = trio.lowlevel.current_task(), trio.lowlevel.current_root_task()
        assert outermost is not None
        nursery = task.parent_nursery
        assert nursery is not None
        trio.lowlevel.spawn_system_task(background)
        scope, (around,) = nursery.cancel_scope, outermost.child_nurseries
        seen = [
            outermost.parent_nursery,
            around is nursery,
            nursery.parent_task is outermost,
            len(nursery.child_tasks),
            scope.deadline,
            scope.cancel_called,
            scope.shield,
            task._cancel_status is scope._cancel_status is outermost._cancel_status,
        ]
        scope.cancel()
        assert task._cancel_status.effectively_cancelled
        return [*seen, scope.cancel_called]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fingerprint.KernelFallbackWarning)
        outcome = simulate(main, kernel)
    assert outcome.unwrap() == [None, True, True, 2, math.inf, False, False, True, True]
    assert outcome.trace.steps() == [0, 1, 2, 2, 0]


@both_kernels
def test_stale_timers_are_swept(kernel: str) -> None:
    """Timeouts that never strike do not pile up in the heap for the rest of the run."""

    async def main(world: World) -> int:
        for _ in range(10 * STALE_MAX):
            with trio.move_on_after(3600):
                await world.sleep_ns(10)
        return len(world.kernel.timers.heap)

    assert simulate(main, kernel).unwrap() < 3 * STALE_MAX


@both_kernels
def test_keyboard_interrupt_leaves_at_once(kernel: str) -> None:
    """Ctrl-C is the user's: it ends the simulation, not a task of it."""

    async def main(_world: World) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate(main, kernel)

    async def quick(_world: World) -> int:
        return 1

    assert simulate(quick, kernel).unwrap() == 1


def test_a_simulation_inside_a_trio_run_is_refused() -> None:
    """There is one current run; starting a second inside it is an error that leaves the first alone."""

    async def inner(_world: World) -> None:
        pass

    async def outer() -> str:
        outcome = run(inner, tape=Tape.from_seed(0))
        assert "inside a trio run" in str(outcome.error)
        await trio.sleep(0)
        return "fine"

    assert trio.run(outer) == "fine"


def test_an_unknown_trio_gets_the_fallback_and_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the fingerprint does not match, the run uses trio's own loop, says so, and has the same trace."""

    async def main(_world: World) -> None:
        await trio.sleep(1)

    known = simulate(main)
    monkeypatch.setattr(fingerprint, "KNOWN", {})
    with pytest.warns(fingerprint.KernelFallbackWarning, match="fallback kernel"):
        unknown = simulate(main)
    assert (known.kernel, unknown.kernel) == ("fast", "fallback")
    assert known.digest == unknown.digest


def test_the_installed_trio_is_known() -> None:
    """The version that the lock pins is a reviewed one."""
    assert fingerprint.is_known()
    assert fingerprint.KNOWN[fingerprint.fingerprint()] == trio.__version__


def test_the_dead_are_kept_where_the_mark_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """On an interpreter without the collector's mark the dead are never freed, so never unwound either."""
    unwound: list[str] = []

    async def main(world: World) -> None:
        async def program() -> None:
            try:
                await trio.sleep_forever()
            finally:
                unwound.append("program")

        process = world.host("h").start(program)
        await trio.sleep(1)
        process.kill()

    kept: list[object] = []
    monkeypatch.setattr(grave, "_kept_for_ever", kept)
    monkeypatch.setattr(grave, "_can_mark", lambda: False)
    simulate(main).unwrap()
    assert kept
    assert unwound == []
    monkeypatch.undo()
    grave.lay_to_rest(kept)


SCRIPT = """
import contextlib, gc, trio
from simkit.tape import Tape
from simkit.world import Limits, run

async def numbers():
    try:
        while True:
            yield 1
            await trio.sleep(1)
    finally:
        await trio.sleep(1)

async def program():
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep_forever)
        with trio.move_on_after(50), contextlib.suppress(KeyError):
            async for _ in numbers():
                await trio.sleep(0.5)

async def main(world):
    for _ in range(5):
        process = world.host("h").start(program)
        await trio.sleep(1.25)
        process.kill()
        world.host("h").start(program)
    if END == "deadlock":
        for process in list(world.host("h").processes):
            process.kill()
        await trio.sleep_forever()
    if END == "bound":
        await trio.sleep(10**9)

for END in ("return", "deadlock", "bound"):
    for kernel in ("fast", "fallback"):
        print(END, run(main, tape=Tape.from_seed(1), kernel=kernel, limits=Limits(steps=2000)).steps)
"""


def test_no_noise_in_development_mode() -> None:
    """Warnings as errors, development mode: runs that end in all ways leave no word on stderr, not at exit either."""
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", SCRIPT], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 6

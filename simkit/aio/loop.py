"""The event loop of a simulated process: asyncio's interface above, the kernel below.

What asyncio documents holds: callbacks run in the order in which they were asked for, timers by the (virtual) clock, a
callback never inside another. In which order *tasks* take their steps asyncio leaves to its loop; here the strategy of the
run decides, unless `order="fifo"` asks for the order of asyncio's own loop.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import sys
import weakref
from asyncio import base_events, events
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from typing import Any, Literal, NoReturn, TypeVar, cast

import sniffio
import trio

from simkit._kernel.owner import INNER, Inner
from simkit._kernel.timers import Timer
from simkit.aio.futures import SimulatedFuture, SimulatedTask
from simkit.aio.lanes import Lane, tell
from simkit.aio.network import Networking
from simkit.errors import ExitCode, Problem, SimkitError
from simkit.process import current_process
from simkit.world import World

T = TypeVar("T")
Order = Literal["any", "fifo"]
NS = 1_000_000_000


class _Timer(asyncio.TimerHandle):
    """A timer of asyncio with the kernel's timer behind it."""

    __slots__ = ("entry",)
    entry: Timer | None

    def cancel(self) -> None:
        """Never fire."""
        if self.entry is not None:
            self.entry.cancel()
            self.entry = None
        super().cancel()


class SimulatedLoop(Networking, base_events.BaseEventLoop):
    """One program's event loop; `simkit.aio.run` makes it.

    Args:
        world: where it runs.
        nursery: the home of its lanes and of what goes on in its network.
        order: who goes first among tasks that are ready: "any", as the run's strategy says, or "fifo".
    """

    def __init__(self, world: World, nursery: trio.Nursery, order: Order = "any") -> None:
        self.world = world
        self.owner = current_process()
        #: What ended the whole program: SystemExit, or an error nobody handled when those are to be raised.
        self.fatal: BaseException | None = None
        self._nursery = nursery
        self._context = contextvars.copy_context()
        self._lanes: dict[asyncio.Task[Any] | None, Lane] = {}
        self._numbers = self._names = 0
        self._held: list[asyncio.Handle] = []
        self._agens: dict[int, weakref.ref[AsyncGenerator[Any, Any]]] = {}
        self._fifo: Lane | None = None
        self._after: Lane | None = None
        self._firing = False
        self._on_fatal: Callable[[], object] = lambda: None
        super().__init__()
        if order == "fifo":
            self._fifo = self._open_lane(None, "asyncio loop")
        world.kernel.resumings.append(self._resumed)
        world.kernel.endings.append(self.bury)
        if self.owner is not None:
            self.owner.on_death(self.bury)

    # ---- numbers and names, the same in every run

    def next_number(self) -> int:
        """The next number of a task or future."""
        self._numbers += 1
        return self._numbers

    def next_name(self) -> str:
        """The next name of a task that was given none."""
        self._names += 1
        return f"Task-{self._names}"

    # ---- callbacks

    def time(self) -> float:
        """Virtual time in seconds."""
        return self.world.now_ns / NS

    def call_soon(
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        """As in asyncio."""
        handle = asyncio.Handle(callback, args, self, context)
        if not self._is_dead():
            self._check_closed()
            self._schedule(handle, callback)
        return handle

    call_soon_threadsafe = call_soon  # a simulated thread never runs beside the kernel

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        """As in asyncio."""
        if delay is None:
            raise TypeError("delay must not be None")
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        """As in asyncio."""
        if when is None:
            raise TypeError("when cannot be None")
        handle = _Timer(when, callback, args, self, context)
        handle.entry = None
        if self._is_dead():
            return handle
        self._check_closed()
        if when != float("inf"):
            handle.entry = self.world.kernel.timers.call_at(round(when * NS), self._due, (handle,))
        return handle

    def _is_dead(self) -> bool:
        """Whether the process is gone: what its last step still asks for is forgotten, and nobody is told of it."""
        return self.owner is not None and not self.owner.alive

    def _due(self, handle: _Timer) -> None:
        handle.entry = None
        self._fire(handle)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """The kernel's timer is cancelled with it."""

    def _schedule(self, handle: asyncio.Handle, callback: object) -> None:
        if self._fifo is not None:
            self._fifo.push(handle)
            return
        task = getattr(callback, "__self__", None)
        if isinstance(task, asyncio.Task):
            self._lane_of(task).push(handle)
        elif self._firing or (self._after is not None and not self._after.empty):
            self._after = self._after or self._open_lane(None, "asyncio callbacks")
            self._after.push(handle)
        else:
            self.world.kernel.call_soon(self._fire, handle)

    def _fire(self, handle: asyncio.Handle) -> None:
        """Run a callback that is no step of a task: between two steps, in the order in which they were asked for.

        One that a callback asks for takes a step, as do those behind it: callbacks that ask for themselves again until a
        task has done something must not keep it from doing so.
        """
        if self.is_closed():
            return
        if self.owner is not None and self.world.kernel.holds(self.owner):
            self._held.append(handle)
        elif self._fifo is not None:
            self._fifo.push(handle)
        else:
            tell(handle, self.world.trace, self.owner)
            self._firing = True
            try:
                self.run_handle(handle)
            finally:
                self._firing = False

    def _resumed(self, owner: object) -> None:
        """A process that was paused goes on: what came due meanwhile happens now."""
        if owner is self.owner and self._held:
            held, self._held = self._held, []
            for handle in held:
                self.world.kernel.call_soon(self._fire, handle)

    def run_handle(self, handle: asyncio.Handle) -> None:
        """Run one callback with this loop as the running one."""
        if not handle.cancelled() and not self.is_closed():
            try:
                self.within(handle._run)
            except (SystemExit, KeyboardInterrupt) as leaving:
                self.end_with(leaving)

    def within(self, fn: Callable[[], T]) -> T:
        """Call `fn` as a callback of this loop is called: it is the running loop, and its library is asyncio."""
        library = sniffio.thread_local
        name, before = library.name, events._get_running_loop()
        hooks = sys.get_asyncgen_hooks()
        events._set_running_loop(self)
        library.name = "asyncio"
        sys.set_asyncgen_hooks(firstiter=self._agen_begun, finalizer=self._agen_abandoned)
        try:
            return fn()
        finally:
            sys.set_asyncgen_hooks(*hooks)
            library.name = name
            events._set_running_loop(before)

    def end_with(self, error: BaseException) -> None:
        """The program ends with `error`, whatever else it was about to do."""
        if self.fatal is None:
            self.fatal = error
            self._on_fatal()

    def when_fatal(self, callback: Callable[[], object]) -> None:
        """Have `callback` called when something ends the whole program."""
        self._on_fatal = callback

    # ---- lanes and what the kernel does for the loop

    def _lane_of(self, task: asyncio.Task[Any]) -> Lane:
        lane = self._lanes.get(task)
        if lane is None:
            lane = self._open_lane(task, _task_name(task))
        return lane

    def _open_lane(self, task: asyncio.Task[Any] | None, name: str) -> Lane:
        lane = self._lanes[task] = Lane(self, task)
        self.start(lane.live, name=name, inner=task)
        return lane

    def leave_lane(self, lane: Lane) -> None:
        """A task is done."""
        self._lanes.pop(lane.task, None)

    def start(self, fn: Callable[[], Awaitable[object]], *, name: str, inner: Inner | None = None) -> None:
        """Start a task of the kernel's that belongs to this loop's process, whoever asks for it."""
        context = self._context.copy()
        context.run(INNER.set, inner)
        context.run(functools.partial(self._nursery.start_soon, fn, name=name))

    def in_trio(self, fn: Callable[..., Awaitable[T]], *args: Any) -> asyncio.Future[T]:
        """Run a trio function; the future gets what it returns or raises, and cancels it when it is cancelled itself."""
        future = self.create_future()
        scope = trio.CancelScope()

        async def work() -> None:
            with scope:
                try:
                    value = await fn(*args)
                except Exception as error:  # noqa: BLE001  # handed to whoever waits
                    if not future.done():
                        future.set_exception(error)
                else:
                    if not future.done():
                        future.set_result(value)

        future.add_done_callback(lambda _: scope.cancel())
        self.start(work, name=f"trio {getattr(fn, '__qualname__', 'call')}")
        return future

    # ---- tasks and futures

    def create_future(self) -> asyncio.Future[Any]:
        """As in asyncio."""
        return SimulatedFuture(loop=self)

    def create_task(self, coro: Any, *, name: object = None, context: Any = None, **options: Any) -> asyncio.Task[Any]:
        """As in asyncio."""
        self._check_closed()
        factory = self.get_task_factory()
        if factory is None:
            if context is not None:
                options["context"] = context
            return SimulatedTask(coro, loop=self, name=name, **options)
        if context is not None:
            options["context"] = context
        task: asyncio.Task[Any] = cast("Any", factory)(self, coro, **options)
        if name is not None:
            task.set_name(str(name))
        return task

    def open_tasks(self) -> list[asyncio.Task[Any]]:
        """Every task that is not done, in the order of their first steps."""
        known = {**dict.fromkeys(task for task in self._lanes if task is not None), **dict.fromkeys(_all_tasks(self))}
        return [task for task in known if not task.done()]

    def run_in_executor(self, executor: object, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:
        """In a simulated thread, whatever the executor."""
        self._check_closed()
        call = functools.partial(func, *args)
        return self.in_trio(functools.partial(trio.to_thread.run_sync, call, abandon_on_cancel=True))

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """There is none: threads are the world's."""

    # ---- async generators: closed in the order in which they were first iterated

    def _agen_begun(self, agen: AsyncGenerator[Any, Any]) -> None:
        self._agens[self.next_number()] = weakref.ref(agen)

    def _agen_abandoned(self, agen: AsyncGenerator[Any, Any]) -> None:
        if not self.is_closed():
            self.call_soon(self.create_task, agen.aclose())

    async def shutdown_asyncgens(self) -> None:
        """Close every async generator that is left, oldest first."""
        left = [agen for number in sorted(self._agens) if (agen := self._agens[number]()) is not None]
        self._agens.clear()
        for agen in left:
            try:
                await agen.aclose()
            except Exception as error:  # noqa: BLE001  # as asyncio does
                message = f"an error occurred during closing of asynchronous generator {agen!r}"
                self.call_exception_handler({"message": message, "exception": error, "asyncgen": agen})

    # ---- the end

    def bury(self) -> None:
        """The process is dead, or the world at its end: nothing runs again, and nothing is unwound."""
        if self.is_closed():
            return
        coroutines: list[Any] = []
        for task in self.open_tasks():
            task._log_destroy_pending = False
            coroutines.append(task.get_coro())
        self.world.kernel.entomb(coroutines)
        self.drop_network()
        self.finish()

    def close(self) -> None:
        """As in asyncio: a running loop cannot be closed."""
        if not self.is_closed():
            raise RuntimeError("Cannot close a running event loop")

    def finish(self) -> None:
        """Nothing runs from now on."""
        self._closed = True
        self._lanes.clear()
        self._held.clear()

    def is_closed(self) -> bool:
        """Whether it is over with this loop."""
        return bool(self._closed)

    def is_running(self) -> bool:
        """It runs for as long as it is there."""
        return not self._closed

    # ---- what a simulated loop does not do

    def run_forever(self) -> NoReturn:
        """Refused: the kernel runs it."""
        raise unsupported("run_forever", "`await simkit.aio.run(main)`, instead of asyncio.run(main())")

    def run_until_complete(self, future: Any) -> NoReturn:
        """Refused: the kernel runs it."""
        raise unsupported("run_until_complete", "`await simkit.aio.run(main)`, instead of asyncio.run(main())")

    def stop(self) -> None:
        """End the program, as far as that goes: whoever calls this wants `run_forever` to return."""
        self.end_with(SystemExit(0))

    def add_signal_handler(self, sig: int, callback: Callable[..., object], *args: Any) -> NoReturn:
        """As where there are no signals, which programs that use them are prepared for."""
        raise NotImplementedError("a simulated process gets no signals; see Process.kill and Process.pause")

    def remove_signal_handler(self, sig: int) -> bool:
        """There is none."""
        return False

    async def subprocess_exec(self, *_args: Any, **_options: Any) -> NoReturn:
        """Refused."""
        raise unsupported("subprocess_exec", "`Host.start`, which runs an async function as a process")

    async def subprocess_shell(self, *_args: Any, **_options: Any) -> NoReturn:
        """Refused."""
        raise unsupported("subprocess_shell", "`Host.start`, which runs an async function as a process")


class UnsupportedError(SimkitError, RuntimeError):
    """What a simulated loop does not do; a RuntimeError, as asyncio says that a loop runs already."""


def unsupported(what: str, instead: str) -> UnsupportedError:
    """The error for what a simulated loop does not do."""
    return UnsupportedError(
        Problem(
            "aio-unsupported",
            f"asyncio's {what} cannot be simulated",
            "the event loop of a simulated process",
            instead,
            "docs/asyncio.md lists what can",
            ExitCode.TARGET,
        )
    )


def _all_tasks(loop: asyncio.AbstractEventLoop) -> Iterator[asyncio.Task[Any]]:
    found = [task for task in asyncio.all_tasks(loop) if isinstance(task, SimulatedTask)]
    return iter(sorted(found, key=lambda task: task.number))


def _task_name(task: asyncio.Task[Any]) -> str:
    coro: Any = task.get_coro()
    return f"{task.get_name()} {getattr(coro, '__qualname__', type(coro).__name__)}"

"""trio's Runner with the world outside taken away. Both loops drive this one, so that their task trees are the same.

No epoll, no wake-up socket, no signals, no threads; callbacks from `TrioToken.run_sync_soon` are timers due now. Async
generators are the business of `generators`.
"""

from __future__ import annotations

import contextvars
import itertools
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn, cast

import trio
from outcome import Error, Outcome, Value
from trio import _socket
from trio._core._entry_queue import EntryQueue
from trio._core._instrumentation import Instruments
from trio._core._ki import KIManager
from trio._core._parking_lot import GLOBAL_PARKING_LOT_BREAKER
from trio._core._run import _NO_SEND, CancelReason, Nursery, Runner, Task
from trio.abc import Clock

from simkit._kernel import root, tasks
from simkit._kernel.generators import SimAsyncGenerators
from simkit._kernel.owner import OWNER, Owner
from simkit._kernel.tasks import SimTask
from simkit._kernel.timers import NS, Timers
from simkit._storage.handle import ProcessDead
from simkit.errors import ExitCode, Problem, SimkitError

if TYPE_CHECKING:
    from simkit._kernel.kernel import Kernel
    from simkit._kernel.threads import Threads

#: So long may tasks that outlive their nursery, by misnesting, take to end.
_ORPHAN_STEPS_MAX = 10_000


class _Done:
    """A successful outcome that is never used up and costs nothing; trio makes a new Value for every wake-up."""

    __slots__ = ()
    value = None

    def unwrap(self) -> None:
        return None

    def send(self, generator: Any) -> Any:
        return generator.send(None)


DONE = cast("Outcome[Any]", _Done())


class SimRunner(Runner):
    """What trio's public functions talk to while a simulation runs."""

    __slots__ = ("kernel", "numbers", "threads")
    kernel: Kernel
    #: What serves `trio.to_thread`.
    threads: Threads | None
    #: Of tasks, in the order of their creation.
    numbers: Iterator[int]

    def reschedule(self, task: Task, next_send: Outcome[Any] | None = _NO_SEND) -> None:
        """Make `task` runnable; its place among the newly runnable is settled later."""
        assert task._next_send_fn is None
        task._next_send_fn = task.send  # type: ignore[attr-defined]  # it is one of ours
        task._next_send = DONE if next_send is _NO_SEND else next_send
        task._abort_func = None
        task.custom_sleep_data = None
        self.runq.append(task)

    def spawn_impl(
        self,
        async_fn: Callable[..., Any],
        args: tuple[Any, ...],
        nursery: Nursery | None,
        name: object,
        *,
        system_task: bool = False,
        context: contextvars.Context | None = None,
    ) -> SimTask:
        """Create a task, as trio does, and remember its name by its number."""
        if nursery is None:
            assert self.init_task is None
        elif nursery._closed:
            raise RuntimeError("Nursery is closed to new arrivals")
        if context is None and system_task:  # of whoever starts it, and ends with that process
            context = self.system_context.copy()
            context.run(OWNER.set, OWNER.get())
        elif context is None:
            context = contextvars.copy_context()
        owner = context.get(OWNER)
        if owner is not None and not owner.alive:
            raise ProcessDead(f"{owner.label} is gone and starts no more tasks")
        coro = tasks.begin(async_fn, args, context)
        if getattr(coro, "cr_frame", None) is None:
            coro = tasks.awaited(coro)
        called = name if type(name) is str else tasks.name_of(async_fn, name)
        task = tasks.make(self, coro, nursery, called, context, ki_protected=system_task)
        self.kernel.names[task._counter] = called
        self.tasks.add(task)
        if owner is not None:
            owned = self.kernel.owned.get(owner)
            if owned is None:
                owned = self.kernel.owned[owner] = set()
            owned.add(task)
        if nursery is not None:
            nursery._children.add(task)
            task._cancel_status = nursery._cancel_status
            task._cancel_status._tasks.add(task)
        task._next_send_fn = task.send
        self.runq.append(task)
        return task

    def task_exited(self, task: Task, outcome: Outcome[Any]) -> None:
        """Let a task go; one that was killed while it ran is gone already."""
        kernel = self.kernel
        if kernel.dead and task in kernel.dead:
            return
        owner = task.context.get(OWNER)
        if owner is not None and owner in kernel.owned:
            kernel.owned[owner].discard(task)
        status, nursery = task._cancel_status, task._parent_nursery
        if nursery is None and status is _NO_STATUS and type(outcome) is Value and len(self.tasks) == 1:
            # The root task, and all is well.
            self.tasks.remove(task)
            return
        if (
            type(outcome) is not Value
            or nursery is None
            or nursery._closed
            or task._child_nurseries
            or status.abandoned_by_misnesting
            or task in GLOBAL_PARKING_LOT_BREAKER
        ):
            Runner.task_exited(self, task, outcome)
        else:  # it returned, and left nothing behind
            status._tasks.remove(task)
            task._cancel_status = _NO_STATUS
            self.tasks.remove(task)
            if task is self.main_task:
                self.main_task_outcome = outcome
            nursery._children.remove(task)
            nursery._check_nursery_closed()
        if task is self.main_task:
            kernel.main_exited()
            assert self.system_nursery is not None
            if not self.system_nursery._closed:
                reason = CancelReason(source="shutdown", reason="the main task is done")
                self.system_nursery.cancel_scope._cancel(reason)

    async def init(self, async_fn: Callable[..., Any], args: tuple[Any, ...]) -> None:
        """The root task: one nursery for the main task, processes and system tasks, then what is left to close."""
        nursery = self.system_nursery = root.opened(self.init_task, self.strict_exception_groups)
        try:
            self.main_task = self.spawn_impl(async_fn, args, nursery, "main")
        except BaseException as error:  # noqa: BLE001  # what is no async function is the caller's error, as it is
            self.main_task_outcome = Error(error)
        await root.left(nursery)
        root.close(nursery)
        if self.main_task is None:
            return
        for _ in range(_ORPHAN_STEPS_MAX):  # whose nursery was closed over them: they are cancelled, and clean up now
            if len(self.tasks) == 1:
                break
            await trio.lowlevel.cancel_shielded_checkpoint()
        generators: Any = self.asyncgens
        if generators.are_left:
            await generators.close_remaining()

    def let_go(self) -> None:
        """The run is over: drop what would keep all of it alive until a collection, which costs more than this."""
        self.main_task = self.init_task = self.system_nursery = self.threads = None
        self._locals.clear()
        queue: Any = self.entry_queue
        generators: Any = self.asyncgens
        del self.kernel, queue.kernel, generators.kernel

    def serve_sockets(self, factory: trio.abc.SocketFactory, resolver: trio.abc.HostnameResolver) -> None:
        """Let these make the sockets of this run, and resolve its names."""
        self._locals[_socket._socket_factory] = factory
        self._locals[_socket._resolver] = resolver


class VirtualClock(Clock):
    """Reads the timers' clock; trio's own loop also moves it by asking how long to sleep."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        #: Set by the fallback loop, which learns here that nothing is runnable.
        self.on_idle: Callable[[], float] | None = None

    def start_clock(self) -> None:
        """Nothing to start."""

    def current_time(self) -> float:
        """Virtual time in seconds since the run began."""
        return self._timers.now_ns / NS

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """Never sleep: move the clock instead."""
        return 0 if self.on_idle is None else self.on_idle()


class NoIO:
    """Stands where trio's I/O manager is."""

    def close(self) -> None:
        """Nothing to close."""

    def force_wakeup(self) -> None:
        """Nobody waits for the system."""

    def process_events(self, events: object) -> None:
        """There are none."""

    def statistics(self) -> None:
        """None to tell."""

    def __getattr__(self, name: str) -> NoReturn:
        raise SimkitError(
            Problem(
                "real-io",
                f"the program asked trio to {name.replace('_', ' ')} on a real file or socket",
                "inside a simulation",
                "simulated streams, which trio.open_tcp_stream and trio.serve_tcp give",
                "open connections through trio's own functions inside the simulation",
                ExitCode.TARGET,
            )
        )


class Idlers(dict[tuple[float, int], Task]):
    """Who is in `wait_all_tasks_blocked`: as much of a sorted dictionary as the loops need, at less than its price."""

    def keys(self) -> list[tuple[float, int]]:  # type: ignore[override]
        return sorted(super().keys())

    def peekitem(self, index: int = -1) -> tuple[tuple[float, int], Task]:
        key = self.keys()[index]
        return key, self[key]

    def popitem(self, index: int = -1) -> tuple[tuple[float, int], Task]:
        key = self.keys()[index]
        return key, self.pop(key)


class SoonQueue(EntryQueue):
    """`run_sync_soon` without its task: the callback is a timer that is due now."""

    # What trio's own queue has, and nobody needs here.
    queue = ()  # type: ignore[assignment]
    lock = threading.RLock()
    wakeup = cast("Any", NoIO())
    done = False

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.idempotent_queue = {}

    def _on_behalf(self, owner: Owner, sync_fn: Callable[..., object], args: tuple[Any, ...]) -> None:
        """Do what a process asked for, as that process; not when it is gone by now."""
        if owner.alive:
            context = self.kernel.runner.system_context.copy()
            context.run(OWNER.set, owner)
            context.run(sync_fn, *args)

    def run_sync_soon(self, sync_fn: Callable[..., object], *args: Any, idempotent: bool = False) -> None:  # type: ignore[override]
        """Call `sync_fn(*args)` before the next step."""
        if self.done:
            raise trio.RunFinishedError("run() has exited")
        owner = OWNER.get()
        if owner is not None:
            sync_fn, args = self._on_behalf, (owner, sync_fn, args)
        if idempotent:
            if (sync_fn, args) in self.idempotent_queue:
                return
            self.idempotent_queue[sync_fn, args] = None
            self.kernel.call_soon(self._run_once, sync_fn, args)
        else:
            self.kernel.call_soon(sync_fn, *args)

    def _run_once(self, sync_fn: Callable[..., object], args: tuple[Any, ...]) -> None:
        del self.idempotent_queue[sync_fn, args]
        sync_fn(*args)


_NO_IO = cast("Any", NoIO())
_NO_INTERRUPTS = KIManager()
_NO_STATUS: Any = None
_instruments = Instruments(())


def make_runner(kernel: Kernel, timers: Timers, clock: Clock) -> SimRunner:
    """A runner for one simulation."""
    global _instruments  # noqa: PLW0603  # one that is empty serves every run
    if len(_instruments) > 1 or _instruments["_all"]:
        _instruments = Instruments(())
    runner = SimRunner(
        clock=clock,
        instruments=_instruments,
        io_manager=_NO_IO,
        ki_manager=_NO_INTERRUPTS,
        system_context=contextvars.Context(),
        strict_exception_groups=True,
        entry_queue=SoonQueue(kernel),
        deadlines=timers,  # type: ignore[arg-type]  # these three are ours, and all that is asked of trio's
        asyncgens=SimAsyncGenerators(kernel),  # type: ignore[arg-type]
        runq=[],  # type: ignore[arg-type]
        waiting_for_idle=Idlers(),
    )
    runner.kernel = kernel
    runner.threads = None
    runner.numbers = itertools.count()
    return runner


def counter_of(task: Task) -> int:
    """The canonical order of tasks: that of their creation."""
    return task._counter

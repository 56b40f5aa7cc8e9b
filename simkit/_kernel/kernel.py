"""What both loops share: spawning, killing without unwinding, pausing, ending, telling a deadlock.

The order of events of one tick, the same in both loops: when nothing is runnable the clock jumps to the next timer; what
is due fires; the newly runnable tasks are put in canonical order (`settle`); the strategy picks one; it takes one step.
"""

from __future__ import annotations

import contextlib
import functools
import types
from collections.abc import Callable, Coroutine, Generator, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, cast

import sniffio
import trio
from trio._core._parking_lot import GLOBAL_PARKING_LOT_BREAKER
from trio._core._run import GLOBAL_RUN_CONTEXT, CancelScope, CancelStatus, Nursery, Task
from trio._core._traps import WaitTaskRescheduled

from simkit._kernel import shortcuts
from simkit._kernel.deadlock import DeadlockError, stood
from simkit._kernel.grave import lay_to_rest
from simkit._kernel.owner import OWNER, Owner
from simkit._kernel.runner import VirtualClock, counter_of, make_runner
from simkit._kernel.tasks import SimTask
from simkit._kernel.timers import BoundMetError, Timer, Timers
from simkit.effects import Footprint

if TYPE_CHECKING:
    from simkit._kernel.threads import SimThread


_START = Nursery.start.__code__


class Choice(Protocol):
    """How the next task is picked, as the loops see it."""

    #: Whether to ask even when only one task is runnable.
    always: bool
    #: For strategies that only need to know how many are runnable: asked instead of `pick`, as (count, step).
    index: Callable[[int, int], int] | None
    #: For strategies that give each runnable task the same chance: gives a source of numbers in [0, 1), used instead of
    #: both, as `int(uniform() * count)`.
    uniform: Callable[[], Callable[[], float]] | None

    def pick(self, runnable: list[Task], step: int) -> int:
        """Index into `runnable` of the task that takes step number `step` (from 0)."""
        ...


@types.coroutine
def _corpse() -> Generator[Any, Any, None]:
    """What stands in a dead task's place: whoever wakes it by mistake wakes nothing."""
    while True:
        yield WaitTaskRescheduled(lambda _: trio.lowlevel.Abort.SUCCEEDED)


class Kernel:
    """One simulation's tasks and time. `loop.run` or `fallback.run` drives it.

    Args:
        choice: who picks the next task; None is first come, first served.
        record: called once a step with the task's number, and with minus the time when the clock moves.
        steps_max: no more steps than this.
        time_ns_max: the clock goes no further than this.
    """

    def __init__(
        self, choice: Choice | None, record: Callable[[int], None], *, steps_max: int, time_ns_max: int
    ) -> None:
        self.choice = choice
        self.record = record
        self.steps_max = steps_max
        self.time_ns_max = time_ns_max
        self.steps = 0
        self.names: dict[int, str] = {}
        #: What the next steps of tasks declared (see `stepping`), by task number.
        self.pending: dict[int, Footprint] = {}
        self.timers = Timers()
        self.clock = VirtualClock(self.timers)
        self.runner = make_runner(self, self.timers, self.clock)
        self.over = False
        #: Where tasks stood when a bound was met.
        self.stood = ""
        #: Killed tasks; never iterated.
        self.dead: set[Task] = set()
        #: The living tasks of each process, never iterated but sorted: who ends, ends his own, however many others there are.
        self.owned: dict[Owner, set[Task]] = {}
        #: Non-empty while `settle` has more to do than to sort.
        self.unsettled: list[object] = []
        #: The bound that somebody found met from beside (see `watchdog`).
        self._stopped: str | None = None
        #: The simulated thread that runs instead of the kernel.
        self.away: SimThread | None = None
        #: Called when the run is over, before anything that the tasks hold is freed.
        self.endings: list[Callable[[], object]] = []
        #: Called when a process that was paused goes on.
        self.resumings: list[Callable[[Owner], object]] = []
        self._suicides: list[Task] = []
        #: Whether one of the dead may stand among the runnable; looking for them costs as much as there are runnable.
        self._dead_runnable = False
        self._held: dict[Owner, list[Task]] = {}
        self._graveyard: list[Coroutine[Any, Any, Any]] = []

    # ---- running

    def run(self, drive: Callable[[Kernel, Callable[..., Any], tuple[Any, ...]], None], main: Any, args: Any) -> Any:
        """Run `main(*args)` to its end under the loop `drive` and return or raise its outcome."""
        here = GLOBAL_RUN_CONTEXT.__dict__
        if "runner" in here:
            raise RuntimeError("a simulation cannot be started inside a trio run")
        shortcuts.take()
        runner = self.runner
        thread = sniffio.thread_local
        previous, thread.name = thread.name, "trio"
        runner.asyncgens.install_hooks(runner)
        here["runner"] = runner
        try:
            drive(self, main, args)
        except BoundMetError:
            self.stood = stood(self.tasks(), self._held, self._standing_threads())
            raise
        finally:
            self._bury_everything()
            runner.entry_queue.done = True
            runner.asyncgens.close()
            here.clear()
            shortcuts.run_ends()
            thread.name = previous
            self.endings.clear()
            self.resumings.clear()
            runner.let_go()
        assert runner.main_task_outcome is not None
        return runner.main_task_outcome.unwrap()

    def spawn_init(self, main: Any, args: Any) -> None:
        """Create the root task."""
        runner = self.runner
        runner.init_task = runner.spawn_impl(runner.init, (main, args), None, "<init>", system_task=True)

    def spawn_system(self, fn: Callable[..., Any], args: tuple[Any, ...], name: str, owner: Owner | None) -> Task:
        """Create a task of `owner` that no program waits for."""
        runner = self.runner
        context = runner.system_context.copy()
        context.run(OWNER.set, owner)
        return runner.spawn_impl(fn, args, runner.system_nursery, name, context=context)

    def main_exited(self) -> None:
        """The main task is done, and with it the world: drop every process, and whoever lived in a nursery of the dead."""
        self.over = True
        if len(self.runner.tasks) == 1:  # only the root task is left
            return
        ended = set(self.dead)
        for task in self.tasks():
            nursery = task._parent_nursery
            if owner_of(task) is not None or (nursery is not None and nursery._parent_task in ended):
                ended.add(task)
        self._kill([task for task in self.tasks() if task in ended])

    def call_soon(self, fn: Callable[..., object], *args: Any) -> Timer:
        """Call `fn(*args)` before the next step."""
        return self.timers.call_at(self.timers.now_ns, fn, args)

    def tasks(self) -> list[Task]:
        """Every living task in canonical order."""
        return sorted(self.runner.tasks, key=counter_of)

    def number(self, task: Task) -> int:
        """The number of `task` in this run."""
        return task._counter

    def owner(self, task: Task) -> Owner | None:
        """The process that `task` belongs to."""
        return owner_of(task)

    def stop(self, bound: str) -> None:
        """Stop before the next step, as `bound` is met. May be called in another thread."""
        self._stopped = bound
        self.unsettled.append(bound)

    # ---- between two steps

    def advance(self) -> None:
        """Nothing is runnable: move the clock to the next timer."""
        when_ns = self.timers.next_ns()
        if when_ns is None:
            raise DeadlockError.of(self.tasks(), self._held, self.timers.now_ns, self._standing_threads())
        if when_ns > self.time_ns_max:
            raise BoundMetError("time")
        if when_ns > self.timers.now_ns:
            self.timers.now_ns = when_ns
            self.record(-when_ns)

    def _standing_threads(self) -> Sequence[str]:
        threads = self.runner.threads
        return () if threads is None else threads.standing()

    def wake_idle_waiters(self) -> None:
        """Wake those in `wait_all_tasks_blocked` with the shortest cushion; the clock does not move for them."""
        waiting = self.runner.waiting_for_idle
        cushion = waiting.keys()[0][0]
        while waiting and waiting.keys()[0][0] == cushion:
            _, task = waiting.popitem(0)
            self.runner.reschedule(task)

    def settle(self, settled: int) -> None:
        """Put the runnable tasks behind the first `settled` in canonical order; take out the dead and the paused."""
        runq: list[Task] = self.runner.runq  # type: ignore[assignment]  # a list here
        if len(runq) - settled > 1:
            runq[settled:] = sorted(runq[settled:], key=counter_of)
        if not self.unsettled:
            return
        if self._stopped is not None:
            raise BoundMetError(self._stopped)
        for task in self._suicides:
            self._dead_runnable |= task._next_send_fn is not None
            _withdraw(task)
        self._suicides.clear()
        if self._dead_runnable or self._held:
            self._dead_runnable = False
            runq[:] = [task for task in runq[:] if task not in self.dead and not self._hold(task)]
        if not self._held:
            self.unsettled.clear()

    def _hold(self, task: Task) -> bool:
        owner = owner_of(task) if self._held else None
        held = None if owner is None else self._held.get(owner)
        if held is None:
            return False
        held.append(task)
        return True

    # ---- pausing

    def pause(self, owner: Owner) -> None:
        """Schedule none of `owner`'s tasks until `resume`."""
        self._held.setdefault(owner, [])
        self.unsettled.append(owner)

    def resume(self, owner: Owner) -> None:
        """Schedule `owner`'s tasks again; what became runnable meanwhile is runnable now."""
        self.runner.runq.extend(self._held.pop(owner, ()))
        self._dead_runnable = True
        self.unsettled.append(owner)
        for resuming in self.resumings:
            resuming(owner)

    def holds(self, owner: Owner) -> bool:
        """Whether `owner` is paused."""
        return owner in self._held

    # ---- killing

    def kill(self, owner: Owner) -> int:
        """Drop every task of `owner` at this very instant, and say how many. None of their code runs again.

        The task that is running, if it is one of them, is dropped at its next await: Python cannot stop it earlier.
        """
        self._held.pop(owner, None)
        victims = sorted(self.owned.pop(owner, ()), key=counter_of)
        self._kill(victims)
        return len(victims)

    @functools.cached_property
    def _grave(self) -> CancelStatus:
        """Where the dead are in the tree of cancel scopes."""
        return CancelStatus(scope=CancelScope())

    @functools.cached_property
    def _corpse(self) -> Generator[Any, Any, None]:
        corpse = cast("Generator[Any, Any, None]", _corpse())
        next(corpse)  # so that it can be sent outcomes
        return corpse

    def _kill(self, victims: list[Task]) -> None:
        if not victims:
            return
        running: Task | None = getattr(GLOBAL_RUN_CONTEXT, "task", None)
        self.dead.update(victims)
        self.unsettled.append(victims[0])
        for task in victims:
            if task is running:
                self._suicides.append(task)
            else:
                self._dead_runnable |= task._next_send_fn is not None
                _withdraw(task)
            _unhinge(task)
        for task in reversed(victims):  # children before the scopes of their parents
            self._detach(task)
            self._graveyard.append(task.coro)
            task.coro = self._corpse  # type: ignore[assignment]
            cast("SimTask", task).send = self._corpse.send
        for task in victims:
            _tell_nursery(task, self.dead)

    def entomb(self, coroutines: Iterable[Coroutine[Any, Any, Any]]) -> None:
        """Keep these, which nobody steps any more, until the run is over, and free them then without unwinding."""
        self._graveyard.extend(coroutines)

    def _detach(self, task: Task) -> None:
        """Take a dead task out of the tree of cancel scopes; its own deadlines neither fire nor move the clock."""
        outer = None if task._parent_nursery is None else task._parent_nursery._cancel_status
        status: CancelStatus | None = task._cancel_status
        task._activate_cancel_status(self._grave)
        while status is not None and status is not outer:
            scope, parent = status._scope, status._parent
            if scope._registered_deadline != float("inf"):
                self.timers.remove(scope._registered_deadline, scope)
                scope._registered_deadline = float("inf")
            if not status._tasks and not status._children:
                status.parent = None
            status = parent
        self.runner.tasks.discard(task)
        task._next_send_fn = task._next_send = None

    def _bury_everything(self) -> None:
        """The run is over, one way or another: whoever is left is dropped, and all the dead are freed."""
        self.over = True
        for ending in self.endings:
            ending()
        if self.runner.tasks:
            self._bury_the_living()
        self.timers.heap.clear()
        graveyard, self._graveyard = self._graveyard, []
        if graveyard:
            lay_to_rest(graveyard)

    def _bury_the_living(self) -> None:
        for task in self.tasks():
            self._graveyard.append(task.coro)
            task._next_send = None  # a checkpoint's answer, that is the task itself
            for nursery in (task._parent_nursery, *task._child_nurseries):
                if nursery is not None:
                    nursery._children.clear()
        self.runner.tasks.clear()
        del self.runner.runq[:]  # type: ignore[arg-type]  # a list here
        self.runner.waiting_for_idle.clear()


def owner_of(task: Task) -> Owner | None:
    """The process that `task` belongs to."""
    return task.context.get(OWNER)


def _raise_cancelled() -> NoReturn:
    raise trio.Cancelled._create(source="unknown", reason="killed")


def _withdraw(task: Task) -> None:
    """Take a dead task out of whatever queue it waits in, by the abort function that the wait came with."""
    abort, task._abort_func = task._abort_func, None
    if abort is None or any(nursery._parent_waiting_in_aexit for nursery in task._child_nurseries):
        return
    with contextlib.suppress(BaseException):
        abort(_raise_cancelled)


def _unhinge(task: Task) -> None:
    """Close the nurseries that a dead task opened; whoever lives on in them lives on."""
    for nursery in task._child_nurseries:
        nursery._closed = True
        nursery._parent_waiting_in_aexit = False
        if hasattr(nursery, "_pending_excs"):
            del nursery._pending_excs
    for lot in GLOBAL_PARKING_LOT_BREAKER.pop(task, ()):
        lot.break_lot(task)
    if not task._child_nurseries:  # who waits in `start` has opened one there
        return
    for frame, _ in task.iter_await_frames():
        if frame.f_code is _START:  # a start that never returns must not hold a living nursery open
            _give_up_start(frame.f_locals["self"])


def _give_up_start(nursery: Nursery) -> None:
    nursery._pending_starts -= 1
    nursery._check_nursery_closed()


def _tell_nursery(task: Task, dead: set[Task]) -> None:
    """A dead task leaves its nursery; one that belongs to the living may close now."""
    nursery: Nursery | None = task._parent_nursery
    if nursery is None:
        return
    nursery._children.discard(task)
    if nursery._parent_task not in dead:
        nursery._check_nursery_closed()

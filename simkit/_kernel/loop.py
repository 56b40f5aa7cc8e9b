"""The fast loop: one step at a time, no ceremony. What it does per step is what trio's `unrolled_run` does, and no more.

Written for one version of trio (see `fingerprint`); `fallback` is its oracle. It knows two shorter ways: a task that
sleeps stands in the heap of timers itself (`sleeper.NAP`), and is answered by nothing; a checkpoint is answered by the
task (`tasks.SimTask`).
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from types import MethodType
from typing import Any, cast

from outcome import Error, Value
from trio._core._run import CONTEXT_RUN_TB_FRAMES, GLOBAL_RUN_CONTEXT
from trio._core._traps import CancelShieldedCheckpoint, PermanentlyDetachCoroutineObject, WaitTaskRescheduled

from simkit._kernel import shortcuts
from simkit._kernel.kernel import Kernel
from simkit._kernel.runner import counter_of
from simkit._kernel.sleeper import NAP
from simkit._kernel.tasks import SimTask
from simkit._kernel.timers import BoundMetError, Timer

#: What is due next, when nothing is.
NOTHING: tuple[int, int, Any, Any] = (0, 0, None, None)


def drive(kernel: Kernel, main: Callable[..., Any], args: tuple[Any, ...]) -> None:
    """Run until the last task has exited; raise when a bound is met or nothing can happen any more."""
    kernel.timers.naps = True
    shortcuts.run_begins(kernel.timers)
    kernel.spawn_init(main, args)
    _drive(kernel)


def _drive(kernel: Kernel) -> None:  # one hot function, on purpose
    runner, timers, record, here = kernel.runner, kernel.timers, kernel.record, GLOBAL_RUN_CONTEXT.__dict__
    runq = cast("list[SimTask]", runner.runq)
    append, pop, idlers = runq.append, runq.pop, runner.waiting_for_idle
    tasks, heap, soon, unsettled = runner.tasks, timers.heap, timers.soon, kernel.unsettled
    choice, steps_max, time_ns_max = kernel.choice, kernel.steps_max, kernel.time_ns_max
    pick: Callable[[Any, int], int] | None = None if choice is None else choice.pick
    index, always = (None, False) if choice is None else (choice.index, choice.always)
    uniform = None if choice is None else choice.uniform
    draw: Callable[[], float] | None = None
    send: Any
    value: Any
    steps, settled_max = 0, 1  # runnable tasks up to this number are in order already
    try:
        while True:
            task: SimTask | None = None
            if soon or not runq:
                if not tasks:
                    return
                if not soon:
                    when_ns, sequence, target, given = heap[0] if heap and not idlers else NOTHING
                    if type(target) is SimTask:  # most often somebody sleeps
                        if target.nap == sequence and when_ns <= time_ns_max:
                            heappop(heap)
                            if when_ns > timers.now_ns:
                                timers.now_ns = when_ns
                                record(-when_ns)
                            target.nap = 0
                            target._abort_func = target.custom_sleep_data = None
                            if always or unsettled or (heap and heap[0][0] <= when_ns):
                                target._next_send_fn = target.send
                                append(target)
                                timers.fire_due()
                            else:
                                task, send, value = target, target.send, None
                                settled_max = 1
                        else:
                            _idle(kernel)
                    elif type(target) is MethodType and timers.now_ns < when_ns <= time_ns_max:  # or it is a message
                        heappop(heap)
                        timers.now_ns = when_ns
                        record(-when_ns)
                        here.pop("task", None)  # it runs in none
                        target(*given)
                        given = None
                        if heap and heap[0][0] <= timers.now_ns:
                            timers.fire_due()
                    else:
                        _idle(kernel)
                else:
                    timers.fire_due()
            if task is None:
                runnable = len(runq)
                if runnable > settled_max or unsettled:
                    if unsettled:
                        kernel.settle(settled_max - 1)
                        runnable = len(runq)
                    elif runnable - settled_max > 1:
                        runq[settled_max - 1 :] = sorted(runq[settled_max - 1 :], key=counter_of)
                    elif runq[-1]._counter < runq[-2]._counter:  # two, as most often
                        runq[-2:] = runq[-1], runq[-2]
                if runnable == 0:
                    settled_max = 1
                    continue
                if pick is None or (runnable == 1 and not always):
                    task = pop(0)
                elif draw is not None:
                    task = pop(int(draw() * runnable))
                elif uniform is not None:
                    draw = uniform()
                    task = pop(int(draw() * runnable))
                elif index is not None:
                    task = pop(index(runnable, steps))
                else:
                    task = pop(pick(runq, steps))
                settled_max = runnable
                send, value = task._next_send_fn, task._next_send
                task._next_send_fn = task._next_send = None
            if steps >= steps_max:
                raise BoundMetError("steps")
            steps += 1
            record(task._counter)
            here["task"] = task
            try:
                trap = task.context.run(send, value)
            except StopIteration as stop:
                final: Any = Value(stop.value)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001  # whatever a task raises is its outcome
                final = Error(_trimmed(error))
            else:
                task._schedule_points += 1
                if trap is CancelShieldedCheckpoint:
                    task._next_send_fn, task._next_send = task.send, task  # type: ignore[assignment]
                    task.custom_sleep_data = None
                    append(task)
                elif trap is NAP:
                    task._cancel_points += 1
                    timers.sequence = task.nap = sequence = timers.sequence + 1
                    when_ns = timers.wish_ns
                    heappush(heap, (when_ns, sequence, task, 0.0))
                    if when_ns <= timers.now_ns:
                        soon.append(when_ns)
                    task._abort_func = task.rouse
                    if task._cancel_status.effectively_cancelled:
                        task._attempt_delivery_of_any_pending_cancel()
                elif type(trap) is WaitTaskRescheduled:
                    task._cancel_points += 1
                    task._abort_func = trap.abort_func
                    if task._cancel_status.effectively_cancelled:
                        task._attempt_delivery_of_any_pending_cancel()
                    trap = None
                else:
                    _unusual(runner, task, trap)
                    trap = None
                continue
            runner.task_exited(task, final)
            final = None
    finally:
        kernel.steps = steps
        here.pop("task", None)


def _idle(kernel: Kernel) -> None:
    """Nothing is runnable, and nothing is due: let time pass, and fire what is due then."""
    if kernel.runner.waiting_for_idle:
        kernel.wake_idle_waiters()
        return
    timers = kernel.timers
    if timers.heap:
        when_ns, _, target, _ = timers.heap[0]
        if type(target) is Timer and target.live is not None and timers.now_ns < when_ns <= kernel.time_ns_max:
            timers.now_ns = when_ns
            kernel.record(-when_ns)
            timers.fire_due()
            return
    kernel.advance()
    timers.fire_due()


def _unusual(runner: Any, task: SimTask, trap: Any) -> None:
    if type(trap) is PermanentlyDetachCoroutineObject:
        runner.task_exited(task, trap.final_outcome)
        return
    runner.reschedule(
        task,
        TypeError(
            f"trio.run received unrecognized yield message {trap!r}. Are you trying to use a library written for some "
            "other framework like asyncio? That won't work without some kind of compatibility shim."
        ),
    )
    task._next_send_fn = task.coro.throw


def _trimmed(error: BaseException) -> BaseException:
    """Without the frames of the loop."""
    traceback = error.__traceback__
    for _ in range(1 + CONTEXT_RUN_TB_FRAMES):
        if traceback is not None:
            traceback = traceback.tb_next
    return error.with_traceback(traceback)

"""The fast loop: one step at a time, no ceremony. What it does per step is what trio's `unrolled_run` does, and no more.

Written for one version of trio (see `fingerprint`); `fallback` is its oracle.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from outcome import Error, Outcome, Value
from trio._core._run import CONTEXT_RUN_TB_FRAMES, GLOBAL_RUN_CONTEXT, Task
from trio._core._traps import CancelShieldedCheckpoint, PermanentlyDetachCoroutineObject, WaitTaskRescheduled

from simkit._kernel import shortcuts
from simkit._kernel.kernel import Kernel
from simkit._kernel.runner import DONE
from simkit._kernel.timers import BoundMetError


def drive(kernel: Kernel, main: Callable[..., Any], args: tuple[Any, ...]) -> None:
    """Run until the last task has exited; raise when a bound is met or nothing can happen any more."""
    with shortcuts.taken():
        _drive(kernel, main, args)


def _drive(kernel: Kernel, main: Callable[..., Any], args: tuple[Any, ...]) -> None:  # one hot function, on purpose
    kernel.spawn_init(main, args)
    runner, timers, record, context = kernel.runner, kernel.timers, kernel.record, GLOBAL_RUN_CONTEXT
    runq = cast("list[Task]", runner.runq)
    tasks, heap, unsettled, base = runner.tasks, timers.heap, kernel.unsettled, kernel.base
    choice, steps_max, settle = kernel.choice, kernel.steps_max, kernel.settle
    pick, index, always = (None, None, False) if choice is None else (choice.pick, choice.index, choice.always)
    steps = settled = 0
    try:
        while tasks:
            if not runq and not (heap and heap[0][0] <= timers.now_ns):
                if runner.waiting_for_idle:
                    kernel.wake_idle_waiters()
                else:
                    kernel.advance()
            if heap and heap[0][0] <= timers.now_ns:
                timers.fire_due()
            runnable = len(runq)
            if runnable - settled > 1 or unsettled:
                settle(settled)
                runnable = len(runq)
            if runnable == 0:
                settled = 0
                continue
            if pick is None or (runnable == 1 and not always):
                task = runq.pop(0)
            elif index is not None:
                task = runq.pop(index(runnable, steps))
            else:
                task = runq.pop(pick(runq, steps))
            settled = runnable - 1
            if steps >= steps_max:
                raise BoundMetError("steps")
            steps += 1
            record(task._counter - base)
            context.task = task
            send, value = task._next_send_fn, task._next_send
            task._next_send_fn = task._next_send = None
            final: Outcome[Any] | None = None
            try:
                trap = task.context.run(send, value)  # type: ignore[arg-type]
            except StopIteration as stop:
                final = Value(stop.value)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001  # whatever a task raises is its outcome
                final = Error(_trimmed(error))
            if final is not None:
                runner.task_exited(task, final)
                continue
            task._schedule_points += 1
            if trap is CancelShieldedCheckpoint:
                task._next_send_fn, task._next_send = task.coro.send, DONE  # as reschedule
                task.custom_sleep_data = None
                runq.append(task)
            elif type(trap) is WaitTaskRescheduled:
                task._cancel_points += 1
                task._abort_func = trap.abort_func
                if task._cancel_status.effectively_cancelled:
                    task._attempt_delivery_of_any_pending_cancel()
            else:
                _unusual(runner, task, trap)
            trap = None
    finally:
        kernel.steps = steps
        context.__dict__.pop("task", None)


def _unusual(runner: Any, task: Task, trap: Any) -> None:
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

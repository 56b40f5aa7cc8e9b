"""The fallback: trio's own `unrolled_run`, fed one task a tick. Slower than `loop`, same traces.

Used by itself when the installed trio is not the one `loop` was written for, and as the oracle that `loop` is tested
against: what differs between the two is a bug of `loop`.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any

from trio import TrioInternalError
from trio._core._run import GLOBAL_RUN_CONTEXT, Task, unrolled_run

from simkit._kernel import shortcuts
from simkit._kernel.kernel import Kernel
from simkit._kernel.timers import BoundMetError


class StepQueue(list[Task]):
    """A run queue that hands trio's loop one task a tick, picked by the strategy."""

    __slots__ = ("_kernel", "_settled", "steps")

    def __init__(self, kernel: Kernel) -> None:
        super().__init__()
        self._kernel = kernel
        self._settled = 0
        self.steps = 0

    def __iter__(self) -> Iterator[Task]:
        """Asked once a tick for the batch to run."""
        kernel = self._kernel
        if len(self) - self._settled > 1 or kernel.unsettled:
            kernel.settle(self._settled)
        runnable = len(self)
        self._settled = max(0, runnable - 1)
        if not runnable:
            return iter(())
        task = self.pop(self._pick(runnable))
        if self.steps >= kernel.steps_max:
            raise BoundMetError("steps")
        self.steps += 1
        kernel.record(task._counter)
        return iter((task,))

    def _pick(self, runnable: int) -> int:
        choice = self._kernel.choice
        if choice is None or (runnable == 1 and not choice.always):
            return 0
        return choice.pick(self, self.steps) if choice.index is None else choice.index(runnable, self.steps)

    def clear(self) -> None:
        """Trio takes the batch for granted; the task is out already."""


def drive(kernel: Kernel, main: Callable[..., Any], args: tuple[Any, ...]) -> None:
    """Run until the last task has exited; raise when a bound is met or nothing can happen any more."""
    runner = kernel.runner
    queue = StepQueue(kernel)
    runner.runq = queue  # type: ignore[assignment]

    def idle() -> float:
        if runner.waiting_for_idle:
            return math.inf  # then trio wakes them, unless something is due
        kernel.advance()
        return 0

    kernel.clock.on_idle = idle
    shortcuts.run_begins(kernel.timers)
    ticks = unrolled_run(runner, main, args, host_uses_signal_set_wakeup_fd=True)
    try:
        with contextlib.suppress(StopIteration):
            next(ticks)
            while True:
                ticks.send([])
    except TrioInternalError as wrapped:
        raise _unwrapped(wrapped) from None
    finally:
        kernel.steps = queue.steps
        GLOBAL_RUN_CONTEXT.runner = runner  # trio has forgotten it; the burial needs it once more


def _unwrapped(wrapped: TrioInternalError) -> BaseException:
    """What the kernel raised inside trio's loop; trio's own troubles stay as they are."""
    return wrapped if wrapped.__cause__ is None else wrapped.__cause__

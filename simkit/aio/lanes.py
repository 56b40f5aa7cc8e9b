"""Lanes: how the callbacks of an event loop become steps of the kernel.

Every asyncio task has a lane, which is a task of the kernel's, and each of its steps is a step there; so a strategy chooses
between asyncio tasks as between any others. With `order="fifo"` all callbacks share one lane, in asyncio's own order.
"""

from __future__ import annotations

import asyncio
import functools
from collections import deque
from typing import TYPE_CHECKING, Any

import trio

from simkit.errors import ExitCode, Problem, SimkitError

if TYPE_CHECKING:
    from simkit.aio.loop import SimulatedLoop
    from simkit.process import Process
    from simkit.trace import Trace

#: Modules whose callbacks are no business of the program.
_INSIDE = ("asyncio", "_asyncio", "simkit.")


class Lane:
    """Runs handles one by one, each in a step of its own.

    Args:
        loop: whose handles.
        task: whose steps; None for everybody's.
    """

    __slots__ = ("_handles", "_loop", "_parked", "task")

    def __init__(self, loop: SimulatedLoop, task: asyncio.Task[object] | None) -> None:
        self.task = task
        self._loop = loop
        self._handles: deque[asyncio.Handle] = deque()
        self._parked: trio.lowlevel.Task | None = None

    @property
    def empty(self) -> bool:
        """Whether nothing waits for its turn."""
        return not self._handles

    def push(self, handle: asyncio.Handle) -> None:
        """Let `handle` run when its turn comes."""
        self._handles.append(handle)
        parked, self._parked = self._parked, None
        if parked is not None:
            trio.lowlevel.reschedule(parked)

    async def live(self) -> None:
        """The kernel's task: until its asyncio task is done."""
        while True:
            while not self._handles:
                if self.task is not None and self.task.done():
                    self._loop.leave_lane(self)
                    if trio.lowlevel.current_task().child_nurseries:
                        self._loop.world.mistakes.append(_nursery_left_open(self.task))
                    return
                await self._park()
            self._loop.run_handle(self._handles.popleft())
            if self._handles:
                await trio.lowlevel.cancel_shielded_checkpoint()

    async def _park(self) -> None:
        self._parked = trio.lowlevel.current_task()

        def abort(_: object) -> trio.lowlevel.Abort:
            self._parked = None
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)


def _nursery_left_open(task: asyncio.Task[object]) -> SimkitError:
    code: Any = getattr(task.get_coro(), "cr_code", None)
    where = task.get_name() if code is None else f"{code.co_filename}:{code.co_firstlineno} in {code.co_qualname}"
    return SimkitError(
        Problem(
            "aio-nursery",
            f"the asyncio task {task.get_name()} opened a nursery of trio, which only a trio task can leave",
            where,
            "asyncio.TaskGroup in an asyncio program",
            "`await simkit.aio.in_trio(fn, *args)` calls a trio function, which may have nurseries",
            ExitCode.TARGET,
        )
    )


def tell(handle: asyncio.Handle, trace: Trace, owner: Process | None) -> None:
    """Record a callback; beside the trace those of the program are told: most are asyncio's own, or ours."""
    callback: Any = handle._callback
    while isinstance(callback, functools.partial):
        callback = callback.func
    name = str(getattr(callback, "__qualname__", type(callback).__name__))
    trace.record("callback", name)
    if trace.asides is not None and not str(getattr(callback, "__module__", None)).startswith(_INSIDE):
        trace.aside("calls", name, None if owner is None else owner.label)

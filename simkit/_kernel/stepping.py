"""Yield points that say what they are about to do, and what a strategy may see of a task that waits for its step.

`step` and `touch` note a footprint with the kernel, by task number; nothing else is paid for. Outside a simulation `step`
is a checkpoint and `touch` does nothing, so that a program keeps them in production.
"""

from __future__ import annotations

import types
from collections.abc import Generator, Mapping
from typing import Any

import trio
from trio._core._run import GLOBAL_RUN_CONTEXT, Task
from trio._core._traps import CancelShieldedCheckpoint

from simkit.effects import EVERYTHING, Footprint, Kind, footprint

#: So many innermost frames of the program tell where a task is.
_FRAMES_MAX = 3
_NOT_THE_PROGRAM = ("trio.", "simkit.", "outcome.", "contextlib")


async def step(kind: Kind = "local", resource: str = "") -> None:
    """Yield, and say what the code from here to the next yield will do.

    Args:
        kind: what is done to the resource: "read", "write", "update" (both, atomically), "acquire", "release"; "local"
            touches nothing that is shared, and "spin" says besides that others should go first.
        resource: what is touched: any name, the same in every run.

    The step must do no more than it says to what tasks share. One that cancels others is better not declared.
    """
    kernel = getattr(GLOBAL_RUN_CONTEXT.runner, "kernel", None)
    if kernel is None:
        await trio.lowlevel.checkpoint()
        return
    task = GLOBAL_RUN_CONTEXT.task
    kernel.pending[task._counter - kernel.base] = footprint(kind, resource)
    await _shielded()
    if task._cancel_status.effectively_cancelled:
        await trio.lowlevel.checkpoint_if_cancelled()


def touch(kind: Kind, resource: str) -> None:
    """Say what the step after the next await, of whatever kind, will do; arguments as for `step`, several calls add up."""
    kernel = getattr(getattr(GLOBAL_RUN_CONTEXT, "runner", None), "kernel", None)
    if kernel is None:
        return
    number = GLOBAL_RUN_CONTEXT.task._counter - kernel.base
    kernel.pending[number] = kernel.pending.get(number, ()) + footprint(kind, resource)


@types.coroutine
def _shielded() -> Generator[Any, Any, None]:
    (yield CancelShieldedCheckpoint).unwrap()


class Peek:
    """One task, as a strategy may see it while it waits for its step."""

    __slots__ = ("_number", "_pending", "_task")

    def __init__(self, task: Task, number: int, pending: Mapping[int, Footprint]) -> None:
        self._task = task
        self._number = number
        self._pending = pending

    def pending(self) -> Footprint | None:
        """What its next step declared; None when it declared nothing; everything when it is cancelled."""
        declared = self._pending.get(self._number)
        if declared is not None and self._task._cancel_status.effectively_cancelled:
            return EVERYTHING
        return declared

    def site(self) -> str:
        """Where in the program it waits: its innermost lines, outermost first."""
        places = [
            f"{frame.f_code.co_qualname}:{line}"
            for frame, line in self._task.iter_await_frames()
            if not frame.f_globals.get("__name__", "").startswith(_NOT_THE_PROGRAM)
        ]
        return " > ".join(places[-_FRAMES_MAX:])

"""Yield points that say what they are about to do, and what a strategy may see of a task that waits for its step.

`step` and `touch` note a footprint with the kernel, by task number; nothing else is paid for. Outside a simulation `step`
yields and `touch` does nothing, so that a program of trio or asyncio keeps them in production.
"""

from __future__ import annotations

import types
from collections.abc import Generator, Mapping
from types import CodeType, CoroutineType, FrameType, GeneratorType
from typing import Any

import trio
from trio._core._run import GLOBAL_RUN_CONTEXT, Task
from trio._core._traps import CancelShieldedCheckpoint

from simkit._kernel.owner import INNER
from simkit._kernel.tasks import SimTask
from simkit.effects import EVERYTHING, Footprint, Kind, footprint

#: So many innermost frames of the program tell where a task is.
_FRAMES_MAX = 3
_PLACES_MAX = 100_000
_NOT_THE_PROGRAM = ("trio.", "simkit.", "outcome.", "contextlib", "asyncio.")


async def step(kind: Kind = "local", resource: str = "") -> None:
    """Yield, and say what the code from here to the next yield will do.

    Args:
        kind: what is done to the resource: "read", "write", "update" (both, atomically), "acquire", "release"; "local"
            touches nothing that is shared, and "spin" says besides that others should go first.
        resource: what is touched: any name, the same in every run.

    The step must do no more than it says to what tasks share. One that cancels others is better not declared.
    """
    here = GLOBAL_RUN_CONTEXT.__dict__
    runner = here.get("runner")
    if runner is None:
        await _bare()
        return
    kernel = getattr(runner, "kernel", None)
    if kernel is None:
        await trio.lowlevel.checkpoint()
        return
    task = here["task"]
    kernel.pending[task._counter] = footprint(kind, resource)
    if task.context.get(INNER) is not None:
        await _bare()
        return
    await _shielded()
    if task._cancel_status.effectively_cancelled:
        await trio.lowlevel.checkpoint_if_cancelled()


def touch(kind: Kind, resource: str) -> None:
    """Say what the step after the next await, of whatever kind, will do; arguments as for `step`, several calls add up."""
    kernel = getattr(getattr(GLOBAL_RUN_CONTEXT, "runner", None), "kernel", None)
    if kernel is None:
        return
    number = GLOBAL_RUN_CONTEXT.task._counter
    kernel.pending[number] = kernel.pending.get(number, ()) + footprint(kind, resource)


@types.coroutine
def _bare() -> Generator[None, None, None]:
    """asyncio's way to yield, in a simulated loop (`simkit.aio`) or a real one."""
    yield


@types.coroutine
def _shielded() -> Generator[Any, Any, None]:
    answer = yield CancelShieldedCheckpoint
    if type(answer) is not SimTask:  # which the fast loop answers with, and which holds nothing
        answer.unwrap()


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
        places: list[str] = []
        inner = self._task.context.get(INNER)
        awaiting: Any = self._task.coro if inner is None else inner.get_coro()
        while awaiting is not None:
            if type(awaiting) is CoroutineType:
                frame, awaiting = awaiting.cr_frame, awaiting.cr_await
            elif type(awaiting) is GeneratorType:
                frame, awaiting = awaiting.gi_frame, awaiting.gi_yieldfrom
            elif inner is not None:
                break  # what the other library waits for
            else:
                return self._site_behind_other_awaitables()
            place = "" if frame is None else _place(frame)
            if place:
                places.append(place)
        return " > ".join(places[-_FRAMES_MAX:])

    def _site_behind_other_awaitables(self) -> str:
        """As `site`, by trio's own way, which knows async generators, and is slower."""
        places = [_place(frame) for frame, _ in self._task.iter_await_frames()]
        return " > ".join([place for place in places if place][-_FRAMES_MAX:])


#: Lines of programs by code object and instruction; the code is kept, so that its id stays its own.
_places: dict[tuple[int, int], tuple[CodeType, str]] = {}


def _place(frame: FrameType) -> str:
    """The line at which a frame waits, or nothing for one that is not the program's."""
    code = frame.f_code
    key = id(code), frame.f_lasti
    known = _places.get(key)
    if known is None:
        ours = frame.f_globals.get("__name__", "").startswith(_NOT_THE_PROGRAM)
        if len(_places) >= _PLACES_MAX:
            _places.clear()
        known = _places[key] = code, "" if ours else f"{code.co_qualname}:{frame.f_lineno}"
    return known[1]

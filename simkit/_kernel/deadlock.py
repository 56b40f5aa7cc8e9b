"""Nothing can ever happen again: every task waits, and there is no timer. Says who waits where."""

from __future__ import annotations

import concurrent.futures
import os
import queue
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import trio
from trio.lowlevel import Task

from simkit._kernel.owner import INNER, OWNER, Owner
from simkit.errors import ExitCode, Problem, SimkitError

_LISTED_MAX = 40
_HERE = str(Path(__file__).parent.parent) + os.sep
#: Between a thread of the program and the lock that it waits for.
_THREADING = (threading.__file__, queue.__file__, concurrent.futures.__path__[0])
_ASYNCIO = str(Path(threading.__file__).parent / "asyncio") + os.sep
_TRIO = str(Path(trio.__file__).parent) + os.sep


class DeadlockError(SimkitError):
    """Nothing is runnable and nothing is due."""

    @classmethod
    def of(
        cls, tasks: Iterable[Task], held: Mapping[Owner, object], now_ns: int, threads: Iterable[str] = ()
    ) -> DeadlockError:
        """The deadlock of these tasks, and of simulated threads that were described already."""
        lines = [_describe(task, held) for task in tasks if task.parent_nursery is not None]
        lines += threads
        more = len(lines) - _LISTED_MAX
        listed = "\n".join(f"    {line}" for line in lines[:_LISTED_MAX])
        if more > 0:
            listed += f"\n    … and {more} more"
        return cls(
            Problem(
                "deadlock",
                f"nothing is runnable and no timer is set; {len(lines)} tasks wait:\n{listed}",
                f"the simulation, at {now_ns} ns",
                "a task that can go on, or a timer",
                "the task that should have woken one of these has ended, was killed, or waits itself",
                ExitCode.VIOLATION,
            )
        )


def _describe(task: Task, held: Mapping[Owner, object]) -> str:
    owner = task.context.get(OWNER)
    whose = "" if owner is None else f" of {owner.label}"
    paused = " (paused)" if owner in held else ""
    return f"{task.name}{whose}{paused} at {_place(task)}"


def _place(task: Task) -> str:
    """The innermost line of the program itself, below it is only trio and the kit."""
    inner = task.context.get(INNER)
    steps = task.iter_await_frames() if inner is None else _inside(inner.get_coro())
    frames = [(frame.f_code, line) for frame, line in steps]
    own = [(code, line) for code, line in frames if not code.co_filename.startswith((_HERE, _TRIO, _ASYNCIO))]
    if not own and not frames:
        return "its end"
    code, line = (own or frames)[-1]
    return f"{code.co_filename}:{line} in {code.co_qualname}"


def _inside(awaiting: Any) -> Iterator[tuple[FrameType, int]]:
    """The frames of another library's coroutine, outermost first."""
    while awaiting is not None:
        frame = getattr(awaiting, "cr_frame", None) or getattr(awaiting, "gi_frame", None)
        if frame is not None:
            yield frame, frame.f_lineno
        awaiting = getattr(awaiting, "cr_await", None) or getattr(awaiting, "gi_yieldfrom", None)


def place_of(frame: FrameType | None) -> str:
    """Where a thread stands: its innermost line that is the program's; nothing when there is none."""
    while frame is not None and frame.f_code.co_filename.startswith((_HERE, _TRIO, *_THREADING)):
        frame = frame.f_back
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_qualname}"

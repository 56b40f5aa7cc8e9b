"""Nothing can ever happen again: every task waits, and there is no timer. Says who waits where."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import outcome
import trio
from trio.lowlevel import Task

from simkit._kernel.owner import INNER, OWNER, Owner
from simkit.errors import ExitCode, Problem, SimkitError

_LISTED_MAX = 40
_STOOD_MAX = 12
_HERE = str(Path(__file__).parent.parent) + os.sep
_BELOW = (_HERE, str(Path(trio.__file__).parent) + os.sep, str(Path(outcome.__file__).parent) + os.sep, "<frozen ")
_LIBRARY = str(Path(threading.__file__).parent) + os.sep
_INSTALLED = (_LIBRARY + "site-packages", _LIBRARY + "dist-packages")
#: What starts the function of a process.
_STARTS = _HERE + "process.py"
#: Whose tasks and threads are there for those of the program.
_SERVING = (_HERE + "aio" + os.sep, _HERE + "threaded" + os.sep)
_RUN = threading.Thread.run.__code__


class DeadlockError(SimkitError):
    """Nothing is runnable and nothing is due."""

    #: Where the tasks wait, as "file:line in function", each place once, in order.
    places: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, tasks: Iterable[Task], held: Mapping[Owner, object], now_ns: int, threads: Iterable[str] = ()
    ) -> DeadlockError:
        """The deadlock of these tasks, and of simulated threads that were described already."""
        lines = [*_described(tasks, held), *threads]
        more = len(lines) - _LISTED_MAX
        listed = "\n".join(f"    {line}" for line in lines[:_LISTED_MAX])
        if more > 0:
            listed += f"\n    … and {more} more"
        wait = "1 task waits" if len(lines) == 1 else f"{len(lines)} tasks wait"
        error = cls(
            Problem(
                "deadlock",
                f"nothing is runnable and no timer is set; {wait}:\n{listed}",
                f"the simulation, at {now_ns} ns",
                "a task that can go on, or a timer",
                "the task that should have woken one of these has ended, was killed, or waits itself",
                ExitCode.VIOLATION,
            )
        )
        error.places = tuple(sorted({line.partition(" at ")[2] for line in lines}))
        return error


def stood(tasks: Iterable[Task], held: Mapping[Owner, object], threads: Iterable[str] = ()) -> str:
    """Where the tasks of a run stood when it was stopped, a line each; first those that took the most steps."""
    ordered = sorted(tasks, key=lambda task: -task._schedule_points)
    lines = [*_described(ordered, held), *threads]
    return "".join(f"    {line}\n" for line in lines[:_STOOD_MAX])


def _described(tasks: Iterable[Task], held: Mapping[Owner, object]) -> list[str]:
    told = [_describe(task, held) for task in tasks if task.parent_nursery is not None]
    return [line for line in told if line is not None]


def _describe(task: Task, held: Mapping[Owner, object]) -> str | None:
    """A task and where it waits; nothing for one that only serves an asyncio program, or a program of threads."""
    place = _place(task)
    if place is None:
        return None
    owner = task.context.get(OWNER)
    whose = "" if owner is None else f" of {owner.label}"
    paused = " (paused)" if owner in held else ""
    return f"{task.name}{whose}{paused} at {place}"


def _place(task: Task) -> str | None:
    """The innermost line of the program itself; where it has none, the function of a library that it was started with."""
    inner = task.context.get(INNER)
    steps = task.iter_await_frames() if inner is None else _inside(inner.get_coro())
    frames = [(frame, line) for frame, line in steps if not frame.f_code.co_filename.startswith(_STARTS)]
    if not frames:
        return "its end"
    own = [(frame.f_code, line) for frame, line in frames if not _is_below(frame.f_code.co_filename)]
    if own:
        code, line = own[-1]
        return f"{code.co_filename}:{line} in {code.co_qualname}"
    outermost = frames[0][0]
    if outermost.f_code.co_filename.startswith(_SERVING):
        return None
    package = str(outermost.f_globals.get("__name__", "")).partition(".")[0]
    return f"{package}.{outermost.f_code.co_qualname}"


def _is_below(filename: str) -> bool:
    """Whether it is the kit's, trio's or the standard library's."""
    if filename.startswith(_BELOW):
        return True
    return filename.startswith(_LIBRARY) and not filename.startswith(_INSTALLED)


def _inside(awaiting: Any) -> Iterator[tuple[FrameType, int]]:
    """The frames of another library's coroutine, outermost first."""
    while awaiting is not None:
        frame = getattr(awaiting, "cr_frame", None) or getattr(awaiting, "gi_frame", None)
        if frame is not None:
            yield frame, frame.f_lineno
        awaiting = getattr(awaiting, "cr_await", None) or getattr(awaiting, "gi_yieldfrom", None)


def place_of(frame: FrameType | None) -> str:
    """Where a thread stands: its innermost line that is the program's; nothing when it is none of the program's threads."""
    started = ""
    while frame is not None and _is_below(frame.f_code.co_filename):
        if frame.f_code is _RUN:
            started = "threading.Thread.run"
        frame = frame.f_back
    return started if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_qualname}"

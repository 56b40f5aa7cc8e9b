"""Nothing can ever happen again: every task waits, and there is no timer. Says who waits where."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import trio
from trio.lowlevel import Task

from simkit._kernel.owner import OWNER, Owner
from simkit.errors import ExitCode, Problem, SimkitError

_LISTED_MAX = 40
_HERE = str(Path(__file__).parent.parent) + os.sep
_TRIO = str(Path(trio.__file__).parent) + os.sep


class DeadlockError(SimkitError):
    """Nothing is runnable and nothing is due."""

    @classmethod
    def of(cls, tasks: Iterable[Task], held: Mapping[Owner, object], now_ns: int) -> DeadlockError:
        """The deadlock of these tasks."""
        lines = [_describe(task, held) for task in tasks if task.parent_nursery is not None]
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
    frames = [(frame.f_code, line) for frame, line in task.iter_await_frames()]
    own = [(code, line) for code, line in frames if not code.co_filename.startswith((_HERE, _TRIO))]
    if not own and not frames:
        return "its end"
    code, line = (own or frames)[-1]
    return f"{code.co_filename}:{line} in {code.co_qualname}"

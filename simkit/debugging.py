"""The debugger before a step: at the task that is about to go on, with the task's own frames and its context.

Python's own debugger opens in the task's innermost frame of the program, before the step; `next` and `step` go on into the
step itself. Whatever else `PYTHONBREAKPOINT` or `sys.breakpointhook` names is called in the task's context. The guard is off
while somebody types, so that the debugger reads its sources and the terminal from the real world.
"""

from __future__ import annotations

import os
import pdb  # noqa: T100  # it is what this module is for
import sys
from types import FrameType
from typing import TYPE_CHECKING, Any

from simkit._guard import state
from simkit.errors import ExitCode, Problem, SimkitError
from simkit.standstill import frames_of, is_of_program
from simkit.stepwise import Stop

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from simkit.stepwise import Moment

_VARIABLE = "PYTHONBREAKPOINT"
_SKIPPED = ("simkit", "simkit.*", "trio", "trio.*", "outcome", "outcome.*", "contextlib")


def check_debugger(environ: Mapping[str, str] | None = None, *, terminal: bool | None = None) -> None:
    """Raise SimkitError when nobody could type: standard input is no terminal, and no other debugger was asked for."""
    if (os.environ if environ is None else environ).get(_VARIABLE):
        return
    if sys.stdin.isatty() if terminal is None else terminal:
        return
    raise SimkitError(
        Problem(
            "no-terminal",
            "nobody could type into the debugger: standard input is no terminal",
            "replay",
            f"a terminal, or a debugger of your own named by {_VARIABLE}",
            "look at the same moment with --until, or write the trace with --trace",
            ExitCode.USAGE,
        )
    )


def debug(moment: Moment) -> None:
    """Open the debugger. For `simkit.replay(…, before=(event, debug))`; leaving it by `quit` ends the replay."""
    with state.off():
        if sys.breakpointhook is sys.__breakpointhook__ and os.environ.get(_VARIABLE, "") in {"", "pdb.set_trace"}:
            moment.task.context.run(TaskDebugger().hold, moment)
        else:
            moment.task.context.run(_hook, moment)


def _hook(moment: Moment) -> None:
    """What a foreign debugger sees: the moment, its task, and the task's frames, innermost last."""
    task = moment.task
    frames = [frame for frame, _ in task.iter_await_frames()]
    sys.breakpointhook()  # noqa: T100  # likewise
    del task, frames  # until here they are there to be looked at


class TaskDebugger(pdb.Pdb):
    """Python's debugger, opened at a task that is at rest."""

    def __init__(self, **options: Any) -> None:
        super().__init__(nosigint=True, skip=_SKIPPED, **options)
        self._resting: list[tuple[FrameType, int]] = []
        self._goes_on = False
        self._begins = False  # until a task that has not begun comes to the program's own lines
        self._end: Callable[[], object] = int

    def hold(self, moment: Moment) -> None:
        """Let the user look around in the task's frames, then go on as told."""
        self._resting = list(moment.task.iter_await_frames())
        self._end = moment.end
        at = self._at(moment)
        self.message(
            f"before event {len(moment.world.trace)}, step {moment.step}: {moment.task.name} is about to go on"
        )
        self.reset()
        outermost = self._resting[0][0]
        if at is None:  # in the kit's own lines there is nothing to look at
            self._resting, self._begins = [], True
            self.set_step()
            sys.settrace(self.trace_dispatch)
            return
        self.interaction(self._resting[at][0], None)
        self._resting = []
        if not self._goes_on or self.breaks:
            self.botframe = outermost
            sys.settrace(self.trace_dispatch)

    def get_stack(self, f: FrameType | None, t: Any) -> tuple[list[tuple[FrameType, int]], int]:
        """The frames of the task that is at rest; afterwards as usual, up to the task's outermost."""
        if not self._resting:
            return super().get_stack(f, t)
        return self._resting, next(at for at, (frame, _) in enumerate(self._resting) if frame is f)

    def stop_here(self, frame: FrameType) -> bool:
        """As usual; a task that has not begun stops at the first line of the program."""
        if not self._begins:
            return bool(super().stop_here(frame))
        return is_of_program(frame.f_code)

    def user_call(self, frame: FrameType, argument_list: Any) -> None:
        """As usual; but the first stop is at a line, where the arguments are there."""
        if not self._begins:
            super().user_call(frame, argument_list)

    def user_line(self, frame: FrameType) -> None:
        """As usual."""
        if self._begins:
            self._begins, self.botframe = False, frame
        super().user_line(frame)

    def set_continue(self) -> None:
        """As usual; remember that nobody wants to stop again."""
        self._goes_on = True
        super().set_continue()

    def interaction(self, *args: Any, **options: Any) -> None:
        """As usual, in the real world."""
        self._goes_on = False
        with state.off():
            super().interaction(*args, **options)
        if self.quitting:
            sys.settrace(None)
            self._end()
            raise Stop  # and not BdbQuit, which a program may take for an error of its own

    @staticmethod
    def _at(moment: Moment) -> int | None:
        """The innermost frame of the program itself; None before the task has come to one."""
        return max((at for at, (_, _, is_own) in enumerate(frames_of(moment.task)) if is_own), default=None)

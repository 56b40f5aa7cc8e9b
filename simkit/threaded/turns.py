"""Where a thread may lose its turn between two instructions, as on a real machine: `counter += 1` is three of them.

Only in code of the program: not the standard library's, not that of installed packages. After how many instructions is drawn
from the tape, window by window; most windows are crossed without.
"""

from __future__ import annotations

import functools
import sys
import sysconfig
import threading
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import simkit
from simkit._kernel.threads import SimThread, current_thread
from simkit.points import current_world
from simkit.tape import Stream
from simkit.threaded.telling import lost_turn

__all__ = ["stop", "unwatch", "watch"]

#: Instructions in a window; a third of the windows is crossed without losing the turn, in others it is lost once.
_WINDOW = 32
_CROSSED = 16
#: How long the turn is lost: long enough for others to do what they are about to do, also to be started first.
_AWAY_NS = (1_000_000, 10_000_000, 100_000_000)
_NOT_THE_PROGRAMS = (
    str(Path(threading.__file__).parent),
    *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
    str(Path(simkit.__file__).parent),
    "<",  # made up on the way, by whatever library
)


@functools.cache
def _is_the_programs(code: CodeType) -> bool:
    return not code.co_filename.startswith(_NOT_THE_PROGRAMS) and "site-packages" not in code.co_filename


class _Turns:
    """Counts the instructions of one thread."""

    def __init__(self, thread: SimThread) -> None:
        self._thread = thread
        self._left = self._rest = 0
        self._draw()

    def _draw(self) -> None:
        drawn = _stream().choose("instructions", _WINDOW + 1, (_CROSSED, *([1] * _WINDOW)))
        self._left, self._rest = (drawn, _WINDOW - drawn) if drawn else (-1, _WINDOW)

    def count(self) -> None:
        """One more instruction; perhaps the turn is lost before it."""
        if self._left > 0:
            self._left -= 1
            if self._left == 0:
                self._thread.later(_AWAY_NS[_stream().choose("away", len(_AWAY_NS))])
                lost_turn(self._thread, "away")
                self._thread.wait()
        else:
            self._rest -= 1
            if self._rest <= 0:
                self._draw()

    def trace(self, frame: FrameType, event: str, _arg: object) -> Any:
        """For `sys.settrace`, before Python 3.12."""
        if event == "call":
            if not _is_the_programs(frame.f_code):
                return None
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
        elif event == "opcode":
            self.count()
        return self.trace


def _stream() -> Stream:
    world = current_world()
    assert world is not None
    return world.tape.stream("threads")


# ---- Python 3.12 and later: tracing instructions by `sys.settrace` crashes some releases, monitoring them does not

_turns: dict[int, _Turns] = {}  # by thread
_codes: list[CodeType] = []  # whose instructions are watched
_tool = -1


def _monitor(turns: _Turns) -> None:
    global _tool  # noqa: PLW0603  # there is one interpreter
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
    _turns[threading.get_ident()] = turns
    free = [tool for tool in (4, 3, 5, 2, 1, 0) if monitoring.get_tool(tool) is None]
    if _tool >= 0 or not free:
        return
    _tool = free[0]
    monitoring.use_tool_id(_tool, "simkit threads")
    monitoring.register_callback(_tool, monitoring.events.PY_START, _started)
    monitoring.register_callback(_tool, monitoring.events.INSTRUCTION, _at_instruction)
    monitoring.set_events(_tool, monitoring.events.PY_START)
    monitoring.restart_events()  # those of code that was looked at in an earlier run


def _started(code: CodeType, _offset: int) -> Any:
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
    if _is_the_programs(code):
        _codes.append(code)
        monitoring.set_local_events(_tool, code, monitoring.events.INSTRUCTION)
    return monitoring.DISABLE


def _at_instruction(_code: CodeType, _offset: int) -> None:
    turns = _turns.get(threading.get_ident())
    if turns is not None:
        turns.count()


def stop() -> None:
    """The run is over."""
    global _tool  # noqa: PLW0603  # as above
    _turns.clear()
    if _tool >= 0:
        monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
        monitoring.set_events(_tool, 0)
        while _codes:
            monitoring.set_local_events(_tool, _codes.pop(), 0)
        monitoring.free_tool_id(_tool)
        _tool = -1


# ---- both


def watch() -> None:
    """From now on the calling thread may lose its turn between instructions of what it calls."""
    thread = current_thread()
    if thread is None:
        return
    if sys.version_info >= (3, 12):
        _monitor(_Turns(thread))
    else:
        sys.settrace(_Turns(thread).trace)


def unwatch() -> None:
    """The calling thread is at its end."""
    _turns.pop(threading.get_ident(), None)
    if sys.version_info < (3, 12):
        sys.settrace(None)

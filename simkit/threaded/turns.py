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

__all__ = ["watch"]

#: Instructions in a window; a third of the windows is crossed without losing the turn, in others it is lost once.
_WINDOW = 32
_CROSSED = 16
#: How long the turn is lost: long enough for others to do what they are about to do, also to be started first.
_AWAY_NS = (1_000_000, 10_000_000, 100_000_000)
_NOT_THE_PROGRAMS = tuple(
    {
        str(Path(threading.__file__).parent),
        *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
        str(Path(simkit.__file__).parent),
        "<",  # made up on the way, by whatever library
    }
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

    def __call__(self, frame: FrameType, event: str, _arg: object) -> Any:
        if event == "call":
            if not _is_the_programs(frame.f_code):
                return None
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
        elif event == "opcode":
            if self._left > 0:
                self._left -= 1
                if self._left == 0:
                    self._thread.later(_AWAY_NS[_stream().choose("away", len(_AWAY_NS))])
                    self._thread.wait()
            else:
                self._rest -= 1
                if self._rest <= 0:
                    self._draw()
        return self


def _stream() -> Stream:
    world = current_world()
    assert world is not None
    return world.tape.stream("threads")


def watch() -> None:
    """From now on the calling thread may lose its turn between instructions of what it calls."""
    thread = current_thread()
    if thread is not None:
        sys.settrace(_Turns(thread))

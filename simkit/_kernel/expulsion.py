"""Getting code out that goes on whatever is thrown into it: every line that it reaches raises, in its handlers too.

Only for code that met a bound, or was killed, and never yields: nothing of it runs on. On Python 3.12 and later
`sys.monitoring` raises, in the thread itself, which asks first whether that code still runs: so nobody else is hit,
whenever the watchdog looked. Before, an exception is thrown from outside, which sets a trace function where it is caught,
which asks and throws the next one. Our own modules are spared. Code that spins inside one call of C is beyond both.
"""

from __future__ import annotations

import _thread
import contextlib
import ctypes
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import outcome
import trio

from simkit._kernel.timers import BoundMetError

__all__ = ["EndedError", "expel", "is_kernel", "is_ours", "pardon", "raises_exactly", "relent", "throw"]

_HERE = str(Path(__file__).parent) + os.sep
#: No program's: what our own modules call, too.
_LIBRARIES = (str(Path(trio.__file__).parent) + os.sep, str(Path(outcome.__file__).parent) + os.sep, "<attrs generated")
#: Spared: our own modules, and what stands between their `with` blocks and them.
_OURS = (str(Path(__file__).parent.parent) + os.sep, contextlib.__file__)
_set_async = ctypes.pythonapi.PyThreadState_SetAsyncExc
#: The thread whose code is being expelled, 0 for none; the tool of `sys.monitoring` that does it; what traced it before.
_thread_ident = 0
_tool = -1
_tracer: Any = None
#: The outermost frame of the code that is to be expelled; and says, in the thread, whether that is still its turn.
_root: FrameType | None = None
_is_meant: Callable[[], bool] = bool


class EndedError(BoundMetError):
    """Thrown into code that met a bound and never yields."""

    def __init__(self, bound: str = "step-time") -> None:
        super().__init__(bound)
        if _thread_ident and _tool < 0 and _thread_ident == _thread.get_ident():
            _trace(sys._getframe(1))  # before 3.12 it is made where it is caught


def is_kernel(code: CodeType) -> bool:
    """Whether this is the kernel's own code."""
    return code.co_filename.startswith(_HERE)


def is_ours(code: CodeType) -> bool:
    """Whether this is code of simkit."""
    return code.co_filename.startswith(_OURS)


def throw(thread: int) -> None:
    """Raise in another thread, at once."""
    _set_async(ctypes.c_ulong(thread), ctypes.py_object(EndedError))


def raises_exactly() -> bool:
    """Whether `expel` raises by itself: nothing need be thrown."""
    return _tool >= 0


def expel(thread: int, is_meant: Callable[[], bool]) -> None:
    """From now on every line of the program in `thread` raises, while `is_meant` says so there; what calls it is spared."""
    global _thread_ident, _tool, _is_meant, _root  # noqa: PLW0603  # there is one simulation at a time
    if _thread_ident:
        return
    _root = _root_of(sys._current_frames().get(thread))
    if _root is None:
        return
    _is_meant = is_meant
    if sys.version_info >= (3, 12):
        monitoring = sys.monitoring
        free = [tool for tool in range(6) if monitoring.get_tool(tool) is None]
        if free:
            _tool = free[-1]
            monitoring.use_tool_id(_tool, "simkit watchdog")
            monitoring.register_callback(_tool, monitoring.events.LINE, _on_line)
            monitoring.set_events(_tool, monitoring.events.LINE)
    _thread_ident = thread


def _root_of(frame: FrameType | None) -> FrameType | None:
    """The outermost frame of the program, of those that the kernel has called last."""
    root = None
    while frame is not None and not is_kernel(frame.f_code):
        if not frame.f_code.co_filename.startswith((*_OURS, *_LIBRARIES)):
            root = frame
        frame = frame.f_back
    return root


def _is_due(frame: FrameType | None) -> bool:
    """Whether the program itself has come to this line, and nothing of ours that it has called."""
    while frame is not None and not is_ours(frame.f_code):
        if frame is _root:
            return _is_meant()
        frame = frame.f_back
    return False


def relent() -> None:
    """What was to be expelled is out: no line raises any more. Called in any thread."""
    global _thread_ident, _tool, _is_meant, _root  # noqa: PLW0603  # as above
    _thread_ident, _is_meant, _root = 0, bool, None
    if _tool >= 0:
        sys.monitoring.set_events(_tool, 0)  # type: ignore[attr-defined,unused-ignore]
        sys.monitoring.free_tool_id(_tool)  # type: ignore[attr-defined,unused-ignore]
        _tool = -1


def pardon(thread: int) -> None:  # noqa: ARG001  # whose it is shows at the call
    """Take back whatever is on its way to `thread`, which is the one that calls."""
    global _tracer  # noqa: PLW0603  # as above
    # Not by `_set_async(thread, None)`: before 3.13 that leaves the eval breaker set for good, on which every traced call
    # spins for ever. What was thrown is let out here instead.
    with contextlib.suppress(EndedError):
        _pass()
    relent()
    if sys.gettrace() is _on_event:
        sys.settrace(_tracer)
    _tracer = None


def _on_line(code: CodeType, _line: int) -> None:
    if _thread.get_ident() == _thread_ident and not is_ours(code) and _is_due(sys._getframe(1)):
        raise EndedError


def _trace(frame: FrameType) -> None:
    """Throw again at the next line of `frame`, unless it is the kernel that has caught it."""
    global _tracer  # noqa: PLW0603  # as above
    if sys.gettrace() is not _on_event:
        _tracer = sys.gettrace()
    if is_kernel(frame.f_code):
        sys.settrace(_tracer)
        return
    frame.f_trace = _on_event
    sys.settrace(_on_event)


def _on_event(frame: FrameType, event: str, _arg: object) -> Any:
    if is_ours(frame.f_code):
        return None
    if not _is_meant():
        sys.settrace(_tracer)
        return None
    if event == "line" and _is_due(frame):
        throw(_thread.get_ident())
        _pass()  # it is raised here, made only where it is caught, and so on
    return _on_event


def _pass() -> None:
    """A call: where Python looks for what was thrown."""

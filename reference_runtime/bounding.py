"""Bounding: code that does not come back is interrupted where it is.

A workflow runs in its worker's only thread. One that computes, or blocks, for ever would hold up every other task of that
worker, its heartbeats and its end. A timer's signal reaches it between two lines of Python, and again, should it catch what it
is interrupted by; what it makes of that counts for nothing.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import FrameType
from typing import TypeAlias

from reference_runtime.commands import TooLong

#: What a workflow's code runs within, from one await to the next.
Bound: TypeAlias = Callable[[], AbstractContextManager[None]]
#: One by itself may come of a process that was stopped, and has just gone on.
ALARMS = 2


class AtMost:
    """Raises `TooLong` within code that takes longer, and says where that was; in the main thread only, and not nested."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._alarms = 0
        self._struck: TooLong | None = None

    def __call__(self) -> AtMost:
        return self

    def __enter__(self) -> None:
        self._alarms, self._struck = 0, None
        self._before = signal.signal(signal.SIGALRM, self._interrupt)
        signal.setitimer(signal.ITIMER_REAL, self.seconds / ALARMS, self.seconds / ALARMS)

    def __exit__(self, *_: object) -> None:
        try:
            signal.setitimer(signal.ITIMER_REAL, 0)
        finally:  # it may strike even here
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._before)
        if self._struck is not None:
            raise self._struck from None

    def _interrupt(self, _: int, frame: FrameType | None) -> None:
        self._alarms += 1
        if self._alarms < ALARMS:
            return
        if self._struck is None:
            where = "" if frame is None else f", and was at {frame.f_code.co_filename}:{frame.f_lineno}"
            self._struck = TooLong(
                f"it took more than {self.seconds:g} s from one await to the next{where}; a workflow only computes a little"
            )
        raise self._struck

"""Bounding: code that does not come back is interrupted where it is.

A workflow runs in its worker's only thread. One that computes for ever would hold up every other task of that worker, its
heartbeats and its end. A timer's signal reaches it wherever it is; and again, should it catch what it is interrupted by.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType
from typing import TypeAlias

from reference_runtime.commands import TooLong

#: What a workflow's code runs within.
Bound: TypeAlias = Callable[[], AbstractContextManager[None]]
AGAIN_S = 1.0


def at_most(seconds: float) -> Bound:
    """A bound that raises `TooLong` within code that takes longer, and says where that was; in the main thread only."""

    def interrupt(_: int, frame: FrameType | None) -> None:
        where = "" if frame is None else f", and was at {frame.f_code.co_filename}:{frame.f_lineno}"
        raise TooLong(
            f"a turn took more than {seconds:g} s{where}; a workflow only computes a little, and awaits the rest"
        )

    @contextmanager
    def bound() -> Iterator[None]:
        before = signal.signal(signal.SIGALRM, interrupt)
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_S)
            yield
        finally:
            try:
                signal.setitimer(signal.ITIMER_REAL, 0)
            finally:  # it may strike even here
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, before)

    return bound

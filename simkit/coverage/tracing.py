"""Edges by `sys.settrace`, for Python 3.11: from line to line within one frame. Slow, so it is meant for a sample of runs.

A frame keeps its own last line in its own trace function, which a generator or coroutine finds again when it goes on.
Functions in threads of `trio.to_thread` are not seen: the trace function is that of the simulation's own thread.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

from simkit.coverage.edges import edge, told
from simkit.coverage.scope import Scope

#: File, line from which, line to which; line 0 stands for where a frame came from.
_Edge = tuple[str, int, int]


class TracedEdges:
    """Lines, by a trace function."""

    def __init__(self, scope: Scope) -> None:
        self.blind = ""
        self._scope = scope
        self._names: dict[str, str | None] = {}
        self.moments: Mapping[str, int] = {}
        self._counts: dict[_Edge, int] = {}
        self._first: dict[_Edge, int] = {}
        self._moment: Callable[[], int] = int
        self._tracer = self._called  # one object, so that it is known again

    def install(self) -> None:
        """Nothing to do until a run begins."""

    def begin(self, moment: Callable[[], int]) -> None:
        self._counts, self._first, self._moment = {}, {}, moment
        other = sys.gettrace()
        self.blind = "" if other is None else f"{type(other).__module__}.{type(other).__qualname__} traces this thread"
        if other is None:
            sys.settrace(self._tracer)

    def end(self) -> list[str]:
        if sys.gettrace() is self._tracer:
            sys.settrace(None)
        counts, self._counts = self._counts, {}
        self.moments = {edge(_name(taken)): moment for taken, moment in self._first.items()}
        return told((_name(taken), times) for taken, times in counts.items())

    def remove(self) -> None:
        self.end()

    def _called(self, frame: FrameType, event: str, _arg: Any) -> Any:
        """Called for every new frame, and for every one that goes on after a yield."""
        if event != "call":
            return None
        filename = frame.f_code.co_filename
        if filename not in self._names:
            self._names[filename] = self._scope.name(filename)
        name = self._names[filename]
        if name is None:
            return None
        return frame.f_trace or self._follow(frame, name)

    def _follow(self, frame: FrameType, name: str) -> Any:
        """A trace function for one frame."""
        frame.f_trace_lines = True
        counts, first, moment = self._counts, self._first, self._moment
        last = 0

        def follow(frame: FrameType, event: str, _arg: Any) -> Any:
            nonlocal last
            if event == "line":
                taken = name, last, frame.f_lineno
                last = frame.f_lineno
                times = counts.get(taken, 0)
                counts[taken] = times + 1
                if not times:
                    first[taken] = moment()
            return follow

        return follow


def _name(taken: _Edge) -> str:
    name, start, end = taken
    return f"{name}:{start or 'enter'}>{end}"

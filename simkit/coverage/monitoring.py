"""Edges by `sys.monitoring` (PEP 669), for Python 3.12 and later: each branch with both of its ends, entries and handlers.

An event names its code object and both instructions, so there is no last line to keep for each task. Branches are on in
the program's code objects alone: each is found when it first starts, and any other that starts is disabled at once, so
that foreign code costs nothing from its second call on. Handled exceptions can only be watched everywhere; they are rare.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import CodeType
from typing import Any

from simkit.coverage.edges import edge, told
from simkit.coverage.scope import Scope

_NAME = "simkit coverage"
#: Ids that mean nothing by convention come first, those of debuggers, coverage and profilers last.
_IDS = (3, 4, 2, 1, 0, 5)
_NO_LINE = 0
#: A program that makes code as it runs is not followed without end.
_CODES_MAX = 100_000
#: Code object, instruction, destination.
_Edge = tuple[int, int, int]
#: Stands for the instruction that a code object is entered from; and, minus the line that raised, one that raises.
_ENTERED, _RAISED = -1, -2


class MonitoredEdges:
    """Branches, jumps, entries and handlers, by a monitoring tool of its own."""

    def __init__(self, scope: Scope) -> None:
        self.blind = ""
        self._monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]  # mypy reads for 3.11
        self._scope = scope
        self._tool: int | None = None
        self._branches = 0
        self._codes: dict[int, tuple[CodeType, str]] = {}  # kept, so that an id stays one code's
        self._names: dict[_Edge, str] = {}
        self.moments: Mapping[str, int] = {}
        self._counts: dict[_Edge, int] = {}
        self._first: dict[_Edge, int] = {}
        self._moment: Callable[[], int] = int

    def install(self) -> None:
        monitoring = self._monitoring
        self._tool = next((tool for tool in _IDS if monitoring.get_tool(tool) is None), None)
        if self._tool is None:
            self.blind = "every tool id of sys.monitoring is taken"
            return
        monitoring.use_tool_id(self._tool, _NAME)
        self._branches = sum(event for event, callback in self._callbacks() if callback == self._branched)
        for event, callback in self._callbacks():
            monitoring.register_callback(self._tool, event, callback)
        monitoring.restart_events()  # what an earlier user of the id has disabled counts as new
        monitoring.set_events(self._tool, monitoring.events.PY_START | monitoring.events.EXCEPTION_HANDLED)

    def begin(self, moment: Callable[[], int]) -> None:
        self._counts, self._first, self._moment = {}, {}, moment

    def end(self) -> list[str]:
        counts, self._counts = self._counts, {}
        self.moments = {edge(self._name(taken)): moment for taken, moment in self._first.items()}
        return told((self._name(taken), times) for taken, times in counts.items())

    def remove(self) -> None:
        if self._tool is None:
            return
        monitoring, tool = self._monitoring, self._tool
        monitoring.set_events(tool, 0)
        for code, _ in self._codes.values():
            monitoring.set_local_events(tool, code, 0)
        for event, _ in self._callbacks():
            monitoring.register_callback(tool, event, None)
        monitoring.free_tool_id(tool)
        self._tool = None
        self._codes.clear()
        self._names.clear()

    # ---- called by the interpreter

    def _callbacks(self) -> list[tuple[int, Any]]:
        events = self._monitoring.events
        branches = [events.BRANCH_LEFT, events.BRANCH_RIGHT] if hasattr(events, "BRANCH_LEFT") else [events.BRANCH]
        return [
            (events.PY_START, self._started),
            (events.EXCEPTION_HANDLED, self._caught),
            *((event, self._branched) for event in (*branches, events.JUMP)),
        ]

    def _started(self, code: CodeType, instruction: int) -> Any:
        known = self._codes.get(id(code))
        if known is None:
            name = self._scope.name(code.co_filename)
            if name is None or len(self._codes) >= _CODES_MAX:
                return self._monitoring.DISABLE
            self._codes[id(code)] = code, name
            self._monitoring.set_local_events(self._tool, code, self._branches)
        self._count((id(code), _ENTERED, instruction))
        return None

    def _branched(self, code: CodeType, instruction: int, destination: int) -> None:
        self._count((id(code), instruction, destination))

    def _caught(self, code: CodeType, instruction: int, error: BaseException) -> None:
        if id(code) in self._codes:
            raised = error.__traceback__
            self._count((id(code), _RAISED - (_NO_LINE if raised is None else raised.tb_lineno), instruction))

    def _count(self, taken: _Edge) -> None:
        times = self._counts.get(taken, 0)
        self._counts[taken] = times + 1
        if not times:
            self._first[taken] = self._moment()

    # ---- names

    def _name(self, taken: _Edge) -> str:
        name = self._names.get(taken)
        if name is None:
            name = self._names[taken] = self._worded(*taken)
        return name

    def _worded(self, number: int, instruction: int, destination: int) -> str:
        code, file = self._codes[number]
        if instruction == _ENTERED:
            return f"{file}:enter>{code.co_firstlineno} {code.co_qualname}"
        if instruction <= _RAISED:
            lines = (line for start, _, line in code.co_lines() if start >= destination and line is not None)
            return f"{file}:{_RAISED - instruction} raises>{next(lines, _NO_LINE)}"
        return f"{file}:{_place(code, instruction)}>{_place(code, destination)}"


def _place(code: CodeType, instruction: int) -> str:
    """The line of an instruction, and how far into the line's instructions: a line may have several branches."""
    first: dict[int, int] = {}
    for start, end, line in code.co_lines():
        number = line or _NO_LINE
        first.setdefault(number, start)
        if start <= instruction < end:
            further = (instruction - first[number]) // 2
            return f"{number}+{further}" if further else str(number)
    return str(_NO_LINE)

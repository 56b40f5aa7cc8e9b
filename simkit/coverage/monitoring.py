"""Edges by `sys.monitoring` (PEP 669), for Python 3.12 and later: each branch with both of its ends, entries and handlers.

An event names its code object and both instructions, so there is no last line to keep for each task. Branches are on in
the program's code objects alone: each is found when it first starts, and any other that starts is disabled at once, so
that foreign code costs nothing from its second call on. Handled exceptions can only be watched everywhere; they are rare.
"""

from __future__ import annotations

import sys
from types import CodeType
from typing import Any

from simkit.coverage.edges import told
from simkit.coverage.scope import Scope

_NAME = "simkit coverage"
#: Ids that mean nothing by convention come first, those of debuggers, coverage and profilers last.
_IDS = (3, 4, 2, 1, 0)
_NO_LINE = 0
#: A program that makes code as it runs is not followed without end.
_CODES_MAX = 100_000
#: Code object, instruction, destination.
_Edge = tuple[int, int, int]
#: Stands for the instruction that a code object is entered from.
_ENTERED = -1


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
        self._counts: dict[_Edge, int] = {}
        self._handled: dict[tuple[int, int, int], int] = {}  # code object, line that raised, instruction

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

    def begin(self) -> None:
        self._counts, self._handled = {}, {}

    def end(self) -> list[str]:
        counts, self._counts = self._counts, {}
        handled, self._handled = self._handled, {}
        named = [(self._name(edge), times) for edge, times in counts.items()]
        named += [(self._handler_name(*handler), times) for handler, times in handled.items()]
        return told(named)

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
        edge = id(code), _ENTERED, instruction
        self._counts[edge] = self._counts.get(edge, 0) + 1
        return None

    def _branched(self, code: CodeType, instruction: int, destination: int) -> None:
        edge = id(code), instruction, destination
        self._counts[edge] = self._counts.get(edge, 0) + 1

    def _caught(self, code: CodeType, instruction: int, error: BaseException) -> None:
        if id(code) in self._codes:
            raised = error.__traceback__
            handler = id(code), _NO_LINE if raised is None else raised.tb_lineno, instruction
            self._handled[handler] = self._handled.get(handler, 0) + 1

    # ---- names

    def _name(self, edge: _Edge) -> str:
        name = self._names.get(edge)
        if name is None:
            number, instruction, destination = edge
            code, file = self._codes[number]
            if instruction == _ENTERED:
                name = f"{file}:enter>{code.co_firstlineno} {code.co_qualname}"
            else:
                name = f"{file}:{_place(code, instruction)}>{_place(code, destination)}"
            self._names[edge] = name
        return name

    def _handler_name(self, number: int, line: int, instruction: int) -> str:
        code, file = self._codes[number]
        lines = (line for start, _, line in code.co_lines() if start >= instruction and line is not None)
        return f"{file}:{line} raises>{next(lines, _NO_LINE)}"


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

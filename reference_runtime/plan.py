"""Plans as the runtime reads them: a JSON tree in, a flat list of steps with their dependencies out.

`{"version": 1, "root": {"op": "seq", "id": "r", "children": [{"op": "call", "id": "a", "service": "ledger", …}, …]}}`

Only leaves (`call`, `wait`, `sleep`) are operations; `seq` and `par` are spelt out as dependencies between them, so
that what may run next is a question about rows and never about a position in a tree.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from reference_runtime.model import Json, Kind, Refusal, Semantics

#: What the receiver behind each known tool promises; it alone decides what an unknown outcome permits.
SEMANTICS: Mapping[str, Semantics] = {
    "ledger": "keyed",
    "registry": "lookup",
    "mailer": "blind",
    "reader": "read",
    "flaky": "keyed",
}
OPERATIONS_MAX = 10_000
EDGES_MAX = 100_000
DEPTH_MAX = 100


class PlanError(Refusal):
    """A plan that cannot be: names the operation, what was found and what was expected."""

    def __init__(self, message: str) -> None:
        super().__init__("bad-plan", message)

    def __reduce__(self) -> tuple[type[PlanError], tuple[str]]:
        return type(self), (self.message,)


@attrs.frozen
class Step:
    """One operation to be, with the operations that must be accepted first."""

    id: str
    kind: Kind
    needs: tuple[str, ...]
    tool: str = ""  # calls
    semantics: Semantics | None = None
    params: Mapping[str, Any] = attrs.field(factory=dict)
    carries: tuple[str, ...] = ()
    script: tuple[str, ...] = ()
    signal: str = ""  # waits
    ns: int = 0  # sleeps


def parse(data: object, semantics: Mapping[str, Semantics] = SEMANTICS) -> tuple[Step, ...]:
    """The steps of a plan, in written order. Raises `PlanError`."""
    if not isinstance(data, dict) or data.get("version") != 1 or "root" not in data:
        raise PlanError(f"a plan is an object with version 1 and a root; got {data!r:.120}")
    reader = _Reader(semantics)
    reader.read(data["root"], (), 0)
    for step in reader.steps.values():
        if lost := [name for name in step.carries if not _precedes(reader.steps, name, step)]:
            raise PlanError(f"call {step.id!r} carries {lost}, which the plan does not finish before it")
    return tuple(reader.steps.values())


class _Reader:
    """Walks the tree once, collecting steps; `read` returns the steps whose end is the end of what was read."""

    def __init__(self, semantics: Mapping[str, Semantics]) -> None:
        self.semantics = semantics
        self.steps: dict[str, Step] = {}
        self.ids: set[str] = set()
        self.edges = 0

    def read(self, data: object, before: tuple[str, ...], depth: int) -> tuple[str, ...]:
        kind, id_ = self._head(data, depth)
        assert isinstance(data, dict)
        if kind == "seq":
            for child in _children(data):
                before = self.read(child, before, depth + 1)
            return before
        if kind == "par":
            ends = [end for child in _children(data) for end in self.read(child, before, depth + 1)]
            return tuple(dict.fromkeys(ends)) or before
        self._count(len(before))
        self.steps[id_] = _leaf(kind, id_, data, before, self.semantics)
        return (id_,)

    def _head(self, data: object, depth: int) -> tuple[str, str]:
        if not isinstance(data, dict):
            raise PlanError(f"an operation is an object; got {data!r:.80}")
        kind, id_ = data.get("op"), data.get("id")
        if kind not in {"seq", "par", "call", "wait", "sleep"}:
            raise PlanError(f"operation {id_!r}: op {kind!r}; expected seq, par, call, wait or sleep")
        if not isinstance(id_, str) or not id_ or id_ in self.ids:
            raise PlanError(f"operation id {id_!r} is no string, empty or used twice; each needs an id of its own")
        if depth > DEPTH_MAX or len(self.ids) >= OPERATIONS_MAX:
            raise PlanError(f"operation {id_!r}: a plan is at most {DEPTH_MAX} deep, {OPERATIONS_MAX} long")
        self.ids.add(id_)
        return kind, id_

    def _count(self, edges: int) -> None:
        self.edges += edges
        if self.edges > EDGES_MAX:
            raise PlanError(f"the plan has more than {EDGES_MAX} dependencies; put a step between its wide branches")


def _leaf(kind: str, id_: str, data: Json, needs: tuple[str, ...], semantics: Mapping[str, Semantics]) -> Step:
    if kind == "wait":
        return Step(id_, "wait", needs, signal=_field(data, "signal", str))
    if kind == "sleep":
        ns = _field(data, "ns", int)
        if ns < 0:
            raise PlanError(f"sleep {id_!r}: {ns} ns; a sleep lasts zero or more nanoseconds")
        return Step(id_, "sleep", needs, ns=ns)
    tool = _field(data, "service", str)
    if tool not in semantics:
        raise PlanError(f"call {id_!r}: no service {tool!r}; there are {', '.join(semantics)}")
    return Step(
        id_,
        "call",
        needs,
        tool=tool,
        semantics=semantics[tool],
        params=_field(data, "params", dict, {}),
        carries=tuple(_field(data, "carries", list, [])),
        script=tuple(_field(data, "script", list, [])),
    )


def _field(data: Json, name: str, wanted: type, default: object = None) -> Any:
    value = data.get(name, default)
    if value is None and default is not None:
        return default
    if not isinstance(value, wanted) or isinstance(value, bool):
        raise PlanError(f"operation {data['id']!r}: {name} must be {wanted.__name__}; got {value!r:.80}")
    return value


def _children(data: Json) -> list[object]:
    children: list[object] = _field(data, "children", list)
    return children


def _precedes(steps: Mapping[str, Step], name: str, step: Step) -> bool:
    """Whether `name` is among everything `step` waits for, directly or not."""
    todo, seen = list(step.needs), set(step.needs)
    while todo:
        if name in seen:
            return True
        fresh = [need for need in steps[todo.pop()].needs if need not in seen]
        seen.update(fresh)
        todo.extend(fresh)
    return name in seen

"""Plans: what a task is asked to do, as a frozen tree of operations and as JSON.

A plan is the workload an adapter interprets on its harness. Leaves are `call`, `wait` and `sleep`; `seq` runs its children
one after the other and `par` side by side. Every operation has an id, unique in its plan; step names derive from ids.
`carries` on a call names the earlier leaves whose answers (nonces) the call must hand on, which makes lineage checkable.

JSON: `{"version": 1, "root": {"op": "seq", "id": "r", "children": [{"op": "call", "id": "a", "service": "ledger",
"params": {}, "carries": [], "script": []}, {"op": "wait", "id": "w", "signal": "go"}, {"op": "sleep", "id": "s", "ns": 1}]}}`
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import attrs

if TYPE_CHECKING:
    import networkx as nx

Semantics = Literal["keyed", "lookup", "blind", "read"]

#: What the receiver behind each hosted service promises; decides what a harness may do with an unknown outcome.
SEMANTICS: Mapping[str, Semantics] = {
    "ledger": "keyed",
    "registry": "lookup",
    "mailer": "blind",
    "reader": "read",
    "flaky": "keyed",
}

#: What `script` entries of a `flaky` call may say; the n-th request of the operation follows the n-th entry, later ones "ok".
SCRIPT_ENTRIES = ("ok", "error-before", "error-after", "reset-before", "reset-after", "reject", "slow")


class PlanError(ValueError):
    """A plan that cannot be: says which operation, what was found and what was expected."""


@attrs.frozen
class Call:
    """One effect or read at a hosted service."""

    id: str
    service: str
    params: Mapping[str, Any] = attrs.field(factory=dict)
    carries: tuple[str, ...] = ()
    script: tuple[str, ...] = ()


@attrs.frozen
class Wait:
    """Wait for one signal of this name; several waits of one name take one signal each."""

    id: str
    signal: str


@attrs.frozen
class Sleep:
    """A durable timer of `ns` nanoseconds, counted from the moment its dependencies were accepted."""

    id: str
    ns: int


@attrs.frozen
class Seq:
    """Children one after the other."""

    id: str
    children: tuple[Op, ...]


@attrs.frozen
class Par:
    """Children side by side; done when all are."""

    id: str
    children: tuple[Op, ...]


Leaf: TypeAlias = Call | Wait | Sleep
Op: TypeAlias = Call | Wait | Sleep | Seq | Par


@attrs.frozen
class Plan:
    """A checked tree of operations. Raises `PlanError` when ids repeat or a reference leads nowhere."""

    root: Op

    def __attrs_post_init__(self) -> None:
        _check(self)

    def operations(self) -> Iterator[Op]:
        """Every operation, parents before children, in written order."""
        yield from _walk(self.root)

    def leaves(self) -> tuple[Leaf, ...]:
        return tuple(self._leaves.values())

    def calls(self) -> tuple[Call, ...]:
        return tuple(op for op in self._leaves.values() if isinstance(op, Call))

    def waits(self) -> tuple[Wait, ...]:
        return tuple(op for op in self._leaves.values() if isinstance(op, Wait))

    def sleeps(self) -> tuple[Sleep, ...]:
        return tuple(op for op in self._leaves.values() if isinstance(op, Sleep))

    def leaf(self, op_id: str) -> Leaf | None:
        return self._leaves.get(op_id)

    @functools.cached_property
    def _leaves(self) -> dict[str, Leaf]:
        """Leaves by id, in written order; drivers and judges ask for them all the time."""
        return {op.id: op for op in self.operations() if isinstance(op, Call | Wait | Sleep)}

    def kinds(self) -> frozenset[str]:
        """The kinds of operation used: `seq`, `par`, `call`, `wait`, `sleep`."""
        return frozenset(type(op).__name__.lower() for op in self.operations())

    def dependencies(self) -> nx.DiGraph[str]:
        """The order the plan demands, as a graph over leaf ids: an edge `a → b` says b may begin only once a is accepted.

        Only direct edges are present (the transitive closure is `networkx.descendants`).
        """
        import networkx as nx

        graph: nx.DiGraph[str] = nx.DiGraph()
        graph.add_nodes_from(leaf.id for leaf in self.leaves())
        _link(self.root, [], graph)
        return graph

    def to_json(self) -> dict[str, Any]:
        return {"version": 1, "root": _dump(self.root)}

    @classmethod
    def from_json(cls, data: object) -> Plan:
        """Read a plan; raises `PlanError` naming the operation and the field."""
        if not isinstance(data, dict) or data.get("version") != 1 or "root" not in data:
            raise PlanError(f"a plan is an object with version 1 and a root; got {data!r:.120}")
        return cls(_load(data["root"], "root"))


def _walk(op: Op) -> Iterator[Op]:
    yield op
    if isinstance(op, Seq | Par):
        for child in op.children:
            yield from _walk(child)


def _link(op: Op, before: list[str], graph: nx.DiGraph[str]) -> list[str]:
    """Add the edges inside `op`, which begins after `before`; return the leaves whose end is the end of `op`."""
    if isinstance(op, Seq):
        last = before
        for child in op.children:
            last = _link(child, last, graph)
        return last
    if isinstance(op, Par):
        ends = [end for child in op.children for end in _link(child, before, graph)]
        return list(dict.fromkeys(ends)) or before
    graph.add_edges_from((earlier, op.id) for earlier in before)
    return [op.id]


def _check(plan: Plan) -> None:
    import networkx as nx

    seen: set[str] = set()
    for op in plan.operations():
        if not op.id or op.id in seen:
            raise PlanError(f"operation id {op.id!r} is empty or used twice; every operation needs an id of its own")
        seen.add(op.id)
        if isinstance(op, Call) and op.service not in SEMANTICS:
            raise PlanError(f"call {op.id!r}: no service {op.service!r}; there are {', '.join(SEMANTICS)}")
        if isinstance(op, Call) and (bad := [entry for entry in op.script if entry not in SCRIPT_ENTRIES]):
            raise PlanError(f"call {op.id!r}: script entries {bad} are none of {', '.join(SCRIPT_ENTRIES)}")
        if isinstance(op, Sleep) and op.ns < 0:
            raise PlanError(f"sleep {op.id!r}: {op.ns} ns; a sleep lasts zero or more nanoseconds")
    graph = plan.dependencies()
    for call in plan.calls():
        earlier = nx.ancestors(graph, call.id)
        if lost := [name for name in call.carries if name not in earlier]:
            raise PlanError(f"call {call.id!r} carries {lost}, which the plan does not finish before it")


def _dump(op: Op) -> dict[str, Any]:
    match op:
        case Seq(id=id_, children=children):
            return {"op": "seq", "id": id_, "children": [_dump(child) for child in children]}
        case Par(id=id_, children=children):
            return {"op": "par", "id": id_, "children": [_dump(child) for child in children]}
        case Call():
            return {
                "op": "call",
                "id": op.id,
                "service": op.service,
                "params": dict(op.params),
                "carries": list(op.carries),
                "script": list(op.script),
            }
        case Wait():
            return {"op": "wait", "id": op.id, "signal": op.signal}
        case Sleep():
            return {"op": "sleep", "id": op.id, "ns": op.ns}


_FIELDS: Mapping[str, Mapping[str, type]] = {
    "seq": {"children": list},
    "par": {"children": list},
    "call": {"service": str},
    "wait": {"signal": str},
    "sleep": {"ns": int},
}


def _load(data: object, where: str) -> Op:
    if not isinstance(data, dict):
        raise PlanError(f"{where}: an operation is an object; got {data!r:.80}")
    kind, id_ = data.get("op"), data.get("id")
    if not isinstance(kind, str) or kind not in _FIELDS or not isinstance(id_, str):
        raise PlanError(f"{where}: op {kind!r} with id {id_!r}; expected one of {', '.join(_FIELDS)} and a string id")
    for field, wanted in _FIELDS[kind].items():
        if not isinstance(data.get(field), wanted):
            raise PlanError(f"{where} ({id_}): {field} must be {wanted.__name__}; got {data.get(field)!r:.80}")
    if kind in {"seq", "par"}:
        children = tuple(_load(child, f"{where}/{id_}[{n}]") for n, child in enumerate(data["children"]))
        return Seq(id_, children) if kind == "seq" else Par(id_, children)
    if kind == "wait":
        return Wait(id_, data["signal"])
    if kind == "sleep":
        return Sleep(id_, data["ns"])
    return Call(
        id_,
        data["service"],
        data.get("params") or {},
        tuple(data.get("carries") or ()),
        tuple(data.get("script") or ()),
    )

"""Plans: what a task is asked to do, as a frozen tree of operations and as JSON.

A plan is the workload an adapter interprets on its harness. Its operations are described in `scenarios.operation`: leaves are
worked, groups put them in order. `carries` names the earlier leaves whose answers (nonces) an operation must hand on, which
makes lineage checkable.

JSON: `{"version": 1, "root": {"op": "seq", "id": "r", "children": [{"op": "call", "id": "a", "service": "ledger",
"params": {}, "carries": [], "script": []}, {"op": "wait", "id": "w", "signal": "go"}, {"op": "sleep", "id": "s", "ns": 1}]}}`,
with `allowance`, `deadline_ns` and `code` beside the root where a plan has them.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from scenarios.operation import (
    CHECK_ENTRIES,
    LOOKUP_ENTRIES,
    MODEL_ENTRIES,
    OPTIONS,
    SCRIPT_ENTRIES,
    SEMANTICS,
    Allowance,
    Approve,
    Artifact,
    Branch,
    Call,
    Check,
    Child,
    Choice,
    Compensate,
    Fail,
    Guard,
    Leaf,
    Loop,
    Model,
    Nondet,
    Op,
    Par,
    Race,
    Requester,
    Reserve,
    Semantics,
    Seq,
    Sleep,
    Wait,
    approval_digest,
    arm,
    content,
    options_of,
)
from scenarios.plan_checks import RESERVED_SIGNALS, check_allowance, check_references, check_tree
from scenarios.plan_json import dump, dump_allowance, load, load_allowance
from scenarios.unrolling import Layout, PlanError, lay_out, walk

if TYPE_CHECKING:
    import networkx as nx

__all__ = [
    "CHECK_ENTRIES",
    "LOOKUP_ENTRIES",
    "MODEL_ENTRIES",
    "OPTIONS",
    "RESERVED_SIGNALS",
    "SCRIPT_ENTRIES",
    "SEMANTICS",
    "Allowance",
    "Approve",
    "Artifact",
    "Branch",
    "Call",
    "Check",
    "Child",
    "Choice",
    "Compensate",
    "Fail",
    "Guard",
    "Leaf",
    "Loop",
    "Model",
    "Nondet",
    "Op",
    "Par",
    "Plan",
    "PlanError",
    "Race",
    "Requester",
    "Reserve",
    "Semantics",
    "Seq",
    "Sleep",
    "Wait",
    "approval_digest",
    "arm",
    "content",
]

L = TypeVar("L", bound=Leaf)


@attrs.frozen(slots=False)  # see `index.Facts`
class Plan:
    """A checked tree of operations. Raises `PlanError` when ids repeat or a reference leads nowhere.

    `allowance`: the most the whole run may use. `deadline_ns`: how long after its admission nothing is dispatched any more.
    `code`: the version of the code that the run was written for.
    """

    root: Op
    allowance: Allowance | None = None
    deadline_ns: int | None = None
    code: str | None = None

    def __attrs_post_init__(self) -> None:
        check_tree(self.root)
        check_allowance("plan", self.allowance)
        if self.deadline_ns is not None and self.deadline_ns < 1:
            raise PlanError(f"plan: a deadline of {self.deadline_ns} ns; expected one or more")
        check_references(self._layout.leaves, self.dependencies(), self._layout.guards)

    def operations(self) -> Iterator[Op]:
        """Every operation as it is written, parents before children, in order; plans of children are their own."""
        yield from walk(self.root)

    def operations_of_children(self) -> Mapping[str, tuple[str, str]]:
        """What children do, by its id here: `c/x` → (`c`, `x`), so that request `x` of run `<run>/c` is known again."""
        return self._layout.inner

    def leaves(self) -> tuple[Leaf, ...]:
        """Every leaf once loops are unrolled and children taken in, with the `Choice` of each group that decides."""
        return self._leaves

    def leaf(self, op_id: str) -> Leaf | None:
        return self._layout.leaves.get(op_id)

    def calls(self) -> tuple[Requester, ...]:
        """The leaves known by one answer of a service: calls, requests to the model and compensations."""
        return self._calls

    def compensations(self) -> Mapping[str, Compensate]:
        """The call → what undoes it, in written order."""
        return {op.of: op for op in self._of_kind(Compensate)}

    def waits(self) -> tuple[Wait, ...]:
        return self._of_kind(Wait)

    def sleeps(self) -> tuple[Sleep, ...]:
        return self._of_kind(Sleep)

    def approvals(self) -> tuple[Approve, ...]:
        return self._of_kind(Approve)

    def artifacts(self) -> tuple[Artifact, ...]:
        return self._of_kind(Artifact)

    def checks(self) -> tuple[Check, ...]:
        return self._of_kind(Check)

    def children(self) -> tuple[Child, ...]:
        return self._of_kind(Child)

    def guards(self, op_id: str) -> tuple[Guard, ...]:
        """What must be decided for this leaf to have its turn, outermost first; empty when it always has."""
        return self._layout.guards[op_id]

    def is_owed(self, op_id: str) -> bool:
        """Must a run that succeeds have carried out this leaf? Not what is guarded, tolerated, or undoes something."""
        leaf = self._layout.leaves.get(op_id)
        tolerated = isinstance(leaf, Call) and leaf.tolerate
        return leaf is not None and not isinstance(leaf, Compensate) and not tolerated and not self.guards(op_id)

    def kinds(self) -> frozenset[str]:
        """The kinds of operation used, in children too: `seq`, `par`, `call`, `wait`, …"""
        return frozenset(type(op).__name__.lower() for op in self._everything())

    def needs(self) -> frozenset[str]:
        """What a harness must support to be given this plan: the kinds of operation and the `OPTIONS` used."""
        whole = {"allowance": self.allowance, "deadline": self.deadline_ns, "code": self.code}
        used = frozenset(name for name, value in whole.items() if value is not None)
        return self.kinds().union(used, *(options_of(op) for op in self._everything()))

    def _everything(self) -> Iterator[Op]:
        """Every operation as it is written, those of children too."""
        todo = [self.root]
        while todo:
            for op in walk(todo.pop()):
                yield op
                todo += [op.root] if isinstance(op, Child) else []

    def dependencies(self) -> nx.DiGraph[str]:
        """The order the plan demands, as a graph over leaf ids: an edge `a → b` says b may begin only once a is accepted,
        or skipped by a decision (see `guards`); of the edges to a race's own leaf, one is enough.

        Only direct edges are present (the transitive closure is `networkx.descendants`). Compensations have none. The graph
        is frozen, as the plan is.
        """
        return self._dependencies

    def certain(self) -> Mapping[str, frozenset[str]]:
        """Leaf → the leaves that must have been accepted before it, whatever was decided (transitively)."""
        return self._certain

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = {"version": 1, "root": dump(self.root)}
        if self.allowance is not None:
            data["allowance"] = dump_allowance(self.allowance)
        if self.deadline_ns is not None:
            data["deadline_ns"] = self.deadline_ns
        if self.code is not None:
            data["code"] = self.code
        return data

    @classmethod
    def from_json(cls, data: object) -> Plan:
        """Read a plan; raises `PlanError` naming the operation and the field."""
        if not isinstance(data, dict) or data.get("version") != 1 or "root" not in data:
            raise PlanError(f"a plan is an object with version 1 and a root; got {data!r:.120}")
        allowance, deadline_ns, code = (data.get(name) for name in ("allowance", "deadline_ns", "code"))
        if deadline_ns is not None and (not isinstance(deadline_ns, int) or isinstance(deadline_ns, bool)):
            raise PlanError(f"plan: deadline_ns must be int; got {deadline_ns!r:.80}")
        if code is not None and not isinstance(code, str):
            raise PlanError(f"plan: code must be str; got {code!r:.80}")
        limit = None if allowance is None else load_allowance(allowance, "plan")
        return cls(load(data["root"], "root"), limit, deadline_ns, code)

    @functools.cached_property
    def _layout(self) -> Layout:
        """Drivers and judges ask for leaves all the time."""
        return lay_out(self.root)

    @functools.cached_property
    def _leaves(self) -> tuple[Leaf, ...]:
        return tuple(self._layout.leaves.values())

    def _of_kind(self, kind: type[L]) -> tuple[L, ...]:
        return self._by_kind.get(kind, ())

    @functools.cached_property
    def _by_kind(self) -> Mapping[type, tuple[Any, ...]]:
        """The leaves of each kind, in written order."""
        found: dict[type, list[Leaf]] = {}
        for op in self.leaves():
            found.setdefault(type(op), []).append(op)
        return {kind: tuple(ops) for kind, ops in found.items()}

    @functools.cached_property
    def _calls(self) -> tuple[Requester, ...]:
        return tuple(op for op in self.leaves() if isinstance(op, Call | Model | Compensate))

    @functools.cached_property
    def _dependencies(self) -> nx.DiGraph[str]:
        import networkx as nx

        graph: nx.DiGraph[str] = nx.DiGraph()
        graph.add_nodes_from(self._layout.leaves)
        graph.add_edges_from(self._layout.edges)
        nx.freeze(graph)  # in place
        return graph

    @functools.cached_property
    def _certain(self) -> Mapping[str, frozenset[str]]:
        import networkx as nx

        graph = self.dependencies()
        guards = {op_id: frozenset(found) for op_id, found in self._layout.guards.items()}
        return {
            op_id: frozenset(one for one in nx.ancestors(graph, op_id) if guards[one] <= guards[op_id])
            for op_id in guards
        }

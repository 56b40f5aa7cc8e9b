"""What makes a plan one that can be carried out: references that lead somewhere earlier, and numbers that make sense.

Every complaint is a `PlanError` that names the operation, what was found and what was expected.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from scenarios.operation import (
    CHECK_ENTRIES,
    LOOKUP_ENTRIES,
    MODEL_ENTRIES,
    NONDET_KINDS,
    RESERVED_SERVICES,
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
    Guard,
    Leaf,
    Loop,
    Model,
    Nondet,
    Op,
    Race,
    Sleep,
    Wait,
)
from scenarios.unrolling import PlanError, walk

if TYPE_CHECKING:
    import networkx as nx

#: The names under which the kit itself speaks to a run.
RESERVED_SIGNALS = ("steer", "notice")
PARTS_MAX = 1000


def check_tree(root: Op) -> None:
    """Check a tree as it is written, before it is laid out."""
    seen: set[str] = set()
    for op in walk(root):
        if not op.id or op.id in seen:
            raise PlanError(f"operation id {op.id!r} is empty or used twice; every operation needs an id of its own")
        if "/" in op.id or "~" in op.id:
            raise PlanError(f"operation id {op.id!r}: slash and tilde are kept for what children and harnesses do")
        seen.add(op.id)
        _check_alone(op)


def _check_alone(op: Op) -> None:
    """What can be said of an operation without the others."""
    match op:
        case Call():
            _check_call(op)
        case Compensate():
            _known_service(f"compensate {op.id!r}", op.service)
            _entries(f"compensate {op.id!r}", op.script, SCRIPT_ENTRIES)
        case Model():
            _entries(f"model {op.id!r}", op.script, MODEL_ENTRIES)
            _least(f"model {op.id!r}", {"tokens": (op.tokens, 1), "uses": (op.uses, 0)})
        case Check():
            _entries(f"check {op.id!r}", op.script, CHECK_ENTRIES)
        case Sleep(id=id_, ns=ns) if ns < 0:
            raise PlanError(f"sleep {id_!r}: {ns} ns; a sleep lasts zero or more nanoseconds")
        case Wait():
            if op.signal in RESERVED_SIGNALS:
                raise PlanError(f"wait {op.id!r}: signal {op.signal!r} is one of the kit's own; choose another name")
            _least(f"wait {op.id!r}", {"timeout_ns": (op.timeout_ns, 1)})
        case Approve():
            _least(f"approve {op.id!r}", {"validity_ns": (op.validity_ns, 1)})
        case Artifact():
            _least(f"artifact {op.id!r}", {"size": (op.size, 0), "parts": (op.parts, 1)})
            if op.parts > PARTS_MAX:
                raise PlanError(f"artifact {op.id!r}: {op.parts} parts; at most {PARTS_MAX}")
        case Nondet(id=id_, kind=kind) if kind not in NONDET_KINDS:
            raise PlanError(f"nondet {id_!r}: kind {kind!r}; expected one of {', '.join(NONDET_KINDS)}")
        case _:
            _check_group(op)


def _check_group(op: Op) -> None:
    match op:
        case Race(id=id_, children=children) if not children:
            raise PlanError(f"race {id_!r} has no children; the first of at least one wins")
        case Branch(id=id_, children=children) if len(children) != 2:
            raise PlanError(f"branch {id_!r} has {len(children)} children; expected two, A and B")
        case Loop(id=id_, on=on, times=times):
            if times < 1:
                raise PlanError(f"loop {id_!r}: {times} times; expected one or more")
            if on not in {inner.id for child in op.children for inner in walk(child)}:
                raise PlanError(f"loop {id_!r} goes on {on!r}, which is no leaf of its body")
        case Child(id=id_, root=root, share=share):
            check_tree(root)
            check_allowance(f"child {id_!r}", share)
            for inner in walk(root):
                if isinstance(inner, Approve):
                    raise PlanError(
                        f"child {id_!r}: approve {inner.id!r} would wait for ever; nobody decides for a child"
                    )


def _check_call(call: Call) -> None:
    who = f"call {call.id!r}"
    _known_service(who, call.service)
    _entries(who, call.script, SCRIPT_ENTRIES)
    _entries(who, call.lookups, LOOKUP_ENTRIES, "lookups")
    _least(who, {"tries": (call.tries, 1), "elapsed_ns": (call.elapsed_ns, 0)})


def _known_service(who: str, service: str) -> None:
    if service not in SEMANTICS or service in RESERVED_SERVICES:
        known = ", ".join(name for name in SEMANTICS if name not in RESERVED_SERVICES)
        raise PlanError(f"{who}: no service {service!r}; there are {known}")


def _entries(who: str, script: Iterable[str], known: tuple[str, ...], field: str = "script") -> None:
    if bad := [entry for entry in script if entry not in known]:
        raise PlanError(f"{who}: {field} entries {bad} are none of {', '.join(known)}")


def _least(who: str, values: Mapping[str, tuple[int | None, int]]) -> None:
    for field, (value, least) in values.items():
        if value is not None and value < least:
            raise PlanError(f"{who}: {field} is {value}; expected {least} or more")


def check_allowance(who: str, allowance: Allowance | None) -> None:
    """An allowance is made of numbers that are not negative, and its reserve fits in."""
    if allowance is None:
        return
    names = ("calls", "tokens", "elapsed_ns")
    _least(who, {f"allowance of {name}": (getattr(allowance, name), 0) for name in names})
    _least(who, {"allowance of concurrency": (allowance.concurrency, 1)})
    for name in ("calls", "tokens"):
        kept = getattr(allowance.reserve, name) if allowance.reserve else 0
        whole = getattr(allowance, name)
        if kept < 0 or (whole is not None and kept > whole):
            raise PlanError(f"{who}: a reserve of {kept} {name} out of {whole}; expected a share of the allowance")


def check_references(
    leaves: Mapping[str, Leaf], graph: nx.DiGraph[str], guards: Mapping[str, tuple[Guard, ...]]
) -> None:
    """Check what laid-out leaves say of each other; `guards` says what the turn of each depends on."""
    import networkx as nx

    undone: dict[str, str] = {}
    for leaf in leaves.values():
        earlier = nx.ancestors(graph, leaf.id) if leaf.id in graph else set()
        if isinstance(leaf, Call | Model | Artifact) and (lost := [one for one in leaf.carries if one not in earlier]):
            kind = type(leaf).__name__.lower()
            raise PlanError(f"{kind} {leaf.id!r} carries {lost}, which the plan does not finish before it")
        if isinstance(leaf, Choice) and leaf.on is not None and leaf.on not in earlier:
            raise PlanError(f"{leaf.kind} {leaf.id!r} goes by {leaf.on!r}, which the plan does not finish before it")
        if isinstance(leaf, Check) and not (leaf.of in earlier and isinstance(leaves[leaf.of], Artifact)):
            raise PlanError(
                f"check {leaf.id!r} is of {leaf.of!r}; expected an artifact that the plan finishes before it"
            )
        if isinstance(leaf, Approve):
            _check_approve(leaf, leaves, graph, guards)
        if isinstance(leaf, Compensate):
            _check_compensate(leaf, leaves, undone)


def _check_approve(
    leaf: Approve, leaves: Mapping[str, Leaf], graph: nx.DiGraph[str], guards: Mapping[str, tuple[Guard, ...]]
) -> None:
    import networkx as nx

    if not (isinstance(leaves.get(leaf.of), Call | Model) and leaf.id in nx.ancestors(graph, leaf.of)):
        raise PlanError(f"approve {leaf.id!r} is of {leaf.of!r}; expected a call that the plan begins after it")
    if apart := [guard.by for guard in guards[leaf.id] if guard not in guards[leaf.of]]:
        raise PlanError(
            f"approve {leaf.id!r} depends on which way {apart[0]!r} goes, and {leaf.of!r} does not; expected both in one arm "
            "or turn of it, or the approve outside of it, as who is not asked cannot allow anything"
        )


def _check_compensate(leaf: Compensate, leaves: Mapping[str, Leaf], undone: dict[str, str]) -> None:
    if not isinstance(leaves.get(leaf.of), Call):
        raise PlanError(f"compensate {leaf.id!r} is of {leaf.of!r}; expected a call of the plan")
    if (other := undone.setdefault(leaf.of, leaf.id)) != leaf.id:
        raise PlanError(f"compensate {leaf.id!r} is of {leaf.of!r}, which {other!r} undoes already")

"""A scenario as departures: every operation of its plan and every link of its interruptions is one, read from a tape.

So a shrink leaves out work and faults that a failure does not need by the same means as any other choice of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING

import attrs

from scenarios.interruption import Interruption, Scenario
from scenarios.plan import (
    Approve,
    Artifact,
    Branch,
    Call,
    Check,
    Compensate,
    Loop,
    Model,
    Op,
    Par,
    Plan,
    PlanError,
    Race,
    Seq,
)
from scenarios.unrolling import lay_out

if TYPE_CHECKING:
    from simkit.tape import Site
    from simkit.world import World

#: Labels of the streams that these choices are made on.
OPERATION, INTERRUPTION = "operation", "interruption"
LABELS = frozenset({OPERATION, INTERRUPTION})
_Keeps = Callable[[str, str], bool]


def departures_of(scenario: Scenario) -> dict[Site, int]:
    """What keeps the whole scenario."""
    seen: dict[str, int] = {}
    sites: dict[Site, int] = {(OPERATION, op.id, 0): 1 for op in _written(scenario.plan)}
    for link in _links(scenario):
        label = _label(link)
        sites[INTERRUPTION, label, seen.get(label, 0)] = 1
        seen[label] = seen.get(label, 0) + 1
    return sites


def reduced(scenario: Scenario, world: World) -> Scenario:
    """What the tape of this world keeps of it: at least one operation."""

    def keeps(label: str, key: str) -> bool:
        return world.tape.stream(label).choose(key, 2) == 1

    kept = {op.id for op in _written(scenario.plan) if keeps(OPERATION, op.id)}
    plan = _kept(scenario.plan, kept or {_first(scenario.plan).id})
    chains = [_chain(one, keeps, scenario.plan, plan) for one in scenario.interruptions]
    return attrs.evolve(scenario, plan=plan, interruptions=tuple(one for one in chains if one is not None))


def without_scenario(departures: Mapping[Site, int]) -> dict[Site, int]:
    """Departures without those that say what is kept of a scenario, or what was drawn of it."""
    return {site: value for site, value in departures.items() if site[0] not in LABELS | {"scenario"}}


def _links(scenario: Scenario) -> list[Interruption]:
    return [link for one in scenario.interruptions for link in one.chain()]


def _label(link: Interruption) -> str:
    return attrs.evolve(link, then=None).label


def _chain(first: Interruption, keeps: _Keeps, before: Plan, plan: Plan) -> Interruption | None:
    """The links that are kept, those after a lost one included; what strikes at an operation goes with it."""

    def is_gone(op: str | None) -> bool:
        return op is not None and before.leaf(op) is not None and plan.leaf(op) is None

    chosen = [
        link
        for link in first.chain()
        if keeps(INTERRUPTION, _label(link)) and not is_gone(link.site.op) and not is_gone(link.target)
    ]
    rest: Interruption | None = None
    for link in reversed(chosen):
        rest = attrs.evolve(link, then=rest)
    return rest


def _written(plan: Plan) -> Iterator[Op]:
    """The leaves of a plan as they are written; a child counts as one."""
    return (op for op in plan.operations() if not isinstance(op, Seq | Par | Race | Branch | Loop))


def _first(plan: Plan) -> Op:
    return next((op for op in _written(plan) if isinstance(op, Call)), next(_written(plan)))


def _kept(plan: Plan, kept: Collection[str]) -> Plan:
    """The plan with what is kept of it, but for what is of no use without something that is not; the whole plan where no
    plan can be made of the rest.
    """
    about = {op.id: op.of for op in _written(plan) if isinstance(op, Approve | Check | Compensate)}
    wanted = {name for name in kept if name not in about or _base(about[name]) in kept}
    root = _pruned(plan.root, wanted)
    if root is None:
        return plan
    try:
        leaves = lay_out(root).leaves
        return attrs.evolve(plan, root=_carrying(root, wanted, leaves))
    except PlanError:
        return plan


def _base(name: str) -> str:
    """The operation as it is written, of a copy of it in a loop."""
    return name.partition("@")[0]


def _pruned(op: Op, kept: Collection[str]) -> Op | None:
    """The operation without leaves that are not kept, and without groups that have none left."""
    match op:
        case Branch():
            arms = [_pruned(arm, kept) for arm in op.children]
            if _base(op.on) not in kept or not any(arms):
                return None
            empty = (Seq(arm.id, ()) for arm in op.children)
            return attrs.evolve(op, children=tuple(arm or none for arm, none in zip(arms, empty, strict=True)))
        case Seq() | Par() | Race() | Loop():
            children = tuple(child for one in op.children if (child := _pruned(one, kept)) is not None)
            if isinstance(op, Loop) and _base(op.on) not in kept:
                return Seq(op.id, children) if children else None
            return attrs.evolve(op, children=children) if children else None
        case _:
            return op if op.id in kept else None


def _carrying(op: Op, kept: Collection[str], leaves: Collection[str]) -> Op:
    """The operation with those of its carried answers that there still are."""
    if isinstance(op, Seq | Par | Race | Branch | Loop):
        return attrs.evolve(op, children=tuple(_carrying(child, kept, leaves) for child in op.children))
    if not isinstance(op, Call | Model | Artifact):
        return op
    there = (name for name in op.carries if _base(name) in kept and ("@" not in name or name in leaves))
    return attrs.evolve(op, carries=tuple(there))

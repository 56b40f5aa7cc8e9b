"""A scenario as departures: every operation of its plan and every link of its interruptions is one, read from a tape.

So a shrink leaves out work and faults that a failure does not need by the same means as any other choice of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

import attrs

from scenarios.interruption import Interruption, Scenario
from scenarios.plan import Call, Leaf, Op, Par, Plan, Seq

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
    sites: dict[Site, int] = {(OPERATION, leaf.id, 0): 1 for leaf in scenario.plan.leaves()}
    for link in _links(scenario):
        label = _label(link)
        sites[INTERRUPTION, label, seen.get(label, 0)] = 1
        seen[label] = seen.get(label, 0) + 1
    return sites


def reduced(scenario: Scenario, world: World) -> Scenario:
    """What the tape of this world keeps of it: at least one operation."""

    def keeps(label: str, key: str) -> bool:
        return world.tape.stream(label).choose(key, 2) == 1

    kept = {leaf.id for leaf in scenario.plan.leaves() if keeps(OPERATION, leaf.id)}
    kept = kept or {_first(scenario.plan).id}
    gone = {leaf.id for leaf in scenario.plan.leaves()} - kept
    chains = [_chain(one, keeps, gone) for one in scenario.interruptions]
    root = _pruned(scenario.plan.root, kept)
    assert root is not None
    return attrs.evolve(scenario, plan=Plan(root), interruptions=tuple(one for one in chains if one is not None))


def without_scenario(departures: Mapping[Site, int]) -> dict[Site, int]:
    """Departures without those that say what is kept of a scenario, or what was drawn of it."""
    return {site: value for site, value in departures.items() if site[0] not in LABELS | {"scenario"}}


def _links(scenario: Scenario) -> list[Interruption]:
    return [link for one in scenario.interruptions for link in one.chain()]


def _label(link: Interruption) -> str:
    return attrs.evolve(link, then=None).label


def _chain(first: Interruption, keeps: _Keeps, gone: Collection[str]) -> Interruption | None:
    """The links that are kept, those after a lost one included; what strikes at an operation goes with it."""
    chosen = [link for link in first.chain() if keeps(INTERRUPTION, _label(link)) and link.site.op not in gone]
    rest: Interruption | None = None
    for link in reversed(chosen):
        rest = attrs.evolve(link, then=rest)
    return rest


def _first(plan: Plan) -> Leaf:
    return next((leaf for leaf in plan.leaves() if isinstance(leaf, Call)), plan.leaves()[0])


def _pruned(op: Op, kept: Collection[str]) -> Op | None:
    """The operation without leaves that are not kept, and without groups that have none left."""
    if isinstance(op, Seq | Par):
        children = tuple(child for one in op.children if (child := _pruned(one, kept)) is not None)
        return attrs.evolve(op, children=children) if children else None
    if op.id not in kept:
        return None
    if isinstance(op, Call):
        return attrs.evolve(op, carries=tuple(name for name in op.carries if name in kept))
    return op

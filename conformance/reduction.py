"""A scenario as departures: everything that can be left out of its plan and its interruptions is one, read from a tape.

So a shrink leaves out work and faults that a failure does not need by the same means as any other choice of the run. What can
be left out of a plan is in `conformance.paring`; of interruptions it is every link, how long a killed unit stays down, and the
size of a crowd.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from conformance.paring import DETAIL, GROUP, OPERATION, Pared, Take, pare
from conformance.reducible import numbers
from scenarios.interruption import Interruption, Scenario

if TYPE_CHECKING:
    from simkit.tape import Site
    from simkit.world import World

__all__ = [
    "DETAIL",
    "GROUP",
    "INTERRUPTION",
    "LABELS",
    "OPERATION",
    "departures_of",
    "reduced",
    "taken",
    "without_scenario",
]

INTERRUPTION = "interruption"
#: Labels of the streams that these choices are made on.
LABELS = frozenset({OPERATION, GROUP, DETAIL, INTERRUPTION})


def departures_of(scenario: Scenario) -> dict[Site, int]:
    """What keeps the whole scenario."""
    asked: dict[tuple[str, str], int] = {}
    sites: dict[Site, int] = {}

    def take(label: str, key: str, n: int) -> int:
        occurrence = asked.get((label, key), 0)
        asked[label, key] = occurrence + 1
        sites[label, key, occurrence] = n - 1
        return n - 1

    taken(scenario, take)
    return sites


def reduced(scenario: Scenario, world: World) -> Scenario:
    """What the tape of this world keeps of it: at least one operation."""
    return taken(scenario, lambda label, key, n: world.tape.stream(label).choose(key, n))


def taken(scenario: Scenario, take: Take) -> Scenario:
    """What `take` keeps of it."""
    pared = pare(scenario.plan, take)
    chains = [_chain(one, take, pared) for one in scenario.interruptions]
    return attrs.evolve(scenario, plan=pared.plan, interruptions=tuple(one for one in chains if one is not None))


def without_scenario(departures: Mapping[Site, int]) -> dict[Site, int]:
    """Departures without those that say what is kept of a scenario, or what was drawn of it."""
    return {site: value for site, value in departures.items() if site[0] not in LABELS | {"scenario"}}


def _chain(first: Interruption, take: Take, pared: Pared) -> Interruption | None:
    """The links that are kept, those after a lost one included; what strikes at an operation goes with it."""
    rest: Interruption | None = None
    for link in reversed([kept for link in first.chain() if (kept := _link(link, take, pared)) is not None]):
        rest = attrs.evolve(link, then=rest)
    return rest


def _link(link: Interruption, take: Take, pared: Pared) -> Interruption | None:
    there = pared.plan.leaf
    op, target = (pared.names.get(name, name) if name else None for name in (link.site.op, link.target))
    for before, now in ((link.site.op, op), (link.target, target)):
        if before in pared.names and (now is None or there(now) is None):
            return None
    label = attrs.evolve(link, then=None).label
    if take(INTERRUPTION, label, 2) == 0:
        return None
    left = attrs.evolve(link, then=None, site=attrs.evolve(link.site, op=op), target=target)
    if link.action in {"kill", "power"} and link.ns and take(DETAIL, f"{label}.ns", 2) == 0:
        left = attrs.evolve(left, ns=0)
    if link.action == "crowd" and link.arg is not None and int(link.arg) > 1:
        sizes = numbers(1, int(link.arg))
        left = attrs.evolve(left, arg=str(sizes[take(DETAIL, f"{label}.arg", len(sizes))]))
    return left

"""What is tried one by one with a new entry, before anything is left to chance: what AFL calls the deterministic stage.

There it covers the whole input. Here it covers only what the entry has opened: places at which nobody could depart before,
and a switch of tasks right after the step that did something new.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import attrs

from simkit.coverage import schedules, tapes
from simkit.coverage.entry import Entry, Place
from simkit.strategy import Segment
from simkit.tape import Site

#: So many departures, and so many switches, are tried with an entry.
DUE_MAX = 64


@attrs.frozen
class Due:
    """A change to an entry."""

    departures: Mapping[Site, int] = attrs.field(factory=dict)
    schedule: tuple[Segment, ...] | None = None


def due(entry: Entry, fresh: tuple[tuple[Place, int], ...]) -> list[Due]:
    """Changes to try, in an order that is drawn, the same for the same tape."""
    rng = Random(int(entry.id, 16))
    found = [Due({site: value}) for site, value in tapes.each(tapes.Ground(entry.asked, fresh), DUE_MAX, rng)]
    if entry.frontier:
        found += [Due(schedule=plan) for plan in schedules.each(entry.taken, entry.frontier)[:DUE_MAX]]
    return [found.pop(rng.randrange(len(found))) for _ in tuple(found)]

"""Shrinking: from a failing run to the fewest faults and pre-emptions that still fail in the same way.

The map: `shrink` (in `minimiser`) makes rounds of passes until none helps; `tapes` and `schedules` hold the passes,
`subsets` the search they share; `search` keeps the best run so far, the budget and what was tried; `loose` replays a
schedule that no longer fits; `retrial` runs a simkit program again with other departures and another schedule.

A run is described by two things: its departures, and its *plan*, the part of its schedule that the default continuation
(go on with the running task, else the one with the lowest number) would not give anyway.
"""

from __future__ import annotations

from simkit.shrinking.loose import LooseSchedule, Move
from simkit.shrinking.minimiser import Shrunk, shrink
from simkit.shrinking.retrial import Retrial, fingerprint_of, worded
from simkit.shrinking.search import Attempt, Budget, Departures, Fingerprint, Plan, Progress, RunWith

__all__ = [
    "Attempt",
    "Budget",
    "Departures",
    "Fingerprint",
    "LooseSchedule",
    "Move",
    "Plan",
    "Progress",
    "Retrial",
    "RunWith",
    "Shrunk",
    "fingerprint_of",
    "shrink",
    "worded",
]

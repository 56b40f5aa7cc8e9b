"""Named points that no seed of a test has hit: told at the end of the session, whichever processes ran the seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from simkit.point_coverage import Coverage
from simkit.points import PointCount

__all__ = ["lines", "packed", "unpacked"]

#: Of fewer seeds nothing can be said: a point that is switched on in half of the runs may well be hit in none of them.
SEEDS_MIN = 10
_SHOWN_MAX = 20


def packed(runs: Iterable[Mapping[str, PointCount]]) -> list[Any]:
    """The counts of these runs added up, in plain values, as a report takes along from process to process."""
    coverage = Coverage()
    for counts in runs:
        coverage = coverage.merge(Coverage(1, counts))
    added = [[name, one.kind, one.reached, one.held, one.where] for name, one in coverage.points.items()]
    return [coverage.runs, added]


def unpacked(values: Sequence[Any]) -> Coverage:
    """What `packed` has packed."""
    runs, counts = values
    return Coverage(runs, {name: PointCount(cast("Any", kind), *rest) for name, kind, *rest in counts})


def lines(tests: Mapping[str, Coverage]) -> list[str]:
    """What is to be said of each test, by its id, all of whose seeds passed."""
    told = []
    for test, coverage in tests.items():
        never = coverage.never() if coverage.runs >= SEEDS_MIN else []
        if never:
            told.append(f"simkit: {test}: named points that none of {coverage.runs} runs has hit:")
            told += [f"  {point.name} ({point.kind}, {point.where})" for point in never[:_SHOWN_MAX]]
        if len(never) > _SHOWN_MAX:
            told.append(f"  and {len(never) - _SHOWN_MAX} more")
    return told

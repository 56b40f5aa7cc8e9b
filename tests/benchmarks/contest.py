"""A contest: one piece of work done by several contestants in turn, told as rates and as ratios between them.

A ratio of one run holds on a noisy machine, an absolute rate does not. Contestants take turns, so that a slow moment hits
all alike, and each is judged by its median.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import attrs

#: Odd, so that the median is one that was measured.
REPEATS = 7


@attrs.frozen
class Contest:
    """One row of the table. The first contestant is ours; the others are its peers."""

    title: str
    unit: str  # what a rate counts
    contestants: Mapping[str, Callable[[], int]]  # do the work, return how many units it was
    targets: Mapping[str, float] = attrs.field(factory=dict)  # by peer: how many times its rate ours shall be
    clock: Callable[[], float] = time.process_time  # processor time, except where storage is waited for


@attrs.frozen
class Result:
    """Units a second by contestant, in the order of the contest."""

    contest: Contest
    rates: Mapping[str, float]

    @property
    def ours(self) -> float:
        return next(iter(self.rates.values()))

    def ratios(self) -> dict[str, float]:
        """Our rate as a multiple of each peer's."""
        peers = list(self.rates.items())[1:]
        return {name: self.ours / rate for name, rate in peers}

    def to_json(self) -> dict[str, Any]:
        return {
            "work": self.contest.title,
            "unit": self.contest.unit,
            "per_second": {name: round(rate, 1) for name, rate in self.rates.items()},
            "ratio": {name: round(ratio, 3) for name, ratio in self.ratios().items()},
            "target": dict(self.contest.targets),
        }

    def lines(self) -> list[str]:
        """The row for people: our rate, then each peer's with the ratio and, where there is one, the target."""
        ours = next(iter(self.rates))
        told = [f"{self.contest.title}  ({self.contest.unit} a second)", f"    {ours:<44}{self.ours:>14,.0f}"]
        for name, ratio in self.ratios().items():
            target = self.contest.targets.get(name)
            aim = "" if target is None else f"   target {target:g} ×   {'met' if ratio >= target else 'not met'}"
            told.append(f"    {name:<44}{self.rates[name]:>14,.0f}   {ratio:8.3f} ×{aim}")
        return told


def hold(contest: Contest, repeats: int = REPEATS) -> Result:
    """Let everybody do the work `repeats` times, in turns."""
    rates: dict[str, list[float]] = {name: [] for name in contest.contestants}
    for _ in range(repeats):
        for name, contestant in contest.contestants.items():
            gc.collect()
            began = contest.clock()
            units = contestant()
            rates[name].append(units / max(contest.clock() - began, 1e-9))
    return Result(contest, {name: statistics.median(measured) for name, measured in rates.items()})

"""Rows of the benchmark. A contest: one piece of work done by several contestants in turn, told as rates and as ratios.
A gauge: one figure with a bound, such as memory.

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
class Goal:
    """So much a second where the peer does so much a second; elsewhere in proportion."""

    rate: float
    where_peer_does: float


@attrs.frozen
class Contest:
    """One row of the table. The first contestant is ours; the others are its peers."""

    title: str
    unit: str  # what a rate counts
    contestants: Mapping[str, Callable[[], int]]  # do the work, return how many units it was
    targets: Mapping[str, float] = attrs.field(factory=dict)  # by peer: how many times its rate ours shall be
    clock: Callable[[], float] = time.process_time  # processor time, except where storage is waited for
    goals: Mapping[str, Goal] = attrs.field(factory=dict)  # by peer, for work that the peer does not do itself
    also_ours: tuple[str, ...] = ()  # contestants that are no peers, and are held to the same targets


@attrs.frozen
class Gauge:
    """One row with one figure."""

    title: str
    unit: str
    measure: Callable[[], float]
    at_most: float | None = None
    at_least: float | None = None


@attrs.frozen
class Line:
    """One line of the table: our figure beside a peer's or a bound. `value` is a ratio where there is a peer."""

    work: str
    ours: float
    unit: str
    peer: str
    value: float
    target: float | None
    at_most: bool = False

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None where there is none."""
        if self.target is None:
            return None
        return self.value <= self.target if self.at_most else self.value >= self.target


@attrs.frozen
class Result:
    """Units a second by contestant, in the order of the contest."""

    contest: Contest
    rates: Mapping[str, float]

    @property
    def ours(self) -> float:
        return next(iter(self.rates.values()))

    def ratios(self, of: str | None = None) -> dict[str, float]:
        """Our rate, or that of another contestant `of` ours, as a multiple of each peer's, or of the goal its rate sets."""
        goals = self.contest.goals
        ours = self.ours if of is None else self.rates[of]
        peers = [one for one in list(self.rates.items())[1:] if one[0] not in self.contest.also_ours]
        return {name: ours / (_goal(goals[name], rate) if name in goals else rate) for name, rate in peers}

    def table(self) -> list[Line]:
        targets = {**self.contest.targets, **dict.fromkeys(self.contest.goals, 1.0)}
        first, also = next(iter(self.rates)), self.contest.also_ours
        rows = [
            Line(
                f"{self.contest.title}: {mine}" if also else self.contest.title,
                self.rates[mine],
                self.contest.unit,
                self._peer(name),
                ratio,
                targets.get(name),
            )
            for mine in (first, *also)
            for name, ratio in self.ratios(mine).items()
        ]
        return rows or [Line(self.contest.title, self.ours, self.contest.unit, "", self.ours, None)]

    def _peer(self, name: str) -> str:
        goal = self.contest.goals.get(name)
        if goal is None:
            return name
        here = _goal(goal, self.rates[name])
        return f"{here:,.0f} here, {goal.rate:,.0f} where {name} does {goal.where_peer_does / 1e6:g} M"

    def to_json(self) -> dict[str, Any]:
        return {
            "work": self.contest.title,
            "unit": self.contest.unit,
            "per_second": {name: round(rate, 1) for name, rate in self.rates.items()},
            "ratio": {name: round(ratio, 4) for name, ratio in self.ratios().items()},
            "target": dict(self.contest.targets),
            "goal": {name: attrs.asdict(goal) for name, goal in self.contest.goals.items()},
            "table": [attrs.asdict(line) for line in self.table()],
        }

    def lines(self) -> list[str]:
        """The row for people: our rate, then each peer's with the ratio and, where there is one, the target."""
        ours = (next(iter(self.rates)), *self.contest.also_ours)
        told = [f"{self.contest.title}  ({self.contest.unit} a second)"]
        told += [f"    {name:<44}{self.rates[name]:>14,.0f}" for name in ours]
        peers = [name for name in self.rates if name not in ours]
        told += [line for number, name in enumerate(peers) for line in self._beside(name, number, len(peers))]
        return told

    def _beside(self, name: str, number: int, peers: int) -> list[str]:
        """The peer of this number: its rate, and one ratio for each contestant of ours."""
        mine = self.table()[number::peers]
        shown = "  ".join(f"{line.value:8.3f} ×{_aim(line)}" for line in mine)
        told = [f"    {name:<44}{self.rates[name]:>14,.0f}   {shown}"]
        return [*told, f"        goal: {mine[0].peer}"] if name in self.contest.goals else told


@attrs.frozen
class Reading:
    """What a gauge showed."""

    gauge: Gauge
    value: float

    def table(self) -> list[Line]:
        bound = self.gauge.at_least if self.gauge.at_most is None else self.gauge.at_most
        return [
            Line(self.gauge.title, self.value, self.gauge.unit, "", self.value, bound, self.gauge.at_most is not None)
        ]

    def to_json(self) -> dict[str, Any]:
        return {
            "work": self.gauge.title,
            "unit": self.gauge.unit,
            "value": round(self.value, 3),
            "at_most": self.gauge.at_most,
            "at_least": self.gauge.at_least,
            "table": [attrs.asdict(line) for line in self.table()],
        }

    def lines(self) -> list[str]:
        return [f"{self.gauge.title}", f"    {self.value:,.2f} {self.gauge.unit}{_aim(self.table()[0])}"]


def _goal(goal: Goal, rate: float) -> float:
    return goal.rate * rate / goal.where_peer_does


def _aim(line: Line) -> str:
    if line.target is None:
        return ""
    return f"   target {'at most ' if line.at_most else ''}{line.target:g}   {'met' if line.met else 'not met'}"


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


def read(gauge: Gauge) -> Reading:
    """Read a gauge once."""
    gc.collect()
    return Reading(gauge, gauge.measure())

"""Reads-from-directed: each run demands that one or two reads see a certain write, seldom seen ones first.

After Wolff, Shi, Duck, Mathur, Roychoudhury: Greybox Fuzzing for Concurrency Testing (ASPLOS 2024), whose RFF mutates a
corpus of abstract schedules, sets of such demands. This one is stateless: all it keeps are the places in the program that
read and write each resource, and how often each read saw each write. A demand holds back the read until its write is the
last, and then every other writer until the read has happened; what cannot be met any more is given up.

Base order: POS. Further deviations: acquisitions of locks are reads and writes of them; the order of undeclared steps
is taken for one resource that all of them read and write, so that a demand there is "this place right after that one".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from simkit.strategies.base import ROOT, Waiting
from simkit.strategies.knowledge import INITIAL, Knowledge, accesses
from simkit.strategies.pos import POS
from simkit.strategy import TaskView
from simkit.world import Outcome

_DEMANDS_MAX = 2
#: A demand is the rarest of so many drawn.
_TOURNAMENT = 4
_KEPT_DEMANDS_MAX = 5
_CORPUS_MAX = 200


@attrs.frozen
class Demand:
    """The read at one place sees the write at another."""

    resource: str
    write: str
    read: str


class ReadsFrom(POS):
    """Reads-from-directed sampling over a POS base."""

    name = "reads-from"
    needs_probe = True

    def __init__(self, knowledge: Knowledge | None = None) -> None:
        super().__init__(knowledge)
        self.knowledge.wants_pairs()
        self._corpus: list[tuple[Demand, ...]] = []

    def start(self) -> None:
        """Draw the demands of this run, each the rarest of a few."""
        super().start()
        self._writer: dict[str, str] = {}
        self._demands = self._drawn()
        self._demanded = tuple(self._demands)

    def _drawn(self) -> list[Demand]:
        pairs = self.knowledge.pairs
        possible = [] if pairs is None else pairs.possible()
        if pairs is None or not possible:
            return []
        demands: list[Demand] = []
        more = 1 + int(self.draw() * _DEMANDS_MAX)
        if self._corpus and self.draw() < 0.5:
            demands = list(self._corpus[int(self.draw() * len(self._corpus))])
            more = 1
            if len(demands) == _KEPT_DEMANDS_MAX or self.draw() < 0.5:
                demands.pop(int(self.draw() * len(demands)))
        for _ in range(more):
            pair = min((possible[int(self.draw() * len(possible))] for _ in range(_TOURNAMENT)), key=pairs.rarity)
            pairs.demanded[pair] = pairs.demanded.get(pair, 0) + 1
            demand = Demand(*pair)
            if demand not in demands:
                demands.append(demand)
        return demands

    def end(self, outcome: Outcome[Any]) -> None:
        """Learn, and keep the demands that led to something new."""
        super().end(outcome)
        pairs = self.knowledge.pairs
        if pairs is not None and pairs.surprising and self._demanded:
            self._corpus.append(self._demanded)
            del self._corpus[:-_CORPUS_MAX]

    def choose(self, runnable: Sequence[TaskView]) -> int:
        """Return the first in priority of those that no demand holds back."""
        if self._demands:
            free = [index for index, task in enumerate(runnable) if not self._held(self.look(task))]
            if free:
                return max(free, key=lambda index: self.priority(runnable[index].number))
            self._demands.clear()
        return super().choose(runnable)

    def _held(self, waiting: Waiting) -> bool:
        if waiting.number == ROOT:
            return False
        for resource, place, reads, writes in accesses([waiting]):
            for demand in self._demands:
                if demand.resource != resource:
                    continue
                there = self._writer.get(resource, INITIAL) == demand.write
                if (reads and place == demand.read and not there) or (writes and place != demand.read and there):
                    return True
        return False

    def taken(self, waiting: Waiting, runnable: Sequence[TaskView]) -> None:
        """Keep who wrote last; a demand is met once its read has happened."""
        if self._demands:
            for resource, place, reads, writes in accesses([waiting]):
                if reads:
                    self._demands = [each for each in self._demands if (each.resource, each.read) != (resource, place)]
                if writes:
                    self._writer[resource] = place
        super().taken(waiting, runnable)

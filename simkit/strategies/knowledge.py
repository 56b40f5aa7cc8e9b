"""What runs teach about a program: how long it is, which task does how much to which resource, who reads from whom.

Strategies that need a probe run (PCT its length, SURW its counts, reads-from its pairs) take it from here; in a portfolio
all share one `Knowledge`, so that each run teaches every strategy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import attrs

from simkit.effects import Footprint

if TYPE_CHECKING:
    from simkit.strategies.base import Waiting

#: A task's place in the tree of tasks: the same task in every run, whatever its number. The root's is empty.
Path = tuple[int, ...]
#: Resource, place of the write, place of the read that sees it.
Pair = tuple[str, str, str]
#: What a read may see that nobody wrote.
INITIAL = "initial"
#: Where reads and writes of undeclared steps are booked: the order of steps itself.
ORDER = "*"
_ROOT: Path = ()
#: What labels of places begin with.
PLACE = "@"
#: Bounds of what is remembered.
_PAIRS_MAX = 100_000
_LABELS_MAX = 100_000
_SETS_MAX = 50_000
#: From so many first runs everything is learnt; then from one in so many, unless pairs are kept.
_LEARN_FROM_ALL = 200
_LEARN_FROM_ONE_IN = 16


class Record:
    """One run, as far as strategies learn from it."""

    def __init__(self) -> None:
        self.paths: dict[int, Path] = {}
        self._children: dict[int, int] = {}
        self.steps: list[Waiting] = []
        #: The steps, one call each.
        self.step = self.steps.append

    def spawned(self, number: int, parent: int) -> None:
        """Task `number` was made by the step of `parent`."""
        child = self._children.get(parent, 0)
        self._children[parent] = child + 1
        self.paths[number] = (*self.paths.get(parent, _ROOT), child)


def labels(footprint: Footprint | None, site: str) -> tuple[str, ...]:
    """What a step counts for: its place in the program, and the resources that it competes for.

    A step that declares to compete for nothing counts for nothing.
    """
    if footprint is None:
        return (PLACE + site,)
    resources = [effect.resource for effect in footprint if effect.competes]
    return (PLACE + site, *resources) if resources else ()


@attrs.define
class Counts:
    """How often each task touched what, averaged over runs."""

    runs: int = 0
    totals: dict[str, dict[Path, int]] = attrs.field(factory=dict)

    def add(self, record: Record) -> None:
        """Count one run."""
        self.runs += 1
        totals, paths = self.totals, record.paths
        for waiting in record.steps:
            path = paths[waiting.number]
            for label in waiting.labels:
                users = totals.get(label)
                if users is None:
                    if len(totals) >= _LABELS_MAX:
                        continue
                    users = totals[label] = {}
                users[path] = users.get(path, 0) + 1

    def resources(self) -> list[str]:
        """Resources that at least two tasks compete for."""
        return [label for label, users in self.totals.items() if len(users) > 1 and not label.startswith(PLACE)]

    def places(self, users_min: int) -> list[str]:
        """Places in the program to which at least so many tasks come."""
        return [label for label, users in self.totals.items() if len(users) >= users_min and label.startswith(PLACE)]


class Pairs:
    """Which write a read saw, by place in the program: what was possible, and what was seen how often."""

    def __init__(self) -> None:
        self.reads: dict[str, dict[str, None]] = {}
        self.writes: dict[str, dict[str, None]] = {}
        self.seen: dict[Pair, int] = {}
        self.demanded: dict[Pair, int] = {}
        #: Whether the last run showed pairs together that no run had shown.
        self.surprising = False
        self._sets: set[frozenset[Pair]] = set()
        self._all: list[Pair] = []
        self._size = 0

    def add(self, record: Record) -> None:
        """Take in one run."""
        last: dict[str, str] = {}
        here: dict[Pair, None] = {}
        for resource, place, reads, writes in accesses(record.steps):
            if reads:
                pair = (resource, last.get(resource, INITIAL), place)
                self.seen[pair] = self.seen.get(pair, 0) + 1
                here[pair] = None
                self._note(self.reads, resource, place)
            if writes:
                self._note(self.writes, resource, place)
                last[resource] = place
        self.surprising = self._together(frozenset(here))

    def _together(self, pairs: frozenset[Pair]) -> bool:
        new = pairs not in self._sets
        if new and len(self._sets) < _SETS_MAX:
            self._sets.add(pairs)
        return new

    def _note(self, places: dict[str, dict[str, None]], resource: str, place: str) -> None:
        known = places.setdefault(resource, {})
        if place not in known and self._size < _PAIRS_MAX:
            known[place] = None
            self._size += 1
            self._all.clear()

    def possible(self) -> list[Pair]:
        """Every pair that may be, seen or not; the order of undeclared steps counts only where nothing is declared."""
        if not self._all:
            declared = [resource for resource in self.reads if resource != ORDER]
            self._all = [
                (resource, write, read)
                for resource in declared or self.reads
                for read in self.reads[resource]
                for write in (*self.writes.get(resource, ()), INITIAL)
            ][:_PAIRS_MAX]
        return self._all

    def rarity(self, pair: Pair) -> int:
        """How often it was seen or, in vain perhaps, demanded: the less, the more it promises."""
        return self.seen.get(pair, 0) + self.demanded.get(pair, 0)


def accesses(steps: list[Waiting]) -> Iterator[tuple[str, str, bool, bool]]:
    """Each access of a run: resource, place, whether it reads and whether it writes."""
    for waiting in steps:
        if waiting.footprint is None:
            yield ORDER, waiting.site, True, True
        else:
            for effect in waiting.footprint:
                if effect.competes:
                    yield effect.resource, f"{effect.kind} {waiting.site}", effect.reads, effect.writes


class Knowledge:
    """What earlier runs taught. Kept on demand: the first strategy that asks for it makes it grow."""

    def __init__(self) -> None:
        self.runs = 0
        #: Steps of an average run.
        self.length = 0
        self._steps = self._learnt = 0
        self.counts: Counts | None = None
        self.pairs: Pairs | None = None

    def wants_counts(self) -> None:
        """Keep counts from now on."""
        if self.counts is None:
            self.counts = Counts()

    def wants_pairs(self) -> None:
        """Keep pairs of reads and writes from now on."""
        if self.pairs is None:
            self.pairs = Pairs()

    @property
    def needs_more(self) -> bool:
        """Whether the next run is one to learn from: averages need no more after some hundred runs, pairs need all."""
        return self.runs < _LEARN_FROM_ALL or self.pairs is not None or self.runs % _LEARN_FROM_ONE_IN == 0

    def learn(self, record: Record) -> None:
        """Take in one run."""
        self.runs += 1
        self._learnt += 1
        self._steps += len(record.steps)
        self.length = self._steps // self._learnt
        if self.counts is not None:
            self.counts.add(record)
        if self.pairs is not None:
            self.pairs.add(record)

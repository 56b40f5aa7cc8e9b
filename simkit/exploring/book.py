"""The book of an exploration: runs counted stage by stage, failures by fingerprint, what was struck, which points were hit."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from simkit.case import Case
from simkit.discovery import Discovery
from simkit.exploring.jobs import Failure, Ran
from simkit.exploring.kinds import kind_of, strikes_of
from simkit.exploring.report import Finding, Sites, Stage, Unfinished
from simkit.point_coverage import Coverage
from simkit.tape import Site

__all__ = ["Book", "Page"]

LIVENESS = "liveness"


@attrs.define
class Page:
    """The counts of one stage."""

    name: str
    runs: int = 0
    steps: int = 0
    failing: int = 0
    new: int = 0
    inconclusive: int = 0
    discovery: Discovery = attrs.field(factory=Discovery)

    def closed(self, candidates: int | None, stopped: str) -> Stage:
        """As a value."""
        return Stage(
            self.name,
            self.runs,
            self.steps,
            candidates,
            stopped,
            self.failing,
            self.new,
            self.inconclusive,
            self.discovery.curve(),
        )


@attrs.define
class _Found:
    failure: Failure
    stage: str
    runs: int = 1


class Book:
    """Everything that the runs of one exploration showed."""

    def __init__(self) -> None:
        self.runs = 0
        self.steps = 0
        self.inconclusive = 0
        self.coverage = Coverage()
        self._found: dict[str, _Found] = {}
        self._struck: dict[Site, None] = {}
        self._unfinished: dict[str, tuple[int, Case]] = {}

    def enter(self, ran: Ran, page: Page) -> None:
        """Count a run."""
        made = 1 + ran.more_runs
        self.runs += made
        self.steps += ran.steps
        page.runs += made
        page.steps += ran.steps
        if ran.redundant:
            return
        page.discovery.saw(ran.behaviour)
        if ran.bound is not None:
            page.inconclusive += 1
            self.inconclusive += 1
            self._keep(ran.bound, ran.unfinished)
        self.coverage = self.coverage.merge(Coverage(1, ran.points))
        self._struck.update(dict.fromkeys(ran.departures))
        if ran.failure is not None:
            page.failing += 1
            page.new += self._found_new(ran, ran.failure)

    def sites(self, sites: Iterable[Site]) -> tuple[Sites, ...]:
        """How many of these, the sites of the default run, were struck, by kind."""
        counts: dict[str, list[int]] = {}
        for site in sites:
            count = counts.setdefault(kind_of(site, 0), [0, 0])
            count[0] += 1
            count[1] += site in self._struck
        return tuple(Sites(kind, *count) for kind, count in sorted(counts.items()))

    def findings(self) -> tuple[Finding, ...]:
        """Each kind of failure, in the order of its first run."""
        return tuple(
            Finding(
                fingerprint,
                found.stage,
                found.failure.what,
                found.failure.text,
                found.runs,
                strikes_of(found.failure.case.departures),
                found.failure.case,
            )
            for fingerprint, found in self._found.items()
        )

    def _keep(self, bound: str, case: Case | None) -> None:
        if case is not None:
            runs, first = self._unfinished.get(bound, (0, case))
            self._unfinished[bound] = runs + 1, first

    def unfinished(self) -> tuple[Unfinished, ...]:
        """Runs that met a bound, by kind, in the order of the first of each."""
        return tuple(
            Unfinished(bound, runs, strikes_of(case.departures), case)
            for bound, (runs, case) in self._unfinished.items()
        )

    def _found_new(self, ran: Ran, failure: Failure) -> bool:
        found = self._found.get(failure.fingerprint)
        if found is not None:
            found.runs += 1
            return False
        stage = LIVENESS if failure.what == LIVENESS else ran.stage
        self._found[failure.fingerprint] = _Found(failure, stage)
        return True

"""From a finding to the simplest run that fails so, and to what decides; within a budget."""

from __future__ import annotations

import time
from typing import Any

import attrs

from simkit.errors import SimkitError
from simkit.explanation import explain
from simkit.exploring.jobs import Job, Task, failure_of
from simkit.exploring.kinds import CALM, PATIENCE
from simkit.exploring.report import Finding
from simkit.exploring.running import Budget
from simkit.shrinking import Attempt, Departures, Plan, Retrial, fingerprint_of, shrink
from simkit.shrinking import Budget as ShrinkBudget
from simkit.tape import Site, Tape
from simkit.world import Outcome

__all__ = ["simplest"]

#: When the faults of a healed run end, and how long it then has, is not to be shrunk: with less time any run fails.
_PINNED: tuple[Site, ...] = (CALM, PATIENCE)


def simplest(task: Task, finding: Finding, budget: Budget) -> Finding:
    """The finding with its shrunk case, and with an explanation when the budget has runs for one."""
    if "limits" in finding.case.options:
        return attrs.evolve(finding, shrinking="not shrunk: each try would take as many steps as its bound")
    pinned = {site: value for site, value in finding.case.departures.items() if site in _PINNED}
    retrial = Retrial(
        task.program,
        entropy=finding.case.seed or 0,
        steps_max=task.limits.steps,
        failure=lambda outcome: _fingerprint(task, outcome),
        kernel=task.kernel,
        guard=task.guard,
    )
    again = _Again(retrial, pinned)
    rest = {site: value for site, value in finding.case.departures.items() if site not in pinned}
    try:
        shrunk = shrink(again, rest, finding.case.schedule, fingerprint=finding.fingerprint, budget=_bounds(budget))
    except SimkitError as error:
        if error.problem.code != "shrink-not-failing":
            raise
        return attrs.evolve(finding, shrinking=f"not shrunk: {error.problem.what}")
    attempt, outcome = retrial.run({**shrunk.best.departures, **pinned}, shrunk.best.plan)
    found = attrs.evolve(finding, shrinking=str(shrunk))
    failing = task.failing(outcome)
    if failing is not None and attempt.fingerprint == finding.fingerprint:
        tape = Tape.opened(entropy=finding.case.seed or 0)
        case = failure_of(task, Job(finding.stage), tape, outcome, failing).case
        found = attrs.evolve(found, shrunk=case)
    if budget.explain:
        found = attrs.evolve(found, explanation=str(explain(again, shrunk.best, runs_max=budget.explain)))
    return found


def _bounds(budget: Budget) -> ShrinkBudget:
    """A bound on time holds for the shrink of each finding anew."""
    return ShrinkBudget(budget.shrink, budget.seconds, None if budget.seconds is None else time.monotonic)


class _Again:
    """A retrial with some departures that are no part of the search."""

    def __init__(self, retrial: Retrial, pinned: Departures) -> None:
        self._retrial = retrial
        self._pinned = dict(pinned)
        self.entropy = retrial.entropy

    def __call__(self, departures: Departures, plan: Plan) -> Attempt:
        """Run once."""
        return self._told(self._retrial({**departures, **self._pinned}, plan))

    def redrawn(self, departures: Departures, seed: int) -> Attempt:
        """As the retrial."""
        return self._told(self._retrial.redrawn({**departures, **self._pinned}, seed))

    def reordered(self, departures: Departures, seed: int) -> Attempt:
        """As the retrial."""
        return self._told(self._retrial.reordered({**departures, **self._pinned}, seed))

    def _told(self, attempt: Attempt) -> Attempt:
        kept = {site: value for site, value in attempt.departures.items() if site not in self._pinned}
        return attrs.evolve(attempt, departures=kept)

    def places(self, attempt: Attempt, steps: Any) -> Any:
        """As the retrial."""
        return self._retrial.places(attrs.evolve(attempt, departures={**attempt.departures, **self._pinned}), steps)


def _fingerprint(task: Task, outcome: Outcome[Any]) -> str | None:
    if outcome.bound is not None:
        return None
    error = task.failing(outcome)
    return None if error is None else repr(fingerprint_of(error))

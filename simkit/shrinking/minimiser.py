"""`shrink`: rounds of passes until none makes the run simpler, or the budget is used up."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from simkit.errors import ExitCode, Problem, SimkitError
from simkit.shrinking import schedules, tapes
from simkit.shrinking.search import (
    DEFAULT_BUDGET,
    Attempt,
    Budget,
    Departures,
    Fingerprint,
    OverBudget,
    Plan,
    Progress,
    Runs,
    RunWith,
    Search,
    Stop,
)


@attrs.frozen
class Shrunk:
    """The simplest failing run that was found."""

    fingerprint: Fingerprint
    first: Attempt  # as it came in
    best: Attempt
    runs: int
    stopped: Stop | None  # the bound that was met; None when no pass can make it simpler

    def __str__(self) -> str:
        before, after = self.first, self.best
        bound = "" if self.stopped is None else f", stopped by its bound on {self.stopped}"
        return (
            f"{len(before.departures)} departures and {before.preemptions} pre-emptions shrunk to "
            f"{len(after.departures)} and {after.preemptions} in {self.runs} runs{bound}"
        )


def shrink(
    run_with: RunWith,
    departures: Departures,
    schedule: Plan,
    *,
    fingerprint: Fingerprint | None = None,
    budget: Budget = DEFAULT_BUDGET,
    progress: Callable[[Progress], object] | None = None,
    departures_first: bool = False,
) -> Shrunk:
    """Find the fewest departures and pre-emptions with which the run still fails in the same way.

    Args:
        run_with: runs once; `Retrial` is one for simkit programs. The same arguments must give the same answer.
        departures: of the failing run, as `Outcome.departures`.
        schedule: of the failing run, as `Outcome.schedule`.
        fingerprint: how it must fail; None for whatever the first run gives.
        budget: how many runs and how much time at most. One run is made to see the failure again, and counts.
        progress: called after every run.
        departures_first: begin with them, as what is done to a run decides more often than who takes which step where they
            are crashes and faults; where they are data, it is the other way round.

    Returns: the simplest run found, also when the budget ended the search. Raises SimkitError when the failure is not
    seen again at all, or is another one.
    """
    runs = Runs(run_with, budget)
    first = _seen_again(runs, departures, schedule, fingerprint)
    search = Search(runs, first, progress)
    stopped: Stop | None = None
    try:
        _rounds(search, departures_first=departures_first)
    except OverBudget as over:
        stopped = over.stop
    return Shrunk(first.fingerprint, first, search.best, runs.made, stopped)


def _rounds(search: Search, *, departures_first: bool) -> None:
    if search.fails(departures={}, plan=()):
        return
    if departures_first:
        tapes.fewer(search)
    before = None
    while before is not search.best:
        before = search.best
        schedules.fewer(search)
        tapes.fewer(search)
        schedules.smoother(search)
        tapes.smaller(search)


def _seen_again(runs: Runs, departures: Departures, schedule: Plan, fingerprint: Fingerprint | None) -> Attempt:
    try:
        first = runs.run(departures, tuple(schedule))
    except OverBudget:
        raise ValueError("the budget of a shrink must allow one run") from None
    if first.fingerprint is not None and fingerprint in {None, first.fingerprint}:
        return first
    raise SimkitError(
        Problem(
            "shrink-not-failing",
            "the run that is to be shrunk did not fail again"
            if first.fingerprint is None
            else f"the run that is to be shrunk failed in another way: {first.fingerprint!r}",
            "the first run of the shrink",
            f"a failure {fingerprint!r}" if fingerprint is not None else "a failure",
            "two runs of the same departures and schedule must be the same: look for what the guard does not see, such as "
            "the order of a set",
            ExitCode.INTERNAL,
        )
    )

"""What every pass of a shrink shares: the best run so far, what was tried, the budget, and who is told of progress.

A candidate is accepted only when it fails with the same fingerprint *and* is simpler; simpler is a total order, so that
a shrink ends, and gives the same result every time.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Mapping
from typing import Literal, TypeVar

import attrs

from simkit.shrinking.loose import Move
from simkit.strategy import Segment
from simkit.tape import Site

Departures = Mapping[Site, int]
Plan = tuple[Segment, ...]
#: What makes two failures the same: an obligation's id and the anomaly, or an exception's type and place.
Fingerprint = Hashable
_Weight = tuple[object, ...]


@attrs.frozen
class Attempt:
    """What one run gave: how it failed, if it did, and what it really took of what it was given."""

    fingerprint: Fingerprint | None  # None for a run that did not fail
    departures: Departures
    plan: Plan
    moves: tuple[Move, ...] = ()  # where its schedule left the default continuation
    steps: int = 0

    @property
    def preemptions(self) -> int:
        """How often a task that could have gone on did not."""
        return sum(move.preempts for move in self.moves)


#: Runs with departures and a loosely followed schedule. One that knows no more than whether the run failed returns the
#: fingerprint or None.
RunWith = Callable[[Departures, Plan], "Attempt | Fingerprint | None"]
Stop = Literal["runs", "time"]
Answer = TypeVar("Answer")


@attrs.frozen
class Budget:
    """The bounds of a search. There is no clock in here: one who wants a bound on time hands in a clock."""

    runs: int = 1000
    time_s: float | None = None
    clock: Callable[[], float] | None = None  # seconds, such as a monotonic clock


DEFAULT_BUDGET = Budget()


@attrs.frozen
class Progress:
    """How far a shrink has come."""

    runs: int
    runs_max: int
    departures: int
    preemptions: int
    improved: bool  # whether the latest run was simpler and failed the same


class OverBudget(Exception):  # noqa: N818  # not an error: the search ends with what it has
    """The budget is used up."""

    def __init__(self, stop: Stop) -> None:
        super().__init__(stop)
        self.stop: Stop = stop


class Runs:
    """Counts and bounds runs, and makes each answer an `Attempt`."""

    def __init__(self, run_with: RunWith, budget: Budget) -> None:
        self._run_with = run_with
        self.budget = budget
        self.made = 0
        self._began = 0.0 if budget.clock is None else budget.clock()

    def run(self, departures: Departures, plan: Plan) -> Attempt:
        """Run once more, or raise OverBudget."""
        answer = self.make(lambda: self._run_with(departures, plan))
        return answer if isinstance(answer, Attempt) else Attempt(answer, departures, plan, _guessed(plan))

    def make(self, run: Callable[[], Answer]) -> Answer:
        """Make any run, which counts, or raise OverBudget."""
        if self.made >= self.budget.runs:
            raise OverBudget("runs")
        clock, limit_s = self.budget.clock, self.budget.time_s
        if clock is not None and limit_s is not None and clock() - self._began >= limit_s:
            raise OverBudget("time")
        self.made += 1
        return run()


class Search:
    """The best run so far, and the only ways to a better one: `fails` and `better`."""

    def __init__(self, runs: Runs, first: Attempt, progress: Callable[[Progress], object] | None) -> None:
        self.runs = runs
        self.best = first
        self._fingerprint = first.fingerprint
        self._progress = progress
        self._known: dict[tuple[object, ...], bool] = {_key(first.departures, first.plan): True}

    def fails(self, departures: Departures | None = None, plan: Plan | None = None) -> bool:
        """Whether a run with these (the best one's for None) fails the same; if it is simpler, it is the best now."""
        departures = self.best.departures if departures is None else departures
        plan = self.best.plan if plan is None else merged(plan)
        key = _key(departures, plan)
        if key not in self._known:
            self._known[key] = self._run(departures, plan)
        return self._known[key]

    def better(self, departures: Departures | None = None, plan: Plan | None = None) -> bool:
        """Whether the run fails the same and is simpler than the best one was."""
        before = self.best
        self.fails(departures, plan)
        return self.best is not before

    def _run(self, departures: Departures, plan: Plan) -> bool:
        attempt = self.runs.run(departures, plan)
        same = attempt.fingerprint == self._fingerprint
        improved = same and weight(attempt) < weight(self.best)
        if improved:
            self.best = attempt
            self._known[_key(attempt.departures, attempt.plan)] = True
        if self._progress is not None:
            best, runs = self.best, self.runs
            self._progress(Progress(runs.made, runs.budget.runs, len(best.departures), best.preemptions, improved))
        return same


def weight(attempt: Attempt) -> _Weight:
    """How far a run is from the default one; fewer decisions first, then smaller ones, then a shorter run."""
    departures = attempt.departures
    return (
        len(departures) + attempt.preemptions,
        len(departures),
        attempt.preemptions,
        len(attempt.moves),
        sum(departures.values()),
        sum(occurrence for _, _, occurrence in departures),
        sum(move.task for move in attempt.moves),
        attempt.steps,
        sum(steps for _, steps in attempt.plan),
        len(attempt.plan),
        attempt.plan,
        tuple(sorted(departures.items())),
    )


def merged(plan: Plan) -> Plan:
    """Neighbours of one task made one segment."""
    joined: list[Segment] = []
    for task, steps in plan:
        if steps <= 0:
            continue
        if joined and joined[-1][0] == task:
            joined[-1] = (task, joined[-1][1] + steps)
        else:
            joined.append((task, steps))
    return tuple(joined)


def _key(departures: Departures, plan: Plan) -> tuple[object, ...]:
    return tuple(sorted(departures.items())), plan


def _guessed(plan: Plan) -> tuple[Move, ...]:
    """Moves for a caller that tells none: every segment that is not a mere end of the one before may be a pre-emption."""
    moves, step = [], 0
    for (before, taken), (task, _) in itertools.pairwise(plan):
        step += taken
        moves.append(Move(step, task, before, preempts=True, lowest=task))
    return tuple(moves)

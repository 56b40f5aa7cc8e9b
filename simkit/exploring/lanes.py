"""Lanes: so many runs of a portfolio of schedule strategies under swarm masks, one after the other in one process.

The strategies learn from run to run, so a lane is not divided; lanes know nothing of each other, and may run anywhere. Some
runs are healed: after a while all faults end, the schedule is fair from then on, and the program must come to its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from simkit.exploring.jobs import Job, Ran, Task, failure_of, made, run_on, tape_of
from simkit.exploring.kinds import CALM, PATIENCE
from simkit.patience import LivenessError, patience_for
from simkit.strategies import Portfolio, portfolio
from simkit.strategy import Fifo, ReplaySchedule, Strategy, TaskView
from simkit.tape import Site, Stream, Tape
from simkit.world import Outcome, World, run

__all__ = ["LANE", "Lane", "is_healed", "run_lane", "settled"]

#: Runs of one lane.
LANE = 50
#: One run in so many is healed.
HEALED = 10
#: A healed program gets at least so many times as long as its default run took.
_TIMES = 10
#: By how much a bound grows before liveness fails.
_AGAIN = 4
_SEEDS = 1 << 64


@attrs.frozen
class Lane:
    """Runs `first` to `first + runs - 1` of a stage."""

    stage: str
    first: int
    runs: int
    #: Of every so many runs the last one is healed; 0: none.
    heals: int
    #: Virtual time that the default run took.
    default_ns: int


def is_healed(number: int, heals: int) -> bool:
    """Whether run `number` of a stage is a healed one."""
    return heals > 0 and number % heals == heals - 1


def run_lane(task: Task, lane: Lane) -> list[Ran]:
    """Make the runs of a lane."""
    strategies = portfolio()
    chances = Tape.from_seed((task.seed % _SEEDS) * _SEEDS + lane.first)
    found = []
    for number in range(lane.first, lane.first + lane.runs):
        healed = is_healed(number, lane.heals)
        stream = chances.stream(f"{lane.stage} {number}")
        departures = settled(stream, lane.default_ns) if healed else {}
        drawn = (task.seed % _SEEDS) * _SEEDS + number
        job = Job(lane.stage, departures, drawn=drawn, healed=healed)
        found.append(_one(task, job, strategies, stream))
    return found


def settled(stream: Stream, default_ns: int) -> dict[Site, int]:
    """The settings of a healed run: when its faults end, at most after twice the default run's time; how long it has then."""
    calm_ns = 1 + stream.choose("calm", 2 * default_ns + 1)
    return {CALM: calm_ns, PATIENCE: patience_for(_TIMES * default_ns)}


def _one(task: Task, job: Job, strategies: Portfolio, stream: Stream) -> Ran:
    strategy = strategies.begin(stream)
    assert strategy is not None, "a portfolio has no end"
    tape = tape_of(task, job)
    if not job.healed:
        outcome = run_on(task, tape, strategy)
        strategies.end(outcome)
        return made(task, job, tape, outcome)
    outcome, tape = healed(task, tape, strategy)
    strategies.end(outcome)
    return finished(task, job, tape, outcome)


def healed(task: Task, tape: Tape, strategy: Strategy) -> tuple[Outcome[Any], Tape]:
    """A run that is fair once its world is calm; the tape that it was made on."""
    fair = Fair(strategy)

    async def main(world: World) -> Any:
        fair.world = world
        return await task.program(world)

    outcome = run(main, tape=tape, strategy=fair, limits=task.limits, kernel=task.kernel, guard=task.guard)
    return outcome, tape


def finished(task: Task, job: Job, tape: Tape, first: Outcome[Any]) -> Ran:
    """What came of a healed run; one that met its bound is made again with four times as much, and fails if it meets that."""
    if first.bound is None and not isinstance(first.error, LivenessError):
        return made(task, job, tape, first)
    departures = dict(first.departures)
    departures[PATIENCE] = job.departures[PATIENCE] + 1
    again = Tape.opened(departures, entropy=tape.entropy)
    limits = attrs.evolve(task.limits, steps=task.limits.steps * _AGAIN)
    outcome = run_on(task, again, ReplaySchedule(first.schedule, then=Fifo()), limits)
    if outcome.bound is None:
        return made(task, job, again, outcome, more_runs=1)
    error = LivenessError(f"no end after {outcome.steps} steps, all faults being off (bound on {outcome.bound})")
    failure = failure_of(task, job, again, outcome, error)
    case = attrs.evolve(failure.case, options={**failure.case.options, "limits": {"steps": limits.steps}})
    ran = made(task, job, again, outcome, more_runs=1)
    return attrs.evolve(ran, failure=attrs.evolve(failure, case=case), bound=None)


class Fair:
    """Another strategy while things go wrong, first come first served once they do not."""

    every_step = True

    def __init__(self, inner: Strategy) -> None:
        self.world: World | None = None
        self._inner = inner
        self._index = getattr(inner, "index", None)
        self._asked = bool(getattr(inner, "every_step", False))

    def pick(self, runnable: Sequence[TaskView], step: int) -> int:
        """Return the index of the task to run."""
        if self.world is not None and self.world.is_calm:
            return 0
        if len(runnable) == 1 and not self._asked:
            return 0
        return self._inner.pick(runnable, step) if self._index is None else int(self._index(len(runnable), step))

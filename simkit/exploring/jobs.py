"""One run of an exploration, in whatever process: what is to be done (`Job`), and what came of it (`Ran`), both picklable."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import attrs

from simkit._kernel.deadlock import DeadlockError
from simkit.case import Case
from simkit.errors import told
from simkit.exploring.kinds import Without
from simkit.exploring.masks import SwarmMask
from simkit.exploring.plan import Strike, later
from simkit.points import PointCount
from simkit.searching import Failing, Program, what_was_raised
from simkit.shrinking import LooseSchedule, fingerprint_of
from simkit.strategies import RedundantError
from simkit.strategy import ReplayDivergedError, Segment, Strategy, StrategyError
from simkit.tape import Asked, Journal, Site, Tape
from simkit.world import KernelName, Limits, Outcome, run

__all__ = ["Failure", "Job", "Ran", "Task", "do", "made", "tape_of"]

_TEXT_MAX = 300
#: How many of the strikes that come after the first are kept, for pairs.
LATER_MAX = 64


@attrs.frozen
class Task:
    """What all runs of an exploration share."""

    program: Program
    name: str  # what cases call the program
    seed: int
    failing: Failing = what_was_raised
    without: Without = Without()  # noqa: RUF009  # frozen
    limits: Limits = Limits()  # noqa: RUF009  # frozen
    kernel: KernelName = "fast"
    guard: bool = True


@attrs.frozen
class Job:
    """One run on an open tape."""

    stage: str
    departures: Mapping[Site, int] = attrs.field(factory=dict)
    #: Where drawn choices come from, and which mask; None: nothing is drawn.
    drawn: int | None = None
    #: Followed loosely; None is first come, first served.
    schedule: tuple[Segment, ...] | None = None
    #: Whether to keep the strikes that come after the given ones.
    looks: bool = False
    healed: bool = False


@attrs.frozen
class Failure:
    """How a run failed."""

    fingerprint: str
    what: Literal["raised", "deadlock", "liveness"]
    text: str
    case: Case


@attrs.frozen
class Ran:
    """What came of a run."""

    stage: str
    digest: str
    #: What it did, coarsely: how it ended, which faults struck, which named points held, about how often.
    behaviour: str
    steps: int
    bound: str | None
    failure: Failure | None
    #: Of a run that met a bound, to look at.
    unfinished: Case | None
    departures: Mapping[Site, int]
    schedule: tuple[Segment, ...]
    points: Mapping[str, PointCount]
    healed: bool = False
    #: Whether a strategy dropped it, as others cover the rest.
    redundant: bool = False
    #: Further runs that it took, such as the second one of a healed run.
    more_runs: int = 0
    later: tuple[Strike, ...] = ()
    #: How many states the power loss could choose from, if one struck that chooses.
    states: int = 0
    asked: Asked = attrs.field(factory=dict)
    taken: tuple[Segment, ...] = ()
    features: frozenset[str] = frozenset()
    #: After how many steps it first took each edge of the program's code.
    moments: Mapping[str, int] = attrs.field(factory=dict, repr=False)
    #: Why its features do not say which code ran; empty when they do.
    blind: str = ""


def do(task: Task, job: Job) -> Ran:
    """Make the run of a job."""
    strategy = None if job.schedule is None else LooseSchedule(job.schedule)
    tape = tape_of(task, job)
    return made(task, job, tape, run_on(task, tape, strategy), strategy)


def tape_of(task: Task, job: Job) -> Tape:
    """The open tape of a job."""
    if job.drawn is None:
        return Tape.opened(job.departures, entropy=task.seed, journal=Journal() if job.looks else None)
    mask = SwarmMask(job.drawn, task.without)
    return Tape.opened(job.departures, entropy=job.drawn, draws=True, mask=mask)


def run_on(task: Task, tape: Tape, strategy: Strategy | None, limits: Limits | None = None) -> Outcome[Any]:
    """Run the program once."""
    return run(
        task.program,
        tape=tape,
        strategy=strategy,
        limits=task.limits if limits is None else limits,
        kernel=task.kernel,
        guard=task.guard,
    )


def made(task: Task, job: Job, tape: Tape, outcome: Outcome[Any], strategy: Strategy | None = None, **more: Any) -> Ran:
    """What came of the run of a job. What the explorer itself did wrong is raised."""
    error = outcome.error
    if error is not None and (isinstance(error, StrategyError | ReplayDivergedError) or _is_changed(error)):
        raise error
    redundant = isinstance(error, RedundantError)
    failing = task.failing(outcome) if outcome.bound is None and not redundant else None
    failure = None if failing is None else failure_of(task, job, tape, outcome, failing)
    keeps = isinstance(strategy, LooseSchedule)
    return Ran(
        stage=job.stage,
        digest=outcome.digest,
        behaviour=behaviour_of(outcome, failure),
        steps=outcome.steps,
        bound=outcome.bound,
        failure=failure,
        unfinished=None if outcome.bound is None else _unfinished(task, job, tape, outcome),
        departures=outcome.departures,
        schedule=strategy.plan() if isinstance(strategy, LooseSchedule) else (),
        points=outcome.points,
        healed=job.healed,
        redundant=redundant,
        later=_later(task, job, tape),
        states=_states(tape),
        asked=tape.asked() if keeps else {},
        taken=outcome.schedule if keeps else (),
        **more,
    )


def failure_of(task: Task, job: Job, tape: Tape, outcome: Outcome[Any], error: BaseException) -> Failure:
    """The failure of a run, with its case."""
    from simkit.patience import LivenessError

    what: Literal["raised", "deadlock", "liveness"] = "deadlock" if isinstance(error, DeadlockError) else "raised"
    if isinstance(error, LivenessError) or (job.healed and what == "deadlock"):
        what = "liveness"
    case = _case(task, job, tape, outcome, type(error).__name__)
    return Failure(repr(fingerprint_of(error)), what, worded(error), case)


def _unfinished(task: Task, job: Job, tape: Tape, outcome: Outcome[Any]) -> Case:
    """The case of a run that met a bound; replayed within the same bounds it meets that again."""
    case = _case(task, job, tape, outcome, f"bound on {outcome.bound}")
    return attrs.evolve(case, options={**case.options, "limits": {"steps": task.limits.steps}})


def _case(task: Task, job: Job, tape: Tape, outcome: Outcome[Any], anomaly: str) -> Case:
    options = {"open": True, "stage": job.stage}
    return Case.of_program(outcome, task.name, seed=tape.entropy, anomaly=anomaly, options=options)


def worded(error: BaseException) -> str:
    """An exception in one line; of a group, its members."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(dict.fromkeys(worded(one) for one in error.exceptions))[:_TEXT_MAX]
    return told(error).partition("\n")[0][:_TEXT_MAX].rstrip(": ")


def behaviour_of(outcome: Outcome[Any], failure: Failure | None) -> str:
    """A digest of what a run did, coarse enough that different runs do the same; counts in steps of a factor of two."""
    parts: list[object] = [outcome.bound, "" if failure is None else failure.fingerprint]
    parts += [(name, count.reached.bit_length(), count.held.bit_length()) for name, count in outcome.points.items()]
    parts += sorted((what, times.bit_length()) for what, times in outcome.fired.items())
    parts += sorted({(process.host.name, process.name, str(process.status)) for process in outcome.failures})
    return hashlib.blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def _later(task: Task, job: Job, tape: Tape) -> tuple[Strike, ...]:
    journal = tape.journal
    if journal is None:
        return ()
    struck = [index for index, visit in enumerate(journal.sites) if visit.site in job.departures]
    return tuple(later(journal.sites, struck[-1] + 1, task.without, LATER_MAX)) if struck else ()


def _states(tape: Tape) -> int:
    found = _state_sites(tape.journal.sites if tape.journal is not None else ())
    return max((len(values) + 1 for values in found), default=0)


def _state_sites(visits: Sequence[Any]) -> Iterator[Sequence[int]]:
    return (visit.values for visit in visits if visit.site[1] == "!state")


def _is_changed(error: BaseException) -> bool:
    return getattr(getattr(error, "problem", None), "code", "") == "program-changed"

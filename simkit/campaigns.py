"""Campaigns: many seeds of one program, over as many processes or machines as there are; the result does not depend on them.

`campaign(program, 10_000, jobs=2)` runs seeds 0 to 9,999 and adds up what they showed. Seeds go to the processes in
batches and come back in order, so that the same seeds give the same campaign, however many processes worked on it.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import attrs

from simkit._options import need_program, need_seconds, need_seed, need_whole
from simkit.case import Case, program_name
from simkit.discovery import Discovery, Point
from simkit.errors import told, wrong
from simkit.guard import keeping
from simkit.parallel import Crew, Lost
from simkit.point_coverage import Coverage, DeclaredPoint
from simkit.points import PointCount
from simkit.settings import parse_seeds
from simkit.strategy import Fifo, RandomWalk, Strategy
from simkit.tape import Stream, Tape
from simkit.testing import raised_in
from simkit.trials import MAKERS, is_known
from simkit.world import Limits, Outcome, World, run

__all__ = ["Campaign", "Failure", "Inconclusive", "campaign"]

Program = Callable[[World], Awaitable[Any]]
#: Called after every batch with what is known so far.
Told = Callable[["Campaign"], object]
_BATCH = 16
#: So much of the words of an error is kept.
_TEXT_MAX = 300
_STALL_S = 60.0
_LIMITS = Limits()


class StrategyMaker(Protocol):
    """Makes the strategy of one run; importable when there are several processes."""

    def __call__(self, stream: Stream, /) -> Strategy | None:
        """`stream` is "schedule" of the run's tape."""
        ...


@attrs.frozen
class Failure:
    """A seed that failed."""

    seed: int
    error: str  # as Python prints it in one line
    case: Case
    path: Path | None = None  # where the case was saved


@attrs.frozen
class Inconclusive:
    """A seed of which nothing is known: it met a bound, or its process was lost. Never a pass."""

    seed: int
    why: str
    stack: str = ""


@attrs.frozen
class Campaign:
    """What the seeds showed."""

    runs: int  # seeds that were run to their end, or to a bound
    failures: tuple[Failure, ...]
    inconclusive: tuple[Inconclusive, ...]
    steps: int
    events: int
    virtual_ns: int
    fired: Mapping[str, int]  # faults that really happened
    points: Coverage
    #: (runs, distinct traces, chance that the next is new); see `simkit.discovery`.
    curve: tuple[Point, ...]

    @property
    def passed(self) -> bool:
        """Whether there is evidence, and all of it is good."""
        return self.runs > 0 and not self.failures and not self.inconclusive

    def never(self, points: Iterable[DeclaredPoint] = ()) -> list[DeclaredPoint]:
        """Named points that no run has hit, of those that were reached and of `declared(…)` ones."""
        return self.points.never(points)

    def __str__(self) -> str:
        faults = ", ".join(f"{name} {times}×" for name, times in sorted(self.fired.items())) or "none"
        rows = [
            f"{self.runs} runs, {self.steps} steps, {self.events} events, {self.virtual_ns / 1e9:.0f} virtual seconds",
            f"faults that happened: {faults}",
            *(f"seed {one.seed} fails: {one.error}" for one in self.failures),
            *(f"seed {one.seed} is inconclusive: {one.why}" for one in self.inconclusive),
            *(f"never hit: {point.name} ({point.kind}, {point.where})" for point in self.never()),
        ]
        return "\n".join(rows)


def campaign(
    program: Program,
    seeds: int | str | Sequence[int] = 1000,
    *,
    strategy: StrategyMaker | str | None = RandomWalk,
    jobs: int = 1,
    executor: Executor | None = None,
    limits: Limits = _LIMITS,
    processes_may_fail: bool = False,
    stop_after: int | None = None,
    stall_s: float = _STALL_S,
    save: Path | None = None,
    target: str = "",
    told: Told | None = None,
) -> Campaign:
    """Run `program(world)` once for each seed.

    Args:
        program: what to run; at the top level of a module when there are several processes.
        seeds: how many (from 0), or which, as a sequence or a range in words ("100-199").
        strategy: makes who takes the next step, or "random" or "fifo"; None is first come, first served.
        jobs: processes of our own; 1 is this one.
        executor: processes or machines of somebody else, such as Dask distributed's; `jobs` does not count then.
        limits: bounds of each run; a run that meets one is inconclusive.
        processes_may_fail: whether a process may end with an exception of its own; else that is a failure.
        stop_after: no more seeds are run after so many failures; None: all are run.
        stall_s: seconds on the wall for one run in a process of our own; then the process is ended, the seed inconclusive.
        save: folder for the cases of failing runs.
        target: what cases call the program; default: its qualified name.
        told: is given the campaign so far, now and then.

    Raises: SimkitError when the program cannot be sent to other processes.
    """
    seeds = _seeds_of(seeds)
    strategy = _maker_of(strategy)
    _check(program, seeds, jobs, stop_after, stall_s)
    numbers: Sequence[int] = range(seeds) if isinstance(seeds, int) else seeds
    if len(numbers) == 0:
        raise ValueError("a campaign has at least one seed: without evidence nothing passes")
    name = target or program_name(program)
    one_run = functools.partial(_ran, program, strategy, limits, processes_may_fail, name)
    adding = _Adding(save)
    module = getattr(program, "__module__", None)
    preload = [module] if module not in {None, "__main__"} else []
    in_a_row = keeping() if jobs == 1 and executor is None else contextlib.nullcontext()
    with Crew(jobs, executor=executor, preload=preload, stall_s=stall_s) as crew, in_a_row:
        for count, result in enumerate(crew.map(one_run, numbers, batch=_batch(numbers, jobs, executor)), 1):
            adding.add(result)
            if told is not None and count % _BATCH == 0:
                told(adding.result())
            if stop_after is not None and len(adding.failures) >= stop_after:
                break
    return adding.result()


def _seeds_of(seeds: int | str | Sequence[int]) -> int | Sequence[int]:
    if not isinstance(seeds, str):
        return seeds
    try:
        return parse_seeds(seeds)
    except ValueError as error:
        raise wrong("campaign: seeds", seeds, 'how many, or which: [1, 5], or "100-199"') from error


def _maker_of(strategy: StrategyMaker | str | None) -> StrategyMaker | None:
    """Of a name, those that need no other run."""
    if isinstance(strategy, str) and strategy in MAKERS:
        return MAKERS[strategy]
    if isinstance(strategy, str) or (strategy is not None and not callable(strategy)):
        learns = is_known(strategy)
        hint = (
            "it learns from run to run, and a campaign's runs know nothing of each other: use simkit.search"
            if learns
            else ""
        )
        expected = f"{' or '.join(MAKERS)}, or what makes a strategy of a stream, such as simkit.RandomWalk"
        raise wrong("campaign: strategy", strategy, expected, hint)
    return strategy


def _check(program: Program, seeds: object, jobs: int, stop_after: int | None, stall_s: float) -> None:
    """Refuse arguments with which nothing would be run, or be found out only later."""
    need_program("campaign: program", program)
    need_whole("campaign: jobs", jobs, 1)
    need_seconds("campaign: stall_s", stall_s)
    if stop_after is not None:
        need_whole("campaign: stop_after", stop_after, 1)
    if not isinstance(seeds, Sequence) or isinstance(seeds, str | bytes):
        need_whole("campaign: seeds (how many, or which)", seeds)
    elif not isinstance(seeds, range):
        for seed in seeds:
            need_seed("campaign: a seed", seed)


def _batch(numbers: Sequence[int], jobs: int, executor: Executor | None) -> int:
    """So many seeds at once that messages cost nothing, and so few that everybody is busy to the end."""
    width = jobs if executor is None else (os.cpu_count() or 1)
    return max(1, min(_BATCH, len(numbers) // (width * 4)))


# ---- one seed, in whatever process


class _Ran(NamedTuple):
    """What one run showed, as small as it can be sent: a tuple, as thousands of them are."""

    seed: int
    digest: str
    steps: int
    events: int
    now_ns: int
    bound: str | None
    error: str
    case: Case | None
    fired: Mapping[str, int]
    points: Mapping[str, PointCount]


def _ran(
    program: Program,
    strategy: StrategyMaker | None,
    limits: Limits,
    processes_may_fail: bool,
    target: str,
    seed: int,
) -> _Ran:
    tape = Tape.from_seed(seed)
    chosen = None if strategy is None else strategy(tape.stream("schedule"))
    outcome = run(program, tape=tape, strategy=Fifo() if chosen is None else chosen, limits=limits)
    error = raised_in(outcome, processes_may_fail=processes_may_fail)
    return _Ran(
        seed=seed,
        digest=outcome.digest,
        steps=outcome.steps,
        events=len(outcome.trace),
        now_ns=outcome.now_ns,
        bound=outcome.bound,
        error="" if error is None else told(error).partition("\n")[0][:_TEXT_MAX],
        case=None if error is None else _case(outcome, error, seed, target, processes_may_fail=processes_may_fail),
        fired={name: times for name, times in outcome.fired.items() if times},
        points=outcome.points,
    )


def _case(outcome: Outcome[Any], error: BaseException, seed: int, target: str, *, processes_may_fail: bool) -> Case:
    options = {"processes_may_fail": processes_may_fail}
    return Case.of_program(outcome, target, seed=seed, anomaly=type(error).__name__, options=options)


# ---- adding up


class _Adding:
    """The campaign so far."""

    def __init__(self, save: Path | None) -> None:
        self.failures: list[Failure] = []
        self._save = save
        self._inconclusive: list[Inconclusive] = []
        self._discovery = Discovery()
        self._coverage = Coverage()
        self._fired: dict[str, int] = {}
        self._runs = self._steps = self._events = self._ns = 0

    def add(self, ran: _Ran | Lost[int]) -> None:
        """One more seed."""
        if isinstance(ran, Lost):
            self._inconclusive.append(Inconclusive(ran.item, ran.why, ran.stack))
            return
        self._runs += 1
        self._steps += ran.steps
        self._events += ran.events
        self._ns += ran.now_ns
        self._discovery.saw(ran.digest)
        if ran.points:
            self._coverage = self._coverage.merge(Coverage(1, ran.points))
        for name, times in ran.fired.items():
            self._fired[name] = self._fired.get(name, 0) + times
        if ran.case is not None:
            path = None if self._save is None else ran.case.save(self._save)
            self.failures.append(Failure(ran.seed, ran.error, ran.case, path))
        elif ran.bound is not None:
            why = f"the run met its bound on {ran.bound} after {ran.steps} steps"
            self._inconclusive.append(Inconclusive(ran.seed, why))

    def result(self) -> Campaign:
        """As a value."""
        return Campaign(
            runs=self._runs,
            failures=tuple(self.failures),
            inconclusive=tuple(self._inconclusive),
            steps=self._steps,
            events=self._events,
            virtual_ns=self._ns,
            fired=dict(sorted(self._fired.items())),
            points=attrs.evolve(self._coverage, runs=self._runs),
            curve=self._discovery.curve(),
        )

"""Search: run a program under one schedule after another until it fails, or there is nothing left, or enough.

`search` returns `Found` or `NotFound`, both with counts and the curve of discovery. A failing run becomes a `Case` for
`simkit.replay` to run again. What a run's failure is, `failing` decides: unless told otherwise, what main raised or a deadlock.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

import attrs

from simkit._options import need_program, need_seed, need_whole
from simkit.case import Case, program_name
from simkit.discovery import Discovery, Point
from simkit.errors import SimkitError, shown_of, told, wrong
from simkit.guard import keeping
from simkit.point_coverage import Coverage, DeclaredPoint
from simkit.strategies import NAMES, Exploration, RedundantError, named
from simkit.strategy import ReplayDivergedError, Strategy, StrategyError
from simkit.tape import Stream, Tape
from simkit.world import KernelName, Limits, Outcome, World, run

Program = Callable[[World], Awaitable[Any]]
#: What is wrong with a run: an exception, or None.
Failing = Callable[[Outcome[Any]], BaseException | None]
_RUNS_MAX = 10_000
#: Far above what a program that can be searched takes: a run that loops for ever should not hold up the others.
_LIMITS = Limits(steps=100_000)
_SEEDS = 1 << 64


@attrs.frozen
class Counts:
    """What a search did."""

    runs: int
    steps: int
    #: Runs that differ in their trace; at least, when there were too many to keep.
    schedules: int
    #: Runs that met a bound: neither passed nor failed.
    inconclusive: int
    #: Runs dropped half-way, as others cover the rest.
    redundant: int
    #: (runs, distinct schedules, chance that the next is new), at runs 1, 2, 4, … and the last.
    curve: tuple[Point, ...]
    #: How often the program's named points were hit, over all runs.
    points: Coverage = attrs.field(factory=Coverage)

    @property
    def chance_of_new(self) -> float:
        """The chance that another run would show a schedule that was not seen: Good and Turing's estimate."""
        return self.curve[-1].chance_of_new if self.curve else 1.0

    def never(self, points: Iterable[DeclaredPoint] = ()) -> list[DeclaredPoint]:
        """Named points that no run has hit, of those that were reached and of `declared(…)` ones."""
        return self.points.never(points)

    def __str__(self) -> str:
        runs = "1 run" if self.runs == 1 else f"{self.runs} runs"
        schedules = "1 schedule" if self.schedules == 1 else f"{self.schedules} schedules"
        steps = "1 step" if self.steps == 1 else f"{self.steps} steps"
        dropped = f", {self.redundant} dropped as redundant" if self.redundant else ""
        unknown = f", {self.inconclusive} inconclusive" if self.inconclusive else ""
        return f"{runs}, {schedules}, {steps}{dropped}{unknown}"


@attrs.frozen
class Found:
    """A failing run."""

    strategy: str
    counts: Counts
    error: BaseException = attrs.field(repr=shown_of)
    case: Case
    path: Path | None = None  # where the case was saved
    program: str = "program"  # as its function is called, for a line to type

    def __bool__(self) -> bool:
        return True

    def __str__(self) -> str:
        """What was found, and how to have it again."""
        error = told(self.error).partition("\n")[0]
        again, kept = "found.case", "case not saved: search(…, save=folder) keeps it"
        if self.path is not None:
            again, kept = repr(str(self.path)), f"case {self.case.id}, saved as {self.path}"
        return "\n".join(
            [
                f"{self.case.target['program']} fails: {error}",
                f"found by {self.strategy} after {self.counts}",
                kept,
                f"again: simkit.replay({again}, {self.program})",
            ]
        )


@attrs.frozen
class NotFound:
    """No run failed."""

    strategy: str
    counts: Counts
    #: Whether the strategy has nothing left: then no schedule that it covers fails.
    exhausted: bool

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        """What was tried, and how much that says."""
        left = f"the chance that another run shows a new schedule is {self.counts.chance_of_new:.3f}"
        if self.exhausted:
            left = "nothing is left to try"
        return f"no run fails: {self.counts} by {self.strategy}; {left}"


def what_was_raised(outcome: Outcome[Any]) -> BaseException | None:
    """A run fails when main raises, or the kernel finds a deadlock."""
    return outcome.error


def search(
    program: Program,
    strategy: Exploration | str = "portfolio",
    *,
    runs_max: int = _RUNS_MAX,
    seed: int = 0,
    failing: Failing = what_was_raised,
    limits: Limits = _LIMITS,
    kernel: KernelName = "fast",
    guard: bool = True,
    save: Path | None = None,
    target: str = "",
) -> Found | NotFound:
    """Run `program(world)` under the schedules of `strategy` until one fails; the same arguments give the same search.

    Args:
        program: what to run; everything it shares must be made anew in each run.
        strategy: an exploration or the name of one (`simkit.strategies.NAMES`).
        runs_max: no more runs than this.
        seed: where the schedules come from, and the tapes of the runs.
        failing: gives what is wrong with a run; default: what main raised, or a deadlock.
        limits: bounds of each run; a run that meets one is inconclusive.
        kernel: which loop, as for `run`.
        guard: as for `run`; a program that asks for no time and no chance is searched faster without.
        save: folder for the case of the failing run.
        target: what the case calls the program; default: its qualified name.

    Raises: SimkitError when an exhaustive strategy meets a program that does not repeat itself, or for an unknown name.
    """
    need_program("search: program", program)
    need_whole("search: runs_max", runs_max, 1)
    need_seed("search: seed", seed)
    exploration = named(strategy) if isinstance(strategy, str) else strategy
    if isinstance(exploration, type) or not (hasattr(exploration, "begin") and hasattr(exploration, "end")):
        raise wrong("search: strategy", strategy, f"an exploration of simkit.strategies, or one of {', '.join(NAMES)}")
    progress = _Progress(exploration, seed)
    failure: _Failure | None = None
    with keeping() if guard else contextlib.nullcontext():
        while failure is None and progress.runs < runs_max:
            chosen = progress.begin()
            if chosen is None:
                break
            world_seed = progress.world_seed
            tape = Tape.from_seed(world_seed)
            outcome = run(program, tape=tape, strategy=chosen, limits=limits, kernel=kernel, guard=guard)
            if progress.end(outcome):
                error = failing(outcome)
                failure = None if error is None else _Failure(error, world_seed, outcome)
    if failure is None:
        return NotFound(exploration.name, progress.counts(), progress.exhausted)
    case = failure.case(exploration.name, seed, target or program_name(program))
    path = None if save is None else case.save(save)
    return Found(exploration.name, progress.counts(), failure.error, case, path, _called(program))


class _Progress:
    """How far a search is."""

    def __init__(self, exploration: Exploration, seed: int) -> None:
        self.runs = 0
        self.exhausted = False
        self.world_seed = 0
        self._exploration = exploration
        self._seed = seed
        self._chances = Tape.from_seed(seed)
        self._systematic = bool(getattr(exploration, "systematic", False))
        self._unused = Stream(self._chances, "search")
        self._discovery = Discovery()
        self._steps = self._inconclusive = self._redundant = 0
        self._points = Coverage()

    def begin(self) -> Strategy | None:
        """The strategy of the next run."""
        number = 0 if self._exploration.same_world else self.runs
        self.world_seed = (self._seed % _SEEDS) * _SEEDS + number
        try:
            stream = self._unused if self._systematic else Stream(self._chances, f"search {self.runs}")
            chosen = self._exploration.begin(stream)
        except Exception as error:
            raise self._fault("beginning of", error) from error
        self.exhausted = chosen is None
        return chosen

    def end(self, outcome: Outcome[Any]) -> bool:
        """Count the run; say whether it came to an end of its own. What the exploration itself finds wrong is raised."""
        error = outcome.error
        if error is not None and _ends_the_search(error):
            raise error
        self.runs += 1
        self._steps += outcome.steps
        try:
            self._exploration.end(outcome)
        except Exception as raised:
            raise self._fault("end of", raised) from raised
        if error is not None and isinstance(error, RedundantError):
            self._redundant += 1
            return False
        if outcome.points:
            self._points = self._points.merge(Coverage(1, outcome.points))
        self._discovery.saw(None if self._systematic else outcome.digest)
        self._inconclusive += outcome.bound is not None
        return outcome.bound is None

    def _fault(self, part: str, error: Exception) -> SimkitError:
        """What a strategy raises outside its runs is its fault as well."""
        if isinstance(error, SimkitError):
            return error
        return StrategyError.of(self._exploration, f"the {part} run {self.runs} of a search", error)

    def counts(self) -> Counts:
        """What was done."""
        return Counts(
            runs=self.runs - self._redundant,
            steps=self._steps,
            schedules=self._discovery.distinct,
            inconclusive=self._inconclusive,
            redundant=self._redundant,
            curve=self._discovery.curve(),
            points=self._points,
        )


def _ends_the_search(error: BaseException) -> bool:
    """Whether it is the fault of the strategy, or of a program that does not repeat itself."""
    if isinstance(error, StrategyError | ReplayDivergedError):
        return True
    return isinstance(error, SimkitError) and error.problem.code == "program-changed"


@attrs.frozen
class _Failure:
    """A run that failed."""

    error: BaseException
    world_seed: int
    outcome: Outcome[Any]

    def case(self, strategy: str, search_seed: int, target: str) -> Case:
        """As a case."""
        anomaly, options = type(self.error).__name__, {"strategy": strategy, "search_seed": search_seed}
        return Case.of_program(self.outcome, target, seed=self.world_seed, anomaly=anomaly, options=options)


def _called(program: Program) -> str:
    """The name of its function; of what has none, what it is."""
    name = str(getattr(program, "__name__", ""))
    return name if name.isidentifier() else "program"

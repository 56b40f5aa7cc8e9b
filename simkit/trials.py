"""The runs of one test: each by itself, or all as one exploration that learns from them.

Seed `n` of an exploration is its run number `n`, and that alone says what it is: an exploration begins anew every `BLOCK`
runs, so one seed is had again by making the runs of its block up to it, whatever seeds were asked for. One that needs the
same world in each run (the exhaustive ones) gets that of seed 0, never begins anew, and ends when nothing is left.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from simkit.errors import SimkitError

if TYPE_CHECKING:
    from simkit.strategies import Exploration
    from simkit.strategy import Strategy
    from simkit.tape import Stream
    from simkit.world import Limits, Outcome, World  # noqa: TC004  # nobody reads these annotations

#: Makes the strategy of one run from the stream "schedule" of its tape.
StrategyMaker = Callable[["Stream"], "Strategy | None"]
Program = Callable[["World"], Awaitable[Any]]
#: Runs after which what was learnt is forgotten.
BLOCK = 250


def _random(stream: Stream) -> Strategy:
    from simkit.strategy import RandomWalk

    return RandomWalk(stream)


def _fifo(_stream: Stream) -> None:
    return None


#: By name, those that need no other run; the others are those of `simkit.strategies`.
MAKERS: Mapping[str, StrategyMaker] = {"random": _random, "fifo": _fifo}


@attrs.frozen
class Trial:
    """One run of a test."""

    seed: int
    world_seed: int  # of its tape
    outcome: Outcome[Any] = attrs.field(repr=False)


@attrs.define
class Explored:
    """How far an exploration came."""

    strategy: str
    runs: int = 0  # all that were made, also those that nobody asked for
    redundant: int = 0  # dropped half-way, as others cover the rest
    exhausted: bool = False  # whether nothing is left
    same_world: bool = False


def is_known(name: object) -> bool:
    """Whether there is a strategy of this name."""
    if isinstance(name, str) and name in MAKERS:
        return True
    from simkit.strategies import named

    try:
        named(str(name))
    except SimkitError:
        return False
    return True


def known_names() -> str:
    """The names that there are, for messages."""
    from simkit.strategies import NAMES

    return f"{', '.join(dict.fromkeys((*MAKERS, *NAMES)))}, pct and delays with another number"


def explores(strategy: str | StrategyMaker) -> bool:
    """Whether the runs of a strategy depend on each other."""
    return isinstance(strategy, str) and strategy not in MAKERS


def covers_one_world(strategy: str | StrategyMaker) -> bool:
    """Whether it is an exploration that counts on the same world in each run, and so cannot be split."""
    from simkit.strategies import named

    return isinstance(strategy, str) and explores(strategy) and named(strategy).same_world


def trials(
    program: Program,
    strategy: str | StrategyMaker,
    seeds: Iterable[int],
    limits: Limits,
    explored: list[Explored] | None = None,
) -> Iterator[Trial]:
    """Make the runs of `seeds`, in that order; in ascending order for an exploration.

    Args:
        program: the test.
        strategy: a name, or what makes the strategy of one run.
        seeds: which runs to give; an exploration makes those before them in their block as well.
        limits: of each run.
        explored: gets how far an exploration came, kept up to date.
    """
    if isinstance(strategy, str) and explores(strategy):
        book = Explored(strategy)
        if explored is not None:
            explored.append(book)
        yield from _exploration(program, book, sorted(dict.fromkeys(seeds)), limits)
        return
    make = MAKERS[strategy] if isinstance(strategy, str) else strategy
    for seed in seeds:
        yield _alone(program, make, seed, limits)


def _alone(program: Program, make: StrategyMaker, seed: int, limits: Limits) -> Trial:
    from simkit.tape import Tape
    from simkit.world import run

    tape = Tape.from_seed(seed)
    return Trial(seed, seed, run(program, tape=tape, strategy=make(tape.stream("schedule")), limits=limits))


def _exploration(program: Program, book: Explored, seeds: Iterable[int], limits: Limits) -> Iterator[Trial]:
    from simkit.strategies import named

    exploration, number = named(book.strategy), 0
    book.same_world = exploration.same_world
    for seed in seeds:
        if not book.same_world and number <= seed // BLOCK * BLOCK:
            exploration, number = named(book.strategy), seed // BLOCK * BLOCK
        for run_number in range(number, seed + 1):
            trial = _next(program, exploration, run_number, limits)
            if trial is None:
                book.exhausted = True
                return
            book.runs += 1
            if _is_redundant(trial):
                book.redundant += 1
            elif run_number == seed:
                yield trial
        number = seed + 1


def _next(program: Program, exploration: Exploration, number: int, limits: Limits) -> Trial | None:
    """Run number `number` of an exploration; None when nothing is left. Raises what it finds wrong itself."""
    from simkit.strategy import ReplayDivergedError, StrategyError
    from simkit.tape import Tape
    from simkit.world import run

    strategy = exploration.begin(Tape.from_seed(number).stream("schedule"))
    if strategy is None:
        return None
    world_seed = 0 if exploration.same_world else number
    outcome = run(program, tape=Tape.from_seed(world_seed), strategy=strategy, limits=limits)
    error = outcome.error
    if isinstance(error, StrategyError | ReplayDivergedError):
        raise error
    if isinstance(error, SimkitError) and error.problem.code == "program-changed":
        raise error
    exploration.end(outcome)
    return Trial(number, world_seed, outcome)


def _is_redundant(trial: Trial) -> bool:
    from simkit.strategies import RedundantError

    return isinstance(trial.outcome.error, RedundantError)

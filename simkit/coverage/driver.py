"""`guided`: run a program under one mutated tape after another, keep what shows something new, until a run fails.

The first run is the default one. One run in eight is drawn afresh, so that what no mutation leads to is met as well. With
`feedback=False` nothing is learnt from a run: the same changes to the default run alone, for comparison.
"""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from typing import Any

import attrs

from simkit._options import need_program, need_seed, need_whole
from simkit.case import Case, program_name
from simkit.coverage.corpus import Corpus
from simkit.coverage.features import EVERY, Features
from simkit.coverage.mutation import Mutant, mutate
from simkit.coverage.scope import core
from simkit.discovery import Discovery
from simkit.searching import Counts, Failing, Found, NotFound, Program, what_was_raised
from simkit.shrinking.loose import LooseSchedule
from simkit.strategy import RandomWalk, Strategy
from simkit.tape import Tape
from simkit.world import KernelName, Limits, Outcome, run

NAME = "guided"
_LIMITS = Limits(steps=100_000)
#: One run in so many is drawn afresh.
_AFRESH = 8
_SEEDS = 1 << 64


@attrs.frozen
class Guided:
    """What a guided search came to."""

    result: Found | NotFound
    corpus: Corpus
    #: (run, features that any run up to it has shown), for each run that showed something new.
    curve: tuple[tuple[int, int], ...]
    runs_with_edges: int
    #: Why edges were not collected; empty when they were.
    blind: str


def guided(
    program: Program,
    seed: int = 0,
    runs: int = 1000,
    *,
    corpus: Corpus | None = None,
    feedback: bool = True,
    failing: Failing = what_was_raised,
    prefixes: Iterable[str | PathLike[str]] = (),
    every: int = EVERY,
    limits: Limits = _LIMITS,
    kernel: KernelName = "fast",
    guard: bool = True,
    target: str = "",
) -> Guided:
    """Search for a run of `program(world)` that fails; the same arguments give the same search.

    Args:
        program: what to run; everything that it shares must be made anew in each run.
        seed: where the mutations come from, and the meaningless bytes of all runs.
        runs: no more runs than this.
        corpus: where to go on, and what is added to; its tapes are run first, as the program may have changed since.
        feedback: whether what a run shows decides what is changed next.
        failing: gives what is wrong with a run; default: what main raised, or a deadlock.
        prefixes: files and folders whose code counts besides the program's own, see `Features`.
        every: edges are collected in every so many runs.
        limits, kernel, guard: as for `run`.
        target: what the case calls the program; default: its qualified name.
    """
    need_program("guided: program", program)
    need_whole("guided: runs", runs, 1)
    need_seed("guided: seed", seed)
    known: list[Mutant] = [entry.tape for entry in corpus or ()]
    search = _Search(seed, corpus=Corpus() if corpus is None else corpus, feedback=feedback)
    failure: Case | None = None
    error: BaseException | None = None
    with Features.of(program, prefixes=prefixes, every=every) as features:
        while failure is None and search.runs < runs:
            given = known[search.runs] if search.runs < len(known) else None
            tape, strategy = search.next(given)
            outcome = run(program, tape=tape, strategy=strategy, limits=limits, kernel=kernel, guard=guard)
            search.learn(outcome, tape, strategy, features)
            error = failing(outcome) if outcome.bound is None else None
            if error is not None:
                failure = _case(outcome, error, tape, seed, target or program_name(core(program)))
        blind, with_edges = features.blind, features.runs_with_edges
    result: Found | NotFound = NotFound(NAME, search.counts(), exhausted=False)
    if failure is not None and error is not None:
        result = Found(NAME, search.counts(), error, failure)
    return Guided(result, search.corpus, tuple(search.curve), with_edges, blind)


class _Search:
    """How far a search is."""

    def __init__(self, seed: int, *, corpus: Corpus, feedback: bool) -> None:
        self.corpus = corpus
        self.runs = 0
        self.curve: list[tuple[int, int]] = []
        self._seed = seed
        self._feedback = feedback
        self._random = Tape.from_seed(seed).stream(NAME).random_source("mutations")
        self._discovery = Discovery()
        self._steps = self._inconclusive = 0

    def next(self, given: Mutant | None) -> tuple[Tape, Strategy]:
        """The tape and the strategy of the next run: a known one, the default one, now and then a drawn one, a mutant."""
        number, self.runs = self.runs, self.runs + 1
        if given is None and number and number % _AFRESH == 0:
            tape = Tape.from_seed(self._seed * _SEEDS + number)
            walks = number % (2 * _AFRESH) == 0
            return tape, RandomWalk(tape.stream("schedule")) if walks else LooseSchedule()
        departures, schedule = given or mutate(self.corpus, self._random, {})
        return Tape.from_departures(departures, entropy=self._seed), LooseSchedule(schedule)

    def learn(self, outcome: Outcome[Any], tape: Tape, strategy: Strategy, features: Features) -> None:
        """Count a run, and keep its tape if it showed something new; without feedback only the first one is."""
        self._steps += outcome.steps
        self._inconclusive += outcome.bound is not None
        self._discovery.saw(outcome.digest)
        if len(self.corpus) and not self._feedback:
            return
        plan = strategy.plan() if isinstance(strategy, LooseSchedule) else outcome.schedule
        new = self.corpus.offer(
            outcome.departures,
            plan,
            features.take(),
            asked=tape.asked(),
            taken=outcome.schedule,
            moments=features.moments,
        )
        if new:
            self.curve.append((self.runs, len(self.corpus.hits)))

    def counts(self) -> Counts:
        """What was done."""
        return Counts(
            runs=self.runs,
            steps=self._steps,
            schedules=self._discovery.distinct,
            inconclusive=self._inconclusive,
            redundant=0,
            curve=self._discovery.curve(),
        )


def _case(outcome: Outcome[Any], error: BaseException, tape: Tape, search_seed: int, target: str) -> Case:
    options = {"strategy": NAME, "search_seed": search_seed}
    return Case.of_program(outcome, target, seed=tape.entropy, anomaly=type(error).__name__, options=options)

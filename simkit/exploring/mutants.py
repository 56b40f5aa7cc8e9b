"""Rounds of mutants: a corpus of tapes that showed something new, changed a little, run, and offered again.

The mutants of a round come from the corpus as it was before the round, so that they may run anywhere; what they showed is
offered in their order. Half of them draw nothing; the other half draw whatever they do not depart in, under a swarm mask.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Sequence

import attrs

from simkit.coverage import Corpus, EdgesSkippedWarning, Features, mutate
from simkit.exploring.jobs import Job, Ran, Task, do, tape_of
from simkit.exploring.lanes import HEALED, finished, healed, is_healed, settled
from simkit.shrinking import LooseSchedule
from simkit.tape import Tape

__all__ = ["BATCH", "ROUND", "Breeder", "run_batch"]

#: Mutants of one round, and how many of them go to a process together.
ROUND = 32
BATCH = 8
_SEEDS = 1 << 64


def run_batch(task: Task, jobs: Sequence[Job]) -> list[Ran]:
    """Run mutants and watch what they show."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EdgesSkippedWarning)  # it is told in the report
        with Features.of(task.program) as features:
            for job in jobs:
                ran = _run(task, job)
                shown = features.take()
                found.append(attrs.evolve(ran, features=shown, moments=features.moments, blind=features.blind))
    return found


def _run(task: Task, job: Job) -> Ran:
    if not job.healed:
        return do(task, job)
    strategy = LooseSchedule(job.schedule or ())
    outcome, tape = healed(task, tape_of(task, job), strategy)
    return finished(task, job, tape, outcome)


class Breeder:
    """Makes the rounds of one exploration."""

    def __init__(self, task: Task, corpus: Corpus, *, heals: bool, default_ns: int) -> None:
        self.corpus = corpus
        self._task = task
        self._heals = HEALED if heals else 0
        self._default_ns = default_ns
        self._made = 0
        self._random = random.Random(f"mutants of {task.seed}")

    def round(self, most: int) -> list[Job]:
        """The next mutants, at most `most`."""
        return [self._job() for _ in range(min(ROUND, most))]

    def learn(self, ran: Ran) -> int:
        """Offer what a run showed, and return how much of it is new."""
        if ran.healed or ran.failure is not None:
            return 0
        return self.corpus.offer(
            ran.departures, ran.schedule, ran.features, asked=ran.asked, taken=ran.taken, moments=ran.moments
        )

    def _job(self) -> Job:
        number, self._made = self._made, self._made + 1
        departures, schedule = mutate(self.corpus, self._random, {})
        departures = self._task.without.kept(departures.items())
        drawn = None if number % 2 else (self._task.seed % _SEEDS) * _SEEDS + _SEEDS // 2 + number
        heals = is_healed(number, self._heals)
        if heals:
            stream = Tape.from_seed(self._task.seed).stream(f"mutant {number}")
            departures = {**departures, **settled(stream, self._default_ns)}
        return Job("mutations", departures, drawn=drawn, schedule=schedule, healed=heals)

"""Mutation: from a tape that showed something, another one that may show more. By what choices mean, not by their bytes.

A few changes at a time, more of them seldom. Every choice comes from the random given, so that a campaign repeats itself.
"""

from __future__ import annotations

import hashlib
import marshal
from collections.abc import Mapping
from random import Random

from simkit.coverage import schedules, tapes
from simkit.coverage.corpus import Corpus, Kept
from simkit.coverage.entry import Entry
from simkit.coverage.tapes import Ground
from simkit.strategy import Segment
from simkit.tape import Asked, Site

#: What a mutant is.
Mutant = tuple[dict[Site, int], tuple[Segment, ...]]
_STACKED_MAX = 6
#: All but one mutant in so many of an entry are those that are due, and differ from it in nothing else.
_EAGER = 4
_ATTEMPTS = 16


def mutate(corpus: Corpus, rng: Random, sites: Asked) -> Mutant:
    """Draw an entry of the corpus and change it: departures and a schedule for a `LooseSchedule`.

    Args:
        corpus: one with no entries gives the default run.
        rng: where every choice comes from.
        sites: where to depart an entry that does not say what its run was asked.

    Returns: a tape that was not returned before, as long as one is found in a few attempts.
    """
    mutant: Mutant = {}, ()
    for _ in range(_ATTEMPTS if len(corpus) else 0):
        kept = corpus.pick(rng)
        mutant = _mutant(corpus, kept, rng, sites)
        if corpus.untried(_digest(mutant)):
            kept.chosen += 1
            break
    return mutant


def _mutant(corpus: Corpus, kept: Kept, rng: Random, sites: Asked) -> Mutant:
    entry = kept.entry
    departures, schedule = entry.tape
    if kept.due and rng.randrange(_EAGER):
        due = kept.due.pop()
        return dict(sorted({**departures, **due.departures}.items())), due.schedule or schedule
    ground = Ground(entry.asked or sites, tuple(kept.fresh))
    times = 1
    while times < _STACKED_MAX and rng.randrange(3) == 0:
        times += 1
    for _ in range(times):
        if _wants_schedule(entry, ground, rng):
            run = schedules.Run(entry.taken, entry.frontier)
            schedule = schedules.change(schedule, run, _donor(corpus, rng, schedules.SPLICES), rng)
        else:
            departures = tapes.change(departures, ground, _donor_tape(corpus, rng), rng)
    return dict(sorted(departures.items())), schedule


def _wants_schedule(entry: Entry, ground: Ground, rng: Random) -> bool:
    """One change in three is to the schedule, when there is a choice of tasks; all are, when there is nothing else."""
    switchable = len({task for task, _ in (*entry.taken, *entry.schedule)}) > 1
    return switchable and (not (ground.asked or entry.departures) or rng.randrange(3) == 0)


def _donor(corpus: Corpus, rng: Random, one_in: int) -> tuple[Segment, ...]:
    if rng.randrange(one_in):
        return ()
    entry = corpus.pick(rng).entry
    return entry.schedule or entry.taken


def _donor_tape(corpus: Corpus, rng: Random) -> Mapping[Site, int]:
    return {} if rng.randrange(tapes.SPLICES) else corpus.pick(rng).entry.departures


def _digest(mutant: Mutant) -> bytes:
    departures, schedule = mutant
    return hashlib.blake2b(marshal.dumps((list(departures.items()), schedule), 2), digest_size=8).digest()

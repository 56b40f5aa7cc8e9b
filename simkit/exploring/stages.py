"""The stages of an exploration. Each makes runs within its share of the budget, and says why it ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from simkit.coverage import Corpus
from simkit.exploring.book import LIVENESS
from simkit.exploring.cones import cone
from simkit.exploring.jobs import Job, Ran, Task, made, run_on
from simkit.exploring.lanes import HEALED, LANE, Lane, run_lane
from simkit.exploring.mutants import BATCH, Breeder, run_batch
from simkit.exploring.pairs import after_first, chosen, count_within, tiers, within
from simkit.exploring.plan import Strike, second, singles
from simkit.exploring.report import Stage
from simkit.exploring.running import Runner
from simkit.exploring.sampling import fair, spread
from simkit.strategies import DelayBounded
from simkit.striking import STATE
from simkit.tape import Journal, Site, Stream, Tape
from simkit.world import Outcome

__all__ = ["STAGES", "Probe", "Progress"]

#: Behaviours of earlier stages with which mutation begins, at most.
_ELDERS = 32


@attrs.frozen
class Probe:
    """The default run, and what it came by."""

    outcome: Outcome[Any]
    journal: Journal

    @property
    def steps(self) -> list[int]:
        """Which entries of the trace are steps."""
        return [at for at, entry in enumerate(self.outcome.trace.entries()) if isinstance(entry, int) and entry >= 0]

    @property
    def known(self) -> frozenset[Site]:
        """Its sites."""
        return frozenset(visit.site for visit in self.journal.sites)


@attrs.define
class Progress:
    """What the stages hand on to each other."""

    runner: Runner
    probe: Probe
    selected: Sequence[str]
    corpus: Path | None = None
    #: Single strikes whose run passed, with what came by later.
    firsts: list[tuple[Strike, Sequence[Strike]]] = attrs.field(factory=list)
    #: Runs that were the first to behave as they did.
    elders: dict[str, Ran] = attrs.field(factory=dict)
    notes: list[str] = attrs.field(factory=list)

    @property
    def task(self) -> Task:
        """What all runs share."""
        return self.runner.task

    @property
    def heals(self) -> int:
        """Of how many runs one is healed."""
        return HEALED if LIVENESS in self.selected else 0

    def closed(self, stage: str, candidates: int | None, made_: int) -> Stage:
        """The stage as a value; `made_` of the candidates were run."""
        if self.runner.is_late():
            why = "time is up"
        elif candidates is None:
            why = f"its share of the budget, {made_} runs"
        elif made_ >= candidates:
            why = "all there are"
        else:
            why = f"its share of the budget: {made_} of {candidates}, evenly spread"
        return self.runner.page(stage).closed(candidates, why)

    def remember(self, runs: Sequence[Ran]) -> None:
        """Keep those that behaved as none did before."""
        for ran in runs:
            if ran.failure is None and ran.bound is None:
                self.elders.setdefault(ran.behaviour, ran)


def single_strikes(progress: Progress) -> Stage:
    """Every single crash, fault and other choice; a power loss into each state that it may leave."""
    runner, task = progress.runner, progress.task
    most = runner.allot("singles")
    found = singles(progress.probe.journal.sites, progress.probe.steps, task.without)
    strikes = fair(found, _kind, most)
    looks = "pairs" in progress.selected
    runs = runner.make(_single(strike, looks=looks) for strike in strikes)
    done = list(zip(strikes, runs, strict=False))
    states = [
        {ran_site: STATE, (ran_site[0], "!state", 0): choice}
        for strike, ran in done
        for ran_site in [strike.site]
        for choice in range(1, ran.states)
    ]
    more = runner.make(Job("singles", departures) for departures in spread(states, most - len(runs)))
    progress.remember([*runs, *more])
    progress.firsts = [(strike, ran.later) for strike, ran in done if _struck(strike, ran) and ran.failure is None]
    return progress.closed("singles", len(found) + len(states), len(runs) + len(more))


def _single(strike: Strike, *, looks: bool) -> Job:
    chooses = strike.value == STATE and strike.kind == "crash.power-state"
    return Job("singles", {strike.site: strike.value}, looks=looks or chooses)


def _struck(strike: Strike, ran: Ran) -> bool:
    return ran.departures.get(strike.site) == strike.value


def _kind(strike: Strike) -> str:
    return strike.kind


def pairs_of_strikes(progress: Progress) -> Stage:
    """A second strike in the recovery from the first; and two in the cone of a named point."""
    runner = progress.runner
    most = runner.allot("pairs")
    crashes, faults = tiers(after_first(progress.firsts, progress.probe.known))
    strikes = _in_cones(progress)
    if "singles" not in progress.selected:
        progress.notes.append("no single strikes were made, so no pairs lie in the recovery from one")
    count = len(crashes) + len(faults) + count_within(strikes)
    pairs = chosen([crashes, faults, within(strikes, most)], most)
    jobs = dict.fromkeys(frozenset((strike.site, strike.value) for strike in pair) for pair in pairs)
    runs = runner.make(Job("pairs", dict(sorted(job))) for job in jobs)
    progress.remember(runs)
    return progress.closed("pairs", count, count if len(pairs) == count and len(runs) == len(jobs) else len(runs))


def _in_cones(progress: Progress) -> list[Strike]:
    """The strikes in the cones of all named points, each where it held first."""
    probe, first = progress.probe, dict[str, tuple[str, int]]()
    for name, host, moment in probe.journal.held:
        first.setdefault(name, (host, moment))
    if not first:
        progress.notes.append("no named point held in the default run, so no pairs lie in the cone of one")
    entries = list(probe.outcome.trace.entries())
    sites = dict[Site, None]()
    for host, moment in first.values():
        sites.update(dict.fromkeys(visit.site for visit in cone(probe.journal.sites, entries, host, moment)))
    visits = [visit for visit in probe.journal.sites if visit.site in sites]
    return [strike for visit in visits for strike in second(visit, progress.task.without)]


def delayed_schedules(progress: Progress) -> Stage:
    """Every schedule with one delay, then those with two; when all with one fit into the budget."""
    runner, task = progress.runner, progress.task
    most, strategies = runner.allot("delays"), DelayBounded(2)
    single, runs, complete = 0, 0, False
    while runs < most and not runner.is_late():
        strategy = strategies.begin(Stream(Tape.from_seed(task.seed), "delays"))
        if strategy is None:
            complete = True
            break
        tape = Tape.opened(entropy=task.seed)
        outcome = run_on(task, tape, strategy)
        strategies.end(outcome)
        progress.remember([runner.enter(made(task, Job("delays"), tape, outcome))])
        runs += 1
        if runs == 1:
            single = strategies.with_one_delay
            if single > most:
                why = f"not a small plan: {single} schedules with one delay, {most} runs to try them"
                return runner.page("delays").closed(None, why)
    why = f"all with up to {2 if complete else 1} delays" if complete or runs > single else f"{runs} of {single + 1}"
    if not complete and runs > single:
        why = f"all with one delay, {runs - single - 1} with two"
    return runner.page("delays").closed(runs if complete else None, "time is up" if runner.is_late() else why)


def portfolio_under_masks(progress: Progress) -> Stage:
    """Lanes of schedule strategies, each run under a swarm mask."""
    most = _with_second_runs(progress.runner.allot("portfolio"), progress.heals)
    made_ = _lanes(progress, "portfolio", most, progress.heals)
    return progress.closed("portfolio", None, made_)


def healed_runs(progress: Progress) -> Stage:
    """The healed runs among those of the two stages before; when neither was made, some of its own."""
    if not {"portfolio", "mutations"} & set(progress.selected):
        _lanes(progress, LIVENESS, _with_second_runs(progress.runner.allot(LIVENESS), 1), 1)
    runs = progress.runner.page(LIVENESS).runs
    return progress.closed(LIVENESS, None, runs)


def _with_second_runs(most: int, heals: int) -> int:
    """How many runs fit into `most` when each healed one may have to be made again."""
    return most * heals // (heals + 1) if heals else most


def _lanes(progress: Progress, stage: str, most: int, heals: int) -> int:
    default_ns = progress.probe.outcome.now_ns
    lanes = [
        Lane(stage, first, min(LANE, most - first), heals=heals, default_ns=default_ns)
        for first in range(0, most, LANE)
    ]
    runs = progress.runner.gather(run_lane, lanes)
    progress.remember([ran for ran in runs if not ran.healed])
    return len(runs)


def mutated_tapes(progress: Progress) -> Stage:
    """Rounds of mutants of a corpus, which begins with the default run and with what behaved in ways of its own."""
    runner, task = progress.runner, progress.task
    most = _with_second_runs(runner.allot("mutations"), progress.heals)
    corpus = Corpus() if progress.corpus is None else Corpus.load(progress.corpus)
    default_ns = progress.probe.outcome.now_ns
    breeder = Breeder(task, corpus, heals=LIVENESS in progress.selected, default_ns=default_ns)
    elders = spread(list(progress.elders.values()), _ELDERS)
    known = [Job("mutations", schedule=())]
    known += [Job("mutations", entry.departures, schedule=entry.schedule) for entry in corpus]
    known += [Job("mutations", ran.departures, schedule=ran.schedule) for ran in elders]
    jobs, made_ = known[:most], 0
    while jobs and not runner.is_late():
        batches = [tuple(jobs[at : at + BATCH]) for at in range(0, len(jobs), BATCH)]
        runs = runner.gather(run_batch, batches)
        for ran in runs:
            breeder.learn(ran)
        blind = next((ran.blind for ran in runs if ran.blind), "")
        if blind and made_ == 0:
            progress.notes.append(f"mutations do not see which code ran: {blind}")
        made_ += len(runs)
        jobs = breeder.round(most - made_)
    if progress.corpus is not None:
        corpus.save(progress.corpus)
    return progress.closed("mutations", None, made_)


#: By name, in their order.
STAGES: Mapping[str, Callable[[Progress], Stage]] = {
    "singles": single_strikes,
    "pairs": pairs_of_strikes,
    "delays": delayed_schedules,
    "portfolio": portfolio_under_masks,
    "mutations": mutated_tapes,
    LIVENESS: healed_runs,
}

"""The matrix of mutants and judges: every mutant of the reference runtime, simulated until its own obligation blames it.

    examine(name, …)       what became of one mutant
    examine_all(names, …)  of many, over several processes; results in the order of the names
    mutants(…)             the command: each told as it is known, and the exit code they earn

Only being caught by its own obligation counts, in a run for which that judge does not blame the unbroken runtime; what the
other judges say of the runs made is told beside it.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import attrs

from conformance import targets
from conformance.campaign import parallel
from conformance.events import CampaignBegan, Fate, MutantJudged, Progress, Summary
from conformance.mutants import Mutant, chosen, find
from conformance.simulate import simulate
from scenarios import catalogue
from scenarios.obligations import OBLIGATIONS
from simkit.errors import ExitCode, Problem, SimkitError

if TYPE_CHECKING:
    from conformance.events import Emit
    from conformance.targets import Target
    from scenarios.history import History
    from scenarios.interruption import Scenario

#: Schedules tried of the scenario that a mutant is shown by.
SCHEDULES_MAX = 10
#: A mutant that survives this many drawn seeds too is not caught.
SEEDS_MAX = 500
_HISTORIES_KEPT = 64


@attrs.frozen
class Runs:
    """Where mutants are run: the target and its configuration, and how many drawn seeds are tried; picklable."""

    target: str = "reference"
    configuration: str | None = None
    seeds_max: int = SEEDS_MAX


def examine(name: str, runs: Runs = Runs(), stopping: Callable[[], bool] = parallel.stopped) -> MutantJudged | None:
    """What became of mutant `name`, or None when asked to stop before that was known."""
    return examine_one(find(name), runs, stopping)


def examine_one(mutant: Mutant, runs: Runs, stopping: Callable[[], bool]) -> MutantJudged | None:
    """What became of a mutant that is registered under its name.

    First the scenario it says it is shown by, under a few schedules and before all judges; then drawn scenarios, before
    its own judge only. One that breaks another configuration is run in that one.
    """
    if mutant.config is not None:
        runs = attrs.evolve(runs, target="reference", configuration=mutant.config)
    examination = _Examination(mutant, runs)
    for scenario, seed in _attempts(mutant, runs.seeds_max):
        if stopping():
            return None
        if examination.catches(scenario, seed):
            return examination.answer("caught", f"seed/{seed}" if scenario is None else scenario.name, seed)
    return examination.answer("caught by another" if examination.others else "survived")


def _attempts(mutant: Mutant, seeds_max: int) -> Iterator[tuple[Scenario | None, int]]:
    shown_by = catalogue.by_name(mutant.shown_by)
    if shown_by is not None:
        yield from ((shown_by, seed) for seed in range(SCHEDULES_MAX))
    yield from ((None, seed) for seed in range(seeds_max))


@attrs.define
class _Examination:
    """A mutant on its way through its runs."""

    mutant: Mutant
    runs: Runs
    began: float = attrs.field(factory=time.monotonic)
    made: int = 0
    unjudged: int = 0
    others: dict[str, None] = attrs.field(factory=dict)

    def catches(self, scenario: Scenario | None, seed: int) -> bool:
        """Make one more run, and say whether the mutant's own obligation catches it there."""
        self.made += 1
        broken = _history(self.runs, self.mutant.name, scenario, seed, swarm=self.mutant.swarm)
        if broken is None:
            self.unjudged += 1
            return False
        judges = (self.mutant.obligation,) if scenario is None else tuple(OBLIGATIONS)
        blamed = self._blamed(broken, judges, scenario, seed)
        self.others |= dict.fromkeys(id_ for id_ in blamed if id_ != self.mutant.obligation)
        return self.mutant.obligation in blamed

    def _blamed(self, broken: History, judges: Sequence[str], scenario: Scenario | None, seed: int) -> list[str]:
        """The obligations that blame this run, and do not blame the same run of the unbroken runtime."""
        accusing = [id_ for id_ in judges if OBLIGATIONS[id_].judge(broken).violations]
        if not accusing:
            return []
        whole = _unbroken(self.runs, scenario.name if scenario is not None else "", seed, self.mutant.swarm)
        return [id_ for id_ in accusing if whole is not None and not OBLIGATIONS[id_].judge(whole).violations]

    def answer(self, outcome: Fate, run: str = "", seed: int | None = None) -> MutantJudged:
        """What became of it."""
        return MutantJudged(
            self.mutant.name,
            self.mutant.obligation,
            outcome,
            run,
            seed,
            self.made,
            round(time.monotonic() - self.began, 3),
            tuple(self.others),
            self.unjudged,
        )


@functools.lru_cache(maxsize=_HISTORIES_KEPT)
def _unbroken(runs: Runs, scenario: str, seed: int, swarm: bool) -> History | None:
    """The run of the runtime as it is, which mutants shown by one scenario share."""
    return _history(runs, None, catalogue.by_name(scenario), seed, swarm=swarm)


def _history(runs: Runs, mutant: str | None, scenario: Scenario | None, seed: int, *, swarm: bool) -> History | None:
    """What was seen of a run; None of one that could not be judged, which neither accuses nor clears anybody."""
    try:
        return simulate(_target(runs), seed, scenario=scenario, mutant=mutant, swarm=swarm).observation.history
    except SimkitError:
        return None


@functools.lru_cache
def _target(runs: Runs) -> Target:
    return targets.parse(runs.target, runs.configuration)


def examine_all(
    names: Sequence[str], runs: Runs, jobs: int | None, stopping: Callable[[], bool]
) -> Iterator[MutantJudged]:
    """What became of each of these mutants, in their order; those that are known when asked to stop."""
    processes = min(jobs or os.cpu_count() or 1, len(names))
    if processes <= 1:
        answers = (examine(name, runs, stopping) for name in names)
        yield from (one for one in answers if one is not None)
        return
    with parallel.working(processes, stopping) as pool:
        tasks = ((examine, name, runs) for name in names)
        yield from (one for one in pool.do(tasks, ahead=len(names)) if one is not None)  # a survivor takes long


def mutants(
    target: str,
    *,
    config: str | None,
    only: Sequence[str],
    seeds: int,
    jobs: int | None,
    emit: Emit,
    stopping: Callable[[], bool],
) -> Summary:
    """Examine the mutants chosen by `only` (names, obligations or groups; all when empty), and tell what became of each.
    Raises `SimkitError` for another target than the reference runtime, or for a name that means nothing.
    """
    parsed = targets.parse(target, config)
    check_target(parsed, "these are broken forms of it; `simkit certify` judges another target")
    names = chosen(only)
    options = {"only": ", ".join(only), "mutants": len(names)}
    emit(CampaignBegan(parsed.title, "mutants", "simulated", None, options))
    judged: list[MutantJudged] = []
    for one in examine_all(names, Runs(target, config, seeds), jobs, stopping):
        judged.append(one)
        emit(one)
        emit(Progress(len(judged), len(names), one.mutant, "mutants"))
    return summarise(judged, len(names))


def check_target(target: Target, hint: str = "leave --mutant away, or run the mutant with -t reference") -> None:
    """Raises `SimkitError` when `target` has no mutants; `hint`: what to do then."""
    if target.name != "reference":
        raise SimkitError(
            Problem(
                "mutant-target",
                f"mutants are of the reference runtime; {target.name} has none",
                f"-t {target.text}",
                "-t reference",
                hint,
            )
        )


def summarise(judged: Sequence[MutantJudged], total: int) -> Summary:
    """The exit code: passed when all `total` that were chosen are caught by their own obligations."""
    if not total:
        return Summary(ExitCode.NOTHING_SELECTED, "no mutant is of what was named")
    alive = [one.mutant for one in judged if one.outcome != "caught"]
    told = f"{len(judged) - len(alive)} of {total} mutants caught by their own obligations"
    if len(judged) < total:
        told += f"; {total - len(judged)} not judged"
    if alive:
        return Summary(ExitCode.VIOLATION, f"{told}; not caught: {', '.join(alive)}")
    return Summary(ExitCode.PASSED if len(judged) == total else ExitCode.INCONCLUSIVE, told)

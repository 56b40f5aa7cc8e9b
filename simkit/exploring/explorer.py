"""`explore`: stage after stage from the default run on, until the budget is used up or there is nothing left to try."""

from __future__ import annotations

import difflib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import attrs

from simkit._options import is_whole, need_program, need_seed
from simkit.case import Case, program_name
from simkit.errors import ExitCode, Problem, SimkitError, wrong
from simkit.exploring.book import LIVENESS
from simkit.exploring.jobs import Job, Task, made, worded
from simkit.exploring.kinds import Without, kind_of
from simkit.exploring.report import Finding, Report, Stage
from simkit.exploring.running import Budget, Runner
from simkit.exploring.simplest import simplest
from simkit.exploring.stages import STAGES, Probe, Progress
from simkit.parallel import Crew
from simkit.point_coverage import DeclaredPoint
from simkit.searching import Failing, Program, what_was_raised
from simkit.tape import Journal, Tape
from simkit.testing import spec_of
from simkit.trace import first_difference
from simkit.world import KernelName, Limits, Outcome, run

__all__ = ["DEFAULT", "explore"]

#: The stage that is always made.
DEFAULT = "default"
_BUDGET = Budget()
#: A run may take so many times the steps of the default run, and at least so many.
_TIMES, _STEPS_MIN = 50, 5_000
#: The default run may take so many: one whose thousand variants can be tried takes far less.
_PROBE = Limits(steps=100_000)
#: Where nothing can be struck and nobody be scheduled otherwise, only random numbers differ: so many runs are enough.
_RUNS_ALIKE = 50
#: The task around main, trio's own.
_TRIO = 0
#: So many processes that failed are told.
_TOLD_MAX = 3


def explore(
    program: Program,
    *,
    stages: Sequence[str] = tuple(STAGES),
    budget: Budget | int = _BUDGET,
    seed: int = 0,
    failing: Failing = what_was_raised,
    without: Iterable[str] = (),
    points: Iterable[DeclaredPoint] = (),
    limits: Limits | None = None,
    kernel: KernelName = "fast",
    guard: bool = True,
    executor: Executor | None = None,
    corpus: Path | None = None,
    save: Path | None = None,
    target: str = "",
) -> Report:
    """Look for runs of `program(world)` that fail: strikes one by one, in pairs, schedules, both mixed, mutated, healed.

    The same arguments give the same report, also with an executor, unless `budget.seconds` cuts it off.

    Args:
        program: what to run, with whatever restarts its processes; everything it shares must be made anew in each run.
        stages: which to make, of `STAGES`; the default run is always made.
        budget: how many runs: a `Budget`, or just a number.
        seed: where everything that is drawn comes from.
        failing: gives what is wrong with a run; default: what main raised, or a deadlock.
        without: kinds of strikes to leave out, as patterns: "disk.read_eio", "crash.*".
        points: the named points that should be hit, as from `point_coverage.declared`.
        limits: bounds of each run; default: fifty times the steps of the default run, at least 5,000, and for that run 100,000.
        kernel: as for `run`.
        guard: as for `run`.
        executor: whose processes make the runs of stages that can be divided; program and `failing` must be importable.
        corpus: folder of the corpus of mutated tapes, to go on with in the next exploration.
        save: folder for the cases of findings, and of one inconclusive run of each kind.
        target: what cases call the program; default: its qualified name.

    Raises: SimkitError for an unknown stage, for a program that does not repeat itself, and for one that never ends.
    """
    _check(program, seed)
    budget = Budget(runs=budget) if is_whole(budget) else budget  # type: ignore[arg-type]  # a whole number by then
    if not isinstance(budget, Budget):
        raise wrong("explore: budget", budget, "a simkit.exploring.Budget, or a number of runs")
    selected = _selected(stages)
    task = Task(program, target or program_name(program), seed, failing, Without(without), kernel=kernel, guard=guard)
    probe = _probe(task, limits)
    task = attrs.evolve(task, limits=limits or Limits(steps=max(_STEPS_MIN, _TIMES * probe.outcome.steps)))
    budget, alike = _fitting(budget, probe)
    with Crew(executor=executor) as crew:
        runner = Runner(task, budget, crew, time.monotonic if budget.seconds is not None else float)
        progress = Progress(runner, probe, selected, corpus, notes=[*alike, *_idle_patterns(task.without, probe)])
        done = [_default_stage(runner, probe)]
        if not runner.book.findings():
            own = not {"portfolio", "mutations"} & set(selected)  # else healed runs are some of theirs
            runner.divide([stage for stage in selected if own or stage != LIVENESS])
            done += [_made(progress, stage) for stage in selected]
    findings = tuple(_finished(task, finding, budget, save) for finding in runner.book.findings())
    report = _report(progress, done, findings, points)
    if save is not None:
        for one in report.unfinished:
            one.case.save(save)
    return report


def _report(
    progress: Progress, done: Iterable[Stage], findings: tuple[Finding, ...], points: Iterable[DeclaredPoint]
) -> Report:
    book, probe, task = progress.runner.book, progress.probe, progress.task
    return Report(
        program=task.name,
        seed=task.seed,
        runs=book.runs,
        steps=book.steps,
        boundaries=probe.outcome.boundaries,
        sites=book.sites(visit.site for visit in probe.journal.sites),
        stages=tuple(done),
        findings=findings,
        inconclusive=book.inconclusive,
        never_hit=tuple(book.coverage.never(points)),
        notes=tuple(progress.notes),
        unfinished=book.unfinished(),
    )


def _check(program: Program, seed: int) -> None:
    need_program("explore: program", program)
    need_seed("explore: seed", seed)
    if spec_of(program) is not None:
        raise SimkitError(
            Problem(
                "explore-misused",
                "a function with @simkit.test is a plain one, which makes runs of its own",
                f"{program.__qualname__}",
                "an async function that is given a world",
                "let the decorated function and the exploration call the same undecorated one",
                ExitCode.USAGE,
            )
        )


def _selected(stages: Sequence[str]) -> list[str]:
    unknown = [stage for stage in stages if stage not in STAGES and stage != DEFAULT]
    if unknown or isinstance(stages, str):
        raise SimkitError(
            Problem(
                "unknown-stage",
                f"there is no stage {', '.join(map(repr, unknown))}" if unknown else f"{stages!r} is no list of stages",
                "the stages of an exploration",
                f"some of {', '.join(STAGES)}",
                exit_code=ExitCode.USAGE,
            )
        )
    return [stage for stage in STAGES if stage in stages]


def _fitting(budget: Budget, probe: Probe) -> tuple[Budget, list[str]]:
    """A smaller budget for a program of which all runs are alike, and a note that says so."""
    tasks = {task for task, _ in probe.outcome.schedule if task != _TRIO}
    if probe.journal.sites or len(tasks) > 1 or budget.runs <= _RUNS_ALIKE:
        return budget, []
    note = (
        f"there is nothing to explore: one task, and nothing that could be struck or chosen; {_RUNS_ALIKE} runs at most"
    )
    return attrs.evolve(budget, runs=_RUNS_ALIKE), [note]


def _idle_patterns(without: Without, probe: Probe) -> Iterator[str]:
    """A note for each pattern that leaves nothing out of what the default run comes by: it may be misspelt."""
    kinds = {kind_of(visit.site, value) for visit in probe.journal.sites for value in visit.values}
    for pattern in without.patterns:
        if not any(kind in Without([pattern]) for kind in kinds):
            near = difflib.get_close_matches(pattern, sorted(kinds), n=1)
            hint = f": did you mean {near[0]!r}?" if near else ""
            yield f"without {pattern!r}: the default run comes by nothing that is called so{hint}"


def _probe(task: Task, limits: Limits | None) -> Probe:
    """The default run, made twice: it must end, and be the same both times."""
    journal = Journal()
    first = _default_run(task, limits, journal)
    if first.bound is not None:
        raise SimkitError(
            Problem(
                "explore-endless",
                f"the default run met its bound on {first.bound} after {first.steps} steps",
                f"{task.name}, at {first.now_ns} ns of virtual time{_failed_most(first)}",
                "a main that returns once its work is done",
                "a supervised process that fails is started again, for ever: let main check what is right, after the work"
                if first.failures
                else "let main wait for the work, not for processes that serve for ever; or give higher `limits`",
                ExitCode.INCONCLUSIVE,
            )
        )
    again = _default_run(task, limits, None)
    if again.digest != first.digest:
        raise SimkitError(
            Problem(
                "program-changed",
                f"the program did not repeat itself: {first_difference(first.trace, again.trace)}",
                f"the second default run of {task.name}",
                "a program whose runs differ by tape and schedule only",
                "move state that outlives a run into the program function, and whatever is random onto the tape",
                ExitCode.TARGET,
            )
        )
    return Probe(first, journal)


def _failed_most(outcome: Outcome[Any]) -> str:
    """Which processes failed, how often, and by what; those first that failed most."""
    counts = Counter(
        (f"{process.name} of {process.host.name}", worded(process.status.error))
        for process in outcome.failures
        if process.status is not None and process.status.error is not None
    )
    told = [f"{name} failed {times} times, by {error}" for (name, error), times in counts.most_common(_TOLD_MAX)]
    return "".join(f"\n            {line}" for line in told)


def _default_run(task: Task, limits: Limits | None, journal: Journal | None) -> Outcome[Any]:
    """No fault, first come first served."""
    tape = Tape.opened(entropy=task.seed, journal=journal)
    return run(task.program, tape=tape, limits=limits or _PROBE, kernel=task.kernel, guard=task.guard)


def _default_stage(runner: Runner, probe: Probe) -> Stage:
    job = Job(DEFAULT)
    for _ in range(2):
        runner.enter(made(runner.task, job, Tape.opened(entropy=runner.task.seed), probe.outcome))
    sites, boundaries = len(probe.journal.sites), sum(probe.outcome.boundaries.values())
    why = f"the same twice: {sites} sites, {boundaries} storage boundaries"
    if runner.book.findings():
        why = "it fails without any fault: nothing else is tried"
    return runner.page(DEFAULT).closed(2, why)


def _made(progress: Progress, stage: str) -> Stage:
    make: Callable[[Progress], Stage] = STAGES[stage]
    if not progress.probe.journal.sites and stage in {"singles", "pairs"}:
        told = "the program comes by no site: it has no disk, no network and makes no choice, so nothing can be struck"
        if told not in progress.notes:
            progress.notes.append(told)
    return make(progress)


def _finished(task: Task, finding: Finding, budget: Budget, save: Path | None) -> Finding:
    """Shrunk and explained as far as the budget goes, and saved."""
    found = simplest(task, finding, budget) if budget.shrink and finding.stage != DEFAULT else finding
    if save is not None:
        cases: list[Case] = [found.case] if found.shrunk is None else [found.case, found.shrunk]
        for case in cases:
            case.save(save)
    return found

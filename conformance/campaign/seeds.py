"""`run`: drawn scenarios by seed. Simulated, over several processes of our own; on real processes where an adapter has no
simulated form.

Seeds are handed out one by one, each comes back as soon as it is judged, and they are told in order, so that what is told does
not depend on how many processes work. Whoever interrupts loses only what is not judged by then.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from conformance import targets
from conformance.campaign import parallel, real
from conformance.campaign.cover import uncovered
from conformance.campaign.docket import Docket, origin_of
from conformance.campaign.judged import Judged
from conformance.campaign.matrix import check_target
from conformance.campaign.seedwork import judged_seed, run_seed
from conformance.campaign.shrinkage import shrink_failure
from conformance.campaign.sufficiency import advice
from conformance.events import CampaignBegan, Progress, Summary
from conformance.mutants import find
from conformance.order import NOT_SHRUNK, Bounds, Order
from conformance.reporters.wording import counted, promises
from conformance.simulate import can_be_simulated
from simkit import shrinking
from simkit.errors import ExitCode, Problem, SimkitError, worst

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.campaign.judged import Shrinks, Small
    from conformance.events import Emit
    from conformance.store import Store
    from conformance.targets import Target
    from scenarios.verdict import Verdict

#: Seeds that a process is given before their turn: a long one keeps nobody waiting meanwhile.
AHEAD = 20
#: Below this many seeds starting another process costs more than it brings.
SEEDS_PER_JOB_MIN = 60


def run(
    order: Order,
    seeds: Sequence[int],
    *,
    shrink: Bounds = NOT_SHRUNK,
    jobs: int | None,
    store: Store,
    emit: Emit,
    stopping: Callable[[], bool],
) -> Summary:
    """Run and judge every seed. Raises `SimkitError` for what cannot be asked of this target.

    `shrink`: the first failure of each kind is made small; only in simulation, as is much of what an order asks for.
    """
    target = targets.parse(order.target, order.configuration)
    if not can_be_simulated(target):
        return _on_real_processes(order, target, seeds, jobs, store, emit, stopping)
    if order.mutant is not None:
        find(order.mutant)
        check_target(target)
    emit(CampaignBegan(target.title, "run", "simulated", None, _options(order), len(seeds)))
    origin = origin_of(
        target,
        "simulated",
        mutant=order.mutant,
        boundaries=order.boundaries,
        sweep=order.sweep,
        swarm=order.swarm,
    )
    shrinks = _shrinker(target, shrink, emit, stopping) if shrink.runs else None
    docket = Docket(target, origin, store, emit, show=order.show, shrinks=shrinks)
    done: set[int | None] = set()

    def take(judged: Judged) -> None:
        docket.add(judged)
        done.add(judged.seed)
        all_told = f"{docket.runs} runs in all" if docket.runs > len(done) else ""
        emit(Progress(len(done), len(seeds), all_told, "seeds"))

    with docket.summed_up():
        _judge(order, seeds, jobs, take, stopping)
    docket.tell_happenings(target.folder)
    swept = order.sweep is not None
    return _summarised(docket.verdicts(), docket, seeds=len(done), stopped=stopping(), swept=swept)


def _options(order: Order) -> dict[str, Any]:
    """What is told of an order when its campaign begins."""
    return {
        "mutant": order.mutant,
        "kernel": order.kernel,
        "boundaries": order.boundaries,
        "sweep": order.sweep is not None,
        "swarm": "" if order.swarm else "off",
    }


def _on_real_processes(
    order: Order,
    target: Target,
    seeds: Sequence[int],
    jobs: int | None,
    store: Store,
    emit: Emit,
    stopping: Callable[[], bool],
) -> Summary:
    """Each seed's plan and interruptions are drawn as in simulation, without its disk."""
    _check_is_real(order, target)
    installed = real.environment_of(target, emit)  # first: what cannot be installed is no campaign
    emit(CampaignBegan(target.title, "run", "process", None, {}, len(seeds)))
    scenarios = [(seed, real.drawn(target, seed)) for seed in seeds]
    docket = Docket(target, origin_of(target, "process"), store, emit, show=order.show)
    beyond = uncovered(target)
    with docket.summed_up(beyond):
        real.run_all(target, installed.python, scenarios, docket.add, jobs, emit, stopping)
    return _summarised(docket.verdicts(uncovered=beyond), docket, seeds=docket.runs, stopped=stopping())


def _shrinker(target: Target, bounds: Bounds, emit: Emit, stopping: Callable[[], bool]) -> Shrinks:
    """Makes failures small, and says how far it is."""

    def shrinks(judged: Judged, kind: str) -> Small | None:
        def tell(far: shrinking.Progress) -> None:
            note = (
                f"to shrink {kind} of seed {judged.seed}: {far.departures} choices, {far.preemptions} pre-emptions left"
            )
            emit(Progress(far.runs, far.runs_max, note, "tries"))

        return shrink_failure(target, judged, kind, bounds, tell, stopping)

    return shrinks


def _summarised(
    verdicts: dict[str, Verdict], docket: Docket, *, seeds: int, stopped: bool, swept: bool = False
) -> Summary:
    """The exit code that a campaign of so many seeds has earned; where it was too small, about how many would do."""
    codes = [ExitCode.PASSED]
    failed = [one for one in verdicts.values() if one.outcome == "fail"]
    unsure = [one.obligation for one in verdicts.values() if one.outcome == "inconclusive"]
    broken = any(total.violations for id_, total in docket.total.items() if id_ in docket.claimed)
    if not docket.runs:
        return Summary(ExitCode.NOTHING_SELECTED, "no run was made")
    if failed or broken:
        return Summary(ExitCode.VIOLATION)
    if docket.troubles:
        codes.append(docket.troubles[0].exit_code)
    if unsure:
        codes.append(ExitCode.INCONCLUSIVE)
    code = worst(codes)
    if code is ExitCode.PASSED:
        return Summary(code, "every claimed obligation held")
    named = promises(unsure, " (--format json names each)")
    reason = f"nothing violated; not put to the test often enough by {counted(docket.runs, 'run')}: {named}"
    if told := advice([one for one in verdicts.values() if one.outcome == "inconclusive"], seeds, swept=swept):
        reason += f"; {told}"
    if docket.troubles:
        reason = f"{len(docket.troubles)} of {docket.runs} runs could not be judged: {docket.troubles[0].what}"
    return Summary(code, "stopped early; " + reason if stopped else reason)


def _check_is_real(order: Order, target: Target) -> None:
    """Refuse what only a simulation can be asked for."""
    if order.sweep is not None:
        raise SimkitError(
            Problem(
                "not-in-process-world",
                f"{target.name} runs as real processes, whose storage boundaries and messages nobody counts",
                "--sweep",
                "a target that can be simulated, such as -t reference",
                "`simkit certify` tries every barrier of every call on real processes",
            )
        )
    if order.mutant is not None:
        raise SimkitError(
            Problem(
                "mutant-target",
                "mutants are of the reference runtime",
                "--mutant",
                "-t reference with --mutant",
                "leave --mutant away, or run the mutant with -t reference",
            )
        )


def _judge(
    order: Order,
    seeds: Sequence[int],
    jobs: int | None,
    take: Callable[[Judged], None],
    stopping: Callable[[], bool],
) -> None:
    """Run and judge all seeds, and hand on each run in order; when interrupted, those too that waited for their turn."""
    processes = jobs or max(1, min(os.cpu_count() or 1, len(seeds) // SEEDS_PER_JOB_MIN))
    if processes == 1:
        for seed in seeds:
            for judged in run_seed(order, seed, stopping):
                take(judged)
        return
    with parallel.working(processes, stopping) as pool:
        results = pool.do(((judged_seed, order, seed) for seed in seeds), AHEAD)
        try:
            for judged in itertools.chain.from_iterable(results):
                take(judged)
        except KeyboardInterrupt:
            for judged in itertools.chain.from_iterable(pool.finished()):
                take(judged)
            raise

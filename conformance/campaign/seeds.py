"""`run`: drawn scenarios by seed. Simulated, over several processes of our own; on real processes where an adapter has no
simulated form.

Seeds are handed out one by one, each comes back as soon as it is judged, and they are told in order, so that what is told does
not depend on how many processes work. Whoever interrupts loses only what is not judged by then.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from conformance import targets
from conformance.campaign import parallel, real
from conformance.campaign.docket import Docket, origin_of
from conformance.campaign.judged import Judged
from conformance.campaign.matrix import check_target
from conformance.campaign.seedwork import Kernel, Order, judged_seed, run_seed
from conformance.campaign.shrinkage import Bounds, shrink_failure
from conformance.campaign.sufficiency import advice
from conformance.events import CampaignBegan, Progress, Summary
from conformance.mutants import find
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
    target: str,
    *,
    config: str | None,
    mutant: str | None,
    seeds: Sequence[int],
    boundaries: bool,
    kernel: Kernel,
    jobs: int | None,
    show: bool = False,
    swarm: bool = True,
    sweep: int | None = None,
    shrink: tuple[int, float] = (0, 0.0),
    store: Store,
    emit: Emit,
    stopping: Callable[[], bool],
) -> Summary:
    """Run and judge every seed. Raises `SimkitError` for what cannot be asked of this target.

    Args:
        boundaries: crash at every storage boundary of each as well.
        show: tell each whole.
        swarm: let disks and network misbehave in some of them.
        sweep: crash each everywhere (`sweeping`), and in so many pairs of places, and into so many states of the disk.
        shrink: runs (0: none) and seconds (0: no bound) to make the first failure of each kind small.
    """
    parsed = targets.parse(target, config)
    if not can_be_simulated(parsed):
        if sweep is not None:
            raise _not_to_be_swept(parsed)
        return real.run_seeds(parsed, seeds, mutant, jobs, store, emit, stopping, show=show)
    if mutant is not None:
        find(mutant)
        check_target(parsed)
    order = Order(target, config, mutant, kernel, boundaries, show, swarm, sweep)
    options = {
        "mutant": mutant,
        "kernel": kernel,
        "boundaries": boundaries,
        "sweep": sweep is not None,
        "swarm": "" if swarm else "off",
    }
    emit(CampaignBegan(parsed.title, "run", "simulated", None, options, len(seeds)))
    origin = origin_of(parsed, "simulated", mutant=mutant, boundaries=boundaries, sweep=sweep, swarm=swarm)
    shrinks = _shrinker(parsed, Bounds(*shrink), emit, stopping) if shrink[0] else None
    docket = Docket(parsed, origin, store, emit, show=show, shrinks=shrinks)
    done: set[int | None] = set()

    def take(judged: Judged) -> None:
        docket.add(judged)
        done.add(judged.seed)
        all_told = f"{docket.runs} runs in all" if docket.runs > len(done) else ""
        emit(Progress(len(done), len(seeds), all_told, "seeds"))

    with docket.summed_up():
        _judge(order, seeds, jobs, take, stopping)
    docket.tell_happenings(parsed.folder)
    return summarise(docket.verdicts(), docket, seeds=len(done), stopped=stopping())


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


def summarise(verdicts: dict[str, Verdict], docket: Docket, *, seeds: int, stopped: bool) -> Summary:
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
    if told := advice([one for one in verdicts.values() if one.outcome == "inconclusive"], seeds):
        reason += f"; {told}"
    if docket.troubles:
        reason = f"{len(docket.troubles)} of {docket.runs} runs could not be judged: {docket.troubles[0].what}"
    return Summary(code, "stopped early; " + reason if stopped else reason)


def _not_to_be_swept(target: Target) -> SimkitError:
    return SimkitError(
        Problem(
            "not-in-process-world",
            f"{target.name} runs as real processes, whose storage boundaries and messages nobody counts",
            "--sweep",
            "a target that can be simulated, such as -t reference",
            "`simkit certify` tries every barrier of every call on real processes",
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

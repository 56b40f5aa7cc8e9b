"""`run`: drawn scenarios by seed. Simulated, over several processes of our own; on real processes where an adapter has no
simulated form.

Seeds are handed out in batches and come back in order, so that what is told does not depend on how many processes work.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

import attrs

from conformance import targets
from conformance.campaign import parallel, real
from conformance.campaign.docket import Docket, Judged, origin_of
from conformance.campaign.judging import judge_simulated
from conformance.campaign.shrinkage import Bounds, shrink_failure
from conformance.events import CampaignBegan, Progress, Summary
from conformance.mutants import find
from conformance.simulate import can_be_simulated, draw, simulate
from scenarios.interruption import Interruption, Site
from simkit import shrinking
from simkit.crashes import crash_points
from simkit.errors import ExitCode, Problem, SimkitError, worst
from simkit.tape import Tape

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.campaign.docket import Shrinks, Small
    from conformance.events import Emit
    from conformance.store import Store
    from conformance.targets import Target
    from scenarios.verdict import Verdict

BATCH = 20
#: Below this many seeds starting another process costs more than it brings.
SEEDS_PER_JOB_MIN = 60
#: Boundaries tried of one seed; more are thinned out evenly.
BOUNDARIES_MAX = 400

Kernel = Literal["fast", "fallback"]


@attrs.frozen
class Order:
    """What a batch of seeds is to be run as; small and picklable."""

    target: str
    configuration: str | None
    mutant: str | None
    kernel: Kernel
    boundaries: bool
    show: bool = False
    swarm: bool = False


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
    shrink: tuple[int, float] = (0, 0.0),
    store: Store,
    emit: Emit,
    stopping: Callable[[], bool],
) -> Summary:
    """Run and judge every seed; `show` tells each whole, `swarm` lets disks and network misbehave in half of them. Failures
    are made small within `shrink`, runs (0: not at all) and seconds (0: no bound). Raises `SimkitError` for what cannot be
    asked of this target.
    """
    parsed = targets.parse(target, config)
    if not can_be_simulated(parsed):
        return real.run_seeds(parsed, seeds, mutant, jobs, store, emit, stopping, show=show)
    if mutant is not None:
        _check_mutant(parsed, mutant)
    order = Order(target, config, mutant, kernel, boundaries, show, swarm)
    options = {"mutant": mutant, "kernel": kernel, "boundaries": boundaries, "no-swarm": not swarm}
    emit(CampaignBegan(parsed.title, "run", "simulated", None, options, len(seeds)))
    origin = origin_of(parsed, "simulated", mutant=mutant, boundaries=boundaries, swarm=swarm)
    shrinks = _shrinker(parsed, Bounds(*shrink), emit, stopping) if shrink[0] else None
    docket = Docket(parsed, origin, store, emit, show=show, shrinks=shrinks)
    done = 0
    for batch in _judged(order, seeds, jobs, stopping):
        for judged in batch:
            docket.add(judged)
        done += len({judged.seed for judged in batch})
        emit(Progress(done, len(seeds)))
    return summarise(docket.verdicts(), docket, stopped=stopping())


def _shrinker(target: Target, bounds: Bounds, emit: Emit, stopping: Callable[[], bool]) -> Shrinks:
    """Makes failures small, and says how far it is."""

    def shrinks(judged: Judged, kind: str) -> Small | None:
        def tell(far: shrinking.Progress) -> None:
            note = (
                f"to shrink {kind} of seed {judged.seed}: {far.departures} choices, {far.preemptions} pre-emptions left"
            )
            emit(Progress(far.runs, far.runs_max, note))

        return shrink_failure(target, judged, kind, bounds, tell, stopping)

    return shrinks


def summarise(verdicts: dict[str, Verdict], docket: Docket, *, stopped: bool) -> Summary:
    """The exit code a campaign by seeds has earned."""
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
    reason = f"nothing violated; not put to the test often enough by {docket.runs} runs: {', '.join(unsure)}"
    if docket.troubles:
        reason = f"{len(docket.troubles)} of {docket.runs} runs could not be judged: {docket.troubles[0].what}"
    return Summary(code, "stopped early; " + reason if stopped else reason)


def _check_mutant(target: Target, mutant: str) -> None:
    find(mutant)
    if target.name != "reference":
        raise SimkitError(
            Problem(
                "mutant-target",
                f"mutants are of the reference runtime; {target.name} has none",
                "--mutant",
                "-t reference",
                "leave --mutant away, or run the mutant with -t reference",
            )
        )


def _judged(
    order: Order, seeds: Sequence[int], jobs: int | None, stopping: Callable[[], bool]
) -> Iterator[Sequence[Judged]]:
    batches = [seeds[at : at + BATCH] for at in range(0, len(seeds), BATCH)]
    processes = jobs or max(1, min(os.cpu_count() or 1, len(seeds) // SEEDS_PER_JOB_MIN))
    if processes == 1:
        for batch in batches:
            for seed in batch:
                if stopping():
                    return
                yield run_batch(order, [seed])
        return
    with parallel.working(processes, stopping) as pool:
        yield from pool.do((run_batch, order, batch) for batch in batches)


def run_batch(order: Order, seeds: Sequence[int]) -> list[Judged]:
    """Run and judge some seeds, in this process; fewer when the campaign is asked to stop meanwhile."""
    target = targets.parse(order.target, order.configuration)
    return [judged for seed in seeds if not parallel.stopped() for judged in _run_seed(target, order, seed)]


def _run_seed(target: Target, order: Order, seed: int) -> Iterator[Judged]:
    try:
        probe = simulate(target, seed, mutant=order.mutant, kernel=order.kernel, swarm=order.swarm)
    except SimkitError as error:
        yield Judged(_name(target, seed), seed, {}, problem=error.problem)
        return
    yield judge_simulated(target, seed, probe, order.mutant, whole=order.show)
    if not order.boundaries:
        return
    for point in crash_points(probe.outcome, most=BOUNDARIES_MAX):
        crash = Interruption("power", Site("boundary", nth=point.number, unit=point.host))
        try:
            crashed = simulate(
                target, seed, mutant=order.mutant, kernel=order.kernel, swarm=order.swarm, extra=(crash,)
            )
        except SimkitError as error:
            yield Judged(f"{_name(target, seed)}+{crash.label}", seed, {}, problem=error.problem)
            continue
        yield judge_simulated(target, seed, crashed, order.mutant, whole=order.show)


def _name(target: Target, seed: int) -> str:
    return draw(target.manifest, Tape.from_seed(seed), seed).name

"""Runs on real processes: several at a time, since a harness mostly waits; each is judged as it ends."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import trio

from conformance import evidence, install, machine
from conformance.campaign.aliveness import alive
from conformance.campaign.judged import Judged
from conformance.campaign.judging import judge_real
from conformance.campaign.patience import interruptible
from conformance.driver import Observation, observe
from conformance.events import Installing, Progress
from conformance.possible import demand, real_actions
from conformance.subject import subject_of
from conformance.worlds.process import process_world
from conformance.worlds.pulse import with_stalls
from scenarios import catalogue
from simkit.errors import Problem, SimkitError
from simkit.tape import Tape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from conformance.events import Emit
    from conformance.install import Installed
    from conformance.targets import Target
    from scenarios.history import History
    from scenarios.interruption import Scenario

RUN = "run-1"
#: Runs at a time for each core: a run mostly waits for its harness to start, to poll or to notice.
RUNS_PER_CORE = 3
#: Runs that may fail to be judged before the rest is given up.
TROUBLES_MAX = 3


def environment_of(target: Target, emit: Emit) -> Installed:
    """The environment of a target, made on first use; says so as it goes."""
    return install.ensure(target, lambda text: emit(Installing(text)))


async def observe_real(
    target: Target, python: str, scenario: Scenario, folder: Path, witness: Callable[[History], object] = bool
) -> Observation:
    """One run of one scenario on real processes, with its files in the empty `folder`.

    Raises `SimkitError` when it cannot be judged; `witness` is given what had been seen until then.
    """
    demand(scenario, "process", target.manifest)
    async with process_world(target, python, folder) as world:
        seen = await observe(world, subject_of(target.manifest), scenario, RUN, witness=witness)
        witness(seen.history)  # leaving the world may find that it cannot be judged
        return attrs.evolve(seen, history=with_stalls(seen.history, world.pulse.stalls))


def run_all(
    target: Target,
    python: str,
    scenarios: Sequence[tuple[int | None, Scenario]],
    take: Callable[[Judged], Problem | None],
    jobs: int | None,
    emit: Emit,
    stopping: Callable[[], bool],
) -> None:
    """Run and judge all scenarios, in about this order, and hand on each. More than a few that cannot be judged end it.

    The first one goes alone: when it cannot be judged, or never calls a service, none can. Raises its problem as `SimkitError`.
    """
    upcoming = iter(scenarios)
    done = 0
    troubles: list[Problem] = []

    async def work() -> None:
        nonlocal done
        for seed, scenario in upcoming:
            if stopping() or len(troubles) > TROUBLES_MAX:
                return
            run = await judged(target, python, seed, scenario)
            problem = take(run if done else alive(target, run))
            done += 1
            emit(Progress(done, len(scenarios), scenario.name))
            if problem is not None:
                troubles.append(problem)
            if troubles and done == 1:
                raise SimkitError(troubles[0])
            if done == 1:
                return  # the first one goes alone

    async def everybody() -> None:
        with interruptible():
            await work()
            async with trio.open_nursery() as nursery:
                for _ in range(jobs or RUNS_PER_CORE * (os.cpu_count() or 1)):
                    nursery.start_soon(work)

    trio.run(everybody)


async def judged(target: Target, python: str, seed: int | None, scenario: Scenario) -> Judged:
    """One run, judged, with what its units wrote; or why it cannot be judged."""
    try:
        with _folder() as folder:
            return await _judged(target, python, seed, scenario, folder)
    except SimkitError as error:
        return Judged(scenario.name, seed, {}, problem=error.problem)


async def _judged(target: Target, python: str, seed: int | None, scenario: Scenario, folder: Path) -> Judged:
    histories: list[History] = []
    try:
        seen = await observe_real(target, python, scenario, folder, histories.append)
    except SimkitError as error:
        history = histories[0] if histories else None
        problem = machine.no_room(folder) or error.problem
        return Judged(scenario.name, seed, {}, history=history, problem=problem, logs=evidence.logs(folder))
    if full := machine.no_room(folder):
        return Judged(scenario.name, seed, {}, history=seen.history, problem=full, logs=evidence.logs(folder))
    # In a thread, so that the other runs are looked at meanwhile.
    found = await trio.to_thread.run_sync(judge_real, target, scenario, seen, seed)
    return attrs.evolve(found, logs=evidence.logs(folder))


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """An empty folder for one run, gone when the block is left. Raises SimkitError where none is to be had."""
    with contextlib.ExitStack() as stack:
        with machine.giving("no folder can be made for the files of a run", "TMPDIR"):
            made = tempfile.TemporaryDirectory(prefix="simkit-", ignore_cleanup_errors=True)
        yield Path(stack.enter_context(made))


def killable(target: Target) -> tuple[str, ...]:
    return tuple(name for name, unit in target.manifest.units.items() if unit.killable)


def shares(target: Target) -> bool:
    """May two workers of this target stand on one store? Then one has a lease on what it does."""
    return target.manifest.limits.lease_ms > 0


def scenarios(target: Target, tier: catalogue.Tier) -> list[Scenario]:
    """The named scenarios of a tier that real processes of this target can be put through."""
    manifest = target.manifest
    return catalogue.tier(
        tier,
        manifest.operations.supported,
        workers=shares(target),
        units=killable(target),
        verbs=manifest.verbs.supported,
        real=real_actions(manifest),
    )


def drawn(target: Target, seed: int) -> Scenario:
    """The scenario of a seed on real processes."""
    return catalogue.drawn(
        Tape.from_seed(seed).stream("scenario").choose,
        target.manifest.operations.supported,
        seed,
        units=killable(target),
        simulated=False,
        workers=shares(target),
        verbs=target.manifest.verbs.supported,
    )


def scenario_named(target: Target, name: str) -> Scenario | None:
    """The scenario called `name`: one of the catalogue, or `seed/N` as the full tier draws it; None when it is neither."""
    kind, _, seed = name.partition("/")
    if kind == "seed" and seed.isdecimal():
        return drawn(target, int(seed))
    return catalogue.by_name(name)

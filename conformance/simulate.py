"""One simulated run of an adapter: from a seed or a case to a history, with everything needed to do it again.

A seed's scenario, the network's and disk's behaviour and the schedule are all drawn from one tape; a case holds what was
drawn, and a replay reads it back instead of drawing.
"""

from __future__ import annotations

import functools
import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import attrs
import trio

from conformance.driver import Observation, observe, the_problem
from conformance.mutants import applied
from conformance.possible import demand
from conformance.subject import subject_of
from conformance.worlds.simulated import AdapterModule, SimulatedWorld
from scenarios import catalogue
from scenarios.interruption import Interruption, Scenario
from scenarios.plan import Plan
from simkit.errors import ExitCode, Problem, SimkitError
from simkit.strategy import RandomWalk
from simkit.tape import Tape
from simkit.world import KernelName, Limits, Outcome, World, run

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from conformance.manifest import Manifest
    from conformance.targets import Target

RUN = "run-1"
#: Virtual time between two looks at the status; short against every sleep and lease.
POLL_NS = 30_000_000
#: And between two looks at a run of which nothing new is heard.
IDLE_NS = 120_000_000
LIMITS = Limits(steps=400_000, time_ns=600 * 1_000_000_000)


@attrs.frozen
class Simulated:
    """What one simulated run gave."""

    scenario: Scenario
    observation: Observation
    outcome: Outcome[Observation] = attrs.field(repr=False)
    swarm: bool = False


@functools.cache
def load_module(path: Path) -> AdapterModule:
    """The adapter's own file, for running inside this process. Raises `SimkitError` when it cannot be simulated."""
    helper = str(Path(__file__).parent / "helper")
    if helper not in sys.path:
        sys.path.insert(0, helper)
    spec = importlib.util.spec_from_file_location(f"simkit_adapter_{path.parent.name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever an adapter's file does as it is read is its own affair
        raise SimkitError(
            Problem(
                "adapter-cannot-load",
                f"the adapter cannot be loaded: {type(error).__name__}: {error}",
                str(path),
                "a module that this Python can import",
                "run the file with this interpreter and read its error output",
                ExitCode.TARGET,
            )
        ) from error
    return cast("AdapterModule", module)


def can_be_simulated(target: Target) -> bool:
    """Whether the adapter's file offers the two entry points of the simulated world."""
    path = target.folder / "adapter.py"
    return path.is_file() and "async def run_worker(" in path.read_text(encoding="utf-8")


def simulate(
    target: Target,
    seed: int,
    *,
    scenario: Scenario | None = None,
    mutant: str | None = None,
    kernel: KernelName = "fast",
    swarm: bool = False,
    extra: tuple[Interruption, ...] = (),
    watch: Callable[[World], object] | None = None,
) -> Simulated:
    """Run `seed`: its own drawn scenario unless one is given; `extra` interruptions come on top; `swarm`: and drawn faults, and
    settings of the harness.
    `watch` is called with the world before anything runs in it.
    """
    tape = Tape.from_seed(seed)
    if scenario is None:
        scenario = draw(target.manifest, tape, seed)
    if extra:
        scenario = attrs.evolve(scenario, interruptions=(*scenario.interruptions, *extra))
    strategy = RandomWalk(tape.stream("schedule"))
    with applied(mutant):
        outcome = run(
            program(target, scenario, swarm=swarm, watch=watch),
            tape=tape,
            strategy=strategy,
            kernel=kernel,
            limits=LIMITS,
        )
    return Simulated(scenario, observed(outcome, scenario), outcome, swarm)


def program(
    target: Target,
    scenario: Scenario | Callable[[World], Scenario],
    *,
    swarm: bool = False,
    watch: Callable[[World], object] | None = None,
) -> Callable[[World], Awaitable[Observation]]:
    """One run of `scenario` on `target`, for `simkit.run`; a function draws the scenario in the world itself."""
    manifest = target.manifest
    module = load_module(target.folder / "adapter.py")
    subject = subject_of(manifest)
    subject = attrs.evolve(subject, bounds=attrs.evolve(subject.bounds, poll_ns=POLL_NS, idle_ns=IDLE_NS))
    environment = {
        **manifest.configurations[target.configuration].env,
        "SIMKIT_CONFIGURATION": target.configuration,
        "SIMKIT_CALL_TIMEOUT_MS": str(manifest.limits.call_timeout_ms),
    }

    settings = {name: values for name, values in manifest.swarm.items() if name not in environment}

    async def main(world: World) -> Observation:
        chosen = scenario if isinstance(scenario, Scenario) else scenario(world)
        demand(chosen, "simulated", manifest)
        try:
            async with trio.open_nursery() as nursery:
                simulated = SimulatedWorld(world, module, environment, nursery)
                if swarm:
                    simulated.stir(subject.units, settings)
                if watch is not None:
                    watch(world)
                seen = await observe(simulated, subject, chosen, RUN)
                nursery.cancel_scope.cancel()
        except BaseExceptionGroup as group:
            raise the_problem(group) from group
        if simulated.problems:
            raise SimkitError(simulated.problems[0])
        return seen

    return main


def draw(manifest: Manifest, tape: Tape, seed: int) -> Scenario:
    """The scenario of a seed."""
    stream = tape.stream("scenario")
    units = tuple(name for name, unit in manifest.units.items() if unit.killable)
    return catalogue.drawn(
        stream.choose,
        manifest.operations.supported,
        seed,
        units=units,
        simulated=True,
        verbs=manifest.verbs.supported,
    )


def scenario_to_json(scenario: Scenario) -> dict[str, Any]:
    return {
        "name": scenario.name,
        "plan": scenario.plan.to_json(),
        "interruptions": [one.to_json() for one in scenario.interruptions],
    }


def scenario_from_json(data: Mapping[str, Any]) -> Scenario:
    """Read a scenario; raises `SimkitError` naming the field that is off."""
    try:
        interruptions = tuple(Interruption.from_json(one) for one in data["interruptions"])
        return Scenario(data["name"], Plan.from_json(data["plan"]), interruptions)
    except (KeyError, TypeError, ValueError) as error:
        raise SimkitError(
            Problem(
                "scenario-malformed",
                f"the scenario of this case cannot be read: {type(error).__name__}: {error}",
                "scenario",
                "name, plan and interruptions as simkit writes them",
                "the case was changed by hand or comes from another version; run its seed again",
            )
        ) from error


def observed(outcome: Outcome[Observation], scenario: Scenario) -> Observation:
    """What a run gave. Raises `SimkitError` when it met a bound, or kit or adapter broke the protocol."""
    if outcome.bound is not None:
        raise SimkitError(
            Problem(
                "simulation-bound",
                f"the run met its bound on {outcome.bound} after {outcome.steps} steps",
                scenario.name,
                f"at most {LIMITS.steps} steps and {LIMITS.time_ns // 10**9} simulated seconds",
                "something runs away: trace the seed and look at its last events",
                ExitCode.INCONCLUSIVE,
            )
        )
    return outcome.unwrap()

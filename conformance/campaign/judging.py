"""From one observed run to a judged one, with the case that brings it back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from conformance.campaign.judged import Judged
from conformance.simulate import scenario_to_json
from scenarios.history import Closed
from scenarios.rules import judge_all
from simkit.case import Case

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.driver import Observation
    from conformance.simulate import Simulated
    from conformance.targets import Target
    from scenarios.history import History
    from scenarios.interruption import Scenario
    from scenarios.verdict import Finding


def judge_simulated(
    target: Target, seed: int, simulated: Simulated, mutant: str | None, *, whole: bool = False
) -> Judged:
    """Judge a simulated run; its history comes along where there is something to see in it, or with `whole` always."""
    outcome = simulated.outcome
    findings = judge_all(simulated.observation.history)
    expect = expectation(findings)
    case = None
    if expect is not None:
        case = Case.of_run(
            outcome,
            target={**target.describe(), "mutant": mutant},
            seed=seed,
            expect=expect,
            scenario=scenario_to_json(simulated.scenario),
            options={"swarm": simulated.swarm},
        )
    judged = attrs.evolve(
        _judged(simulated.scenario, seed, findings, simulated.observation, case),
        faults=outcome.fired,
        points=outcome.points,
    )
    return judged if whole or judged.is_notable else attrs.evolve(judged, history=None)


def shown(history: History) -> list[str]:
    """Obligation and anomaly of each violation in a history, each once."""
    found = judge_all(history).items()
    return list(dict.fromkeys(f"{id_} {one.anomaly}" for id_, finding in found for one in finding.violations))


def judge_real(target: Target, scenario: Scenario, seen: Observation, seed: int | None) -> Judged:
    """Judge a run on real processes."""
    findings = judge_all(seen.history)
    expect = expectation(findings)
    case = None
    if expect is not None:
        case = Case(
            world="process",
            target={**target.describe(), "mutant": None},
            scenario=scenario_to_json(scenario),
            seed=seed,
            expect=expect,
        )
    return _judged(scenario, seed, findings, seen, case)


def expectation(findings: Mapping[str, Finding]) -> dict[str, Any] | None:
    """What a case of this run promises to show again: its first violation, and every other beside it."""
    kinds = [(id_, one.anomaly) for id_, finding in findings.items() for one in finding.violations]
    if not kinds:
        return None
    return {
        "obligation": kinds[0][0],
        "anomaly": kinds[0][1],
        "all": [f"{id_} {anomaly}" for id_, anomaly in dict.fromkeys(kinds)],
    }


def _judged(
    scenario: Scenario, seed: int | None, findings: Mapping[str, Finding], seen: Observation, case: Case | None
) -> Judged:
    unsettled = any(isinstance(event, Closed) and event.reason == "bound" for event in seen.history.events[-1:])
    return Judged(scenario.name, seed, findings, seen.fired, seen.unfired, seen.history, case, unsettled=unsettled)

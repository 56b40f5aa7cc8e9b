"""A named scenario with a mutant, in simulation: under the few schedules in which the proof looks for it, until it shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from conformance.campaign.judging import judge_simulated
from conformance.campaign.kinds import answered_for, kinds
from conformance.campaign.matrix import SCHEDULES_MAX, check_target
from conformance.campaign.vitality import doubt
from conformance.events import CampaignBegan, Replayed
from conformance.mutants import find
from conformance.simulate import simulate
from simkit.errors import SimkitError

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.campaign.docket import Docket
    from conformance.campaign.judged import Judged
    from conformance.events import Emit
    from conformance.targets import Target
    from scenarios.interruption import Scenario


def replay_mutant(
    target: Target, scenario: Scenario, mutant: str, docket: Docket, emit: Emit, stopping: Callable[[], bool]
) -> Replayed:
    """Run `scenario` with `mutant`: reproduced when anything claimed is violated. The schedules are always the same ones, the
    first that the mutant's own obligation blames is told, else the last. Raises `SimkitError` for another target than the
    reference runtime, a mutant there is not, and when none of the runs can be judged.
    """
    check_target(target)
    broken = find(mutant)
    emit(CampaignBegan(target.title, "replay", "simulated", None, {"scenario": scenario.name, "mutant": mutant}))
    last: Judged | None = None
    made, problem = 0, None
    for seed in range(SCHEDULES_MAX):
        if stopping() and made:
            break
        made += 1
        try:
            simulated = simulate(target, seed, scenario=scenario, mutant=mutant, swarm=broken.swarm)
        except SimkitError as error:
            problem = error
            continue
        last = judge_simulated(target, seed, simulated, mutant, whole=True)
        if broken.obligation in last.findings and last.findings[broken.obligation].violations:
            break
    if last is None:
        assert problem is not None
        raise problem
    docket.add(attrs.evolve(last, seed=None))  # known by its scenario; the seed means only the schedule here
    ours, others = answered_for(map(" ".join, kinds(last)), docket.claimed, None)
    why = "" if ours else doubt(last, docket.claimed)
    return Replayed(
        "reproduced" if ours else "inconclusive" if why else "clean",
        scenario.name,
        docket.cases[-1] if docket.cases else None,
        got=", ".join(ours),
        times=int(bool(ours)),
        of=made,
        reason=why,
        beside=", ".join(others),
    )

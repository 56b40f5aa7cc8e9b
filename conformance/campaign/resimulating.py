"""A simulated case once more: its answer, and what there is to see on the way (its trace, a standstill, a debugger)."""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import attrs

from conformance.campaign.judging import judge_simulated, shown
from conformance.campaign.kinds import answered_for, kinds
from conformance.events import CampaignBegan, Explained, Replayed
from conformance.mutants import applied
from conformance.reporters.wording import time
from conformance.simulate import LIMITS, Simulated, observed, program, scenario_from_json
from simkit.debugging import check_debugger, debug
from simkit.replaying import replay, replay_until

if TYPE_CHECKING:
    from conformance.campaign.docket import Docket
    from conformance.driver import Observation
    from conformance.events import Answer, Emit
    from conformance.look import Look
    from conformance.targets import Target
    from simkit.case import Case
    from simkit.replaying import Divergence, Standstill
    from simkit.world import Outcome

_ANSWERS: dict[str, Answer] = {
    "reproduced": "reproduced",
    "fixed": "fixed",
    "different failure": "different",
    "diverged": "diverged",
    "stopped": "stopped",
}


def resimulate(
    case: Case, target: Target, wanted: str, mutant: str | None, docket: Docket, emit: Emit, look: Look
) -> Replayed:
    """Run a simulated case again. Raises `SimkitError` for an event that is not there, and where nobody could type."""
    if look.debug_at is not None:
        check_debugger()
    emit(CampaignBegan(target.title, "replay", "simulated", None, {"case": case.id}, 1))
    scenario = scenario_from_json(case.scenario)
    swarm = bool(case.options.get("swarm", False))
    main = program(target, scenario, swarm=swarm)
    with applied(mutant):
        if look.until is not None:
            standing = replay_until(case, main, look.until, limits=LIMITS, trace_sink=look.trace)
            return _stopped(case, scenario.name, standing, emit)
        before = None if look.debug_at is None else (look.debug_at, debug)
        judge = functools.partial(_failures, claimed=docket.claimed, wanted=wanted)
        again = replay(case, main, judge=judge, wanted=wanted, limits=LIMITS, trace_sink=look.trace, before=before)
    if again.answer == "stopped":
        return Replayed("stopped", scenario.name, case.id, at_event=look.debug_at)
    beside = ""
    if again.answer != "diverged":  # what it shows otherwise proves nothing
        simulated = Simulated(scenario, observed(again.outcome, scenario), again.outcome, swarm)
        judged = judge_simulated(target, case.seed or 0, simulated, mutant, whole=True)
        docket.add(judged)
        beside = ", ".join(answered_for(map(" ".join, kinds(judged)), docket.claimed, wanted)[1])
    return attrs.evolve(
        _with(again.divergence),
        answer=_ANSWERS[again.answer],
        scenario=scenario.name,
        case_id=case.id,
        expected=wanted,
        got=", ".join(again.failures),
        beside=beside,
        recorded_digest=case.digest,
        digest=again.digest,
        times=int(wanted in again.failures),
    )


def _failures(outcome: Outcome[Observation], claimed: Collection[str], wanted: str) -> Sequence[str]:
    """The violations of a run that its target or its case answers for; of one that cannot be judged, why."""
    if outcome.bound is not None:
        return (f"its bound on {outcome.bound} met",)
    if outcome.error is not None:
        return (f"not judged: {type(outcome.error).__name__}",)
    assert outcome.value is not None
    return answered_for(shown(outcome.value.history), claimed, wanted)[0]


def _with(divergence: Divergence | None) -> Replayed:
    """Where it parted."""
    if divergence is None:
        return Replayed("diverged", "")
    there = "; ".join(map(str, divergence.replayed[:3]))
    return Replayed(
        "diverged",
        "",
        at_event=divergence.last,
        since_event=None if divergence.exact else divergence.first,
        recorded=divergence.recorded,
        replayed="; ".join(part for part in (there, divergence.note) if part),
    )


def _stopped(case: Case, name: str, standing: Standstill, emit: Emit) -> Replayed:
    title = f"before event {standing.event}, step {standing.step}, at {time(standing.now_ns)}"
    emit(Explained("standstill", case.id, title, standing.sections()))
    return Replayed("stopped", name, case.id, at_event=standing.event)

"""A failing seed made small, and explained: the fewest operations, interruptions, faults and pre-emptions that still fail so.

`shrink_failure` keeps one obligation and one anomaly, whatever else the run showed. Bounded by runs, and by time where asked
for; by runs alone, the same failure gives the same case every time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from conformance.campaign.judged import Judged, Small
from conformance.campaign.judging import judge_simulated, shown
from conformance.mutants import applied
from conformance.picture import drawn as drawn_as_text
from conformance.picture import pictured
from conformance.reduction import DETAIL, GROUP, INTERRUPTION, OPERATION, departures_of, reduced, without_scenario
from conformance.simulate import Simulated, program, scenario_from_json
from simkit.errors import SimkitError
from simkit.explanation import Explanation, explain
from simkit.shrinking import Attempt, Budget, Departures, Plan, Progress, Retrial, Shrunk, shrink
from simkit.shrinking.search import OverBudget
from simkit.spacetime import Known, Watch, as_html, table

if TYPE_CHECKING:
    from conformance.driver import Observation
    from conformance.order import Bounds
    from conformance.targets import Target
    from scenarios.interruption import Scenario
    from simkit.case import Case
    from simkit.world import Outcome, World

_STEPS_FACTOR = 4
_STEPS_SLACK = 1000
_CAUSES_MAX = 6


def shrink_failure(
    target: Target,
    judged: Judged,
    kind: str,
    bounds: Bounds,
    progress: Callable[[Progress], object],
    stopping: Callable[[], bool],
) -> Small | None:
    """Make the failure `kind` ("DUR-1 amnesia") of a simulated run small; None when it is not seen again at all."""
    case = judged.case
    assert case is not None
    if stopping():
        return None
    mutant = case.target.get("mutant")
    with applied(mutant):
        trial = _Trial(target, case, kind, bounds, stopping)
        departures = {**without_scenario(case.departures), **departures_of(trial.whole)}
        try:
            found = shrink(
                trial,
                departures,
                case.schedule,
                fingerprint=kind,
                budget=Budget(bounds.runs),
                progress=progress,
                departures_first=True,
            )
            why = explain(trial, found.best, runs_max=bounds.runs)
            again = trial.again(found.best)
        except (SimkitError, OverBudget):  # told by the run as it was found
            return None
        if again is None:
            return None
        simulated, known = again
        small = judge_simulated(target, judged.seed or 0, simulated, mutant)
    told, decides = _told(found), sentence(why)
    drawing = pictured(table(simulated.outcome.trace, known, why, failure=kind), why)
    title = f"{kind}: {simulated.scenario.name}"
    drawn = {"spacetime.txt": drawn_as_text(drawing), "spacetime.html": as_html(drawing, title)}
    return Small(_with_case(small, case, kind, told, decides), case, told, decides, drawn)


class _Trial:
    """Runs a case again with other departures and another schedule; ends the search when it is to stop."""

    def __init__(self, target: Target, case: Case, kind: str, bounds: Bounds, stopping: Callable[[], bool]) -> None:
        self.whole = scenario_from_json(case.scenario)
        self._target, self._case, self._kind = target, case, kind
        self._swarm = bool(case.options.get("swarm", False))
        self._stopping = stopping
        self._until = time.monotonic() + bounds.seconds if bounds.seconds else None
        self._scenario: Scenario | None = None
        self._made = 0
        steps = sum(steps for _, steps in case.schedule)
        main = program(target, self._reduced, swarm=self._swarm)
        self._retrial = Retrial(
            main, entropy=case.seed or 0, steps_max=steps * _STEPS_FACTOR + _STEPS_SLACK, failure=self._failure
        )

    def __call__(self, departures: Departures, plan: Plan) -> Attempt:
        first, self._made = self._made == 0, self._made + 1
        if first:  # without which there is nothing to go on from
            return self._retrial(departures, plan)
        if self._stopping() or (self._until is not None and time.monotonic() >= self._until):
            raise OverBudget("time")
        return self._retrial(departures, plan)

    def places(self, attempt: Attempt, steps: Iterable[tuple[int, int]]) -> Mapping[Any, Any]:
        """Where tasks stood, for an explanation."""
        return self._retrial.places(attempt, steps)

    def again(self, attempt: Attempt) -> tuple[Simulated, Known] | None:
        """The run of an attempt, made by its scenario, choices and schedule alone, as a replay makes it, and watched for a
        drawing of it; None if it differs.
        """
        _, outcome = self._retrial.run(attempt.departures, attempt.plan)
        scenario = self._scenario
        assert scenario is not None
        case = attrs.evolve(
            self._case,
            departures=without_scenario(outcome.departures),
            schedule=outcome.schedule,
            digest=outcome.digest,
        )
        main = program(self._target, scenario, swarm=self._swarm)
        watch = Watch()
        replayed = watch.run(main, tape=case.tape(), strategy=case.strategy())
        if replayed.digest != outcome.digest or replayed.value is None:
            return None
        return Simulated(scenario, replayed.value, replayed, self._swarm), watch.known

    def _reduced(self, world: World) -> Scenario:
        self._scenario = reduced(self.whole, world)
        return self._scenario

    def _failure(self, outcome: Outcome[Observation]) -> str | None:
        """The wanted failure when the run shows it among others, else the first one."""
        if outcome.bound is not None or outcome.value is None:
            return None
        kinds = shown(outcome.value.history)
        return self._kind if self._kind in kinds else next(iter(kinds), None)


def _with_case(small: Judged, unshrunk: Case, kind: str, told: str, decides: str) -> Judged:
    """The judged run with a case that expects what was kept, and knows what it was made of and what decides."""
    assert small.case is not None
    obligation, _, anomaly = kind.partition(" ")
    expect = {**(small.case.expect or {}), "obligation": obligation, "anomaly": anomaly}
    options = {**small.case.options, "unshrunk": unshrunk.id, "shrunk": told, "decides": decides}
    return attrs.evolve(small, case=attrs.evolve(small.case, expect=expect, options=options))


def _told(found: Shrunk) -> str:
    before, after = found.first, found.best
    bound = f", stopped by its bound on {found.stopped}" if found.stopped else ""
    return (
        f"{len(before.departures)} choices and {before.preemptions} pre-emptions to "
        f"{len(after.departures)} and {after.preemptions}, in {found.runs} runs{bound}"
    )


def sentence(why: Explanation) -> str:
    """What decides, in the words of scenarios; empty when nothing does on its own."""
    plain = (DETAIL, GROUP, OPERATION)  # what everybody knows comes last
    causes = sorted(why.causes, key=lambda cause: plain.index(cause.site[0]) + 1 if cause.site[0] in plain else 0)
    names = [_named(cause.site, str(cause)) for cause in causes]
    more = len(names) - _CAUSES_MAX
    names = [*names[:_CAUSES_MAX], *([f"{more} more"] if more > 0 else [])]
    parts = [f"with {_listed(names)}"] if names else []
    parts += [f"while {ordering}" for ordering in why.orderings[:_CAUSES_MAX]]
    if not parts:
        return ""
    return f"it fails {'so ' * why.fails_otherwise}only {_listed(parts)}" + (
        "" if why.complete else f", as far as {why.runs} runs tell"
    )


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _named(site: tuple[str, str, int], otherwise: str) -> str:
    label, key, _ = site
    match label:
        case "swarm":
            return key if key == "storm" else f"{key} drawn"
        case str() if label == INTERRUPTION:
            return key
        case str() if label in {OPERATION, GROUP}:
            return f"{label} {key}"
        case str() if label == DETAIL:
            of, _, field = key.rpartition(".")
            return f"{field} of {of}"
        case _:
            return otherwise

"""What is done with a failing run: shrink it, explain it, save it as a case."""

from __future__ import annotations

import contextlib
import io
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs

from simkit.blame import Place, places_of
from simkit.case import Case
from simkit.errors import SimkitError
from simkit.examples import NotJsonError, encoded
from simkit.explanation import Explanation, explain
from simkit.settings import Settings
from simkit.shrinking import Budget, LooseSchedule, Retrial, Shrunk, fingerprint_of, shrink
from simkit.spacetime import Known, Table, Watch, table
from simkit.tape import Tape
from simkit.testing import Failed, Spec, failure_of, hushed, program_of, strategy_of
from simkit.world import Limits, Outcome

_STEPS_FACTOR = 4
_STEPS_SLACK = 1000
#: Bounds that are met in the midst of a step.
_ON_THE_WALL = ("step-time", "memory", "events")
_AGAIN_S = 1.0
#: A deadlock is called by so many places.
_PLACES_MAX = 3
#: A bound that was met is no failure to shrink: a smaller run would be the opposite.
_NOT_SHRUNK = "simulation-bound"


@attrs.frozen
class Found:
    """A failure, as far as it became clear."""

    failed: Failed
    error: BaseException  # of the shrunk run
    output: str  # what the shrunk run printed
    shrunk: Shrunk | None
    explanation: Explanation | None
    case: Case | None
    path: Path | None
    outcome: Outcome[Any] = attrs.field(repr=False)  # of the shrunk run, watched
    known: Known = attrs.field(repr=False)
    strategy: str = ""  # by name, where it has one
    trouble: str = ""  # why something above is missing

    def table(self, rows_max: int) -> Table:
        """The space-time table of the shrunk run."""
        place = place_of(self.error)
        return table(self.outcome.trace, self.known, self.explanation, failure=place, rows_max=rows_max)


def investigate(failed: Failed, test: str, fixtures: Mapping[str, Any], settings: Settings, store: Path) -> Found:
    """Shrink, explain and save, as far as the settings want it and the failure allows it."""
    retrial = retrial_of(failed.spec, failed.arguments, failed.world_seed, steps=failed.outcome.steps)
    shrunk, explanation, trouble = None, None, ""
    try:
        with hushed():
            shrunk = _shrink(failed, retrial, settings)
            if shrunk is not None and settings.explain_runs > 0:
                explanation = explain(retrial, shrunk.best, runs_max=settings.explain_runs)
    except SimkitError as told:
        trouble = told.problem.what
    output, watch = io.StringIO(), Watch()
    with hushed(output):
        again = _watched(watch, failed, shrunk)
    outcome, error = failed.outcome, failed.error
    if shrunk is not None:
        outcome, error = again, failure_of(failed.spec, again) or failed.error
    strategy = strategy_of(failed.spec, settings)
    name = strategy if isinstance(strategy, str) else ""
    case, path, missing = _saved(
        failed, test, fixtures, outcome, anomaly_of(error), name, store, by_default=_by_default(explanation)
    )
    trouble = missing or trouble
    return Found(failed, error, output.getvalue(), shrunk, explanation, case, path, again, watch.known, name, trouble)


def _watched(watch: Watch, failed: Failed, shrunk: Shrunk | None) -> Outcome[Any]:
    """The run that is shown, once more, for what it prints and for the table of it."""
    departures, plan = failed.outcome.departures, failed.outcome.schedule
    limits = Limits(steps=failed.outcome.steps + _STEPS_SLACK)
    if failed.outcome.bound:  # the step in which one on the wall was met is not taken again, or not for long
        steps = failed.outcome.steps - (failed.outcome.bound in _ON_THE_WALL)
        limits = Limits(steps=max(1, steps), step_s=_AGAIN_S)
    if shrunk is not None:
        departures, plan = dict(shrunk.best.departures), shrunk.best.plan
        limits = Limits(steps=failed.outcome.steps * _STEPS_FACTOR + _STEPS_SLACK)
    return watch.run(
        program_of(failed.spec, failed.arguments),
        tape=Tape.from_departures(departures, entropy=failed.world_seed),
        strategy=LooseSchedule(plan),
        limits=limits,
    )


def _saved(
    failed: Failed,
    test: str,
    fixtures: Mapping[str, Any],
    outcome: Outcome[Any],
    anomaly: str,
    strategy: str,
    store: Path,
    *,
    by_default: bool,
) -> tuple[Case | None, Path | None, str]:
    """The case, where it is, and why one of them is missing."""
    try:
        arguments = {name: encoded(value) for name, value in failed.arguments.items() if name not in fixtures}
    except (NotJsonError, RecursionError) as problem:
        return None, None, f"a case: no file can hold the example ({problem})"
    case = Case.of_run(
        outcome,
        target={"name": "pytest", "test": test},
        seed=failed.world_seed,
        expect={"obligation": "the test passes", "anomaly": anomaly},
        scenario={"arguments": arguments},
        options={"steps": outcome.steps, "strategy": strategy, "run": failed.seed, **_BY_DEFAULT[by_default]},
    )
    try:
        path = case.save(store / "cases")
    except OSError as problem:
        return None, None, f"a case: it could not be saved ({problem})"
    if by_default:
        with contextlib.suppress(OSError):
            _forget_earlier(case, path)
    return case, path, ""


#: What the options of a case say of a failure that needs nothing drawn.
_BY_DEFAULT: Mapping[bool, Mapping[str, bool]] = {True: {"by_default": True}, False: {}}


def _by_default(explanation: Explanation | None) -> bool:
    """Is it a mistake in the program, which fails whatever is drawn?"""
    return explanation is not None and explanation.by_default


def _forget_earlier(case: Case, path: Path) -> None:
    """Delete the older cases of a mistake in the program, in which nothing was drawn: one of a test and kind is enough."""
    for other in path.parent.glob("*.json"):
        if other == path:
            continue
        try:
            known = Case.load(other)
        except (SimkitError, OSError):
            continue
        if known.options.get("by_default") and (known.target, known.expect) == (case.target, case.expect):
            other.unlink(missing_ok=True)


def retrial_of(spec: Spec, arguments: Mapping[str, Any], seed: int, *, steps: int) -> Retrial:
    """Runs the test again with other choices; what runs away does not count."""

    def failure(outcome: Outcome[Any]) -> object:
        error = failure_of(spec, outcome)
        return None if error is None else fingerprint_of(error)

    program = program_of(spec, arguments)
    return Retrial(program, entropy=seed, steps_max=steps * _STEPS_FACTOR + _STEPS_SLACK, failure=failure)


def anomaly_of(error: BaseException) -> str:
    """Type and function of a failure: what stays the same on another machine, and when lines move."""
    return _told(error, lambda place: f"{Path(place.filename).name}:{place.name}")


def place_of(error: BaseException) -> str:
    """Type and line of a failure, for people; of a bound that was met, that."""
    if isinstance(error, SimkitError) and error.problem.code == _NOT_SHRUNK:
        return error.problem.what
    return _told(error, lambda place: f"{Path(place.filename).name}:{place.lineno}")


def _told(error: BaseException, worded: Callable[[Place], str]) -> str:
    if isinstance(error, BaseExceptionGroup):
        return " and ".join(sorted({_told(one, worded) for one in error.exceptions}))
    places = list(dict.fromkeys(worded(place) for place in places_of(error)))
    more = [f"{len(places) - _PLACES_MAX} more places"] if len(places) > _PLACES_MAX else []
    at = " and ".join(places[:_PLACES_MAX] + more)
    return type(error).__qualname__ + (f" at {at}" if at else "")


def _shrink(failed: Failed, retrial: Retrial, settings: Settings) -> Shrunk | None:
    error = failed.error
    bound_met = isinstance(error, SimkitError) and error.problem.code == _NOT_SHRUNK
    if settings.shrink_runs == 0 or bound_met:
        return None
    budget = Budget(settings.shrink_runs, settings.shrink_seconds or None, time.monotonic)
    schedule = failed.outcome.schedule
    return shrink(retrial, failed.outcome.departures, schedule, fingerprint=fingerprint_of(error), budget=budget)

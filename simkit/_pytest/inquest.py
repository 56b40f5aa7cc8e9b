"""What is done with a failing run: shrink it, explain it, save it as a case."""

from __future__ import annotations

import io
import json
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs

from simkit.case import Case
from simkit.errors import SimkitError
from simkit.explanation import Explanation, explain
from simkit.ladder import Ladder
from simkit.settings import Settings
from simkit.shrinking import Budget, Retrial, Shrunk, fingerprint_of, shrink
from simkit.testing import Failed, Spec, failure_of, hushed, program_of
from simkit.world import Outcome

_STEPS_FACTOR = 4
_STEPS_SLACK = 1000
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
    trouble: str = ""  # why something above is missing


def investigate(failed: Failed, test: str, fixtures: Mapping[str, Any], settings: Settings, store: Path) -> Found:
    """Shrink, explain and save, as far as the settings want it and the failure allows it."""
    retrial = retrial_of(failed.spec, failed.arguments, failed.seed, steps=failed.outcome.steps)
    shrunk, explanation, trouble = None, None, ""
    outcome, error, output = failed.outcome, failed.error, io.StringIO()
    try:
        with hushed():
            shrunk = _shrink(failed, retrial, settings)
            if shrunk is not None and settings.explain_runs > 0:
                explanation = explain(retrial, shrunk.best, runs_max=settings.explain_runs)
    except SimkitError as told:
        trouble = told.problem.what
    chosen = (outcome.departures, outcome.schedule) if shrunk is None else (shrunk.best.departures, shrunk.best.plan)
    with hushed(output):
        _, again = retrial.run(*chosen)
    if shrunk is not None:
        outcome, error = again, failure_of(failed.spec, again) or failed.error
    arguments = {name: value for name, value in failed.arguments.items() if name not in fixtures}
    case, path = None, None
    if not _is_json(arguments):
        trouble = "the example is not JSON, so that no case can hold it"
    else:
        case = _case(failed, test, arguments, outcome, anomaly_of(error))
        try:
            path = case.save(store / "cases")
        except OSError as problem:
            case, trouble = None, f"the case could not be saved: {problem}"
    return Found(failed, error, output.getvalue(), shrunk, explanation, case, path, trouble)


def retrial_of(spec: Spec, arguments: Mapping[str, Any], seed: int, *, steps: int) -> Retrial:
    """Runs the test again with other choices; what runs away does not count."""

    def failure(outcome: Outcome[Any]) -> object:
        error = failure_of(spec, outcome)
        return None if error is None else fingerprint_of(error)

    program = program_of(spec, arguments)
    return Retrial(program, entropy=seed, steps_max=steps * _STEPS_FACTOR + _STEPS_SLACK, failure=failure)


def anomaly_of(error: BaseException) -> str:
    """Type and function of a failure: what stays the same on another machine, and when lines move."""
    return _told(error, lambda frame: f"{Path(frame.filename).name}:{frame.name}")


def place_of(error: BaseException) -> str:
    """Type and line of a failure, for people."""
    return _told(error, lambda frame: f"{Path(frame.filename).name}:{frame.lineno}")


def _told(error: BaseException, place: Callable[[traceback.FrameSummary], str]) -> str:
    if isinstance(error, BaseExceptionGroup):
        return " and ".join(sorted({_told(one, place) for one in error.exceptions}))
    frames = traceback.extract_tb(error.__traceback__, limit=-1)
    return type(error).__qualname__ + "".join(f" at {place(frame)}" for frame in frames)


def _shrink(failed: Failed, retrial: Retrial, settings: Settings) -> Shrunk | None:
    error = failed.error
    bound_met = isinstance(error, SimkitError) and error.problem.code == _NOT_SHRUNK
    if settings.shrink_runs == 0 or bound_met:
        return None
    budget = Budget(settings.shrink_runs, settings.shrink_seconds or None, time.monotonic)
    schedule = failed.outcome.schedule
    return shrink(retrial, failed.outcome.departures, schedule, fingerprint=fingerprint_of(error), budget=budget)


def _case(failed: Failed, test: str, arguments: dict[str, Any], outcome: Outcome[Any], anomaly: str) -> Case:
    return Case(
        world="simulated",
        target={"name": "pytest", "test": test},
        scenario={"arguments": arguments},
        seed=failed.seed,
        options={"steps": outcome.steps},
        departures=outcome.departures,
        schedule=outcome.schedule,
        expect={"obligation": "the test passes", "anomaly": anomaly},
        digest=outcome.digest,
        ladder=Ladder.of(outcome.trace),
    )


def _is_json(value: Any) -> bool:
    try:
        return bool(json.loads(json.dumps(value, allow_nan=False)) == value)
    except (TypeError, ValueError, RecursionError):
        return False

"""A case, run again inside its test. What became of it `simkit.replaying` says: reproduced, fixed, a different failure, or
diverged at an event.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from simkit import replaying
from simkit._pytest.inquest import anomaly_of
from simkit._pytest.looking import Debugger, Look
from simkit.case import Case
from simkit.errors import Problem, SimkitError
from simkit.examples import decoded
from simkit.testing import Spec, failure_of, program_of
from simkit.world import Limits, Outcome

_MAIN = 1


@attrs.frozen
class Replayed:
    """What became of a case in its test."""

    verdict: replaying.Replayed
    error: BaseException | None  # what the test fails with; None also where it only diverged

    @property
    def fails(self) -> bool:
        """Whether the test does; a run that is another one now says nothing of the failure, and is no pass."""
        return self.error is not None or self.verdict.answer == "diverged"

    def __str__(self) -> str:
        verdict = self.verdict
        if verdict.answer == "fixed" and verdict.divergence is not None:
            at = verdict.divergence
            where = f"event {at.last}" if at.exact else f"events {at.first} to {at.last}"
            return f"case {verdict.case.id}: fixed; what its steps do differs from {where} on"
        if verdict.answer == "diverged" and self.error is None:
            begins = "" if verdict.divergence is None else f" {verdict.divergence.where}"
            return f"case {verdict.case.id}: diverged{begins}, and nothing fails any more: the program has changed"
        return str(verdict)


def find(name: str, store: Path) -> Case:
    """The case that is called `name`: a path, or an id, or the beginning of one that fits a single case. SimkitError."""
    if name.endswith(".json"):
        return _of_a_test(Case.load(Path(name)), name)
    folder = store / "cases"
    paths = sorted(folder.glob(f"{name}*.json")) if name.isalnum() else []
    if len(paths) == 1:
        return _of_a_test(Case.load(paths[0]), str(paths[0]))
    known = ", ".join(path.stem for path in sorted(folder.glob("*.json"))[:5])
    what = "there is no such case" if not paths else f"{len(paths)} cases begin so"
    hint = f"the first ones there are: {known}" if known else "there are no cases; a failing test saves one"
    raise SimkitError(
        Problem("case-missing", f"{what}: {name!r}", str(folder), "the id of one case, or its file", hint)
    )


def replay(
    case: Case,
    spec: Spec,
    arguments: Mapping[str, Any],
    limits: Limits,
    look: Look = Look(),  # noqa: B008  # frozen
    debugger: Debugger | None = None,
) -> Replayed:
    """Run the case's test with the recorded choices and schedule; loosely once more where these no longer fit."""
    before = None if look.break_at is None or debugger is None else (look.break_at, debugger)

    def judge(outcome: Outcome[Any]) -> list[str]:
        error = failure_of(spec, outcome)
        return [] if error is None else [anomaly_of(error)]

    program = _program(case, spec, arguments)
    with look.sink() as sink:
        verdict = replaying.replay(case, program, judge=judge, limits=limits, trace_sink=sink, before=before)
    if verdict.answer == "diverged" and not verdict.failures and _takes_the_same_steps(case, verdict.outcome):
        verdict = attrs.evolve(verdict, answer="fixed")  # whoever mends a program changes what it does
    if verdict.answer == "fixed":
        return Replayed(verdict, None)
    return Replayed(verdict, failure_of(spec, verdict.outcome))


def standstill(
    case: Case, spec: Spec, arguments: Mapping[str, Any], limits: Limits, look: Look
) -> replaying.Standstill:
    """Run the case's test up to an event, and say how everything stands there. SimkitError for an event that is not there."""
    assert look.until is not None
    program = _program(case, spec, arguments)
    with look.sink() as sink:
        return replaying.replay_until(case, program, look.until, limits=limits, trace_sink=sink)


def _program(case: Case, spec: Spec, arguments: Mapping[str, Any]) -> replaying.Program:
    return program_of(spec, arguments_of(case, arguments))


def arguments_of(case: Case, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the test: what pytest gives, and the example that the case holds."""
    return {**arguments, **decoded(case.scenario.get("arguments", {}))}


def _takes_the_same_steps(case: Case, outcome: Outcome[Any]) -> bool:
    """Whether every recorded step was taken, up to the last one of the main task; what follows only winds up."""
    recorded = [task for task, steps in case.schedule for _ in range(steps)]
    ends = [at + 1 for at, task in enumerate(recorded) if task == _MAIN]
    until = max(ends, default=0)
    return outcome.trace.steps()[:until] == recorded[:until]


def _of_a_test(case: Case, where: str) -> Case:
    if isinstance(case.target.get("test"), str):
        return case
    raise SimkitError(
        Problem(
            "case-of-another-kind",
            "the case is none of a test",
            where,
            "a case that the pytest plugin saved",
            "replay it with `simkit replay`",
        )
    )

"""A case, run again inside its test: reproduced, fixed, a different failure, or diverged at an event."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import attrs

from simkit._pytest.inquest import anomaly_of, retrial_of
from simkit.case import Case
from simkit.errors import Problem, SimkitError
from simkit.shrinking import LooseSchedule
from simkit.strategy import ReplayDivergedError, ReplaySchedule, Segment
from simkit.testing import Spec, failure_of, program_of
from simkit.world import Limits, run

_MAIN = 1
Answer = Literal["reproduced", "fixed", "different failure", "diverged"]


@attrs.frozen
class Replayed:
    """What became of a case."""

    case: Case
    answer: Answer
    digest: str
    error: BaseException | None
    note: str = ""

    def __str__(self) -> str:
        same = "the same digest" if self.digest == self.case.digest else "another digest"
        digest = f", with {same} {self.digest}" if self.answer == "reproduced" else ""
        return f"case {self.case.id}: {self.answer}{digest}{self.note}"


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


def replay(case: Case, spec: Spec, arguments: Mapping[str, Any], steps_max: int) -> Replayed:
    """Run the case's test with the recorded choices and schedule; loosely once more where these no longer fit."""
    arguments = {**arguments, **case.scenario.get("arguments", {})}
    program = program_of(spec, arguments)
    outcome = run(program, tape=case.tape(), strategy=case.strategy(), limits=Limits(steps=steps_max))
    error = failure_of(spec, outcome)
    if isinstance(error, ReplayDivergedError):
        before = _until_main_ended(case.schedule)
        if error.event < sum(steps for _, steps in before):
            return _loosely(case, spec, arguments, error)
        # The recorded run ended by its failure; a mended one takes the same steps up to there, and then goes on.
        strategy = ReplaySchedule(before, then=LooseSchedule())
        outcome = run(program, tape=case.tape(), strategy=strategy, limits=Limits(steps=steps_max))
        error = failure_of(spec, outcome)
    if error is None:
        return Replayed(case, "fixed", outcome.digest, None)
    same = anomaly_of(error) == (case.expect or {}).get("anomaly")
    return Replayed(case, "reproduced" if same else "different failure", outcome.digest, error)


def _until_main_ended(schedule: tuple[Segment, ...]) -> tuple[Segment, ...]:
    """Up to the last step of the main task, which is number 1; what follows only winds up."""
    ends = [at + 1 for at, (task, _) in enumerate(schedule) if task == _MAIN]
    return schedule[: max(ends, default=0)]


def _loosely(case: Case, spec: Spec, arguments: Mapping[str, Any], diverged: ReplayDivergedError) -> Replayed:
    """The program has changed: follow the schedule as far as it fits, and tell what that gives as well."""
    steps = sum(steps for _, steps in case.schedule)
    retrial = retrial_of(spec, arguments, case.seed or 0, steps=steps)
    _, outcome = retrial.run(case.departures, case.schedule)
    error = failure_of(spec, outcome)
    followed = "it passes" if error is None else f"it fails: {anomaly_of(error)}"
    note = f" at event {diverged.event}; followed as far as it fits, {followed}"
    diverged.add_note(f"case {case.id} diverged{note}")
    return Replayed(case, "diverged", outcome.digest, diverged, note)


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

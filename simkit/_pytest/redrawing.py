"""The picture of a replay that fails: why it does, and its space-time table with the numbers of its events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simkit._pytest import block
from simkit._pytest.inquest import place_of, retrial_of
from simkit._pytest.replay import Replayed, arguments_of
from simkit.errors import SimkitError
from simkit.explanation import Explanation, explain
from simkit.settings import Settings
from simkit.shrinking import LooseSchedule
from simkit.spacetime import Watch, table
from simkit.tape import Tape
from simkit.testing import Spec, hushed, program_of


def redrawn(replayed: Replayed, spec: Spec, arguments: Mapping[str, Any], settings: Settings) -> str:
    """What the report of a failed replay says; nothing for one that met a bound, which would only meet it again."""
    case, outcome = replayed.verdict.case, replayed.verdict.outcome
    if replayed.error is None or outcome.bound is not None:
        return ""
    every = arguments_of(case, arguments)
    watch = Watch()
    with hushed():
        explanation = _explained(replayed, spec, every, settings)
        again = watch.run(
            program_of(spec, every),
            tape=Tape.from_departures(outcome.departures, entropy=case.seed or 0),
            strategy=LooseSchedule(outcome.schedule),
            limits=settings.limits,
        )
    if settings.table_rows == 0:
        return "" if explanation is None else f"why: {explanation}"
    failure = place_of(replayed.error)
    drawn = table(again.trace, watch.known, explanation, failure=failure, rows_max=settings.table_rows)
    why = [] if explanation is None else [f"why: {explanation.sentence(block.lettered(drawn))}"]
    return "\n".join([*why, "", *block.drawing(drawn, with_events=True)])


def _explained(replayed: Replayed, spec: Spec, arguments: Mapping[str, Any], settings: Settings) -> Explanation | None:
    """What decides, if the settings want to know and the run, made as counterfactual ones are, fails again."""
    if settings.explain_runs == 0:
        return None
    outcome = replayed.verdict.outcome
    retrial = retrial_of(spec, arguments, replayed.verdict.case.seed or 0, steps=outcome.steps)
    try:
        attempt = retrial(outcome.departures, outcome.schedule)
        return None if attempt.fingerprint is None else explain(retrial, attempt, runs_max=settings.explain_runs)
    except SimkitError:
        return None

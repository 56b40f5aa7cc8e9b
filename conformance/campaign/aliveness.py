"""A first run that nothing disturbs and that never calls a service: an adapter that does not work, and nothing of the harness.

Its worker's thread or task has mostly ended by an exception, which nobody is told of but its log. So it is quoted, and the
campaign ends there, as it does where a start fails, instead of many more runs of which nobody can say anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from conformance.campaign.vitality import is_undisturbed
from conformance.processes import tail
from scenarios.history import Answered, Closed, Received
from simkit.errors import ExitCode, Problem

if TYPE_CHECKING:
    from conformance.campaign.judged import Judged
    from conformance.targets import Target
    from scenarios.history import History

#: The one kind of violation that such a run may show: it says no more than that nothing went on.
_STUCK = "stuck"


def alive(target: Target, judged: Judged) -> Judged:
    """The run as it was judged; where its plan has calls and none was made until it was given up, why it cannot be judged."""
    if not is_undisturbed(judged) or judged.history is None or not _stood_still(judged.history):
        return judged
    if any(one.anomaly != _STUCK for found in judged.findings.values() for one in found.violations):
        return judged
    return attrs.evolve(judged, findings={}, case=None, unsettled=False, problem=_problem(target, judged))


def _stood_still(history: History) -> bool:
    """Was the run given up, with calls in its plan of which none was made, and is it said to go on?"""
    given_up = any(isinstance(one, Closed) and one.reason == "bound" for one in history.events[-1:])
    called = any(isinstance(one, Received) for one in history.events)
    return given_up and not called and bool(history.plan.calls()) and _state(history) not in {"", "unknown"}


def _state(history: History) -> str:
    shown = [one.status.state for one in history.events if isinstance(one, Answered) and one.status is not None]
    return shown[-1] if shown else ""


def _problem(target: Target, judged: Judged) -> Problem:
    assert judged.history is not None
    calls = judged.history.plan.calls()
    limits = target.manifest.limits
    return Problem(
        "never-calls",
        f"{target.name} acknowledged the run, showed it as {_state(judged.history)} for {4 * limits.settle_ms / 1000:g} s, and "
        f"called no service, though nothing disturbed it; the worker's last words:\n    {_last_words(target, judged)}",
        f"scenario {judged.scenario}; its plan has {len(calls)} calls, the first to {calls[0].service}",
        "a run that is carried out, at least where nothing is disturbed",
        "an exception in a thread or task of the adapter ends here: its traceback is among the last words",
        ExitCode.TARGET,
    )


def _last_words(target: Target, judged: Judged) -> str:
    """The end of the error output of the worker; the log of its last incarnation."""
    units = [name for name, unit in target.manifest.units.items() if unit.control]
    logs = [log for name, log in judged.logs.items() if name.rpartition("-")[0] in units]
    return "\n    ".join(tail(logs[-1]).splitlines() if logs else ()) or "(none)"

"""What a status shows must be of the plan: else it is the adapter that mixes something up, and nothing can be judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenarios.plan import Call, Wait
from simkit.errors import ExitCode, Problem, SimkitError

if TYPE_CHECKING:
    from collections.abc import Collection

    from scenarios.history import Status
    from scenarios.plan import Plan

#: Ids that an error names at most.
_NAMED_MAX = 5


def check(name: str, run: str, plan: Plan, status: Status, answered: Collection[str]) -> None:
    """Raise `SimkitError` (`wrong-wait`, `wrong-result`) for what no run of this plan can show.

    `answered`: calls whose answer has left a service, and waits whose signal was acknowledged, as far as nothing has disturbed
    the run: a result has no reason to lack them. Empty where the harness may have lost one, which is for judges to say.
    """
    _check_wait(name, run, plan, status)
    if status.result is None and status.state != "done":
        return
    result = status.result or {}
    if unknown := [op for op in result if plan.leaf(op) is None]:
        what = f"{name} shows a result for {_named(unknown)}, which the plan does not have"
        raise _wrong_result(what, run, plan)
    if status.state == "done" and (missing := [op for op in _demanded(plan) if op in answered and op not in result]):
        what = f"{name} shows the run done, and its result lacks {_named(missing)}, though each was answered"
        raise _wrong_result(what, run, plan)


def _demanded(plan: Plan) -> list[str]:
    """Ids that the result of a done run holds whatever was decided on the way; what children did is theirs."""
    inner = plan.operations_of_children()
    return [op.id for op in plan.leaves() if isinstance(op, Call | Wait) and plan.is_owed(op.id) and op.id not in inner]


def _named(ids: list[str]) -> str:
    more = f" and {len(ids) - _NAMED_MAX} more" if len(ids) > _NAMED_MAX else ""
    return ", ".join(map(repr, ids[:_NAMED_MAX])) + more


def _wrong_result(what: str, run: str, plan: Plan) -> SimkitError:
    ids = ", ".join(_demanded(plan)[:20]) or "none here"
    return SimkitError(
        Problem(
            "wrong-result",
            what,
            f"verb status of run {run!r}: result",
            f"every call and every wait by its id in the plan ({ids}), with the nonce that was accepted for it",
            "`simkit_adapter.call` returns the nonce of a call; that of a wait comes with its signal",
            ExitCode.TARGET,
        )
    )


def _check_wait(name: str, run: str, plan: Plan, status: Status) -> None:
    names = {wait.signal for wait in plan.waits()} | {approve.id for approve in plan.approvals()}
    if status.state == "waiting" and status.on is not None and status.on not in names:
        raise SimkitError(
            Problem(
                "wrong-wait",
                f"{name} shows the run waiting on {status.on!r}, no signal and no approval of its plan",
                f"verb status of run {run!r}: on",
                f"the name of a signal ({', '.join(sorted(names)) or 'this plan has none'}), or nothing for a timer",
                "`on` is the wait's signal, not the wait's id",
                ExitCode.TARGET,
            )
        )

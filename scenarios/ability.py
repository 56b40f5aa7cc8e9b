"""Whether a harness can carry out what it is asked when nothing is in the way: before that, no disturbed run says anything.

What loses nothing because it does nothing, or gives every run up with a reason, keeps many promises by that alone.
"""

from __future__ import annotations

from scenarios.endings import causeless_ends
from scenarios.history import History
from scenarios.index import Facts, look


def shortfall(history: History) -> str:
    """How an undisturbed run falls short of its plan, in half a sentence; empty where it does not.

    It ends without success though nothing has led to that, or is shown done without some request that the plan demands. Whether
    it ends at all is for `DUR-6`, and for whoever watches runs that never settle.
    """
    facts = look(history)
    end = next(causeless_ends(facts), None)
    if end is not None:
        why = end.status.reason or end.status.error
        return f"ended {end.status.state}{f' ({why})' if why else ''}, and nothing has led to that"
    if any(seen.status.state == "done" for seen in facts.statuses) and (missing := _never_sent(facts)):
        return f"was shown done, and {', '.join(map(repr, missing[:_NAMED_MAX]))} was never asked for"
    return ""


#: Operations that are named at most.
_NAMED_MAX = 3


def _never_sent(facts: Facts) -> list[str]:
    plan = facts.history.plan
    return [op for op in facts.calls if plan.is_owed(op) and not facts.dispatches(op)]

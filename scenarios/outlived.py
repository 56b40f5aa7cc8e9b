"""What a run did after a death, or after an outcome was lost: whether a promise about repeating or keeping was put to the test.

Nothing that is gone, or that stands still, repeats, changes or reuses anything; so there nothing can be broken either.

    went_on       did the run go on after an event?
    put_to_test   did it go on with an outcome unknown?
    vanished_at   the death that it did not outlive
"""

from __future__ import annotations

from scenarios.history import TERMINAL
from scenarios.index import Facts
from scenarios.observed import Request


def went_on(facts: Facts, index: int) -> bool:
    """Did the run go on after event `index`: was anything asked in it, or was its end shown?

    What was on its way from a worker that has died is no sign of life, and neither is a status that tells of no end.
    """
    asked = any(request.at > index and not facts.late(request) for request in facts.sent)
    return asked or any(seen.status.state in TERMINAL for seen in facts.seen_after(index))


def put_to_test(facts: Facts, request: Request) -> bool:
    """Was the outcome of a request uncertain, and did the run go on once it was so?"""
    if not facts.uncertain(request):
        return False
    since = request.replied_at if request.unanswered else None
    if since is None:
        since = facts.cut_at(request)
    return went_on(facts, request.at if since is None else since)


def vanished_at(facts: Facts) -> int | None:
    """Index of the death that the run did not outlive: statuses asked after it know no such run, and nothing more was sent.

    None when it was still there at the last, or when its storage was taken away on purpose.
    """
    last = facts.last_seen()
    if last is None or last.status.state != "unknown" or facts.struck("wipe", last.answered):
        return None
    asked = [request.at for request in facts.sent if not facts.late(request)]
    shown = [seen.asked for seen in facts.statuses if seen.status.state != "unknown"]
    alive = max((*asked, *shown), default=-1)
    return next((death for death in facts.deaths if alive < death < last.asked), None)

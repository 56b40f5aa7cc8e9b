"""The time that a run is given: from its admission to its latest end, and which requests it binds."""

from __future__ import annotations

import attrs

from scenarios.index import Facts
from scenarios.observed import Request
from scenarios.plan import Compensate

#: How long a request, or a word about a run, may be on its way: what was in time may arrive so much later.
ON_ITS_WAY_NS = 1_000_000_000


@attrs.frozen
class Term:
    """The time of a run: `from_at` is the event of its admission that is known for certain, `end_ns` its latest end."""

    from_at: int
    end_ns: int

    def is_over(self, facts: Facts, at: int, ahead_ns: int = 0) -> bool:
        """Is it over for certain, also for what was on its way at event `at`, or so long after that?"""
        at_ns = facts.at_ns(at)
        lost_ns = facts.lost_ns(facts.at_ns(self.from_at), at_ns)
        return at_ns + ahead_ns > self.end_ns + ON_ITS_WAY_NS + lost_ns


def term_of(facts: Facts, given_ns: int | None) -> Term | None:
    """What a run that is given so much time from its admission has, where its clock is the observer's."""
    start = facts.start_ok()
    if given_ns is None or start is None or start.answered_at is None or facts.struck("jump"):
        return None
    return Term(start.answered_at, facts.at_ns(start.answered_at) + given_ns)


def bound_by_time(facts: Facts) -> list[Request]:
    """The requests that are forbidden when a run's time has passed: to undo something, or to ask what was done, is none."""
    guards = facts.history.plan.guards
    return [
        one
        for one in facts.requests
        if not (one.event.lookup or isinstance(facts.calls.get(one.op), Compensate) or facts.late(one))
        and not facts.held_up(one.at)
        and not any(guard.kind == "detached" for guard in guards(one.op))
    ]

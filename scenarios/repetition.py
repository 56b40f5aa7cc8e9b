"""What was sent again, and with what right: facts about the requests of one operation that several judges share.

Requests that may have been on their way since before their worker lost its right to work prove nothing, and are left out.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from scenarios.history import STORM, Died, Fired, Paused
from scenarios.index import Facts
from scenarios.observed import Request


def timely(facts: Facts, op: str) -> tuple[Request, ...]:
    """Requests to carry `op` out that were sent by a worker in its right."""
    return tuple(request for request in facts.dispatches(op) if not facts.late(request))


def repeats_of_effects(facts: Facts, op: str) -> Iterator[tuple[Request, Request]]:
    """A request that may have taken effect, and the next one that a worker in its right sent: whoever cannot know better must
    not send it, and whoever knows has its answer.
    """
    return ((earlier, later) for earlier, later in itertools.pairwise(timely(facts, op)) if not earlier.idle)


def repeats_of_refusals(facts: Facts, op: str) -> Iterator[tuple[Request, Request]]:
    """A request that was definitely refused, at once, and the next one; nothing had happened in between that could have kept
    its worker from learning of the refusal, or from having it recorded.
    """
    for earlier, later in itertools.pairwise(timely(facts, op)):
        calm = not facts.asleep(earlier) and not facts.halted(earlier.at, later.at)
        if calm and earlier.refused and facts.is_prompt(earlier):
            yield earlier, later


def answer_before(facts: Facts, op: str, index: int) -> bool:
    """Can the harness have had an answer of `op` by event `index`: the receiver's, or its notice of one?"""
    answers = (one.answer is not None and one.settled_before(index) for one in facts.requests if one.op == op)
    return any(answers) or any(one.asked_at < index for one in facts.notices(op))


def is_calm(facts: Facts, before: int) -> bool:
    """Had nothing died, been stopped, or misbehaved by itself before event `before`? Requests may have failed."""
    events = facts.history.events[:before]
    stirred = (isinstance(event, Fired) and event.label == STORM for event in events)
    return not any(stirred) and not any(isinstance(event, Died | Paused) for event in events)

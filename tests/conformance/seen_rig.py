"""Reading what the kit saw of a run of `verbs_rig`, in few words."""

from __future__ import annotations

from scenarios.history import Answered, Asked, Closed
from scenarios.interruption import Site
from tests.conformance.driver_rig import events
from tests.conformance.verbs_rig import Seen


def at(op: str | None, barrier: str, nth: int = 1, **more: str) -> Site:
    return Site("barrier", op, nth, barrier, **more)  # type: ignore[arg-type]


def outcomes(seen: Seen, verb: str) -> list[str]:
    """What the questions of one verb came to, in order: `ok`, `error: detail`, with the disposition where there is one."""
    told = []
    for ask in events(seen.observation, Asked, verb=verb):
        (answer,) = events(seen.observation, Answered, ask=ask.ask)
        told.append(
            (answer.body or {}).get("disposition", answer.outcome) + (f": {answer.detail}" if answer.detail else "")
        )
    return told


def closed(seen: Seen) -> str:
    return events(seen.observation, Closed)[0].reason


def final(seen: Seen) -> str:
    statuses = [one.status for one in events(seen.observation, Answered) if one.status is not None]
    return statuses[-1].state

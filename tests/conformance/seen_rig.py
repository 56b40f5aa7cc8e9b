"""Reading what the kit saw of a run, in few words."""

from __future__ import annotations

from typing import Any, TypeVar

from conformance.driver import Observation
from scenarios.history import Answered, Asked, Closed, Died, Event, Fired, Paused, Received, Replied, Resumed, Started
from scenarios.interruption import Site

E = TypeVar("E", bound=Event)


def events(seen: Observation, kind: type[E], **fields: Any) -> list[E]:
    """The events of one kind whose fields have these values, in order."""
    return [
        event
        for event in seen.history.events
        if isinstance(event, kind) and all(getattr(event, name) == value for name, value in fields.items())
    ]


def place(seen: Observation, event: Event) -> int:
    """Where an event stands in the order of observation."""
    return next(index for index, one in enumerate(seen.history.events) if one is event)


def story(seen: Observation) -> list[str]:
    """The run in words, statuses left out: short enough to be read in an assertion."""
    return [words for event in seen.history.events if (words := _words(event))]


def _words(event: Event) -> str:
    name = type(event).__name__.lower()
    match event:
        case Fired():
            return f"fired {event.label}"
        case Received():
            return f"{name} {event.op}#{event.incarnation}"
        case Asked():
            return f"asked {event.verb}#{event.incarnation}" if event.verb != "status" else ""
        case Answered():
            return f"answered {event.outcome}" if event.status is None else ""
        case Replied():
            return f"replied {event.status} {event.kind} {event.delivery}"
        case Died():
            return f"died {event.unit}#{event.incarnation} {event.cause}"
        case Closed():
            return f"closed {event.reason}"
        case Started() | Paused() | Resumed():
            return f"{name} {getattr(event, 'unit', '')}#{event.incarnation}"
        case _:
            return name


# ---- of runs of `verbs_rig`


def at(op: str | None, barrier: str, nth: int = 1, **more: str) -> Site:
    return Site("barrier", op, nth, barrier, **more)  # type: ignore[arg-type]


def outcomes(seen: Observation, verb: str) -> list[str]:
    """What the questions of one verb came to, in order: `ok`, `error: detail`, with the disposition where there is one."""
    told = []
    for ask in events(seen, Asked, verb=verb):
        (answer,) = events(seen, Answered, ask=ask.ask)
        told.append(
            (answer.body or {}).get("disposition", answer.outcome) + (f": {answer.detail}" if answer.detail else "")
        )
    return told


def closed(seen: Observation) -> str:
    return events(seen, Closed)[0].reason


def final(seen: Observation) -> str:
    statuses = [one.status for one in events(seen, Answered) if one.status is not None]
    return statuses[-1].state

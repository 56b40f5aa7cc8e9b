"""The values of a space-time table. All times are virtual, in nanoseconds since the world began."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import attrs

#: Who does not belong to any host.
OUTSIDE = "outside"

Kind = Literal[
    "start",  # a process begins
    "end",  # it returns
    "death",  # it is killed, or fails
    "pause",
    "resume",
    "fault",  # something is done to the world, or drawn
    "send",  # a message leaves; it may arrive later, or never
    "receive",
    "message",  # one that arrives before anything else happens
    "disk",  # a storage boundary
    "point",  # a named point of the program
    "note",  # what somebody who drives the run has to say, such as a rule of a machine
    "steps",  # of one task
    "operation",  # of a history that is checked: its call, or what it answered
    "callback",  # of an event loop, between two steps
    "failure",  # of the run
    "gap",  # rows that were left out
]
Life = Literal["alive", "paused", "none"]


@attrs.frozen
class Place:
    """Where something happens: a host (or the outside), one of its processes by name, a task by number or a thread by name."""

    host: str = OUTSIDE
    process: str = ""
    task: int | None = None
    thread: str = ""


@attrs.frozen
class Lane:
    """A column."""

    name: str
    host: str


@attrs.define
class Draft:
    """A row before its column is known."""

    at_ns: int
    kind: Kind
    place: Place
    text: str
    to: Place | None = None  # where a message goes, or where it came from
    message: int | None = None  # the number that sending and receiving share
    tags: tuple[str, ...] = ()
    decides: bool = False
    minor: bool = False  # of use only where there is room
    steps: int = 0  # how many steps of one task it stands for
    nth: int = 0  # which of the task's steps the first of them is
    alive: Mapping[Place, Life] | None = None  # what the row changes in the life of places
    event: int = 0  # its number in the trace; of what is told beside the trace, that of the event before


@attrs.frozen
class Row:
    """One event."""

    at_ns: int
    lane: int
    kind: Kind
    text: str
    to: int | None = None  # the lane at the other end of a message
    message: int | None = None
    arrives: bool = True  # False for a message that never does
    tags: tuple[str, ...] = ()  # names that the explanation calls it by
    decides: bool = False
    minor: bool = False
    lives: tuple[Life, ...] = ()  # of every lane, after the row
    left_out: int = 0  # how many rows a gap stands for
    event: int = 0  # the number by which a replay stops before it; of several, that of the first


@attrs.frozen
class Stack:
    """Where a task stood before a deciding step."""

    task: int
    nth: int  # which of its steps, from 1
    tag: str
    title: str
    frames: tuple[str, ...]  # outermost first, as "file:line in function"


@attrs.frozen
class Table:
    """A run, drawn."""

    lanes: tuple[Lane, ...]
    rows: tuple[Row, ...]
    orders: tuple[tuple[str, str], ...] = ()  # tags: the first must come before the second for the run to fail
    stacks: tuple[Stack, ...] = ()
    routine: int = 0  # rows left out that tell little: ends of streams, usual latencies, callbacks

    def tag_of(self, task: int, nth: int) -> str | None:
        """The letter of a deciding step; None for one without a row, as the run does not come to it."""
        tag = next((stack.tag for stack in self.stacks if (stack.task, stack.nth) == (task, nth)), None)
        return tag if any(tag in row.tags for row in self.rows) else None

    @property
    def left_out(self) -> int:
        """How many other rows are not shown; each gap tells how many of them are in it."""
        return sum(row.left_out for row in self.rows)


def told_time(ns: int) -> str:
    """Virtual time for people, with three digits after the point where they mean something."""
    if ns < 0:
        return f"-{told_time(-ns)}"
    if ns < 1_000_000:
        return f"{_trimmed(ns / 1000)} µs" if ns else "0"
    if ns < 1_000_000_000:
        return f"{_trimmed(ns / 1_000_000)} ms"
    if ns < 3600 * 1_000_000_000:
        return f"{_trimmed(ns / 1_000_000_000)} s"
    minutes, rest_ns = divmod(ns, 60_000_000_000)
    return f"{minutes // 60} h {minutes % 60:02} min {_trimmed(rest_ns / 1_000_000_000)} s"


def _trimmed(value: float) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".")

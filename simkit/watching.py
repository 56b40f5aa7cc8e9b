"""Watchers: who looks at worlds from beside, such as a collector of coverage. They see, and change nothing.

`watched(watcher)` lets one be told of every run in the block. With none, a run pays for a look at an empty list.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from simkit.host import Host
    from simkit.world import Outcome, World

__all__ = ["Watcher", "watched", "watchers"]


class Watcher(Protocol):
    """What is told of runs; called in the thread of the run, between two steps of the program."""

    def begins(self, world: World) -> object:
        """A run is about to begin."""
        ...

    def starts(self, host: Host) -> object:
        """A process is about to start there; not for the first time, if the host had one before."""
        ...

    def loses_power(self, host: Host) -> object:
        """The host is about to lose its power."""
        ...

    def ends(self, world: World, outcome: Outcome[Any]) -> object:
        """The run is over, and this became of it. Not told of a run that the user interrupts."""
        ...


#: Those who are told, in the order of coming.
watchers: list[Watcher] = []


@contextlib.contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Tell `watcher` of the runs in this block."""
    watchers.append(watcher)
    try:
        yield
    finally:
        watchers.remove(watcher)

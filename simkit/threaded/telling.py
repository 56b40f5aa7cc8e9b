"""What a run that is watched tells of its threads, beside its trace."""

from __future__ import annotations

import sys

from simkit._kernel.deadlock import place_of
from simkit._kernel.threads import SimThread
from simkit.points import current_world

__all__ = ["lost_turn"]


def lost_turn(thread: SimThread, key: str) -> None:
    """The calling thread is about to lose its turn, as was drawn under this key: which one, and at which line."""
    world = current_world()
    if world is None or world.trace.asides is None:
        return
    place = place_of(sys._getframe())
    if not place:  # one that serves the program
        return
    name = getattr(getattr(thread.worker, "python", None), "name", "thread")
    owner = None if thread.owner is None else thread.owner.label
    world.trace.aside("turn", key, name, place, owner)

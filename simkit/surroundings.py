"""What a run has around it, put in place when it begins and taken back when it ends."""

from __future__ import annotations

import functools
import gc
import importlib
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from simkit._kernel import threads
from simkit._network.hooks import LateFactory, LateResolver
from simkit.clock import EPOCH_NS
from simkit.guard import Guard
from simkit.points import begin as begin_points
from simkit.tape import Tape

if TYPE_CHECKING:
    from simkit.world import World

#: Garbage is collected between two runs once so many objects have been made since.
_GARBAGE_MAX = 100_000
#: How long it takes until a thread goes on, and how often.
_SWITCH_NS = (50_000, 200_000, 1_000_000, 10_000_000)
_SWITCHES = (8, 4, 2, 1)
#: How long a thread that loses its turn is away, and how often: long enough for others to do all that they are about to do.
_AWAY_NS = (0, 50_000, 1_000_000, 10_000_000, 100_000_000)
_AWAYS = (8, 2, 2, 2, 2)


class Surroundings:
    """What a run has around it: the collector off, simulated SQLite in place, the guard on, threads and sockets simulated.

    Gives the list of refusals. No context managers within: an empty run would spend a tenth of its time in them.
    """

    def __init__(self, world: World, *, guard: bool) -> None:
        self._world = world
        self._guard = Guard(world, epoch_ns=EPOCH_NS) if guard else None
        self._collects = False
        self._undo: list[Callable[[], object]] = []

    def __enter__(self) -> list[Any]:
        world, undo = self._world, self._undo
        self._collects = gc.isenabled()
        gc.disable()  # what it would run, and when, is not the program's
        try:
            undo.append(_sqlite().begin(world))
            undo.append(begin_points(world))
            if self._guard is not None:
                self._guard.begin()
                undo.append(self._guard.end)
            drawn = functools.partial(_switch_ns, world.tape), functools.partial(_away_ns, world.tape)
            undo.append(threads.begin(world.kernel, *drawn).give_up)
            if world.tape.open:
                world.network  # noqa: B018  # an explorer looks for its sites
            world.kernel.runner.serve_sockets(LateFactory(world), LateResolver(world))
        except BaseException:
            self._leave()
            raise
        return [] if self._guard is None else self._guard.refusals

    def __exit__(self, *_: object) -> None:
        self._leave()

    def _leave(self) -> None:
        """Take everything back, whatever one of them says."""
        try:
            while self._undo:
                self._undo.pop()()
        finally:
            if self._undo:
                self._leave()
            else:
                if gc.get_count()[0] > _GARBAGE_MAX:  # between two runs the young are enough
                    gc.collect(0)
                if self._collects:
                    gc.enable()


@functools.cache
def _sqlite() -> ModuleType:
    """At the first run: importing takes longer than all else of simkit."""
    return importlib.import_module("simkit.sqlite")


def _switch_ns(tape: Tape) -> int:
    """How long it takes until a thread goes on."""
    return _SWITCH_NS[tape.stream("threads").choose("switch", 4, _SWITCHES)]


def _away_ns(tape: Tape) -> int:
    """How long a thread that takes a lock lets others go first; mostly not at all."""
    return _AWAY_NS[tape.stream("threads").choose("loses turn", 5, _AWAYS)]

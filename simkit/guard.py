"""The guard: inside a simulation, what is not deterministic is virtual, and what cannot be virtual is refused.

Virtual: `time`, `datetime.now`, unseeded `random`, `uuid`, `secrets`, `os.urandom`, `os.getpid`; in a process `open`, `os`,
`pathlib` and `tempfile`, on its host's disk; in a thread of `trio.to_thread` also `time.sleep`. Refused, with an error that
names file and line and the simulated way: sockets that wait, files on the outside, subprocesses, threads, signals,
`time.sleep` in a task.
Imports work. Only the simulation's own threads are guarded. Not seen: `hash()` of strings, order by `id()`, C extensions
that ask the system themselves; running twice and comparing digests finds these.
"""

from __future__ import annotations

import contextlib
import copyreg
import datetime
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from simkit._guard import dice, state, temporary, virtual, zones
from simkit._guard.refuse import RefusedError, install_hook
from simkit.process import current_process

if TYPE_CHECKING:
    from simkit.world import World

__all__ = ["Guard", "RefusedError", "keeping", "permitted"]

#: Process id of the outside.
_OUTSIDE_PID = 1


def _modules() -> tuple[int, int]:
    """What changes when a module comes, be it in place of another one: how many there are, and which came last."""
    return len(sys.modules), id(next(reversed(sys.modules.values())))


class _Patches:
    """Where the real functions are found by name: in their modules, and in modules that took them `from` there."""

    def __init__(self) -> None:
        self._table = list(virtual.table())
        self._stand_ins = {id(real): stand_in for _, _, real, stand_in in self._table}
        #: The modules by their id, which stays theirs as they are kept here.
        self._scanned: dict[int, object] = {}
        self._seen: tuple[int, int] | None = None
        self._found: list[tuple[dict[str, Any], str, Any, Any]] = []

    def scan(self) -> None:
        """Look through modules that have not been looked through."""
        seen = _modules()
        if seen == self._seen:
            return
        self._seen = seen
        for name, module in sys.modules.copy().items():
            if id(module) not in self._scanned:
                self._scanned[id(module)] = module
                if not name.startswith("simkit."):
                    self._scan(vars(module) if hasattr(module, "__dict__") else {})

    def _scan(self, names: dict[str, Any]) -> None:
        for name, value in list(names.items()):
            stand_in = self._stand_ins.get(id(value))
            if stand_in is not None:
                self._found.append((names, name, value, stand_in))

    def apply(self) -> None:
        """Put the stand-ins in place."""
        self.scan()
        for names, name, real, stand_in in self._found:
            if names.get(name) is real:
                names[name] = stand_in
        copyreg.dispatch_table.update(virtual.REDUCERS)
        temporary.take()

    def undo(self) -> None:
        """Put the real ones back, except where somebody else's is by now."""
        for names, name, real, stand_in in self._found:
            if names.get(name) is stand_in:
                names[name] = real
        for real_class in virtual.REDUCERS:
            copyreg.dispatch_table.pop(real_class, None)
        temporary.give_back()


class _Places:
    """The stand-ins of this process: found once, in place while a run or a block of `keeping` needs them."""

    def __init__(self) -> None:
        self._patches: _Patches | None = None
        self._needed = 0
        self._seen: tuple[int, int] | None = None

    def take(self) -> None:
        """A run begins."""
        if self._patches is None:
            install_hook()
            self._patches = _Patches()
        if not self._needed or self._seen != _modules():  # else they are in place everywhere
            self._patches.apply()
            self._seen = _modules()
        self._needed += 1

    def leave(self) -> None:
        """It is over."""
        self._needed -= 1
        if not self._needed and self._patches is not None:
            self._patches.undo()


_places = _Places()


@contextlib.contextmanager
def keeping() -> Iterator[None]:
    """Leave the stand-ins in place between the runs of this block, or of a function decorated with it: for many short runs.

    Outside a run they do what the real functions do, a little slower, and whoever replaces one of them meanwhile, as mocks
    do, may. But no code in the block may look below Python's surface, such as a C extension that patches `time` itself.
    """
    _places.take()
    try:
        yield
    finally:
        _places.leave()


class Guard(state.Active):
    """The guard of one run in this thread, from `begin` to `end`."""

    __slots__ = ("_before", "_epoch_ns", "_kept", "_random_back", "_tape", "_timers", "_zone")

    def __init__(self, world: World, *, epoch_ns: int) -> None:
        super().__init__()
        self._timers = world.kernel.timers
        self._tape = world.tape
        self._epoch_ns = epoch_ns

    def begin(self) -> None:
        """Guard from now on."""
        self._zone, self._kept = zones.enter(), temporary.enter()
        self._random_back = dice.seed_for(self._tape.entropy, self.noise_seed)
        _places.take()
        self._before = state.switch(self)

    def end(self) -> None:
        """Guard no more."""
        state.switch(self._before)
        _places.leave()
        self._random_back()
        temporary.leave(self._kept)
        zones.leave(self._zone)

    def now_ns(self) -> int:
        """Unix time, as the host of the running process believes it to be."""
        process = current_process()
        return self._epoch_ns + self._timers.now_ns if process is None else process.host.clock.now_ns

    def elapsed_ns(self) -> int:
        """Virtual time since the world began."""
        return self._timers.now_ns

    def zone(self) -> datetime.tzinfo:
        """What is local there."""
        process = current_process()
        return datetime.UTC if process is None else process.host.clock.zone

    def pid(self) -> int:
        """Of the running process."""
        process = current_process()
        return _OUTSIDE_PID if process is None else process.pid

    def noise_seed(self) -> int:
        """What noise is seeded with; the same for all runs on tapes of one entropy."""
        return self._tape.stream("guard").source_seed("noise")


@contextlib.contextmanager
def permitted(*events: str) -> Iterator[None]:
    """Let the audit events named happen inside the block: for the kit's own modules, which know what they do."""
    active = state.here()
    if active is None:
        yield
        return
    active.permitted.extend(events)
    try:
        yield
    finally:
        for event in events:
            active.permitted.remove(event)

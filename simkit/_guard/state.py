"""The guard that is on, if any. A stand-in that outlives its run (a module imported inside took it by name) asks here."""

from __future__ import annotations

import contextlib
import datetime
import random
import threading
import weakref
from collections.abc import Iterator
from typing import Any

from simkit.errors import SimkitError

#: By a name of its own, as there is something slower in place of it while a guard is on.
_Random = random.Random


class Active:
    """One run's guard, as the stand-ins see it."""

    __slots__ = ("_noise", "buffers", "busy", "files", "handlers", "permitted", "refusals", "thread")

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.refusals: list[SimkitError] = []
        self.permitted: list[str] = []
        self.busy = False
        #: Open descriptors on simulated disks, see `files`.
        self.files: dict[int, Any] = {}
        #: The open files of each simulated process that may hold what was not written yet, in the order of opening.
        self.buffers: dict[Any, weakref.WeakValueDictionary[Any, Any]] = {}
        #: What simulated processes want to be done at signals, by process id and number; of these only SIGTERM
        #: is ever sent, by `Process.terminate`.
        self.handlers: dict[tuple[int, int], Any] = {}
        self._noise: random.Random | None = None

    def now_ns(self) -> int:
        """Unix time, as the host of the running process believes it to be."""
        raise NotImplementedError

    def elapsed_ns(self) -> int:
        """Virtual time since the world began."""
        raise NotImplementedError

    def zone(self) -> datetime.tzinfo:
        """What is local there."""
        raise NotImplementedError

    def pid(self) -> int:
        """Of the running process."""
        raise NotImplementedError

    def noise_seed(self) -> int:
        """What `noise` is seeded with."""
        raise NotImplementedError

    @property
    def noise(self) -> random.Random:
        """Where noise comes from, made at first use; its first 64 bits have gone into the generator that all share."""
        if self._noise is None:
            self._noise = _Random(self.noise_seed())
            self._noise.getrandbits(64)
        return self._noise


_active: Active | None = None


def here() -> Active | None:
    """The guard of the calling thread; other threads live in the real world."""
    if _active is not None and _active.thread == threading.get_ident():
        return _active
    return None


def switch(active: Active | None) -> Active | None:
    """Set the guard that is on, and return the one that was."""
    global _active  # there is one interpreter to guard
    before, _active = _active, active
    return before


@contextlib.contextmanager
def off() -> Iterator[None]:
    """No guard in this block: for what the kit itself does."""
    before = switch(None)
    try:
        yield
    finally:
        switch(before)


@contextlib.contextmanager
def lent() -> Iterator[None]:
    """Another thread runs in this block, and is guarded once it has said `take`."""
    active = _active
    thread = 0 if active is None else active.thread
    try:
        yield
    finally:
        if active is not None:
            active.thread = thread


def take() -> None:
    """Guard the calling thread, instead of the one that was."""
    if _active is not None:
        _active.thread = threading.get_ident()

"""Locks that modules made when they were imported, before there was a simulation: to each simulated process its own.

Simulated processes share their modules, as they live in one interpreter; on real machines each has a lock of its own, and
one that a killed process held dies with it. Such locks are looked for in the modules themselves.
"""

from __future__ import annotations

import _thread
import importlib
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from simkit._kernel.owner import OWNER, Owner
from simkit.threaded.locks import Lock, RLock

__all__ = ["module_locks"]

#: Simulated ones too: those of a module that was first imported in an earlier run.
_KINDS: tuple[tuple[type | tuple[type, ...], Callable[[], Any]], ...] = (
    ((_thread.LockType, Lock), Lock),
    ((_thread.RLock, RLock), RLock),
)
#: Modules that the standard library imports when it first needs them, in the middle of the first run of all: their locks
#: would be other ones there than in every later run.
_LATE = ("_strptime", "tempfile")  # and concurrent.futures.thread, which is imported anyway
#: Theirs are held for an instant, by whatever thread, the kernel's own among them.
_NOT_IN = frozenset(
    (
        "threading",
        "_thread",
        "logging",
        "importlib",
        "_frozen_importlib",
        "simkit",
        "trio",
        "outcome",
        "sniffio",
        "_pytest",
    )
)


class PerProcess:
    """One lock for each process, made at its first use; outside processes the real one."""

    def __init__(self, real: Any, make: Callable[[], Any]) -> None:
        self._real = real
        self._make = make
        self._locks: dict[Owner, Any] = {}

    def _mine(self) -> Any:
        owner = OWNER.get()
        if owner is None:
            return self._real
        if owner not in self._locks:
            self._locks[owner] = self._make()
        return self._locks[owner]

    def __enter__(self) -> Any:
        return self._mine().__enter__()

    def __exit__(self, *error: object) -> Any:
        return self._mine().__exit__(*error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._mine(), name)


def module_locks() -> Iterator[tuple[ModuleType, str, PerProcess]]:
    """Every (module, name, stand-in) for a lock that a module holds by a name."""
    for late in _LATE:
        importlib.import_module(late)
    for name, module in sorted(sys.modules.copy().items()):
        if name.partition(".")[0] in _NOT_IN:
            continue
        for attribute, value in list(getattr(module, "__dict__", {}).items()):
            for kind, make in _KINDS:
                if isinstance(value, kind):
                    yield module, attribute, PerProcess(value, make)

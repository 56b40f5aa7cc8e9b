"""Where the standard library looks for locks and threads, simulated ones while a simulated thread asks for one.

Only threads of simulated programs get simulated locks: whoever else makes a lock meanwhile, the kernel above all, gets a real one.
"""

from __future__ import annotations

import contextlib
import itertools
import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any

from simkit.threaded import locks, starting
from simkit.threaded.program import current_worker

_depth = 0


def _either(simulated: Callable[..., Any], real: Callable[..., Any]) -> Callable[..., Any]:
    def make(*args: Any, **kwargs: Any) -> Any:
        return real(*args, **kwargs) if current_worker() is None else simulated(*args, **kwargs)

    make.__name__ = getattr(real, "__name__", "make")
    return make


def _names() -> dict[tuple[Any, str], Any]:
    table: dict[tuple[Any, str], Any] = {}
    for name, simulated in (
        ("Lock", locks.Lock),
        ("_allocate_lock", locks.Lock),
        ("RLock", locks.RLock),
        ("_CRLock", locks.RLock),
        ("_set_sentinel", starting.sentinel),
        ("_start_new_thread", starting.start),
        ("_start_joinable_thread", starting.start_joinable),
        ("_ThreadHandle", starting.Handle),
    ):
        real = getattr(threading, name, None)
        if real is not None:
            table[threading, name] = _either(simulated, real)
    table[threading, "_counter"] = itertools.count(1).__next__
    table[queue, "SimpleQueue"] = _either(queue._PySimpleQueue, queue.SimpleQueue)  # type: ignore[attr-defined]
    return table


@contextlib.contextmanager
def installed() -> Iterator[None]:
    """Put them in place in this block; blocks of several processes may overlap."""
    global _depth, _undo  # noqa: PLW0603  # there is one interpreter to patch
    if _depth == 0:
        names = _names()
        _undo = {(module, name): getattr(module, name) for module, name in names}
        _set(names)
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
        if _depth == 0:
            _set(_undo)


_undo: dict[tuple[Any, str], Any] = {}


def _set(names: dict[tuple[Any, str], Any]) -> None:
    for (module, name), value in names.items():
        setattr(module, name, value)

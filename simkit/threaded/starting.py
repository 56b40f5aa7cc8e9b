"""Starting simulated threads where `threading` starts real ones, by the ways of Python 3.11 to 3.14."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

from simkit.threaded.locks import QuietLock
from simkit.threaded.program import Worker, current_worker

__all__ = ["Handle", "sentinel", "start", "start_joinable"]


def _begin(fn: Callable[..., object], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Worker:
    python = getattr(fn, "__self__", None)
    call = functools.partial(fn, *args, **(kwargs or {}))
    return _me().program.start(call, python if isinstance(python, threading.Thread) else None)


def _me() -> Worker:
    worker = current_worker()
    assert worker is not None, "only threads of a simulated program come here"
    return worker


def start(fn: Callable[..., object], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> int:
    """Stand in for `_thread.start_new_thread`."""
    return id(_begin(fn, args, kwargs))


def sentinel() -> QuietLock:
    """Stand in for `_thread._set_sentinel`: a lock that is released when the calling thread has ended."""
    lock = QuietLock()
    worker = _me()

    def release() -> None:
        threading._shutdown_locks.discard(lock)  # the interpreter waits for these at its end
        lock.free()

    worker.mourners.append(release)
    return lock


class Handle:
    """Stand in for `_thread._ThreadHandle` (3.13): what a thread is joined by."""

    def __init__(self) -> None:
        self.ident: int | None = None
        self._over = False
        self._ended = QuietLock()

    def is_done(self) -> bool:
        """Whether the thread has ended."""
        return self._over

    def _set_done(self) -> None:
        self._over = True

    def join(self, timeout: float | None = None) -> None:
        """Wait until the thread has ended, or for `timeout` seconds."""
        if not self._over and self._ended.acquire(timeout=-1 if timeout is None else max(0.0, timeout)):
            self._ended.release()

    def begin(self) -> None:
        """The thread starts."""
        self._ended.acquire()

    def end(self) -> None:
        """The thread has ended."""
        self._over = True
        self._ended.free()


def start_joinable(
    function: Callable[[], object],
    handle: Handle | None = None,
    daemon: bool = True,  # noqa: ARG001  # the standard library's
) -> Handle:
    """Stand in for `_thread.start_joinable_thread` (3.13)."""
    handle = Handle() if handle is None else handle
    handle.begin()
    worker = _begin(function)
    worker.mourners.append(handle.end)
    handle.ident = id(worker)
    return handle

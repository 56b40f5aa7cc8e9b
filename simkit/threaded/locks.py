"""Locks for simulated threads: what `threading.Lock` and `threading.RLock` are while a simulation runs.

A thread that takes a lock may lose its turn right before; one that has to wait is woken in the order of arrival, and finds
the lock taken by somebody faster now and then, as on a real machine. Used by a thread of the real world, such as the one
that runs the kernel, a lock is an ordinary one that nobody else holds.
"""

from __future__ import annotations

import _thread
from collections import deque
from typing import Any

from simkit._kernel.threads import SimThread, current_thread
from simkit.threaded.telling import lost_turn

__all__ = ["Lock", "QuietLock", "RLock", "give_way"]

_NS = 1_000_000_000
_FOREVER_S = 1e9


def give_way(thread: SimThread) -> None:
    """Perhaps let others go first."""
    away_ns = thread.away_ns()
    if away_ns:
        lost_turn(thread, "loses turn")
        thread.later(away_ns)
        thread.wait()


class _Wait:
    """A thread that waits, until it is woken or its time is up."""

    __slots__ = ("over", "thread")

    def __init__(self, thread: SimThread) -> None:
        self.thread = thread
        self.over = False

    def wake(self, delay_ns: int | None = None) -> None:
        """Let it go on."""
        if not self.over:
            self.over = True
            self.thread.later(delay_ns)


class Lock:
    """`threading.Lock`."""

    #: Whether whoever takes it may lose its turn.
    gives_way = True

    def __init__(self) -> None:
        self._owner: SimThread | None = None
        self._locked = False
        self._waiting: deque[_Wait] = deque()
        self._real = _thread.allocate_lock()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take it; False when it could not be had (in time)."""
        if not blocking and timeout != -1:
            raise ValueError("can't specify a timeout for a non-blocking call")
        if timeout < 0 and timeout != -1:
            raise ValueError("timeout value must be a non-negative number")
        thread = current_thread()
        if thread is None:
            return self._real.acquire(blocking, timeout)
        if self.gives_way:
            give_way(thread)
        until_ns = None if timeout == -1 else thread.now_ns + round(min(timeout, _FOREVER_S) * _NS)
        while self._locked:
            if not blocking or (until_ns is not None and thread.now_ns >= until_ns):
                return False
            self._await(thread, until_ns)
        self._locked = True
        self._owner = thread
        return True

    def _await(self, thread: SimThread, until_ns: int | None) -> None:
        wait = _Wait(thread)
        self._waiting.append(wait)
        timer = None if until_ns is None else thread.call_at(until_ns, wait.wake, 0)
        thread.wait()
        if timer is not None:
            timer.cancel()
        if wait in self._waiting:
            self._waiting.remove(wait)

    def release(self) -> None:
        """Give it back."""
        if current_thread() is None:
            self._real.release()
        elif not self._locked:
            raise RuntimeError("release unlocked lock")
        else:
            self.free()

    def free(self) -> None:
        """It is nobody's; also the kernel may say so, when a thread has ended."""
        self._locked = False
        self._owner = None
        while self._waiting:
            wait = self._waiting.popleft()
            if not wait.over and not wait.thread.dead:
                wait.wake()
                break

    def locked(self) -> bool:
        """Whether somebody has it."""
        return self._real.locked() if current_thread() is None else self._locked

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def __repr__(self) -> str:
        return f"<{'locked' if self.locked() else 'unlocked'} simulated {type(self).__name__}>"

    acquire_lock = acquire
    release_lock = release
    locked_lock = locked

    def _at_fork_reinit(self) -> None:
        """Nobody forks here."""


class QuietLock(Lock):
    """A lock of the standard library's own: taking it is no act of the program's."""

    gives_way = False


class RLock:
    """`threading.RLock`."""

    def __init__(self) -> None:
        self._block = Lock()
        self._count = 0
        self._holder: object = None

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take it, perhaps again."""
        me = _me()
        if self._holder == me:
            self._count += 1
            return True
        if not self._block.acquire(blocking, timeout):
            return False
        self._holder = me
        self._count = 1
        return True

    def release(self) -> None:
        """Give it back, as often as it was taken."""
        if self._holder != _me():
            raise RuntimeError("cannot release un-acquired lock")
        self._count -= 1
        if self._count == 0:
            self._holder = None
            self._block.release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def __repr__(self) -> str:
        return f"<{'locked' if self._count else 'unlocked'} simulated RLock count={self._count}>"

    # ---- what `threading.Condition` asks of one

    def _release_save(self) -> Any:
        if self._count == 0:
            raise RuntimeError("cannot release un-acquired lock")
        state = self._count, self._holder
        self._count, self._holder = 0, None
        self._block.release()
        return state

    def _acquire_restore(self, state: Any) -> None:
        self._block.acquire()
        self._count, self._holder = state

    def _is_owned(self) -> bool:
        return self._holder == _me()

    def _recursion_count(self) -> int:
        return self._count if self._holder == _me() else 0

    def _at_fork_reinit(self) -> None:
        """Nobody forks here."""


def _me() -> object:
    return current_thread() or _thread.get_ident()

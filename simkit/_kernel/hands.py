"""Real threads, lent to one function at a time. What a function leaves in its thread is gone before anybody goes on.

That is what the end of a real thread would do, but at no moment that is the kernel's; and a thread that is kept for the next
function, or the next run, would hand it on. Up to Python 3.12 a thread can be emptied, and is kept; from 3.13 on its share of
`threading.local` is out of reach, so each function has a new thread, whose end is waited for.
"""

from __future__ import annotations

import _thread
import ctypes
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, cast

from trio import _threads

from simkit._guard import state

__all__ = ["Hand", "borrow", "clock_of"]

_real_start = _thread.start_new_thread
_state_dict = ctypes.PYFUNCTYPE(ctypes.c_void_p)(("PyThreadState_GetDict", ctypes.pythonapi))
#: For so long the end of a thread is waited for, in real seconds.
_END_S = 60.0
#: What is let go may leave something again, such as the object that stands for the thread; but not for ever.
_ROUNDS_MAX = 100


def _shares() -> dict[Any, object]:
    """The calling thread's share of every `threading.local`, in the order in which they were first used; its own dict."""
    return cast("dict[Any, object]", ctypes.cast(_state_dict(), ctypes.py_object).value)


def clock_of(thread: int) -> int:
    """The clock of the processor time that the real thread with this number takes, which must live now.

    Reading it when the thread is gone is an OSError. Where a system has no such clocks it is that of the process.
    """
    of = getattr(time, "pthread_getcpuclockid", None)
    return time.CLOCK_PROCESS_CPUTIME_ID if of is None else int(of(thread))


class Hand:
    """A real thread, which may have one function after the other."""

    def __init__(self, *, is_kept: bool) -> None:
        self.go = _thread.allocate_lock()
        self.go.acquire()
        self.work: Callable[[], object] | None = None
        #: Whether another function may have it, too.
        self.is_kept = is_kept
        #: Tells how much processor time it has taken; -1 until it lives.
        self.clock = -1
        #: The shares that it needs itself.
        self._own: frozenset[Any] = frozenset()

    def start(self) -> None:
        """Let it live, from now on."""
        _real_start(self.live, ())

    def live(self) -> None:
        """Do what there is to do, one after the other."""
        self.clock = clock_of(_thread.get_ident())
        while True:
            self.go.acquire()
            work, self.work = self.work, None
            if work is not None:
                work()
            del work
            if not self.is_kept:
                return

    def begin(self) -> None:
        """From here on what is left is the function's. A thread that had the same number before was another one."""
        threading._active.pop(_thread.get_ident(), None)  # type: ignore[attr-defined]  # it knows threads by number
        if not self._own:
            _ = _threads.PARENT_TASK_DATA.__dict__  # trio empties its share itself
            self._own = frozenset(_shares())

    def end(self) -> None:
        """Let go of what the function has left, oldest first."""
        shares, own = _shares(), self._own
        rounds = 0
        while len(shares) > len(own) and rounds < _ROUNDS_MAX:
            rounds += 1
            for key in [key for key in shares if key not in own]:
                shares.pop(key, None)
        threading._active.pop(_thread.get_ident(), None)  # type: ignore[attr-defined]  # as above

    def spent_s(self) -> float:
        """The seconds of processor time that it has taken."""
        try:
            return 0.0 if self.clock == -1 else time.clock_gettime(self.clock)
        except OSError:
            return 0.0

    def give_back(self) -> bool:
        """Its function has ended; returns whether the thread is done with what it left."""
        if self.is_kept:
            _idle.append(self)
        return True


class OneHand(Hand):
    """From Python 3.13 on: a thread for one function."""

    def __init__(self, *, is_kept: bool) -> None:  # none is
        super().__init__(is_kept=False)
        self._handle: Any = None

    def start(self) -> None:
        """Let it live, from now on."""
        self._handle = _thread.start_joinable_thread(self.live, daemon=True)  # type: ignore[attr-defined,unused-ignore]

    def begin(self) -> None:
        """A thread that had the same number before was another one."""
        threading._active.pop(_thread.get_ident(), None)  # type: ignore[attr-defined]  # as above

    end = begin

    def give_back(self) -> bool:
        """Its function has ended; what it has left is let go of by the thread, at its end."""
        self._handle.join(_END_S)
        return bool(self._handle.is_done())


_Kind = Hand if sys.version_info < (3, 13) else OneHand
_idle: list[Hand] = []


def borrow(*, fresh: bool) -> Hand:
    """A real thread that waits for work; a fresh one nobody had before, or gets afterwards."""
    if _idle and not fresh:
        return _idle.pop()
    hand = _Kind(is_kept=not fresh)
    with state.off():
        hand.start()
    return hand

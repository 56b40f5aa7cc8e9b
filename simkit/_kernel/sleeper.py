"""Sleeping: one entry in the heap of timers, instead of a cancel scope and an exception.

`trio.sleep` in user code, unmodified, is served by it (see `shortcuts`): same steps, same errors, same cancellation;
about a tenth of the cost. Under the fast loop the sleeping task itself stands in the heap, and the trap `NAP` asks for it;
under trio's own loop a `Sleeper` does, woken like everything that trio knows.
"""

from __future__ import annotations

import types
from collections.abc import Awaitable, Generator
from typing import Any

from trio._core._run import GLOBAL_RUN_CONTEXT
from trio._core._traps import WaitTaskRescheduled

from simkit._kernel.timers import NS, Sleeper, Timers, due_ns

#: Yielded to the fast loop: wake me at `Timers.wish_ns`.
NAP = object()
#: Sleeps of so many seconds are left to trio: infinite ones, and what floats cannot count in nanoseconds.
FAR_S = 1e15


@types.coroutine
def nap_until_s(timers: Timers, deadline: float) -> Generator[Any, Any, None]:
    """Suspend the running task until `deadline`, in seconds, under the fast loop; a checkpoint also when that is past."""
    when_ns = round(deadline * NS)
    timers.wish_ns = when_ns if when_ns / NS >= deadline else when_ns + 1  # as `due_ns` has it
    answer = yield NAP
    if answer is not None:
        answer.unwrap()


def sleep_until_s(timers: Timers, deadline: float) -> Awaitable[None]:
    """As `nap_until_s`, under whatever loop."""
    return sleep_until_ns(timers, due_ns(deadline))


@types.coroutine
def sleep_until_ns(timers: Timers, when_ns: int) -> Generator[Any, Any, None]:
    """Suspend the running task until `when_ns`; a checkpoint also when that is past."""
    if timers.naps:
        timers.wish_ns = when_ns
        answer = yield NAP
        if answer is not None:
            answer.unwrap()
    else:
        (yield _wait(timers, when_ns)).unwrap()


def _wait(timers: Timers, when_ns: int) -> WaitTaskRescheduled:
    sleeper = Sleeper(timers, GLOBAL_RUN_CONTEXT.task)
    timers.push(when_ns, sleeper)
    return WaitTaskRescheduled(sleeper.abort)

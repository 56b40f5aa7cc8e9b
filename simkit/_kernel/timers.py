"""One heap of everything that will happen: callbacks, sleeping tasks and the deadlines of cancel scopes.

Ordered by (time, sequence), so that what falls due at the same nanosecond happens in the order in which it was asked for.
trio breaks such ties by address, which differs from run to run. Stands in for `trio._core._run.Deadlines`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from types import MethodType
from typing import Any, NoReturn

from trio._core._run import GLOBAL_RUN_CONTEXT, CancelReason, CancelScope, Task
from trio.lowlevel import Abort

from simkit._kernel.tasks import SimTask

#: Entries that will never fire are swept out once they are this many and more than half.
STALE_MAX = 1024
NS = 1_000_000_000
#: Timers that may fire at one instant without a step between: callbacks that set each other for now would never end.
CALLBACKS_MAX = 1_000_000
#: Seconds beyond every bound on time, that still can be counted in nanoseconds.
_FAR = 10**30
#: What trio gives as the reason of an expired deadline.
EXPIRED = CancelReason(source="deadline")


class BoundMetError(BaseException):
    """A limit of the run was met; `args[0]` names it. Never seen by user code."""


def due_ns(deadline: float) -> int:
    """The first nanosecond at which `trio.current_time()` has reached `deadline`, both in seconds.

    Never a hair earlier: a program that waits until a time and then asks whether it has come must hear yes, or it waits
    again, for no time at all and for ever.
    """
    if deadline > _FAR:
        return _FAR * NS
    when_ns = round(deadline * NS)
    return when_ns if when_ns / NS >= deadline else when_ns + 1


class Timer:
    """A callback that is due at `when_ns`; it runs between two steps, in no task, and must not block."""

    __slots__ = ("_timers", "args", "live", "when_ns")

    def __init__(self, timers: Timers, when_ns: int, fn: Callable[..., object], args: tuple[Any, ...]) -> None:
        self._timers = timers
        self.when_ns = when_ns
        #: The function; None once it has run or been cancelled.
        self.live: Callable[..., object] | None = fn
        self.args = args

    @property
    def pending(self) -> bool:
        """Whether it has neither run nor been cancelled."""
        return self.live is not None

    def cancel(self) -> None:
        """Make sure that it never runs (again); harmless at any time."""
        if self.live is not None:
            self.live = None
            self.args = ()
            self._timers.grow_stale()

    def fire(self) -> None:
        """Run it, unless cancelled."""
        fn, args = self.live, self.args
        if fn is not None:
            self.live = None
            self.args = ()
            fn(*args)


class Sleeper:
    """A sleeping task's entry in the heap, under trio's own loop; under ours the task itself stands there."""

    __slots__ = ("live", "timers")

    def __init__(self, timers: Timers, task: Task) -> None:
        self.timers = timers
        #: The task; None once it is awake.
        self.live: Task | None = task

    def abort(self, _raise_cancel: Callable[[], NoReturn]) -> Abort:
        """Stop sleeping: the task was cancelled, or killed."""
        self.live = None
        self.timers.grow_stale()
        return Abort.SUCCEEDED


class Timers:
    """The heap, and the clock that only it can move. An entry is `(when_ns, sequence, target, with)`.

    Targets: a cancel scope, with the deadline that this is; a `Timer`; a method that nobody cancels, with its arguments; a
    sleeping task, which takes the nap of that sequence number, or as a `Sleeper`.
    """

    __slots__ = ("heap", "naps", "now_ns", "sequence", "soon", "stale", "wish_ns")

    def __init__(self) -> None:
        self.now_ns = 0
        self.sequence = 0
        self.stale = 0
        self.heap: list[tuple[int, int, Any, Any]] = []
        #: Not empty when something was due already as it was pushed.
        self.soon: list[int] = []
        #: Whether the loop that runs knows what a nap is; then `wish_ns` is when the one that is asked for ends.
        self.naps = False
        self.wish_ns = 0

    def push(self, when_ns: int, target: object, deadline: float = 0.0) -> None:
        """Let `target` fire at `when_ns`; a time already past means as soon as possible."""
        self.sequence += 1
        heappush(self.heap, (when_ns, self.sequence, target, deadline))
        if when_ns <= self.now_ns:
            self.soon.append(when_ns)

    def call_at(self, when_ns: int, fn: Callable[..., object], args: tuple[Any, ...]) -> Timer:
        """Call `fn(*args)` at `when_ns`."""
        timer = Timer(self, when_ns, fn, args)
        self.sequence = sequence = self.sequence + 1  # as `push`: every message is one of these
        heappush(self.heap, (when_ns, sequence, timer, 0.0))
        if when_ns <= self.now_ns:
            self.soon.append(when_ns)
        return timer

    def post(self, when_ns: int, method: Callable[..., object], args: tuple[Any, ...]) -> None:
        """Call a bound method at `when_ns`; nobody can cancel it."""
        self.sequence = sequence = self.sequence + 1
        heappush(self.heap, (when_ns, sequence, method, args))
        if when_ns <= self.now_ns:
            self.soon.append(when_ns)

    def jump(self, ns: int) -> None:
        """Move the clock by `ns`, past what is due meanwhile: it fires late, as after trio's own `MockClock.jump`."""
        self.now_ns += ns
        self.soon.append(self.now_ns)

    def next_ns(self) -> int | None:
        """When the next entry that still means something is due."""
        heap = self.heap
        while heap:
            if _means_something(heap[0]):
                return heap[0][0]
            heappop(heap)
            self.stale -= 1
        return None

    def fire_due(self) -> bool:
        """Fire everything due by now, in order; say whether anything was."""
        heap, now_ns, fired, last = self.heap, self.now_ns, False, self.sequence + CALLBACKS_MAX
        GLOBAL_RUN_CONTEXT.__dict__.pop("task", None)  # what fires runs in no task
        while heap and heap[0][0] <= now_ns:
            entry = heappop(heap)
            if entry[1] > last:
                raise BoundMetError("callbacks")
            target = entry[2]
            kind = type(target)
            if kind is SimTask:
                if target.nap != entry[1]:
                    self.stale -= 1
                    continue
                target.nap = 0
                target._runner.reschedule(target, None)
            elif kind is MethodType:
                target(*entry[3])
            elif kind is CancelScope:
                # Either the scope has told that this entry is stale, or it does so while it cancels itself.
                self.stale -= 1
                if target._registered_deadline != entry[3]:
                    continue
                target._cancel(EXPIRED)
            elif target.live is None:
                self.stale -= 1
                continue
            elif kind is Sleeper:
                task, target.live = target.live, None
                task._runner.reschedule(task)
            elif kind is Timer:
                fn, args = target.live, target.args
                target.live, target.args = None, ()
                fn(*args)
            else:
                target.fire()
            fired = True
        self.soon.clear()
        return fired

    def grow_stale(self) -> None:
        """An entry will never fire: sweep such entries out once they are many."""
        self.stale += 1
        if self.stale > STALE_MAX and self.stale * 2 > len(self.heap):
            self.heap[:] = [entry for entry in self.heap if _means_something(entry)]
            heapify(self.heap)
            self.stale = 0

    # ---- what trio asks of its Deadlines

    def add(self, deadline: float, scope: CancelScope) -> None:
        """A cancel scope got a deadline."""
        self.push(self.now_ns if deadline == -math.inf else due_ns(deadline), scope, deadline)

    def remove(self, deadline: float, scope: CancelScope) -> None:
        """A cancel scope lost its deadline; the entry finds out by itself."""
        self.grow_stale()

    def next_deadline(self) -> float:
        """When the next entry is due, in seconds."""
        when_ns = self.next_ns()
        return math.inf if when_ns is None else when_ns / NS

    def expire(self, now: float) -> bool:
        """Fire what is due; trio's loop passes the time, ours is the same."""
        if self.heap and self.heap[0][0] <= self.now_ns:
            return self.fire_due()
        return False


def _means_something(entry: tuple[int, int, Any, Any]) -> bool:
    target = entry[2]
    kind = type(target)
    if kind is MethodType:
        return True
    if kind is SimTask:
        return bool(target.nap == entry[1])
    return target._registered_deadline == entry[3] if kind is CancelScope else target.live is not None

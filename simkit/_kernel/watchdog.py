"""The watchdog: real bounds on what no step counts, looked at from beside a few times a second.

One thread for all runs of a process looks at the run that is on: whether it took a step since the last look, how much
memory the process has gained, how long the trace is. While every bound is kept it changes nothing, and a run pays for it
at its beginning and end only. The seconds that count are those for which the step's thread had a processor, so a busy
machine ends no run. Once one is met the kernel is told to stop before the next step; code that never comes to
a next step has an exception thrown into it, again and again, whatever it swallows. What spins inside C, with the
interpreter to itself, can be ended with its process only: see `simkit.parallel`.
"""

from __future__ import annotations

import _thread
import os
import resource
import sys
import traceback
from collections.abc import Callable
from time import clock_gettime, monotonic
from types import FrameType
from typing import Any, Self

from trio._core._run import GLOBAL_RUN_CONTEXT

from simkit._kernel.expulsion import EndedError, expel, is_kernel, is_ours, pardon, raises_exactly, relent, throw
from simkit._kernel.hands import clock_of
from simkit._kernel.kernel import Kernel

__all__ = ["Watch", "watching"]

LOOK_S = 0.25
#: So long the thread stays without a run to look at.
_IDLE_S = 1.0
#: Between two exceptions thrown at code that goes on; after a second of patience they follow each other closely.
_AGAIN_S = 0.05
_PATIENCE_S = 1.0
_CLOSELY_S = 0.0002
_SWITCH_S = 0.0001
#: The killed get less time than the living to come to their next await.
_DEAD_S = 0.5
#: Before, only the program's own lines are thrown at, not what it calls of ours.
_OURS_S = 5.0
#: After so long it is given up: nothing that Python offers gets the code out.
_GIVE_UP_S = 20.0
_FRAMES_MAX = 12
_PAGE_BYTES = resource.getpagesize()
#: Whoever has one of these on the stack thinks about the program, for as long as that takes.
_DEBUGGERS = ("/bdb.py", "/pdb.py", "/pydevd", "/debugpy", "/code.py", "/IPython/")
_real_start = _thread.start_new_thread


class Watch:
    """One run, as the watchdog sees it; watched in the block of which this is the manager."""

    __slots__ = (
        "clock",
        "context",
        "events",
        "events_max",
        "floor_bytes",
        "kernel",
        "lock",
        "memory_bytes",
        "met",
        "over",
        "seen",
        "spent_s",
        "stack",
        "step_s",
        "still_s",
        "thread",
        "thrown",
        "tracer",
    )

    def __init__(
        self, kernel: Kernel, events: Callable[[], int], step_s: float, memory_bytes: int, events_max: int
    ) -> None:
        self.kernel = kernel
        self.events = events
        self.step_s = step_s
        self.memory_bytes = memory_bytes
        self.events_max = events_max
        self.thread = _thread.get_ident()
        self.context: dict[str, Any] = GLOBAL_RUN_CONTEXT.__dict__
        #: Held while an exception is thrown; once `over` is set under it, none is.
        self.lock = _thread.allocate_lock()
        self.over = False
        #: Whether an exception was ever thrown.
        self.thrown = False
        #: The bound that was met.
        self.met: str | None = None
        #: Where the program stood then.
        self.stack = ""
        #: What the last look saw, and for how long it has seen that, in seconds of the processor; what its clock said.
        self.seen: tuple[object, int, int] | None = None
        self.still_s = 0.0
        self.spent_s = 0.0
        #: Tells how much processor time the run's thread has taken; -1 until somebody looks.
        self.clock = -1
        self.floor_bytes = -1
        #: Who traces the run's thread, coverage or a debugger: Python forgets him when something is thrown into him.
        self.tracer = sys.gettrace()

    # ---- in the watchdog's thread

    def look(self, passed_s: float, memory_bytes: int, before_bytes: int) -> float:
        """See whether a bound is met; returns how long to wait until the next look.

        Args:
            passed_s: since the look before; what goes beyond twice the usual was spent stopped, and does not count.
            memory_bytes: what the process has now.
            before_bytes: what it had at the look before, whichever run that was at.
        """
        if self.floor_bytes < 0:
            self.floor_bytes = min(memory_bytes, before_bytes)
        progress = self._progress()
        before_s, self.spent_s = self.spent_s, self._spent_s()
        if progress == self.seen:
            self.still_s += max(0.0, min(passed_s, 2 * LOOK_S, self.spent_s - before_s))
        else:
            self.still_s = 0.0
            relent()
        self.seen = progress
        if self.met is not None:
            self.kernel.stop(self.met)
            return self._throw()
        self.met = self._bound(memory_bytes - self.floor_bytes)
        if self.met is not None:
            self.stack = _stack(self._running_thread())
            self.still_s = 0.0
            self.kernel.stop(self.met)
            return _AGAIN_S
        if self.still_s >= _DEAD_S and self._is_dead():  # it was killed, and goes on without an await
            return self._throw()
        return LOOK_S

    def _progress(self) -> tuple[object, int, int]:
        """Differs after every step: the task that runs, or ran last, how many steps it has taken, and threads have."""
        task, threads = self.context.get("task"), self.kernel.runner.threads
        return task, 0 if task is None else task._schedule_points, 0 if threads is None else threads.switches

    def _is_dead(self) -> bool:
        """Whether what runs is a task that was killed; one that only ran last, while somebody else thinks, is not."""
        task = self.context.get("task")
        return task in self.kernel.dead and bool(getattr(task.coro, "cr_running", True))

    def _spent_s(self) -> float:
        """The seconds of processor time that whatever runs has taken."""
        away = self.kernel.away
        hand = None if away is None else away.hand
        if hand is not None:
            return hand.spent_s()
        with self.lock:
            if not self.over and self.clock == -1:  # so its thread lives
                self.clock = clock_of(self.thread)
        try:
            return 0.0 if self.clock == -1 else clock_gettime(self.clock)
        except OSError:
            return 0.0

    def _bound(self, gained_bytes: int) -> str | None:
        if self.still_s >= self.step_s:
            if not _is_debugged(sys._current_frames().get(self._running_thread())):
                return "step-time"
            self.still_s = 0.0
        if gained_bytes > self.memory_bytes:
            return "memory"
        return "events" if self.events() > self.events_max else None

    def _running_thread(self) -> int:
        away = self.kernel.away
        return self.thread if away is None or not away.ident else away.ident

    def _throw(self) -> float:
        """Throw out code that has not yielded since; the kernel's own is spared."""
        if self.still_s > _GIVE_UP_S:
            return LOOK_S
        thread, seen, killed = self._running_thread(), self.seen, self.met is None

        def is_meant() -> bool:
            return self._progress() == seen and (not killed or self._is_dead())

        with self.lock:
            if self.over or self.still_s < _AGAIN_S:
                return _AGAIN_S
            self.thrown = True
            if self.still_s >= _PATIENCE_S or sys.version_info >= (3, 12):
                expel(thread, is_meant)
            if raises_exactly():
                return _AGAIN_S
            frame = sys._current_frames().get(thread)
            is_spared = is_ours if self.still_s < _OURS_S else is_kernel
            if frame is not None and not is_spared(frame.f_code) and is_meant():
                throw(thread)
        del frame
        return _AGAIN_S if self.still_s < _PATIENCE_S else _CLOSELY_S

    # ---- in the run's thread

    def __enter__(self) -> Self:
        _dog.mind(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        _dog.watch = None

    def end(self) -> None:
        """Nothing is thrown from here on, and what was on its way is taken back."""
        while not self.over:
            try:
                with self.lock:
                    self.over = True
            except EndedError:
                continue
        if self.thrown:
            pardon(self.thread)
            if sys.gettrace() is not self.tracer:
                sys.settrace(self.tracer)


class _Dog:
    """The thread, and what it looks at."""

    def __init__(self) -> None:
        self.watch: Watch | None = None
        self._awake = False
        self._lock = _thread.allocate_lock()

    def mind(self, watch: Watch) -> None:
        """Look at this run from now on."""
        self.watch = watch
        if not self._awake:
            self._wake()

    def _wake(self) -> None:
        with self._lock:
            if not self._awake:
                self._awake = True
                _real_start(self._live, ())

    def _live(self) -> None:
        pause = _thread.allocate_lock()
        pause.acquire()
        wait_s, then_s, idle_s, before = LOOK_S, monotonic(), 0.0, _memory_bytes()
        usual_s = 0.0  # the switch interval, while it is not the usual one
        while True:
            pause.acquire(timeout=wait_s)
            now_s, watch = monotonic(), self.watch
            passed_s, then_s = now_s - then_s, now_s
            idle_s, wait_s = idle_s + passed_s, LOOK_S
            if watch is not None and not watch.over:
                now = _memory_bytes()
                idle_s, wait_s, before = 0.0, watch.look(passed_s, now, before), now
            if (
                wait_s < _AGAIN_S and not usual_s
            ):  # what swallows is met outside of its `try` when the next follows at once
                usual_s = sys.getswitchinterval()
                sys.setswitchinterval(_SWITCH_S)
            elif wait_s >= _AGAIN_S and usual_s:
                sys.setswitchinterval(usual_s)
                usual_s = 0.0
            del watch
            if idle_s > _IDLE_S:
                with self._lock:
                    self._awake = False  # first: who begins a run now finds it asleep, and waits for the lock
                    if self.watch is None:
                        return
                    self._awake = True


_dog = _Dog()


def watching(kernel: Kernel, events: Callable[[], int], *, step_s: float, memory_bytes: int, events_max: int) -> Watch:
    """What watches the run of `kernel` in a block, which must be in the run's thread. It ends with the kernel's run."""
    watch = Watch(kernel, events, step_s, memory_bytes, events_max)
    kernel.endings.insert(0, watch.end)
    return watch


def _forked() -> None:
    """A child has no thread but the one that forked."""
    global _dog  # noqa: PLW0603  # the parent's is not here
    _dog = _Dog()


os.register_at_fork(after_in_child=_forked)


def _memory_bytes() -> int:
    """What the process has in memory now, where the system tells, else at most so far."""
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123  # four times a second, and as cheap as can be
            return int(file.read().split()[1]) * _PAGE_BYTES
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


def _is_debugged(frame: FrameType | None) -> bool:
    while frame is not None:
        if any(debugger in frame.f_code.co_filename for debugger in _DEBUGGERS):
            return True
        frame = frame.f_back
    return False


def _stack(thread: int) -> str:
    """The innermost frames of the program in `thread`, outermost first, as a traceback shows them."""
    frame = sys._current_frames().get(thread)
    frames = [] if frame is None else list(traceback.walk_stack(frame))
    kernel = next((index for index, (one, _) in enumerate(frames) if is_kernel(one.f_code)), len(frames))
    summary = traceback.StackSummary.extract(iter(frames[: kernel or None]))
    summary.reverse()
    return "".join(summary.format()[-_FRAMES_MAX:])

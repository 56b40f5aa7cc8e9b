"""Simulated threads: what `trio.to_thread.run_sync` runs, one at a time and never beside the kernel.

A function that may call back into trio by `trio.from_thread` has to be suspended half way, so each gets a real thread;
but only who has the baton runs. The kernel hands it over at an instant of virtual time and stands still until it comes
back: when the function has ended, or waits for trio, or sleeps. So the order of everything is the kernel's.

A thread of a killed process never gets the baton again while the world lasts. Python cannot free its stack without
unwinding it, so this happens when the run is over and every handle is shut: its `finally` blocks run then.
"""

from __future__ import annotations

import _thread
import contextlib
import contextvars
import functools
import sys
import threading
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import TYPE_CHECKING, Any, cast

import outcome
import trio
from trio import _threads
from trio._core._run import GLOBAL_RUN_CONTEXT

from simkit._guard import state
from simkit._kernel.deadlock import place_of
from simkit._kernel.hands import Hand, borrow
from simkit._kernel.naming import Numbers, stand_in
from simkit._kernel.owner import OWNER, Owner
from simkit._kernel.stuck import ThreadStuckError, stuck
from simkit._kernel.timers import BoundMetError
from simkit._storage.handle import ProcessDead

if TYPE_CHECKING:
    from simkit._kernel.kernel import Kernel
    from simkit._kernel.timers import Timer

#: Real seconds after which a function that has the baton, and computes nothing, waits for something real that never comes.
STUCK_S = 60.0
#: Who waits takes less processor time than this; who computes, on a busy machine too, takes more in half of `STUCK_S`.
_WAITING_S = 0.0005
__all__ = ["STUCK_S", "SimThread", "ThreadStuckError", "Threads", "begin", "current_thread", "installed", "sleep"]

_real_send = _threads._send_message_to_trio
_local = threading.local()


class SimThread:
    """One function on its way."""

    def __init__(
        self, threads: Threads, fn: Callable[[], object], deliver: Callable[[Any], object], *, name: str, fresh: bool
    ) -> None:
        #: What `threading` calls it, unless the program has a name for it.
        self.name = name
        self._threads = threads
        self._fresh = fresh
        self._fn = fn
        self._deliver = deliver
        self._back = _thread.allocate_lock()
        self._back.acquire()
        self._hand: Hand | None = None
        self.owner: Owner | None = OWNER.get()
        self.result: outcome.Outcome[Any] | None = None
        self.given_up = False
        #: The real thread's.
        self.ident = 0
        #: What it is in a program of threads, see `simkit.threaded`.
        self.worker: Any = None

    @property
    def dead(self) -> bool:
        """Whether the process that it belongs to is gone."""
        return self.owner is not None and not self.owner.alive

    @property
    def hand(self) -> Hand | None:
        """The real thread that it has now."""
        return self._hand

    @property
    def finished(self) -> bool:
        """Whether the function has ended."""
        return self.result is not None

    # ---- in the kernel's thread

    def go_on(self) -> None:
        """Hand over the baton, and stand still until it is back."""
        if self.finished or (self.dead and not self.given_up):
            return
        if not self.given_up:
            self._threads.count_switch()
        if self._hand is None:
            self._hand = borrow(fresh=self._fresh)
            self._hand.work = self._work
        with state.lent():
            self._threads.kernel.away = self
            self._hand.go.release()
            is_back = self._is_back(self._hand)
            if is_back and self.result is not None:
                hand, self._hand = self._hand, None
                is_back = hand.give_back()
            if not is_back:
                self._threads.ended(self)  # as far as we are concerned: it is lost
                raise stuck(self.ident, STUCK_S)
            self._threads.kernel.away = None
        if self.result is not None:
            self._threads.ended(self)
            if not self.dead and not self.given_up:
                self._deliver(self.result)

    def _is_back(self, hand: Hand) -> bool:
        """Wait for the baton for as long as the thread computes; that it ends is the watchdog's business."""
        spent_s = -1.0
        while not self._back.acquire(timeout=STUCK_S / 2):
            before_s, spent_s = spent_s, hand.spent_s()
            if before_s >= 0 and spent_s - before_s < _WAITING_S:
                return False
        return True

    # ---- for those who wait in it

    @property
    def now_ns(self) -> int:
        """Virtual time."""
        return self._threads.kernel.timers.now_ns

    def later(self, delay_ns: int | None = None) -> None:
        """Let it go on after `delay_ns`, or as long as a switch takes."""
        self._threads.later(self, delay_ns)

    def call_at(self, when_ns: int, fn: Callable[..., object], *args: Any) -> Timer:
        """Call `fn(*args)` at `when_ns`, in no thread of the program."""
        return self._threads.kernel.timers.call_at(when_ns, fn, args)

    def away_ns(self) -> int:
        """For how long others go first where this one gives way, 0 for not at all; drawn from the tape."""
        return self._threads.away_ns()

    def begin_another(self, fn: Callable[[], object], deliver: Callable[[Any], object], name: str) -> SimThread:
        """Start a thread of the same process, a real one of its own; it goes on when its turn comes."""
        return self._threads.begin(fn, deliver, name, fresh=True)

    # ---- in the thread itself

    def wait(self) -> None:
        """Give the baton back until `go_on`."""
        hand = self._hand
        assert hand is not None
        if not self.given_up:
            self._back.release()
            hand.go.acquire()
            self._enter()
        if self.given_up:
            raise ProcessDead("the simulation is over, or the process of this thread is gone")

    def _enter(self) -> None:
        _local.thread = self
        self.ident = threading.get_ident()
        state.take()

    def _work(self) -> None:
        GLOBAL_RUN_CONTEXT.runner = self._threads.kernel.runner  # what the kernel does on behalf of this thread
        self._enter()
        result: outcome.Outcome[Any] | None = None
        try:
            result = contextvars.Context().run(self._live)
        except BaseException as error:  # noqa: BLE001  # as trio's own threads do
            result = outcome.Error(error)
            if self._hand is not None:
                self._hand.is_kept = False  # who knows what it still has
        finally:
            self.result = result
            GLOBAL_RUN_CONTEXT.__dict__.clear()
            _local.thread = None
            self._back.release()

    def _live(self) -> outcome.Outcome[Any]:
        """The function, and letting go of what it leaves: all of it while this thread runs, none while the kernel goes on."""
        hand = self._hand
        assert hand is not None
        OWNER.set(self.owner)
        hand.begin()
        result = outcome.capture(self._fn)
        self._fn = _nothing
        hand.end()
        return result


class Threads:
    """The simulated threads of one run."""

    def __init__(self, kernel: Kernel, latency_ns: Callable[[], int], away_ns: Callable[[], int]) -> None:
        self.kernel = kernel
        self.away_ns = away_ns
        #: Called when the run is over and every thread is gone.
        self.afterwards: list[Callable[[], object]] = []
        self._latency_ns = latency_ns
        self._living: dict[SimThread, None] = {}
        self._held: list[SimThread] = []
        self._limiters: dict[Owner | None, trio.CapacityLimiter] = {}
        self.numbers = Numbers()
        #: How often the baton went to a thread.
        self.switches = 0

    def start(self, fn: Callable[[], object], deliver: Callable[[Any], object], name: str | None = None) -> None:
        """Stand in for `trio.lowlevel.start_thread_soon`."""
        self.begin(fn, deliver, "Trio thread" if name is None else name)

    def begin(
        self,
        fn: Callable[[], object],
        deliver: Callable[[Any], object],
        name: str,
        *,
        fresh: bool = False,
    ) -> SimThread:
        """Start a thread; a fresh one gets a real thread that nobody had before."""
        thread = SimThread(self, fn, deliver, name=name, fresh=fresh)
        self._living[thread] = None
        self.later(thread)
        return thread

    def later(self, thread: SimThread, delay_ns: int | None = None) -> None:
        """Let `thread` go on after `delay_ns`, or as long as a switch takes."""
        delay_ns = self._latency_ns() if delay_ns is None else delay_ns
        self.kernel.timers.call_at(self.kernel.timers.now_ns + delay_ns, self._go_on, (thread,))

    def limiter(self) -> trio.CapacityLimiter:
        """Stand in for `trio.to_thread.current_default_thread_limiter`: each process has its own."""
        owner = OWNER.get()
        if owner not in self._limiters:
            self._limiters[owner] = trio.CapacityLimiter(_threads.DEFAULT_LIMIT)
        return self._limiters[owner]

    def count_switch(self) -> None:
        """Threads take steps, too: no task need take one meanwhile."""
        self.switches += 1
        if self.switches > self.kernel.steps_max:
            raise BoundMetError("steps")

    def ended(self, thread: SimThread) -> None:
        """Forget a thread that has ended."""
        self._living.pop(thread, None)

    def standing(self) -> list[str]:
        """Every thread that waits, and where, for people."""
        frames = sys._current_frames()
        told = []
        for thread in self._living:
            place = place_of(frames.get(thread.ident) if thread._hand is not None else None)
            if place and not thread.dead:
                name = getattr(getattr(thread.worker, "python", None), "name", "thread")
                whose = "" if thread.owner is None else f" of {thread.owner.label}"
                told.append(f"{name}{whose} at {place}")
        return told

    def give_up(self) -> None:
        """The run is over: unwind what is still suspended, oldest first."""
        for thread in list(self._living):
            thread.given_up = True
            if thread._hand is not None:
                thread.go_on()
        self._living.clear()
        while self.afterwards:
            self.afterwards.pop()()

    def _go_on(self, thread: SimThread) -> None:
        if thread.owner is not None and self.kernel.holds(thread.owner):
            self._held.append(thread)
        else:
            thread.go_on()

    def resumed(self, owner: Owner) -> None:
        """A process goes on, and with it its threads."""
        held, self._held = self._held, []
        for thread in held:
            if thread.owner is owner:
                self.later(thread, 0)
            else:
                self._held.append(thread)


class _Answers:
    """Stands in for the queue on which `trio.from_thread` waits."""

    def __init__(self, threads: Threads, thread: SimThread) -> None:
        self._threads = threads
        self._thread = thread
        self._answer: Any = None

    def put_nowait(self, answer: Any) -> None:
        self._answer = answer
        self._threads.later(self._thread)

    def get(self) -> Any:
        self._thread.wait()
        return self._answer


def _nothing() -> None:
    """Stands where the function of a thread that has ended was."""


def current_thread() -> SimThread | None:
    """The simulated thread that is running; None in the kernel's own."""
    return cast("SimThread | None", getattr(_local, "thread", None))


def sleep(thread: SimThread, seconds: float) -> None:
    """Stand in for `time.sleep` in a simulated thread."""
    if seconds < 0:
        raise ValueError("sleep length must be non-negative")
    thread._threads.later(thread, round(seconds * 1_000_000_000))
    thread.wait()


def begin(kernel: Kernel, latency_ns: Callable[[], int], away_ns: Callable[[], int] = lambda: 0) -> Threads:
    """Put simulated threads under `trio.to_thread` for the run of `kernel`, until `Threads.give_up`."""
    _stand_in()
    threads = kernel.runner.threads = Threads(kernel, latency_ns, away_ns)
    kernel.resumings.append(threads.resumed)
    return threads


@contextlib.contextmanager
def installed(
    kernel: Kernel, latency_ns: Callable[[], int], away_ns: Callable[[], int] = lambda: 0
) -> Iterator[Threads]:
    """As `begin`, in this block."""
    threads = begin(kernel, latency_ns, away_ns)
    try:
        yield threads
    finally:
        threads.give_up()


def waiting_task() -> trio.lowlevel.Task | None:
    """The task that waits for what the calling thread does; None where none does, and in the kernel's own thread."""
    register = getattr(_threads.PARENT_TASK_DATA, "task_register", None)
    return register[0] if register else None


def _here() -> Threads | None:
    """The simulated threads of the run that this thread belongs to."""
    return getattr(getattr(GLOBAL_RUN_CONTEXT, "runner", None), "threads", None)


@functools.cache
def _stand_in() -> None:
    """From now on trio asks here where it starts threads, and `threading` where it names them.

    Outside a simulation all is as ever, so nothing is undone.
    """
    stand_in(_numbers, _own_name)
    names: dict[str, Any] = vars(_threads)
    names["start_thread_soon"] = functools.partial(_start, names["start_thread_soon"])
    names["_send_message_to_trio"] = _send
    limiter = _threads.current_default_thread_limiter
    names["_simkit_own_limiter"] = FunctionType(limiter.__code__, names, limiter.__name__)
    names["_simkit_threads"] = _here
    limiter.__code__ = _limiter.__code__


def _numbers() -> Numbers | None:
    threads = _here()
    return None if threads is None else threads.numbers


def _own_name() -> str | None:
    thread = current_thread()
    return None if thread is None else thread.name


def _start(real: Any, fn: Callable[[], object], deliver: Callable[[Any], object], name: str | None = None) -> None:
    threads = _here()
    if threads is None:
        real(fn, deliver, name)
    else:
        threads.start(fn, deliver, name)


def _limiter() -> trio.CapacityLimiter:
    """Stand in for `current_default_thread_limiter`; its globals are those of trio._threads."""
    threads = _simkit_threads()  # type: ignore[name-defined]  # noqa: F821
    return _simkit_own_limiter() if threads is None else threads.limiter()  # type: ignore[name-defined, no-any-return]  # noqa: F821


def _send(token: Any, message: Any) -> Any:
    thread = current_thread()
    if thread is not None:
        object.__setattr__(message, "queue", _Answers(thread._threads, thread))
    return _real_send(token, message)

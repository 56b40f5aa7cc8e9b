"""Processes of our own that share the work of a campaign, and are gone when it is, however it ends.

    working(n, stopping)   `n` of them while the block runs; a `Pool`
    Pool.do(tasks)         results in the order of the tasks, at most so many waiting per process
    Pool.finished()        those that were there, and not yet handed on, when somebody was interrupted
    stopped()              asked inside a task: has the campaign been asked to stop?

What the terminal or an init system sends to a whole group of processes is meant for the first one, which decides what it
means: members live in a group of their own. One whose campaign was killed leaves by itself.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import connection
from multiprocessing.synchronize import Event
from typing import Any, Final

import attrs

from simkit.errors import ExitCode, Problem, SimkitError

#: How often someone who waits for a result looks whether the campaign is to stop.
LOOK_S: Final = 0.1
_GROUP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_stop: Event | None = None  # of this process, when it is a member


def stopped() -> bool:
    """Whether the campaign this process works for is to stop; False in any other process."""
    return _stop is not None and _stop.is_set()


@attrs.frozen
class Pool:
    """Processes at work."""

    processes: int
    _pool: ProcessPoolExecutor
    _stop: Event
    _stopping: Callable[[], bool]
    _waiting: list[Future[Any]] = attrs.field(factory=list)  # in the order of the tasks

    def do(self, tasks: Iterator[tuple[Any, ...]], ahead: int = 2) -> Iterator[Any]:
        """The result of each task (a function and its arguments), in order. Asked to stop, it takes on no more of them, and
        goes on without what a process that is gone by then was at.

        `ahead` tasks per process are handed out before their turn: many, where they are small and take unlike times.
        """
        while True:
            lost = self._hand_out(tasks, ahead * self.processes)
            try:
                if self._waiting:
                    result = self._result(self._waiting[0])
                    self._waiting.pop(0)
                    yield result
                elif lost is not None:
                    raise lost
                else:
                    return
            except BrokenProcessPool as error:
                if self._stopping():
                    return
                raise SimkitError(_lost()) from error

    def finished(self) -> Iterator[Any]:
        """Results that are there and have not been handed on, since an earlier one was waited for, in order; waits for none."""
        there = [one for one in self._waiting if one.done() and not one.cancelled() and one.exception() is None]
        self._waiting.clear()
        for one in there:
            yield one.result()

    def _hand_out(self, tasks: Iterator[tuple[Any, ...]], most: int) -> BrokenProcessPool | None:
        """Have up to `most` tasks waiting; what kept the next one from being taken, when a process is gone."""
        while len(self._waiting) < most and not self._stopping() and (task := next(tasks, None)):
            try:
                with _shielded():  # the first task starts the processes
                    self._waiting.append(self._pool.submit(*task))
            except BrokenProcessPool as error:
                return error
        return None

    def _result(self, future: Future[Any]) -> Any:
        while True:
            if self._stopping():
                self._stop.set()
            with contextlib.suppress(TimeoutError):
                return future.result(LOOK_S)


@contextlib.contextmanager
def working(processes: int, stopping: Callable[[], bool]) -> Iterator[Pool]:
    """`processes` at work; whatever ends the block early ends them at once."""
    context = multiprocessing.get_context("spawn")  # a fork would copy locks that other threads hold
    with _shielded():  # its first event starts a process of Python's own, which does not expect the end of the terminal
        stop = context.Event()
    with ProcessPoolExecutor(processes, mp_context=context, initializer=_enlist, initargs=(stop,)) as pool:
        try:
            yield Pool(processes, pool, stop, stopping)
        except BaseException:
            for child in multiprocessing.active_children():
                child.kill()
            raise


@contextlib.contextmanager
def _shielded() -> Iterator[None]:
    """Hold back signals to the group. A process inherits that when it starts, and keeps it until it has left the group."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _GROUP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _enlist(stop: Event) -> None:
    """In the new process, first of all. A signal that came before it left the group was meant for the campaign."""
    global _stop  # noqa: PLW0603 - the one thing a member knows of its campaign
    _stop = stop
    os.setpgid(0, 0)
    for number in _GROUP_SIGNALS:
        signal.signal(number, signal.signal(number, signal.SIG_IGN))  # to ignore it drops what is pending
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _GROUP_SIGNALS)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_leave_with, args=(parent.sentinel,), daemon=True).start()


def _leave_with(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)


def _lost() -> Problem:
    return Problem(
        "job-lost",
        "a process that ran seeds was ended from outside",
        "run with several jobs",
        "processes that work until they are told to stop",
        "was the machine short of memory? Run fewer jobs; what was judged before is kept",
        ExitCode.INTERNAL,
    )

"""A program of threads: who belongs to it, and when it is over."""

from __future__ import annotations

import contextvars
import functools
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

import outcome
import trio

from simkit._kernel.owner import OWNER
from simkit._kernel.threads import SimThread, current_thread
from simkit.threaded import turns

__all__ = ["Program", "Worker", "current_worker"]

#: As Python calls the first thread of any program.
_MAIN = "MainThread"


class Worker:
    """One thread of a program."""

    def __init__(self, program: Program, python: threading.Thread | None) -> None:
        self.program = program
        self.python = python
        self.over = False
        #: Called when it has ended.
        self.mourners: list[Callable[[], object]] = []

    @property
    def is_awaited(self) -> bool:
        """Whether the program is not over before this thread is; those of pools end with the program, as with Python's own."""
        pool = sys.modules.get("concurrent.futures.thread")
        if self.python is None or self.python.daemon or self.over:
            return False
        return pool is None or self.python not in pool._threads_queues


class Program:
    """All threads that descend from one main function."""

    def __init__(self, token: trio.lowlevel.TrioToken) -> None:
        self.token = token
        self.workers: list[Worker] = []

    def start(self, fn: Callable[[], object], python: threading.Thread | None = None) -> Worker:
        """Start a thread of this program, from one of its threads (or from the one that starts it all)."""
        caller = current_thread()
        assert caller is not None, "only simulated threads come here"
        worker = Worker(self, python)
        self.workers.append(worker)
        context = contextvars.Context()  # a new thread has none of its starter's, as in `threading`
        context.run(OWNER.set, caller.owner)

        def deliver(result: outcome.Outcome[Any]) -> None:
            worker.over = True
            for mourner in worker.mourners:
                mourner()
            if isinstance(result, outcome.Error) and not isinstance(result.error, SystemExit):
                traceback.print_exception(result.error)  # as `_thread` does; `threading` lets nothing out

        name = _MAIN if python is None else python.name
        caller.begin_another(functools.partial(context.run, _live, fn, python), deliver, name).worker = worker
        return worker

    def await_end(self, me: SimThread, worker: Worker) -> None:
        """Suspend thread `me` until `worker` has ended."""
        if not worker.over:
            worker.mourners.append(lambda: me.later(0))
            while not worker.over:
                me.wait()

    def await_all(self, me: SimThread) -> None:
        """Suspend thread `me` until every thread that counts has ended, also those that others start meanwhile."""
        while awaited := [worker for worker in self.workers if worker.is_awaited]:
            self.await_end(me, awaited[0])


def _live(fn: Callable[[], object], python: threading.Thread | None) -> None:
    if python is None:
        _as_main_thread()
    turns.watch()
    try:
        fn()
    finally:
        turns.unwatch()


def _as_main_thread() -> None:
    """Let `threading` know this thread, which it did not start, as it knows the first thread of any program.

    Other threads may go on meanwhile. Its name is that of the simulated thread.
    """
    me: Any = threading._DummyThread()
    me._daemonic = False  # or whatever it starts would be a daemon too
    worker = current_worker()
    assert worker is not None
    worker.python = me


def current_worker() -> Worker | None:
    """The thread of a program that is running; None in any other thread."""
    thread = current_thread()
    found = None if thread is None else thread.worker
    return found if isinstance(found, Worker) else None

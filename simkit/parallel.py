"""Work shared between processes: results in the order of the work, and one item that kills its process costs only itself.

`Crew(2).map(function, items)` is a `map` over processes of its own; with `executor=` it is one over any
`concurrent.futures.Executor`, such as that of Dask distributed. A process that was ended from outside, or that has not
come to the end of an item in time, gives `Lost` for that item; the others are done again elsewhere.
"""

from __future__ import annotations

import faulthandler
import functools
import itertools
import multiprocessing
import os
import pickle
import signal
import sys
import tempfile
import threading
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import connection
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

import attrs

from simkit.errors import ExitCode, Problem, SimkitError
from simkit.guard import keeping

__all__ = ["Crew", "Lost"]

T = TypeVar("T")
R = TypeVar("R")
#: Batches that wait for each process, so that none is ever idle.
_AHEAD = 2
_STACK_MAX = 4000
_METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"


@attrs.frozen
class Lost(Generic[T]):
    """What came of an item whose process was lost."""

    item: T
    why: str
    stack: str = ""  # where it stood when its time was up


class Crew:
    """Processes that share work. Use it as a context manager; leaving it early ends them at once.

    Args:
        processes: how many; 1 means this process, unless `isolated` says otherwise.
        executor: whose processes to use instead; it is not shut down here, and a process it loses is its own affair.
        preload: modules that every process has from its start.
        stall_s: seconds on the wall for one item; then its process is ended. None for no bound. For processes of its own.
        isolated: use a process also when there is only one.
    """

    def __init__(
        self,
        processes: int = 1,
        *,
        executor: Executor | None = None,
        preload: Sequence[str] = (),
        stall_s: float | None = None,
        isolated: bool = False,
    ) -> None:
        if processes < 1:
            raise ValueError(f"a crew has at least one process, not {processes}")
        self.processes = processes
        self._given = executor
        self._alone = executor is None and processes == 1 and not isolated
        self._preload = tuple(preload)
        self._stall_s = stall_s
        self._pool: ProcessPoolExecutor | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> Self:
        if self._given is None and not self._alone:
            self._folder = tempfile.TemporaryDirectory(prefix="simkit-")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: types.TracebackType | None
    ) -> None:
        self._drop_pool(wait=kind is None)
        if self._folder is not None:
            self._folder.cleanup()

    def map(self, function: Callable[[T], R], items: Iterable[T], *, batch: int = 1) -> Iterator[R | Lost[T]]:
        """`function` of each item, in the order of the items; they are taken as they are needed.

        Args:
            function: importable by name in every process, as whatever it takes and gives is picklable.
            items: any number.
            batch: so many go to a process at once; for items that are done in less than a few milliseconds.

        Raises: what `function` raises, and SimkitError when it cannot be sent to another process.
        """
        if self._alone:
            yield from map(function, items)
            return
        _check_sendable(function)
        batches = _batches(items, batch)
        waiting: deque[tuple[list[T], Future[list[R]]]] = deque()
        while True:
            for chunk in itertools.islice(batches, max(0, _AHEAD * self._width() - len(waiting))):
                waiting.append((chunk, self._submit(function, chunk)))
            if not waiting:
                return
            chunk, future = waiting.popleft()
            try:
                yield from future.result()
            except BrokenProcessPool:
                if self._given is not None:
                    raise
                chunks = [chunk, *(again for again, _ in waiting)]
                waiting.clear()
                self._drop_pool(wait=False)
                for item in itertools.chain.from_iterable(chunks):  # whose fault it was, each tells on its own
                    yield self._on_its_own(function, item)

    # ---- processes

    def _width(self) -> int:
        if self._given is None:
            return self.processes
        return getattr(self._given, "_max_workers", None) or max(self.processes, os.cpu_count() or 1)

    def _submit(self, function: Callable[[T], R], chunk: list[T]) -> Future[list[R]]:
        if self._given is not None:
            return self._given.submit(_do, function, chunk, None)
        if self._pool is None:
            self._pool = self._make_pool(self.processes)
        try:
            return self._pool.submit(_do, function, chunk, self._stall_s)
        except BrokenProcessPool as error:  # by an item before: this one is done again with the others
            broken: Future[list[R]] = Future()
            broken.set_exception(error)
            return broken

    def _make_pool(self, processes: int) -> ProcessPoolExecutor:
        assert self._folder is not None, "a crew is entered before it works"
        context = multiprocessing.get_context(_METHOD)
        context.set_forkserver_preload(["simkit.world", *self._preload])
        return ProcessPoolExecutor(
            processes, mp_context=context, initializer=_enlist, initargs=(self._folder.name, tuple(sys.path))
        )

    def _drop_pool(self, *, wait: bool) -> None:
        pool, self._pool = self._pool, None
        if pool is None:
            return
        members = list((getattr(pool, "_processes", None) or {}).values())
        if not wait:
            for member in members:
                member.kill()
        pool.shutdown(wait=True, cancel_futures=True)

    def _on_its_own(self, function: Callable[[T], R], item: T) -> R | Lost[T]:
        pool = self._make_pool(1)
        try:
            return pool.submit(_do, function, [item], self._stall_s).result()[0]
        except BrokenProcessPool:
            stack = self._last_words()
            return Lost(item, _why(self._stall_s, stack), stack)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _last_words(self) -> str:
        """What a process wrote when its time was up."""
        assert self._folder is not None
        words = ""
        for file in sorted(Path(self._folder.name).iterdir()):
            words = words or file.read_text(encoding="utf-8", errors="replace")[:_STACK_MAX]
            file.unlink()
        return words


def _why(stall_s: float | None, stack: str) -> str:
    if stack:
        return f"it did not come to an end within {stall_s:g} s, and its process was ended"
    return "its process was ended from outside, or broke down; is the machine short of memory?"


def _batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    rest = iter(items)
    while chunk := list(itertools.islice(rest, max(1, size))):
        yield chunk


def _name_of(function: Callable[..., Any]) -> str:
    """What people know it by: of a partial, the function that it was given."""
    while isinstance(function, functools.partial):
        given = [one for one in function.args if callable(one)]
        function = given[0] if given else function.func
    return str(getattr(function, "__qualname__", repr(function)))


def _check_sendable(function: Callable[..., Any]) -> None:
    try:
        pickle.loads(pickle.dumps(function))  # noqa: S301  # our own
    except Exception as error:
        name = _name_of(function)
        raise SimkitError(
            Problem(
                "program-not-importable",
                f"{name} cannot be sent to another process: {error}",
                "the program to run in several processes",
                "a function at the top level of a module, its arguments picklable",
                "move it out of the function that it is defined in, or use one process",
                ExitCode.USAGE,
            )
        ) from error


# ---- in the other processes

_words: Any = None


def _enlist(folder: str, path: tuple[str, ...]) -> None:
    """In a new process: what is asked of the terminal is asked of the first process alone."""
    global _words  # noqa: PLW0603  # kept open, as faulthandler wants
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.path[:] = path
    _words = (Path(folder) / f"{os.getpid()}.stack").open("w", encoding="utf-8")
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_leave_with, args=(parent.sentinel,), daemon=True).start()


def _leave_with(sentinel: int) -> None:
    """A first process that was killed takes the others with it."""
    connection.wait([sentinel])
    os._exit(1)


@keeping()
def _do(function: Callable[[T], R], chunk: list[T], stall_s: float | None) -> list[R]:
    results = []
    for item in chunk:
        if stall_s is not None:  # by a thread in C, which needs no lock: also what never leaves C is ended
            faulthandler.dump_traceback_later(stall_s, exit=True, file=_words)
        results.append(function(item))
    if stall_s is not None:
        faulthandler.cancel_dump_traceback_later()
    return results

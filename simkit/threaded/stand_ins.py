"""Where the standard library looks for locks and threads: simulated ones while a simulated program asks for them.

Whoever else makes a lock meanwhile, the kernel above all, gets a real one.
"""

from __future__ import annotations

import functools
import itertools
import queue
import socket as stdlib_socket
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import _base as futures
from concurrent.futures.thread import ThreadPoolExecutor
from types import ModuleType
from typing import TYPE_CHECKING, Any

from simkit._kernel.threads import current_thread
from simkit.process import ProcessDead
from simkit.threaded import locks, starting, turns
from simkit.threaded.program import current_worker
from simkit.threaded.shared import module_locks

if TYPE_CHECKING:
    from simkit._kernel.threads import Threads
    from simkit.world import World

_MISSING = object()


def _either(simulated: Callable[..., Any], real: Callable[..., Any]) -> Callable[..., Any]:
    def make(*args: Any, **kwargs: Any) -> Any:
        return real(*args, **kwargs) if current_worker() is None else simulated(*args, **kwargs)

    make.__name__ = getattr(real, "__name__", "make")
    return make


def _make_hook(make: Callable[[], Callable[[threading.Thread], object]]) -> Callable[[threading.Thread], object]:
    """Who is told what a thread raises: nobody, when it is unwound at the end of the world, whatever that makes it raise."""
    hook = make()

    def tell(thread: threading.Thread) -> None:
        me = current_thread()
        if (me is None or not me.given_up) and not isinstance(sys.exc_info()[1], ProcessDead):
            hook(thread)

    return tell


def _by_number(numbers: Iterator[int]) -> Callable[[Any], int]:
    """A hash that is the same in every run, for what the standard library keeps in sets and walks in their order.

    Pools join their threads so, and `concurrent.futures.wait` gives sets of futures.
    """

    def number(one: Any) -> int:
        found = vars(one).get("_simkit_number")
        if found is None:
            found = vars(one)["_simkit_number"] = next(numbers)
        return int(found)

    return number


def _own_threads() -> list[threading.Thread]:
    """The living threads of the program that asks; the interpreter has others, of the kit and of other processes."""
    worker = current_worker()
    assert worker is not None
    return [one.python for one in worker.program.workers if one.python is not None and not one.over]


def _names(sockets: ModuleType) -> dict[tuple[Any, str], Any]:
    table: dict[tuple[Any, str], Any] = {}
    for name, simulated in (
        ("Lock", locks.Lock),
        ("_allocate_lock", locks.QuietLock),
        ("RLock", locks.RLock),
        ("_CRLock", locks.RLock),
        ("_set_sentinel", starting.sentinel),
        ("_start_new_thread", starting.start),
        ("_start_joinable_thread", starting.start_joinable),
        ("_ThreadHandle", starting.Handle),
    ):
        real = getattr(threading, name, None)
        if real is not None:
            table[threading, name] = _either(simulated, real)
    table[threading, "enumerate"] = _either(_own_threads, threading.enumerate)
    table[threading, "active_count"] = _either(lambda: len(_own_threads()), threading.active_count)
    table[stdlib_socket, "getaddrinfo"] = _either(sockets.getaddrinfo, stdlib_socket.getaddrinfo)
    table[stdlib_socket, "gethostbyname"] = _either(sockets.gethostbyname, stdlib_socket.gethostbyname)
    table[ThreadPoolExecutor, "_counter"] = itertools.count().__next__
    if hasattr(threading, "_trace_hook"):
        table[threading, "_trace_hook"] = None  # turns are lost by a trace function of ours
    table[threading, "_make_invoke_excepthook"] = functools.partial(_make_hook, threading._make_invoke_excepthook)
    table[threading.Thread, "__hash__"] = _by_number(itertools.count(1))
    number = _by_number(itertools.count(1))
    table[futures.Future, "__hash__"] = number
    table[futures, "id"] = number  # by which it sorts the futures whose locks it takes
    table[queue, "SimpleQueue"] = _either(queue._PySimpleQueue, queue.SimpleQueue)
    table.update({(module, name): lock for module, name, lock in module_locks()})
    return table


def install(world: World) -> None:
    """Put them in place until the run is over; also processes that are killed never say when they are done."""
    global _installed_in  # noqa: PLW0603  # there is one simulation at a time
    threads: Threads | None = world.kernel.runner.threads
    assert threads is not None
    if _installed_in is threads:
        return
    from simkit.threaded import sockets

    names = _names(sockets)
    before = {(module, name): vars(module).get(name, _MISSING) for module, name in names}
    _installed_in = threads
    _set(names)

    def undo() -> None:
        global _installed_in  # noqa: PLW0603
        _installed_in = None
        turns.stop()
        _forget_threads()  # while threads still have the hash that they are kept by
        _set(before)

    threads.afterwards.append(undo)


def _forget_threads() -> None:
    """Nothing of the run's threads is waited for when the interpreter ends, nor listed: a process may die as it starts one."""
    pools: Any = getattr(sys.modules.get("concurrent.futures.thread"), "_threads_queues", {})
    begun: Any = threading._limbo
    for kept in (pools, begun):
        for thread in list(kept):
            if isinstance(thread._started._cond._lock, locks.Lock):
                del kept[thread]
    for lock in list(getattr(threading, "_shutdown_locks", ())):
        if isinstance(lock, locks.Lock):
            threading._shutdown_locks.discard(lock)


_installed_in: Threads | None = None


def _set(names: dict[tuple[Any, str], Any]) -> None:
    for (module, name), value in names.items():
        if value is _MISSING:
            delattr(module, name)
        else:
            setattr(module, name, value)

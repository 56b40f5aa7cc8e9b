"""What a simulated program is refused, told with the line of the program that asked and the simulated way.

Python tells of most of it by audit events. A hook cannot be removed, so it is added at the first guarded run only, and
does nothing while no guard is on.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
import sysconfig
import types
import zoneinfo
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import outcome
import trio

from simkit._guard.state import Active, here
from simkit.errors import ExitCode, Problem, SimkitError

_FILES = (
    "a real file",
    "files on the host's simulated disk: open, os and pathlib in a process of a host; `Host.disk` on the outside",
    "read configuration and code before the simulation starts, and hand it in or `Host.disk.load` it",
)
_SOCKETS = (
    "a real socket",
    "trio.open_tcp_stream and trio.serve_tcp, which are simulated",
    "asyncio programs run under `simkit.aio.run`, programs of threads and blocking sockets under `simkit.threaded.run`",
)
_WAITING = (
    "a call of a socket that waits",
    "trio.open_tcp_stream and trio.serve_tcp; or hand the socket to trio.socket.from_stdlib_socket",
    "a task must not wait in a call; a thread may: `simkit.threaded.run` runs a program of blocking calls",
)
_PROCESSES = (
    "another program or process",
    "`Host.start`, which runs an async function as a process",
    "keep the subprocess behind a function that the simulation can replace",
)
_THREADS = (
    "a real thread",
    "tasks: nursery.start_soon, or trio.to_thread.run_sync for what blocks",
    "`simkit.threaded.run` runs a program of threads, unchanged",
)
_SIGNALS = (
    "a signal to a real process",
    "`Process.kill`, `Process.pause` and `Process.resume`",
    "process ids are simulated",
)
_SLEEP = (
    "a real sleep of the whole interpreter",
    "`await trio.sleep(…)`, in an asyncio program `await asyncio.sleep(…)`",
    "virtual time passes only while tasks wait; a thread may sleep: `simkit.threaded.run` runs a program of blocking calls",
)
_WHOLE_DISK = (
    "what all disks of the real machine hold",
    "os.fsync of a file, and of its directory for its name; `Disk.used_bytes` on the outside",
    "a simulated disk is synced file by file, and is as large as `Disk.capacity_bytes` says",
)
_ENVIRONMENT = (
    "a change of the environment",
    "arguments to the program",
    "the environment would leak from one run into the next",
)
_SQLITE = (
    "a real database through the standard library's sqlite3",
    "a path in a process of a host, whose disk it is on; or ':memory:'",
    "where Python's own SQLite hides its functions, as when it is built in, use apsw.Connection(path)",
)

_REFUSED: dict[str, tuple[str, str, str]] = {
    "open": _FILES,
    **{
        f"os.{name}": _FILES
        for name in (
            *(
                "remove",
                "rename",
                "mkdir",
                "rmdir",
                "listdir",
                "scandir",
                "link",
                "symlink",
                "truncate",
                "chmod",
                "chown",
            ),
            *("utime", "chdir", "fwalk", "setxattr", "mkfifo", "mknod", "lockf"),
        )
    },
    "fcntl.flock": _FILES,
    "fcntl.lockf": _FILES,
    "mmap.__new__": _FILES,
    "tempfile.mkstemp": _FILES,
    "tempfile.mkdtemp": _FILES,
    "sqlite3.connect": _SQLITE,
    "socket.__new__": _SOCKETS,
    "socket.blocking": _WAITING,
    "socket.getaddrinfo": _SOCKETS,
    "socket.gethostbyname": _SOCKETS,
    "socket.gethostbyaddr": _SOCKETS,
    "subprocess.Popen": _PROCESSES,
    "os.system": _PROCESSES,
    "os.fork": _PROCESSES,
    "os.forkpty": _PROCESSES,
    "os.posix_spawn": _PROCESSES,
    "os.spawn": _PROCESSES,
    "os.exec": _PROCESSES,
    "_thread.start_new_thread": _THREADS,
    "_thread.start_joinable_thread": _THREADS,
    "os.kill": _SIGNALS,
    "os.killpg": _SIGNALS,
    "signal.pthread_kill": _SIGNALS,
    "signal.raise_signal": _SIGNALS,
    "signal.alarm": _SIGNALS,
    "signal.setitimer": _SIGNALS,
    "os.putenv": _ENVIRONMENT,
    "os.unsetenv": _ENVIRONMENT,
    "time.sleep": _SLEEP,
    "os.sync": _WHOLE_DISK,
    "os.statvfs": _WHOLE_DISK,
}
#: Reading the program's own text: whoever has one of these on the stack may touch files, and look around as modules do
#: while they are imported.
_READERS = (
    "importlib",
    "linecache.py",
    "zoneinfo",
    "pkgutil.py",
    "zipimport",
    "-packages/coverage/",  # it asks where a file lies when it first sees its code run, in whatever process that is
    "pydevd",
    "debugpy",
)
_READING_EVENTS = frozenset(event for event, kind in _REFUSED.items() if kind in {_FILES, _ENVIRONMENT, _SOCKETS})
_ARGUMENT_MAX = 80


class RefusedError(SimkitError):
    """The program reached for the real world from inside a simulation."""


def refusal(event: str, args: tuple[Any, ...]) -> RefusedError:
    """The error for `event`; it is noted, so that the run fails even when the program swallows it."""
    what, expected, hint = _REFUSED[event]
    shown = next((repr(arg)[:_ARGUMENT_MAX] for arg in args if isinstance(arg, str | bytes | int | float)), "")
    error = RefusedError(
        Problem(
            "refused",
            f"{what} is no part of a simulation: {event}({shown})",
            _culprit(inspect.currentframe()),
            expected,
            hint,
            ExitCode.TARGET,
        )
    )
    guard = here()
    if guard is not None:
        guard.refusals.append(error)
    return error


_OURS = str(Path(__file__).parent.parent) + os.sep
_KERNEL = _OURS + "_kernel" + os.sep
_MACHINERY = ("<", _OURS, *(str(Path(inspect.getfile(module)).parent) + os.sep for module in (trio, outcome)))
_INSTALLED = "-packages" + os.sep
_STANDARD_LIBRARY = sysconfig.get_path("stdlib") + os.sep
_ZONES = tuple(path + os.sep for path in zoneinfo.TZPATH)
_TRIO_SOCKET = str(Path(trio.__file__).parent / "_socket.py")


def _hook(
    event: str,
    args: tuple[Any, ...],
    refused: Mapping[
        str, object
    ] = _REFUSED,  # by default, as an interpreter that ends clears a module before its hooks
    guard_here: Callable[[], Active | None] = here,
) -> None:
    if event not in refused:
        return
    guard = guard_here()
    if guard is None or guard.busy or event in guard.permitted:
        return
    guard.busy = True  # what the guard itself does is not the program's
    try:
        if not _is_harmless(event, args):
            raise refusal(event, args)
    finally:
        guard.busy = False


def _is_harmless(event: str, args: tuple[Any, ...]) -> bool:
    if event == "open" and (isinstance(args[0], int) or args[0] == os.devnull):
        return True  # a descriptor that is open already
    if event == "open" and str(args[0]).startswith(_ZONES) and args[1] in {"r", "rb"}:
        return True  # zoneinfo, which is of C, and reads a zone where it is first asked for
    if event == "mmap.__new__" and args[0] == -1:
        return True  # memory, and no file's
    if event.startswith("tempfile."):
        return _in_a_process()  # there what it does next has a stand-in
    if event == "sqlite3.connect":
        return _serves_sqlite(in_memory=args[0] == ":memory:")
    if event == "socket.getaddrinfo":
        return _asks_for_numbers(inspect.currentframe())
    return event in _READING_EVENTS and _reads_the_program(inspect.currentframe())


def _serves_sqlite(*, in_memory: bool) -> bool:
    """Whether the standard library's SQLite may be used: on the disk of a process's host, or without any."""
    from simkit._sqlite.stdlib import serve
    from simkit.points import current_world

    world = current_world()
    served = world is not None and serve(world)
    return in_memory or (served and _in_a_process())


def _in_a_process() -> bool:
    from simkit.process import current_process

    return current_process() is not None


def _asks_for_numbers(frame: types.FrameType | None) -> bool:
    """Before it asks the resolver, trio tries whether the name is an address already: that never leaves the process."""
    while frame is not None:
        if frame.f_code.co_filename == _TRIO_SOCKET and frame.f_code.co_name == "getaddrinfo":
            return True
        frame = frame.f_back
    return False


def is_reading() -> bool:
    """Whether the caller is Python itself, reading the program's own text."""
    return _reads_the_program(inspect.currentframe())


def _reads_the_program(frame: types.FrameType | None) -> bool:
    """Whether it happens during an import or the like; an import around the whole simulation does not count."""
    while frame is not None:
        role = _role(frame.f_code.co_filename)
        if role is not None:
            return role == "reader"
        frame = frame.f_back
    return False


@functools.lru_cache(maxsize=4096)
def _role(filename: str) -> str | None:
    """Whether code of this file reads the program, or is the loop that runs it."""
    if filename.startswith(_KERNEL):
        return "kernel"
    return "reader" if any(reader in filename for reader in _READERS) else None


def _culprit(frame: types.FrameType | None) -> str:
    """The innermost line of the user's own, and the one of a library that it went through, if any; else that one alone."""
    through = below = None
    for code, line in _lines(frame):
        place = f"{code.co_filename}:{line} in {code.co_qualname}"
        below = below or place
        if code.co_filename.startswith(_MACHINERY):
            continue
        if _INSTALLED in code.co_filename:  # these lie in the folder of the standard library
            through = through or place
        elif not code.co_filename.startswith(_STANDARD_LIBRARY):
            return place if through is None else f"{place}, through {through}"
    return through or below or "unknown"


def _lines(frame: types.FrameType | None) -> Iterator[tuple[types.CodeType, int]]:
    """Where the run stands, innermost first; a thread goes on where the task waits that it works for."""
    from simkit._kernel.threads import waiting_task
    from simkit.world import run

    while frame is not None and frame.f_code is not run.__code__:  # what is around that is not simulated
        yield frame.f_code, frame.f_lineno
        frame = frame.f_back
    task = waiting_task()
    if task is not None:
        yield from ((awaiting.f_code, line) for awaiting, line in reversed(list(task.iter_await_frames())))


@functools.cache
def install_hook() -> None:
    """Add the audit hook, once and for good."""
    sys.addaudithook(_hook)

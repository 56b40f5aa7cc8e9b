"""A real SQLite database on the simulated disk: `apsw.Connection(path)` in a simulated process, unmodified.

The map: `installed(world)` makes the VFS of this module SQLite's default while a simulation runs; a path then leads to
the disk of the current process's host. Lock levels are SQLite's own, between all connections of a host.

What differs from the VFS of a real machine, and is answered as SQLite expects:

- no shared memory: WAL works with `locking_mode=EXCLUSIVE` only, and `PRAGMA journal_mode=WAL` without it says `delete`;
- waiting in a task is instant: a busy handler's sleeps are added up in `Accounting.slept_us`, and as nobody else runs
  meanwhile the wait ends in SQLITE_BUSY; a simulated thread does sleep, and others go on;
- time is the world's, randomness the tape's: the same seed gives byte-identical databases.

Connections of a process that died are closed by the kit with their VFS shut, so that neither a rollback nor a
checkpoint nor the garbage collector writes a byte after the death. When the simulation ends, so do they all.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

import apsw
import attrs

from simkit._kernel import threads
from simkit._kernel.owner import OWNER
from simkit._sqlite.file import DatabaseFile, raise_from
from simkit._storage.inode import Inode
from simkit.clock import EPOCH_NS
from simkit.disk import Disk, ProcessDead, normal, parent_of
from simkit.errors import ExitCode, Problem, SimkitError
from simkit.process import Process, current_process

if TYPE_CHECKING:
    from simkit.world import World

__all__ = ["Accounting", "installed"]

VFS_NAME = "simkit"

#: 1970-01-01 in SQLite's Julian milliseconds.
UNIX_EPOCH_JULIAN_MS = 210866760000000

_JOURNALS = apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_SUPER_JOURNAL | apsw.SQLITE_OPEN_WAL
_CREATE, _EXCLUSIVE = apsw.SQLITE_OPEN_CREATE, apsw.SQLITE_OPEN_EXCLUSIVE
_DELETE_ON_CLOSE = apsw.SQLITE_OPEN_DELETEONCLOSE
_EXISTS = apsw.SQLITE_ACCESS_EXISTS


@attrs.define
class Accounting:
    """What SQLite would have done with time: `slept_us` microseconds in busy handlers, over `sleeps` sleeps."""

    slept_us: int = 0
    sleeps: int = 0


class _Session:
    """One simulation's use of the VFS."""

    def __init__(self, world: World, epoch_ns: int) -> None:
        self.world = world
        self.epoch_ns = epoch_ns
        self.accounting = Accounting()
        self.connections: dict[Process, list[weakref.ref[apsw.Connection]]] = {}
        self.deferred: list[apsw.Connection] = []
        #: Whether SQLite's generator, which is the process's, has asked the tape.
        self.drew = False

    def begin(self) -> Callable[[], None]:
        """Take SQLite over; returns what gives it back."""
        self._default, self._unraisable = apsw.vfs_names()[0], sys.unraisablehook
        self._outer, _VFS.session = _VFS.session, self
        self.world.kernel.endings.append(self.end)  # before the frames that hold connections are freed
        apsw.connection_hooks.append(self.adopt)
        apsw.set_default_vfs(VFS_NAME)
        apsw.randomness(0)  # forget what it knows, ask the tape anew
        sys.unraisablehook = functools.partial(_told_unless_dead, self._unraisable)
        return self._give_back

    def _give_back(self) -> None:
        sys.unraisablehook = self._unraisable
        self.end()
        apsw.connection_hooks.remove(self.adopt)
        apsw.set_default_vfs(self._default)
        _VFS.session = self._outer
        if self.drew:
            apsw.randomness(0)

    def adopt(self, connection: apsw.Connection) -> None:
        """Remember a new connection, to close it when its process dies."""
        self._close_deferred()
        process = current_process()
        if process is None:
            return
        if process not in self.connections:
            self.connections[process] = []
            process.on_death(lambda: self.bury(process))
        self.connections[process] = [one for one in self.connections[process] if one() is not None]
        self.connections[process].append(weakref.ref(connection))

    def bury(self, process: Process) -> None:
        """Close the connections of a process that just died.

        Not at once when it died inside its own call into SQLite: a connection cannot be closed under its own feet. Those
        are kept from the garbage collector until somebody else is running.
        """
        self.deferred += [found for one in self.connections.pop(process, ()) if (found := one()) is not None]
        if current_process() is not process:
            self._close_deferred()

    def end(self) -> None:
        """Close everything that is still open, without a byte written."""
        for process, connections in self.connections.items():
            process.host.disk.handles.bury(process)
            self.deferred += [found for one in connections if (found := one()) is not None]
        self.connections.clear()
        if self.deferred:
            self._close_deferred()

    def _close_deferred(self) -> None:
        doomed, self.deferred = self.deferred, []
        with _VFS.shut():
            for connection in doomed:
                with contextlib.suppress(apsw.Error, ProcessDead):
                    connection.close(True)


class _Vfs(apsw.VFS):
    """Paths of the current process's host. Registered once for good: SQLite keeps pointers to it."""

    def __init__(self) -> None:
        super().__init__(VFS_NAME, base="", makedefault=False, maxpathname=1024)
        self.session: _Session | None = None
        self.closed = False

    @contextlib.contextmanager
    def shut(self) -> Iterator[None]:
        """Let nothing through: connections of the dead are being closed."""
        before, self.closed = self.closed, True
        try:
            yield
        finally:
            self.closed = before

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> Any:  # noqa: N802
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        wanted = flags[1] = flags[0]
        if path is None:
            file = _SCRATCH.anonymous(DatabaseFile)
            file.syncs_directory = False
            return file
        process = self._caller(path)
        disk = process.host.disk
        create = bool(wanted & _CREATE)
        try:
            file = disk.open_as(DatabaseFile, path, process, create=create, exclusive=bool(wanted & _EXCLUSIVE))
            if wanted & _DELETE_ON_CLOSE:
                disk.unlink(path, owner=process)
        except OSError as error:
            raise apsw.CantOpenError(str(error)) from error
        file.syncs_directory = create and bool(wanted & _JOURNALS)
        return file

    def xDelete(self, path: str, syncdir: bool) -> None:  # noqa: N802
        process = self._caller(path)
        disk = process.host.disk
        try:
            disk.unlink(path, owner=process)
        except OSError as error:
            gone = error.errno == errno.ENOENT
            raise_from(error, apsw.SQLITE_IOERR_DELETE_NOENT if gone else apsw.SQLITE_IOERR_DELETE)
        if syncdir:
            try:
                disk.sync_dir(parent_of(normal(path)), owner=process)
            except OSError as error:
                raise_from(error, apsw.SQLITE_IOERR_DIR_FSYNC)

    def xAccess(self, path: str, flags: int) -> bool:  # noqa: N802
        """Whether `path` is there; an empty file is not, as for SQLite's Unix VFS."""
        node = self._caller(path).host.disk.find(path)
        return node is not None and (flags != _EXISTS or not isinstance(node, Inode) or node.size > 0)

    def xFullPathname(self, name: str) -> str:  # noqa: N802
        return normal(name)

    def xRandomness(self, numbytes: int) -> bytes:  # noqa: N802
        self._running().drew = True
        return self._running().world.tape.stream("sqlite").randbytes("seed", numbytes)

    def xSleep(self, microseconds: int) -> int:  # noqa: N802
        accounting = self._running().accounting
        accounting.slept_us += microseconds
        accounting.sleeps += 1
        thread = threads.current_thread()
        if thread is not None:
            threads.sleep(thread, microseconds / 1_000_000)
        return microseconds

    def xCurrentTime(self) -> float:  # noqa: N802
        return self.xCurrentTimeInt64() / 86_400_000

    def xCurrentTimeInt64(self) -> int:  # noqa: N802
        session, process = self._running(), current_process()
        now_ns = session.epoch_ns + session.world.now_ns if process is None else process.host.clock.now_ns
        return UNIX_EPOCH_JULIAN_MS + now_ns // 1_000_000

    def xGetLastError(self) -> tuple[int, str]:  # noqa: N802
        return 0, ""

    def _caller(self, path: str) -> Process:
        """Who asks; the path is on the disk of its host."""
        if self.closed:
            raise ProcessDead(f"{path} belongs to a process that is gone")
        if self.session is None:
            self._running()
        process = OWNER.get()
        if process is None:
            raise SimkitError(_no_process(path))
        return cast("Process", process)

    def _running(self) -> _Session:
        if self.session is None:
            raise apsw.CantOpenError("no simulation is running")
        return self.session


def _no_process(path: str) -> Problem:
    return Problem(
        code="database-without-host",
        what=f"the database {path} was opened outside every simulated process",
        where="apsw.Connection",
        expected="a path is opened by a process of a host, whose disk it is on",
        hint="start a process with host.start(fn), or use ':memory:'",
        exit_code=ExitCode.INTERNAL,
    )


class _Zero:
    """The stream of a disk that never loses power."""

    def choose(self, site_key: str, n: int, weights: tuple[int, ...] | None = None, /) -> int:
        return 0

    def chance(self, key: str, num: int, den: int, /) -> bool:
        return False


#: SQLite's nameless temporary files; private to a connection and never recovered.
_SCRATCH = Disk("temporary", _Zero())
_VFS = _Vfs()


def begin(world: World) -> Callable[[], None]:
    """Make the simulated disks SQLite's default file system, with the world's time and randomness; returns what ends it."""
    return _Session(world, EPOCH_NS).begin()


@contextlib.contextmanager
def installed(world: World) -> Iterator[Accounting]:
    """As `begin`, in this block."""
    end = begin(world)
    try:
        yield cast("_Session", _VFS.session).accounting
    finally:
        end()


def _told_unless_dead(tell: Callable[[sys.UnraisableHookArgs], object], found: sys.UnraisableHookArgs) -> None:
    """Let pass in silence, where nobody can catch it, that a process died or the disk failed as a connection closed itself."""
    error = found.exc_value
    failed = isinstance(error, apsw.Error) and isinstance(error.__cause__, OSError)  # see `raise_from`
    if not failed and not isinstance(error, ProcessDead):
        tell(found)

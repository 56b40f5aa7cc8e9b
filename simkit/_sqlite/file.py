"""An open file of a simulated disk as SQLite sees it: a `File` under the names of SQLite's file interface.

SQLite makes thirty calls for a small transaction, so each is answered by the handle itself, in one Python frame where
nothing is amiss. What the operating system would call an error becomes the error that SQLite's own Unix file gives.
"""

from __future__ import annotations

import errno
import operator
import posixpath
from typing import TYPE_CHECKING, NoReturn, cast

import apsw

from simkit._storage.handle import File
from simkit._storage.locks import Locks, locks_of

if TYPE_CHECKING:
    from simkit._storage.device import Device
    from simkit._storage.handle import Owner
    from simkit._storage.inode import Inode
    from simkit.disk import Disk

#: A file system's sector as SQLite's Unix VFS reports it; tearing is finer, see `simkit.disk.SECTOR_BYTES`.
REPORTED_SECTOR_BYTES = 4096

_CHARACTERISTICS = apsw.SQLITE_IOCAP_POWERSAFE_OVERWRITE


class DatabaseFile(File):
    """A database, journal or write-ahead log. The names are the interface of a VFS file."""

    __slots__ = ("_locks", "syncs_directory")

    def __init__(self, disk: Device, inode: Inode, path: str, owner: Owner | None, number: int) -> None:
        super().__init__(disk, inode, path, owner, number)
        self._locks: Locks | None = None
        #: Whether the next sync also syncs the directory: a journal was just made, see SQLite's Unix VFS.
        self.syncs_directory = False

    xWrite = File.write  # noqa: N815
    xFileSize = File.size  # noqa: N815
    xClose = File.close  # noqa: N815

    #: Nothing is controlled: False, in no frame at all, as an operation's code is no pointer.
    xFileControl = staticmethod(operator.is_)  # noqa: N815

    def xRead(self, amount: int, offset: int) -> bytearray:  # noqa: N802
        try:
            if self._disk.faulty or not self.alive:
                return self.read_fully(amount, offset)
            return self.inode.read(amount, offset)
        except OSError as error:
            raise_from(error, apsw.SQLITE_IOERR_READ)

    def xTruncate(self, size: int) -> None:  # noqa: N802
        try:
            self.truncate(size)
        except OSError as error:
            raise_from(error, apsw.SQLITE_IOERR_TRUNCATE)

    def xSync(self, flags: int) -> None:  # noqa: N802
        """Sync the file; a journal just made also syncs its directory, as SQLite's Unix VFS does."""
        try:
            self.fsync()
            if self.syncs_directory:
                self.syncs_directory = False
                cast("Disk", self._disk).sync_dir(posixpath.dirname(self.path), owner=self.owner)
        except OSError as error:
            raise_from(error, apsw.SQLITE_IOERR_FSYNC)

    def xLock(self, level: int) -> None:  # noqa: N802
        locks = self._locks
        if not self.alive:
            self.check()
        if locks is None:
            locks = self._locks = locks_of(self)
        if not locks.acquire(self.number, level):
            raise apsw.BusyError(f"{self.path} is locked")

    def xUnlock(self, level: int) -> None:  # noqa: N802
        if self._locks is not None:  # the dead hold nothing, so giving back changes nothing
            self._locks.release(self.number, level)

    def xCheckReservedLock(self) -> bool:  # noqa: N802
        return locks_of(self).reserved()

    def xSectorSize(self) -> int:  # noqa: N802
        return REPORTED_SECTOR_BYTES

    def xDeviceCharacteristics(self) -> int:  # noqa: N802
        return _CHARACTERISTICS

    def _write_carefully(self, data: bytes, offset: int) -> None:
        try:
            super()._write_carefully(data, offset)
        except OSError as error:
            raise_from(error, apsw.SQLITE_IOERR_WRITE)


def raise_from(error: OSError, code: int) -> NoReturn:
    """Raise what SQLite makes of an operating system's error."""
    if error.errno == errno.ENOSPC:
        raise apsw.FullError(str(error)) from error
    raised = apsw.IOError(str(error))
    raised.extendedresult = code  # type: ignore[attr-defined]  # apsw reads it, its stubs do not tell
    raise raised from error

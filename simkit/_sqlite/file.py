"""An open file of a simulated disk as SQLite sees it: a `File` under the names of SQLite's file interface.

SQLite makes thirty calls for a small transaction, so each is answered by the handle itself, in one Python frame where
nothing is amiss. What the operating system would call an error becomes the error that SQLite's own Unix file gives.
"""

from __future__ import annotations

import contextlib
import errno
import operator
from typing import NoReturn

import apsw

from simkit._storage.handle import File
from simkit._storage.locks import locks_of
from simkit.disk import Disk, parent_of

#: A file system's sector as SQLite's Unix VFS reports it; tearing is finer, see `simkit.disk.SECTOR_BYTES`.
REPORTED_SECTOR_BYTES = 4096

_CHARACTERISTICS = apsw.SQLITE_IOCAP_POWERSAFE_OVERWRITE


class DatabaseFile(File):
    """A database, journal or write-ahead log. The names are the interface of a VFS file."""

    __slots__ = ("syncs_directory",)

    #: Whether the next sync also syncs the directory, as the journal was just made; set by whoever opens the file.
    syncs_directory: bool

    xWrite = File.write  # noqa: N815
    xFileSize = File.size  # noqa: N815
    xClose = File.close  # noqa: N815

    #: Nothing is controlled: False, in no frame at all, as an operation's code is no pointer.
    xFileControl = staticmethod(operator.is_)  # noqa: N815

    def xRead(self, amount: int, offset: int) -> bytes | bytearray:  # noqa: N802
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
                disk = self._disk
                assert isinstance(disk, Disk)
                with contextlib.suppress(OSError):  # as there: many systems cannot sync a directory
                    disk.sync_dir(parent_of(self.path), owner=self.owner)
        except OSError as error:
            raise_from(error, apsw.SQLITE_IOERR_FSYNC)

    def xLock(self, level: int) -> None:  # noqa: N802
        if not self.alive:
            self.check()
        locks = self.inode.locks
        if locks is None or self.on_release is None:
            locks = locks_of(self)
        if not locks.acquire(self.number, level):
            raise apsw.BusyError(f"{self.path} is locked")

    def xUnlock(self, level: int) -> None:  # noqa: N802
        locks = self.inode.locks
        if locks is not None and self.alive:
            locks.release(self.number, level)

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

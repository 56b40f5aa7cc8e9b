"""An unbuffered file on the simulated disk, and the table of open descriptors."""

from __future__ import annotations

import errno
import io
import os
from typing import TYPE_CHECKING, Any, NamedTuple

from simkit._guard.state import Active, here

if TYPE_CHECKING:
    from simkit._storage.handle import File
    from simkit._storage.inode import Inode
    from simkit._storage.namespace import Directory

_FIRST_FD = 1_000_000
#: Each write is synced; of data and size alone, or of all, which is the same here.
_SYNCS = getattr(os, "O_SYNC", 0) | getattr(os, "O_DSYNC", 0)


def bytes_of(data: Any) -> bytes:
    """What a program gives to be written. TypeError for what has no bytes, which `bytes` would make some of: a number, say."""
    return data if isinstance(data, bytes) else bytes(memoryview(data))


class Open(NamedTuple):
    """An open descriptor: of a file, or of a directory."""

    raw: SimulatedFile | None
    path: str
    folder: Directory | None = None


class SimulatedFile(io.RawIOBase):
    """An unbuffered file on the simulated disk; `io` puts its buffers on top."""

    def __init__(self, guard: Active, file: File, path: str, flags: int) -> None:
        super().__init__()
        self.name = path
        access = flags & os.O_ACCMODE
        self.mode = {os.O_RDONLY: "rb", os.O_WRONLY: "wb", os.O_RDWR: "rb+"}[access]
        self._guard = guard
        self._file = file
        self._reads, self._writes = access != os.O_WRONLY, access != os.O_RDONLY
        self._appends = bool(flags & os.O_APPEND)
        self._syncs = bool(flags & _SYNCS)
        self._at = 0
        self._fd = register(guard, Open(self, path))

    def fileno(self) -> int:
        return self._fd

    def readable(self) -> bool:
        return self._reads

    def writable(self) -> bool:
        return self._writes

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._reads:
            raise io.UnsupportedOperation("not readable")
        view = memoryview(buffer).cast("B")
        data = self._file.read(len(view), self._at)
        view[: len(data)] = data
        self._at += len(data)
        return len(data)

    def write(self, data: Any) -> int:
        if not self._writes:
            raise io.UnsupportedOperation("not writable")
        content = bytes_of(data)
        if here() is not self._guard:  # a forgotten buffer, emptied after its world has ended
            return len(content)
        if self._appends:
            self._at = self._file.size()
        return self._write(content)

    def _write(self, content: bytes) -> int:
        written = self._file.write_some(content, self._at)
        self._at += written
        if self._syncs:
            self._file.fsync()
        return written

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._file.size()}.get(whence)
        at = -1 if start is None else start + offset
        if at < 0:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        self._at = at
        return at

    def tell(self) -> int:
        return self._at

    def truncate(self, size: int | None = None) -> int:
        if not self._writes:
            raise io.UnsupportedOperation("not open for writing")
        size = self._at if size is None else size
        self._file.truncate(size)
        return size

    def read_at(self, size: int, offset: int) -> bytes:
        """As pread(2)."""
        return bytes(self._file.read(size, offset))

    def write_at(self, data: bytes, offset: int) -> int:
        """As pwrite(2) of Linux, which appends whatever the offset where O_APPEND is set."""
        at, self._at = self._at, self._file.size() if self._appends else offset
        try:
            return self._write(data)
        finally:
            self._at = at

    @property
    def inode(self) -> Inode:
        """The file itself, whatever it is called by now."""
        return self._file.inode

    def size(self) -> int:
        """How many bytes it has."""
        return self._file.size()

    def sync(self) -> None:
        """Make data and size durable."""
        self._file.fsync()

    def close(self) -> None:
        if not self.closed:
            self._guard.files.pop(self._fd, None)
            self._file.close()
        super().close()


class Borrowed(SimulatedFile):
    """A file whose descriptor somebody else closes; both are at one place in it."""

    def __init__(self, lender: SimulatedFile) -> None:
        io.RawIOBase.__init__(self)
        self._lender = lender
        self.name, self.mode = lender.name, lender.mode

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lender, name)

    def fileno(self) -> int:
        return self._lender.fileno()

    def readable(self) -> bool:
        return self._lender.readable()

    def writable(self) -> bool:
        return self._lender.writable()

    def readinto(self, buffer: Any) -> int:
        return self._lender.readinto(buffer)

    def write(self, data: Any) -> int:
        return self._lender.write(data)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._lender.seek(offset, whence)

    def tell(self) -> int:
        return self._lender.tell()

    def truncate(self, size: int | None = None) -> int:
        return self._lender.truncate(size)

    def close(self) -> None:
        io.RawIOBase.close(self)


def register(guard: Active, entry: Open) -> int:
    fd = _FIRST_FD
    while fd in guard.files:
        fd += 1
    guard.files[fd] = entry
    return fd

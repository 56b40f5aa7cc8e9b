"""What `os` does with an open descriptor of a simulated disk: of a file, or of a directory."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, Any

from simkit._guard.raw import Open, SimulatedFile, bytes_of
from simkit._guard.state import Active

if TYPE_CHECKING:
    from simkit.process import Process

_TIMES = ("st_atime", "st_mtime", "st_ctime")
#: What `stat` tells beside the tuple; times are not kept.
_MORE = dict.fromkeys(_TIMES, 0.0) | {f"{name}_ns": 0 for name in _TIMES}


def _blocks(size: int) -> dict[str, int]:
    """Where this platform tells of blocks."""
    return {"st_blksize": 4096, "st_blocks": -(-size // 512)} if hasattr(os.stat_result, "st_blocks") else {}


def stat_result(kind: int, size: int, number: int, names: int = 1) -> os.stat_result:
    """As `stat` tells it; `number` is the inode's, `names` how many it has."""
    return os.stat_result((kind | 0o755, number, 1, names, 0, 0, size, 0, 0, 0), _MORE | _blocks(size))


def _fsync(_guard: Active, process: Process, entry: Open) -> None:
    if entry.raw is not None:
        entry.raw.sync()
    else:
        assert entry.folder is not None
        process.host.disk.sync_open(entry.folder, entry.path, owner=process)


def file_of(entry: Open) -> SimulatedFile:
    if entry.raw is None:
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), entry.path)
    return entry.raw


def _close(guard: Active, _process: Process, entry: Open) -> None:
    if entry.raw is not None:
        entry.raw.close()
    for fd in [fd for fd, known in guard.files.items() if known is entry]:
        del guard.files[fd]


def _readable(entry: Open) -> SimulatedFile:
    file = file_of(entry)
    if not file.readable():
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    return file


def _writable(entry: Open, number: int = errno.EBADF) -> SimulatedFile:
    if entry.raw is None or not entry.raw.writable():
        raise OSError(number, os.strerror(number))
    return entry.raw


def _read(_guard: Active, _process: Process, entry: Open, size: int) -> bytes:
    return _readable(entry).read(_from_0(size)) or b""


def _pread(_guard: Active, _process: Process, entry: Open, size: int, offset: int) -> bytes:
    return _readable(entry).read_at(_from_0(size), _from_0(offset))


def _write(_guard: Active, _process: Process, entry: Open, data: Any) -> int:
    return _writable(entry).write(data)


def _pwrite(_guard: Active, _process: Process, entry: Open, data: Any, offset: int) -> int:
    return _writable(entry).write_at(bytes_of(data), _from_0(offset))


def _from_0(number: int) -> int:
    if number < 0:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    return number


def _lseek(_guard: Active, _process: Process, entry: Open, offset: int, whence: int) -> int:
    return file_of(entry).seek(offset, whence)


def _ftruncate(_guard: Active, _process: Process, entry: Open, size: int) -> None:
    _writable(entry, errno.EINVAL).truncate(size)


def fstat(_guard: Active, process: Process, entry: Open) -> os.stat_result:
    disk = process.host.disk
    if entry.folder is not None:
        return stat_result(stat.S_IFDIR, 0, disk.number_of(entry.folder))
    raw = file_of(entry)
    size, inode = raw.size(), raw.inode
    return stat_result(stat.S_IFREG, size, disk.number_of(inode), disk.names_of(inode))


BY_DESCRIPTOR: dict[str, Any] = {
    "fsync": _fsync,
    "fdatasync": _fsync,
    "close": _close,
    "read": _read,
    "pread": _pread,
    "write": _write,
    "pwrite": _pwrite,
    "lseek": _lseek,
    "ftruncate": _ftruncate,
    "fstat": fstat,
}

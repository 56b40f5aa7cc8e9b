"""Open files and who holds them: `File` is gated by the life of its owner, `Handles` is the table of one disk.

Also the values a hook of the disk sees (`Boundary`) and answers (`Tear`).
"""

from __future__ import annotations

import errno
import functools
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn, Protocol, TypeVar

import attrs

from simkit._storage.inode import LOG_MAX

if TYPE_CHECKING:
    from simkit._storage.device import Device
    from simkit._storage.inode import Inode

F = TypeVar("F", bound="File")


class ProcessDead(BaseException):
    """A handle was used after its process died or its host lost power; nothing happened.

    A BaseException, so that the `except Exception` of a program which is no more cannot swallow it.
    """


class Owner(Protocol):
    """A process, as far as the disk cares."""

    @property
    def alive(self) -> bool:
        """Whether it may still touch anything."""
        ...

    def on_death(self, callback: Callable[[], None], /) -> object:
        """Call back at the very instant of death."""
        ...


@attrs.frozen
class Boundary:
    """A state-changing operation about to happen: the `number`-th of its disk, counted from 1."""

    number: int
    kind: str  # create, write, truncate, fsync, sync_dir, rename, unlink, mkdir, rmdir
    path: str
    offset: int = 0
    size: int = 0


@attrs.frozen
class Tear:
    """A hook's answer to a write: only the first `keep_bytes` are written, then `then` takes the writer down."""

    keep_bytes: int
    then: Callable[[], object]


class File:
    """An open file of one process. Every call after the owner's death raises `ProcessDead` and does nothing."""

    __slots__ = ("_disk", "alive", "failures_told", "inode", "number", "on_release", "owner", "path")

    def __init__(self, disk: Device, inode: Inode, path: str, owner: Owner | None, number: int) -> None:
        self._disk = disk
        self.inode = inode
        self.path = path
        self.owner = owner
        self.number = number
        self.alive = True
        #: How many failed write-backs of this file its holder knows of, or never will: those before it was opened.
        self.failures_told = inode.failures
        #: Called once when the handle goes, whether closed or dead: the place to give locks back.
        self.on_release: Callable[[], None] | None = None

    # Each is one call while the device need not be careful: SQLite makes thirty of them for a transaction.

    def read(self, size: int, offset: int) -> bytes | bytearray:
        """Return up to `size` bytes at `offset`; fewer at the end of the file, or by a short read."""
        if not self.alive:
            self._dead()
        if self._disk.faulty:
            return self._disk.read_carefully(self, size, offset)
        return self.inode.read(size, offset)

    def read_fully(self, size: int, offset: int) -> bytes | bytearray:
        """As `read`, again and again until all is there or the file ends: what a program makes of short reads."""
        data = self.read(size, offset)
        while len(data) < size and self._disk.faulty:
            more = self.read(size - len(data), offset + len(data))
            if not more:
                break
            data += more
        return data

    def write(self, data: bytes, offset: int) -> None:
        """Write all of `data` at `offset` into the page cache; on ENOSPC what fits is written."""
        disk = self._disk
        number = disk.boundaries + 1
        if number >= disk.careful_from or not self.alive or not data:
            self._write_carefully(data, offset)
            return
        disk.boundaries = number
        size = len(data)
        disk.told.append(("boundary", disk.name, number, "write", self.path, offset, size))
        inode = self.inode
        inode.log.append((offset, data, number))
        size += offset
        if size > inode.size:  # noqa: PLR1730  # no call: hot
            inode.size = size

    def write_some(self, data: bytes, offset: int) -> int:
        """As write(2): write what fits and return how much that is, ENOSPC when nothing does. No bytes change nothing."""
        if not self.alive:
            self._dead()
        return self._disk.write_carefully(self, data, offset) if data else 0

    def truncate(self, size: int) -> None:
        """Set the size."""
        if not self.alive:
            self._dead()
        if size < 0:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), self.path)
        self.inode.truncate(size, self._disk.enter("truncate", self.path, self, size))

    def fsync(self) -> None:
        """Make data and size durable. On EIO the dirty pages are gone, though reads still show them."""
        disk, inode = self._disk, self.inode
        number = disk.boundaries + 1
        if number >= disk.careful_from or not self.alive or disk.entry_durable_on_fsync or not inode.sound:
            self._fsync_carefully()
            return
        disk.boundaries = number
        disk.told.append(("boundary", disk.name, number, "fsync", self.path, 0, 0))
        inode.synced = synced = len(inode.log)
        if synced > LOG_MAX:
            inode.sync()

    def check(self) -> None:
        """Raise `ProcessDead` when the handle is."""
        if not self.alive:
            self._dead()

    def size(self) -> int:
        """Return the size in bytes."""
        if not self.alive:
            self._dead()
        return self.inode.size

    def close(self) -> None:
        """Give the handle back; nothing becomes durable by it. Harmless on a dead handle."""
        if self.alive:
            self._disk.handles.forget(self)
            self.release()

    def release(self) -> None:
        """Take the handle out of service and give back what it held."""
        self.alive = False
        if self.on_release is not None:
            self.on_release()
            self.on_release = None

    def _write_carefully(self, data: bytes, offset: int) -> None:
        if self.write_some(data, offset) < len(data):
            raise full(self.path)

    def _fsync_carefully(self) -> None:
        if not self.alive:
            self._dead()
        self._disk.fsync(self)

    def _dead(self) -> NoReturn:
        msg = f"{self.path} belongs to a process that is gone"
        raise ProcessDead(msg)


class Handles:
    """Every open file of one disk, in the order of opening."""

    def __init__(self, disk: Device) -> None:
        self._disk = disk
        self._open: dict[int, File] = {}
        self._opened = 0
        self._owners: list[Owner] = []

    def add(self, inode: Inode, path: str, owner: Owner | None, kind: Callable[..., F]) -> F:
        """Open a handle that dies with `owner`."""
        self._opened = number = self._opened + 1
        self._open[number] = file = kind(self._disk, inode, path, owner, number)
        if owner is not None:
            for known in self._owners:
                if known is owner:
                    return file
            self._owners.append(owner)
            owner.on_death(functools.partial(self.bury, owner))
        return file

    def forget(self, file: File) -> None:
        """Drop a closed handle."""
        self._open.pop(file.number, None)

    def release_all(self) -> None:
        """Take every handle out of service: the power is gone."""
        for file in list(self._open.values()):
            file.release()
        self._open.clear()

    def bury(self, owner: Owner) -> None:
        """Release what a process held that died; what it wrote stays in the page cache."""
        self._owners = [known for known in self._owners if known is not owner]
        for file in [file for file in self._open.values() if file.owner is owner]:
            self.forget(file)
            file.release()


def full(path: str) -> OSError:
    """The error of a write that finds no room."""
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)


def gate(owner: Owner | File | None) -> None:
    """Raise `ProcessDead` when `owner` is no more."""
    if owner is not None and not owner.alive:
        msg = "a process that is gone cannot touch the disk"
        raise ProcessDead(msg)

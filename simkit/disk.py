"""A simulated disk: files and directories with a page cache, fsync, directory sync, power loss, and faults.

The map: `Disk` is one host's disk and outlives its processes; `File` is an open handle, gated by the life of its owner;
`Boundary` is one state-changing operation, reported just before it takes effect. `_storage` holds the parts.

The durability model is strict POSIX, the weakest a correct program may assume:

- `File.fsync` makes the file's data and size durable, not its name;
- a name (create, rename, unlink, mkdir) becomes durable by `sync_dir` of its directory, and independently of others;
- until then a power loss keeps, loses or tears each write at sector bounds, and keeps or loses each entry.

Journaling file systems promise more. The one extra promise that programs do lean on is an option:
`entry_durable_on_fsync=True` lets an fsync also persist the entry that created or renamed that file, as ext4 does.

Files live in directories. With `provisioned=True` (the default) the directory of a path springs into existence
durably when first used, as if it had been made when the host was set up; else a missing one is ENOENT.
"""

from __future__ import annotations

import errno
import functools
import os
import posixpath
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Literal, NoReturn

import attrs

from simkit._storage.faults import ALWAYS, NEVER, DiskFaults, Injector, Ratio
from simkit._storage.handle import Boundary, File, Handles, Owner, ProcessDead, Tear, gate
from simkit._storage.inode import SECTOR_BYTES, Choices, Inode
from simkit._storage.namespace import DIRECTORY, Namespace

__all__ = [
    "ALWAYS",
    "NEVER",
    "SECTOR_BYTES",
    "Boundary",
    "Choices",
    "Disk",
    "DiskFaults",
    "File",
    "Owner",
    "PowerLoss",
    "ProcessDead",
    "Ratio",
    "Tear",
]

CrashMode = Literal["sample", "lose", "keep"]


@attrs.frozen
class PowerLoss:
    """What one power loss did: how often each kind of loss occurred (lost-write, torn-write, lost-unlink, …)."""

    mode: str
    losses: Mapping[str, int]


class Disk:
    """One host's disk.

    Args:
        name: for messages; usually the host's name.
        stream: the tape stream that decides losses and drawn faults.
        on_boundary: the hook, see `Boundary`; also settable later.
        entry_durable_on_fsync: let an fsync also persist the name of a new or renamed file (ext4).
        provisioned: let missing directories exist, as if made when the host was set up.
        capacity_bytes: sum of file sizes above which a write fails with ENOSPC; None for no bound.
    """

    def __init__(
        self,
        name: str,
        stream: Choices,
        on_boundary: Callable[[Boundary], Tear | None] | None = None,
        *,
        entry_durable_on_fsync: bool = False,
        provisioned: bool = True,
        capacity_bytes: int | None = None,
    ) -> None:
        self.name = name
        self.boundaries = 0
        self.entry_durable_on_fsync = entry_durable_on_fsync
        self.provisioned = provisioned
        self.crashes = 0
        self._stream = stream
        self._names = Namespace()
        self._injector = Injector(stream)
        self.handles = Handles(self)
        self._on_boundary = on_boundary
        self._capacity_bytes = capacity_bytes
        #: Whether operations take the careful path: a hook, a fault or a capacity is set.
        self.armed = False
        self._rearm()

    # ---- knobs

    @property
    def on_boundary(self) -> Callable[[Boundary], Tear | None] | None:
        """The hook that sees every boundary before it takes effect."""
        return self._on_boundary

    @on_boundary.setter
    def on_boundary(self, hook: Callable[[Boundary], Tear | None] | None) -> None:
        self._on_boundary = hook
        self._rearm()

    @property
    def faults(self) -> DiskFaults:
        """How often this disk misbehaves."""
        return self._injector.faults

    @faults.setter
    def faults(self, faults: DiskFaults) -> None:
        self._injector.faults = faults
        self._rearm()

    @property
    def capacity_bytes(self) -> int | None:
        """Bound on the sum of file sizes."""
        return self._capacity_bytes

    @capacity_bytes.setter
    def capacity_bytes(self, capacity_bytes: int | None) -> None:
        self._capacity_bytes = capacity_bytes
        self._rearm()

    @property
    def fired(self) -> Mapping[str, int]:
        """How often each fault and loss really happened."""
        return dict(self._injector.fired)

    def fail_next(self, kind: str, errno_: int, *, path: str | None = None, times: int = 1) -> None:
        """Let the next `times` operations of `kind` ("read" or a boundary's kind) fail with `errno_`.

        `path` narrows it to one file. `fired` tells afterwards whether it happened, e.g. `{"fsync-eio": 1}`.
        """
        self._injector.fail_next(kind, errno_, path=None if path is None else normal(path), times=times)
        self._rearm()

    # ---- files and directories

    def open(self, path: str, *, owner: Owner | None = None, create: bool = False, exclusive: bool = False) -> File:
        """Open `path`; with `create` make it when missing (a boundary), with `exclusive` only then."""
        path = normal(path)
        gate(owner)
        node = self._names.visible.get(path)
        if node is DIRECTORY:
            raise _error(errno.EISDIR, path)
        if not isinstance(node, Inode):
            if not create:
                raise _error(errno.ENOENT, path)
            node = self._create(path, owner)
        elif create and exclusive:
            raise _error(errno.EEXIST, path)
        return self.handles.add(node, path, owner)

    def anonymous(self, *, owner: Owner | None = None) -> File:
        """Open a temporary file without a name; gone when closed."""
        return self.handles.add(Inode(), "(anonymous)", owner)

    def exists(self, path: str) -> bool:
        """Return whether a file or directory of that name is visible."""
        return normal(path) in self._names.visible

    def is_directory(self, path: str) -> bool:
        """Return whether a directory of that name is visible."""
        return self._names.visible.get(normal(path)) is DIRECTORY

    def size(self, path: str) -> int:
        """Return the visible size of a file."""
        return len(self._inode(normal(path)).cache)

    def read_file(self, path: str) -> bytes:
        """Return the visible bytes of a file."""
        return bytes(self._inode(normal(path)).cache)

    def listdir(self, path: str) -> list[str]:
        """Return the visible names in a directory, sorted."""
        path = normal(path)
        self._directory(path)
        return self._names.children(path)

    def unlink(self, path: str, *, owner: Owner | None = None) -> None:
        """Remove a name; open handles keep the file. Durable by a sync of the directory."""
        path = normal(path)
        gate(owner)
        self._inode(path)
        self.enter("unlink", path, owner=owner)
        self._names.change("unlink", (path, None))

    def rename(self, source: str, target: str, *, owner: Owner | None = None) -> None:
        """Give a file another name, atomically replacing what had it. Durable by a sync of either directory."""
        source, target = normal(source), normal(target)
        gate(owner)
        inode = self._inode(source)
        self._directory(posixpath.dirname(target))
        if self._names.visible.get(target) is DIRECTORY:
            raise _error(errno.EISDIR, target)
        self.enter("rename", source, owner=owner)
        if source != target:
            self._names.change("rename", (source, None), (target, inode))

    def mkdir(self, path: str, *, owner: Owner | None = None) -> None:
        """Make a directory. Durable by a sync of its parent."""
        path = normal(path)
        gate(owner)
        if path in self._names.visible:
            raise _error(errno.EEXIST, path)
        self._directory(posixpath.dirname(path))
        self.enter("mkdir", path, owner=owner)
        self._names.change("mkdir", (path, DIRECTORY))

    def rmdir(self, path: str, *, owner: Owner | None = None) -> None:
        """Remove an empty directory. Durable by a sync of its parent."""
        path = normal(path)
        gate(owner)
        if self.listdir(path):
            raise _error(errno.ENOTEMPTY, path)
        self.enter("rmdir", path, owner=owner)
        self._names.change("rmdir", (path, None))

    def sync_dir(self, path: str, *, owner: Owner | None = None) -> None:
        """Make every change of names in this directory durable (fsync of the directory)."""
        path = normal(path)
        gate(owner)
        self._directory(path)
        self.enter("sync_dir", path, owner=owner)
        if not (self.armed and self._injector.lies("sync_dir", path)):
            self._names.sync(lambda change: change.touches(path))

    # ---- power

    def crash(self, mode: CrashMode = "sample") -> PowerLoss:
        """Lose power: every handle dies, and what no sync covered is settled.

        Args:
            mode: "sample" draws the fate of each unsynced write and entry from the tape; "lose" loses all of them,
                "keep" none.
        """
        self.handles.release_all()
        losses: dict[str, int] = {}

        def count(what: str) -> None:
            losses[what] = losses.get(what, 0) + 1
            self._injector.count(what)

        self._names.lose_power(mode, self._stream, count)
        settled: list[Inode] = []
        for path, node in self._names.durable.items():
            # a lost unlink beside a kept rename can leave one file under two names
            if isinstance(node, Inode) and not any(node is other for other in settled):
                settled.append(node)
                node.lose_power(path, mode, self._stream, count)
        self.crashes += 1
        return PowerLoss(mode, losses)

    def durable_files(self) -> dict[str, bytes]:
        """Return what is durable for certain: what `crash("lose")` would leave."""
        return {path: bytes(node.durable) for path, node in self._names.durable.items() if isinstance(node, Inode)}

    def digest(self) -> str:
        """Return a digest of every visible name and byte."""
        found = blake2b(digest_size=16)
        for path, node in sorted(self._names.visible.items(), key=lambda entry: entry[0]):
            data = node.cache if isinstance(node, Inode) else b""
            found.update(f"{path}\0{len(data)}\0".encode())
            found.update(data)
        return found.hexdigest()

    # ---- for File (and not for programs)

    def enter(
        self, kind: str, path: str, *, file: File | None = None, owner: Owner | None = None, size: int = 0
    ) -> None:
        """Count and report a boundary that is not a write; raise when the hook took the owner down or a fault is due."""
        self.boundaries += 1
        if not self.armed:
            return
        if self._on_boundary is not None:
            self._ask(Boundary(self.boundaries, kind, path, 0, size))
            gate(file if file is not None else owner)
        error = self._injector.error(kind, path)
        if error is not None:
            raise error

    def write_carefully(self, file: File, data: bytes, offset: int) -> None:
        """Report and carry out a write, with tearing, capacity and faults."""
        if self._on_boundary is not None:
            tear = self._ask(Boundary(self.boundaries, "write", file.path, offset, len(data)))
            if tear is not None:
                self._tear(file, data[: tear.keep_bytes], offset, tear)
            gate(file)
        error = self._injector.error("write", file.path)
        if error is not None:
            raise error
        grown = offset + len(data) - len(file.inode.cache)
        if self._capacity_bytes is not None and grown > 0 and self.used_bytes() + grown > self._capacity_bytes:
            self._injector.count("full")
            raise _error(errno.ENOSPC, file.path)
        file.inode.write(data, offset)

    def fsync(self, file: File) -> None:
        """Carry out an fsync."""
        try:
            self.enter("fsync", file.path, file=file)
        except OSError:
            file.inode.drop_dirty()
            raise
        if self.armed and self._injector.lies("fsync", file.path):
            return
        file.inode.sync()
        if self.entry_durable_on_fsync:
            self._names.sync(lambda change: change.links(file.inode))

    def check_read(self, path: str) -> None:
        """Raise when a read of `path` must fail."""
        error = self._injector.error("read", path)
        if error is not None:
            raise error

    def used_bytes(self) -> int:
        """Sum of the visible file sizes."""
        return sum(len(node.cache) for node in self._names.visible.values() if isinstance(node, Inode))

    # ---- inside

    def _rearm(self) -> None:
        injector = self._injector
        self.armed = (
            self._on_boundary is not None
            or self._capacity_bytes is not None
            or injector.faults != DiskFaults()
            or injector.waiting > 0
        )

    def _ask(self, boundary: Boundary) -> Tear | None:
        """Let the hook see the boundary; whoever was inside the disk when the power went does not come back."""
        if self._on_boundary is None:
            return None
        crashes = self.crashes
        tear = self._on_boundary(boundary)
        if self.crashes != crashes:
            msg = f"the power of {self.name} went at {boundary.kind} of {boundary.path}"
            raise ProcessDead(msg)
        return tear

    def _create(self, path: str, owner: Owner | None) -> Inode:
        self._directory(posixpath.dirname(path))
        self.enter("create", path, owner=owner)
        inode = Inode()
        self._names.change("create", (path, inode))
        return inode

    def _tear(self, file: File, data: bytes, offset: int, tear: Tear) -> NoReturn:
        file.inode.write(data, offset)
        self._injector.count("torn-by-hook")
        tear.then()
        msg = f"the writer of {file.path} went down in the middle of a write"
        raise ProcessDead(msg)

    def _inode(self, path: str) -> Inode:
        node = self._names.visible.get(path)
        if isinstance(node, Inode):
            return node
        raise _error(errno.ENOENT if node is None else errno.EISDIR, path)

    def _directory(self, path: str) -> None:
        node = self._names.visible.get(path)
        if node is None and self.provisioned:
            self._names.provide(path)
        elif node is not DIRECTORY:
            raise _error(errno.ENOENT if node is None else errno.ENOTDIR, path)


@functools.lru_cache(maxsize=1024)
def normal(path: str) -> str:
    """Return `path` absolute and normalised; relative ones are taken from the root."""
    path = posixpath.normpath(posixpath.join("/", path))
    return path[1:] if path.startswith("//") else path


def _error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)

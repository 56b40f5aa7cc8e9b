"""A simulated disk: files and directories with a page cache, fsync, directory sync, power loss, and faults.

The map: `Disk` is one host's disk and outlives its processes; `File` is an open handle, gated by the life of its owner;
`Boundary` is one state-changing operation, reported just before it takes effect; `CrashState` is one state that a power
loss may leave. `_storage` holds the parts: `device` what goes wrong, `namespace` names, `inode` bytes, `states`.

The durability model is strict POSIX, the weakest a correct program may assume:

- `File.fsync` makes the file's data and size durable, not its name;
- a name (create, rename, unlink, mkdir) becomes durable by `sync_dir` of its directory, and independently of others;
- until then a power loss keeps, loses or tears each write at sector bounds, and keeps or loses each entry.

Journaling file systems promise more. The one extra promise that programs do lean on is an option:
`entry_durable_on_fsync=True` lets an fsync also persist the entry that created or renamed that file, as ext4 does.

Files live in directories. With `provisioned=True` (the default) the directory of a path springs into existence
durably when first used, as if it had been made when the host was set up; else a missing one is ENOENT. One that a
program made, renamed or removed is its own business: it does not come back by itself.
"""

from __future__ import annotations

import errno
import functools
import os
import posixpath
from collections.abc import Mapping
from hashlib import blake2b
from typing import Literal, TypeVar

import attrs

from simkit._options import is_whole, need_whole
from simkit._storage.device import Device, Hook
from simkit._storage.faults import ALWAYS, NEVER, DiskFaults, Ratio
from simkit._storage.handle import Boundary, File, Owner, ProcessDead, Tear, gate
from simkit._storage.inode import SECTOR_BYTES, Choices, Inode
from simkit._storage.namespace import Directory, Namespace, split
from simkit._storage.states import CrashState, CrashStates, crash_states, verdicts
from simkit.errors import wrong

__all__ = [
    "ALWAYS",
    "NEVER",
    "SECTOR_BYTES",
    "Boundary",
    "Choices",
    "CrashState",
    "CrashStates",
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
F = TypeVar("F", bound=File)


@attrs.frozen
class PowerLoss:
    """What one power loss did: how often each kind of loss occurred (lost-write, torn-write, lost-unlink, …)."""

    mode: str
    losses: Mapping[str, int]


class Disk(Device):
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
        on_boundary: Hook | None = None,
        *,
        entry_durable_on_fsync: bool = False,
        provisioned: bool = True,
        capacity_bytes: int | None = None,
    ) -> None:
        super().__init__(name, stream, on_boundary, capacity_bytes)
        self.entry_durable_on_fsync = entry_durable_on_fsync
        self.provisioned = provisioned
        self._numbers = 1

    # ---- files and directories

    def open(self, path: str, *, owner: Owner | None = None, create: bool = False, exclusive: bool = False) -> File:
        """Open `path`; with `create` make it when missing (a boundary), with `exclusive` only then."""
        return self.open_as(File, path, owner, create=create, exclusive=exclusive)

    def open_as(self, kind: type[F], path: str, owner: Owner | None, *, create: bool, exclusive: bool) -> F:
        """As `open`, with another class of handles."""
        path = normal(path)
        gate(owner)
        node = self._names.visible.get(path)
        if node is None:
            if not create:
                raise self._missing(path)
            node = self._create(path, owner)
        elif create and exclusive:
            raise _error(errno.EEXIST, path)
        elif isinstance(node, Directory):
            raise _error(errno.EISDIR, path)
        return self.handles.add(node, path, owner, kind)

    def anonymous(self, kind: type[F], owner: Owner | None = None) -> F:
        """Open a temporary file without a name; gone when closed."""
        return self.handles.add(Inode(), "(anonymous)", owner, kind)

    def number_of(self, node: Inode | Directory) -> int:
        """What tells a file or directory from all others of this disk, whatever it is called: its inode number."""
        if not node.number:
            self._numbers += 1
            node.number = self._numbers
        return node.number

    def names_of(self, inode: Inode) -> int:
        """How many names a file has: none when it was unlinked."""
        return sum(node is inode for node in self._names.visible.values())

    def find(self, path: str) -> Inode | Directory | None:
        """What is visible under that name; not for programs."""
        return self._names.visible.get(normal(path))

    def exists(self, path: str) -> bool:
        """Return whether a file or directory of that name is visible."""
        return normal(path) in self._names.visible

    def is_directory(self, path: str) -> bool:
        """Return whether a directory of that name is visible."""
        return isinstance(self._names.visible.get(normal(path)), Directory)

    def size(self, path: str) -> int:
        """Return the visible size of a file."""
        return self._inode(normal(path)).size

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
        number = self.enter("unlink", path, owner)
        self._names.set("unlink", path, None, number)

    def rename(self, source: str, target: str, *, owner: Owner | None = None) -> None:
        """Give a file or directory another name, atomically replacing what had it: a file by a file, an empty directory by
        a directory. Durable by a sync of either parent.
        """
        source, target = normal(source), normal(target)
        gate(owner)
        node = self._names.visible.get(source)
        if node is None:
            raise self._missing(source)
        self._directory(parent_of(target))
        self._check_target(source, target)
        number = self.enter("rename", source, owner)
        if source == target:
            return
        if isinstance(node, Directory):
            self._names.move(source, target, number)
        else:
            self._names.rename(source, target, number)

    def mkdir(self, path: str, *, owner: Owner | None = None) -> None:
        """Make a directory. Durable by a sync of its parent."""
        path = normal(path)
        gate(owner)
        if path in self._names.visible:
            raise _error(errno.EEXIST, path)
        self._directory(parent_of(path))
        number = self.enter("mkdir", path, owner)
        self._names.set("mkdir", path, Directory(), number)

    def rmdir(self, path: str, *, owner: Owner | None = None) -> None:
        """Remove an empty directory. Durable by a sync of its parent."""
        path = normal(path)
        gate(owner)
        if path not in self._names.visible:
            raise self._missing(path)
        if path == "/":
            raise _error(errno.EBUSY, path)
        if self.listdir(path):
            raise _error(errno.ENOTEMPTY, path)
        number = self.enter("rmdir", path, owner)
        self._names.set("rmdir", path, None, number)

    def sync_dir(self, path: str, *, owner: Owner | None = None) -> None:
        """Make every change of names in this directory durable (fsync of the directory)."""
        path = normal(path)
        gate(owner)
        self.sync_open(self._directory(path), path, owner=owner)

    def sync_open(self, directory: Directory, path: str, *, owner: Owner | None = None) -> None:
        """As `sync_dir`, of a directory that was found before, under `path`, whatever it is called by now."""
        gate(owner)
        self.enter("sync_dir", path, owner)
        if not (self.faulty and self._lies("sync_dir", path)):
            self._names.sync_directory(directory)

    # ---- power, and what is really on the platter

    def crash(self, mode: CrashMode | CrashState = "sample") -> PowerLoss:
        """Lose power: every handle dies, and what no sync covered is settled.

        Args:
            mode: "sample" draws the fate of each unsynced write and entry from the tape; "lose" loses all of them,
                "keep" none; a state of `crash_states` leaves exactly that.
        """
        self.handles.release_all()
        losses: dict[str, int] = {}

        def count(what: str) -> None:
            losses[what] = losses.get(what, 0) + 1
            self._injector.count(what)

        verdict = verdicts(mode, self._stream)
        names = self._names.lose_power(verdict.entry, count)
        # a lost unlink beside a kept rename can leave one file under two names
        inodes = {node: path for path, node in reversed(names.items()) if isinstance(node, Inode)}
        for inode, path in reversed(inodes.items()):
            inode.lose_power(path, verdict.data, count)
        for inode in inodes:
            inode.restart()
        self.crashes += 1
        return PowerLoss(mode if isinstance(mode, str) else mode.code, losses)

    def wipe(self) -> None:
        """Lose everything, synced or not, as when an empty disk takes this one's place; every handle dies."""
        self.handles.release_all()
        self._names = Namespace()
        self._injector.count("wiped")

    def crash_states(self, bound: int = 1000) -> CrashStates:
        """What a power loss at this moment may leave, each set of files once.

        Every legal state when there are at most `bound`; else `bound` of them, those at boundaries first: cut off after
        each change in order, torn there, one change lost alone, one kept alone, then drawn from the tape.
        """
        return crash_states(self._names, bound, self._stream)

    def load(self, files: Mapping[str, bytes]) -> None:
        """Let these files be there durably, as if written when the host was set up: a `CrashState`'s, say."""
        for path, data in ((normal(path), data) for path, data in files.items()):
            self._names.provide(parent_of(path), anew=True)
            self._names.plant(path, data)

    def drop_caches(self) -> None:
        """Forget every clean page: reads show what is really on the disk, under what is still dirty."""
        for node in self._names.visible.values():
            if isinstance(node, Inode):
                node.drop_cache()

    def corrupt(self, path: str, offset: int, bit: int = 0) -> bool:
        """Let one bit of a file rot now; False when it was spared (see `simkit.copies`), or is behind the file's end."""
        need_whole("Disk.corrupt: offset", offset, 0)
        if not is_whole(bit) or not 0 <= bit <= 7:
            raise wrong("Disk.corrupt: bit", bit, "a bit of a byte, from 0 to 7")
        path = normal(path)
        return self.rot(self._inode(path), path, offset, bit)

    def fail_next(self, kind: str, errno_: int, *, path: str | None = None, times: int = 1) -> None:
        super().fail_next(kind, errno_, path=None if path is None else normal(path), times=times)

    def strike_next(self, fault: str, *, path: str | None = None, times: int = 1) -> None:
        super().strike_next(fault, path=None if path is None else normal(path), times=times)

    def durable_files(self) -> dict[str, bytes]:
        """Return what is durable for certain: what `crash("lose")` would leave."""
        return {path: bytes(node.durable) for path, node in self._names.survivors().items() if isinstance(node, Inode)}

    def inodes(self) -> dict[str, Inode]:
        """Return the visible files by path, sorted: their bytes, durable or not, for those who look from beside."""
        return {path: node for path, node in sorted(self._names.visible.items(), key=_path) if isinstance(node, Inode)}

    def digest(self) -> str:
        """Return a digest of every visible name and byte."""
        found = blake2b(digest_size=16)
        for path, node in sorted(self._names.visible.items(), key=_path):
            data = node.cache if isinstance(node, Inode) else b""
            found.update(f"{path}\0{len(data)}\0".encode())
            found.update(data)
        return found.hexdigest()

    # ---- inside

    def _create(self, path: str, owner: Owner | None) -> Inode:
        parent = split(path)[0]
        if not isinstance(self._names.visible.get(parent), Directory):
            self._directory(parent)
        number = self.enter("create", path, owner)
        inode = Inode()
        self._names.set("create", path, inode, number)
        return inode

    def _inode(self, path: str) -> Inode:
        node = self._names.visible.get(path)
        if isinstance(node, Inode):
            return node
        raise self._missing(path) if node is None else _error(errno.EISDIR, path)

    def _missing(self, path: str) -> OSError:
        """The error for a name that is not there: ENOTDIR where a file stands in its way."""
        above = parent_of(path)
        while above not in self._names.visible:
            above = parent_of(above)
        return _error(errno.ENOTDIR if isinstance(self._names.visible[above], Inode) else errno.ENOENT, path)

    def _check_target(self, source: str, target: str) -> None:
        """Raise what rename(2) raises when `target` cannot be replaced."""
        if "/" in (source, target):
            raise _error(errno.EBUSY, target)
        old, new = self._names.visible[source], self._names.visible.get(target)
        if isinstance(old, Directory):
            if target.startswith(source.rstrip("/") + "/"):
                raise _error(errno.EINVAL, target)
            if isinstance(new, Inode):
                raise _error(errno.ENOTDIR, target)
            if source != target and new is not None and self._names.children(target):
                raise _error(errno.ENOTEMPTY, target)
        elif isinstance(new, Directory):
            raise _error(errno.EISDIR, target)

    def _directory(self, path: str) -> Directory:
        node = self._names.visible.get(path)
        if node is None and self.provisioned:
            return self._names.provide(path)
        if not isinstance(node, Directory):
            raise self._missing(path) if node is None else _error(errno.ENOTDIR, path)
        return node


@functools.lru_cache(maxsize=1024)
def normal(path: str) -> str:
    """Return `path` absolute and normalised; relative ones are taken from the root."""
    path = posixpath.normpath(posixpath.join("/", path))
    return path[1:] if path.startswith("//") else path


def _path(entry: tuple[str, object]) -> str:
    return entry[0]


def parent_of(path: str) -> str:
    """Return the path of the directory that a normalised path is in."""
    parent: str = split(path)[0]
    return parent


def _error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)

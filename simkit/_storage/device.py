"""What stands between an open file and its bytes: boundaries, hooks, and everything that may go wrong on the way.

`Disk` is a `Device` with names. Every boundary is counted and noted (`told`); only from boundary `careful_from` on, which is
the next one that a hook waits for, or 0 while anything may go wrong, is the device asked what becomes of it.
"""

from __future__ import annotations

import errno
import os
import sys
from collections import deque
from collections.abc import Callable, Mapping
from typing import NoReturn, Protocol

from simkit._options import need_whole
from simkit._storage.faults import NO_FAULTS, DiskFaults, Injector
from simkit._storage.handle import Boundary, File, Handles, Owner, ProcessDead, Tear, full, gate
from simkit._storage.inode import SECTOR_BYTES, Choices, Inode
from simkit._storage.namespace import Namespace

Hook = Callable[[Boundary], Tear | None]


class Log(Protocol):
    """A list, or whatever else things are put on."""

    def append(self, entry: tuple[str | int, ...], /) -> object:
        """Take one more."""
        ...


#: No boundary has this number.
NO_BOUNDARY = sys.maxsize


class Device:
    """The part of a disk that meets faults."""

    def __init__(self, name: str, stream: Choices, on_boundary: Hook | None, capacity_bytes: int | None) -> None:
        self.name = name
        self.boundaries = 0
        #: Gets every boundary before it takes effect: ("boundary", name, number, kind, path, offset, size).
        self.told: Log = deque[object](maxlen=0)  # nobody listens
        self.crashes = 0
        self.entry_durable_on_fsync = False
        #: Sum of the delays that slow and stuck operations have met.
        self.delayed_ns = 0
        #: Told of each delay and who met it: the place to let time pass. The operation itself goes on at once.
        self.on_delay: Callable[[Owner | None, int], object] | None = None
        #: Whether the file of this name must not be damaged, see `simkit.copies`.
        self.spares: Callable[[str], bool] | None = None
        self.handles = Handles(self)
        self._stream = stream
        self._names = Namespace()
        self._injector = Injector(stream)
        self._on_boundary = on_boundary
        self._capacity_bytes = _checked(capacity_bytes)
        #: Whether anything may go wrong: a fault or a capacity is set.
        self.faulty = False
        self._hook_from = NO_BOUNDARY if on_boundary is None else 0
        #: Operations from this boundary on take the careful path: all while faulty, else those that a hook waits for.
        self.careful_from = NO_BOUNDARY
        self._rearm()

    # ---- knobs

    @property
    def on_boundary(self) -> Hook | None:
        """The hook that sees every boundary before it takes effect, or those from `hook_from` on."""
        return self._on_boundary

    @on_boundary.setter
    def on_boundary(self, hook: Hook | None) -> None:
        self._on_boundary = hook
        self._hook_from = NO_BOUNDARY if hook is None else 0
        self._rearm()

    def hook_from(self, number: int) -> None:
        """Let the hook see nothing before boundary `number`, until the next call: it does not care."""
        self._hook_from = number
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
        self._capacity_bytes = _checked(capacity_bytes)
        self._rearm()

    @property
    def fired(self) -> Mapping[str, int]:
        """How often each fault and loss really happened."""
        return dict(self._injector.fired)

    def fail_next(self, kind: str, errno_: int, *, path: str | None = None, times: int = 1) -> None:
        """Let the next `times` operations of `kind` ("read" or a boundary's kind) fail with `errno_`.

        `path` narrows it to one file. `fired` tells afterwards whether it happened, e.g. `{"fsync-eio": 1}`.
        """
        self._injector.fail_next(kind, errno_, path=path, times=times)
        self._rearm()

    def strike_next(self, fault: str, *, path: str | None = None, times: int = 1) -> None:
        """Let a fault that is no error happen the next `times` that it can: "short-read", "bit-rot", "misdirected-write",
        "slow", "stuck", "lying-fsync", "lying-sync_dir". `path` narrows it to one file.
        """
        self._injector.strike_next(fault, path=path, times=times)
        self._rearm()

    def calm(self) -> None:
        """Misbehave no more: what was asked for is forgotten, nothing is drawn. A capacity stays."""
        self._injector.calm()
        self._rearm()

    @property
    def covers(self) -> Callable[[str], bool] | None:
        """Whether the file of this name is one of several copies, see `simkit.copies`."""
        return self._injector.covers

    @covers.setter
    def covers(self, covers: Callable[[str], bool] | None) -> None:
        self._injector.covers = covers

    @property
    def unsynced(self) -> bool:
        """Whether a power loss may leave anything else than what is visible now."""
        if self._names.pending or self._injector.fired:
            return True
        inodes = (node for node in self._names.visible.values() if isinstance(node, Inode))
        return any(len(node.log) > node.synced or not node.sound for node in inodes)

    def used_bytes(self) -> int:
        """Sum of the visible file sizes."""
        return sum(node.size for node in self._names.visible.values() if isinstance(node, Inode))

    # ---- for File (and not for programs)

    def enter(self, kind: str, path: str, owner: File | Owner | None = None, size: int = 0) -> int:
        """Count and note a boundary that is not a write, and return its number.

        Raises when the hook took the owner down or a fault is due.
        """
        self.boundaries = number = self.boundaries + 1
        self.told.append(("boundary", self.name, number, kind, path, 0, size))
        if number >= self.careful_from:
            self._enter_carefully(Boundary(number, kind, path, 0, size), owner)
        return number

    def read_carefully(self, file: File, size: int, offset: int) -> bytes | bytearray:
        """Carry out a read, with delay, errors, rot and shortness."""
        injector = self._injector
        self._take_time(file.path, file.owner)
        error = injector.error("read", file.path)
        if error is not None:
            raise error
        data = bytearray(file.inode.read(size, offset))
        if data and injector.strikes("bit-rot", file.path):
            at = offset + injector.pick("rot-at", file.path, len(data))
            if self.rot(file.inode, file.path, at, injector.pick("rot-bit", file.path, 8)):
                data = bytearray(file.inode.read(size, offset))
        if len(data) > 1 and injector.strikes("short-read", file.path):
            injector.count("short-read")
            del data[1 + injector.pick("short-at", file.path, len(data) - 1) :]
        return data

    def write_carefully(self, file: File, data: bytes, offset: int) -> int:
        """Count, note and carry out a write, with delay, tearing, capacity, errors and misdirection.

        Returns how many bytes were written: as from write(2), ENOSPC is raised only where none fits.
        """
        self.boundaries = number = self.boundaries + 1
        self.told.append(("boundary", self.name, number, "write", file.path, offset, len(data)))
        if number >= self._hook_from:
            tear = self._ask(Boundary(number, "write", file.path, offset, len(data)))
            if tear is not None:
                if tear.keep_bytes > 0:
                    file.inode.write(data[: tear.keep_bytes], offset, number)
                self._injector.count("torn-by-hook")
                self._go_down(file.path, "write", tear)
            gate(file)
        if self.faulty:
            return self._write_faultily(file, data, offset, number)
        file.inode.write(data, offset, number)
        return len(data)

    def fsync(self, file: File) -> None:
        """Carry out an fsync."""
        try:
            self.enter("fsync", file.path, file)
        except OSError:
            file.inode.drop_dirty()
            file.failures_told = file.inode.failures
            raise
        if self.faulty and self._lies("fsync", file.path):
            return
        inode = file.inode
        inode.sync()
        if self.entry_durable_on_fsync:
            self._names.sync(lambda change: change.links(inode))
        if file.failures_told != inode.failures:  # another open file met the error: this one is told as well, once
            file.failures_told = inode.failures
            raise OSError(errno.EIO, os.strerror(errno.EIO), file.path)

    def rot(self, inode: Inode, path: str, at: int, bit: int) -> bool:
        """Turn a bit over for good; False when the file is to be spared, or has nothing there."""
        if not inode.stores(at) or not self._damages("bit-rot", path):
            return False
        inode.rot(at, 1 << bit)
        return True

    # ---- inside

    def _enter_carefully(self, boundary: Boundary, owner: File | Owner | None) -> None:
        if boundary.number >= self._hook_from:
            tear = self._ask(boundary)
            if tear is not None:  # there is nothing to tear: it strikes before
                self._go_down(boundary.path, boundary.kind, tear)
            gate(owner)
        if self.faulty:
            self._take_time(boundary.path, owner.owner if isinstance(owner, File) else owner)
            error = self._injector.error(boundary.kind, boundary.path)
            if error is not None:
                raise error

    def _write_faultily(self, file: File, data: bytes, offset: int, number: int) -> int:
        self._take_time(file.path, file.owner)
        error = self._injector.error("write", file.path)
        if error is not None:
            raise error
        room = self._room(file, data, offset)
        strays = self._injector.strikes("misdirected-write", file.path, lambda: room > 0 and bool(self._victims()))
        if not (strays and self._misdirect(file, data[:room], offset, number)) and room:
            file.inode.write(data[:room], offset, number)
        if room < len(data):
            self._injector.count("full")
            if not room:
                raise full(file.path)
        return room

    def _rearm(self) -> None:
        injector = self._injector
        set_up = self._capacity_bytes is not None or injector.faults != NO_FAULTS
        self.faulty = set_up or injector.open or injector.waiting > 0
        self.careful_from = 0 if self.faulty else self._hook_from

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

    def _go_down(self, path: str, kind: str, tear: Tear) -> NoReturn:
        tear.then()
        raise ProcessDead(f"whoever was at {kind} of {path} went down in the middle")

    def _take_time(self, path: str, owner: Owner | None) -> None:
        injector = self._injector
        for fault, ns in (("stuck", injector.faults.stuck_ns), ("slow", injector.faults.slow_ns)):
            if injector.strikes(fault, path):
                injector.count(fault)
                self.delayed_ns += ns
                if self.on_delay is not None:
                    self.on_delay(owner, ns)
                return

    def _room(self, file: File, data: bytes, offset: int) -> int:
        """How many of the bytes fit on the disk."""
        grown = offset + len(data) - file.inode.size
        if self._capacity_bytes is None or grown <= 0:
            return len(data)
        missing = self.used_bytes() + grown - self._capacity_bytes
        return max(0, len(data) - max(0, missing))

    def _misdirect(self, file: File, data: bytes, offset: int, number: int) -> bool:
        """Let a write land in other sectors, of this file or another; False when there are none, or they are spared."""
        found = self._victims()
        if not found or not data:
            return False
        path, victim = found[self._injector.pick("misdirected-to", file.path, len(found))]
        sectors = -(-victim.size // SECTOR_BYTES)
        landing = self._injector.pick("misdirected-at", file.path, sectors) * SECTOR_BYTES
        if victim is file.inode and landing <= offset < landing + SECTOR_BYTES:
            landing += SECTOR_BYTES
        if path != file.path and self.spares is not None and self.spares(path):
            self._injector.count("spared-misdirected-write")
            return False
        if not self._damages("misdirected-write", file.path):
            return False
        file.inode.stray(data, offset, victim, landing, number)
        return True

    def _victims(self) -> list[tuple[str, Inode]]:
        """The files in which a write can land that goes astray."""
        visible = sorted(self._names.visible.items(), key=_path)
        found = [(path, node) for path, node in visible if isinstance(node, Inode) and node.size > 0]
        if self._injector.open and self.covers is not None:
            found = [(path, node) for path, node in found if self.covers(path)]
        return found

    def _lies(self, kind: str, path: str) -> bool:
        """Return whether this fsync or directory sync only pretends."""
        return self._injector.strikes(f"lying-{kind}", path) and self._damages(f"lying-{kind}", path)

    def _damages(self, fault: str, path: str) -> bool:
        """Count a fault that damages `path`, unless it is to be spared."""
        spared = self.spares is not None and self.spares(path)
        self._injector.count(f"spared-{fault}" if spared else fault)
        return not spared


def _path(entry: tuple[str, object]) -> str:
    return entry[0]


def _checked(capacity_bytes: int | None) -> int | None:
    if capacity_bytes is not None:
        need_whole("Disk.capacity_bytes", capacity_bytes, 0)
    return capacity_bytes

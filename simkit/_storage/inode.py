"""One file's bytes, twice: what running processes see (`cache`) and what a power loss leaves (`durable`).

Changes since the last fsync wait in `pending`. A power loss settles each of them on its own: kept, lost, torn at a
sector bound, or *hollow* (the file grew, its new bytes did not arrive). That is what POSIX allows for data that no
fsync covers: writes may reach the platter in any order and in part.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Protocol

import attrs

#: The unit a real disk writes whole or not at all.
SECTOR_BYTES = 512


class Choices(Protocol):
    """The part of a tape stream that the disk draws from."""

    def choose(self, site_key: str, n: int, weights: tuple[int, ...] | None = None, /) -> int:
        """Return an index below `n`; 0 is the default, "nothing special"."""
        ...

    def chance(self, key: str, num: int, den: int, /) -> bool:
        """Return True in `num` of `den` cases; False is the default."""
        ...


class Fate(enum.IntEnum):
    """What became of one unsynced change when the power went; the order is the tape's, 0 the harmless one."""

    KEPT = 0
    LOST = 1
    TORN = 2
    HOLLOW = 3


#: How often each `Fate` is drawn for a write that can meet all of them.
FATE_WEIGHTS = (4, 3, 2, 1)


@attrs.frozen
class Write:
    """`data` put at `offset`."""

    offset: int
    data: bytes

    @property
    def end(self) -> int:
        """Offset of the first byte after the write."""
        return self.offset + len(self.data)


@attrs.frozen
class Truncate:
    """The file cut (or grown with zeros) to `size` bytes."""

    size: int


Change = Write | Truncate


def put(image: bytearray, data: bytes, offset: int) -> None:
    """Write `data` into `image` at `offset`; a gap before it reads as zeros."""
    size = len(image)
    if offset > size:
        image.extend(bytes(offset - size))
    image[offset : offset + len(data)] = data


def resize(image: bytearray, size: int) -> None:
    """Cut `image` to `size` bytes, or grow it with zeros."""
    if size < len(image):
        del image[size:]
    else:
        image.extend(bytes(size - len(image)))


def sector_cuts(write: Write) -> list[int]:
    """Offsets at which `write` can tear: the sector bounds strictly inside it."""
    first = (write.offset // SECTOR_BYTES + 1) * SECTOR_BYTES
    return list(range(first, write.end, SECTOR_BYTES))


def torn(write: Write, choice: int) -> Write:
    """Return the part of `write` that arrived: `choice` picks a cut and which side of it survived."""
    cuts = sector_cuts(write)
    cut = cuts[choice // 2] - write.offset
    if choice % 2 == 0:
        return Write(write.offset, write.data[:cut])
    return Write(write.offset + cut, write.data[cut:])


class Inode:
    """A file without a name. The disk's directory entries give it one, or several after a crash, or none."""

    __slots__ = ("cache", "durable", "locks", "pending")

    def __init__(self) -> None:
        self.cache = bytearray()
        self.durable = bytearray()
        self.pending: list[Change] = []
        #: Advisory locks on this file; made by whoever locks it first, gone with the power.
        self.locks: object = None

    def write(self, data: bytes, offset: int) -> None:
        """Change the page cache; durable only by `sync`, or by luck."""
        put(self.cache, data, offset)
        self.pending.append(Write(offset, data))

    def truncate(self, size: int) -> None:
        """Set the size in the page cache."""
        resize(self.cache, size)
        self.pending.append(Truncate(size))

    def sync(self) -> None:
        """Make every pending change durable: data and size."""
        for change in self.pending:
            _apply(self.durable, change)
        self.pending.clear()

    def drop_dirty(self) -> None:
        """Forget what is pending while the cache still shows it: what Linux does when a write-back fails.

        Source: "fsyncgate", PostgreSQL 2018; the pages are marked clean and a later fsync reports success.
        """
        self.pending.clear()

    def lose_power(self, path: str, mode: str, stream: Choices, count: Callable[[str], None]) -> None:
        """Settle every pending change, then let the cache be what survived. `count` is told each loss."""
        for change in self.pending:
            fate = _fate(path, change, mode, stream)
            if fate is not Fate.KEPT:
                count(f"{fate.name.lower()}-{type(change).__name__.lower()}")
            _settle(self.durable, change, fate, path, stream)
        self.pending.clear()
        self.cache = bytearray(self.durable)
        self.locks = None


def _apply(image: bytearray, change: Change) -> None:
    if isinstance(change, Write):
        put(image, change.data, change.offset)
    else:
        resize(image, change.size)


def _fate(path: str, change: Change, mode: str, stream: Choices) -> Fate:
    if mode != "sample":
        return Fate.KEPT if mode == "keep" else Fate.LOST
    if isinstance(change, Truncate):
        return Fate(stream.choose(f"truncate:{path}", 2, (1, 1)))
    fate = Fate(stream.choose(f"write:{path}", len(Fate), FATE_WEIGHTS))
    if fate is Fate.TORN and not sector_cuts(change):
        return Fate.LOST  # fits in one sector: whole or not at all
    return fate


def _settle(image: bytearray, change: Change, fate: Fate, path: str, stream: Choices) -> None:
    if fate is Fate.KEPT:
        _apply(image, change)
    elif fate is Fate.TORN and isinstance(change, Write):
        choice = stream.choose(f"tear:{path}", 2 * len(sector_cuts(change)))
        _apply(image, torn(change, choice))
    elif fate is Fate.HOLLOW and isinstance(change, Write) and change.end > len(image):
        resize(image, change.end)

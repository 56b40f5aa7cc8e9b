"""One file's bytes, twice: what running processes see (`cache`) and what a power loss leaves (`durable`).

Changes since the last fsync wait in `pending`. A power loss settles each of them on its own: kept, lost, torn at a
sector bound, or *hollow* (the file grew, its new bytes did not arrive). That is what POSIX allows for data that no
fsync covers: writes may reach the platter in any order and in part. A `Stray` is a write that will land elsewhere.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import NamedTuple, Protocol

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


class Write(NamedTuple):  # not attrs: one is made for every write, and a tuple is made three times as fast
    """`data` put at `offset`, as boundary `number` of the disk."""

    offset: int
    data: bytes
    number: int = 0

    @property
    def end(self) -> int:
        """Offset of the first byte after the write."""
        return self.offset + len(self.data)


class Truncate(NamedTuple):
    """The file cut (or grown with zeros) to `size` bytes."""

    size: int
    number: int = 0


class Stray(NamedTuple):
    """`data` meant for `offset`, on its way to `landing` in another file or another place of the same."""

    offset: int
    data: bytes
    victim: Inode
    landing: int
    number: int = 0


Change = Write | Truncate | Stray
#: What becomes of one change: its fate, and for a torn write which tear.
Settled = tuple[Fate, int]


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


def options(change: Change) -> list[Settled]:
    """Everything that can become of `change`, the harmless first."""
    plain: list[Settled] = [(Fate.KEPT, 0), (Fate.LOST, 0)]
    if not isinstance(change, Write):
        return plain
    tears: list[Settled] = [(Fate.TORN, choice) for choice in range(2 * len(sector_cuts(change)))]
    return [*plain, (Fate.HOLLOW, 0), *tears]


def settle(image: bytearray, change: Change, settled: Settled) -> None:
    """Carry out on `image` what became of `change`; a kept stray changes another file's image, or this one elsewhere."""
    fate, choice = settled
    if isinstance(change, Stray):
        if fate is Fate.KEPT:
            put(change.victim.durable, change.data, change.landing)
    elif fate is Fate.KEPT:
        _apply(image, change)
    elif fate is Fate.TORN and isinstance(change, Write):
        _apply(image, torn(change, choice))
    elif fate is Fate.HOLLOW and isinstance(change, Write) and change.end > len(image):
        resize(image, change.end)


class Inode:
    """A file without a name. The disk's directory entries give it one, or several after a crash, or none."""

    __slots__ = ("cache", "durable", "failures", "locks", "pending")

    def __init__(self) -> None:
        self.cache = bytearray()
        self.durable = bytearray()
        self.pending: list[Change] = []
        #: How often its dirty pages were lost by a failed fsync; each open file tells its holder once.
        self.failures = 0
        #: Advisory locks on this file; made by whoever locks it first, gone with the power.
        self.locks: object = None

    def write(self, data: bytes, offset: int, number: int = 0) -> None:
        """Change the page cache; durable only by `sync`, or by luck."""
        put(self.cache, data, offset)
        self.pending.append(Write(offset, data, number))

    def stray(self, data: bytes, offset: int, victim: Inode, landing: int, number: int) -> None:
        """Change the page cache as `write` does, but let the disk put it elsewhere."""
        put(self.cache, data, offset)
        self.pending.append(Stray(offset, data, victim, landing, number))

    def truncate(self, size: int, number: int = 0) -> None:
        """Set the size in the page cache."""
        resize(self.cache, size)
        self.pending.append(Truncate(size, number))

    def sync(self) -> None:
        """Make every pending change durable: data and size."""
        for change in self.pending:
            settle(self.durable, change, (Fate.KEPT, 0))
        self.pending.clear()

    def drop_dirty(self) -> None:
        """Forget what data is pending while the cache still shows it: what Linux does when a write-back fails.

        Source: "fsyncgate", PostgreSQL 2018; the pages are marked clean and a later fsync reports success. A change of
        size is metadata and stays.
        """
        self.pending = [change for change in self.pending if isinstance(change, Truncate)]
        self.failures += 1

    def drop_cache(self) -> None:
        """Read anew what is clean: what the disk really holds shows, under what is still dirty. The size stays."""
        size = len(self.cache)
        self.cache = bytearray(self.durable)
        for change in self.pending:
            if isinstance(change, Truncate):
                resize(self.cache, change.size)
            else:
                put(self.cache, change.data, change.offset)
        resize(self.cache, size)

    def lose_power(self, path: str, fate: Callable[[str, Change], Settled], count: Callable[[str], None]) -> None:
        """Settle every pending change. `count` is told each loss."""
        lost = False
        for change in self.pending:
            settled = fate(path, change)
            if settled[0] is not Fate.KEPT:
                count(f"{settled[0].name.lower()}-{type(change).__name__.lower()}")
                lost = True
            elif lost:
                count("reordered-write")
            settle(self.durable, change, settled)
        self.pending.clear()

    def restart(self) -> None:
        """The machine is up again: the cache is what the disk holds, and nobody holds a lock."""
        self.cache = bytearray(self.durable)
        self.locks = None


def _apply(image: bytearray, change: Write | Truncate) -> None:
    if isinstance(change, Write):
        put(image, change.data, change.offset)
    else:
        resize(image, change.size)


def drawn_fate(stream: Choices, path: str, change: Change) -> Settled:
    """Draw what becomes of a change."""
    if not isinstance(change, Write):
        return Fate(stream.choose(f"{type(change).__name__.lower()}:{path}", 2, (1, 1))), 0
    fate = Fate(stream.choose(f"write:{path}", len(Fate), FATE_WEIGHTS))
    if fate is not Fate.TORN:
        return fate, 0
    cuts = sector_cuts(change)
    if not cuts:
        return Fate.LOST, 0  # fits in one sector: whole or not at all
    return fate, stream.choose(f"tear:{path}", 2 * len(cuts))

"""One file's bytes, twice: what running processes see (`cache`) and what a power loss leaves (`durable`).

Changes since the last fsync wait in `pending`. A power loss settles each of them on its own: kept, lost, torn at a
sector bound, or *hollow* (the file grew, its new bytes did not arrive). That is what POSIX allows for data that no
fsync covers: writes may reach the platter in any order and in part. A `Stray` is a write that will land elsewhere.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

if TYPE_CHECKING:
    from simkit._storage.locks import Locks

#: The unit a real disk writes whole or not at all.
SECTOR_BYTES = 512

#: A file's durable image is brought up to date once so many durable changes wait for it.
LOG_MAX = 64

#: So many of the last writes to a file are looked at for what is read, before its image is brought up to date.
RECENT = 8


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


class Write(NamedTuple):
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
#: A `Write` that nobody has looked at: offset, data, number. A named tuple takes four times as long to make.
BareWrite = tuple[int, bytes, int]
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
            change.victim.strike(change.data, change.landing)
    elif fate is Fate.KEPT:
        _apply(image, change)
    elif fate is Fate.TORN and isinstance(change, Write):
        _apply(image, torn(change, choice))
    elif fate is Fate.HOLLOW and isinstance(change, Write) and change.end > len(image):
        resize(image, change.end)


class Inode:
    """A file without a name. The disk's directory entries give it one, or several after a crash, or none.

    All that happens to it at once is that a change is put on `log`. The two images are brought up to date when somebody
    looks at them: a journal that is written, synced and unlinked never has any.
    """

    __slots__ = (
        "_applied",
        "_base",
        "_cache",
        "_worded",
        "failures",
        "locks",
        "log",
        "number",
        "size",
        "sound",
        "synced",
    )

    def __init__(self, data: bytes = b"") -> None:
        #: Changes that the durable image does not show yet; a write is a bare tuple until `pending` is asked for, as one is
        #: made at every write. The first `synced` of them are durable all the same.
        self.log: list[Change | BareWrite] = []
        self.synced = 0
        #: The visible size.
        self.size = len(data)
        #: Whether an fsync is no more than a mark on the log: no write landed elsewhere, no fsync ever failed.
        self.sound = True
        #: How often its dirty pages were lost by a failed fsync; each open file tells its holder once.
        self.failures = 0
        #: What `stat` calls it by; 0 until somebody asks.
        self.number = 0
        #: Advisory locks on this file; made by whoever locks it first, gone with the power.
        self.locks: Locks | None = None
        self._base = bytearray(data)
        self._cache: bytearray | None = None  # None: what is durable, and the log on top of it
        self._applied = 0  # how much of the log the cache shows
        self._worded = 0  # how much of the log is free of bare tuples

    # ---- the images

    @property
    def cache(self) -> bytearray:
        """What running processes see."""
        cache, log = self._cache, self.log
        if cache is None:
            cache = self._cache = bytearray(self._base)
            self._applied = 0
        if self._applied < len(log):
            _carry_out(cache, log[self._applied :])
            self._applied = len(log)
        return cache

    @property
    def durable(self) -> bytearray:
        """What a power loss leaves for certain."""
        self._compact()
        return self._base

    @property
    def pending(self) -> list[Change]:
        """The changes that no fsync covers, oldest first."""
        log = self.log
        for index in range(max(self._worded, self.synced), len(log)):
            if type(log[index]) is tuple:
                log[index] = Write(*log[index])
        self._worded = len(log)
        return cast("list[Change]", log[self.synced :])

    def read(self, size: int, offset: int) -> bytes | bytearray:
        """Up to `size` visible bytes at `offset`; without an image where that can be."""
        end = offset + size
        if offset >= self.size:
            return b""  # SQLite asks a journal for what comes behind its end
        cache, log = self._cache, self.log
        if cache is None or self._applied != len(log):
            for change in log[: -1 - RECENT : -1]:  # and a database for the page it wrote last
                if isinstance(change, Truncate):
                    break
                at, data = change[0], change[1]
                if at <= offset and end <= at + len(data):
                    return data[offset - at : end - at]
                if at < end and offset < at + len(data):
                    break
            cache = self.cache
        return cache[offset:end]

    # ---- changes

    def write(self, data: bytes, offset: int, number: int = 0) -> None:
        """Change the page cache; durable only by `sync`, or by luck. `File.write` does the same, in a hurry."""
        self.log.append((offset, data, number))
        self.size = max(self.size, offset + len(data))

    def stray(self, data: bytes, offset: int, victim: Inode, landing: int, number: int) -> None:
        """Change the page cache as `write` does, but let the disk put it elsewhere."""
        self.log.append(Stray(offset, data, victim, landing, number))
        self.size = max(self.size, offset + len(data))
        self.sound = False

    def truncate(self, size: int, number: int = 0) -> None:
        """Set the size in the page cache."""
        self.log.append(Truncate(size, number))
        self.size = size

    def sync(self) -> None:
        """Make every pending change durable: data and size."""
        if not self.sound:
            _ = self.cache  # it alone shows what the stray ones meant
            self._settle(lambda _: (Fate.KEPT, 0))
        self.synced = len(self.log)
        if self.synced > LOG_MAX:
            self._compact()

    def drop_dirty(self) -> None:
        """Forget what data is pending while the cache still shows it: what Linux does when a write-back fails.

        Source: "fsyncgate", PostgreSQL 2018; the pages are marked clean and a later fsync reports success. A change of
        size is metadata and stays.
        """
        _ = self.cache
        left: list[Change] = [change for change in self.pending if isinstance(change, Truncate)]
        self._compact()
        self._relog(left)
        self.failures += 1
        self.sound = False

    def drop_cache(self) -> None:
        """Read anew what is clean: what the disk really holds shows, under what is still dirty. The size stays."""
        self._compact()
        self._cache = None
        resize(self.cache, self.size)

    def stores(self, at: int) -> bool:
        """Whether byte `at` is on the disk or on its way there; what nobody wrote, or what was cut off since, has no bits."""
        stored = at < len(self.durable)
        for change in self.log:
            if type(change) is Truncate:
                stored = stored and at < change.size
            else:
                stored = stored or _covers(change, at)
        return stored

    def rot(self, at: int, mask: int) -> None:
        """Turn bits of a byte over for good: on the disk, in the cache, and in what is on its way from here to there."""
        cache, durable = self.cache, self.durable
        for image in (cache, durable):
            if at < len(image):
                image[at] ^= mask
        for index, change in enumerate(self.log):
            if _covers(change, at):
                offset, data = change[0], bytearray(cast("bytes", change[1]))
                data[at - offset] ^= mask
                whole = cast("Change", Write(*change) if type(change) is tuple else change)
                self.log[index] = cast("Write", whole)._replace(data=bytes(data))

    def strike(self, data: bytes, offset: int) -> None:
        """Somebody else's write landed here: the disk holds it, the cache does not know."""
        _ = self.cache
        put(self.durable, data, offset)

    # ---- power

    def lose_power(self, path: str, fate: Callable[[str, Change], Settled], count: Callable[[str], None]) -> None:
        """Settle every pending change. `count` is told each loss."""
        lost = False

        def verdict(change: Change) -> Settled:
            nonlocal lost
            settled = fate(path, change)
            if settled[0] is not Fate.KEPT:
                count(f"{settled[0].name.lower()}-{type(change).__name__.lower()}")
                lost = True
            elif lost:
                count("reordered-write")
            return settled

        self._settle(verdict)

    def restart(self) -> None:
        """The machine is up again: the cache is what the disk holds, and nobody holds a lock."""
        self._compact()
        self._cache = None
        self.size = len(self._base)
        self.sound = True
        self.locks = None

    # ---- inside

    def _settle(self, verdict: Callable[[Change], Settled]) -> None:
        """Decide every pending change for good."""
        pending = self.pending
        durable = self.durable
        for change in pending:
            settle(durable, change, verdict(change))
        self._relog([])

    def _compact(self) -> None:
        """Let the durable image show what is durable, and take that off the log."""
        synced, log = self.synced, self.log
        if not synced:
            return
        if self._cache is not None:
            _ = self.cache
            self._applied -= synced
        _carry_out(self._base, log[:synced] if synced < len(log) else log)
        del log[:synced]
        self.synced = 0
        self._worded = max(0, self._worded - synced)

    def _relog(self, changes: list[Change]) -> None:
        """Nothing but `changes` is pending; the cache, if there is one, shows them."""
        self.log[:] = changes
        self.synced = 0
        self._applied = self._worded = len(changes)


def _carry_out(image: bytearray, changes: Sequence[Change | BareWrite]) -> None:
    """Let `image` show all of `changes`, as if nothing had gone wrong."""
    size = len(image)
    for change in changes:
        if type(change) is Truncate:  # no call: hot
            resize(image, change.size)
            size = change.size
            continue
        offset: int = change[0]
        data: bytes = change[1]  # type: ignore[assignment]  # it is no truncation
        end = offset + len(data)
        if offset > size:
            image.extend(bytes(offset - size))
        image[offset:end] = data
        if end > size:  # noqa: PLR1730  # no call: hot
            size = end


def _covers(change: Change | BareWrite, at: int) -> bool:
    """Whether a change says what byte `at` is."""
    return type(change) is not Truncate and change[0] <= at < change[0] + len(cast("bytes", change[1]))


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

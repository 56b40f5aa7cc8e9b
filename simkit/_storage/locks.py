"""SQLite's five lock levels on one file, between connections of any process of the host.

Source: "File Locking And Concurrency In SQLite Version 3", and `unixLock` in `os_unix.c`, whose outcomes these are.
"""

from __future__ import annotations

import enum
import functools

from simkit._storage.handle import File


class Level(enum.IntEnum):
    """How strongly a connection holds a file."""

    NONE = 0
    SHARED = 1  # may read
    RESERVED = 2  # intends to write, readers come and go
    PENDING = 3  # waits for the readers to leave, no new ones
    EXCLUSIVE = 4  # alone


class Locks:
    """Who holds one file at which level; handles come out in the order they came in."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: dict[int, int] = {}

    def acquire(self, number: int, level: int) -> bool:
        """Raise handle `number` to `level`; False when others are in the way (it may be left at PENDING)."""
        held = self._held
        mine = held.get(number, 0)
        if mine >= level:
            return True
        if not held or (mine and len(held) == 1):  # alone, as mostly
            held[number] = level
            return True
        others = max(found for other, found in held.items() if other != number)
        if level == Level.SHARED:
            if others >= Level.PENDING:
                return False
        elif others >= Level.RESERVED:
            return False
        elif level == Level.EXCLUSIVE and others >= Level.SHARED:
            held[number] = Level.PENDING
            return False
        held[number] = level
        return True

    def release(self, number: int, level: int) -> None:
        """Lower handle `number` to `level`."""
        if level == Level.NONE:
            self._held.pop(number, None)
        elif self._held.get(number, 0) > level:
            self._held[number] = level

    def reserved(self) -> bool:
        """Return whether anyone intends to write."""
        return any(level >= Level.RESERVED for level in self._held.values())


def locks_of(file: File) -> Locks:
    """Return the lock table of the file behind a living handle; the handle's locks go when it goes."""
    table = file.inode.locks
    if table is None or file.on_release is None:
        if table is None:
            table = file.inode.locks = Locks()
        file.on_release = functools.partial(table.release, file.number, Level.NONE)
    return table

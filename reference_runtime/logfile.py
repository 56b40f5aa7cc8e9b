"""The log's file: what a commit writes goes out in one piece, into room that is there already.

SQLite writes a commit page by page, each in two pieces, at the end of a file that grows. What that costs is not the bytes:

- pieces that follow one another are kept until the commit is synced, or until something reads, and are written as one;
- room is made ahead, in steps that double: a sync of bytes that lie within the file is a write of these bytes, and one of a
  file that has grown is a transaction of the file system as well, which takes ten times as long.

Nothing is acknowledged before the sync has returned, so nothing that was kept here can have been promised. What lies in the
room behind the last frame is zero, or left from an earlier round: SQLite stops at the first frame that is not of this log.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import apsw

#: The first room that is made; as long as the log grows, it is doubled.
ROOM_BYTES_MIN = 64 * 1024
#: The most room that is made at a time.
ROOM_BYTES_MOST = 4 * 1024 * 1024
#: SQLite's own files take no more than this at once.
PIECE_BYTES = 64 * 1024
_ZEROS = bytes(PIECE_BYTES)


class LogFile(apsw.VFSFile):
    """A write-ahead log over the file system layer `base`."""

    def __init__(self, base: str, name: Any, flags: list[int]) -> None:
        super().__init__(base, name, flags)
        self._held: list[bytes] = []  # written by SQLite and not yet to the file: one piece, from `_from` to `_to`
        self._from = self._to = 0
        self._size = super().xFileSize()

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - the interface of a VFS file
        if offset != self._to or not self._held:
            self._write_held()
            self._from = offset
        self._held.append(data)
        self._to = offset + len(data)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802 - the interface of a VFS file
        self._write_held()
        return super().xRead(amount, offset)

    def xFileSize(self) -> int:  # noqa: N802 - the interface of a VFS file
        self._write_held()
        return super().xFileSize()

    def xTruncate(self, newsize: int) -> None:  # noqa: N802 - the interface of a VFS file
        self._write_held()
        super().xTruncate(newsize)
        self._size = newsize

    def xSync(self, flags: int) -> None:  # noqa: N802 - the interface of a VFS file
        self._write_held()
        super().xSync(flags)

    def xClose(self) -> None:  # noqa: N802 - the interface of a VFS file
        try:
            self._write_held()
        finally:
            super().xClose()

    def _write_held(self) -> None:
        if not self._held:
            return
        data, self._held = b"".join(self._held), []
        for start in range(0, len(data), PIECE_BYTES):
            super().xWrite(data[start : start + PIECE_BYTES], self._from + start)
        if self._to > self._size:
            self._size = self._to
            self._make_room()

    def _make_room(self) -> None:
        """Write zeros behind the end, so that the next commits do not change the file's size; a full disk has none to give."""
        end = self._size + max(ROOM_BYTES_MIN, min(self._size, ROOM_BYTES_MOST))
        with suppress(apsw.FullError):
            while self._size < end:
                super().xWrite(_ZEROS, self._size)
                self._size += len(_ZEROS)

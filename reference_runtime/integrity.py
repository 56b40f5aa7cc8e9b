"""The integrity of the store's file: every page and the end of the log are checked, so that what is damaged is never served.

SQLite believes what it reads: a bit that turned over in a page is handed out as data, and one that turned over in the log ends
the log there, which silently takes back what was committed after it. So a store is opened over a file system layer of its own:

- each page of the file ends in a checksum of the page and its place, written with it and verified whenever it is read (as
  SQLite's own `cksumvfs` does); a page nobody reads costs nothing, so opening a large store stays cheap;
- after each sync of a commit, the log's salts and its number of frames are put into the *mark*, a small file of its own. At
  opening the log must reach at least as far. The mark is not synced: it may fall back after a power loss, never run ahead, so
  it accuses nobody wrongly; a mark that is itself damaged says nothing;
- the first page says which log belongs to the file (`binding`): without it, or with another one, the file is not the whole.

The frames of the log need no more: SQLite verifies their own checksums when it opens it.
"""

from __future__ import annotations

import os
import struct
import zlib
from operator import eq
from pathlib import Path
from typing import Any
from urllib.parse import quote

import apsw

from reference_runtime.binding import (
    FREE,
    RESERVED_AT,
    RESERVED_BYTES,
    bind,
    bound_to,
    is_binding,
    log_name,
    read_binding,
)
from reference_runtime.logfile import LogFile

_DATABASE = b"SQLite format 3\0"
_PAGE_BYTES = 4096  # of every store: SQLite's own default
_PAGE_BYTES_MIN = 512
_LOG_HEADER = struct.Struct(">8I")  # magic, format, page size, checkpoints, two salts, two checksums
_FRAME_HEADER = struct.Struct(">6I")  # page, size after a commit or 0, two salts, two checksums
_MARK = struct.Struct(">4I")  # two salts, frames, checksum
_MAGIC = 0x377F0682  # its last bit tells the byte order of the checksums
_LOOK_FLAGS = apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READWRITE
_MARK_FLAGS = apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_READWRITE


def checked_vfs() -> str:
    """The name of the checking layer over SQLite's present default; registered on first use, and for good."""
    base = apsw.vfs_names()[0]
    if base not in _LAYERS:
        _LAYERS[base] = _Checked(base)
    return _LAYERS[base].name


def log_damage(path: str, frames: int) -> str | None:
    """What is wrong with the log of the store at `path`, of which SQLite accepts `frames`; None when nothing is."""
    log, mark = Path(f"{path}-wal"), Path(f"{path}-mark")
    header, bound = _head(log, _LOG_HEADER.size), bound_to(apsw.vfs_names()[0], path)
    if len(header) < _LOG_HEADER.size or not any(header):  # nothing was ever committed to it, or it is lost
        return (
            None if bound == FREE else f"{log} is gone or empty, and only there was what was committed last to {path}"
        )
    salts = _salts(header)
    if salts is None:
        return f"the head of {log} does not match its checksum"
    if bound not in (FREE, log_name(salts)):
        return f"{log} is not the log that belongs to {path}, but one of another time or another store"
    known = read_mark(_head(mark, _MARK.size))
    if known is not None and known[0] == salts and frames < known[1]:
        return f"{log} is whole up to frame {frames} only, and {known[1]} were committed"
    return None


def foreign(path: str, ours: frozenset[str]) -> str | None:
    """What the file at `path` is instead of a store, in which there would be `ours`; None where it is one, was one before it
    was damaged, or has nothing in it. Changes no byte of it. Raises apsw.Error where it cannot be read.
    """
    path = os.path.realpath(path) if Path(path).is_symlink() else path
    if not Path(path).is_file():
        return "is no file" if Path(path).exists() and not Path(path).is_dir() else None
    file = apsw.VFSFile(apsw.vfs_names()[0], path, [_LOOK_FLAGS, 0])  # not by `open`, as in `bound_to`
    try:
        head, second = file.xRead(RESERVED_AT + 1, 0), file.xRead(_PAGE_BYTES, _PAGE_BYTES)
    finally:
        file.xClose()
    if not head or (head.startswith(_DATABASE) and head[RESERVED_AT:] == bytes([RESERVED_BYTES])):
        return None
    if not any(head) and Path(f"{path}-journal").is_file():
        return None  # nothing yet: the power failed as it was being made, and its journal undoes that
    if not head.startswith(_DATABASE):
        is_damaged = (
            sum(map(eq, head, _DATABASE)) > len(_DATABASE) // 2 or _checksum(second, _PAGE_BYTES) == second[-4:]
        )
        is_left = is_damaged or is_log_left(path) or _head(Path(f"{path}-mark"), 1)
        return None if is_left else "is no database"
    found = _names(path)
    is_ours = len(found & ours) > len(ours) // 2  # a store that lacks some of them is a damaged one
    return None if is_ours or not found else f"is another database, with {', '.join(sorted(found)):.80} in it"


def _names(path: str) -> set[str]:
    """What a database has, its log included: read without a checkpoint, a file of shared memory, or a journal rolled back."""
    if Path(f"{path}-journal").exists():
        uri = f"file:{quote(path)}?immutable=1"
        db = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    else:
        db = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        db.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
        return {str(name) for (name,) in db.execute("SELECT name FROM sqlite_schema")}
    finally:
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        db.close()


def is_log_left(path: str) -> bool:
    """Whether the log beside `path` holds any frame. SQLite throws a log away whose file is empty."""
    return any(_head(Path(f"{path}-wal"), _LOG_HEADER.size + _FRAME_HEADER.size)[_LOG_HEADER.size :])


def read_mark(data: bytes) -> tuple[tuple[int, int], int] | None:
    """The salts and the number of frames that a mark tells; None for none, or one that is damaged."""
    if len(data) != _MARK.size or zlib.crc32(data[:-4]) != int.from_bytes(data[-4:]):
        return None
    one, other, frames, _ = _MARK.unpack(data)
    return (one, other), frames


def _head(path: Path, size: int) -> bytes:
    if not path.is_file():
        return b""
    with path.open("rb") as file:
        return file.read(size)


def _salts(header: bytes) -> tuple[int, int] | None:
    """The salts of a log, from its header; None when that does not match its checksum."""
    magic, _, _, _, one, other, *checksums = _LOG_HEADER.unpack(header)
    order = ">" if magic & 1 else "<"
    first = second = 0
    for left, right in struct.iter_unpack(f"{order}2I", header[:24]):
        first = (first + left + second) & 0xFFFFFFFF
        second = (second + right + first) & 0xFFFFFFFF
    return (one, other) if magic | 1 == _MAGIC | 1 and [first, second] == checksums else None


class _Checked(apsw.VFS):
    """Opens databases and their logs as files that check themselves; everything else is the layer's below."""

    def __init__(self, base: str) -> None:
        self.base, self.name = base, f"{base}-checked"
        super().__init__(self.name, base)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - the interface of a VFS
        if flags[0] & apsw.SQLITE_OPEN_MAIN_DB:
            return _Pages(self.base, name, flags)
        if flags[0] & apsw.SQLITE_OPEN_WAL:
            return _Log(self.base, name, flags)
        return super().xOpen(name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802 - the interface of a VFS
        if filename.endswith("-wal"):
            bind(self.base, filename.removesuffix("-wal"), FREE)
        super().xDelete(filename, syncdir)


_LAYERS: dict[str, _Checked] = {}


class _Pages(apsw.VFSFile):
    """The store's file: stamps pages as they are written and verifies them as they are read."""

    def __init__(self, base: str, name: Any, flags: list[int]) -> None:
        super().__init__(base, name, flags)
        self._path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self._has_checksums = True

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802 - the interface of a VFS file
        data = super().xRead(amount, offset)
        if offset == 0:
            self._look(data)
        if amount >= _PAGE_BYTES_MIN and self._has_checksums and _checksum(data, offset) != data[-4:]:
            raise apsw.CorruptError(self._damaged(offset // amount + 1, "does not match its checksum"))
        if offset == 0 and amount >= _PAGE_BYTES_MIN and not is_binding(read_binding(super().xRead)):
            raise apsw.CorruptError(self._damaged(1, "does not tell which log belongs to it"))
        return data

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - the interface of a VFS file
        if offset == 0:
            self._look(data)
        if len(data) >= _PAGE_BYTES_MIN and self._has_checksums:
            if offset == 0:  # what SQLite has of the binding is as old as its copy of the page
                data = data[:-RESERVED_BYTES] + read_binding(super().xRead) + data[-4:]
            data = data[:-4] + _checksum(data, offset)
        super().xWrite(data, offset)

    def xDeviceCharacteristics(self) -> int:  # noqa: N802 - the interface of a VFS file
        """What the file can do, without reading parts of pages: a part has no checksum, and would be believed."""
        return super().xDeviceCharacteristics() & ~apsw.SQLITE_IOCAP_SUBPAGE_READ

    def _look(self, data: bytes) -> None:
        """Learn from the beginning of the file whether its pages have checksums."""
        if len(data) > RESERVED_AT and any(data):
            if data[RESERVED_AT] not in (0, RESERVED_BYTES):
                raise apsw.CorruptError(self._damaged(1, f"reserves {data[RESERVED_AT]} bytes of each page"))
            self._has_checksums = data[RESERVED_AT] == RESERVED_BYTES

    def _damaged(self, page: int, how: str) -> str:
        return f"page {page} of {self._path} {how}; restore the folder from a copy"


def _checksum(page: bytes, offset: int) -> bytes:
    """Of a page without its last four bytes, and of its place in the file; the first page's binding counts as `FREE`."""
    covered = memoryview(page)[:-4]
    if offset == 0:
        return zlib.crc32(FREE, zlib.crc32(covered[: -len(FREE)])).to_bytes(4)
    return zlib.crc32(covered, offset & 0xFFFFFFFF).to_bytes(4)


class _Log(LogFile):
    """The log: after each sync that makes a commit durable, its end is marked; the first one binds the file to it."""

    def __init__(self, base: str, name: Any, flags: list[int]) -> None:
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        super().__init__(base, name, flags)
        self._base, self._store = base, path.removesuffix("-wal")
        self._bound: bytes | None = None  # what the file says; None: not known
        self._mark = apsw.VFSFile(base, f"{path.removesuffix('-wal')}-mark", [_MARK_FLAGS, 0])
        self._frame_bytes = 0
        self._salts, self._name = (0, 0), log_name((0, 0))
        self._committed = 0  # frames up to the last commit that was written and is not marked

    def _write_held(self) -> None:
        pieces, offset = self._held, self._from
        if pieces and offset == 0 and self._may_be_bound():
            self._say(FREE)
        super()._write_held()
        self._note(pieces, offset)

    def _note(self, pieces: list[bytes], offset: int) -> None:
        """Learn from what was written, from `offset` on, which log this is, and how far it is committed: up to the last frame
        that says so.
        """
        if offset == 0 and pieces:
            _, _, page_bytes, _, *salts, _, _ = _LOG_HEADER.unpack(pieces[0])
            self._frame_bytes, self._committed = _FRAME_HEADER.size + page_bytes, 0
            self._salts = (salts[0], salts[1])
            self._name = log_name(self._salts)
        at = offset + sum(map(len, pieces))
        for piece in reversed(pieces):
            at -= len(piece)
            if len(piece) == _FRAME_HEADER.size and self._frame_bytes and any(piece[4:8]):
                self._committed = (at - _LOG_HEADER.size) // self._frame_bytes + 1
                return

    def xSync(self, flags: int) -> None:  # noqa: N802 - the interface of a VFS file
        super().xSync(flags)
        if self._committed:
            self._say(self._name)
            marked = _MARK.pack(*self._salts, self._committed, 0)[:-4]
            self._committed = 0
            self._mark.xWrite(marked + zlib.crc32(marked).to_bytes(4), 0)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802 - the interface of a VFS file
        if newsize == 0:
            self._say(FREE)
        super().xTruncate(newsize)

    def _may_be_bound(self) -> bool:
        return self._bound != FREE and bound_to(self._base, self._store) != FREE

    def _say(self, said: bytes) -> None:
        """Have the file say which log belongs to it."""
        if self._bound != said:
            self._bound = None  # until this is done
            self._bound = said if bind(self._base, self._store, said) else None

    def xClose(self) -> None:  # noqa: N802 - the interface of a VFS file
        self._mark.xClose()
        super().xClose()

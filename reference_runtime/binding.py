"""The binding: the first page of the store's file says which log belongs to it.

SQLite takes a file for the whole when its log is gone, and any log for the right one. Whoever deletes the log of a server that
was killed, or copies the file alone, would lose what was committed last, and nobody would be told. So the name of the log
(of its salts, which are new each time that it is begun) is kept in the file for as long as the log holds what the file does
not:

- it is written, and synced, after the first commit of a log was synced, and before anybody is told of that commit;
- it is taken out, and synced, before the log is begun anew, cut or deleted, all of which SQLite does when the file has it all.

A crash between these steps leaves a log without a binding, which is read as ever, and never a binding without its log.

The eight bytes lie within one sector, in what each page reserves, so that they are written as a whole or not at all. The
checksum of the page does not cover them; they have one of their own.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import apsw

#: Bytes at the end of each page that SQLite leaves to us, as byte 20 of the file says. Two bits set: no single one that turns
#: over makes it zero, the number of a store that was made before there were checksums.
RESERVED_BYTES = 12
RESERVED_AT = 20
_PAGE_SIZE_AT = slice(16, 18)
_PAGE_BYTES_MOST = 65536  # said as 1
_FLAGS = apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READWRITE
#: No log belongs to the file; what it has is all there is.
FREE = bytes(8)


def log_name(salts: tuple[int, int]) -> bytes:
    """What a file says when the log with these salts belongs to it."""
    name = zlib.crc32(struct.pack(">2I", *salts)).to_bytes(4)
    return name + zlib.crc32(name).to_bytes(4)


def is_binding(said: bytes) -> bool:
    """Whether this was ever written as a binding."""
    return said == FREE or zlib.crc32(said[:4]) == int.from_bytes(said[4:])


def read_binding(read: Callable[[int, int], bytes]) -> bytes:
    """What a file says, of which `read` gives so many bytes from an offset; `FREE` where it has no room to say anything."""
    place = _place(read(RESERVED_AT + 1, 0))
    return FREE if place is None else bytes(read(len(FREE), place)).ljust(len(FREE), b"\0")


def bound_to(base: str, path: str) -> bytes:
    """What the file at `path` says, read through the layer `base`; `FREE` where there is none."""
    if not Path(path).is_file():
        return FREE
    # Not by `open`: closing that would give up the locks that SQLite has on the file.
    file = apsw.VFSFile(base, path, [_FLAGS, 0])
    try:
        return read_binding(file.xRead)
    finally:
        file.xClose()


def bind(base: str, path: str, said: bytes) -> bool:
    """Have the file say this durably, if it does not; False when it has no room for it."""
    file = apsw.VFSFile(base, path, [_FLAGS, 0])
    try:
        place = _place(file.xRead(RESERVED_AT + 1, 0))
        if place is None:
            return False
        # Also when it is there already: it may be in the system's cache only, since a sync that failed.
        file.xWrite(said, place)
        file.xSync(apsw.SQLITE_SYNC_NORMAL)
        return True
    finally:
        file.xClose()


def _place(head: bytes) -> int | None:
    """Where a file has its binding, by its first bytes; None where its pages reserve nothing for it."""
    if len(head) <= RESERVED_AT or head[RESERVED_AT] != RESERVED_BYTES:
        return None
    page_bytes = int.from_bytes(head[_PAGE_SIZE_AT])
    return (_PAGE_BYTES_MOST if page_bytes == 1 else page_bytes) - RESERVED_BYTES

"""The shape of a disk: of each file what it is called, about how big it is, what it holds and whether all of it is durable.

Recovery depends on what is left in a journal, not on the bytes in it, so runs whose disks differ in shape are worth
keeping: a journal that is there or not, empty or not, synced or not when a host starts again. Names with their digits
folded and sizes by powers of two keep the number of shapes small. After the "state" feedback of stateful fuzzers
(C. Aschermann and others, "Ijon", S&P 2020), with the disk as the state.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simkit._storage.inode import Inode
    from simkit.host import Host

_DIGITS = re.compile(r"\d+")
#: UUIDs and digests.
_HEX = re.compile(r"(?<![^\W_])(?=[a-f-]*\d)[\da-f][\da-f-]{7,}(?![^\W_])", re.IGNORECASE)
#: What tempfile and the like make up.
_MADE_UP = re.compile(r"(?<![a-z])tmp[a-z0-9_]{6,}", re.IGNORECASE)
_FILES_MAX = 200
#: Heads of files whose meaning is known: an SQLite journal counts while its head is there, and not once it is zeroed.
_HEADS = {b"SQLite format 3\0": "sqlite", b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7": "hot", bytes(8): "zeroed"}


def shapes(host: Host, when: str) -> list[str]:
    """The shape of a host's disk as features, one for each kind of file on it; `when` says at what moment it was so."""
    if not host.has_disk:
        return []
    found: dict[str, int] = {}
    for number, (path, inode) in enumerate(host.disk.inodes().items()):
        if number >= _FILES_MAX:
            break
        shape = f"{folded(path)} {_size(inode)}{_head(inode)}{' dirty' if len(inode.log) > inode.synced else ''}"
        found[shape] = found.get(shape, 0) + 1
    return [f"disk {when} {folded(host.name)} {shape}{' many' if times > 1 else ''}" for shape, times in found.items()]


def folded(name: str) -> str:
    """A name without what only tells one from another: `wal-0017.log` and `wal-0018.log` are one kind of file."""
    return _DIGITS.sub("#", _HEX.sub("#", _MADE_UP.sub("tmp*", name)))


def _size(inode: Inode) -> str:
    return f"<{1 << inode.size.bit_length()}" if inode.size else "empty"


def _head(inode: Inode) -> str:
    head = bytes(inode.durable[:16])
    return next((f" {kind}" for known, kind in _HEADS.items() if head.startswith(known)), "")

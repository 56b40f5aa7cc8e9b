"""Canaries: whether a secret can be read in what somebody has written, as it is, in a usual encoding, or for the most part.

A canary is the value of a secret that the kit made up: printable ASCII, `PREFIX` and characters that nobody foretells. It
counts as found where `PIECE` of these are there one after the other, which no accident brings about: what is masked or cut
off at one end is no secret's keeping. Known are plain text in either case, hexadecimal digits, Base64 of either alphabet
wherever it begins, and all of these once more behind percent signs and the escapes of JSON and Python.
"""

from __future__ import annotations

import base64
import functools
import re
from typing import Final

PREFIX: Final = "canary-"
#: How many characters of a canary one after the other are looked for, and how far it is from one such piece to the next: who
#: shows `PIECE + STEP - 1` of them shows a whole piece.
PIECE: Final = 12
STEP: Final = 4
_ESCAPED = re.compile(rb"(?:%(?:25)*|\\+u00|\\+x)([0-9a-fA-F]{2})")


def canary(unforeseen: str) -> str:
    """A secret of these characters, of which there are at least `PIECE`."""
    assert len(unforeseen) >= PIECE, f"{len(unforeseen)} characters are found by accident"
    return PREFIX + unforeseen


def is_found(value: str, data: bytes) -> bool:
    """Whether a canary can be read in `data`."""
    return _is_there(value, data) or (_ESCAPED.search(data) is not None and _is_there(value, _unescaped(data)))


def _is_there(value: str, data: bytes) -> bool:
    plain, encoded = _forms(value)
    folded = data.lower()
    return any(form in folded for form in plain) or any(form in data for form in encoded)


def _unescaped(data: bytes) -> bytes:
    return _ESCAPED.sub(lambda found: bytes.fromhex(found[1].decode("ascii")), data)


@functools.lru_cache(maxsize=64)
def _forms(value: str) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
    """What a piece of a canary looks like, in lower case where case means nothing, and in Base64."""
    body = value.removeprefix(PREFIX).encode("ascii")
    pieces = [body[at : at + PIECE] for at in range(0, len(body) - PIECE + 1, STEP)]
    plain = [form for piece in pieces for form in (piece.lower(), piece.hex().encode())]
    encoded = [form for piece in pieces for skipped in range(3) for form in _base64(piece, skipped)]
    return tuple(plain), tuple(dict.fromkeys(encoded))


def _base64(piece: bytes, skipped: int) -> tuple[bytes, bytes]:
    """What is certainly there of a piece in Base64, in either alphabet, behind so many bytes of a group of three."""
    first, last = -(-8 * skipped // 6), 8 * (skipped + len(piece)) // 6
    certain = base64.b64encode(bytes(skipped) + piece)[first:last]
    return certain, certain.translate(bytes.maketrans(b"+/", b"-_"))

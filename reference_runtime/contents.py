"""Contents: the bytes an artifact operation publishes, and how they are cut and named. Pure."""

from __future__ import annotations

import hashlib


def content(task: str, operation: str, size: int) -> bytes:
    """The `size` bytes that `operation` of `task` publishes: the blake2b digest of `task:operation`, again and again."""
    block = hashlib.blake2b(f"{task}:{operation}".encode()).digest()
    return (block * (size // len(block) + 1))[:size]


def digest_of(data: bytes) -> str:
    """The name of a content: its sha256, in hex."""
    return hashlib.sha256(data).hexdigest()


def cut(data: bytes, parts: int) -> list[bytes]:
    """`data` in `parts` (≥ 1) pieces, in order, as equal as can be; there are empty ones when bytes run out."""
    step = -(-len(data) // parts) if data else 0
    return [data[step * n : step * (n + 1)] for n in range(parts)]

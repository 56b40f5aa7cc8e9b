"""A budget of damage: where a program keeps copies of one thing, at least one of them stays good.

A fault that silently damages what was durable (bit rot, a misdirected write, an fsync that lies) asks here first. What the
program declares is spared when it is the last good copy, or one of the last `good`; what it does not declare is not.
After TigerBeetle's storage faults, which keep a quorum of every block recoverable.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable

import attrs

__all__ = ["Copies"]

#: A host's name, and a file or folder on its disk.
Copy = tuple[str, str]


@attrs.frozen
class _Group:
    name: str
    copies: tuple[Copy, ...]
    good: int
    damaged: list[Copy] = attrs.field(factory=list)

    def find(self, host: str, path: str) -> Copy | None:
        """The copy that a file belongs to."""
        for copy in self.copies:
            if copy[0] == host and (path == copy[1] or path.startswith(copy[1].rstrip("/") + "/")):
                return copy
        return None

    def is_scarce(self, copy: Copy) -> bool:
        """Whether no further copy but those damaged already may be damaged."""
        return copy not in self.damaged and len(self.copies) - len(self.damaged) <= self.good


class Copies:
    """The declared copies of one world."""

    def __init__(self) -> None:
        self._groups: dict[str, _Group] = {}

    def declare(self, name: str, copies: Iterable[Copy], *, good: int = 1) -> None:
        """Say that these (host, path) are copies of one thing, `good` of which must stay undamaged; path may be a folder."""
        found = tuple(dict.fromkeys((host, posixpath.normpath(posixpath.join("/", path))) for host, path in copies))
        if not 1 <= good <= len(found):
            raise ValueError(f"{name}: {good} good copies of {len(found)}")
        self._groups[name] = _Group(name, found, good)

    def spares(self, host: str, path: str) -> bool:
        """Whether `path` must not be damaged; when it may, it counts as damaged from now on."""
        hits = [(group, copy) for group in self._groups.values() if (copy := group.find(host, path)) is not None]
        if any(group.is_scarce(copy) for group, copy in hits):
            return True
        for group, copy in hits:
            if copy not in group.damaged:
                group.damaged.append(copy)
        return False

    def covers(self, host: str, path: str) -> bool:
        """Whether `path` is declared to be one of several copies."""
        return any(group.find(host, path) is not None for group in self._groups.values())

    def repaired(self, host: str, path: str) -> None:
        """A copy was written anew: it is good again."""
        for group in self._groups.values():
            copy = group.find(host, path)
            if copy in group.damaged:
                group.damaged.remove(copy)

    def damaged(self, name: str) -> tuple[Copy, ...]:
        """The copies of `name` that are damaged."""
        return tuple(self._groups[name].damaged)

"""Directory entries, twice: what running processes see (`visible`) and what a power loss leaves (`durable`).

A create, rename, unlink or mkdir is an `EntryChange` that becomes durable by a sync of a directory it touches, and by
nothing else. A power loss keeps or loses each pending one on its own, in order: POSIX promises no order between
entries. A rename is atomic: both of its names change or neither does.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from typing import Final

import attrs

from simkit._storage.inode import Choices, Inode


class _Directory:
    """What the name of a directory refers to."""


DIRECTORY: Final = _Directory()
Node = Inode | _Directory


@attrs.frozen(eq=False)
class EntryChange:
    """One atomic change: each path to the node it names from now on, or to None."""

    kind: str
    entries: tuple[tuple[str, Node | None], ...]

    def touches(self, directory: str) -> bool:
        """Return whether a sync of `directory` covers this change."""
        return any(posixpath.dirname(path) == directory for path, _ in self.entries)

    def links(self, inode: Inode) -> bool:
        """Return whether this change gives `inode` a name."""
        return any(node is inode for _, node in self.entries)

    def apply(self, table: dict[str, Node]) -> None:
        """Carry the change out on `table`."""
        for path, node in self.entries:
            if node is None:
                table.pop(path, None)
            else:
                table[path] = node


class Namespace:
    """All names of one disk; absolute, normalised paths."""

    def __init__(self) -> None:
        self.visible: dict[str, Node] = {"/": DIRECTORY}
        self.durable: dict[str, Node] = {"/": DIRECTORY}
        self.pending: list[EntryChange] = []

    def change(self, kind: str, *entries: tuple[str, Node | None]) -> None:
        """Change what is visible; durable only by a sync of the directory."""
        change = EntryChange(kind, entries)
        change.apply(self.visible)
        self.pending.append(change)

    def provide(self, directory: str) -> None:
        """Let `directory` and its parents exist durably, as if made when the host was set up."""
        while directory not in self.visible or directory not in self.durable:
            self.visible[directory] = self.durable[directory] = DIRECTORY
            directory = posixpath.dirname(directory)

    def sync(self, covered: Callable[[EntryChange], bool]) -> None:
        """Make the pending changes that `covered` accepts durable, in order."""
        waiting = []
        for change in self.pending:
            if covered(change):
                change.apply(self.durable)
            else:
                waiting.append(change)
        self.pending = waiting

    def children(self, directory: str) -> list[str]:
        """Names in `directory`, sorted."""
        return sorted(
            posixpath.basename(path) for path in self.visible if path != "/" and posixpath.dirname(path) == directory
        )

    def lose_power(self, mode: str, stream: Choices, count: Callable[[str], None]) -> None:
        """Settle every pending change, drop what has no directory left, and show what survived."""
        for change in self.pending:
            if _survives(change, mode, stream):
                change.apply(self.durable)
            else:
                count(f"lost-{change.kind}")
        self.pending.clear()
        self.durable = {path: node for path, node in self.durable.items() if self._rooted(path)}
        self.visible = dict(self.durable)

    def _rooted(self, path: str) -> bool:
        while path != "/":
            path = posixpath.dirname(path)
            if self.durable.get(path) is not DIRECTORY:
                return False
        return True


def _survives(change: EntryChange, mode: str, stream: Choices) -> bool:
    if mode != "sample":
        return mode == "keep"
    return stream.choose(f"{change.kind}:{change.entries[0][0]}", 2, (1, 1)) == 0

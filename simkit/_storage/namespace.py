"""Directory entries, twice: what running processes see (`visible`) and what a power loss leaves (each directory's `durable`).

A create, rename, unlink or mkdir is an `EntryChange` that becomes durable by a sync of a directory it touches, and by
nothing else. A power loss keeps or loses each pending one on its own, in order: POSIX promises no order between
entries. A rename is atomic: both of its names change or neither does. Renames of directories keep their order among
one another, as every file system does; else a directory could end up inside itself.
"""

from __future__ import annotations

import errno
import functools
import os
import posixpath
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, cast

from simkit._storage.inode import Inode


class Directory:
    """A directory, whatever it is called at the moment: the names in it that are durable."""

    __slots__ = ("durable", "number")

    def __init__(self) -> None:
        self.durable: dict[str, Node] = {}
        #: What `stat` calls it by; 0 until somebody asks.
        self.number = 0


Node = Inode | Directory


#: A path as the path of its directory and its name there.
split = functools.lru_cache(maxsize=1024)(posixpath.split)


class EntryChange(NamedTuple):
    """One atomic change: names in directories, each with the node it stands for from now on, or None."""

    kind: str
    path: str
    entries: tuple[tuple[Directory, str, Node | None], ...]
    number: int

    @property
    def moves_directory(self) -> bool:
        """Whether a directory gets another name."""
        return self.kind == "rename" and any(isinstance(node, Directory) for _, _, node in self.entries)

    def touches(self, directory: Directory) -> bool:
        """Return whether a sync of `directory` covers this change."""
        for found, _, _ in self.entries:  # noqa: SIM110  # one entry, mostly: no generator
            if found is directory:
                return True
        return False

    def links(self, inode: Inode) -> bool:
        """Return whether this change gives `inode` a name."""
        return any(node is inode for _, _, node in self.entries)

    def apply(self, table: Callable[[Directory], dict[str, Node]]) -> None:
        """Carry the change out on the names that `table` gives for each directory."""
        for directory, name, node in self.entries:
            if node is None:
                table(directory).pop(name, None)
            else:
                table(directory)[name] = node


def _durable(directory: Directory) -> dict[str, Node]:
    return directory.durable


class Namespace:
    """All names of one disk; absolute, normalised paths."""

    def __init__(self) -> None:
        self.root = Directory()
        self.visible: dict[str, Node] = {"/": self.root}
        self.pending: list[EntryChange] = []
        #: Directories that programs made, and names that they took away: none of these springs into existence.
        self._managed: set[str] = set()

    def set(self, kind: str, path: str, node: Node | None, number: int) -> None:
        """Let `path` stand for `node`, or for nothing; durable only by a sync of the directory."""
        visible = self.visible
        parent, name = split(path)
        directory = cast("Directory", visible[parent])
        self.pending.append(EntryChange(kind, path, ((directory, name, node),), number))
        if node is None:
            del visible[path]
        else:
            visible[path] = node
        if not isinstance(node, Inode):
            self._managed.add(path)

    def rename(self, source: str, target: str, number: int) -> None:
        """Let `target` stand for what `source` stood for."""
        node = self.visible[source]
        self._note_rename(source, target, node, number)
        self._managed.add(source)
        del self.visible[source]
        self.visible[target] = node

    def move(self, source: str, target: str, number: int) -> None:
        """Rename a directory, with all that is in it."""
        directory = self.visible[source]
        self._note_rename(source, target, directory, number)
        moved = {path: node for path, node in self.visible.items() if path == source or path.startswith(source + "/")}
        self._managed.update((*moved, target))
        for path in moved:
            del self.visible[path]
        for path, node in moved.items():
            self.visible[target + path[len(source) :]] = node

    def provide(self, directory: str, *, anew: bool = False) -> Directory:
        """Let `directory` and its parents exist durably, as if made when the host was set up; `anew`, also where a program
        took them away. OSError where a file has such a name, or where it is for a program to make it.
        """
        here, path, missing = self.root, "", []
        for name in directory.strip("/").split("/") if directory != "/" else ():
            path = f"{path}/{name}"
            node = self.visible.get(path)
            if node is None:
                if path in self._managed and not anew:
                    raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), directory)
                missing.append((here, name, path, node := Directory()))
            elif not isinstance(node, Directory):
                raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), directory)
            here = node
        for parent, name, path, made in missing:
            self._settle_name(parent, name)
            self.visible[path] = parent.durable[name] = made
        return here

    def plant(self, path: str, data: bytes) -> None:
        """Let a file be there durably."""
        parent, name = self._parent(path), split(path)[1]
        self._settle_name(parent, name)
        self.visible[path] = parent.durable[name] = Inode(data)

    def sync(self, covered: Callable[[EntryChange], bool]) -> None:
        """Make the pending changes that `covered` accepts durable, in order."""
        last = max((change.number for change in self.pending if change.moves_directory and covered(change)), default=0)
        waiting = []
        for change in self.pending:
            if covered(change) or (change.moves_directory and change.number <= last):
                change.apply(_durable)
            else:
                waiting.append(change)
        self.pending = waiting

    def sync_directory(self, directory: Directory) -> None:
        """Make what changed in `directory` durable."""
        waiting = []
        for change in self.pending:
            if change.kind == "rename":  # these may cover others
                self.sync(lambda change: change.touches(directory))
                return
            ((found, name, node),) = change.entries
            if found is not directory:
                waiting.append(change)
            elif node is None:
                directory.durable.pop(name, None)
            else:
                directory.durable[name] = node
        self.pending = waiting

    def children(self, directory: str) -> list[str]:
        """Names in `directory`, sorted."""
        return sorted(
            posixpath.basename(path) for path in self.visible if path != "/" and posixpath.dirname(path) == directory
        )

    def survivors(self, kept: Sequence[EntryChange] = ()) -> dict[str, Node]:
        """What is durable, by path, if of the pending changes exactly `kept` survive."""
        tables: dict[Directory, dict[str, Node]] = {}

        def table(directory: Directory) -> dict[str, Node]:
            if not kept:
                return directory.durable
            return tables.setdefault(directory, dict(directory.durable))

        for change in kept:
            change.apply(table)
        return {"/": self.root, **dict(_walk("", self.root, table, []))}

    def lose_power(self, survives: Callable[[EntryChange], bool], count: Callable[[str], None]) -> dict[str, Node]:
        """Settle every pending change, show what survived, and return it by path."""
        kept, lost = settled(self.pending, survives)
        for change in lost:
            count(f"lost-{change.kind}")
        for change in kept:
            change.apply(_durable)
        self.pending.clear()
        self.visible = self.survivors()
        return dict(self.visible)

    def _settle_name(self, directory: Directory, name: str) -> None:
        """Make durable what is pending of a name that is there from the beginning now, lest a sync undo that later."""
        if any(found is directory and called == name for change in self.pending for found, called, _ in change.entries):
            self.sync_directory(directory)

    def _note_rename(self, source: str, target: str, node: Node, number: int) -> None:
        entries = ((self._parent(source), split(source)[1], None), (self._parent(target), split(target)[1], node))
        self.pending.append(EntryChange("rename", source, entries, number))

    def _parent(self, path: str) -> Directory:
        node = self.visible[split(path)[0]]
        assert isinstance(node, Directory)
        return node


def settled(
    pending: Sequence[EntryChange], survives: Callable[[EntryChange], bool]
) -> tuple[list[EntryChange], list[EntryChange]]:
    """Which changes are kept and which are lost; a directory's rename is lost with any earlier one of a directory."""
    kept: list[EntryChange] = []
    lost: list[EntryChange] = []
    for change in pending:
        doomed = change.moves_directory and any(earlier.moves_directory for earlier in lost)
        (kept if not doomed and survives(change) else lost).append(change)
    return kept, lost


def _walk(
    path: str, directory: Directory, table: Callable[[Directory], dict[str, Node]], above: list[Directory]
) -> Iterator[tuple[str, Node]]:
    for name, node in sorted(table(directory).items(), key=lambda entry: entry[0]):
        if isinstance(node, Directory) and any(node is one for one in (*above, directory)):
            continue  # it cannot be inside itself
        yield f"{path}/{name}", node
        if isinstance(node, Directory):
            yield from _walk(f"{path}/{name}", node, table, [*above, directory])

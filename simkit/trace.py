"""The trace of a run: every step, every move of the clock, every event told by disk, network and services; and its digest.

Two runs with the same digest were the same. `first_difference` says where two were not.

Tracing to disk: what a sink has been given is digested, and kept packed, so that a long run does not fill the memory.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import pickle
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol, TypeAlias, cast

import attrs

#: Entries are written to a sink in batches of at least this many.
_BATCH = 4096

#: What a component told: a kind and its details.
Told: TypeAlias = tuple[str | int | None, ...]
Entry: TypeAlias = int | Told


class Sink(Protocol):
    """An open text file, or anything else that takes JSON lines."""

    def write(self, text: str, /) -> object:
        """Take one or more whole lines."""
        ...


@attrs.frozen
class Event:
    """One entry of a trace, told for people and for JSON lines."""

    index: int
    now_ns: int
    kind: str  # step, clock, or what a component called it
    detail: str

    def __str__(self) -> str:
        return f"event {self.index} at {self.now_ns} ns: {self.kind} {self.detail}".rstrip()


class Trace:
    """Grows while a run goes on. Bounded by the bounds on steps and on time."""

    def __init__(self, sink: Sink | None = None) -> None:
        # A step is the task's number, a move of the clock is minus the time, anything else is put into words when asked.
        self._entries: list[Entry] = []
        #: For components that tell very much and put their entries here themselves, as `record` would.
        self.told = self._entries
        #: What was told beside the entries, for drawings of a run: (entries so far, what). None: nobody asked for it.
        self.asides: list[tuple[int, Told]] | None = None
        self._names: Mapping[int, str] = {}
        self._sink = sink
        self._written = _Packed()  # what the sink has got, and `_entries` holds no more
        self._written_ns = 0
        self._hash: hashlib.blake2b | None = None
        self._hashed = 0  # how many entries that is
        #: Called by the kernel: one C call a step is all that tracing costs.
        self.record_step = self._entries.append

    def record(self, kind: str, *details: str | int | None) -> None:
        """Tell an event. No addresses, no unordered collections: the text is part of the digest."""
        self._entries.append((kind, *details))

    def aside(self, kind: str, *details: str | int | None) -> None:
        """Tell what only a drawing needs: no part of the digest, and dropped unless somebody asked for it."""
        if self.asides is not None:
            self.asides.append((len(self), (kind, *details)))

    def record_step_and_flush(self, entry: int) -> None:
        """As `record_step`, and hand on to the sink what has gathered."""
        self._entries.append(entry)
        if len(self._entries) >= _BATCH:
            self.flush()

    def name_tasks(self, names: Mapping[int, str]) -> None:
        """Tell the names of tasks by number; names are for people and no part of the digest."""
        self._names = names

    @property
    def names(self) -> Mapping[int, str]:
        """The names of tasks by number."""
        return self._names

    def __len__(self) -> int:
        return self._written.count + len(self._entries)

    def digest(self) -> str:
        """32 hex digits that stand for all entries, in order."""
        if self._hash is None:
            self._hash = hashlib.blake2b(digest_size=16)
        start, entries = self._hashed - self._written.count, self._entries
        for at in range(start, len(entries), _BATCH):
            data = _encoded(entries[at : at + _BATCH] if at or len(entries) > _BATCH else entries)
            self._hash.update(b"\n" + data if self._hashed else data)
            self._hashed = min(len(self), self._hashed + _BATCH)
        return self._hash.hexdigest()

    def running_digests(self, places: Iterable[int]) -> list[str]:
        """Eight hex digits that stand for the first so many entries, for each of `places` (ascending)."""
        running, done, found, entries = hashlib.blake2b(digest_size=4), 0, [], self.entries()
        for place in places:
            for entry in itertools.islice(entries, max(0, place - done)):
                running.update((_worded(entry) + "\n").encode("utf-8", "surrogatepass"))
            done = max(done, place)
            found.append(running.hexdigest())
        return found

    def steps(self) -> list[int]:
        """The numbers of the tasks that took the steps."""
        return [entry for entry in self.entries() if type(entry) is int and entry >= 0]

    def entries(self) -> Iterator[Entry]:
        """Every entry as it was told: a step is the task's number, a move of the clock minus the time."""
        return itertools.chain(self._written, self._entries)

    def events(self, start: int = 0) -> Iterator[Event]:
        """Every entry from number `start` on, told."""
        now_ns = 0
        for index, entry in enumerate(self.entries()):
            if type(entry) is int and entry < 0:
                now_ns = -entry
            if index >= start:
                yield self._told(index, now_ns, entry)

    def flush(self) -> None:
        """Write to the sink what has not been written."""
        if self._sink is None or not self._entries:
            return
        self.digest()
        lines = []
        now_ns = self._written_ns
        for index, entry in enumerate(self._entries, self._written.count):
            if type(entry) is int and entry < 0:
                now_ns = -entry
            kind, detail = self._words(entry)
            lines.append(
                f'{{"index": {index}, "now_ns": {now_ns}, "kind": {_quoted(kind)}, "detail": {_quoted(detail)}}}\n'
            )
        self._sink.write("".join(lines))
        self._written.add(self._entries)
        self._entries.clear()
        self._written_ns = now_ns

    def _told(self, index: int, now_ns: int, entry: Entry) -> Event:
        return Event(index, now_ns, *self._words(entry))

    def _words(self, entry: Entry) -> tuple[str, str]:
        """An entry's kind and detail."""
        if type(entry) is int:
            if entry < 0:
                return "clock", f"moves to {-entry} ns"
            return "step", f"task {entry} {self._names.get(entry, '')}".rstrip()
        kind, _, detail = _worded(entry).partition(" ")
        return kind, detail


class _Packed:
    """Entries in chunks, each packed to a few bytes an entry; a million of them are no burden."""

    def __init__(self) -> None:
        self._chunks: list[bytes] = []
        #: How many they are.
        self.count = 0

    def __iter__(self) -> Iterator[Entry]:
        for chunk in self._chunks:
            yield from pickle.loads(zlib.decompress(chunk))  # noqa: S301  # our own, from this very process

    def add(self, entries: list[Entry]) -> None:
        """Pack one more chunk."""
        self._chunks.append(zlib.compress(pickle.dumps(entries, pickle.HIGHEST_PROTOCOL), 1))
        self.count += len(entries)


class _Formats(dict[int, str]):
    """How to put a tuple of each length into words."""

    def __missing__(self, length: int) -> str:
        found = self[length] = " ".join(["%s"] * length)
        return found


_FORMATS = _Formats()
_NUMBERS = b"%d\n" * _BATCH
_quoted = json.JSONEncoder(ensure_ascii=False).encode


def _encoded(entries: list[Entry]) -> bytes:
    """`_lines` in UTF-8; where there are but steps and moves of the clock, in a third of the time."""
    try:
        return (_NUMBERS[: 3 * len(entries)] % tuple(entries))[:-1]
    except TypeError:  # something was told
        return _lines(entries).encode("utf-8", "surrogatepass")


def _lines(entries: list[Entry]) -> str:
    """Entries as lines: what `_worded` says of each, in half the time."""
    told = [str(entry) if type(entry) is int else _FORMATS[len(entry)] % entry for entry in entries]  # type: ignore[arg-type]
    text = "\n".join(told)
    if text.count("\n") >= len(entries):  # one holds a line break
        return "\n".join(map(_worded, entries))
    return text


def _worded(entry: Entry) -> str:
    """An entry as one line; most runs need none of them."""
    return str(entry) if type(entry) is int else " ".join(map(str, cast("Told", entry))).replace("\n", "\\n")


@attrs.frozen
class Difference:
    """Where two traces part. A side is None where its trace has ended."""

    index: int
    left: Event | None
    right: Event | None

    def __str__(self) -> str:
        return f"event {self.index}: {self.left or 'the end'} | {self.right or 'the end'}"


def first_difference(left: Trace, right: Trace) -> Difference | None:
    """The first entry that is not the same in both; None when the traces are equal."""
    pairs = itertools.zip_longest(left.entries(), right.entries())
    for index, (one, other) in enumerate(pairs):
        if one != other:
            return Difference(index, next(left.events(index), None), next(right.events(index), None))
    return None

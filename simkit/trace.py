"""The trace of a run: every step, every move of the clock, every event told by disk, network and services; and its digest.

Two runs with the same digest were the same. `first_difference` says where two were not.
"""

from __future__ import annotations

import hashlib
import itertools
import json
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
        self._written = 0
        self._written_ns = 0
        self._digested = (-1, "")
        #: Called by the kernel: one C call a step is all that tracing costs.
        self.record_step = self._entries.append

    def record(self, kind: str, *details: str | int | None) -> None:
        """Tell an event. No addresses, no unordered collections: the text is part of the digest."""
        self._entries.append((kind, *details))

    def aside(self, kind: str, *details: str | int | None) -> None:
        """Tell what only a drawing needs: no part of the digest, and dropped unless somebody asked for it."""
        if self.asides is not None:
            self.asides.append((len(self._entries), (kind, *details)))

    def record_step_and_flush(self, entry: int) -> None:
        """As `record_step`, and hand on to the sink what has gathered."""
        self._entries.append(entry)
        if len(self._entries) - self._written >= _BATCH:
            self.flush()

    def name_tasks(self, names: Mapping[int, str]) -> None:
        """Tell the names of tasks by number; names are for people and no part of the digest."""
        self._names = names

    @property
    def names(self) -> Mapping[int, str]:
        """The names of tasks by number."""
        return self._names

    def __len__(self) -> int:
        return len(self._entries)

    def digest(self) -> str:
        """32 hex digits that stand for all entries, in order."""
        if self._digested[0] != len(self._entries):
            text = "\n".join(map(_worded, self._entries)).encode("utf-8", "surrogatepass")
            self._digested = len(self._entries), hashlib.blake2b(text, digest_size=16).hexdigest()
        return self._digested[1]

    def running_digests(self, places: Iterable[int]) -> list[str]:
        """Eight hex digits that stand for the first so many entries, for each of `places` (ascending)."""
        running, done, found = hashlib.blake2b(digest_size=4), 0, []
        for place in places:
            for entry in self._entries[done:place]:
                running.update((_worded(entry) + "\n").encode("utf-8", "surrogatepass"))
            done = place
            found.append(running.hexdigest())
        return found

    def steps(self) -> list[int]:
        """The numbers of the tasks that took the steps."""
        return [entry for entry in self._entries if type(entry) is int and entry >= 0]

    def entries(self) -> Iterator[Entry]:
        """Every entry as it was told: a step is the task's number, a move of the clock minus the time."""
        return iter(self._entries)

    def events(self, start: int = 0) -> Iterator[Event]:
        """Every entry from number `start` on, told."""
        now_ns = 0
        for index, entry in enumerate(self._entries):
            if type(entry) is int and entry < 0:
                now_ns = -entry
            if index >= start:
                yield self._told(index, now_ns, entry)

    def flush(self) -> None:
        """Write to the sink what has not been written."""
        if self._sink is None or self._written == len(self._entries):
            return
        lines = []
        now_ns = self._written_ns
        for index in range(self._written, len(self._entries)):
            entry = self._entries[index]
            if type(entry) is int and entry < 0:
                now_ns = -entry
            event = self._told(index, now_ns, entry)
            lines.append(json.dumps(attrs.asdict(event), ensure_ascii=False) + "\n")
        self._sink.write("".join(lines))
        self._written, self._written_ns = len(self._entries), now_ns

    def _told(self, index: int, now_ns: int, entry: Entry) -> Event:
        if type(entry) is int:
            if entry < 0:
                return Event(index, now_ns, "clock", f"moves to {now_ns} ns")
            return Event(index, now_ns, "step", f"task {entry} {self._names.get(entry, '')}".rstrip())
        kind, _, detail = _worded(entry).partition(" ")
        return Event(index, now_ns, kind, detail)


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
    pairs = itertools.zip_longest(left._entries, right._entries)  # noqa: SLF001  # two of the same class
    for index, (one, other) in enumerate(pairs):
        if one != other:
            return Difference(index, next(left.events(index), None), next(right.events(index), None))
    return None

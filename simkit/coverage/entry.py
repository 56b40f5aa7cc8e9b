"""One tape of a corpus, with what it showed; and its file.

The file's name is the digest of the tape alone, so that the same tape found twice, or by two machines, is one file. Fields
that this version does not know are passed over; another schema is refused, naming the file.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from simkit.errors import Problem, SimkitError
from simkit.strategy import Segment
from simkit.tape import Asked, Site, Tape, rows

SCHEMA = "simkit/corpus/1"
_DIGITS = 16
_SIZE_MAX = 16 * 1024 * 1024
#: Of what a run took, so many segments are kept: later ones are seldom cut, and a file stays small.
TAKEN_MAX = 2000
#: A place that a run was asked at: (stream label, site key).
Place = tuple[str, str]


class DamagedError(Exception):
    """A file that is no entry; the text says why."""


@attrs.frozen
class Entry:
    """A tape worth keeping."""

    #: What it gives other than 0, sorted.
    departures: Mapping[Site, int]
    #: Followed loosely, see `simkit.shrinking.loose`.
    schedule: tuple[Segment, ...]
    #: What its run showed.
    features: frozenset[str] = attrs.field(repr=False)
    #: What its run was asked: where a mutant may depart.
    asked: Asked = attrs.field(factory=dict, repr=False)
    #: Who took the steps of its run, the first `TAKEN_MAX` segments: where a mutant may switch.
    taken: tuple[Segment, ...] = attrs.field(default=(), repr=False)
    #: How many of its steps had been taken when it first did something that no run had done before.
    frontier: int = attrs.field(default=0, repr=False)
    id: str = attrs.field(init=False)

    @id.default
    def _id(self) -> str:
        tape = {"departures": rows(self.departures), "schedule": [list(segment) for segment in self.schedule]}
        text = json.dumps(tape, sort_keys=True, separators=(",", ":"))
        return hashlib.blake2b(text.encode(), digest_size=_DIGITS // 2).hexdigest()

    @property
    def size(self) -> tuple[object, ...]:
        """How much there is to a tape: fewer decisions first, then smaller ones; no two tapes are of the same size."""
        return (
            len(self.departures) + len(self.schedule),
            len(self.departures),
            sum(self.departures.values()),
            sum(occurrence for _, _, occurrence in self.departures),
            self.id,
        )

    @property
    def tape(self) -> tuple[dict[Site, int], tuple[Segment, ...]]:
        """What is run."""
        return dict(self.departures), self.schedule

    def save(self, folder: Path) -> Path:
        """Write `folder/<id>.json`, whole or not at all."""
        path = folder / f"{self.id}.json"
        draft = path.with_suffix(f".{os.getpid()}.draft")  # another process may be saving the same tape
        data = {
            "schema": SCHEMA,
            "departures": rows(self.departures),
            "schedule": self.schedule,
            "features": sorted(self.features),
            "asked": [[*place, *found] for place, found in sorted(self.asked.items())],
            "taken": self.taken,
            "frontier": self.frontier,
        }
        try:
            draft.write_text(json.dumps(data, ensure_ascii=True) + "\n", encoding="utf-8")
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
        return path

    @classmethod
    def load(cls, path: Path) -> Entry:
        """Read an entry; SimkitError for one of another schema, DamagedError for what is no entry, FileNotFoundError."""
        data = _read(path)
        if data.get("schema") != SCHEMA:
            raise _other_version(path, data.get("schema"))
        try:
            entry = entry_of(
                _departures(data["departures"]),
                _pairs(data["schedule"]),
                map(_text, data["features"]),
                asked={
                    (_text(label), _text(key)): (_whole(times), _whole(n)) for label, key, times, n in data["asked"]
                },
                taken=_pairs(data["taken"]),
                frontier=_whole(data["frontier"]),
            )
        except (KeyError, TypeError, ValueError, SimkitError) as error:
            raise DamagedError(f"{type(error).__name__}: {str(error).splitlines()[0]}") from error
        if entry.id != path.stem:
            raise DamagedError(f"its tape has the digest {entry.id}")
        return entry


def entry_of(
    departures: Mapping[Site, int],
    schedule: Iterable[Segment],
    features: Iterable[str],
    *,
    asked: Asked | None = None,
    taken: Sequence[Segment] = (),
    frontier: int = 0,
) -> Entry:
    """An entry, with its parts in order."""
    return Entry(
        dict(sorted(departures.items())),
        tuple(schedule),
        frozenset(features),
        dict(sorted((asked or {}).items())),
        tuple(taken[:TAKEN_MAX]),
        frontier,
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > _SIZE_MAX:
            raise DamagedError(f"it has more than {_SIZE_MAX} bytes")
        data = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise DamagedError(f"it is not JSON, or cut short: {error}") from error
    except FileNotFoundError:
        raise  # somebody else has replaced it meanwhile
    except OSError as error:
        what = f"an entry of the corpus cannot be read: {error.strerror}"
        raise SimkitError(Problem("corpus-unreadable", what, str(path), "a readable file")) from error
    if not isinstance(data, dict):
        raise DamagedError("it holds no object")
    return data


def _departures(value: Any) -> dict[Site, int]:
    return dict(Tape.from_departures(value).unused())


def _pairs(value: Any) -> tuple[Segment, ...]:
    return tuple((_whole(task), _whole(steps)) for task, steps in value)


def _whole(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise TypeError(f"{value!r} is no whole number from 0")
    return value


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError(f"{value!r} is no text")
    return value


def _other_version(path: Path, schema: object) -> SimkitError:
    return SimkitError(
        Problem(
            "corpus-version",
            f"an entry of the corpus has the schema {schema!r}",
            str(path),
            SCHEMA,
            "use the version of simkit that wrote it, or begin a new corpus in another folder",
        )
    )

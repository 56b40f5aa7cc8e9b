"""The tape: the one source of choice. A run is described by its departures from a default run.

A choice is named by (stream label, site key, occurrence), and drawn from the seed by that name alone: removing one, or
adding a site, shifts no other. Only choices other than 0 are recorded; 0 always means "nothing special".
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from simkit.errors import Problem, SimkitError

#: (stream label, site key, occurrence counted from 0).
Site = tuple[str, str, int]
#: What a run was asked: by (stream label, site key) how many occurrences, and how many values there were to choose from.
Asked = Mapping[tuple[str, str], tuple[int, int]]
_RANGE = 1 << 64


class Stream:
    """The choices of one component, apart from all others."""

    def __init__(self, tape: Tape, label: str) -> None:
        self.label = label
        self._tape = tape
        self._seen: dict[str, int] = {}
        self._sizes: dict[str, int] = {}
        self._base = hashlib.blake2b(digest_size=8, key=tape.entropy.to_bytes(32, "big"), person=b"simkit-tape")
        self._base.update(_framed(label))
        self._begun: dict[tuple[bytes, str], hashlib.blake2b] = {}

    def choose(self, site_key: str, n: int, weights: tuple[int, ...] | None = None) -> int:
        """Return a number below `n`, each equally likely unless integer `weights` say otherwise; recorded unless 0."""
        if n < 1 or (weights is not None and len(weights) != n):
            raise ValueError(f"{self.label}/{site_key}: {n} choices with weights {weights}")
        occurrence = self._seen.get(site_key, 0)
        self._seen[site_key] = occurrence + 1
        if n == 1:
            return 0
        self._sizes[site_key] = n
        if self._tape.replays:
            return self._tape.recorded(self.label, site_key, occurrence, n)
        drawn = self._draw(b"choice", site_key, occurrence)
        value = drawn % n if weights is None else _weighted(drawn, weights)
        if value:
            self._tape.record((self.label, site_key, occurrence), value)
        return value

    def chance(self, site_key: str, num: int, den: int) -> bool:
        """Return True `num` times in `den`; recorded when True."""
        if num <= 0:
            return False
        if num >= den:
            return True
        return self.choose(site_key, 2, (den - num, num)) == 1

    def randrange(self, site_key: str, n: int) -> int:
        """Return a number below `n`, each equally likely; recorded unless 0."""
        return self.choose(site_key, n)

    def randbytes(self, site_key: str, n: int) -> bytes:
        """Return `n` bytes that mean nothing (nonces, salts); derived, never recorded."""
        key = f"bytes\0{site_key}"
        occurrence = self._seen.get(key, 0)
        self._seen[key] = occurrence + 1
        return self.random_source(f"{site_key}#{occurrence}").randbytes(n)

    def random_source(self, site_key: str) -> random.Random:
        """Return a generator of its own for noise that is not recorded choice by choice, such as a random walk."""
        return random.Random(self._draw(b"source", site_key, 0))

    def asked(self) -> dict[str, tuple[int, int]]:
        """By site key: how often it was asked, and from how many values it chose the last time; of real choices only."""
        return {key: (self._seen[key], n) for key, n in self._sizes.items()}

    def _draw(self, use: bytes, site_key: str, occurrence: int) -> int:
        begun = self._begun.get((use, site_key))
        if begun is None:
            begun = self._begun[use, site_key] = self._base.copy()
            begun.update(use + _framed(site_key))
        digest = begun.copy()
        digest.update(b"%d" % occurrence)
        return int.from_bytes(digest.digest(), "big")


class Tape:
    """Every choice of one run: drawn from a seed, or read from the departures of an earlier run."""

    def __init__(self, entropy: int, departures: Mapping[Site, int] | None = None) -> None:
        """Use `from_seed` or `from_departures`."""
        if not 0 <= entropy < 1 << 256:
            raise ValueError(f"a seed is a number from 0 to 2**256 - 1, not {entropy}")
        self.entropy = entropy
        #: Whether choices are read rather than drawn.
        self.replays = departures is not None
        self._given: Mapping[Site, int] = departures or {}
        self._taken: dict[Site, int] = {}
        self._streams: dict[str, Stream] = {}

    @classmethod
    def from_seed(cls, seed: int) -> Tape:
        """A tape that draws its choices from `seed`."""
        return cls(seed)

    @classmethod
    def from_departures(cls, departures: Mapping[Site, int] | Iterable[Sequence[Any]], *, entropy: int = 0) -> Tape:
        """A tape that repeats `departures` and otherwise chooses 0.

        Args:
            departures: what `departures()` gave, or its JSON form, rows of (label, key, occurrence, value).
            entropy: where meaningless bytes come from; the seed of the first run, for the same bytes.
        """
        if isinstance(departures, Mapping):
            return cls(entropy, dict(departures))
        return cls(entropy, dict(_parsed(row) for row in departures))

    def stream(self, label: str) -> Stream:
        """The stream called `label`; always the same object."""
        if label not in self._streams:
            self._streams[label] = Stream(self, label)
        return self._streams[label]

    def departures(self) -> dict[Site, int]:
        """Every choice so far that was not 0, by site, sorted."""
        return dict(sorted(self._taken.items()))

    def asked(self) -> Asked:
        """Every choice that was asked for so far, whatever it gave; what a mutation may depart from."""
        return {
            (label, key): found
            for label, stream in sorted(self._streams.items())
            for key, found in sorted(stream.asked().items())
        }

    def unused(self) -> dict[Site, int]:
        """The given departures that this run has not asked for (or not in that range)."""
        return {site: value for site, value in sorted(self._given.items()) if self._taken.get(site) != value}

    def record(self, site: Site, value: int) -> None:
        """Note a departure."""
        self._taken[site] = value

    def recorded(self, label: str, site_key: str, occurrence: int, n: int) -> int:
        """Look a choice up; one that is out of range now counts as 0, and shows in `unused`."""
        value = self._given.get((label, site_key, occurrence), 0)
        if not 0 < value < n:
            return 0
        self._taken[label, site_key, occurrence] = value
        return value


def rows(departures: Mapping[Site, int]) -> list[list[Any]]:
    """Departures as JSON: sorted rows of [label, key, occurrence, value]."""
    return [[*site, value] for site, value in sorted(departures.items())]


def _parsed(row: Sequence[Any]) -> tuple[Site, int]:
    match row:
        case [str(label), str(key), int(occurrence), int(value)] if occurrence >= 0 and value > 0:
            return (label, key, occurrence), value
    raise SimkitError(
        Problem(
            "bad-departure",
            f"{row!r} is not a departure",
            "the departures of a tape",
            "[stream label, site key, occurrence from 0, value from 1]",
            "departures are written by simkit; this list was changed by hand or cut short",
        )
    )


def _weighted(drawn: int, weights: tuple[int, ...]) -> int:
    """Integer arithmetic only, so that every platform draws the same."""
    total = sum(weights)
    if total <= 0 or min(weights) < 0:
        raise ValueError(f"weights must be 0 or more and not all 0: {weights}")
    rest = drawn * total // _RANGE
    for value, weight in enumerate(weights):
        if rest < weight:
            return value
        rest -= weight
    raise AssertionError(weights)


def _framed(text: str) -> bytes:
    """Length first, so that no two lists of strings read the same."""
    data = text.encode()
    return b"%d:%b" % (len(data), data)

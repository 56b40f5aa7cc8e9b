"""The tape: the one source of choice. A run is described by its departures from a default run.

A choice is named by (stream label, site key, occurrence), and drawn from the seed by that name alone: removing one, or
adding a site, shifts no other. Only choices other than 0 are recorded; 0 always means "nothing special".

A tape may be *open*: then every place where a fault could strike is a site too, though no option asks for the fault. Such a
site is named apart from all others (its key begins with "!"), so that a run on an open tape from which nothing departs
there is the same as on a tape that is not open. An explorer lists these places (`Journal`), and strikes at them.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import random
import struct
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from simkit._options import need_seed
from simkit.errors import Problem, SimkitError

#: (stream label, site key, occurrence counted from 0).
Site = tuple[str, str, int]
#: What a run was asked: by (stream label, site key) how many occurrences, and how many values there were to choose from.
Asked = Mapping[tuple[str, str], tuple[int, int]]
#: How the key of a site begins that only open tapes have.
OPEN = "!"
#: Of a fault that happens or does not.
_ONE = (1,)
_RANGE = 1 << 64
#: One hash gives the numbers of so many occurrences of a site in a row.
_BLOCK = 8
_numbers = struct.Struct(f">{_BLOCK}Q").unpack
#: By a name of its own, as the guard puts something slower in place of `random.Random`.
_Random = random.Random


class Mask(Protocol):
    """What an open tape draws faults by."""

    def ratio(self, label: str, site_key: str) -> tuple[int, int]:
        """How often a fault strikes at such a site, as (numerator, denominator)."""
        ...

    def allows(self, label: str, site_key: str, value: int) -> bool:
        """Whether one that was drawn may strike; if so, it does."""
        ...


class Visit(NamedTuple):  # made at every site of a run
    """A site that a run came by."""

    site: Site
    values: Sequence[int]  # what it could have given instead of 0
    moment: int  # entries of the trace before it


class Journal:
    """Lists every site that a run comes by, in order."""

    def __init__(self) -> None:
        self.sites: list[Visit] = []
        #: Named points that held, with the place where: (name, host or empty, entries of the trace before it).
        self.held: list[tuple[str, str, int]] = []
        #: Says how many entries the trace has; the world sets it.
        self.moment: Callable[[], int] = int

    def note(self, site: Site, values: Sequence[int]) -> None:
        """The run comes by `site`."""
        self.sites.append(Visit(site, values, self.moment()))

    def holds(self, name: str, host: str) -> None:
        """A named point held."""
        self.held.append((name, host, self.moment()))


class _Site:
    """One site key of one stream: how often it was asked for a choice, and the numbers that come next."""

    __slots__ = ("asked", "block", "choices", "numbers")

    def __init__(self) -> None:
        self.asked = 0
        #: From how many values it chose the last time; 0 while it never had a choice.
        self.choices = 0
        #: What was drawn last: the numbers of that many occurrences from `block` times `_BLOCK` on.
        self.block = -1
        self.numbers: tuple[int, ...] = ()


class _Chooser:
    """Chooses at one site of a stream whose tape only draws; one object, as a closure is many."""

    __slots__ = ("_bounds", "_first", "_key", "_n", "_site", "_stream", "_tape")

    def __init__(self, stream: Stream, tape: Tape, site_key: str, site: _Site, bounds: tuple[int, ...]) -> None:
        self._stream = stream
        self._tape = tape
        self._key = site_key
        self._site = site
        self._n = 1 + len(bounds)
        self._bounds = bounds
        self._first = bounds[0]

    def choose(self) -> int:
        """As `Stream.choose`."""
        site = self._site
        occurrence = site.asked
        site.asked = occurrence + 1
        site.choices = self._n
        if occurrence // _BLOCK != site.block:
            self._stream.draw_block(self._key, site, occurrence // _BLOCK)
        drawn = site.numbers[occurrence % _BLOCK]
        if drawn < self._first:
            return 0
        value = bisect_right(self._bounds, drawn)
        self._tape.record((self._stream.label, self._key, occurrence), value)
        return value


class Stream:
    """The choices of one component, apart from all others."""

    def __init__(self, tape: Tape, label: str) -> None:
        self.label = label
        self._tape = tape
        self._sites: dict[str, _Site] = {}
        self._seen: dict[str, int] = {}
        self._sizes: dict[str, int] = {}
        self._bases: dict[int, hashlib.blake2b] = {}
        #: Whether its tape is open, see `fault`.
        self.open = tape.open

    def choose(self, site_key: str, n: int, weights: tuple[int, ...] | None = None) -> int:
        """Return a number below `n`, each equally likely unless integer `weights` say otherwise; recorded unless 0."""
        if n < 1 or (weights is not None and len(weights) != n):
            raise ValueError(f"{self.label}/{site_key}: {n} choices with weights {weights}")
        site = self._sites.get(site_key)
        if site is None:
            site = self._sites[site_key] = _Site()
        occurrence = site.asked
        site.asked = occurrence + 1
        if n == 1:
            return 0
        site.choices = n
        tape = self._tape
        if tape.guided:
            given = tape.told((self.label, site_key, occurrence), range(1, n))
            if given or tape.replays:
                return given
        if occurrence // _BLOCK != site.block:
            self.draw_block(site_key, site, occurrence // _BLOCK)
        drawn = site.numbers[occurrence % _BLOCK]
        value = drawn % n if weights is None else bisect_right(_bounds(weights), drawn)
        if value:
            tape.record((self.label, site_key, occurrence), value)
        return value

    def chooser(self, site_key: str, weights: tuple[int, ...]) -> Callable[[], int]:
        """Return what chooses as `choose(site_key, len(weights), weights)` does, for who asks very often."""
        n = len(weights)
        if n == 1 or self._tape.guided:
            return functools.partial(self.choose, site_key, n, weights)
        site = self._sites.get(site_key)
        if site is None:
            site = self._sites[site_key] = _Site()
        return _Chooser(self, self._tape, site_key, site, _bounds(weights)).choose

    def chance(self, site_key: str, num: int, den: int) -> bool:
        """Return True `num` times in `den`; recorded when True. What never happens may be struck on an open tape."""
        if num <= 0:
            return self.open and self.fault(site_key) == 1
        if num >= den:
            return True
        return self.choose(site_key, 2, (den - num, num)) == 1

    def fault(self, site_key: str, values: tuple[int, ...] = _ONE) -> int:
        """What happens where a fault could that no option asks for: one of `values`, or 0, which is nothing.

        Always 0 unless the tape is open. Asked by whatever can go wrong, at every place where it can.
        """
        tape = self._tape
        if not tape.open or not values:
            return 0
        key = OPEN + site_key
        occurrence = self._seen.get(key, 0)
        self._seen[key] = occurrence + 1
        self._sizes[key] = values[-1] + 1
        site = (self.label, key, occurrence)
        given = tape.told(site, values) if tape.guided else 0
        if given or tape.mask is None:
            return given
        num, den = tape.mask.ratio(self.label, key)
        if num <= 0:
            return 0
        weights = ((den - num) * len(values), *(num for _ in values))
        drawn = bisect_right(_bounds(weights), self._draw(b"fault", key, occurrence))
        if not drawn or not tape.mask.allows(self.label, key, values[drawn - 1]):
            return 0
        tape.record(site, values[drawn - 1])
        return values[drawn - 1]

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
        return _Random(self.source_seed(site_key))

    def source_seed(self, site_key: str) -> int:
        """What `random_source` of this key is seeded with."""
        return self._draw(b"source", site_key, 0)

    def asked(self) -> dict[str, tuple[int, int]]:
        """By site key: how often it was asked, and from how many values it chose the last time; of real choices only."""
        real = {key: (site.asked, site.choices) for key, site in self._sites.items() if site.choices}
        return real | {key: (self._seen[key], n) for key, n in self._sizes.items()}

    def _draw(self, use: bytes, site_key: str, occurrence: int) -> int:
        digest = self._base(8).copy()
        digest.update(use + _framed(site_key) + b"%d" % occurrence)
        return int.from_bytes(digest.digest(), "big")

    def draw_block(self, site_key: str, site: _Site, block: int) -> None:
        """Draw the numbers of the occurrences of `site` that `block` holds."""
        digest = self._base(8 * _BLOCK).copy()
        digest.update(b"choice" + _framed(site_key) + b"%d" % block)
        site.block, site.numbers = block, _numbers(digest.digest())

    def _base(self, size: int) -> hashlib.blake2b:
        """The hash of seed and label, which gives `size` bytes."""
        base = self._bases.get(size)
        if base is None:
            key = self._tape.entropy.to_bytes(32, "big")
            base = hashlib.blake2b(_framed(self.label), digest_size=size, key=key, person=b"simkit-tape")
            self._bases[size] = base
        return base


class Tape:
    """Every choice of one run: drawn from a seed, or read from the departures of an earlier run, or both."""

    def __init__(
        self,
        entropy: int,
        departures: Mapping[Site, int] | None = None,
        *,
        opened: bool = False,
        draws: bool = False,
        mask: Mask | None = None,
        journal: Journal | None = None,
    ) -> None:
        """Use `from_seed`, `from_departures` or `opened`."""
        if type(entropy) is not int or not 0 <= entropy < 1 << 256:
            need_seed("Tape: seed", entropy)
        self.entropy = entropy
        #: Whether choices are read rather than drawn.
        self.replays = departures is not None and not draws
        #: Whether places where nothing but a fault can happen are sites of it.
        self.open = opened
        self.mask = mask
        self.journal = journal
        #: Whether `told` is to be asked before anything is drawn.
        self.guided = departures is not None or journal is not None
        self._given: Mapping[Site, int] = departures or {}
        self._taken: dict[Site, int] = {}
        self._streams: dict[str, Stream] = {}

    @classmethod
    def from_seed(cls, seed: int) -> Tape:
        """A tape that draws its choices from `seed`."""
        return cls(seed)

    @classmethod
    def from_departures(cls, departures: Mapping[Site, int] | Iterable[Sequence[Any]], *, entropy: int = 0) -> Tape:
        """A tape that repeats `departures` and otherwise chooses 0; open when one of them strikes where only those do.

        Args:
            departures: what `departures()` gave, or its JSON form, rows of (label, key, occurrence, value).
            entropy: where meaningless bytes come from; the seed of the first run, for the same bytes.
        """
        given = dict(departures if isinstance(departures, Mapping) else (_parsed(row) for row in departures))
        return cls(entropy, given, opened=any(key.startswith(OPEN) for _, key, _ in given))

    @classmethod
    def opened(
        cls,
        departures: Mapping[Site, int] | None = None,
        *,
        entropy: int = 0,
        draws: bool = False,
        mask: Mask | None = None,
        journal: Journal | None = None,
    ) -> Tape:
        """An open tape.

        Args:
            departures: what the run departs in.
            entropy: where drawn choices and meaningless bytes come from.
            draws: whether ordinary choices that are not among `departures` are drawn; else they are 0.
            mask: how often faults are drawn; without one only those of `departures` strike.
            journal: gets every site that the run comes by.
        """
        return cls(entropy, dict(departures or {}), opened=True, draws=draws, mask=mask, journal=journal)

    def stream(self, label: str) -> Stream:
        """The stream called `label`; always the same object."""
        if label not in self._streams:
            self._streams[label] = Stream(self, label)
        return self._streams[label]

    def departures(self) -> dict[Site, int]:
        """Every choice so far that was not 0, by site, sorted."""
        return dict(sorted(self._taken.items())) if self._taken else {}

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

    def told(self, site: Site, values: Sequence[int]) -> int:
        """Look a choice up; one that is not among `values` now counts as 0, and shows in `unused`."""
        if self.journal is not None:
            self.journal.note(site, values)
        value = self._given.get(site, 0)
        if value and value in values:
            self._taken[site] = value
            return value
        return 0

    def setting(self, label: str, site_key: str) -> int:
        """A number that only an explorer gives, such as when the faults end; 0 unless it is among the departures."""
        site = (label, OPEN + site_key, 0)
        value = self._given.get(site, 0)
        if value:
            self._taken[site] = value
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


@functools.lru_cache(maxsize=1024)
def _bounds(weights: tuple[int, ...]) -> tuple[int, ...]:
    """From which drawn number on the value is 1, 2, …; integer arithmetic only, so that every platform draws the same."""
    total = sum(weights)
    if total <= 0 or min(weights) < 0:
        raise ValueError(f"weights must be 0 or more and not all 0: {weights}")
    return tuple(-(-below * _RANGE // total) for below in itertools.accumulate(weights[:-1]))


@functools.lru_cache(maxsize=4096)
def _framed(text: str) -> bytes:
    """Length first, so that no two lists of strings read the same."""
    data = text.encode()
    return b"%d:%b" % (len(data), data)

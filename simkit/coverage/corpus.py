"""A corpus: tapes worth changing a little, since each showed something that no smaller one did; kept on disk.

Which one is changed next is drawn by energy, high for tapes whose features are rare among all runs so far: after AFLFast
(M. Böhme and others, "Coverage-based Greybox Fuzzing as Markov Chain", CCS 2016) and Entropic (M. Böhme and others,
"Boosting Fuzzer Efficiency: An Information Theoretic Perspective", FSE 2020). Unlike AFLFast, energy counts features
instead of whole paths, and a tape that is chosen often without result loses energy instead of gaining it, since runs here
are few. Unlike Entropic, each feature lends energy to one tape only, the one that owns it: energy is a sum of integer
quotients, the same on every machine, and is not an entropy.
"""

from __future__ import annotations

import bisect
import itertools
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from random import Random

import attrs

from simkit.coverage.due import Due, due
from simkit.coverage.edges import stem_of
from simkit.coverage.entry import DamagedError, Entry, Place, entry_of
from simkit.errors import Problem, SimkitError
from simkit.strategy import Segment
from simkit.tape import Asked, Site

#: Energy that a feature lends when one run alone has shown it.
UNIT = 1 << 20
ENTRIES_MAX = 2000
#: When so many features are known, no more are new.
FEATURES_MAX = 1_000_000
_TRIED_MAX = 100_000
#: The chances of being drawn are worked out anew after so many offers.
_REFRESH = 16


class CorpusDamagedWarning(UserWarning):
    """A file of a corpus was set aside."""


@attrs.define
class Kept:
    """An entry in a corpus, and what the corpus knows of it."""

    entry: Entry
    #: The features that give it energy: it was the first to show them, or took the place of the one that was.
    owned: list[str]
    #: Places that nobody was asked at before, from which occurrence on.
    fresh: list[tuple[Place, int]]
    #: What is to be tried one by one with it; the last is next.
    due: list[Due]
    #: How often it was changed so far.
    chosen: int = 0


class Corpus:
    """Tapes in the order of coming. The same calls give the same corpus.

    Args:
        entries_max: when there are more, the one with the least energy goes.
    """

    def __init__(self, *, entries_max: int = ENTRIES_MAX) -> None:
        if entries_max < 1:
            raise ValueError(f"a corpus has room for at least one entry, not {entries_max}")
        self.entries_max = entries_max
        #: How many runs have shown each feature that any has.
        self.hits: dict[str, int] = {}
        self._stems: dict[str, int] = {}
        self._kept: dict[str, Kept] = {}
        self._asked: dict[Place, int] = {}
        self._tried: set[bytes] = set()
        self._gone: dict[str, None] = {}
        self._unsaved: dict[str, None] = {}
        self._sums: list[int] = []
        self._stale = 0

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[Entry]:
        return (kept.entry for kept in self._kept.values())

    def offer(
        self,
        departures: Mapping[Site, int],
        schedule: Iterable[Segment],
        features: Iterable[str],
        *,
        asked: Asked | None = None,
        taken: tuple[Segment, ...] = (),
        moments: Mapping[str, int] | None = None,
    ) -> int:
        """Tell of a run, and return how many features it is the first to show; the tape is kept if there are any.

        A tape that shows nothing new is kept instead of every larger one all of whose features it shows too.

        Args:
            departures: where the run departed, `Outcome.departures`.
            schedule: as followed by a `LooseSchedule`; `LooseSchedule.plan()` is the shortest that does.
            features: what the run showed, `Features.take()`.
            asked: what the run was asked, `Tape.asked()`: where a mutant may depart.
            taken: who took the steps, `Outcome.schedule`: where a mutant may switch.
            moments: after how many steps each edge was first taken, `Features.moments`: where a mutant had better switch.
        """
        shown = sorted(features)
        room = len(self.hits) < FEATURES_MAX  # a program may make up names without end
        new = [feature for feature in shown if room and feature not in self.hits]
        for feature in shown:
            if room or feature in self.hits:
                self.hits[feature] = self.hits.get(feature, 0) + 1
        stems = dict.fromkeys(map(stem_of, shown))
        frontier = max(((moments or {}).get(stem, 0) for stem in stems if stem not in self._stems), default=0)
        for stem in stems:
            self._stems[stem] = self._stems.get(stem, 0) + 1
        entry = entry_of(departures, schedule, shown, asked=asked, taken=taken, frontier=frontier)
        larger = [old for old in self if entry.features >= old.features and entry.size < old.size]
        if new or larger:
            self._keep(entry, new, larger)
        self._stale += 1
        return len(new)

    def adopt(self, entry: Entry) -> int:
        """Offer an entry of another corpus."""
        moments = dict.fromkeys(map(stem_of, entry.features), entry.frontier)
        schedule, asked, taken = entry.schedule, entry.asked, entry.taken
        return self.offer(entry.departures, schedule, entry.features, asked=asked, taken=taken, moments=moments)

    def energy(self, entry: Entry) -> int:
        """How likely the entry is to be drawn, beside others."""
        return self._energy(self._kept[entry.id])

    def pick(self, rng: Random) -> Kept:
        """Draw an entry by energy; IndexError when there is none."""
        kept = list(self._kept.values())
        if self._stale >= _REFRESH or len(self._sums) != len(kept):
            self._sums = list(itertools.accumulate(map(self._energy, kept)))
            self._stale = 0
        drawn = rng.randrange(self._sums[-1]) if self._sums else 0
        return kept[bisect.bisect_right(self._sums, drawn)]

    def untried(self, tape: bytes) -> bool:
        """Whether no mutant with this digest was made before; from now on one was."""
        if tape in self._tried:
            return False
        if len(self._tried) >= _TRIED_MAX:
            self._tried.clear()
        self._tried.add(tape)
        return True

    def merge(self, other: Corpus) -> int:
        """Offer every entry of another corpus, and return how many features were new; hits add up."""
        mine = dict(self.hits)
        found = sum(map(self.adopt, other))
        for feature, times in other.hits.items():
            self.hits[feature] = mine.get(feature, 0) + times
        return found

    # ---- on disk

    @classmethod
    def load(cls, folder: Path, *, entries_max: int = ENTRIES_MAX) -> Corpus:
        """Read the entries in a folder, smaller tapes first; an empty corpus when there is no such folder.

        A damaged file is renamed to `….damaged`, with a CorpusDamagedWarning. One of another schema raises SimkitError.
        """
        corpus = cls(entries_max=entries_max)
        entries = [entry for path in sorted(folder.glob("*.json")) for entry in _loaded(path)]
        for entry in sorted(entries, key=_size):
            corpus.adopt(entry)
        return corpus

    def save(self, folder: Path) -> None:
        """Write each entry to a file of its own, named by its digest; take away files of entries that were replaced.

        SimkitError when the folder cannot be written; what was written so far stays, and is whole.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for entry in self:
                if entry.id in self._unsaved or not (folder / f"{entry.id}.json").exists():
                    entry.save(folder)
            for gone in self._gone:
                (folder / f"{gone}.json").unlink(missing_ok=True)
        except OSError as error:
            what = f"the corpus cannot be written: {error.strerror}"
            raise SimkitError(
                Problem("corpus-unwritable", what, str(folder), "a folder with room to write in")
            ) from error
        self._unsaved.clear()
        self._gone.clear()

    # ---- inside

    def _energy(self, kept: Kept) -> int:
        return 1 + sum(UNIT // (self._stems[stem_of(feature)] + kept.chosen) for feature in kept.owned)

    def _keep(self, entry: Entry, new: list[str], larger: list[Entry]) -> None:
        """Keep an entry, which takes over what the larger ones owned and what was still to be tried with them."""
        known = [self._kept[entry.id].entry] if entry.id in self._kept else []
        gone = [self._drop(old) for old in (*known, *larger)]
        fresh = self._asked_first(entry.asked)
        kept = Kept(entry, [*new], fresh, due(entry, tuple(fresh)))
        for old in gone:
            kept.owned += old.owned
            kept.fresh += [(place, first) for place, first in old.fresh if first < entry.asked.get(place, (0, 0))[0]]
            kept.due += [change for change in old.due if change.schedule is None]
        self._gone.pop(entry.id, None)
        self._kept[entry.id] = kept
        self._unsaved[entry.id] = None
        while len(self._kept) > self.entries_max:
            self._drop(min(self, key=self._worth))
        self._stale = _REFRESH

    def _worth(self, entry: Entry) -> tuple[int, str]:
        return self.energy(entry), entry.id

    def _drop(self, entry: Entry) -> Kept:
        """Let an entry go."""
        self._gone[entry.id] = None
        self._unsaved.pop(entry.id, None)
        self._stale = _REFRESH
        return self._kept.pop(entry.id)

    def _asked_first(self, asked: Asked) -> list[tuple[Place, int]]:
        found = []
        for place, (times, _) in asked.items():
            known = self._asked.get(place, 0)
            if times > known:
                found.append((place, known))
                self._asked[place] = times
        return found


def _loaded(path: Path) -> list[Entry]:
    try:
        return [Entry.load(path)]
    except FileNotFoundError:
        return []  # replaced by another process since the folder was listed
    except DamagedError as damaged:
        aside = path.with_suffix(".damaged")
        path.replace(aside)
        text = f"{path} is no entry of a corpus ({damaged}); it was renamed to {aside.name}"
        warnings.warn(text, CorpusDamagedWarning, stacklevel=3)
        return []


def _size(entry: Entry) -> tuple[object, ...]:
    return entry.size

"""Kinds of failure (obligation and anomaly) that a campaign has shown so far, and which runs of a kind are worth keeping."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeAlias

import attrs

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from conformance.campaign.judged import Judged

Kind: TypeAlias = tuple[str, str]
#: Cases kept of one kind; a mutant fails in hundreds of seeds alike.
CASES_MAX = 3


def kinds(judged: Judged) -> list[Kind]:
    """Obligation and anomaly of each violation, each once."""
    found = ((id_, one.anomaly) for id_, finding in judged.findings.items() for one in finding.violations)
    return list(dict.fromkeys(found))


def answered_for(shown: Iterable[str], claimed: Collection[str], wanted: str | None) -> tuple[list[str], list[str]]:
    """Of violations ("EFF-1 duplicate effect"), each once: those that make the answer of a replay, and those told beside it.

    A target answers for what it claims; a case, for what it was saved for (`wanted`), whether that is claimed or not.
    """
    every = list(dict.fromkeys(shown))
    ours = [one for one in every if one == wanted or one.partition(" ")[0] in claimed]
    return ours, [one for one in every if one not in ours]


@attrs.define
class Kinds:
    """Counts the runs with a case that showed each kind, and knows the kinds that have a small case."""

    _counts: Counter[Kind] = attrs.field(factory=Counter)
    _small: set[Kind] = attrs.field(factory=set)

    def has(self, kind: Kind) -> bool:
        """Whether a run has shown it."""
        return self._counts[kind] > 0

    def made_small(self, found: Iterable[Kind]) -> None:
        self._small.update(found)

    def needs_whole(self, judged: Judged, small: Collection[Kind], claimed: Collection[str]) -> bool:
        """Whether this run is to be kept as it was, where failures are made `small`: the small one stands for all of its kind,
        and of what is not claimed one case is enough.
        """
        left = [kind for kind in kinds(judged) if kind not in small and kind not in self._small]
        return any(kind[0] in claimed or not self.has(kind) for kind in left)

    def is_fresh(self, judged: Judged) -> bool:
        """Does the run show something that few told ones show? Counts it when it does."""
        found = set(kinds(judged))
        fresh = judged.case is not None and any(self._counts[kind] < CASES_MAX for kind in found)
        if fresh:
            self._counts.update(found)
        return fresh

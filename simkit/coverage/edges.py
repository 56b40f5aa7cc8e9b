"""Edges of the program's code that a run took, and how often: by `sys.monitoring`, or where there is none by `sys.settrace`.

Both see one code object in one frame at a time, so that tasks that take turns make no edges between their lines. How
often is told in steps of 1, 2, 3, 4-7, 8-15, 16-31, 32-127, 128 and more: a loop that runs once more is nothing new, one
that runs twice as long is. Source: M. Zalewski, american fuzzy lop, technical whitepaper, "Coverage measurements".
Unlike there, edges have names instead of places in a table, so that no two are taken for one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from simkit.coverage.scope import Scope

#: The least number of times for each step.
_STEPS = (128, 32, 16, 8, 4, 3, 2, 1)


class EdgesSkippedWarning(UserWarning):
    """Edges of the program are not collected, because somebody else traces it."""


class Edges(Protocol):
    """A way to see edges."""

    #: Why it sees none; empty when it does.
    blind: str
    #: When each edge of the last run was first taken, without how often: what `begin` was given said so.
    moments: Mapping[str, int]

    def install(self) -> None:
        """Be ready to see runs."""
        ...

    def begin(self, moment: Callable[[], int]) -> None:
        """See from here on; `moment` says how far the run is."""
        ...

    def end(self) -> list[str]:
        """See no more, and tell what was seen: edges as features, sorted."""
        ...

    def remove(self) -> None:
        """Leave everything as it was before `install`."""
        ...


def edges_of(scope: Scope) -> Edges:
    """The best way that this Python has."""
    if sys.version_info >= (3, 12):
        from simkit.coverage.monitoring import MonitoredEdges

        return MonitoredEdges(scope)
    from simkit.coverage.tracing import TracedEdges

    return TracedEdges(scope)


def told(counts: Iterable[tuple[str, int]]) -> list[str]:
    """Edges and how often each was taken, as features."""
    return sorted(f"{edge(name)} x{step(times)}" for name, times in counts)


def edge(name: str) -> str:
    """An edge, however often it is taken."""
    return f"edge {name}"


def stem_of(feature: str) -> str:
    """A feature without how often: an edge is rare when few runs take it, not when few take it just so many times."""
    return feature.rpartition(" x")[0] if feature.startswith("edge ") else feature


def step(times: int) -> int:
    """The least number of the step that `times` is in."""
    return next(least for least in _STEPS if times >= least)

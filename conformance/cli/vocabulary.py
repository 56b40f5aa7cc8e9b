"""The words of a report that are not ids, explained from the registries: anomalies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance import events as e
from conformance.cli import listing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def explained(wanted: str) -> Iterator[e.Explained]:
    """Every meaning that `wanted` has among these words; none where it has none."""
    from scenarios.obligations import ANOMALIES

    if (lower := wanted.lower()) in ANOMALIES:
        yield _anomaly(lower, ANOMALIES[lower])


def listed() -> Iterator[e.Listed]:
    """All of these words, by kind."""
    from scenarios.obligations import ANOMALIES

    yield from (e.Listed("anomalies", name, what) for name, what in ANOMALIES.items())


def known() -> Iterable[str]:
    """Names that `explained` knows, to find the nearest."""
    return (one.id for one in listed())


def _anomaly(name: str, meaning: str) -> e.Explained:
    users = [one for one in listing.registry().values() if name in one.anomalies]
    sections = {"what it means": meaning, "found by": "\n".join(f"{one.id}  {one.promise}" for one in users)}
    return e.Explained("anomaly", name, "what a broken promise is called", sections)

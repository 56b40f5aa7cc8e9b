"""Passes over the departures of a tape: fewer actors, fewer operations, fewer faults; then smaller values, earlier ones."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from simkit.shrinking.search import Departures, Search
from simkit.shrinking.subsets import fewest
from simkit.tape import Site

_Item = tuple[Site, int]
#: Groups are tried as a whole first when there are at least so many departures for each.
_WORTH_GROUPING = 4


def fewer(search: Search) -> None:
    """Leave out every departure that is not needed."""
    if search.best.departures and search.fails(departures={}):
        return
    _fewer_groups(search, lambda site: site[0])  # actors: a stream is one component's
    _fewer_groups(search, lambda site: site[:2])  # operations: a site key is one of theirs
    items = _items(search.best.departures)
    if items:
        fewest(items, lambda kept: search.fails(departures=dict(kept)))


def smaller(search: Search) -> None:
    """Make what is left smaller: the lowest value, the earliest occurrence."""
    for site in list(search.best.departures):
        if site in search.best.departures:
            _lower_value(search, site)
    for site in list(search.best.departures):
        if site in search.best.departures:
            _earlier_occurrence(search, site)


def _fewer_groups(search: Search, group_of: Callable[[Site], Hashable]) -> None:
    groups: dict[Hashable, list[_Item]] = {}
    for site, value in _items(search.best.departures):
        groups.setdefault(group_of(site), []).append((site, value))
    if len(groups) > 1 and len(search.best.departures) >= _WORTH_GROUPING * len(groups):
        members = list(groups.values())
        fewest(members, lambda kept: search.fails(departures=dict(item for group in kept for item in group)))


def _lower_value(search: Search, site: Site) -> None:
    """Bisect between 1 and the value that it has."""
    low, high = 1, search.best.departures[site]
    candidate = 1
    while low < high:
        if search.fails(departures={**search.best.departures, site: candidate}):
            high = candidate
        else:
            low = candidate + 1
        candidate = (low + high) // 2


def _earlier_occurrence(search: Search, site: Site) -> None:
    """The same choice, made sooner at the same place, is easier to follow."""
    label, key, occurrence = site
    value = search.best.departures[site]
    others = {other: kept for other, kept in search.best.departures.items() if other != site}
    for sooner in sorted({0, occurrence // 2, occurrence - 1}):
        moved = (label, key, sooner)
        free = 0 <= sooner < occurrence and moved not in others
        if free and search.better(departures={**others, moved: value}):
            return


def _items(departures: Departures) -> list[_Item]:
    return sorted(departures.items())

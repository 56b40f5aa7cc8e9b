"""Which of too many candidates are tried: evenly spread, and every kind gets its share."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

__all__ = ["fair", "spread", "spread_indices"]

T = TypeVar("T")


def spread_indices(count: int, most: int) -> list[int]:
    """At most `most` of the numbers below `count`, evenly spread and with both ends."""
    if count <= most:
        return list(range(count))
    if most < 2:
        return list(range(most))
    return [index * (count - 1) // (most - 1) for index in range(most)]


def spread(items: Sequence[T], most: int) -> list[T]:
    """At most `most` of them, evenly spread and with both ends."""
    return [items[index] for index in spread_indices(len(items), most)]


def fair(items: Sequence[T], kind: Callable[[T], Hashable], most: int) -> list[T]:
    """At most `most` of them, in their order; no kind gets more than another that has some left, each is evenly spread."""
    if len(items) <= most:
        return list(items)
    groups: dict[Hashable, list[int]] = {}
    for index, item in enumerate(items):
        groups.setdefault(kind(item), []).append(index)
    shares = _shares([len(group) for group in groups.values()], most)
    chosen = [index for group, share in zip(groups.values(), shares, strict=True) for index in spread(group, share)]
    return [items[index] for index in sorted(chosen)]


def _shares(sizes: list[int], most: int) -> list[int]:
    """How many of `most` each group gets: all of a small one, and the same for each of the rest."""
    shares = [0] * len(sizes)
    left, open_ones = most, list(range(len(sizes)))
    while left and open_ones:
        each = max(1, left // len(open_ones))
        for group in list(open_ones):
            more = min(each, sizes[group] - shares[group], left)
            shares[group] += more
            left -= more
            if shares[group] == sizes[group]:
                open_ones.remove(group)
    return shares

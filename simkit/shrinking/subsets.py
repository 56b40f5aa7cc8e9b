"""The search that tapes and schedules share: the fewest of a list of items that are needed.

Bisection for the last item that is needed, again and again (as QuickXplain does; Junker, AAAI 2004): for `m` needed items of
`n` it takes about `m log2 n` runs where delta debugging (Zeller and Hildebrandt, TSE 2002) takes several times that. It
relies on nothing but luck being better when needs are monotone; a last look at every item that is left makes up for the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def fewest(items: Sequence[T], fails: Callable[[list[T]], bool]) -> list[T]:
    """A part of `items`, in their order, that still fails; `items` as a whole is known to.

    Args:
        fails: whether a run with only these items fails the same.
    """
    if not items or fails([]):
        return []
    needed: list[T] = []  # found so far, in order; they come after all that is left
    left = list(items)
    while left:
        length = _shortest(left, needed, fails)
        if length == 0:
            break
        needed.insert(0, left[length - 1])
        left = left[: length - 1]
        if left and fails(needed):
            break
    return _one_by_one(needed, fails) if len(needed) > 1 else needed


def _shortest(left: list[T], needed: list[T], fails: Callable[[list[T]], bool]) -> int:
    """The length of a short beginning of `left` that fails together with `needed`; the whole is known to."""
    low, high = 0, len(left)  # `high` fails; below `low` nothing is expected to
    while low < high:
        middle = (low + high) // 2
        if fails(left[:middle] + needed):
            high = middle
        else:
            low = middle + 1
    return high


def _one_by_one(items: list[T], fails: Callable[[list[T]], bool]) -> list[T]:
    """Leave out each item that is not needed after all."""
    kept = list(items)
    at = len(kept) - 1
    while at >= 0:
        fewer = kept[:at] + kept[at + 1 :]
        if fails(fewer):
            kept = fewer
        at -= 1
    return kept

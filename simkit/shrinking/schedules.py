"""Passes over a plan: fewer segments, fewer pre-emptions, then earlier ones and lower task numbers.

Segments, not positions: leaving one out shifts no other, so that what is needed survives what is not.
"""

from __future__ import annotations

from collections.abc import Callable

from simkit.shrinking.search import Plan, Search
from simkit.shrinking.subsets import fewest

_Change = Callable[[Search, Plan, int], list[Plan]]
#: "Until it cannot go on".
_TO_BLOCK = 1 << 30
#: Plans up to this length are also tried with neighbours exchanged.
_SWAPS_MAX = 12


def fewer(search: Search) -> None:
    """Leave out every segment that is not needed."""
    if search.best.plan and search.fails(plan=()):
        return
    segments = list(search.best.plan)
    if segments:
        fewest(segments, lambda kept: search.fails(plan=tuple(kept)))


def smoother(search: Search) -> None:
    """Undo moves one by one, let segments run until they block, join visits of one task, shorten what is left."""
    _each(search, _undo)
    _each(search, _run_on)
    _each(search, _join)
    if len(search.best.plan) <= _SWAPS_MAX:
        _each(search, _exchange)
    _each(search, _shorten)


def _each(search: Search, change: _Change) -> None:
    """Try `change` at every segment, from the last to the first, going on from whatever became better."""
    at = len(search.best.plan) - 1
    while at >= 0:
        plan = search.best.plan
        if at < len(plan):
            for candidate in change(search, plan, at):
                if search.better(plan=candidate):
                    break
        at -= 1


def _undo(search: Search, plan: Plan, at: int) -> list[Plan]:
    """At a move, let the task run that would by default, or else the one with the lowest number."""
    begins = sum(steps for _, steps in plan[:at])
    task, steps = plan[at]
    moves = [move for move in search.best.moves if begins <= move.step < begins + steps]
    others = [other for move in moves for other in (move.instead_of, move.lowest) if other != task]
    return [(*plan[:at], (other, steps), *plan[at + 1 :]) for other in others]


def _run_on(_search: Search, plan: Plan, at: int) -> list[Plan]:
    task, _ = plan[at]
    return [(*plan[:at], (task, _TO_BLOCK), *plan[at + 1 :])]


def _join(_search: Search, plan: Plan, at: int) -> list[Plan]:
    """Join a segment with the next one of its task, here or there."""
    task, steps = plan[at]
    for later in range(at + 2, len(plan)):
        if plan[later][0] == task:
            whole = (task, steps + plan[later][1])
            between, rest = plan[at + 1 : later], plan[later + 1 :]
            return [(*plan[:at], whole, *between, *rest), (*plan[:at], *between, whole, *rest)]
    return []


def _exchange(_search: Search, plan: Plan, at: int) -> list[Plan]:
    return [(*plan[:at], plan[at + 1], plan[at], *plan[at + 2 :])] if at + 1 < len(plan) else []


def _shorten(_search: Search, plan: Plan, at: int) -> list[Plan]:
    task, steps = plan[at]
    return [
        (*plan[:at], (task, fewer), *plan[at + 1 :])
        for fewer in sorted({1, steps // 2, steps - 1})
        if 0 < fewer < steps
    ]

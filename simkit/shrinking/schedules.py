"""Passes over a plan: fewer segments, fewer pre-emptions, then earlier ones and lower task numbers.

Segments, not positions: leaving one out shifts no other, so that what is needed survives what is not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from simkit.shrinking.search import Plan, Search
from simkit.shrinking.subsets import fewest

_Change = Callable[[Search, Plan, int], list[Plan]]
#: "Until it cannot go on".
_TO_BLOCK = 1 << 30
#: From so many on, tasks are left out as a whole first.
_MANY_TASKS = 8
#: A task in so many pieces is put together as a whole first.
_MANY_PIECES = 4
#: Plans up to this length are also tried with neighbours exchanged.
_SWAPS_MAX = 12


def fewer(search: Search) -> None:
    """Leave out every segment that is not needed."""
    if search.best.plan and search.fails(plan=()):
        return
    _fewer_tasks(search)
    _gather(search)
    segments = list(search.best.plan)
    if segments:
        fewest(segments, lambda kept: search.fails(plan=tuple(kept)))


def _fewer_tasks(search: Search) -> None:
    """Leave every task to the default that does not matter, when there are many."""
    plan = search.best.plan
    tasks = list(dict.fromkeys(task for task, _ in plan))
    if len(tasks) > _MANY_TASKS:
        fewest(tasks, lambda kept: search.fails(plan=tuple(one for one in plan if one[0] in kept)))


def _gather(search: Search) -> None:
    """Let a task that is cut to many pieces go on where it begins, or else where it ends; most pieces first."""
    pieces = Counter(task for task, _ in search.best.plan)
    for task, count in sorted(pieces.items(), key=lambda item: (-item[1], item[0])):
        if count < _MANY_PIECES:
            break
        plan = search.best.plan
        places = [at for at, (number, _) in enumerate(plan) if number == task]
        whole = (task, _TO_BLOCK)
        for place in dict.fromkeys((*places[:1], *places[-1:])):
            before = [one for one in plan[:place] if one[0] != task]
            after = [one for one in plan[place:] if one[0] != task]
            if search.better(plan=(*before, whole, *after)):
                break


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

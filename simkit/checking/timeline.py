"""One part of a history put in order, so that the search meets nothing but small integers and short tuples.

Operations that returned are numbered in the order of their returns. `first` being the lowest one that has no place yet, only
those called before `first` returned can come next; they are listed for each `first` beforehand.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import attrs

from simkit.checking.history import Operation
from simkit.checking.model import UNKNOWN, Asked, Model

#: An operation that may come next: (number, asked, answer, twin). A twin is the next earlier one among those listed that
#: asks and got the same: to place this one before it would show nothing new. It is told by its number, or -1. Operations
#: that did not return have numbers -1, -2, …, and their twin is told by its bit in a set of them, or 0.
Candidate = tuple[int, Asked, Any, int]


@attrs.frozen
class Timeline:
    """One part of a history."""

    operations: tuple[Operation, ...]  # those that returned, by return
    #: By `first`: those that may come next and may change the state.
    writers: tuple[tuple[Candidate, ...], ...]
    #: By `first`: those that may come next and change no state.
    readers: tuple[tuple[Candidate, ...], ...]
    #: By `first`: the readers that were not listed for the one before.
    fresh: tuple[tuple[Candidate, ...], ...]
    #: Those that did not return and may matter, in the order of their calls.
    unknown: tuple[Operation, ...]
    doubtful: tuple[Candidate, ...]  # the same, as candidates
    #: By `first`: how many of the doubtful ones may come next.
    reach: tuple[int, ...]
    #: By `first`: the reader that returns next, where all that may come before it only grows the state; else None.
    goals: tuple[Candidate | None, ...]


def timeline(operations: Sequence[Operation], model: Model) -> Timeline:
    """Put one part in order. Reads that did not return constrain nothing, and are left out."""
    reads = model.reads
    done = sorted((one for one in operations if one.returned is not None), key=_returned)
    unknown = sorted(
        (one for one in operations if one.returned is None and not reads(one.asked, UNKNOWN)),
        key=lambda one: one.called,
    )
    by_call = sorted(range(len(done)), key=lambda number: done[number].called)
    writers, readers, fresh = [], [], []
    open_: dict[int, None] = {}  # called, not returned; in no order
    at = 0
    for first, operation in enumerate(done):
        new = []
        while at < len(by_call) and done[by_call[at]].called <= _returned(operation):
            if by_call[at] >= first:
                open_[by_call[at]] = None
                new.append(by_call[at])
            at += 1
        listed = [(number, done[number].asked, done[number].answer) for number in sorted(open_)]
        may_write = [one for one in listed if not reads(one[1], one[2])]
        may_not = [(*one, -1) for one in listed if reads(one[1], one[2])]
        writers.append(_with_twins(may_write))
        readers.append(tuple(may_not))
        fresh.append(tuple(one for one in may_not if one[0] in new))
        del open_[first]
    doubtful = tuple(
        (~number, asked, answer, 0 if twin < 0 else 1 << twin)
        for number, asked, answer, twin in _with_twins([(at, one.asked, UNKNOWN) for at, one in enumerate(unknown)])
    )
    reach = tuple(sum(1 for one in unknown if one.called <= _returned(operation)) for operation in done)
    goals = _goals(done, writers, unknown, model)
    return Timeline(tuple(done), tuple(writers), tuple(readers), tuple(fresh), tuple(unknown), doubtful, reach, goals)


def _goals(
    done: Sequence[Operation], writers: Sequence[Sequence[Candidate]], unknown: Sequence[Operation], model: Model
) -> tuple[Candidate | None, ...]:
    grows, reads = model.grows, model.reads
    goals: list[Candidate | None] = [None] * (len(done) + 1)
    if grows is None or model.within is None or not all(grows(one.asked) for one in unknown):
        return tuple(goals)
    goal: Candidate | None = None
    for number in range(len(done) - 1, -1, -1):
        one = done[number]
        if reads(one.asked, one.answer):
            only_growth = all(grows(asked) for _, asked, _, _ in writers[number])
            goal = (number, one.asked, one.answer, -1) if only_growth else None
        elif not grows(one.asked):
            goal = None
        goals[number] = goal
    return tuple(goals)


def _returned(operation: Operation) -> float:
    assert operation.returned is not None
    return operation.returned


def _with_twins(listed: Sequence[tuple[int, Asked, Any]]) -> tuple[Candidate, ...]:
    latest: dict[Hashable, int] = {}
    candidates = []
    for number, asked, answer in listed:
        try:
            twin = latest.get((asked, answer), -1)
            latest[asked, answer] = number
        except TypeError:  # not hashable: it is taken for the only one of its kind
            twin = -1
        candidates.append((number, asked, answer, twin))
    return tuple(candidates)


def parts(
    operations: Sequence[Operation], partition: Callable[[Asked], Hashable], whole: object
) -> list[list[Operation]]:
    """The parts of a history that can be judged one by one, in the order of their first calls."""
    found: dict[Hashable, list[Operation]] = {}
    for operation in operations:
        part = partition(operation.asked)
        if part is whole:
            return [list(operations)]
        found.setdefault(part, []).append(operation)
    return list(found.values())


def overlapping(line: Timeline, number: int) -> list[Operation]:
    """Those that overlap with one; of those that did not return, all that were called before it did."""
    one, end = line.operations[number], _returned(line.operations[number])
    others = [other for at, other in enumerate(line.operations) if at != number and _returned(other) >= one.called]
    return [other for other in (*others, *line.unknown) if other.called <= end]

"""Which column a place belongs to: one for each process of a host, the outside first; for each task where tasks decide.

A process is split into its tasks when the order of two of them decides, or when there is no other process: then schedules
are what the run is about. Threads that lose their turn have columns as well. Restarts of a process stay in its column. What
does not fit shares the last column.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

import attrs

from simkit.spacetime.model import OUTSIDE, Draft, Lane, Place

_OTHERS = Place("…")


@attrs.frozen
class Lanes:
    """The columns of one table, and where each place goes."""

    lanes: tuple[Lane, ...]
    split: frozenset[Place]
    _known: Mapping[Place, int]

    def of(self, place: Place) -> int:
        """The column of a place."""
        for candidate in (place, Place(place.host, place.process)):
            if candidate in self._known:
                return self._known[candidate]
        same_host = [lane for known, lane in self._known.items() if known.host == place.host]
        return same_host[0] if same_host else self._known.get(_OTHERS, 0)

    def all_of(self, process: Place) -> list[int]:
        """The columns of a process: those of its tasks and threads, if they have some."""
        own = [lane for place, lane in self._known.items() if Place(place.host, place.process) == process]
        return own or [self.of(process)]

    def in_split(self, place: Place) -> bool:
        """Whether its process has a column for each task."""
        return Place(place.host, place.process) in self.split


def lanes_of(
    drafts: Collection[Draft], deciding: Collection[int], name: Callable[[int], str], *, lanes_max: int
) -> Lanes:
    """Lay out the columns.

    Args:
        drafts: the rows of the run.
        deciding: numbers of the tasks whose order decides.
        name: a task's name by its number.
        lanes_max: no more columns than this.
    """
    seen = [place for draft in drafts for place in (draft.place, draft.to) if place is not None]
    processes = dict.fromkeys(sorted({Place(one.host, one.process): None for one in seen}, key=_outside_first))
    for bare in [one for one in processes if not one.process and one.host != OUTSIDE]:
        if sum(other.host == bare.host for other in processes) > 1:
            del processes[bare]  # what happens to a host is told in the column of its first process
    split = _to_split(processes, seen, deciding)
    columns: dict[Place, str] = {}
    for process in processes:
        if process in split:
            columns |= _tasks(process, seen, deciding, name)
        else:
            alone = sum(other.host == process.host for other in processes) == 1
            columns[process] = process.host if alone or not process.process else f"{process.host}/{process.process}"
    return _fitted(columns, frozenset(split), lanes_max)


def _outside_first(place: Place) -> bool:
    return place.host != OUTSIDE


def _to_split(processes: Iterable[Place], seen: Iterable[Place], deciding: Collection[int]) -> list[Place]:
    by_process: dict[Place, dict[Place, None]] = {process: {} for process in processes}
    for place in seen:
        process = Place(place.host, place.process)
        if place != process and process in by_process:
            by_process[process][place] = None
    if len(by_process) == 1:
        return [process for process, places in by_process.items() if len(places) > 1]
    return [
        process
        for process, places in by_process.items()
        if sum(place.task in deciding for place in places) > 1 or sum(bool(place.thread) for place in places) > 1
    ]


def _tasks(
    process: Place, seen: Iterable[Place], deciding: Collection[int], name: Callable[[int], str]
) -> dict[Place, str]:
    tasks = sorted(
        {one.task: None for one in seen if (one.host, one.process) == (process.host, process.process)}, key=_number
    )
    numbers = [task for task in tasks if task is not None]
    numbers.sort(key=lambda task: task not in deciding)
    host = "" if process.host == OUTSIDE else f"{process.host} "
    columns = {Place(process.host, process.process, task): f"{host}{name(task)} #{task}" for task in numbers}
    for place in seen:
        if place.thread and (place.host, place.process) == (process.host, process.process):
            columns[place] = f"{host}{place.thread}"
    return columns


def _number(task: int | None) -> int:
    return -1 if task is None else task


def _fitted(columns: Mapping[Place, str], split: frozenset[Place], lanes_max: int) -> Lanes:
    known: dict[Place, int] = {}
    lanes: list[Lane] = []
    room = lanes_max if len(columns) <= lanes_max else lanes_max - 1
    for place, name in columns.items():
        if len(lanes) < room:
            known[place] = len(lanes)
            lanes.append(Lane(name, place.host))
        else:
            known[place] = room
    if len(columns) > room:
        known[_OTHERS] = room
        lanes.append(Lane(f"{len(columns) - room} others", ""))
    return Lanes(tuple(lanes), split, known)

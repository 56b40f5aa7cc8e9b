"""What there is to strike: single departures, and pairs of them. Pure: from the journal of a run to lists, in a fixed order."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence

import attrs

from simkit.exploring.kinds import Without, class_of, kind_of
from simkit.striking import AFTER, DARK, KILL, LOSE, TORN
from simkit.tape import Site, Visit

__all__ = ["Strike", "later", "singles"]

#: Of a site with more values than this, so many are tried, evenly spread.
VALUES_MAX = 8
_ORDER = ("crash", "fault", "choice")
#: The crashes that are tried as the second of a pair.
_SECOND = (KILL, TORN, LOSE, DARK)


@attrs.frozen
class Strike:
    """One departure."""

    site: Site
    value: int

    @property
    def kind(self) -> str:
        """What it is called."""
        return kind_of(self.site, self.value)


def singles(visits: Sequence[Visit], steps: Sequence[int], without: Without) -> list[Strike]:
    """Every departure that a run could have made: crashes first, then faults, then ordinary choices, each in their order.

    A crash after a boundary is left out where the next boundary of the host is in the same step of the program: the crash
    before that one is the same.

    Args:
        visits: the sites of the run, in order.
        steps: which entries of its trace are steps of a task, ascending.
        without: what is left out.
    """
    redundant = _redundant(visits, steps)
    found: dict[str, list[Strike]] = {one: [] for one in _ORDER}
    for visit in visits:
        strikes = [Strike(visit.site, value) for value in _some(visit.values)]
        found[class_of(visit.site)] += [
            strike
            for strike in strikes
            if strike.kind not in without and not (strike.value == AFTER and visit.site in redundant)
        ]
    return [strike for one in _ORDER for strike in found[one]]


def later(visits: Sequence[Visit], after: int, without: Without, most: int) -> list[Strike]:
    """The crashes and faults that a run comes by from visit number `after` on: the next ones, at most `most`."""
    found: list[Strike] = []
    for index in range(after, len(visits)):
        found += second(visits[index], without)
        if len(found) >= most:
            return found[:most]
    return found


def second(visit: Visit, without: Without) -> list[Strike]:
    """What is tried at a site as a part of a pair: one of the plain crashes, or a fault; no ordinary choice."""
    kind = class_of(visit.site)
    if kind == "choice" or visit.site[1] == "!state":
        return []
    values = [value for value in visit.values if kind != "crash" or value in _SECOND]
    return [strike for value in values[:VALUES_MAX] if (strike := Strike(visit.site, value)).kind not in without]


def _some(values: Sequence[int]) -> Iterable[int]:
    if len(values) <= VALUES_MAX:
        return values
    return (values[index * (len(values) - 1) // (VALUES_MAX - 1)] for index in range(VALUES_MAX))


def _redundant(visits: Sequence[Visit], steps: Sequence[int]) -> set[Site]:
    """The sites of crashes after which the next boundary of the same host comes in the same step."""
    last: dict[str, tuple[Site, int]] = {}
    found: set[Site] = set()
    for visit in visits:
        if AFTER not in visit.values or class_of(visit.site) != "crash":
            continue
        label, step = visit.site[0], bisect.bisect_left(steps, visit.moment)
        before = last.get(label)
        if before is not None and before[1] == step:
            found.add(before[0])
        last[label] = (visit.site, step)
    return found

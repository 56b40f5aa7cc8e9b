"""What may have led to a point at which a run accepts something: the happens-before cone of a named point. Pure.

Places (hosts, and the outside) know of each other by messages, by the starts of processes and by their ends. So a site of a
place is in the cone when a chain of these leads from it to the place of the point. The answer errs on the large side only: a
message counts from when it is sent, whether or not it arrived in time, and what belongs to no place counts always. What
places tell each other through the memory of the test itself is not seen.
After L. Lamport, "Time, Clocks, and the Ordering of Events in a Distributed System", CACM 1978.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from simkit.network import OUTSIDE
from simkit.tape import OPEN, Site, Visit
from simkit.trace import Entry

__all__ = ["cone"]

_ENDS = ("exited", "failed", "killed")
_OF_A_HOST = ("crash", "disk", "clock", "process")


def cone(visits: Sequence[Visit], entries: Sequence[Entry], place: str, moment: int) -> list[Visit]:
    """The sites from which something may have come to `place` (a host, or empty for the outside) by entry `moment`."""
    reached = {place or OUTSIDE}
    found: list[Visit] = []
    at = moment
    for visit in reversed(visits):
        if visit.moment > moment:
            continue
        while at > visit.moment:
            at -= 1
            _follow(entries[at], reached)
        places = _places(visit.site)
        if not places or not reached.isdisjoint(places):
            found.append(visit)
    return found[::-1]


def _follow(entry: Entry, reached: set[str]) -> None:
    """Go back over one entry of a trace: whoever told something to a place that matters, matters before it."""
    if isinstance(entry, int):
        return
    if entry[0] == "net" and entry[1] != "deliver" and entry[4] in reached:
        reached.add(str(entry[3]))
    elif entry[0] == "start" and _host(entry) in reached:
        reached.add(OUTSIDE)
    elif entry[0] in _ENDS and OUTSIDE in reached:
        reached.add(_host(entry))


def _host(entry: Sequence[object]) -> str:
    return str(entry[1]).partition("/")[0]


def _places(site: Site) -> Iterable[str]:
    """Where a site is; nothing for one that may be anywhere."""
    label, key, _ = site
    component, _, host = label.partition("/")
    if component in _OF_A_HOST and host:
        return (host,)
    link = key.removeprefix(OPEN).partition(":")[2]
    return tuple(link.split(">")) if label == "network" and ">" in link else ()

"""A sweep: the run of one seed, crashed once at every place where it can matter, and in every pair of places that is paid for.

Places are taken from a probe run: every storage boundary (the power fails right before it), every barrier of every call (the
worker is killed), every message between machines (its receiver is killed as it arrives). A pair is a loss of power and another
in the recovery from it. A power loss proper is one of the states that the disk may be left in (`Disk.crash_states`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import attrs

from conformance.simulate import Simulated
from scenarios.history import Applied, Asked, Received, Replied
from scenarios.interruption import Barrier, Interruption, Site
from simkit.crashes import CrashPoint, crash_points

if TYPE_CHECKING:
    from simkit.host import Host
    from simkit.world import World

T = TypeVar("T")
#: Crashes of each single kind; more are thinned out evenly.
SINGLES_MAX = 400
#: So many storage boundaries after a crash count as the recovery from it.
RECOVERY_BOUNDARIES = 20
#: States of the disk that are looked for at each boundary.
_STATES_MAX = 16

Kind = str
KINDS: tuple[Kind, ...] = ("storage boundaries", "service barriers", "messages", "pairs", "power losses")


@attrs.frozen
class Crash:
    """One crash, or a pair, to make on top of a seed's own interruptions."""

    kind: Kind
    interruptions: tuple[Interruption, ...]


@attrs.frozen
class Sweep:
    """What is to be tried, and how much there would be, by kind."""

    crashes: tuple[Crash, ...]
    total: Mapping[Kind, int]


def single(probe: Simulated, units: Sequence[str]) -> Sweep:
    """Every place of the probe run, once."""
    found: dict[Kind, list[Interruption]] = {
        "storage boundaries": [_power(point) for point in _boundaries(probe, units)],
        "service barriers": list(_barriers(probe)) if "worker" in units else [],
        "messages": list(_messages(probe, units)),
    }
    crashes = [Crash(kind, (one,)) for kind, places in found.items() for one in thinned(places, SINGLES_MAX)]
    return Sweep(tuple(crashes), {kind: len(places) for kind, places in found.items()})


def pairs(crashed: Mapping[CrashPoint, int], most: int) -> Sweep:
    """A second loss of power in the recovery from the first.

    Args:
        crashed: how many boundaries the host crossed in all, in the run that was crashed at this one.
        most: pairs to try.
    """
    both = [
        (_power(first), _power(CrashPoint(first.host, number)))
        for first, crossed in crashed.items()
        for number in range(first.number + 1, min(crossed, first.number + RECOVERY_BOUNDARIES) + 1)
    ]
    return Sweep(tuple(Crash("pairs", pair) for pair in thinned(both, most)), {"pairs": len(both)})


def losses(states: Mapping[CrashPoint, Sequence[str]], most: int) -> Sweep:
    """Power lost into each of these states (`CrashState.code`, as `watching` finds them)."""
    found = [attrs.evolve(_power(point), state=code) for point, codes in states.items() for code in codes]
    crashes = tuple(Crash("power losses", (one,)) for one in thinned(found, most))
    return Sweep(crashes, {"power losses": len(found)})


def watching(points: Sequence[CrashPoint], found: dict[CrashPoint, Sequence[str]]) -> Callable[[World], object]:
    """Called with a world before its run: notes the states that a loss of power at each point could leave."""

    def look(host: Host, point: CrashPoint) -> None:
        found[point] = [state.code for state in host.disk.crash_states(_STATES_MAX)]

    def watch(world: World) -> None:
        for point in points:
            host = world.host(point.host)
            host.at_boundary(point.number, functools.partial(look, host, point))

    return watch


def point_of(one: Interruption) -> CrashPoint:
    """The storage boundary an interruption strikes at."""
    return CrashPoint(one.site.unit, one.site.nth)


def thinned(items: Sequence[T], most: int) -> Sequence[T]:
    """At most `most` of them, evenly spread and with both ends."""
    if len(items) <= most:
        return items
    if most < 2:
        return items[:most]
    return [items[index * (len(items) - 1) // (most - 1)] for index in range(most)]


def _boundaries(probe: Simulated, units: Sequence[str]) -> list[CrashPoint]:
    return [point for point in crash_points(probe.outcome) if point.host in units]


def _power(point: CrashPoint) -> Interruption:
    return Interruption("power", Site("boundary", nth=point.number, unit=point.host))


def _barriers(probe: Simulated) -> Iterator[Interruption]:
    """A kill at each barrier that a request came to, lookups apart."""
    counts: dict[str, int] = {}
    calls: dict[int, tuple[str, int]] = {}

    def kill(call: int, barrier: Barrier) -> Interruption:
        op, nth = calls[call]
        return Interruption("kill", Site("barrier", op, nth, barrier))

    for event in probe.observation.history.events:
        if isinstance(event, Received) and not event.lookup:
            counts[event.op] = counts.get(event.op, 0) + 1
            calls[event.call] = (event.op, counts[event.op])
            yield kill(event.call, "received")
        elif isinstance(event, Applied) and event.call in calls:
            yield kill(event.call, "applied")
        elif isinstance(event, Replied) and event.call in calls:
            yield kill(event.call, "replied")


def _messages(probe: Simulated, units: Sequence[str]) -> Iterator[Interruption]:
    """A kill of the receiver at each moment at which a message arrives, from the first start on."""
    events = probe.observation.history.events
    begun_ns = next((event.at_ns for event in events if isinstance(event, Asked) and event.verb == "start"), None)
    seen: set[tuple[str, int]] = set()
    for event in probe.outcome.trace.events():
        if event.kind != "net" or begun_ns is None or event.now_ns < begun_ns:
            continue
        what, _, _, target, *_ = event.detail.split()
        arrives = target, event.now_ns - begun_ns
        if what == "deliver" and target in units and arrives not in seen:
            seen.add(arrives)
            yield Interruption("kill", Site("time", ns=arrives[1], unit=target))

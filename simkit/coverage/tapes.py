"""Changes to the departures of a tape, each of which means something: another fault, one less, elsewhere, later, worse."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from random import Random

import attrs

from simkit.coverage.entry import Place
from simkit.tape import Asked, Site

Departures = dict[Site, int]
#: One change in so many begins with the departures of another tape.
SPLICES = 10
#: Values up to this are all alike; of more, the small, the large and the round ones are likelier.
_SMALL = 32


@attrs.frozen
class Ground:
    """Where a tape may depart."""

    asked: Asked
    #: Places at which its run was the first to be asked, from which occurrence on: nobody has departed there yet.
    fresh: tuple[tuple[Place, int], ...] = ()


_Change = Callable[[Departures, Ground, Random], Departures]


def change(departures: Departures, ground: Ground, donor: Mapping[Site, int], rng: Random) -> Departures:
    """Change one thing; what cannot be changed so is changed by an added departure."""
    if donor:
        spliced = splice(departures, donor, rng)
        if spliced != departures:
            return spliced
    changes = _CHANGES if departures else (add,)
    changed = changes[rng.randrange(len(changes))](dict(departures), ground, rng)
    return add(changed, ground, rng) if changed == departures else changed


def add(departures: Departures, ground: Ground, rng: Random) -> Departures:
    """Depart at one more place: every other time where no other tape could, for want of being asked."""
    if ground.fresh and rng.randrange(2):
        return add_fresh(departures, ground, rng)
    places = list(ground.asked)
    return _departed(departures, ground, places[rng.randrange(len(places))], 0, rng) if places else departures


def add_fresh(departures: Departures, ground: Ground, rng: Random) -> Departures:
    """Depart at one of the places that this tape was the first to be asked at."""
    place, first = ground.fresh[rng.randrange(len(ground.fresh))]
    return _departed(departures, ground, place, first, rng)


def _departed(departures: Departures, ground: Ground, place: Place, first: int, rng: Random) -> Departures:
    times, n = ground.asked[place]
    return {**departures, (*place, first + rng.randrange(times - first)): value(n, rng)}


def each(ground: Ground, most: int, rng: Random) -> list[tuple[Site, int]]:
    """Every departure at a fresh place; when there are more than `most`, as many drawn ones."""
    ways = sum((ground.asked[place][0] - first) * (ground.asked[place][1] - 1) for place, first in ground.fresh)
    if ways > most:
        drawn = (next(iter(add_fresh({}, ground, rng).items())) for _ in range(most))
        return list(dict.fromkeys(drawn))
    return [
        ((*place, at), value)
        for place, first in ground.fresh
        for at in range(first, ground.asked[place][0])
        for value in range(1, ground.asked[place][1])
    ]


def sprinkle(departures: Departures, ground: Ground, rng: Random) -> Departures:
    """Depart at several occurrences of one place: what goes wrong once often goes wrong again."""
    places = list(ground.asked)
    if not places:
        return departures
    place = places[rng.randrange(len(places))]
    times, n = ground.asked[place]
    one_in = 2 << rng.randrange(4)
    return {
        **departures,
        **{(*place, at): value(n, rng) for at in range(min(times, 256)) if rng.randrange(one_in) == 0},
    }


def drop(departures: Departures, _ground: Ground, rng: Random) -> Departures:
    """Depart at one place less."""
    del departures[_any(departures, rng)]
    return departures


def drop_stream(departures: Departures, _ground: Ground, rng: Random) -> Departures:
    """No departures of one component any more."""
    label = _any(departures, rng)[0]
    return {site: value for site, value in departures.items() if site[0] != label}


def revalue(departures: Departures, ground: Ground, rng: Random) -> Departures:
    """Another value at a place: the next one, one given elsewhere, or any."""
    site = _any(departures, rng)
    _, n = ground.asked.get(site[:2], (0, departures[site] + 1))
    near = departures[site] + (1 if rng.randrange(2) else -1)
    departures[site] = near if rng.randrange(3) == 0 and 0 < near < n else value(n, rng)
    return departures


def move(departures: Departures, ground: Ground, rng: Random) -> Departures:
    """The same at another occurrence: a little earlier or later, or at any."""
    site = _any(departures, rng)
    label, key, occurrence = site
    times, _ = ground.asked.get((label, key), (occurrence + 1, 0))
    near = occurrence + (1 if rng.randrange(2) else -1)
    moved = near if rng.randrange(2) and 0 <= near < times else rng.randrange(times)
    value = departures.pop(site)
    return {**departures, (label, key, moved): value}


def transplant(departures: Departures, ground: Ground, rng: Random) -> Departures:
    """What goes wrong on one host goes wrong on another instead, or there as well."""
    hosts = sorted({host for label, _ in ground.asked if (host := _host(label))})
    sick = [host for host in hosts if any(_host(label) == host for label, _, _ in departures)]
    if not sick or len(hosts) < 2:
        return departures
    source = sick[rng.randrange(len(sick))]
    others = [host for host in hosts if host != source]
    target = others[rng.randrange(len(others))]
    spreads = bool(rng.randrange(2))
    found: Departures = {}
    for site, value in departures.items():
        if _host(site[0]) != source:
            found.setdefault(site, value)
            continue
        if spreads:
            found[site] = value
        found[_renamed(site, source, target)] = value
    return found


def splice(departures: Mapping[Site, int], donor: Mapping[Site, int], rng: Random) -> Departures:
    """Of each stream the departures of one of two tapes: streams are components, and do not know of one another."""
    labels = sorted({label for label, _, _ in (*departures, *donor)})
    from_donor = {label for label in labels if rng.randrange(2)}
    return {
        **{site: value for site, value in departures.items() if site[0] not in from_donor},
        **{site: value for site, value in donor.items() if site[0] in from_donor},
    }


def value(n: int, rng: Random) -> int:
    """A choice other than 0 from `n`."""
    if n <= 2:
        return 1
    if n > _SMALL:
        kind = rng.randrange(8)
        if kind < 2:
            return 1 + rng.randrange(8)
        if kind == 2:
            return n - 1 - rng.randrange(8)
        if kind == 3:
            return min(n - 1, (1 << rng.randrange(n.bit_length())) - rng.randrange(2) or 1)
    return 1 + rng.randrange(n - 1)


_CHANGES: tuple[_Change, ...] = (add, add, add, sprinkle, drop, drop_stream, revalue, revalue, move, transplant)


def _any(departures: Departures, rng: Random) -> Site:
    return sorted(departures)[rng.randrange(len(departures))]


def _host(label: str) -> str:
    """The host that a stream belongs to: `disk/NAME`, `clock/NAME`."""
    return label.partition("/")[2]


def _renamed(site: Site, source: str, target: str) -> Site:
    label, key, occurrence = site
    part, _, _ = label.partition("/")
    return f"{part}/{target}", re.sub(rf"(?<!\w){re.escape(source)}(?!\w)", target, key), occurrence

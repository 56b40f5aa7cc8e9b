"""What a departure is called in reports, such as "crash.kill", "disk.write_eio", "network.latency"; and what is left out."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping
from typing import Literal

import attrs

from simkit.striking import KINDS, STATE
from simkit.tape import OPEN, Site

__all__ = ["CALM", "PATIENCE", "Class", "Without", "class_of", "kind_of", "strikes_of"]

#: The settings of a healed run on its tape: when all faults end, and how long it then has.
CALM: Site = ("world", f"{OPEN}calm", 0)
PATIENCE: Site = ("world", f"{OPEN}patience", 0)

#: A crash; another fault; an ordinary choice of the program or the world, such as a latency.
Class = Literal["crash", "fault", "choice"]


def class_of(site: Site) -> Class:
    """What a site is for."""
    label, key, _ = site
    if not key.startswith(OPEN):
        return "choice"
    return "crash" if label.startswith("crash/") else "fault"


def kind_of(site: Site, value: int) -> str:
    """The name of what a value of a site means: "component.what", without the host, the file or the link."""
    label, key, _ = site
    component = label.partition("/")[0]
    what = key.removeprefix(OPEN).partition(":")[0]
    if component == "crash":
        return f"crash.{KINDS[STATE] if what == 'state' else KINDS.get(value, what)}"
    return f"{component}.{what}"


def strikes_of(departures: Mapping[Site, int]) -> tuple[str, ...]:
    """What strikes in a run, for people: crashes and faults each with where, ordinary choices by their number."""
    struck = [(site, value) for site, value in departures.items() if class_of(site) != "choice" and site != PATIENCE]
    named = [_worded(site, value) for site, value in struck]
    choices = sum(class_of(site) == "choice" for site in departures)
    told = f"{choices} ordinary choice{'s' if choices > 1 else ''}"
    return (*named, told) if choices else tuple(named)


def _worded(site: Site, value: int) -> str:
    """Such as "crash.kill bank at rename /new, no. 3"."""
    if site == CALM:
        return f"all faults end after {value / 1e9:.3f} s"
    label, key, occurrence = site
    host = label.partition("/")[2]
    what, _, place = key.removeprefix(OPEN).partition(":")
    if class_of(site) == "crash" and place:
        return f"{kind_of(site, value)} {host} at {what} {place}, no. {occurrence + 1}"
    words = [kind_of(site, value), host, place]
    chosen = f" ({value})" if value > 1 else ""
    return " ".join(filter(None, words)) + f", no. {occurrence + 1}{chosen}"


def _as_tuple(patterns: Iterable[str]) -> tuple[str, ...]:
    return tuple(patterns)


@attrs.frozen
class Without:
    """Kinds that an exploration leaves out, as patterns ("disk.*")."""

    patterns: tuple[str, ...] = attrs.field(default=(), converter=_as_tuple)

    def __contains__(self, kind: object) -> bool:
        return any(fnmatch.fnmatchcase(str(kind), pattern) for pattern in self.patterns)

    def kept(self, departures: Iterable[tuple[Site, int]]) -> dict[Site, int]:
        """Those departures that are not left out."""
        return {site: value for site, value in departures if kind_of(site, value) not in self}

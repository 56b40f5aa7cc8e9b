"""What a departure is called in reports, such as "crash.kill", "disk.write_eio", "network.latency"; and what is left out."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable
from typing import Literal

import attrs

from simkit.striking import KINDS, STATE
from simkit.tape import OPEN, Site

__all__ = ["Class", "Without", "class_of", "kind_of"]

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

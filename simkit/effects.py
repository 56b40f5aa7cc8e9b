"""Effects: what the next step of a task will touch, as far as the program declares it.

A footprint is a tuple of effects. Two steps are dependent when one writes what the other touches; steps that are not may
be taken in either order with the same result, which is what partial-order reduction and the priorities of POS live on.
A step without a footprint is undeclared, which is not the same as touching nothing.
"""

from __future__ import annotations

import functools
from typing import Literal

import attrs

Kind = Literal["read", "write", "update", "acquire", "release", "local", "spin"]
_READS = ("read", "update", "acquire")
_WRITES = ("write", "update", "acquire", "release")
_COMPETES = ("read", "write", "update", "acquire")
_KINDS = (*_READS, *_WRITES, "local", "spin")
_INTERNED_MAX = 65_536


@attrs.frozen
class Effect:
    """One thing that a step does to one resource."""

    kind: Kind
    resource: str
    #: Whether it depends on who wrote the resource last.
    reads: bool = attrs.field(init=False)
    #: Whether others depend on it.
    writes: bool = attrs.field(init=False)
    #: Whether it may lose a race: a release cannot, who comes next is decided by the acquisitions.
    competes: bool = attrs.field(init=False)

    @reads.default
    def _reads(self) -> bool:
        return self.kind in _READS

    @writes.default
    def _writes(self) -> bool:
        return self.kind in _WRITES

    @competes.default
    def _competes(self) -> bool:
        return self.kind in _COMPETES


Footprint = tuple[Effect, ...]
#: The footprint of a step that may touch anything.
EVERYTHING: Footprint = (Effect("update", "*"),)


@functools.lru_cache(_INTERNED_MAX)
def footprint(kind: Kind, resource: str) -> Footprint:
    """The footprint of one effect; the same object for the same words."""
    if kind not in _KINDS:
        raise ValueError(f"a step is one of {', '.join(dict.fromkeys(_KINDS))}, not {kind!r}")
    return (Effect(kind, resource),)


def dependent(one: Footprint, other: Footprint) -> bool:
    """Whether the order of two steps with these footprints can matter."""
    if one is EVERYTHING or other is EVERYTHING:
        return True
    for mine in one:
        for theirs in other:
            if mine.resource == theirs.resource and (
                (mine.writes and (theirs.reads or theirs.writes)) or (theirs.writes and mine.reads)
            ):
                return True
    return False

"""Requirement sets: which obligations a certificate of a given year demands, and how often each must have been exercised.

A set is frozen when it is published: a certificate quotes its name and digest, and two certificates with the same digest
were judged by the same demands. A change of mind is a new set, never an edit; a test pins every digest.

A set is a *draft* until then: it demands every obligation that has a judge, as often as the obligation itself asks for, so that
its digest changes with the judges, and whatever is certified by it says that it is a draft.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import attrs

from scenarios.obligations import OBLIGATIONS
from scenarios.verdict import Level


@attrs.frozen
class Requirement:
    """One obligation as a set demands it."""

    id: str
    level: Level
    profile: str
    minimum: int  # exercised fewer times than this, the verdict is inconclusive


@attrs.frozen
class RequirementSet:
    """A named set of requirements, in the catalogue's order; frozen unless it is a draft."""

    name: str
    requirements: tuple[Requirement, ...]
    draft: bool = False

    @property
    def title(self) -> str:
        """The name as a certificate quotes it."""
        return f"{self.name} (draft)" if self.draft else self.name

    @property
    def digest(self) -> str:
        """16 bytes of blake2b, in hex, over the set's canonical JSON."""
        rows = [attrs.astuple(one) for one in self.requirements]
        text = json.dumps([self.name, rows], separators=(",", ":"))
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(one.id for one in self.requirements)

    @property
    def profiles(self) -> tuple[str, ...]:
        """The profiles this set can grant, in order of first mention."""
        return tuple(dict.fromkeys(one.profile for one in self.requirements))

    def get(self, id: str) -> Requirement | None:
        return next((one for one in self.requirements if one.id == id), None)


def _set(name: str, *rows: tuple[str, str, int]) -> RequirementSet:
    return RequirementSet(name, tuple(Requirement(id_, "MUST", profile, minimum) for id_, profile, minimum in rows))


_2026_1: Final = _set(
    "2026.1",
    ("DUR-1", "Durable", 3),
    ("DUR-2", "Durable", 3),
    ("DUR-3", "Durable", 3),
    ("DUR-5", "Durable", 1),
    ("DUR-6", "Durable", 3),
    ("DUR-7", "Durable", 2),
    ("DUR-8", "Durable", 3),
    ("DUR-9", "Durable", 1),
    ("DUR-12", "Durable", 1),
    ("OWN-1", "Ownership", 1),
    ("EFF-1", "Effects", 3),
    ("EFF-2", "Effects", 3),
    ("EFF-3", "Effects", 3),
    ("EFF-4", "Effects", 2),
    ("EFF-5", "Effects", 2),
    ("EFF-6", "Effects", 1),
    ("EFF-8", "Effects", 3),
    ("EFF-11", "Effects", 3),
    ("EFF-12", "Effects", 3),
    ("SCH-1", "Control", 1),
    ("SCH-3", "Control", 2),
    ("SCH-4", "Control", 1),
    ("SIG-1", "Control", 2),
    ("SIG-2", "Control", 1),
)


def _draft(name: str) -> RequirementSet:
    every = (Requirement(one.id, one.level, one.profile, one.minimum) for one in OBLIGATIONS.values())
    return RequirementSet(name, tuple(every), draft=True)


#: Every published set by its name.
REQUIREMENT_SETS: Final[Mapping[str, RequirementSet]] = MappingProxyType({one.name: one for one in (_2026_1,)})
#: The sets that are not published yet, by name.
DRAFTS: Final[Mapping[str, RequirementSet]] = MappingProxyType({one.name: one for one in (_draft("2026.2"),)})
#: The set a certificate is made by unless told otherwise.
CURRENT: Final = "2026.1"


def demanded(name: str | None = None) -> RequirementSet:
    """The set called `name`, or the current one. Raises KeyError for an unknown name."""
    return {**REQUIREMENT_SETS, **DRAFTS}[name or CURRENT]

"""Requirement sets: which obligations a certificate of a given year demands, and how often each must have been exercised.

A set is frozen when it is published: a certificate quotes its name and digest, and two certificates with the same digest
were judged by the same demands. A change of mind is a new set, never an edit; a test pins every digest.

A set is a *draft* until then: it demands every obligation that has a judge, as often as the obligation itself asks for, so that
its digest changes with the judges, and whatever is certified by it says that it is a draft.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
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


def _set(name: str, *rows: tuple[str, str, int], should: Collection[str] = ()) -> RequirementSet:
    """A set of rows of id, profile and minimum; those under `should` are reported, the others decide."""
    levels: dict[str, Level] = dict.fromkeys(should, "SHOULD")
    return RequirementSet(
        name, tuple(Requirement(id_, levels.get(id_, "MUST"), profile, minimum) for id_, profile, minimum in rows)
    )


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


_2026_2: Final = _set(
    "2026.2",
    ("DUR-1", "Durable", 3),
    ("DUR-2", "Durable", 3),
    ("DUR-3", "Durable", 3),
    ("DUR-4", "Durable", 3),
    ("DUR-5", "Durable", 1),
    ("DUR-6", "Durable", 3),
    ("DUR-7", "Durable", 2),
    ("DUR-8", "Durable", 3),
    ("DUR-9", "Durable", 1),
    ("DUR-10", "Durable", 1),
    ("DUR-11", "Durable", 3),
    ("DUR-12", "Durable", 1),
    ("DUR-13", "Durable", 1),
    ("DUR-14", "Durable", 3),
    ("JRN-1", "Durable", 3),
    ("JRN-2", "Durable", 2),
    ("JRN-3", "Durable", 3),
    ("JRN-4", "Durable", 2),
    ("JRN-5", "Durable", 6),
    ("JRN-6", "Durable", 4),
    ("JRN-7", "Durable", 3),
    ("JRN-8", "Durable", 4),
    ("JRN-9", "Durable", 3),
    ("OWN-1", "Ownership", 1),
    ("OWN-2", "Ownership", 1),
    ("OWN-3", "Ownership", 1),
    ("OWN-4", "Ownership", 2),
    ("OWN-5", "Ownership", 2),
    ("OWN-6", "Ownership", 1),
    ("OWN-7", "Ownership", 1),
    ("OWN-8", "Ownership", 1),
    ("OWN-9", "Ownership", 1),
    ("OWN-10", "Ownership", 2),
    ("EFF-1", "Effects", 3),
    ("EFF-2", "Effects", 3),
    ("EFF-3", "Effects", 3),
    ("EFF-4", "Effects", 2),
    ("EFF-5", "Effects", 2),
    ("EFF-6", "Effects", 1),
    ("EFF-7", "Effects", 3),
    ("EFF-8", "Effects", 3),
    ("EFF-9", "Effects", 1),
    ("EFF-10", "Effects", 2),
    ("EFF-11", "Effects", 3),
    ("EFF-12", "Effects", 3),
    ("RTY-1", "Effects", 3),
    ("RTY-2", "Effects", 1),
    ("RTY-3", "Effects", 3),
    ("RTY-4", "Effects", 1),
    ("RTY-5", "Effects", 2),
    ("RTY-6", "Effects", 2),
    ("CMP-1", "Effects", 3),
    ("CMP-2", "Effects", 3),
    ("CMP-3", "Effects", 2),
    ("CMP-4", "Effects", 3),
    ("CMP-5", "Effects", 2),
    ("SCH-1", "Control", 1),
    ("SCH-2", "Control", 3),
    ("SCH-3", "Control", 2),
    ("SCH-4", "Control", 1),
    ("SCH-5", "Control", 3),
    ("SCH-6", "Control", 2),
    ("SCH-7", "Control", 2),
    ("SCH-8", "Control", 2),
    ("SCH-9", "Control", 2),
    ("SCH-10", "Control", 3),
    ("SCH-11", "Control", 2),
    ("SCH-12", "Control", 2),
    ("BUD-1", "Budget", 3),
    ("BUD-2", "Budget", 3),
    ("BUD-3", "Budget", 1),
    ("BUD-4", "Budget", 1),
    ("BUD-5", "Budget", 3),
    ("BUD-6", "Budget", 2),
    ("BUD-7", "Budget", 2),
    ("BUD-8", "Budget", 2),
    ("DLN-1", "Budget", 2),
    ("DLN-2", "Budget", 3),
    ("DLN-3", "Budget", 3),
    ("CAN-1", "Control", 3),
    ("CAN-2", "Control", 2),
    ("CAN-3", "Control", 3),
    ("CAN-4", "Control", 3),
    ("CAN-5", "Control", 3),
    ("CAN-6", "Control", 2),
    ("CAN-7", "Control", 3),
    ("CAN-8", "Control", 2),
    ("SIG-1", "Control", 2),
    ("SIG-2", "Control", 1),
    ("SIG-3", "Control", 3),
    ("SIG-4", "Control", 2),
    ("SIG-5", "Control", 2),
    ("SIG-6", "Control", 2),
    ("APR-1", "Control", 3),
    ("APR-2", "Control", 2),
    ("APR-3", "Control", 2),
    ("APR-4", "Control", 1),
    ("APR-5", "Control", 3),
    ("APR-6", "Control", 1),
    ("APR-7", "Control", 3),
    ("ART-1", "Artifacts", 2),
    ("ART-2", "Artifacts", 2),
    ("ART-3", "Artifacts", 3),
    ("ART-4", "Artifacts", 2),
    ("ART-5", "Artifacts", 2),
    ("ART-6", "Artifacts", 2),
    ("CPL-1", "Artifacts", 2),
    ("CPL-2", "Artifacts", 3),
    ("CPL-3", "Artifacts", 3),
    ("CPL-4", "Artifacts", 3),
    ("STA-1", "Control", 2),
    ("STA-2", "Control", 3),
    ("STA-3", "Control", 2),
    ("STA-4", "Control", 2),
    ("STA-5", "Control", 2),
    ("VER-1", "Evolution", 3),
    ("VER-2", "Evolution", 2),
    ("VER-3", "Evolution", 2),
    ("VER-4", "Evolution", 2),
    ("VER-5", "Evolution", 3),
    ("CHI-1", "Control", 3),
    ("CHI-2", "Control", 2),
    ("CHI-3", "Control", 3),
    should=(
        "DUR-13",
        "JRN-6",
        "JRN-8",
        "OWN-7",
        "EFF-9",
        "RTY-4",
        "CMP-4",
        "SCH-9",
        "BUD-6",
        "BUD-7",
        "DLN-2",
        "CAN-7",
        "CAN-8",
        "SIG-4",
        "ART-6",
        "CPL-4",
    ),
)


def _draft(name: str) -> RequirementSet:
    every = (Requirement(one.id, one.level, one.profile, one.minimum) for one in OBLIGATIONS.values())
    return RequirementSet(name, tuple(every), draft=True)


#: Every published set by its name.
REQUIREMENT_SETS: Final[Mapping[str, RequirementSet]] = MappingProxyType({one.name: one for one in (_2026_1, _2026_2)})
#: The sets that are not published yet, by name.
DRAFTS: Final[Mapping[str, RequirementSet]] = MappingProxyType({one.name: one for one in (_draft("2026.3"),)})
#: The set a certificate is made by unless told otherwise.
CURRENT: Final = "2026.2"


def demanded(name: str | None = None) -> RequirementSet:
    """The set called `name`, or the current one. Raises KeyError for an unknown name."""
    return {**REQUIREMENT_SETS, **DRAFTS}[name or CURRENT]

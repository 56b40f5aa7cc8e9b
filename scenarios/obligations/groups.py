"""The groups of obligations, in the catalogue's order, and the place of an id in it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

import attrs

Profile: TypeAlias = Literal["Durable", "Effects", "Ownership", "Control", "Budget", "Artifacts", "Evolution"]


@attrs.frozen
class Group:
    """What the obligations of a group are about, and the profile they belong to."""

    title: str
    profile: Profile


#: Every group by the beginning of its ids.
GROUPS: Final[Mapping[str, Group]] = MappingProxyType(
    {
        "DUR": Group("durable progress", "Durable"),
        "JRN": Group("the journal", "Durable"),
        "OWN": Group("ownership", "Ownership"),
        "EFF": Group("external effects", "Effects"),
        "RTY": Group("retries", "Effects"),
        "CMP": Group("compensation", "Effects"),
        "SCH": Group("waking and admitting work", "Control"),
        "BUD": Group("budgets", "Budget"),
        "DLN": Group("deadlines", "Budget"),
        "CAN": Group("stopping", "Control"),
        "SIG": Group("signals and steering", "Control"),
        "APR": Group("approvals", "Control"),
        "ART": Group("artifacts", "Artifacts"),
        "CPL": Group("completion checks", "Artifacts"),
        "STA": Group("status", "Control"),
        "VER": Group("evolution", "Evolution"),
        "CHI": Group("children", "Control"),
    }
)
_ORDER: Final = {name: position for position, name in enumerate(GROUPS)}


def place(id: str) -> tuple[int, int]:
    """Sorts ids into the catalogue's order. Raises ValueError for what is no id."""
    group, _, number = id.partition("-")
    if group not in _ORDER or not number.isdigit():
        raise ValueError(f"{id!r} is no id of an obligation; the groups are {', '.join(GROUPS)}")
    return _ORDER[group], int(number)

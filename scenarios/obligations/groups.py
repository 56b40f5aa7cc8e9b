"""The groups of obligations, in the catalogue's order, and the place of an id in it."""

from __future__ import annotations

from typing import Final

#: The beginning of every id of a group, and what the group is about.
GROUPS: Final = {
    "DUR": "durable progress",
    "JRN": "the journal",
    "OWN": "ownership",
    "EFF": "external effects",
    "RTY": "retries",
    "CMP": "compensation",
    "SCH": "waking and admitting work",
    "BUD": "budgets",
    "DLN": "deadlines",
    "CAN": "stopping",
    "SIG": "signals and steering",
    "APR": "approvals",
    "ART": "artifacts",
    "CPL": "completion checks",
    "STA": "status",
    "VER": "evolution",
    "CHI": "children",
}
_ORDER: Final = tuple(GROUPS)


def place(id: str) -> tuple[int, int]:
    """Sorts ids into the catalogue's order. Raises ValueError for what is no id."""
    group, _, number = id.partition("-")
    return _ORDER.index(group), int(number)

"""What the world of real processes covers: what nothing in it can put to the test is neither kept nor broken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from conformance.campaign import real
from scenarios.interruption import Action

if TYPE_CHECKING:
    from conformance.targets import Target

#: For promises that only certain interruptions put to the test: these, and what each of them takes.
NEEDED: Final[Mapping[str, Mapping[Action, str]]] = {
    "OWN-6": {"jump": "set the clock of a unit (clock = true in adapter.toml)"},
    "DUR-11": {
        "full": "fill the disk of an engine",
        "eio": "let a write or a sync fail",
        "flip": "turn over a bit that an engine has stored",
    },
}


def uncovered(target: Target) -> dict[str, str]:
    """The obligations that no scenario of any tier puts to the test on real processes of this target, and what is missing."""
    actions = {
        link.action
        for scenario in real.scenarios(target, "full")
        for one in scenario.interruptions
        for link in one.chain()
    }
    return {
        id_: f"not covered by the process world: no scenario on this target can {', '.join(needed.values())}"
        for id_, needed in NEEDED.items()
        if not actions & set(needed)
    }

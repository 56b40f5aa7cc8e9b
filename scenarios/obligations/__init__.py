"""The obligations a durable runtime owes its users, each with its judge; `OBLIGATIONS` maps id → obligation.

    registry      what an obligation is, and the names of anomalies
    durable       DUR-1 2 3 5 6    what was acknowledged or accepted stays so, is used, and gets to its end
    operations    DUR-7 8 9 12     operations keep identity, order and effects; an unresolved one stays visible
    ownership     OWN-1            one accepted transition per operation
    effects       EFF-1 2 3 11 12  every intended effect once, under one key, none from nowhere
    outcomes      EFF-4 5 6 8      what to do, and say, about an unknown outcome
    signals       SIG-1 2          an acknowledged signal is kept, and used once
    scheduling    SCH-1 3 4        timers, repeated deliveries, early signals

The verdict rules over many findings are in `scenarios.rules`, the frozen sets of ids in `scenarios.requirements`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

# Imported for what they register, all of them.
from scenarios.obligations import durable, effects, operations, outcomes, ownership, scheduling, signals
from scenarios.obligations.registry import ANOMALIES, Judge, Obligation, Profile, registered

__all__ = ["ANOMALIES", "OBLIGATIONS", "Judge", "Obligation", "Profile"]

_GROUPS: Final = tuple(dict.fromkeys(name for name in ("DUR", "OWN", "EFF", "SCH", "SIG")))
_MODULES: Final = (durable, operations, ownership, effects, outcomes, scheduling, signals)


def _place(obligation: Obligation) -> tuple[int, int]:
    group, _, number = obligation.id.partition("-")
    return _GROUPS.index(group), int(number)


#: Every obligation this build can judge, in the catalogue's order.
OBLIGATIONS: Final[Mapping[str, Obligation]] = MappingProxyType(
    {one.id: one for one in sorted(registered().values(), key=_place)}
)

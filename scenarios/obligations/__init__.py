"""The obligations a durable runtime owes its users, each with its judge; `OBLIGATIONS` maps id → obligation.

    registry      what an obligation is, and the names of anomalies
    groups        the groups of the catalogue, and the order of ids
    catalogue     every promise of the whole catalogue as data, whether it has a judge here or not
    durable       DUR-1 2 3 5 6    what was acknowledged or accepted stays so, is used, and gets to its end
    operations    DUR-7 8 9 12     operations keep identity, order and effects; an unresolved one stays visible
    ownership     OWN-1            one accepted transition per operation
    effects       EFF-1 2 3 11 12  every intended effect once, under one key, none from nowhere
    outcomes      EFF-4 5 6 8      what to do, and say, about an unknown outcome
    signals       SIG-1 2          an acknowledged signal is kept, and used once
    scheduling    SCH-1 3 4        timers, repeated deliveries, early signals
    budgets       BUD-1 2 3 4      what may be used is reserved first, kept through restarts, never free while nobody knows
    shares        BUD-5 6 7 8      shares of children, what is given back and kept, and what is said when all is used up
    deadlines     DLN-1 2 3        the time of a run holds, is handed on, and hangs on nobody who asked

Every module of this package is imported for the judges it registers. The verdict rules over many findings are in
`scenarios.rules`, the frozen sets of ids in `scenarios.requirements`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from scenarios.obligations.groups import Profile, place
from scenarios.obligations.registry import ANOMALIES, Judge, Obligation, registered

__all__ = ["ANOMALIES", "OBLIGATIONS", "Judge", "Obligation", "Profile"]

for _module in sorted(one.name for one in pkgutil.iter_modules(__path__)):
    importlib.import_module(f"{__name__}.{_module}")

#: Every obligation this build can judge, in the catalogue's order.
OBLIGATIONS: Final[Mapping[str, Obligation]] = MappingProxyType(
    {one.id: one for one in sorted(registered().values(), key=lambda one: place(one.id))}
)

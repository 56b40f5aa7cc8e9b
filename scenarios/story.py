"""What a story is: a named plan, what it is about, and what is done to it beside what is done to every plan."""

from __future__ import annotations

import attrs

from scenarios.interruption import Interruption
from scenarios.plan import Call, Op, Plan, Seq

NAP_NS = 150_000_000


@attrs.frozen
class Story:
    """A named plan and its story.

    `extras`: interruptions of its own, each run as `<name>/<label>`. `generic`: is it put through every interruption that fits
    any plan? If not, only worker and engine are killed after its first effect.
    """

    name: str
    story: str
    plan: Plan
    extras: tuple[Interruption, ...] = ()
    generic: bool = True


def in_order(*children: Op) -> Plan:
    """A plan of one after the other."""
    return Plan(Seq("main", children))


def ledger(name: str, *carries: str, amount: int = 1) -> Call:
    """A call to the receiver that honours keys."""
    return Call(name, "ledger", {"amount": amount}, carries)

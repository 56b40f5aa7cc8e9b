"""What a story is: a named plan, what it is about, and what is done to it beside what is done to every plan."""

from __future__ import annotations

from collections.abc import Collection

import attrs

from scenarios.interruption import Action, Interruption, actions_of
from scenarios.plan import Call, Op, Plan, Seq

NAP_NS = 150_000_000
#: What is done to the storage of whoever keeps the store.
STORAGE_ACTIONS: frozenset[Action] = frozenset({"full", "eio", "flip"})


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

    def extras_for(self, units: Collection[str], *, simulated: bool) -> tuple[Interruption, ...]:
        """Its own interruptions, for a target of these units.

        Where no engine keeps the store, the worker does, and in the simulated world it is its storage that fails. A real
        product of one process is left alone: what comes of a flipped bit there is the affair of the database that it stands on.
        """
        if not simulated or "engine" in units:
            return self.extras
        return tuple(_moved(one) if STORAGE_ACTIONS & set(actions_of(one.label)) else one for one in self.extras)


def _moved(one: Interruption) -> Interruption:
    """The same, done to the worker."""
    site = attrs.evolve(one.site, unit="worker")
    return attrs.evolve(one, site=site, then=_moved(one.then) if one.then else None)


def in_order(*children: Op) -> Plan:
    """A plan of one after the other."""
    return Plan(Seq("main", children))


def ledger(name: str, *carries: str, amount: int = 1) -> Call:
    """A call to the receiver that honours keys."""
    return Call(name, "ledger", {"amount": amount}, carries)

"""Hypothesis strategies over the same generators that a tape drives (see `scenarios.generate`)."""

from __future__ import annotations

from collections.abc import Collection

from hypothesis import strategies as st

from scenarios.generate import ALL_OPERATIONS, Choose, Sizes, draw_plan
from scenarios.generate_interruptions import draw_interruptions
from scenarios.interruption import BASIC_VERBS, Interruption, Scenario
from scenarios.plan import Plan


def _source(draw: st.DrawFn) -> Choose:
    return lambda label, n: draw(st.integers(0, n - 1), label=label)


@st.composite
def plans(draw: st.DrawFn, supported: Collection[str] = ALL_OPERATIONS, leaves_max: int = 7) -> Plan:
    """Plans of two to `leaves_max` leaves (once a fan-out is left aside) over the `supported` operations and options; shrinks
    towards two ledger calls in sequence.
    """
    return draw_plan(_source(draw), supported, Sizes(leaves_max=leaves_max))


@st.composite
def interruptions(
    draw: st.DrawFn, plan: Plan, *, simulated: bool = False, verbs: Collection[str] = BASIC_VERBS
) -> tuple[Interruption, ...]:
    """Interruptions that fit `plan` and a target that answers `verbs`; shrinks towards none."""
    return draw_interruptions(_source(draw), plan, simulated=simulated, verbs=verbs)


@st.composite
def scenarios(
    draw: st.DrawFn,
    supported: Collection[str] = ALL_OPERATIONS,
    *,
    simulated: bool = False,
    verbs: Collection[str] = BASIC_VERBS,
) -> Scenario:
    """A drawn plan with drawn interruptions, named `drawn`."""
    plan = draw(plans(supported))
    return Scenario("drawn", plan, draw(interruptions(plan, simulated=simulated, verbs=verbs)))

"""Stories about people who decide."""

from __future__ import annotations

from scenarios.interruption import Interruption, Site
from scenarios.plan import Approve
from scenarios.story import Story, in_order, ledger

_ASKED = Site("waiting", "consent")
_VALIDITY_NS = 2_000_000_000

STORIES = (
    Story(
        "gate",
        "Reserve, have the payment approved, pay, ship: no money moves without a decision that is good for this payment.",
        in_order(
            ledger("reserve"),
            Approve("consent", "pay", _VALIDITY_NS),
            ledger("pay", "reserve", "consent", amount=100),
            ledger("ship", "pay"),
        ),
        extras=(
            Interruption("deny", _ASKED),
            Interruption("forge", _ASKED),
            Interruption("revoke", _ASKED, ns=400_000_000),
            Interruption("cross", _ASKED),
            Interruption("late-decision", _ASKED),
            Interruption("stale-decision", _ASKED, target="pay"),
            Interruption("kill", Site("ack", "consent", verb="decide")),
            Interruption("repeat", Site("ack", "consent", verb="decide")),
        ),
    ),
)

"""Examples of words that are given while nothing is under way: what is sent long after them had not been on its way."""

from __future__ import annotations

from scenarios.plan import Plan
from tests.scenarios.build import Story, par, plan
from tests.scenarios.examples import breaks, holds

CHAIN = plan("a ledger", "b ledger a", "c ledger b")
SIDE = plan(par("a ledger", "b ledger"), "c ledger a,b")
NAP = plan("a ledger", "s sleep 100", "b ledger a")
ASKED = plan("a ledger", "k approve c", "b ledger a", "c ledger b")


def up(of: Plan = CHAIN) -> Story:
    return Story(of).up().start()


# --- SIG-3 ------------------------------------------------------------------------------------------------------------
holds("SIG-3", "it may have been on its way", up().call("a").halt().later(900).call("b").go_on().call("c"), exercised=0)
holds(
    "SIG-3",
    "it may have waited for a place behind another one",
    up(SIDE).request("a").halt().later(1200).call("b").applied(1).reply(call=1).go_on().call("c"),
    exercised=0,
)
holds(
    "SIG-3",
    "another one was under way since",
    up(SIDE).halt().request("a").later(1200).call("b").applied(1).reply(call=1).go_on().call("c"),
    exercised=0,
)
holds(
    "SIG-3",
    "its worker may have died over it",
    up().call("a").crash().halt().later(1200).call("b").go_on().call("c"),
    exercised=0,
)
holds(
    "SIG-3",
    "whoever decided is asked for his authority, which takes what it takes",
    up(ASKED).call("a").decide("k").halt().later(1200).call("b").go_on().call("c"),
    exercised=0,
)
holds(
    "SIG-3",
    "the observer's machine stood still",
    up().call("a").halt().later(600).stalled(600).call("b").go_on().call("c"),
    exercised=0,
)
holds("SIG-3", "it waits until the run is let go on", up().call("a").halt().later(1200).go_on().call("b").call("c"))
breaks("SIG-3", "out of silence", up().call("a").halt().later(1200).call("b").go_on().call("c"), "resurrection")
breaks(
    "SIG-3",
    "a timer goes off, and what follows on it goes out",
    up(NAP).call("a").halt().later(1200).call("b").go_on().done().settled(),
    "resurrection",
)

# --- CAN-1 ------------------------------------------------------------------------------------------------------------
holds(
    "CAN-1",
    "it may have been on its way",
    up().call("a").cancel().later(900).call("b").status("cancelled"),
)
holds(
    "CAN-1",
    "it may have waited for a place behind another one",
    up(SIDE).request("a").cancel().later(1200).call("b").applied(1).reply(call=1).status("cancelled"),
)
breaks("CAN-1", "out of silence", up().call("a").cancel().later(1200).call("b").status("cancelled"), "resurrection")

"""Examples for what requests hand on: DUR-3."""

from __future__ import annotations

import attrs

from scenarios.plan import Branch, Call, Child, Plan, Seq
from tests.scenarios.build import Story, par, plan
from tests.scenarios.examples import breaks, holds

JOIN = plan(par("x ledger", "y ledger"), "z ledger x,y")
GATE = plan("a ledger", "w wait go", "b ledger a,w")
KID = plan(Child("kid", plan("a reader", "b ledger a").root))


def up(of: Plan) -> Story:
    return Story(of, shows_operations=True).up().start()


def ask() -> Story:
    """A wait that may time out, and a call that is tolerated when it is refused."""
    soft = attrs.evolve(Call("a", "flaky"), tolerate=True)
    return up(plan(soft, "w wait go 500", "b ledger a,w"))


holds(
    "DUR-3",
    "two answers and a signal are handed on",
    up(GATE).call("a").crash().signal("1").call("b").done().settled(),
    exercised=0,
)
holds(
    "DUR-3",
    "a child hands on by the names of its own plan",
    up(KID).call("kid/a").call("kid/b", carries={"a": "kid/a1"}).crash().done().settled(),
)
holds(
    "DUR-3",
    "what was refused or never came cannot be handed on",
    ask().call("a", "rejected").later(600).call("b").done().settled(),
    exercised=0,
)
holds(
    "DUR-3",
    "the answer that is handed on was lost, and looked up",
    up(plan("a registry", "b ledger a"))
    .request("a")
    .applied()
    .reply(delivery="dropped")
    .look_up("a", "found")
    .call("b"),
    exercised=0,
)
holds(
    "DUR-3",
    "its receiver has given notice of it",
    up(plan("a mailer", "b ledger a")).request("a").applied().kill().notice("a").up().call("b").done().settled(),
    exercised=0,
)
ARMS = Plan(
    Seq(
        "m",
        (
            Call("a", "ledger"),
            Branch("way", "a", (Call("left", "ledger"), Call("right", "ledger"))),
            Call("b", "ledger"),
        ),
    )
)
holds("DUR-3", "nothing is to be handed on", up(ARMS).call("a").call("right").call("b").done().settled(), exercised=0)

breaks("DUR-3", "nothing is handed on", up(JOIN).call("x").call("y").call("z", carries={}), "amnesia")
breaks("DUR-3", "one of two is", up(JOIN).call("x").call("y").call("z", carries={"x": "x1"}), "amnesia")
breaks(
    "DUR-3",
    "each goes under the name of the other",
    up(JOIN).call("x").call("y").call("z", carries={"x": "y1", "y": "x1"}),
    "forked lineage",
)
breaks(
    "DUR-3",
    "what is handed on nobody has given",
    up(JOIN).call("x").call("y").call("z", carries={"x": "k", "y": "y1"}),
    "forked lineage",
)
breaks("DUR-3", "the signal is not handed on", up(GATE).call("a").signal("1").call("b", carries={"a": "a1"}), "amnesia")
breaks("DUR-3", "a child hands nothing on", up(KID).call("kid/a").call("kid/b", carries={}), "amnesia")

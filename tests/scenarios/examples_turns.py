"""Examples for what decisions leave out: DUR-8. The nonce of the n-th effect of `a` is `an`: odd ones decide for the second way."""

from __future__ import annotations

from scenarios.plan import Branch, Call, Child, Loop, Plan, Race, Seq
from tests.scenarios.build import Story, plan, seq
from tests.scenarios.examples import breaks, holds

FORK = plan("a reader", Branch("fork", "a", (Call("left", "ledger"), Call("right", "ledger"))), "b ledger")
ROUNDS = Plan(Seq("m", (Loop("loop", (Call("a", "ledger"),), "a", 2), Call("b", "ledger"))))
SOFT = plan(
    Call("a", "flaky", tolerate=True),
    Branch("fork", "a", (Call("left", "ledger"), Call("right", "ledger"))),
    "b ledger",
)
HEAT = plan(Race("heat", (Call("hare", "ledger"), seq("slow ledger", "next ledger"))), "b ledger")
LET_GO = plan(
    Race("heat", (Call("hare", "ledger"), Child("kid", plan("x ledger", "y ledger").root, detached=True))), "b ledger"
)


def up(of: Plan) -> Story:
    return Story(of, shows_operations=True).up().start()


holds(
    "DUR-8", "the way that the answer decides for", up(FORK).call("a").crash().call("right").call("b").done().settled()
)
holds(
    "DUR-8",
    "a read that was repeated has two answers, and either may count",
    up(FORK).call("a", delivery="dropped").call("a").call("left").call("b").done().settled(),
)
holds(
    "DUR-8",
    "no second round is wanted",
    up(ROUNDS).request("a@1").reply(nonce="a0").call("b").settled(),
    exercised=0,
)
holds("DUR-8", "a second round is wanted", up(ROUNDS).call("a@1").call("a@2").call("b").done().settled(), exercised=0)
holds(
    "DUR-8",
    "without an answer it is the first way",
    up(SOFT).call("a", "rejected").call("left").call("b").done().settled(),
    exercised=0,
)
holds(
    "DUR-8",
    "what was under way when the race was won arrives later",
    up(HEAT).request("slow").call("hare").call("b").applied(1).reply(call=1).done().settled(),
    exercised=0,
)
holds(
    "DUR-8",
    "a second runner had been answered before the other's end was known",
    up(HEAT).call("slow").call("hare").call("b").call("next").done().settled(),
    exercised=0,
)
holds(
    "DUR-8",
    "a child that was let go has won, and goes on by itself",
    up(LET_GO).request("kid/x").call("b").applied(1).reply(call=1).call("kid/y").done().settled(),
    exercised=0,
)
breaks("DUR-8", "the other way than the answer decides for", up(FORK).call("a").call("left"), "out of order")
breaks("DUR-8", "both ways", up(FORK).call("a").call("right").call("left").call("b").done(), "out of order")
breaks(
    "DUR-8",
    "one round more than is wanted",
    up(ROUNDS).request("a@1").reply(nonce="a0").call("a@2"),
    "out of order",
)
breaks(
    "DUR-8",
    "who lost the race goes on to what comes next",
    up(HEAT).request("slow").call("hare").call("b").applied(1).reply(call=1).call("next"),
    "out of order",
)

"""Examples for DUR-7 8 9 12."""

from __future__ import annotations

from scenarios.history import STORM
from scenarios.plan import Call
from tests.scenarios.build import Story, par, plan, seq
from tests.scenarios.examples import breaks, holds

CHAIN = plan("a ledger", "b ledger a", "c ledger b")
IDS = {"shows_attempts": True}
OPS = {"shows_operations": True}

# --- DUR-7 ------------------------------------------------------------------------------------------------------------
holds(
    "DUR-7",
    "the attempt stays, the execution is a new one",
    Story(CHAIN, **IDS)
    .up()
    .start()
    .call("a")
    .status("running", attempt="t", execution="e1")
    .crash()
    .call("b")
    .status("running", attempt="t", execution="e2"),
)
holds(
    "DUR-7",
    "the new worker is up, but has not taken the run over yet",
    Story(CHAIN, **IDS)
    .up()
    .start()
    .call("a")
    .status("running", attempt="t", execution="e1")
    .crash()
    .status("running", attempt="t", execution="e1"),
)
holds(
    "DUR-7",
    "in a storm, the dead worker's last question comes after the new worker's first",
    Story(CHAIN, **IDS)
    .fired(STORM)
    .up()
    .start()
    .status("running", attempt="t", execution="e1")
    .crash()
    .call("a")
    .status("running", attempt="t", execution="e1"),
)
holds(
    "DUR-7",
    "the paused worker came back and kept the run",
    Story(CHAIN, **IDS)
    .up()
    .start()
    .call("a")
    .status("running", attempt="t", execution="e1")
    .pause()
    .up()
    .resume(1)
    .call("b", by=1)
    .status("running", attempt="t", execution="e1")
    .crash()
    .call("c")
    .status("running", attempt="t", execution="e3"),
)
holds(
    "DUR-7",
    "the engine was killed, its worker lives on and is the same execution",
    Story(CHAIN, **IDS)
    .up(unit="engine")
    .up()
    .start()
    .call("a")
    .status("running", attempt="t", execution="w")
    .kill(unit="engine", incarnation=1)
    .up(unit="engine")
    .call("b", by=2)
    .status("running", attempt="t", execution="w"),
)
holds(
    "DUR-7",
    "a failed pursuit is taken up anew by another attempt",
    Story(CHAIN, **IDS)
    .up()
    .start()
    .call("a", "rejected")
    .status("failed", attempt="t1")
    .crash()
    .ask("resume")
    .answer()
    .status("running", attempt="t2"),
)
holds(
    "DUR-7",
    "operations come to be listed as they become known",
    Story(CHAIN, **OPS)
    .up()
    .start()
    .call("a")
    .status("running", ops={"a": "dispatched"})
    .crash()
    .call("a", "saved")
    .request("b")
    .status("running", ops={"a": "succeeded a1", "b": "dispatched"}),
)
holds(
    "DUR-7",
    "ids that are not declared are not judged",
    Story(CHAIN).up().start().status("running", attempt="t1").crash().status("running", attempt="t2"),
    exercised=0,
)
breaks(
    "DUR-7",
    "recovery makes another attempt",
    Story(CHAIN, **IDS).up().start().status("running", attempt="t1").crash().status("running", attempt="t2"),
    "amnesia",
)
breaks(
    "DUR-7",
    "the execution id is the host's name",
    Story(CHAIN, **IDS)
    .up()
    .start()
    .call("a")
    .status("running", attempt="t", execution="host")
    .crash()
    .call("b")
    .status("running", attempt="t", execution="host"),
    "torn view",
)
breaks(
    "DUR-7",
    "the engine lives on, and shows the dead worker's execution id before and after the new one begins",
    Story(CHAIN, **IDS)
    .up(unit="engine")
    .up()
    .start()
    .call("a")
    .status("running", attempt="t", execution="w")
    .crash()
    .status("running", attempt="t", execution="w")
    .call("b")
    .status("running", attempt="t", execution="w"),
    "torn view",
)
breaks(
    "DUR-7",
    "an operation has another id after recovery",
    Story(CHAIN, **OPS)
    .up()
    .start()
    .request("a")
    .status("running", ops={"a": "dispatched"})
    .crash()
    .status("running", ops={"a'": "dispatched"}),
    "amnesia",
)

# --- DUR-8 ------------------------------------------------------------------------------------------------------------
FORK = plan(par(seq("a ledger", "b ledger a"), "x mailer"), "z ledger b,x")
holds(
    "DUR-8",
    "branches in any order, the join after both",
    Story(FORK).up().start().request("x").call("a").crash().status("blocked", error="x"),
    exercised=0,
)
holds(
    "DUR-8",
    "b follows a in its branch while x is still under way",
    Story(FORK)
    .up()
    .start()
    .request("x")
    .call("a", delivery="dropped")
    .call("a", "saved")
    .call("b")
    .applied(1)
    .reply(call=1)
    .call("z")
    .done(),
    exercised=2,
)
holds(
    "DUR-8",
    "killed after the reply had left: it may or may not have been accepted",
    Story(CHAIN).up().start().call("a").crash().call("b").call("c").done(),
    exercised=2,
)
holds(
    "DUR-8",
    "the signal's acknowledgement was lost, but the signal was not",
    Story(plan("w wait go", "a ledger"))
    .up()
    .start()
    .ask("signal", id="1", name="go", nonce="sig:1")
    .kill()
    .answer("indefinite")
    .up()
    .call("a")
    .done({"w": "sig:1"}),
)
holds(
    "DUR-8",
    "the answer of a dependency was found by a lookup",
    Story(plan("a registry", "b ledger a"))
    .up()
    .start()
    .call("a", delivery="reset")
    .look_up("a", "found")
    .call("b")
    .done(),
)
breaks(
    "DUR-8",
    "the join goes off after one branch",
    Story(FORK).up().start().request("x").call("a").call("b").call("z"),
    "out of order",
)
breaks(
    "DUR-8",
    "the reply was lost, and what depends on it is dispatched all the same",
    Story(CHAIN).up().start().call("a", delivery="dropped").call("b"),
    "out of order",
)
breaks(
    "DUR-8",
    "after a crash everything is dispatched at once",
    Story(CHAIN).up().start().request("a").crash().request("b").request("a"),
    "out of order",
)
breaks(
    "DUR-8",
    "nobody sent the signal",
    Story(plan("w wait go", "a ledger")).up().start().crash().call("a"),
    "out of order",
)

# --- DUR-9 ------------------------------------------------------------------------------------------------------------
SAME = {"amount": 7}
TWINS = plan(par(Call("x", "ledger", SAME), Call("y", "ledger", SAME)))
READS = plan(Call("x", "reader", SAME), Call("y", "reader", SAME))
holds("DUR-9", "each has its own effect and key", Story(TWINS).up().start().call("x").call("y").done())
holds(
    "DUR-9",
    "one of them is sent twice, after a kill",
    Story(TWINS).up().start().call("x").request("y").crash().call("x", "saved").call("y").done(),
)
holds("DUR-9", "two equal reads are two reads", Story(READS).up().start().call("x").call("y").done())
holds(
    "DUR-9",
    "the run is done with one of them unresolved, and says so",
    Story(plan(Call("x", "mailer", SAME), Call("y", "mailer", SAME)), **OPS)
    .up()
    .start()
    .call("x")
    .request("y")
    .crash()
    .done(ops={"x": "succeeded x1", "y": "unresolved"}),
    exercised=0,
)
breaks(
    "DUR-9",
    "the key is made of the parameters",
    Story(TWINS).up().start().call("x", key="7").call("y", "saved", key="7").done({"y": "x1"}),
    "lost effect",
)
breaks(
    "DUR-9",
    "the second one's result is taken from a memo",
    Story(READS).up().start().call("x").done({"y": "x1"}),
    "lost effect",
)
breaks(
    "DUR-9",
    "both have effects, but once under a common key",
    Story(TWINS).up().start().call("x", key="7").request("y", key="7").reply("busy").call("y", key="8").done(),
    "key drift",
)

# --- DUR-12 -----------------------------------------------------------------------------------------------------------
MAIL = plan("m mailer")


def lost_mail() -> Story:
    return Story(MAIL, **OPS).up().start().call("m", delivery="dropped")


holds(
    "DUR-12",
    "blocked, and still unresolved after a kill",
    lost_mail().status("blocked", ops={"m": "unresolved"}).crash().status("blocked", ops={"m": "unresolved"}).settled(),
)
holds(
    "DUR-12",
    "reconciled by hand later",
    Story(plan("m registry"), **OPS)
    .up()
    .start()
    .call("m", delivery="dropped")
    .status("blocked", ops={"m": "unknown"})
    .look_up("m", "found")
    .status("done", ops={"m": "reconciled m1"}, result={"m": "m1"}),
)
holds(
    "DUR-12",
    "the run failed because something else was refused",
    Story(plan(par("m mailer", "f flaky")), **OPS)
    .up()
    .start()
    .call("m", delivery="dropped")
    .call("f", "rejected")
    .status("failed", ops={"m": "unresolved", "f": "failed"}),
)
holds("DUR-12", "done with an unresolved operation", lost_mail().status("done", ops={"m": "unresolved"}).settled())
breaks(
    "DUR-12",
    "unresolved, and failed after a sweep",
    lost_mail().status("blocked", ops={"m": "unresolved"}).crash().status("blocked", ops={"m": "failed"}),
    "false certainty",
)
breaks("DUR-12", "the run failed for it", lost_mail().status("failed", ops={"m": "unresolved"}), "false certainty")

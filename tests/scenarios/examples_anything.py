"""Examples for judges of every kind: what a correct harness shows of races, branches, children, approvals and the rest."""

from __future__ import annotations

from scenarios.plan import Branch, Call, Child, Loop, Model, Race, Seq, Wait
from tests.scenarios.build import Story, par, plan, seq
from tests.scenarios.examples import breaks, holds

OPS = {"shows_operations": True}
LEDGER = {"amount": 1}


def ledger(name: str, *carries: str) -> Call:
    return Call(name, "ledger", LEDGER, carries)


# --- decisions --------------------------------------------------------------------------------------------------------
RACE = plan(
    "a ledger", Race("first", (ledger("one"), Seq("other", (Call("slow", "reader"), ledger("two"))))), "z ledger a"
)
holds(
    "EFF-11",
    "the loser of a race has no effect",
    Story(RACE, **OPS).up().start().call("a").crash().call("one").call("z").done().settled(),
)
holds(
    "DUR-8",
    "what follows a race waits for the winner alone",
    Story(RACE).up().start().call("a").crash().request("slow").call("one").call("z").done().settled(),
    exercised=2,
)
holds(
    "EFF-6",
    "the read of a loser is left unknown",
    Story(RACE)
    .up()
    .start()
    .call("a")
    .call("slow", delivery="dropped")
    .call("one")
    .call("z")
    .quiet()
    .status("done", result={"a": "a1", "one": "one1", "z": "z1"})
    .settled(),
    exercised=0,
)
BRANCH = plan("a reader", Branch("way", "a", (ledger("left"), ledger("right"))), "z ledger a")
holds(
    "DUR-9",
    "the other arm of equal operations has no effect of its own",
    Story(BRANCH, **OPS).up().start().call("a").call("right").call("z").done().settled(),
    exercised=0,
)
breaks(
    "DUR-8",
    "the second step of an arm before its first",
    Story(plan("a reader", Branch("way", "a", (Seq("l", (ledger("l1"), ledger("l2"))), ledger("r")))))
    .up()
    .start()
    .call("a")
    .crash()
    .call("l2"),
    "out of order",
)
LOOP = plan(Loop("l", (ledger("x"), Call("y", "reader", {}, ("x",))), "y", 3), Call("z", "ledger", {}, ("y@1",)))
holds(
    "DUR-3",
    "two rounds of three",
    Story(LOOP).up().start().call("x@1").call("y@1").call("x@2").crash().call("y@2").call("z").done().settled(),
)

# --- failing, undoing, tolerating -------------------------------------------------------------------------------------
SAGA = plan("a ledger", "ua undo a", "b ledger", "ub undo b", "x fail no-stock")
holds(
    "EFF-8",
    "a run that was to fail fails, with a lost reply on the way and its effects undone",
    Story(SAGA, **OPS)
    .up()
    .start()
    .call("a", delivery="reset")
    .call("a", "saved")
    .call("b")
    .call("ub")
    .call("ua")
    .status("failed", reason="no-stock", ops={"a": "succeeded a1", "x": "failed"})
    .settled(),
)
holds(
    "EFF-1",
    "a compensation is killed and sent again",
    Story(SAGA)
    .up()
    .start()
    .call("a")
    .call("b")
    .request("ub")
    .applied()
    .crash()
    .call("ub", "saved")
    .call("ua")
    .status("failed", reason="no-stock")
    .settled(),
)
breaks(
    "EFF-2",
    "a compensation with the key of what it undoes",
    Story(SAGA).up().start().call("a").call("b").call("ub", key="key:b"),
    "key drift",
)
TOLERANT = plan(Call("a", "ledger", {}, (), ("reject",), tolerate=True), "b ledger")
holds(
    "EFF-11",
    "a refusal that is tolerated",
    Story(TOLERANT, **OPS).up().start().call("a", "rejected").crash().call("b").done(ops={}).settled(),
)
POISON = plan(Call("a", "ledger", {"poison": True}, tolerate=True), "b ledger")
holds("DUR-8", "what cannot be sent is tolerated", Story(POISON).up().start().crash().call("b").done().settled())
LIMITED = plan(Call("a", "ledger", LEDGER, tries=2), "b ledger")
holds(
    "EFF-8",
    "tries are used up, the last of them in vain",
    Story(LIMITED, **OPS)
    .up()
    .start()
    .call("a", delivery="dropped")
    .call("a", "busy")
    .status("failed", ops={"a": "failed"}, reason="retries-exhausted")
    .settled(),
)

# --- people -----------------------------------------------------------------------------------------------------------
GATE = plan("a ledger", "ok approve pay 500", "pay ledger a,ok", "z ledger pay")
holds(
    "DUR-2",
    "an approval falls when something else is proposed, and is given anew",
    Story(GATE, **OPS)
    .up()
    .start()
    .call("a")
    .status("waiting", "ok")
    .decide("ok")
    .status("running", ops={"a": "succeeded a1", "ok": "succeeded dec:ok:1"})
    .steer("pay", {"amount": 2})
    .crash()
    .status("waiting", "ok", ops={"a": "succeeded a1", "ok": "planned"})
    .decide("ok", nth=2, params={"amount": 2})
    .desk("ok")
    .call("pay")
    .call("z")
    .done()
    .settled(),
)
holds(
    "EFF-8",
    "a payment is denied while another outcome is unknown",
    Story(plan(par("m mailer", seq("ok approve pay", "pay ledger ok"))), **OPS)
    .up()
    .start()
    .call("m", delivery="dropped")
    .decide("ok", "deny")
    .status("failed", ops={"m": "unresolved", "ok": "failed"}, reason="denied")
    .settled(),
)
holds(
    "DUR-6",
    "nobody decides",
    Story(GATE).up().start().call("a").crash().status("waiting", "ok").bound(),
    exercised=0,
)
breaks(
    "DUR-6",
    "a decision that everybody has heard of, and still it waits",
    Story(GATE).up().start().call("a").crash().decide("ok").status("waiting", "ok").bound(),
    "stuck",
)
holds(
    "DUR-6",
    "a run that was paused stands still",
    Story(plan("a ledger", "b ledger")).up().start().call("a").crash().halt().status("running", paused=True).bound(),
    exercised=0,
)
breaks(
    "DUR-6",
    "a run that was let go again does not go on",
    Story(plan("a ledger", "b ledger")).up().start().call("a").crash().halt().go_on().status("running").bound(),
    "stuck",
)
holds(
    "SIG-1",
    "a signal too late for its wait is acknowledged as such",
    Story(plan("a ledger", "w wait go 100", "b ledger"))
    .up()
    .start()
    .call("a")
    .signal("1", disposition="late")
    .crash()
    .call("b")
    .done()
    .settled(),
)
holds(
    "SCH-1",
    "a timer after a wait that timed out",
    Story(plan("w wait go 20", "s sleep 10", "a ledger"))
    .up()
    .start()
    .later(25)
    .crash()
    .later(12)
    .call("a")
    .signal("1", disposition="late")
    .done()
    .settled(),
)
breaks(
    "SCH-1",
    "a timer that did not wait for the timeout before it",
    Story(plan("w wait go 20", "s sleep 10", "a ledger")).up().start().crash().later(15).call("a"),
    "out of order",
)
holds(
    "SCH-1",
    "a clock that jumped",
    Story(plan("s sleep 5000", "a ledger")).up().start().crash().fired("jump@ack:start~9000000000ns").call("a").done(),
)
holds(
    "DUR-5",
    "another plan under the same id is refused",
    Story(plan("a ledger")).up().start().misuse().start().call("a").done().settled(),
)

# --- receivers and children -------------------------------------------------------------------------------------------
holds(
    "EFF-5",
    "a receiver's notice settles what nobody knew",
    Story(plan("m mailer", "b ledger"), **OPS)
    .up()
    .start()
    .call("m", delivery="dropped")
    .status("running", ops={"m": "unknown"})
    .notice("m")
    .crash()
    .call("b")
    .status("done", ops={"m": "reconciled m1", "b": "succeeded b1"}, result={"m": "m1", "b": "b1"})
    .settled(),
)
CHILD = plan("a ledger", Child("kid", Seq("k", (ledger("x"), ledger("y", "x")))), "z ledger a")
holds(
    "EFF-11",
    "a child's effects are its owner's",
    Story(CHILD, **OPS)
    .up()
    .start()
    .call("a")
    .call("kid/x")
    .crash()
    .call("kid/y")
    .call("z")
    .done(ops={"a": "succeeded a1", "kid": "succeeded", "z": "succeeded z1"})
    .settled(),
)
breaks(
    "EFF-11",
    "a child's effect is missing",
    Story(CHILD).up().start().call("a").call("kid/x").crash().call("z").done().settled(),
    "lost effect",
)
breaks(
    "DUR-8",
    "what follows a child before its end",
    Story(CHILD).up().start().call("a").call("kid/x").crash().call("z"),
    "out of order",
)
DETACHED = plan(Child("kid", ledger("x"), detached=True), "z ledger")
holds("EFF-11", "a detached child goes its own way", Story(DETACHED).up().start().crash().call("z").done().settled())
holds(
    "DUR-3",
    "a model whose answer was of no use is asked again",
    Story(plan(Model("m", "go on", 100, ("wrong",)), "b ledger"))
    .up()
    .start()
    .call("m", usage=40)
    .call("m", usage=40)
    .call("b")
    .crash()
    .done()
    .settled(),
)
SHOWN = plan("a ledger", "p artifact report 64 2", "q check p", "z ledger a")
holds(
    "DUR-3",
    "an artifact is put in parts, checked, and checked again",
    Story(SHOWN, **OPS)
    .up()
    .start()
    .call("a")
    .upload("p")
    .check("q", "unavailable")
    .crash()
    .check("q")
    .status("running", ops={"q": "succeeded q2"})
    .check("q", version=2, digest="d2")
    .call("z")
    .done()
    .settled(),
)
breaks(
    "DUR-8",
    "an artifact is put before what comes before it",
    Story(SHOWN).up().start().crash().upload("p"),
    "out of order",
)
holds(
    "EFF-1",
    "a receiver that forgot the key before its time",
    Story(plan("a ledger"))
    .up()
    .start()
    .request("a")
    .applied()
    .fired("expire@a#1.applied")
    .reply(delivery="dropped")
    .call("a")
    .done()
    .settled(),
)
holds(
    "DUR-1",
    "an emptied disk keeps nothing",
    Story(plan("a ledger")).up().start().fired("wipe@end").crash().status("unknown"),
)
holds(
    "DUR-6",
    "code that is not its own leaves a run alone",
    Story(plan("a ledger", "b ledger"))
    .up(code="1")
    .start()
    .call("a")
    .kill()
    .up(code="2")
    .request("b")
    .status("running")
    .bound(),
    exercised=0,
)
holds(
    "DUR-2",
    "a value that the harness drew itself",
    Story(plan("n nondet uuid", "b ledger"), **OPS)
    .up()
    .start()
    .call("b")
    .status("running", ops={"n": "succeeded 4f"})
    .crash()
    .done({"n": "4f"})
    .settled(),
)
holds(
    "SIG-2",
    "one signal for two waits of which the first timed out",
    Story(plan(Wait("v", "go", 5_000_000), "w wait go", "b ledger w"))
    .up()
    .start()
    .later(6)
    .signal("1")
    .signal("1")
    .call("b", carries={"w": "sig:1"})
    .status("done", result={"w": "sig:1", "b": "b1"})
    .settled(),
)

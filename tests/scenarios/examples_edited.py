"""Examples that came of editing correct histories: each is one that was recorded, cut to what shows the edit."""

from __future__ import annotations

from scenarios.history import OperationStatus, Status, Usage
from scenarios.plan import Allowance, Call, Plan, Seq
from tests.scenarios.build import MS, Story, plan
from tests.scenarios.examples import breaks, holds
from tests.scenarios.words import sha256_of

PAIR = plan("a ledger", "b ledger")
GATED = plan("a ledger", "k approve b", "b ledger")
ENTRY = {
    "name": "report",
    "version": 1,
    "digest": sha256_of(plan("p artifact report 64 1").artifacts()[0]),
    "size": 64,
    "operation": "p",
    "location": "l1",
    "state": "accepted",
}
THOUGHT = Plan(Seq("m", (Call("a", "ledger"), Call("b", "ledger"))), Allowance(9))


def up(of: Plan = PAIR, **declared: object) -> Story:
    return Story(of, shows_operations=True, **declared).up().start()


# --- STA-2: in which order a status lists what it shows ------------------------------------------------------------------
def listed(*ops: str) -> Status:
    return Status("running", version=3, operations=tuple(OperationStatus(op, "planned") for op in ops))


def asked_twice(first: Status, second: Status) -> Story:
    return up().ask("status").answer("ok", first).ask("status").answer("ok", second)


holds("STA-2", "one version lists its operations in another order", asked_twice(listed("a", "b"), listed("b", "a")))
breaks(
    "STA-2",
    "one version lists an operation twice, and then once",
    asked_twice(listed("a", "b", "b"), listed("a", "b")),
    "torn view",
)

# --- STA-1: asked again of who took the start -----------------------------------------------------------------------------
holds(
    "STA-1",
    "who took the start says at once that it runs",
    up().status("running").call("a").call("b").done().settled(),
    exercised=0,
)
breaks(
    "STA-1",
    "who acknowledged the start knows of no run, and nothing has happened",
    up().status("running").status("unknown").call("a").call("b").done().settled(),
    "amnesia",
)

# --- OWN-7: a journal that keeps no such list ------------------------------------------------------------------------------
OVERTAKEN = (
    Story(plan("a reader", "b ledger a"), lease_ns=10 * MS, call_timeout_ns=500 * MS)
    .up()
    .start()
    .request("a")
    .pause()
    .applied()
    .reply()
    .up()
    .call("a")
    .resume(1)
    .later(30)
)
holds("OWN-7", "its journal is of transitions, and keeps no reports", OVERTAKEN.journal(transitions=[]), exercised=0)

# --- APR-1 2 3: what a decision is about, and what it was told to be --------------------------------------------------------


def waits() -> Story:
    return up(GATED).call("a").status("waiting", on="k")


holds("APR-2", "decided about what is shown", waits().decide("k").desk("k").call("b").done().settled(), exercised=0)
breaks(
    "APR-2",
    "decided about something else that nobody had proposed",
    waits().decide("k", digest="0" * 32).desk("k").call("b").done().settled(),
    "stale acceptance",
)
breaks(
    "APR-1",
    "whoever approved it was told that it is denied",
    waits().decide("k", disposition="denied").desk("k").call("b").done().settled(),
    "out of order",
)
breaks(
    "APR-3",
    "whoever approved it was told that it is denied, and it leaves",
    waits().decide("k", disposition="denied").desk("k").call("b").done().settled(),
    "resurrection",
)
holds(
    "APR-3",
    "who comes to deny is told that it is approved already",
    waits().decide("k").decide("k", "deny", nth=2, disposition="approved").desk("k").call("b").done().settled(),
    exercised=0,
)

# --- DUR-4: a result that lacks what its own status shows -------------------------------------------------------------------
TAKEN = {"a": "succeeded a1", "b": "succeeded b1"}
holds(
    "DUR-4",
    "a result may be left out whole",
    up().call("a").call("b").status("done", ops=TAKEN).settled(),
    exercised=0,
)
breaks(
    "DUR-4",
    "the result lacks an answer that the same status shows",
    up().call("a").crash().call("b").status("done", ops=TAKEN, result={"b": "b1"}).settled(),
    "torn view",
)

breaks(
    "DUR-4",
    "the result has another answer than the same status shows",
    up().call("a").call("b").status("done", ops=TAKEN, result={"a": "a1", "b": "b2"}).settled(),
    "torn view",
)

# --- EFF-11: what a run that is done has left ---------------------------------------------------------------------------------
breaks(
    "EFF-11",
    "the last call is still planned as the run is done",
    up().call("a").crash().status("done", ops={"a": "succeeded a1", "b": "planned"}, result={"a": "a1"}).settled(),
    "lost effect",
)
holds(
    "EFF-11",
    "the last call was skipped, and the run says so",
    up().call("a").crash().status("done", ops={"a": "succeeded a1", "b": "skipped"}, result={"a": "a1"}).settled(),
)

# --- JRN-1: what was asked for ------------------------------------------------------------------------------------------------


def recorded(*digests: str) -> Story:
    rows = [
        {"generation": n, "operation": op, "action": "call", "key": f"key:{op}", "digest": digest, "attempt": "t1"}
        for n, (op, digest) in enumerate(zip("ab", digests, strict=True), 1)
    ]
    return up().call("a").crash().call("b").done().journal(invocations=rows)


holds("JRN-1", "what differs has digests that differ", recorded("1", "2"), exercised=0)
breaks("JRN-1", "two calls that ask for different things have one digest", recorded("1", "1"), "phantom effect")
holds(
    "ART-4",
    "what a late worker put where something lies already is cleared away",
    Story(plan("p artifact report 64 1"), shows_operations=True)
    .up()
    .start()
    .upload("p")
    .stored("l1")
    .artifacts([ENTRY])
    .request("p", part=1)
    .stored("l1", "staged")
    .reply(nonce=None)
    .stored("l1", "removed")
    .artifacts([ENTRY])
    .done()
    .settled(),
    exercised=0,
)

# --- DUR-3: what hands on the answer of an artifact ------------------------------------------------------------------------------
TOLD = plan("p artifact report 64 1", "a ledger p")
holds(
    "DUR-3",
    "a call hands on what its artifact was committed with",
    up(TOLD).upload("p").crash().call("a").done().settled(),
    exercised=0,
)
breaks(
    "DUR-3",
    "a call hands on what nobody had committed its artifact with",
    up(TOLD).upload("p").crash().call("a", carries={"p": "p9"}).done().settled(),
    "forked lineage",
)
breaks(
    "DUR-3",
    "a call hands on nothing of its artifact",
    up(TOLD).upload("p").crash().call("a", carries={}).done().settled(),
    "amnesia",
)

# --- BUD-2: with no restart either ------------------------------------------------------------------------------------------


def used(*calls: int) -> Story:
    story = up(THOUGHT).call("a")
    for consumed in calls:
        story.status("running", usage={"calls": Usage(9, consumed)})
    return story


holds("BUD-2", "what is consumed stays so, and nothing restarts", used(1, 1), exercised=0)
breaks("BUD-2", "what was consumed is free again, though nothing restarts", used(1, 0), "replenished allowance")

# --- DUR-7: a pursuit that has failed ---------------------------------------------------------------------------------------


def failed() -> Story:
    return up(shows_attempts=True).call("a", "rejected").status("failed", attempt="t1")


holds(
    "DUR-7",
    "a run that had failed is pursued anew, by a new attempt",
    failed().status("running", attempt="t2"),
    exercised=0,
)
holds(
    "DUR-7",
    "its disk was emptied, and it was started as if for the first time",
    failed().fired("wipe@end").crash().start().status("running", attempt="t1"),
)
breaks("DUR-7", "a run that had failed goes on as if it had not", failed().status("running", attempt="t1"), "torn view")

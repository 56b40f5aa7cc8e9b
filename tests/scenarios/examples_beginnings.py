"""Examples of what work may begin on, what it may be called done on, and what a harness says beside its answers."""

from __future__ import annotations

from scenarios.plan import Artifact, Call, Child, Plan, Race, Seq
from tests.scenarios.build import MS, Story, plan
from tests.scenarios.examples import breaks, holds

CHECKED = plan("p artifact report 64 1", "q check p", "b ledger")
WAITING = plan("a ledger", "w wait go", "b ledger w")
GATED = plan("z ledger", "k approve a", "a ledger", "b ledger")


def up(of: Plan, **declared: object) -> Story:
    return Story(of, shows_operations=True, **declared).up().start()


# --- DUR-8: what comes before is more than calls and waits --------------------------------------------------------------
holds("DUR-8", "after its check", up(CHECKED).upload("p").crash().check("q").call("b").done().settled())
breaks("DUR-8", "before its check was answered", up(CHECKED).upload("p").call("b").check("q").done(), "out of order")
breaks("DUR-8", "before its upload was committed", up(CHECKED).call("b").upload("p").check("q").done(), "out of order")
breaks("DUR-8", "behind the place where its run fails", up(plan("a ledger", "f fail no", "b ledger")).call("a").call("b"), "out of order")

# --- CPL-1: a word that never came is no pass ---------------------------------------------------------------------------
breaks(
    "CPL-1",
    "done, though what the checker said was lost",
    up(plan("p artifact report 64 1", "q check p"))
    .upload("p")
    .request("q", subject="report@1#x")
    .reply(delivery="dropped", outcome="passed")
    .status("done", result={}),
    "false certainty",
)

# --- EFF-2: no key is another than any ----------------------------------------------------------------------------------
breaks(
    "EFF-2",
    "sent again without the key that it had",
    up(plan("a ledger")).request("a").reply("error").request("a", key=None).applied().reply(),
    "key drift",
)
LONG = plan("a ledger", Call("o", "operation", {"ns": 5 * MS}, ("a",)))
holds(
    "EFF-2",
    "long work is cancelled at its receiver, which takes no key and hands nothing on",
    up(LONG).call("a").call("o").cancel().request("o", key=None, carries={}, params="cancel").reply("executed", nonce=None).status("cancelled").settled(),
    exercised=0,
)

# --- SCH-4: as declared -------------------------------------------------------------------------------------------------
breaks(
    "SCH-4",
    "said to keep what comes early, it refuses it",
    up(WAITING).signal("1", outcome="error").call("a").status("waiting", on="go"),
    "torn view",
)
holds(
    "SCH-4",
    "said to keep what comes early, it refuses what comes before the run is known",
    Story(WAITING).up().start("indefinite").signal("1", outcome="error").start().call("a").status("waiting", on="go"),
)
holds(
    "SCH-4",
    "said to keep what comes early, it can keep nothing with its disk full",
    up(WAITING).fired("full@ack:start").signal("1", outcome="error").call("a").status("waiting", on="go"),
)
holds(
    "SCH-4",
    "said to keep what comes early, it had been let down by its disk before the run was known",
    Story(WAITING, shows_operations=True)
    .up()
    .fired("eio@ack:start")
    .start()
    .signal("1", outcome="error")
    .call("a")
    .status("waiting", on="go"),
)

# --- answers that a harness gives itself --------------------------------------------------------------------------------
holds(
    "DUR-2",
    "a timer, a child and a race have answers that nobody but the harness gives",
    up(plan("s sleep 5", Child("kid", Call("x", "ledger")), Race("r", (Call("a", "ledger"), Call("c", "ledger")))))
    .later(20)
    .call("kid/x")
    .call("a")
    .status("running", ops={"s": "succeeded fired", "kid": "succeeded r1/kid", "a": "succeeded a1"})
    .crash()
    .status("done", result={}, ops={"s": "succeeded fired", "kid": "succeeded r1/kid", "r": "succeeded a", "a": "succeeded a1"}),
)
CARRIED = Plan(Seq("m", (Call("a", "ledger"), Artifact("p", "report", 64, 1, ("a",)))))
holds(
    "DUR-3",
    "parts of an upload are removed, which hands nothing on",
    up(CARRIED)
    .call("a")
    .request("p", part=1)
    .reply(nonce=None)
    .crash()
    .request("p", carries={})
    .reply("executed", nonce=None)
    .upload("p")
    .done()
    .settled(),
)
holds(
    "JRN-9",
    "a decision is shown as accepted, without the nonce that it came with",
    up(GATED)
    .call("z")
    .status("waiting", on="k")
    .decide("k")
    .desk("k")
    .request("a")
    .halt()
    .status("running", paused=True, ops={"k": "succeeded", "a": "dispatched"})
    .applied()
    .reply()
    .go_on()
    .call("b")
    .done()
    .settled(),
)
holds(
    "JRN-9",
    "denied after a pause, and failed by that",
    up(GATED)
    .call("z")
    .status("waiting", on="k")
    .halt()
    .go_on()
    .decide("k", "deny")
    .status("failed", reason="denied", ops={"k": "failed", "a": "failed", "b": "planned"})
    .settled(),
)

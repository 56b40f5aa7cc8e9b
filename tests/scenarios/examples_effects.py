"""Examples for EFF-1 2 3 11 12."""

from __future__ import annotations

from scenarios.plan import Call
from tests.scenarios.build import Story, par, plan
from tests.scenarios.examples import breaks, holds

ONE = plan("a ledger")
CHAIN = plan("a ledger", "b ledger a")
OPS = {"shows_operations": True}

# --- EFF-1 ------------------------------------------------------------------------------------------------------------
holds(
    "EFF-1",
    "killed after the effect, sent again with the same key",
    Story(ONE).up().start().request("a").applied().crash().call("a", "saved").done(),
)
holds("EFF-1", "killed before the effect", Story(ONE).up().start().request("a").crash().call("a").done())
holds(
    "EFF-1",
    "a reply lost, a conflict, a 5xx, then the saved answer",
    Story(ONE).up().start().call("a", delivery="reset").call("a", "busy").call("a", "error").call("a", "saved").done(),
    exercised=2,
)
holds(
    "EFF-1",
    "the paused worker's late request gets the saved answer",
    Story(ONE).up().start().pause().up().call("a").resume(1).call("a", "saved", by=1).done(),
    exercised=0,
)
breaks(
    "EFF-1",
    "no key is sent",
    Story(ONE).up().start().call("a", key=None).crash().call("a", key=None).done(),
    "duplicate effect",
)
breaks(
    "EFF-1",
    "a new key for a new try",
    Story(ONE).up().start().call("a", delivery="dropped", key="1").call("a", key="2").done(),
    "duplicate effect",
)
breaks(
    "EFF-1",
    "only the stale worker's late request doubles it",
    Story(ONE).up().start().pause().up().call("a", key="w2").resume(1).call("a", by=1, key="w1").done(),
    "duplicate effect",
)

# --- EFF-2 ------------------------------------------------------------------------------------------------------------
holds(
    "EFF-2",
    "one key over three workers",
    Story(ONE).up().start().request("a").crash().request("a").crash().call("a").done(),
    exercised=2,
)
holds(
    "EFF-2",
    "two receivers have key spaces of their own",
    Story(plan("a ledger", "f flaky")).up().start().call("a", key="1").call("f", key="1").done(),
    exercised=0,
)
holds(
    "EFF-2",
    "what is sent where keys mean nothing is not judged",
    Story(plan("r reader")).up().start().request("r", key="1").crash().call("r", key="2").done(),
    exercised=0,
)
breaks(
    "EFF-2",
    "the key contains the worker",
    Story(ONE).up().start().request("a", key="w1").crash().call("a", key="w2").done(),
    "key drift",
)
breaks(
    "EFF-2",
    "a new key to get past a conflict",
    Story(ONE).up().start().request("a", key="1").crash().request("a", key="1").reply("busy").call("a", key="2").done(),
    "key drift",
)
breaks(
    "EFF-2",
    "two operations share a key",
    Story(CHAIN).up().start().call("a", key="run").call("b", "mismatch", key="run").status("failed"),
    "key drift",
)

# --- EFF-3 ------------------------------------------------------------------------------------------------------------
READ = plan("p reader", "b ledger p")
holds(
    "EFF-3",
    "the repeat hands on the same answer",
    Story(READ).up().start().call("p").request("b").crash().call("b").done(),
)
holds(
    "EFF-3",
    "the read is repeated before anything was made of it",
    Story(READ).up().start().call("p").crash().call("p").request("b").crash().call("b").done(),
)
holds(
    "EFF-3",
    "a lookup or a request without a key says nothing about keys",
    Story(plan("a registry", "b ledger a")).up().start().call("a").request("b", key=None).crash().call("b").done(),
    exercised=0,
    but=("EFF-2",),
)
breaks(
    "EFF-3",
    "the read was repeated under the same key for what follows",
    Story(READ).up().start().call("p").request("b").applied().crash().call("p").call("b", "mismatch").status("failed"),
    "key drift",
)
breaks(
    "EFF-3",
    "the input changed around the crash",
    Story(ONE).up().start().request("a", params="x").crash().call("a", params="y").done(),
    "key drift",
)
breaks(
    "EFF-3",
    "one key for two different operations",
    Story(CHAIN).up().start().call("a", key="k").call("b", "mismatch", key="k"),
    "key drift",
)

# --- EFF-11 -----------------------------------------------------------------------------------------------------------
holds("EFF-11", "done after a crash, with every effect", Story(CHAIN).up().start().call("a").crash().call("b").done())
holds(
    "EFF-11",
    "the effect came with a request whose reply was lost",
    Story(plan("a registry")).up().start().call("a", delivery="dropped").look_up("a", "found").done(),
)
holds(
    "EFF-11",
    "done with an unresolved operation, shown as such",
    Story(plan("m mailer"), **OPS).up().start().request("m").crash().status("done", ops={"m": "unresolved"}),
)
holds(
    "EFF-11",
    "failed and blocked promise nothing",
    Story(CHAIN).up().start().call("a", "rejected").crash().status("failed"),
    exercised=0,
)
holds(
    "EFF-11",
    "what it published was committed",
    Story(plan("p artifact report 9 2")).up().start().request("p", part=1).crash().upload("p").done({"p": "p1"}),
)
breaks(
    "EFF-11",
    "all parts of what it was to publish were put, and never committed",
    Story(plan("p artifact report 9 2")).up().start().crash().upload("p", commit=False).done({}),
    "lost effect",
)
breaks("EFF-11", "an operation was forgotten", Story(CHAIN).up().start().call("a").crash().done(), "lost effect")
breaks(
    "EFF-11",
    "an intent counts as done after recovery",
    Story(ONE).up().start().request("a").crash().status("done"),
    "lost effect",
)
breaks(
    "EFF-11",
    "the effect comes only after done was shown",
    Story(ONE).up().start().request("a").status("done").applied().reply(),
    "lost effect",
)

# --- EFF-12 -----------------------------------------------------------------------------------------------------------
holds(
    "EFF-12",
    "killed after dispatch, shown as dispatched, then unknown",
    Story(plan("m mailer"), **OPS)
    .up()
    .start()
    .request("m")
    .crash()
    .status("running", ops={"m": "dispatched"})
    .status("blocked", ops={"m": "unresolved"}),
)
holds(
    "EFF-12",
    "a status asked before the dispatch says planned, and is answered after it",
    Story(ONE, **OPS)
    .up()
    .start()
    .ask("status")
    .request("a")
    .shows("running", ops={"a": "planned"})
    .applied()
    .reply()
    .crash()
    .call("a", "saved")
    .done(),
)
holds(
    "EFF-12",
    "refused for lack of room it may wait as planned",
    Story(ONE, **OPS)
    .up()
    .start()
    .request("a")
    .reply("limited")
    .crash()
    .status("running", ops={"a": "planned"})
    .call("a")
    .done(),
)
holds(
    "EFF-12",
    "refused for a conflict it may wait as planned",
    Story(ONE, **OPS)
    .up()
    .start()
    .request("a")
    .crash()
    .request("a")
    .reply("busy")
    .status("running", ops={"a": "dispatched"})
    .call("a")
    .done(),
)
holds(
    "EFF-12",
    "a sibling that was not dispatched is planned",
    Story(plan(par("a ledger", "b ledger")), **OPS)
    .up()
    .start()
    .request("a")
    .crash()
    .status("running", ops={"a": "dispatched", "b": "planned"})
    .call("a")
    .call("b")
    .done(),
)
breaks(
    "EFF-12",
    "the intent was lost with the power",
    Story(ONE, **OPS).up().start().request("a").applied().kill("power").up().status("running", ops={"a": "planned"}),
    "phantom effect",
)
breaks(
    "EFF-12",
    "nobody knows of the run that sent it",
    Story(ONE).up().ask("start").request("a").applied().kill().answer("indefinite").up().status("unknown"),
    "phantom effect",
)
breaks(
    "EFF-12",
    "the intent is written after the call",
    Story(plan(Call("m", "mailer")), **OPS).up().start().request("m").status("running", ops={"m": "planned"}),
    "phantom effect",
)

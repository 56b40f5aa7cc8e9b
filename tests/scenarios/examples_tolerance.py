"""Examples of refusals that are tolerated: accepted outcomes without an answer, which nobody has to undo."""

from __future__ import annotations

from scenarios.history import Replied
from scenarios.plan import Allowance, Call, Compensate, Plan, Reserve, Seq
from tests.scenarios.build import Story, plan
from tests.scenarios.examples import breaks, holds


def tolerant(name: str, of: str = "x") -> Call:
    return Call(name, "ledger", {"of": of}, script=("reject",), tolerate=True)


ONE = plan(tolerant("a"), "b ledger")
TWO = plan(tolerant("a"), tolerant("c"), "b ledger")
UNDONE = plan(tolerant("a"), "u undo a", "b ledger", "v undo b", "c ledger")
TAKEN = {"a": "succeeded", "b": "succeeded b1"}


def up(of: Plan) -> Story:
    return Story(of, shows_operations=True).up().start()


# --- shown as accepted, without an answer -------------------------------------------------------------------------------
holds(
    "EFF-11",
    "a refusal that is tolerated is shown as accepted",
    up(ONE).call("a", "rejected").crash().call("b").status("done", result={"b": "b1"}, ops=TAKEN).settled(),
)
breaks(
    "EFF-11",
    "an answer that is none, of what may be refused",
    up(ONE)
    .call("a", "rejected")
    .call("b")
    .status("done", result={"a": "a1", "b": "b1"}, ops={**TAKEN, "a": "succeeded a1"}),
    "lost effect",
)
holds(
    "DUR-9",
    "two equal ones are refused, which is tolerated",
    up(TWO)
    .call("a", "rejected")
    .call("c", "rejected")
    .call("b")
    .status("done", result={"b": "b1"}, ops={**TAKEN, "c": "succeeded"})
    .settled(),
    exercised=0,
)
holds(
    "JRN-9",
    "refused, as it may be, and then paused",
    up(ONE)
    .call("a", "rejected")
    .request("b")
    .halt()
    .status("running", paused=True, ops={"a": "succeeded", "b": "dispatched"})
    .applied()
    .reply()
    .go_on()
    .done()
    .settled(),
)
breaks(
    "JRN-9",
    "what may be refused is closed as accepted when the run is stopped",
    up(ONE).request("a").cancel().status("cancelled", ops={"a": "succeeded", "b": "planned"}),
    "false certainty",
)
SAVED = up(ONE).request("a").reply("rejected", delivery="dropped").request("a")
holds(
    "EFF-7",
    "the failure that its receiver has saved is one that is tolerated",
    SAVED.add(Replied(SAVED.now_ns, SAVED.calls, 400, "saved")).status("running", ops={"a": "succeeded", "b": "planned"}),
)

# --- and nothing to undo ------------------------------------------------------------------------------------------------
REFUSED = {"a": "succeeded", "u": "planned", "b": "succeeded b1", "v": "succeeded v1", "c": "failed"}
holds(
    "CMP-2",
    "what was refused, and tolerated, is not undone",
    up(UNDONE)
    .call("a", "rejected")
    .call("b")
    .call("c", "rejected")
    .request("v")
    .crash()
    .call("v")
    .status("failed", ops=REFUSED)
    .settled(),
)
holds(
    "CAN-7",
    "what was refused, and tolerated, is not undone",
    up(UNDONE)
    .call("a", "rejected")
    .call("b")
    .cancel()
    .call("v")
    .status("cancelled", ops={**REFUSED, "c": "planned"})
    .settled(),
)
holds(
    "BUD-7",
    "no call of the reserve is owed to what was refused, and tolerated",
    up(Plan(Seq("m", (tolerant("a"), Compensate("u", "a", "ledger"), Call("b", "ledger"))), Allowance(2, reserve=Reserve(1))))
    .call("a", "rejected")
    .call("b")
    .status("failed", reason="allowance-exhausted", ops={**TAKEN, "u": "planned"})
    .settled(),
    exercised=0,
)

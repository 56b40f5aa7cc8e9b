"""Examples of what a harness of another make does differently, and with as good a right."""

from __future__ import annotations

import attrs

from scenarios.operation import Allowance
from scenarios.plan import Call, Child, Model, Plan, Seq
from tests.scenarios.build import MS, Story, plan
from tests.scenarios.examples import breaks, holds
from tests.scenarios.examples_approvals import BRIEF, asks, shows
from tests.scenarios.examples_budgets import ONE, UNPRICED, tokens

OPS = {"shows_operations": True}
LOOKED_UP = plan(Call("r", "registry"))
FIRST_UNPRICED = attrs.evolve(
    plan(Model("m", "?", 6, ("unmetered",)), "n model 6 m"), allowance=Allowance(tokens=30)
)  # there is enough for both, and for what gets lost

# --- an answer without its price is booked as all that was set aside for it ---------------------------------------------
holds(
    "BUD-2",
    "an answer that does not say what it has cost counts as all that was set aside",
    Story(UNPRICED)
    .up()
    .start()
    .call("m")
    .crash()
    .status("failed", reason="allowance-exhausted: tokens", **tokens(10, 6)),
)
breaks(
    "BUD-2",
    "an answer that does not say what it has cost counts twice",
    Story(FIRST_UNPRICED).up().start().call("m").crash().status("running", **tokens(30, 12)),
    "torn view",
)
holds(
    "BUD-3",
    "one answer does not say what it has cost, and counts as all that was set aside; another is lost",
    Story(FIRST_UNPRICED)
    .up()
    .start()
    .call("m")
    .call("n", delivery="reset", usage=3)
    .call("n", usage=3)
    .done(**tokens(30, 9, 0, 6)),
)
breaks(
    "BUD-3",
    "one answer does not say what it has cost, and another, which is lost, is booked as if it had come",
    Story(FIRST_UNPRICED)
    .up()
    .start()
    .call("m")
    .call("n", delivery="reset", usage=3)
    .status("running", **tokens(30, 12, 0, 6)),
    "false certainty",
)
breaks(
    "BUD-2",
    "an answer that says what it has cost counts as all that was set aside",
    Story(ONE).up().start().call("m", usage=3).crash().status("running", **tokens(18, 6, 0, 6)),
    "torn view",
)

# --- what was looked up and never happened is planned anew --------------------------------------------------------------
holds(
    "EFF-12",
    "looked up and not found, it is planned anew",
    Story(LOOKED_UP, **OPS)
    .up()
    .start()
    .request("r")
    .crash()
    .status("running", ops={"r": "unknown"})
    .look_up("r")
    .status("running", ops={"r": "planned"})
    .call("r")
    .done(),
)
breaks(
    "EFF-12",
    "looked up and found, it is planned all the same",
    Story(LOOKED_UP, **OPS)
    .up()
    .start()
    .request("r")
    .applied()
    .crash()
    .look_up("r", "found")
    .status("running", ops={"r": "planned"}),
    "phantom effect",
)
breaks(
    "EFF-12",
    "not found at first, it is planned when it has been sent again",
    Story(LOOKED_UP, **OPS)
    .up()
    .start()
    .request("r")
    .crash()
    .look_up("r")
    .request("r")
    .applied()
    .status("running", ops={"r": "planned"}),
    "phantom effect",
)

# --- an approval that was used keeps nobody waiting ---------------------------------------------------------------------
holds(
    "APR-7",
    "it was used in time, and what it was good for has not come to its receiver",
    shows(
        asks(Story(BRIEF).up().start().call("a")).decide("k").desk("k").later(600),
        "running",
        ("k", "released"),
    ).bound(),
    exercised=0,
    but=("DUR-6",),
)
breaks(
    "APR-7",
    "approved and never used, it is still shown as approved long after its time",
    shows(asks(Story(BRIEF).up().start().call("a")).decide("k").later(600), "running", ("k", "approved")).bound(),
    "stuck",
)

# --- a timer that ends by a clock which was set back --------------------------------------------------------------------
BACK = "jump@ack:start(engine)~-3600000000000ns"
AHEAD = "jump@ack:start(engine)~3600000000000ns"
NAP = plan("a ledger", "s sleep 100", "b ledger a")
SOON = plan("a ledger", "w wait go 100", "b ledger a")


def set_to(label: str, of: Plan) -> Story:
    return Story(of, **OPS).up().start().fired(label)


holds(
    "DUR-6",
    "a timer ends by a clock that was set back for an hour, which is not over yet",
    set_to(BACK, NAP).call("a").status("waiting", ops={"a": "succeeded a1", "s": "planned"}).bound(),
    exercised=0,
)
holds(
    "DUR-6",
    "a wait has a time, by a clock that was set back",
    set_to(BACK, SOON).call("a").status("waiting", "go", ops={"a": "succeeded a1", "w": "planned"}).bound(),
    exercised=0,
)
holds(
    "SCH-10",
    "a try failed, its worker died, and the next try is for an hour that is not yet",
    set_to(BACK, plan("a ledger")).call("a", "error").crash().status("running", ops={"a": "unknown"}).bound(),
    exercised=0,
)
breaks(
    "DUR-6",
    "a timer does not end though its clock was set ahead",
    set_to(AHEAD, NAP).call("a").status("waiting", ops={"a": "succeeded a1", "s": "planned"}).bound(),
    "stuck",
)
breaks(
    "DUR-6",
    "a clock was set back, the timer is over, and nothing goes on",
    set_to(BACK, NAP)
    .call("a")
    .later(200)
    .status("running", ops={"a": "succeeded a1", "s": "succeeded", "b": "planned"})
    .bound(),
    "stuck",
)
breaks(
    "DUR-6",
    "a clock was set back, and what a dead worker had in hand is nobody's for an hour",
    set_to(BACK, NAP).request("a").crash().status("running", ops={"a": "dispatched"}).bound(),
    "stuck",
)

# --- a child that is over is at work no more ----------------------------------------------------------------------------
FAMILY = plan("a ledger", Child("kid", Seq("k", (Call("x", "ledger"), Call("y", "ledger")))))


def stopped(ops: dict[str, str]) -> Story:
    """The run is stopped over a call of its child, and its child is given up within the grace."""
    story = Story(FAMILY, grace_ns=500 * MS, call_timeout_ns=1000 * MS, **OPS).up().start().call("a").request("kid/x")
    return story.cancel().status("cancelled", ops={"a": "succeeded a1", **ops}, cancel="quiescent").applied().reply()


holds("CAN-2", "a child was given up within the grace, and is shown so", stopped({"kid": "failed"}), exercised=0)
breaks(
    "CAN-2", "called quiescent with a child that is shown at work", stopped({"kid": "dispatched"}), "false certainty"
)
breaks("CAN-2", "called quiescent, and of the child nothing is said", stopped({}), "false certainty")

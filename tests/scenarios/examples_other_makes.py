"""Examples of what a harness of another make does differently, and with as good a right."""

from __future__ import annotations

import attrs

from scenarios.operation import Allowance
from scenarios.plan import Call, Model
from tests.scenarios.build import Story, plan
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

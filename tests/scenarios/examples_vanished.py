"""Examples of runs that a death has ended or left standing: what is not there, or does nothing more, repeats nothing and loses
nothing, and so shows nothing of what it had been promised to keep.
"""

from __future__ import annotations

from scenarios.plan import Call, Child, Plan
from tests.scenarios.build import MS, Story, par, plan
from tests.scenarios.examples import holds

CHAIN = plan("a ledger", "b ledger a", "c ledger b")
GATE = plan("a ledger", "w wait go", "b ledger w")
OPS = {"shows_operations": True}


def up(of: Plan = CHAIN, **declared: object) -> Story:
    return Story(of, **declared).up().start()


# --- it is gone -------------------------------------------------------------------------------------------------------
holds(
    "DUR-3",
    "nobody knows the run after the kill",
    up().call("a").call("b").crash().status("unknown").settled(),
    exercised=0,
    but=("DUR-1", "DUR-2", "DUR-6", "EFF-12", "DLN-3", "STA-1"),
)

# --- it stands still ----------------------------------------------------------------------------------------------------
holds("DUR-3", "nothing goes on after the kill", up().call("a").call("b").crash().status("running").settled(), exercised=0)
holds(
    "DUR-3",
    "after the kill comes only what was on its way before",
    up().call("a").call("b").crash().call("c", by=1).status("running"),
    exercised=0,
)
holds("DUR-3", "done before the kill, and shown so after it", up().call("a").call("b").call("c").crash().done())
holds(
    "DUR-3",
    "what was accepted is shown after the kill, and waits for more",
    up(GATE, **OPS).call("a").status("waiting", on="go").crash().status("waiting", on="go", ops={"a": "succeeded a1"}),
)
holds(
    "EFF-1",
    "an effect whose run stands still has nobody to repeat it",
    up().request("a").applied().crash().status("running"),
    exercised=0,
)
holds(
    "EFF-1",
    "lost with one worker, and asked for by the other",
    up().request("a").applied().crash().call("a", "saved").status("running"),
)
holds(
    "EFF-4",
    "nothing is looked up where nothing goes on",
    up(plan("a registry")).request("a").applied().crash().status("running"),
    exercised=0,
)
holds(
    "EFF-5",
    "a blind call is not repeated where nothing goes on",
    up(plan("a mailer", "b ledger")).request("a").applied().crash().status("running"),
    exercised=0,
)
holds(
    "EFF-5",
    "a blind call is not repeated where something else goes on",
    up(plan(par("a mailer", "b ledger")), **OPS)
    .request("a")
    .applied()
    .crash()
    .call("b")
    .status("running", ops={"a": "unknown"}),
)
holds(
    "EFF-11",
    "done before the kill that was ordered had struck",
    up().call("a").call("b").fired("kill@c#1.replied").call("c").done().kill(),
    exercised=0,
)
holds(
    "SIG-1",
    "the run stands still after the kill",
    up(GATE).call("a").status("waiting", on="go").signal("1").crash().status("running"),
    exercised=0,
)
holds(
    "APR-5",
    "the run stands still after the kill",
    up(plan("z ledger", "k approve a", "a ledger"))
    .call("z")
    .status("waiting", on="k")
    .decide("k")
    .crash()
    .status("running"),
    exercised=0,
)
holds(
    "CHI-2",
    "its parent stands still after the kill",
    up(plan(Child("kid", Call("x", "ledger")), "b ledger")).call("kid/x").crash().status("running"),
    exercised=0,
)
holds(
    "RTY-2",
    "a run that stands still tries nothing",
    up(plan(Call("a", "ledger", elapsed_ns=50 * MS)))
    .request("a")
    .crash()
    .later(500)
    .status("running"),
    exercised=0,
)

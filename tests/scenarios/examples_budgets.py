"""Examples for BUD-1 2 3 4."""

from __future__ import annotations

from typing import Any

import attrs

from scenarios.history import Usage
from scenarios.operation import Allowance
from scenarios.plan import Model, Op, Plan
from tests.scenarios.build import MS, Story, par, plan
from tests.scenarios.examples import breaks, holds


def allowed(allowance: Allowance, *children: Op | str) -> Plan:
    return attrs.evolve(plan(*children), allowance=allowance)


def tokens(allowance: int, consumed: int = 0, reserved: int = 0, unknown: int = 0) -> dict[str, Any]:
    """Fields of a status that shows how the tokens stand."""
    return {"usage": {"tokens": Usage(allowance, consumed, reserved, unknown)}}


TWO_OF_SIX = allowed(Allowance(tokens=10), par("m model 6", "n model 6"))
ONE = allowed(Allowance(tokens=18), "m model 6", "n model 6")
UNPRICED = allowed(Allowance(tokens=10), Model("m", "?", 6, ("unmetered",)), "n model 6 m")

# --- BUD-1 ------------------------------------------------------------------------------------------------------------
holds(
    "BUD-1",
    "the second thought waits for what the first leaves",
    Story(TWO_OF_SIX)
    .up()
    .start()
    .request("m")
    .status("running", **tokens(10, 0, 6))
    .applied()
    .reply(usage=3)
    .call("n", usage=3)
    .done(**tokens(10, 6)),
    exercised=2,
)
holds(
    "BUD-1",
    "one is lost with its worker and asked again, and for the last there is not enough",
    Story(allowed(Allowance(tokens=17), "m model 6", "n model 6", "o model 6"))
    .up()
    .start()
    .request("m")
    .crash()
    .call("m", usage=3)
    .call("n", usage=3)
    .status("failed", reason="allowance-exhausted: tokens", **tokens(17, 6, 0, 6)),
    exercised=3,
)
holds(
    "BUD-1",
    "a call that was told to come later need not count",
    Story(allowed(Allowance(calls=2), "a flaky", "b ledger"))
    .up()
    .start()
    .call("a", "limited")
    .call("a")
    .call("b")
    .done(),
    exercised=0,
)
holds(
    "BUD-1",
    "a third was sent long after one that its caller had given up on",
    Story(allowed(Allowance(concurrency=2), par("a ledger", "b ledger", "c ledger")))
    .up()
    .start()
    .request("a")
    .call("b")
    .later(1200)
    .request("a")
    .request("c"),
    exercised=0,
)
#: The first takes more than is set aside for it.
MORE = allowed(Allowance(tokens=15), Model("m", "?", 6, uses=10), "n model 6 m")
holds(
    "BUD-1",
    "the first has taken more than was set aside, and for the second there is not enough",
    Story(MORE)
    .up()
    .start()
    .call("m", usage=10)
    .status("failed", reason="allowance-exhausted: tokens", **tokens(15, 10))
    .settled(),
)
holds(
    "BUD-1",
    "how much more was taken is not known of an answer that was lost with its worker",
    Story(allowed(Allowance(tokens=18), Model("m", "?", 6, uses=10), "n model 6 m"))
    .up()
    .start()
    .request("m")
    .applied()
    .reply(usage=10)
    .crash()
    .call("m", usage=6)
    .call("n", usage=3)
    .done(),
)
breaks(
    "BUD-1",
    "what the first took beyond what was set aside is forgotten",
    Story(MORE).up().start().call("m", usage=10).call("n", usage=3).done(),
    "overspend",
)
TERM = allowed(Allowance(elapsed_ns=2_000 * MS), "a ledger", "s sleep 9000", "b ledger a")
holds(
    "BUD-1",
    "its time is over while it sleeps, and it ends",
    Story(TERM)
    .up()
    .start()
    .call("a")
    .later(2100)
    .status("failed", reason="allowance-exhausted: elapsed", usage={"elapsed_ns": Usage(2_000 * MS, 2_100 * MS)})
    .settled(),
    exercised=0,
)
holds(
    "BUD-1",
    "what was begun in time is repeated after it, and what was on its way arrives",
    Story(allowed(Allowance(elapsed_ns=2_000 * MS), "a flaky", "b ledger a"))
    .up()
    .start()
    .later(1900)
    .call("a", "error")
    .later(800)
    .call("a")
    .later(100)
    .call("b")
    .status("failed", reason="allowance-exhausted: elapsed")
    .settled(),
    exercised=0,
)
breaks(
    "BUD-1",
    "it may take two seconds, sleeps for nine, and goes on",
    Story(TERM).up().start().call("a").later(9000).call("b").done().settled(),
    "overspend",
)
breaks(
    "BUD-1",
    "a restart gives it the same time again",
    Story(TERM).up().start().call("a").later(1900).crash().later(1900).call("b").done().settled(),
    "overspend",
)
breaks(
    "BUD-1",
    "two calls of six against ten",
    Story(TWO_OF_SIX).up().start().request("m").request("n"),
    "overspend",
)
breaks(
    "BUD-1",
    "each try has the whole allowance for itself",
    Story(allowed(Allowance(calls=2), "a flaky", "b ledger"))
    .up()
    .start()
    .call("a", "error")
    .call("a", "error")
    .call("a"),
    "overspend",
)
breaks(
    "BUD-1",
    "a status shows more than there is",
    Story(TWO_OF_SIX).up().start().request("m").status("running", **tokens(10, 0, 12)),
    "overspend",
)
breaks(
    "BUD-1",
    "three at a time where two were allowed",
    Story(allowed(Allowance(concurrency=2), par("a ledger", "b ledger", "c ledger")))
    .up()
    .start()
    .request("a")
    .request("b")
    .request("c"),
    "overspend",
)

# --- BUD-2 ------------------------------------------------------------------------------------------------------------
holds(
    "BUD-2",
    "what was consumed before the crash is consumed after it",
    Story(ONE)
    .up()
    .start()
    .call("m", usage=3)
    .status("running", **tokens(18, 3))
    .crash()
    .status("running", **tokens(18, 3))
    .call("n", usage=3)
    .done(**tokens(18, 6)),
)
holds(
    "BUD-2",
    "the answer was sent as the server died; for a while it is only reserved, and then it is settled",
    Story(ONE)
    .up(unit="engine")
    .up()
    .start()
    .call("m", usage=3)
    .kill(unit="engine", incarnation=1)
    .up(unit="engine")
    .status("running", **tokens(18, 0, 6))
    .status("running", **tokens(18, 3)),
)
holds(
    "BUD-2",
    "a crash before anything was asked for",
    Story(ONE).up().start().crash().call("m", usage=3).call("n", usage=3).done(**tokens(18, 6)),
    exercised=0,
)
breaks(
    "BUD-2",
    "a restart begins with the whole allowance",
    Story(ONE).up().start().call("m", usage=3).crash().status("running", **tokens(18)),
    "replenished allowance",
)
breaks(
    "BUD-2",
    "what was shown as consumed is less after a restart",
    Story(ONE)
    .up()
    .start()
    .call("m", usage=6)
    .status("running", **tokens(18, 6))
    .crash()
    .status("running", **tokens(18, 3, 0, 3)),
    "replenished allowance",
)
breaks(
    "BUD-2",
    "reservations of what is under way are gone with the server",
    Story(ONE)
    .up(unit="engine")
    .up()
    .start()
    .request("m")
    .kill(unit="engine", incarnation=1)
    .up(unit="engine")
    .status("running", **tokens(18)),
    "replenished allowance",
)
breaks(
    "BUD-2",
    "the journal is added up on top of a stored sum",
    Story(ONE).up().start().call("m", usage=3).crash().status("running", **tokens(18, 6)),
    "torn view",
)

# --- BUD-3 ------------------------------------------------------------------------------------------------------------
holds(
    "BUD-3",
    "a lost answer stays unknown to the end",
    Story(ONE)
    .up()
    .start()
    .call("m", delivery="dropped", usage=3)
    .call("m", usage=3)
    .status("running", **tokens(18, 3, 0, 6))
    .call("n", usage=3)
    .done(**tokens(18, 6, 0, 6)),
)
holds(
    "BUD-3",
    "nobody has noticed yet that the answer got lost",
    Story(ONE).up().start().call("m", delivery="reset", usage=3).status("running", **tokens(18, 0, 6)),
)
holds(
    "BUD-3",
    "an error that was sent is none of the lost answers",
    Story(ONE).up().start().call("m", "error").call("m", usage=3).call("n", usage=3).done(**tokens(18, 6)),
    exercised=0,
)
holds(
    "BUD-3",
    "an answer does not say what it has cost",
    Story(UNPRICED)
    .up()
    .start()
    .call("m")
    .status("failed", reason="allowance-exhausted: tokens", **tokens(10, 0, 0, 6)),
)
breaks(
    "BUD-3",
    "an answer that does not say what it has cost has cost nothing",
    Story(UNPRICED).up().start().call("m").status("running", **tokens(10, 0)),
    "replenished allowance",
)
breaks(
    "BUD-3",
    "a lost answer gives its reservation back",
    Story(ONE).up().start().call("m", delivery="reset", usage=3).request("m").status("running", **tokens(18, 0, 3)),
    "replenished allowance",
)
breaks(
    "BUD-3",
    "the reservation stays for ever",
    Story(ONE)
    .up()
    .start()
    .call("m", delivery="dropped", usage=3)
    .call("m", usage=3)
    .call("n", usage=3)
    .done(**tokens(18, 6, 6)),
    "false certainty",
)
breaks(
    "BUD-3",
    "a lost answer is booked as if it had come",
    Story(ONE)
    .up()
    .start()
    .call("m", delivery="dropped", usage=3)
    .call("m", usage=3)
    .status("running", **tokens(18, 9, 6)),
    "false certainty",
)

# --- BUD-4 ------------------------------------------------------------------------------------------------------------
holds(
    "BUD-4",
    "the worker behind a request is killed, and its tokens become unknown",
    Story(ONE)
    .up()
    .start()
    .request("m")
    .applied()
    .crash()
    .status("running", **tokens(18, 0, 6))
    .later(400)
    .status("running", **tokens(18, 0, 0, 6))
    .call("m", usage=3)
    .call("n", usage=3)
    .done(**tokens(18, 6, 0, 6)),
)
holds(
    "BUD-4",
    "a stopped worker comes back with the answer, which is settled after all",
    Story(ONE)
    .up()
    .start()
    .request("m")
    .pause()
    .up()
    .status("running", **tokens(18, 0, 0, 6))
    .applied(1)
    .reply(call=1, usage=3)
    .resume(1)
    .status("running", **tokens(18, 3)),
    exercised=0,
)
holds(
    "BUD-4",
    "the server is killed beside a request under way, whose reservation stays what it is",
    Story(ONE)
    .up(unit="engine")
    .up()
    .start()
    .request("m")
    .kill(unit="engine", incarnation=1)
    .up(unit="engine")
    .status("running", **tokens(18, 0, 6))
    .applied()
    .reply(usage=3)
    .call("n", usage=3)
    .done(**tokens(18, 6)),
    exercised=0,
)
breaks(
    "BUD-4",
    "the hold runs out with the lease",
    Story(ONE).up().start().request("m").crash().later(400).status("running", **tokens(18)),
    "replenished allowance",
)
breaks(
    "BUD-4",
    "what was held for the dead is given to the next",
    Story(TWO_OF_SIX)
    .up()
    .start()
    .request("m")
    .crash()
    .later(400)
    .request("m")
    .status("running", **tokens(10, 0, 6, 6)),
    "overspend",
)

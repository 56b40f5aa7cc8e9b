"""Examples for DLN-1 2 3."""

from __future__ import annotations

from typing import Any

import attrs

from scenarios.plan import Op, Plan
from tests.scenarios.build import MS, Story, plan
from tests.scenarios.examples import breaks, holds


def until(ms: int, *children: Op | str) -> Plan:
    return attrs.evolve(plan(*children), deadline_ns=ms * MS)


def left(ms: int) -> dict[str, Any]:
    """A request that says how much time there is."""
    return {"remaining_ns": ms * MS}


TWO = until(2000, "a ledger", "b ledger a")
NAP = until(2000, "a ledger", "s sleep 9000", "b ledger")
UNDO = until(2000, "a ledger", "b registry a", "u undo a")
OVER: dict[str, Any] = {"reason": "deadline"}

# --- DLN-1 ------------------------------------------------------------------------------------------------------------
holds(
    "DLN-1",
    "a run that was tried again and again, and its server away for a while, ends with its time",
    Story(TWO)
    .up()
    .start()
    .call("a", **left(1990))
    .request("b", **left(1900))
    .crash()
    .later(1400)
    .call("b", "error", **left(500))
    .later(500)
    .status("failed", **OVER),
    exercised=2,
)
holds(
    "DLN-1",
    "what was sent in time arrives when it is over, and compensations and look-ups are not bound by it",
    Story(UNDO)
    .up()
    .start()
    .call("a", **left(1990))
    .crash()
    .later(2400)
    .request("b", **left(30))
    .later(900)
    .look_up("b", "missing")
    .call("u")
    .status("failed", **OVER),
)
holds(
    "DLN-1",
    "the worker was away when it was over, and the run ends as it is back",
    Story(NAP)
    .up()
    .start()
    .call("a", **left(1990))
    .status("waiting")
    .kill()
    .later(4000)
    .up()
    .status("waiting")
    .status("failed", **OVER),
)
holds(
    "DLN-1",
    "what a stopped worker had in hand arrives much later",
    Story(TWO)
    .up()
    .start()
    .call("a", **left(1990))
    .pause()
    .up()
    .later(2000)
    .status("failed", **OVER)
    .later(2000)
    .resume(1)
    .request("b", by=1, **left(1900)),
    exercised=0,
)
holds(
    "DLN-1",
    "what was sent in time came late, as the machine stood still; the run ends as soon as it goes on",
    Story(TWO)
    .up()
    .start()
    .call("a", **left(1990))
    .crash()
    .later(1800)
    .stalled(700)
    .later(500)
    .stalled(600)
    .request("b", **left(150))
    .status("running")
    .status("failed", **OVER),
)
breaks(
    "DLN-1",
    "the machine stood still for less than the time was overstayed",
    Story(TWO).up().start().call("a", **left(1990)).stalled(300).later(3200).call("b", **left(100)),
    "replenished allowance",
)
breaks(
    "DLN-1",
    "the machine stood still only afterwards",
    Story(TWO).up().start().call("a", **left(1990)).later(3200).call("b", **left(100)).stalled(3000),
    "replenished allowance",
)
breaks(
    "DLN-1",
    "the time begins anew with a restart",
    Story(TWO).up().start().call("a", **left(1990)).later(1900).crash().later(1900).call("b", **left(100)),
    "replenished allowance",
)
breaks(
    "DLN-1",
    "every try has all the time",
    Story(TWO)
    .up()
    .start()
    .call("a", **left(1990))
    .call("b", "error", **left(1900))
    .later(1500)
    .call("b", "error", **left(400))
    .later(1900)
    .call("b", **left(0)),
    "replenished allowance",
)
breaks(
    "DLN-1",
    "a run that sleeps is not ended",
    Story(NAP).up().start().call("a", **left(1990)).status("waiting").later(4000).status("waiting"),
    "stuck",
)

# --- DLN-2 ------------------------------------------------------------------------------------------------------------
holds(
    "DLN-2",
    "less and less is left",
    Story(TWO).up().start().call("a", **left(1990)).later(900).call("b", **left(1000)).done(),
    exercised=2,
)
holds(
    "DLN-2",
    "a call has less time than the run",
    Story(TWO).up().start().call("a", **left(100)).call("b", **left(100)).done(),
    exercised=2,
)
holds(
    "DLN-2",
    "what undoes something has all the time that it needs",
    Story(UNDO).up().start().call("a", **left(1990)).look_up("b").call("u"),
)
holds("DLN-2", "a run that may take for ever", Story(plan("a ledger")).up().start().call("a").done(), exercised=0)
holds(
    "DLN-2",
    "it was true when it was said, and the machine stood still meanwhile",
    Story(TWO).up().start().call("a", **left(1990)).stalled(900).later(900).call("b", **left(1985)).done(),
    exercised=2,
)
breaks(
    "DLN-2",
    "the machine stood still for less than that",
    Story(TWO).up().start().call("a", **left(1990)).stalled(300).later(1500).call("b", **left(1985)).done(),
    "replenished allowance",
)
breaks(
    "DLN-2",
    "receivers are told nothing",
    Story(TWO).up().start().call("a", **left(1990)).call("b").done(),
    "amnesia",
)
breaks(
    "DLN-2",
    "the whole time is handed on each time",
    Story(TWO).up().start().call("a", **left(2000)).later(1500).call("b", **left(2000)).done(),
    "replenished allowance",
)

# --- DLN-3 ------------------------------------------------------------------------------------------------------------
ONE = plan("a ledger", "b ledger a")
holds("DLN-3", "whoever asked is killed", Story(ONE).up().start().crash().call("a").call("b").done().settled())
holds(
    "DLN-3",
    "whoever asked is stopped, and another goes on",
    Story(ONE).up().start().call("a").pause().up().call("b").done().resume(1).settled(),
)
holds(
    "DLN-3",
    "whoever asked had gone before there was an answer, and the run was asked for again",
    Story(ONE).up().ask("start", id="r1").crash().start().call("a").call("b").done().settled(),
    exercised=0,
)
holds(
    "DLN-3",
    "somebody else stopped it",
    Story(ONE).up().start().crash().cancel().status("cancelled", reason="cancelled: as asked"),
)
breaks("DLN-3", "the run is stopped", Story(ONE).up().start().crash().status("cancelled"), "amnesia")
breaks("DLN-3", "the run is forgotten", Story(ONE).up().start().call("a").crash().status("unknown"), "amnesia")

"""Examples for JRN-8 9."""

from __future__ import annotations

from typing import Any

from tests.scenarios.build import Story, plan
from tests.scenarios.examples import breaks, holds
from tests.scenarios.examples_trail import move

PAIR = plan("a ledger", "b ledger a")
GATE = plan("k approve b", "b ledger k")


def line(sequence: int, action: str, target: str, **more: Any) -> dict[str, Any]:
    """One line of an audit trail."""
    row = {"sequence": sequence, "actor": "w1", "authority": "lease 1", "action": action, "target": target, "at_ns": 5}
    return {**row, "detail": "", **more}


CLAIM, SETTLE = line(1, "claim", "a"), line(2, "settle", "a")

# --- JRN-8 ------------------------------------------------------------------------------------------------------------
holds(
    "JRN-8",
    "a line more at every reading",
    Story(PAIR).up().start().request("a").crash().journal(audit=[CLAIM]).call("a").journal(audit=[CLAIM, SETTLE]),
)
holds(
    "JRN-8",
    "the trail is deleted on order, and begins anew",
    Story(PAIR)
    .up(unit="engine")
    .up()
    .start()
    .call("a")
    .journal(audit=[CLAIM, SETTLE])
    .fired("forget@waiting:w(engine)")
    .kill(unit="engine", incarnation=1)
    .up(unit="engine")
    .call("b")
    .done()
    .journal(audit=[line(1, "claim", "b")]),
    exercised=0,
)
holds(
    "JRN-8",
    "who decided is named, and what a status had shown is what the journal went through",
    Story(GATE)
    .up()
    .start()
    .status("waiting", on="k", ops={"k": "planned", "b": "planned"})
    .decide("k")
    .call("b", delivery="dropped")
    .status("running", ops={"k": "succeeded dec:k:1", "b": "unknown"})
    .call("b", "saved")
    .done()
    .journal(
        transitions=[
            move("b", "planned", "dispatched"),
            move("b", "dispatched", "unknown", "lost", 2),
            move("b", "unknown", "dispatched", "repeat: lost", 3),
            move("b", "dispatched", "succeeded", None, 4),
        ],
        audit=[line(1, "decide", "k", actor="alice"), line(2, "claim", "b")],
    ),
)
holds("JRN-8", "a harness without a trail has none to show", Story(PAIR).up().start().journal(audit=[]), exercised=0)
breaks(
    "JRN-8",
    "a line is another one now",
    Story(PAIR)
    .up()
    .start()
    .request("a")
    .crash()
    .journal(audit=[CLAIM])
    .call("a")
    .journal(audit=[{**CLAIM, "actor": "w2"}, SETTLE]),
    "torn view",
)
breaks(
    "JRN-8",
    "a line is gone",
    Story(PAIR).up().start().request("a").crash().journal(audit=[CLAIM]).call("a").journal(audit=[SETTLE]),
    "amnesia",
)
breaks(
    "JRN-8",
    "nobody did it",
    Story(PAIR).up().start().call("a").journal(audit=[{**CLAIM, "actor": ""}]),
    "amnesia",
)
breaks(
    "JRN-8",
    "by no right, and at no time",
    Story(PAIR).up().start().call("a").journal(audit=[{**CLAIM, "authority": " "}, {**SETTLE, "at_ns": 0}]),
    "amnesia",
)
breaks(
    "JRN-8",
    "a person decided, and the engine stands there for it",
    Story(GATE).up().start().decide("k").journal(audit=[line(1, "decide", "k", actor="engine")]),
    "amnesia",
)
breaks(
    "JRN-8",
    "what was done and accepted is on no line",
    Story(PAIR).up().start().call("a").call("b").journal(audit=[line(1, "submit", "r1"), line(2, "claim", "b")]),
    "amnesia",
)
breaks(
    "JRN-8",
    "a status had shown what the journal never came to",
    Story(PAIR)
    .up()
    .start()
    .request("a")
    .status("running", ops={"a": "unknown"})
    .journal(transitions=[move("a", "planned", "dispatched"), move("a", "dispatched", "succeeded", None, 2)]),
    "torn view",
)

# --- JRN-9 ------------------------------------------------------------------------------------------------------------
WAITING = plan("a ledger", "w wait go", "b ledger a,w")
holds(
    "JRN-9",
    "a call under way is accepted with what its receiver said, though its run is cancelled",
    Story(PAIR)
    .up()
    .start()
    .request("a")
    .applied()
    .cancel()
    .reply()
    .status("cancelled", reason="cancelled", ops={"a": "succeeded a1", "b": "planned"}),
)
holds(
    "JRN-9",
    "paused with a call and a wait open, and gone on with as if nothing had been",
    Story(WAITING)
    .up()
    .start()
    .call("a")
    .status("waiting", on="go", ops={"a": "succeeded a1", "w": "planned", "b": "planned"})
    .halt()
    .status("waiting", on="go", ops={"a": "succeeded a1", "w": "planned", "b": "planned"}, paused=True)
    .go_on()
    .signal("s1")
    .call("b")
    .done(),
)
holds(
    "JRN-9",
    "refused, and so failed, in the middle of a stop; the other was never sent",
    Story(plan("a ledger", "b ledger a"))
    .up()
    .start()
    .request("a")
    .cancel()
    .reply("rejected")
    .status("cancelled", reason="cancelled", ops={"a": "failed", "b": "skipped"}),
)
holds(
    "JRN-9",
    "what nobody knows stays open, and a stop that came too late stops nothing",
    Story(PAIR)
    .up()
    .start()
    .call("a")
    .call("b")
    .done()
    .cancel(disposition="too-late")
    .status("done", result={"a": "a1", "b": "b1"}),
    exercised=0,
)
holds(
    "JRN-9",
    "decided in the middle of a pause",
    Story(GATE)
    .up()
    .start()
    .status("waiting", on="k", ops={"k": "planned", "b": "planned"})
    .halt()
    .decide("k")
    .status("running", ops={"k": "succeeded dec:k:1", "b": "planned"}, paused=True)
    .go_on()
    .call("b")
    .done(),
)
breaks(
    "JRN-9",
    "the stop is the step's failure",
    Story(PAIR)
    .up()
    .start()
    .request("a")
    .applied()
    .cancel()
    .status("cancelled", reason="cancelled", ops={"a": "failed", "b": "planned"}),
    "false certainty",
)
breaks(
    "JRN-9",
    "the stop is the wait's answer",
    Story(WAITING)
    .up()
    .start()
    .call("a")
    .status("waiting", on="go")
    .cancel()
    .status("cancelled", reason="cancelled", ops={"a": "succeeded a1", "w": "succeeded cancelled"}),
    "false certainty",
)
breaks(
    "JRN-9",
    "the pause is the call's answer",
    Story(PAIR).up().start().request("a").halt().go_on().status("running", ops={"a": "succeeded paused"}),
    "false certainty",
)
breaks(
    "JRN-9",
    "accepted without any answer",
    Story(PAIR).up().start().request("a").cancel().status("cancelled", reason="cancelled", ops={"a": "succeeded"}),
    "false certainty",
)
breaks(
    "JRN-9",
    "the pause is the decision",
    Story(GATE)
    .up()
    .start()
    .status("waiting", on="k", ops={"k": "planned", "b": "planned"})
    .halt()
    .go_on()
    .status("running", ops={"k": "succeeded paused", "b": "planned"}),
    "false certainty",
)

"""Examples of requests that nobody waits for any more, and of such as are sent once more than they may be."""

from __future__ import annotations

from scenarios.plan import Allowance, Call, Plan, Race
from tests.scenarios.build import MS, Story, par, plan
from tests.scenarios.examples import breaks, holds

PAIR = plan("a ledger", "b ledger a")
MAIL = plan("a mailer", "b ledger a")
SHIPMENT = plan("a registry", "b ledger a")
HEAT = plan(Race("r", (Call("a", "ledger"), Call("c", "ledger"))), par("x ledger", "y ledger"))


def up(of: Plan, **declared: object) -> Story:
    return Story(of, shows_operations=True, call_timeout_ns=1000 * MS, **declared).up().start()


# --- dropped by right ---------------------------------------------------------------------------------------------------
STOPPED = {"a": "unknown", "b": "planned"}
holds(
    "CAN-2",
    "a worker heeds the stop at once, and drops what it had sent",
    up(PAIR, grace_ns=500 * MS)
    .request("a")
    .cancel()
    .status("cancelled", ops=STOPPED, cancel="quiescent")
    .applied()
    .reply(),
    exercised=0,
)
breaks(
    "CAN-2",
    "called quiescent with a call shown as under way",
    up(PAIR, grace_ns=500 * MS)
    .request("a")
    .cancel()
    .status("cancelled", ops={"a": "dispatched", "b": "planned"}, cancel="quiescent")
    .applied()
    .reply(),
    "false certainty",
)
holds(
    "SCH-7",
    "what has lost a race is dropped, and its slot is free",
    up(HEAT, slots=2).request("a").call("c").request("x").request("y"),
)
holds(
    "BUD-1",
    "what has lost a race is dropped, and another may begin",
    up(Plan(HEAT.root, Allowance(concurrency=2))).request("a").call("c").request("x").request("y"),
    exercised=0,
)
holds(
    "OWN-10",
    "dropped when its run is to pause, and sent again when that goes on",
    up(PAIR, lease_ns=100 * MS)
    .request("a")
    .halt()
    .later(10)
    .go_on()
    .request("a")
    .reply("busy")
    .applied(1)
    .reply(call=1)
    .call("a", "saved")
    .call("b")
    .done()
    .settled(),
    exercised=0,
)
holds(
    "OWN-10",
    "its run was told to pause before it was received, and heeds it afterwards",
    up(PAIR, lease_ns=100 * MS)
    .ask("pause", id="p1")
    .request("a")
    .answer()
    .later(10)
    .go_on()
    .request("a")
    .reply("busy")
    .applied(1)
    .reply(call=1)
    .call("a", "saved")
    .call("b")
    .done()
    .settled(),
    exercised=0,
)
LINE = {"sequence": 1, "actor": "worker-1", "authority": "lease", "action": "accept", "target": "r1:a", "at_ns": 5}
holds(
    "JRN-8",
    "its lines name operations with the run that they are of",
    up(plan("a ledger"))
    .call("a")
    .status("running", ops={"a": "succeeded a1"})
    .journal(audit=[LINE])
    .journal(audit=[LINE]),
)

# --- and sent once too often --------------------------------------------------------------------------------------------
breaks(
    "EFF-5", "a mail that was answered is sent again", up(MAIL).call("a").call("a").call("b").done(), "duplicate effect"
)
breaks(
    "EFF-5",
    "a mail whose answer was long in coming is sent again",
    up(MAIL).request("a").applied().later(3000).reply().call("a").call("b").done(),
    "duplicate effect",
)
breaks(
    "EFF-4",
    "a shipment that was answered is ordered again",
    up(SHIPMENT).call("a").call("a").call("b").done(),
    "duplicate effect",
)
holds(
    "EFF-4",
    "an order whose answer was long in coming is looked up, not repeated",
    up(SHIPMENT)
    .request("a")
    .applied()
    .later(3000)
    .reply(delivery="dropped")
    .look_up("a", "found")
    .call("b")
    .done()
    .settled(),
)

# --- CAN-3 --------------------------------------------------------------------------------------------------------------
breaks(
    "CAN-3",
    "the refusal came first, and the stop wins all the same",
    up(PAIR).request("a").cancel().reply("rejected").status("failed").status("cancelled"),
    "torn view",
)
holds(
    "CAN-3",
    "failed, taken up by a new attempt, and that is stopped",
    up(PAIR).request("a").cancel().reply("rejected").status("failed", attempt="1").status("cancelled", attempt="2"),
)

# --- sent in a storm, and seen when it was over and nobody waited for it any more ------------------------------------------


def calmed(of: Plan, **declared: object) -> Story:
    return up(of, **declared).fired("storm").quiet().later(900)


holds(
    "CAN-2",
    "held up by a storm and dropped, it arrives as the run is stopped",
    calmed(PAIR, grace_ns=5000 * MS).request("a").cancel().status("cancelled"),
    exercised=0,
)
holds("OWN-10", "held up by a storm and dropped, it arrives with its repeat", calmed(PAIR).request("a").request("a"), exercised=0)
holds(
    "SCH-7",
    "held up by a storm and dropped, it arrives with what has its slot",
    calmed(plan(par("a ledger", "b ledger")), slots=1).request("a").request("b"),
    exercised=0,
)
GATE = plan("a ledger", "w wait go", "b ledger w")
holds(
    "SCH-5",
    "refused as the disk failed in a storm, of which the word comes when that is over",
    up(GATE, late_signal="late")
    .call("a")
    .signal("1")
    .call("b")
    .done()
    .fired("storm")
    .ask("signal", id="2", name="go", nonce="sig:2")
    .quiet()
    .later(300)
    .answer("error")
    .done(),
    exercised=1,
)

"""Examples of statuses that take time, during which something happens, and of harnesses that tell less than they might."""

from __future__ import annotations

from scenarios.plan import Call, Plan, Seq
from tests.scenarios.build import Story, plan
from tests.scenarios.examples import breaks, holds

SHIPMENT = plan("a ledger", "x registry a")
STOPPED = {"a": "succeeded a1", "x": "failed"}


def up(of: Plan, **declared: object) -> Story:
    return Story(of, **declared).up().start()


def lost(of: Plan = SHIPMENT) -> Story:
    """The reply to a request was lost, and then the run was told to stop."""
    return up(of, shows_operations=True).call("a").request("x").reply(delivery="reset", nonce=None).cancel()


holds(
    "CAN-4",
    "while the status is under way a look-up says that nothing had been done",
    lost().ask("status").look_up("x").shows("cancelled", ops=STOPPED),
    exercised=0,
)
breaks(
    "CAN-4",
    "a look-up says so only after the status",
    lost().ask("status").shows("cancelled", ops=STOPPED).look_up("x"),
    "false certainty",
)
TWICE = Plan(Seq("m", (Call("a", "registry", tries=2), Call("b", "ledger"))))
holds(
    "EFF-10",
    "the worker with the last try in its hands dies while the status is under way",
    up(TWICE, shows_operations=True)
    .request("a")
    .reply("error")
    .look_up("a")
    .ask("status")
    .crash()
    .shows("blocked", ops={"a": "unresolved", "b": "planned"})
    .settled(),
    exercised=0,
)
holds(
    "JRN-9",
    "the answer to the denial was lost",
    up(plan("z ledger", "k approve a", "a ledger"), shows_operations=True)
    .call("z")
    .status("waiting", on="k")
    .halt()
    .go_on()
    .decide("k", "deny", outcome="indefinite")
    .status("failed", reason="denied", ops={"z": "succeeded z1", "k": "failed", "a": "failed"})
    .settled(),
)
holds(
    "CAN-7",
    "what is newer cannot be undone, and no status lists operations",
    up(plan("a ledger", "u undo a", "b ledger", "v undo b", "c ledger"))
    .call("a")
    .call("b")
    .request("c")
    .cancel()
    .reply("rejected")
    .call("v", "rejected")
    .status("cancelled")
    .settled(),
    exercised=0,
)
holds(
    "CAN-3",
    "failed, started once more, and that is stopped; nobody tells of attempts",
    up(plan("a ledger")).request("a").cancel().reply("rejected").status("failed").start().status("cancelled"),
)
holds(
    "STA-1",
    "the folder of the worker is emptied while another is asked",
    up(plan("a ledger")).up().ask("status").fired("wipe@a#1.applied").shows("unknown").call("a"),
)

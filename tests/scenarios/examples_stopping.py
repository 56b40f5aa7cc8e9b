"""Examples for CAN-1 2 3 4 6 8."""

from __future__ import annotations

from scenarios.plan import Plan
from tests.scenarios.build import MS, Story, par, plan
from tests.scenarios.examples import breaks, holds

OPS = {"shows_operations": True}
GRACE = {"shows_operations": True, "grace_ns": 300 * MS, "call_timeout_ns": 1000 * MS}
CHAIN = plan("a ledger", "b ledger a", "c ledger b")
GATE = plan("a ledger", "w wait go", "b ledger a,w")
ASKED = plan("a ledger", "k approve b", "b ledger a")
MAIL = plan("a ledger", "m mailer a")
BOX = plan("a ledger", "x registry a", "b ledger x")
TWO = plan("a ledger", par("m mailer a", "w wait go"))


def story(of: Plan, **declared: object) -> Story:
    return Story(of, **declared).up().start()


def over(of: Story, ops: dict[str, str]) -> Story:
    """The stopped run, shown cancelled and quiescent with these operations."""
    return of.status("cancelled", ops=ops, cancel="quiescent", reason="cancelled")


# --- CAN-1 ------------------------------------------------------------------------------------------------------------
holds(
    "CAN-1",
    "what was under way ends, and nothing follows it",
    story(CHAIN).request("a").cancel().applied().reply().status("cancelled").settled(),
)
holds(
    "CAN-1",
    "nor after a restart",
    story(CHAIN).request("a").cancel().crash().call("a", "saved").status("cancelled").settled(),
    exercised=2,
)
holds(
    "CAN-1",
    "the next call was on its way when the stop was acknowledged",
    story(CHAIN).call("a").cancel().call("b").status("cancelled").settled(),
    exercised=1,
)
holds(
    "CAN-1",
    "begun between the asking and the answer",
    story(CHAIN, **OPS)
    .call("a")
    .ask("cancel", id="r1:cancel:1")
    .status("running", ops={"a": "succeeded a1", "b": "planned", "c": "planned"})
    .request("b")
    .answer("ok", ask=2, body={"disposition": "accepted"})
    .applied()
    .reply()
    .status("cancelled", ops={"a": "succeeded a1", "b": "succeeded b1", "c": "planned"}),
)
holds(
    "CAN-1",
    "a stop that came too late stops nothing",
    story(CHAIN).call("a").call("b").call("c").done().cancel(disposition="too-late").done().settled(),
    exercised=0,
)
holds(
    "CAN-1",
    "nobody knows whether the stop has arrived",
    story(CHAIN).request("a").cancel("indefinite").applied().reply().call("b").call("c").done().settled(),
    exercised=0,
)
breaks(
    "CAN-1",
    "the call under way opens the next one",
    story(CHAIN).request("a").cancel().applied().reply().call("b").status("cancelled").settled(),
    "resurrection",
)
breaks(
    "CAN-1",
    "a restart has forgotten the stop",
    story(CHAIN).request("a").cancel().applied().reply().crash().call("b").call("c").done().settled(),
    "resurrection",
)
breaks(
    "CAN-1",
    "shown as planned after the stop, and then dispatched",
    story(CHAIN, **OPS)
    .call("a")
    .cancel()
    .status("running", ops={"a": "succeeded a1", "b": "planned", "c": "planned"})
    .call("b"),
    "resurrection",
)
breaks(
    "CAN-1",
    "a signal after the stop lets the run go on",
    story(GATE).call("a").status("waiting", on="go").cancel().status("waiting", on="go").signal("1").call("b"),
    "resurrection",
)
breaks(
    "CAN-1",
    "a decision after the stop lets the run go on",
    story(ASKED).call("a").status("waiting", on="k").cancel().decide("k").call("b"),
    "resurrection",
)

# --- CAN-2 ------------------------------------------------------------------------------------------------------------
holds(
    "CAN-2",
    "accepted while it is at work, quiescent afterwards",
    story(CHAIN, **GRACE)
    .request("a")
    .cancel()
    .status("running", cancel="accepted")
    .status("running", cancel="delivered")
    .applied()
    .reply()
    .status("cancelled", cancel="quiescent")
    .settled(),
)
holds(
    "CAN-2",
    "the worker has died, and nobody waits for the answer",
    story(CHAIN, **GRACE).request("a").cancel().crash().status("cancelled", cancel="quiescent").applied().reply(),
    exercised=0,
)
holds(
    "CAN-2",
    "the grace was over, and it was given up",
    story(CHAIN, **GRACE)
    .request("a")
    .cancel()
    .later(300)
    .status("cancelled", ops={"a": "unresolved"}, cancel="quiescent"),
    exercised=0,
)
holds(
    "CAN-2",
    "the answer came while the status was asked",
    story(CHAIN, **GRACE).request("a").cancel().ask("status").applied().reply().shows("cancelled", cancel="quiescent"),
    exercised=0,
)
breaks(
    "CAN-2",
    "called quiescent with a call under way",
    story(CHAIN, **GRACE).request("a").cancel().status("running", cancel="quiescent").applied().reply(),
    "false certainty",
)
breaks(
    "CAN-2",
    "called cancelled with a look-up under way",
    story(BOX, **GRACE)
    .call("a")
    .request("x")
    .reply(delivery="reset", nonce=None)
    .request("x", lookup=True)
    .cancel()
    .status("cancelled")
    .reply("missing"),
    "false certainty",
)

# --- CAN-3 ------------------------------------------------------------------------------------------------------------
holds(
    "CAN-3",
    "the stop was first, and the late answer changes nothing",
    story(CHAIN, **OPS)
    .call("a")
    .request("b")
    .cancel()
    .status("cancelled", ops={"a": "succeeded a1", "b": "unresolved", "c": "planned"})
    .applied()
    .reply()
    .status("cancelled", ops={"a": "succeeded a1", "b": "unresolved", "c": "planned"})
    .settled(),
)
holds(
    "CAN-3",
    "the end was first",
    story(CHAIN).call("a").call("b").call("c").cancel(disposition="too-late").done().done().settled(),
)
holds(
    "CAN-3",
    "the receiver's word came after the stop",
    story(MAIL, **OPS)
    .call("a")
    .request("m")
    .cancel()
    .applied()
    .reply(delivery="reset")
    .status("cancelled", ops={"a": "succeeded a1", "m": "unresolved"})
    .notice("m")
    .status("cancelled", ops={"a": "succeeded a1", "m": "reconciled m1"})
    .settled(),
)
breaks(
    "CAN-3",
    "the late answer makes it successful",
    story(CHAIN).call("a").call("b").request("c").cancel().status("cancelled").applied().reply().done().settled(),
    "torn view",
)
breaks(
    "CAN-3",
    "done, and cancelled all the same",
    story(CHAIN).call("a").call("b").call("c").done().cancel().status("cancelled").settled(),
    "torn view",
)
breaks(
    "CAN-3",
    "a restart takes the cancelled run up again",
    story(CHAIN).request("a").cancel().status("cancelled").crash().status("running"),
    "torn view",
)
breaks(
    "CAN-3",
    "its effects have never happened",
    story(GATE, **OPS)
    .call("a")
    .status("waiting", on="go", ops={"a": "succeeded a1"})
    .cancel()
    .status("cancelled", ops={"a": "skipped", "w": "skipped", "b": "skipped"}),
    "amnesia",
)

# --- CAN-4 ------------------------------------------------------------------------------------------------------------
LEFT = {"a": "succeeded a1", "m": "unresolved", "w": "planned"}
LOST = story(TWO, **OPS).call("a").request("m").applied().reply(delivery="reset").status("waiting", on="go")
holds("CAN-4", "the lost letter stays in sight", over(LOST.cancel(), LEFT).settled())
holds(
    "CAN-4",
    "killed while the call was under way, and never heard of again",
    over(story(CHAIN, **OPS).request("a").cancel().crash(), {"a": "unresolved", "b": "planned", "c": "planned"}),
)
holds(
    "CAN-4",
    "the receiver was asked, and had not done it",
    over(
        story(BOX, **OPS).call("a").request("x").reply("error").cancel().look_up("x"),
        {"a": "succeeded a1", "x": "failed", "b": "planned"},
    ),
    exercised=0,
)
holds(
    "CAN-4",
    "the receiver refused it, and the worker died with the answer",
    over(
        story(CHAIN, **OPS).request("a").cancel().reply("rejected").crash(),
        {"a": "failed", "b": "planned", "c": "planned"},
    ),
    exercised=0,
)


def lost() -> Story:
    return (
        story(TWO, **OPS).call("a").request("m").applied().reply(delivery="reset").status("waiting", on="go").cancel()
    )


breaks("CAN-4", "the stop takes it for failed", over(lost(), {**LEFT, "m": "failed"}), "false certainty")
breaks("CAN-4", "the stop takes it for never begun", over(lost(), {**LEFT, "m": "skipped"}), "false certainty")
breaks("CAN-4", "the cancelled run does not list it", over(lost(), {"a": "succeeded a1"}), "amnesia")


# --- CAN-6 ------------------------------------------------------------------------------------------------------------
def deaf(**declared: object) -> Story:
    return story(CHAIN, **(declared or GRACE)).request("a").cancel()


def restarted() -> Story:
    """The same; its server is killed, and is back after a while."""
    of = Story(CHAIN, **GRACE).up("engine").up().start().request("a").status("running").cancel()
    return (
        of.later(100)
        .kill(unit="engine", incarnation=1)
        .later(100)
        .up("engine")
        .status("running", ops={"a": "dispatched"})
    )


def shown(of: Story, times: int, state: str) -> Story:
    for _ in range(times):
        of.status("running", ops={"a": state}, cancel="accepted").later(10)
    return of


AT_LAST = {"a": "unresolved", "b": "planned", "c": "planned"}
holds("CAN-6", "given up when the grace is over", over(shown(deaf(), 12, "dispatched").later(280), AT_LAST).settled())
holds(
    "CAN-6",
    "given up a little late",
    over(shown(deaf().later(500), 3, "dispatched").later(100), AT_LAST).settled(),
)
holds(
    "CAN-6",
    "long since given up, and asked about again and again",
    shown(deaf().later(700), 12, "unknown"),
)
holds("CAN-6", "it heard in time", over(deaf().applied().reply(), {"a": "succeeded a1"}).later(400), exercised=0)
holds("CAN-6", "the server was away", shown(deaf().later(700).crash(), 12, "dispatched"))
holds(
    "CAN-6",
    "the server was killed in the middle of the grace, which begins anew as it is back",
    over(shown(restarted().later(550), 1, "dispatched"), AT_LAST).settled(),
)
breaks(
    "CAN-6",
    "the server was killed in the middle of the grace, and the next one knows of none",
    shown(restarted().later(700), 12, "dispatched"),
    "stuck",
)
breaks("CAN-6", "it is waited for without end", shown(deaf().later(700), 12, "dispatched"), "stuck")
breaks(
    "CAN-6",
    "it is waited for until it answers",
    over(shown(deaf().later(620), 15, "dispatched").applied().reply(), {"a": "succeeded a1"}).settled(),
    "stuck",
)


# --- CAN-8 ------------------------------------------------------------------------------------------------------------
def whole() -> Story:
    return story(CHAIN).call("a").call("b").call("c")


holds("CAN-8", "told that it came too late", whole().done().cancel(disposition="too-late").done().settled())
holds("CAN-8", "refused because it came too late", whole().done().cancel("error", None).done().settled())
holds(
    "CAN-8",
    "it raced the end, and lost",
    whole().ask("cancel", id="r1:cancel:1").done().answer("ok", ask=2, body={"disposition": "too-late"}).done(),
)
holds(
    "CAN-8",
    "the repeat of a stop that took effect comes too late",
    story(CHAIN)
    .request("a")
    .cancel("indefinite")
    .status("cancelled")
    .cancel(disposition="too-late")
    .status("cancelled"),
)
holds(
    "CAN-8",
    "nobody knows what became of it",
    whole().done().cancel("indefinite").done().settled(),
    exercised=0,
)
breaks("CAN-8", "taken after the end", whole().done().cancel().done().settled(), "false certainty")
breaks("CAN-8", "answered like any other", whole().done().cancel(disposition=None).done().settled(), "false certainty")
breaks("CAN-8", "taken, and the run is done", whole().cancel().done().settled(), "false certainty")
breaks(
    "CAN-8",
    "told too late, and the run is cancelled",
    story(CHAIN).request("a").cancel(disposition="too-late").status("cancelled").settled(),
    "false certainty",
)

"""Examples for DUR-1 2 3 5 6."""

from __future__ import annotations

from scenarios.plan import Child
from tests.scenarios.build import Story, par, plan
from tests.scenarios.examples import breaks, holds

ONE = plan("a ledger")
CHAIN = plan("a ledger", "b ledger a", "c ledger b")
READ = plan("a reader", "b ledger a")
GATE = plan("a ledger", "w wait go", "b ledger a,w")
KID = plan(Child("kid", plan("a reader", "b ledger a", "c ledger a").root))


def story(of: object = CHAIN, **declared: object) -> Story:
    """A worker is up and the start was acknowledged."""
    assert isinstance(of, type(CHAIN))
    return Story(of, **declared).up().start()


# --- DUR-1 ------------------------------------------------------------------------------------------------------------
holds("DUR-1", "the run is still there after the kill", story().crash().status("running"))
holds(
    "DUR-1",
    "and after power was lost twice",
    story().kill("power").up().kill("power").up().status("running"),
    exercised=2,
)
holds(
    "DUR-1",
    "a status asked before the acknowledgement knew no run, and its answer comes late",
    Story(CHAIN).up().ask("status").start().crash().shows("unknown", ask=1).status("running"),
)
holds(
    "DUR-1",
    "a start that was never acknowledged may be gone",
    Story(CHAIN).up().ask("start").kill().answer("indefinite").up().status("unknown").start().status("running"),
    exercised=0,
)
holds(
    "DUR-1",
    "a worker that is still booting gives no definite status",
    story().crash().ask("status").answer("indefinite").ask("status").answer("error").status("running"),
)
breaks("DUR-1", "acknowledged, killed, forgotten", story().crash().status("unknown"), "amnesia")
breaks("DUR-1", "forgotten by a loss of power", story().kill("power").up().status("unknown"), "amnesia")
breaks(
    "DUR-1",
    "it survives the first crash and not the second",
    story().crash().status("running").call("a").crash().status("unknown"),
    "amnesia",
)

# --- DUR-2 ------------------------------------------------------------------------------------------------------------
SHOWN = {"shows_operations": True}
holds(
    "DUR-2",
    "what was shown is shown again after the kill",
    story(**SHOWN)
    .call("a")
    .status("running", ops={"a": "succeeded a1"})
    .crash()
    .status("running", ops={"a": "succeeded a1"}),
)
holds(
    "DUR-2",
    "a status asked earlier is answered later, with an older view",
    story(**SHOWN)
    .request("a")
    .ask("status")
    .applied()
    .reply()
    .status("running", ops={"a": "succeeded a1"})
    .crash()
    .shows("running", ops={"a": "dispatched"}, ask=2)
    .status("running", ops={"a": "succeeded a1"}),
)
holds(
    "DUR-2",
    "a result that did not commit before the kill was never shown, and is asked for again",
    story(**SHOWN)
    .call("a")
    .status("running", ops={"a": "dispatched"})
    .crash()
    .call("a", "saved")
    .status("running", ops={"a": "succeeded a1"}),
)
holds(
    "DUR-2",
    "an unknown outcome was looked up, found and shown as reconciled",
    Story(plan("a registry"), **SHOWN)
    .up()
    .start()
    .request("a")
    .applied()
    .crash()
    .look_up("a", "found")
    .status("running", ops={"a": "reconciled a1"})
    .done(),
    exercised=0,
)
holds(
    "DUR-2",
    "killed with its answer in its hands, before anybody had asked: what was never shown cannot vanish",
    story(**SHOWN).call("a").crash().call("a", "saved").status("running", ops={"a": "succeeded a1"}),
    exercised=0,
)
holds(
    "DUR-2",
    "nothing had been answered yet when it was asked, and then it was killed",
    story(**SHOWN)
    .request("a")
    .status("running", ops={"a": "dispatched"})
    .crash()
    .call("a")
    .status("running", ops={"a": "succeeded a1"}),
    exercised=0,
)
holds(
    "DUR-2",
    "a harness that lists no operations has shown nothing before its run is done",
    story().call("a").status("running").crash().call("b").call("c").done(),
    exercised=0,
)
holds("DUR-2", "shown as done, killed, and shown as done again", story(ONE).call("a").done().crash().done())
holds(
    "DUR-2",
    "a wait is shown with its signal, and the done run lists results only",
    story(GATE, **SHOWN)
    .call("a")
    .signal("1")
    .status("running", ops={"a": "succeeded a1", "w": "succeeded sig:1"})
    .crash()
    .call("b")
    .done(),
)
breaks(
    "DUR-2",
    "shown as accepted, and under way again after the kill",
    story(**SHOWN)
    .call("a")
    .status("running", ops={"a": "succeeded a1"})
    .crash()
    .status("running", ops={"a": "dispatched"}),
    "false certainty",
)
breaks(
    "DUR-2",
    "shown as accepted, and no longer listed",
    story(**SHOWN)
    .call("a")
    .status("running", ops={"a": "succeeded a1", "b": "planned"})
    .crash()
    .status("running", ops={"b": "planned"}),
    "false certainty",
)
breaks(
    "DUR-2",
    "shown with one answer and later with another",
    story(READ, **SHOWN)
    .call("a")
    .status("running", ops={"a": "succeeded a1"})
    .crash()
    .call("a")
    .status("running", ops={"a": "succeeded a2"}),
    "torn view",
)
breaks("DUR-2", "done, and running again", story(ONE).call("a").done().crash().status("running"), "false certainty")
breaks(
    "DUR-2",
    "an answer is shown before anybody gave it",
    story(**SHOWN).request("a").status("running", ops={"a": "succeeded a9"}).applied().reply(),
    "false certainty",
)
breaks(
    "DUR-2",
    "the reply was lost, but its answer is shown",
    story(**SHOWN).call("a", delivery="reset").status("running", ops={"a": "succeeded a1"}).crash(),
    "false certainty",
)

# --- DUR-3 ------------------------------------------------------------------------------------------------------------
holds(
    "DUR-3",
    "the new worker goes on where the old one was",
    story().call("a").request("b").crash().call("b").call("c").done(),
)
holds(
    "DUR-3",
    "killed between an answer and its acceptance, the same key is sent again",
    story().call("a").crash().call("a", "saved").call("b").crash().call("c").done(),
)
holds(
    "DUR-3",
    "a read is repeated before it was accepted, and only the second answer is used",
    story(READ).call("a").crash().call("a").call("b").crash().call("b", "saved").done(),
)
holds(
    "DUR-3",
    "the request of a worker that was paused arrives after another one had finished its work",
    story().pause().up().call("a").call("b").resume(1).call("a", "saved", by=1).crash().call("c").done(),
)
holds(
    "DUR-3",
    "the request of a killed worker was on its way, and arrives after its successor is done with it",
    story()
    .kill()
    .up()
    .call("a")
    .request("b")
    .call("a", "saved", by=1)
    .applied(2)
    .reply(call=2)
    .crash()
    .call("c")
    .done(),
)
holds(
    "DUR-3",
    "a retry that overtook its slow first try",
    story()
    .fired("delay@a#1.received")
    .request("a")
    .call("a")
    .call("b")
    .reply("saved", call=1)
    .crash()
    .call("c")
    .done(),
)
breaks(
    "DUR-3",
    "the new worker begins from the beginning",
    story().call("a").call("b").crash().call("a", "saved").call("b", "saved").call("c").done(),
    "amnesia",
)
breaks(
    "DUR-3",
    "shown as accepted, and worked again by the next worker",
    story(**SHOWN).call("a").status("running", ops={"a": "succeeded a1"}).crash().call("a", "saved"),
    "amnesia",
)
breaks(
    "DUR-3",
    "waiting was shown, and what came before the wait is done again",
    story(GATE).call("a").status("waiting", on="go").crash().call("a", "saved"),
    "amnesia",
)
breaks(
    "DUR-3",
    "a finished run begins anew",
    story(ONE).call("a").done().crash().call("a", "saved"),
    "amnesia",
)
breaks(
    "DUR-3",
    "both answers of a read are handed on",
    story(plan("a reader", "b ledger a", "c ledger a"))
    .call("a")
    .call("a")
    .call("b", carries={"a": "a1"})
    .crash()
    .call("c", carries={"a": "a2"}),
    "forked lineage",
)
breaks(
    "DUR-3",
    "one answer was handed on, the other is the result",
    story(READ).call("a").crash().call("a").call("b", carries={"a": "a1"}).done({"a": "a2"}),
    "forked lineage",
)
holds(
    "DUR-3",
    "a child hands on one answer, by the names of its own plan",
    story(KID)
    .call("kid/a")
    .crash()
    .call("kid/a")
    .call("kid/b", carries={"a": "kid/a2"})
    .call("kid/c", carries={"a": "kid/a2"}),
    exercised=0,
)
breaks(
    "DUR-3",
    "a child hands on both answers of a read, by the names of its own plan",
    story(KID)
    .call("kid/a")
    .call("kid/a")
    .call("kid/b", carries={"a": "kid/a1"})
    .crash()
    .call("kid/c", carries={"a": "kid/a2"}),
    "forked lineage",
)
breaks(
    "DUR-3",
    "one branch was done when the other was killed, and is done again",
    Story(plan(par("x ledger", "y ledger"), "z ledger"), **SHOWN)
    .up()
    .start()
    .call("x")
    .request("y")
    .status("running", ops={"x": "succeeded x1", "y": "dispatched"})
    .crash()
    .call("x", "saved")
    .call("y"),
    "amnesia",
)

# --- DUR-5 ------------------------------------------------------------------------------------------------------------
holds("DUR-5", "the acknowledgement was lost, and start is asked again", story(ONE).start().call("a").done())
holds("DUR-5", "started again after the end", story(ONE).call("a").done().start().done())
holds(
    "DUR-5",
    "refused while not ready, then accepted",
    Story(ONE).up().start("error").start().call("a").done(),
)
holds(
    "DUR-5",
    "started twice, and a request is repeated because its worker was killed",
    story().start().call("a").crash().call("a", "saved").call("b").call("c").done(),
)
holds(
    "DUR-5",
    "started twice, and requests are repeated because of a lost reply, a 5xx and a long silence",
    story()
    .start()
    .call("a", delivery="dropped")
    .call("a", "saved")
    .call("b", "error")
    .call("b")
    .request("c")
    .later(900)
    .applied()
    .reply()
    .call("c", "saved")
    .done(),
)
holds(
    "DUR-5",
    "started again while it was being killed: the refusal proves nothing",
    story().ask("start", id="r1").kill().answer("error").up().start().call("a"),
)
breaks(
    "DUR-5",
    "started twice, everything is worked twice",
    story().start().call("a").call("a", "saved").call("b").call("b", "saved"),
    "duplicate effect",
)
breaks(
    "DUR-5",
    "both works are under way at once",
    story(plan("a mailer")).start().request("a").request("a").applied(1).reply(call=1).applied(2).reply(call=2),
    "duplicate effect",
)
breaks("DUR-5", "the same start is refused", story(ONE).start("error").call("a").done(), "torn view")
breaks(
    "DUR-5",
    "the two starts have two results",
    story(plan("a reader")).call("a").done().start().call("a").done(),
    "duplicate effect",
)
breaks(
    "DUR-5",
    "the second start makes a second attempt",
    story(ONE, shows_attempts=True).status("running", attempt="t1").start().status("running", attempt="t2"),
    "duplicate effect",
)

# --- DUR-6 ------------------------------------------------------------------------------------------------------------
holds("DUR-6", "the run ends after a kill", story(ONE).crash().call("a").done().settled())
holds(
    "DUR-6",
    "the desk is asked for its word, which troubles nobody",
    story(plan("a ledger", "ok approve b", "b ledger a,ok"))
    .call("a")
    .decide("ok")
    .desk("ok")
    .call("b")
    .done()
    .settled(),
    exercised=0,
)
holds("DUR-6", "blocked is an end", story(plan("a mailer")).request("a").crash().status("blocked", error="a").settled())
holds("DUR-6", "slow is not stuck", story(ONE).crash().call("a").done().slow())
holds(
    "DUR-6",
    "waiting for a signal that was never sent",
    story(GATE).call("a").crash().status("waiting", on="go").bound(),
    exercised=0,
)
holds(
    "DUR-6",
    "waiting for a signal of which nobody knows whether it arrived",
    story(GATE).call("a").signal("1", outcome="indefinite").crash().status("waiting", on="go").bound(),
    exercised=0,
)
holds("DUR-6", "a start that was refused", Story(ONE).up().start("error").crash().bound(), exercised=0)
holds("DUR-6", "faults never stopped", story(ONE).crash().crash(), exercised=0)
breaks("DUR-6", "nobody takes the work over", story(ONE).request("a").crash().status("running").bound(), "stuck")
breaks(
    "DUR-6",
    "the signal is there and the run still waits",
    story(GATE).call("a").signal("1").crash().status("waiting", on="go").bound(),
    "stuck",
)
breaks("DUR-6", "stuck before it came to its wait", story(GATE).crash().status("running").bound(), "stuck")
breaks("DUR-6", "no status at all any more", story(ONE).crash().ask("status").answer("indefinite").bound(), "stuck")

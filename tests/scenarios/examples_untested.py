"""Examples of promises that nothing has put to the test: a judge that could have seen no fault counts nothing."""

from __future__ import annotations

from scenarios.plan import Call, Child, Compensate, Plan, Seq
from tests.scenarios.build import MS, Story, par, plan
from tests.scenarios.examples import holds

CHAIN = plan("a ledger", "b ledger")
GATED = plan("z ledger", "k approve a", "a ledger")
OPS = {"a": "succeeded a1", "b": "succeeded b1"}


def up(of: Plan = CHAIN, **declared: object) -> Story:
    return Story(of, shows_operations=True, **declared).up().start()


holds(
    "CAN-2",
    "what is under way may be given up by force at once",
    up(call_timeout_ns=1000 * MS).request("a").cancel().status("cancelled", ops={"a": "unknown"}, cancel="quiescent"),
    exercised=0,
)
holds(
    "OWN-9",
    "nobody tells how often it was tried, and it may be tried for ever",
    up().request("a").crash().call("a").call("b").done(ops=OPS).settled(),
    exercised=0,
)
holds("DLN-3", "nobody has looked after the run since who asked for it has gone", up().call("a").kill(), exercised=0)
holds(
    "SIG-1",
    "nobody has looked after the run since the crash",
    up(plan("a ledger", "w wait go")).call("a").status("waiting", on="go").signal("1").kill(),
    exercised=0,
)
holds(
    "APR-6",
    "a stranger's decision that was never answered",
    up(GATED)
    .call("z")
    .status("waiting", on="k")
    .decide("k", actor="mallory", outcome="indefinite", disposition=None)
    .crash()
    .status("waiting", on="k"),
    exercised=0,
)
holds(
    "SCH-1",
    "killed long after the timer's end, and shown only then",
    up(plan("a ledger", "s sleep 5")).call("a").later(5000).crash().done().settled(),
    exercised=0,
)
holds(
    "ART-3",
    "the run has not ended, and may still own what it has stored",
    up(plan("p artifact report 64 1", "w wait go"))
    .request("p", part=1)
    .stored("l1", "staged")
    .reply(nonce=None)
    .crash()
    .request("p")
    .stored("l1")
    .applied()
    .reply()
    .status("waiting", on="go")
    .bound(),
    exercised=0,
)


# --- what statuses do not tell ------------------------------------------------------------------------------------------
def plain(of: Plan = CHAIN) -> Story:
    """A harness whose statuses tell of the run, and not of its operations."""
    return Story(of).up().start()


UNDONE = Plan(Seq("m", (Call("a", "ledger"), Compensate("u", "a", "flaky"), Call("c", "ledger"))))
holds(
    "CMP-3",
    "how an undo that was refused has ended is not told",
    plain(UNDONE).call("a").call("c", "rejected").call("u", "rejected").status("failed").settled(),
    exercised=0,
)
holds(
    "EFF-9",
    "what became of the notice is not told",
    plain(plan("a mailer", "b ledger a"))
    .request("a")
    .applied()
    .reply(delivery="dropped")
    .notice("a")
    .status("running"),
    exercised=0,
)
holds("OWN-1", "no answer is shown or handed on after the repeat", plain().call("a").start().status("running"), exercised=0)
holds(
    "OWN-2",
    "which of two answers was accepted is not told",
    plain(plan("a reader")).request("a").pause().up().call("a").applied(1).reply(call=1).resume(1).status("running"),
    exercised=0,
)
holds(
    "JRN-9",
    "what became of the call that the stop met is not told",
    plain().request("a").cancel().applied().reply().status("cancelled").settled(),
    exercised=0,
)
holds(
    "SCH-10",
    "what became of two timers is not told",
    plain(plan(par("s sleep 5", "t sleep 5"), "b ledger")).later(2).crash().status("running"),
    exercised=0,
)
holds(
    "SCH-12",
    "how the wait has ended is not told",
    plain(plan("a ledger", "w wait go 50", "v wait halt"))
    .call("a")
    .status("waiting", on="go")
    .later(100)
    .signal("1", disposition="late")
    .status("running"),
    exercised=0,
)
LODGER = plan("a ledger", Child("kid", Call("x", "ledger"), detached=True), "b ledger")
holds(
    "CHI-1",
    "a child that was let go is not told of, nor is any other",
    plain(LODGER).call("a").call("kid/x").call("b").done().settled(),
    exercised=0,
)
holds(
    "ART-3",
    "what is registered is not told",
    plain(plan("p artifact report 64 1"))
    .request("p", part=1)
    .stored("l1", "staged")
    .reply(nonce=None)
    .crash()
    .request("p")
    .stored("l1")
    .applied()
    .reply()
    .done()
    .settled(),
    exercised=0,
)

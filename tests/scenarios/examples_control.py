"""Examples for OWN-1, SIG-1 2 and SCH-1 3 4."""

from __future__ import annotations

from scenarios.history import STORM
from scenarios.plan import Plan
from tests.scenarios.build import Story, par, plan, seq
from tests.scenarios.examples import breaks, holds

OPS = {"shows_operations": True}
READ = plan("a reader", "b ledger a")
GATE = plan("a ledger", "w wait go", "b ledger a,w")
GATES = plan("a ledger", "w wait go", "b ledger w", "v wait go", "c ledger v")
NAP = plan("a ledger", "s sleep 100", "b ledger a")


def story(of: Plan, **declared: object) -> Story:
    return Story(of, **declared).up().start()


# --- OWN-1 ------------------------------------------------------------------------------------------------------------
holds(
    "OWN-1",
    "the stale worker comes back and is ignored",
    story(READ, **OPS)
    .call("a")
    .pause()
    .up()
    .call("a")
    .status("running", ops={"a": "succeeded a2"})
    .resume(1)
    .status("running", ops={"a": "succeeded a2"})
    .call("b", carries={"a": "a2"})
    .done({"a": "a2"}),
)
holds(
    "OWN-1",
    "the stale worker had accepted before it was paused",
    story(READ, **OPS)
    .call("a")
    .status("running", ops={"a": "succeeded a1"})
    .pause()
    .up()
    .call("b")
    .resume(1)
    .call("b", "saved", by=1)
    .done(),
)
holds(
    "OWN-1",
    "the pause was too short for anybody to take over",
    story(READ).call("a").pause().resume(1).call("b").done(),
    exercised=0,
)
holds(
    "OWN-1",
    "start and signal repeated, one answer",
    story(GATE).start().call("a").signal("1").signal("1").call("b").done(),
    exercised=2,
)
breaks(
    "OWN-1",
    "the stale worker's answer replaces the accepted one",
    story(READ, **OPS)
    .call("a")
    .pause()
    .up()
    .call("a")
    .status("running", ops={"a": "succeeded a2"})
    .resume(1)
    .status("running", ops={"a": "succeeded a1"}),
    "stale acceptance",
)
breaks(
    "OWN-1",
    "the new worker hands on its answer, the stale one its own",
    story(READ)
    .call("a")
    .pause()
    .up()
    .call("a")
    .call("b", carries={"a": "a2"})
    .resume(1)
    .call("b", "mismatch", by=1, carries={"a": "a1"}),
    "stale acceptance",
)
breaks(
    "OWN-1",
    "two starts, two answers of one read",
    story(READ).start().call("a").call("a").call("b", carries={"a": "a1"}).call("b", "mismatch", carries={"a": "a2"}),
    "stale acceptance",
)

# --- SIG-1 ------------------------------------------------------------------------------------------------------------
holds(
    "SIG-1",
    "acknowledged while the wait is on, killed, and there again",
    story(GATE).call("a").status("waiting", on="go").signal("1").crash().call("b").done().settled(),
)
holds(
    "SIG-1",
    "right after the acknowledgement the run still shows as waiting",
    story(GATE)
    .call("a")
    .status("waiting", on="go")
    .signal("1")
    .status("waiting", on="go")
    .crash()
    .status("waiting", on="go")
    .call("b")
    .done()
    .settled(),
)
holds(
    "SIG-1",
    "a signal that was never acknowledged may be lost",
    story(GATE).call("a").signal("1", outcome="indefinite").crash().status("waiting", on="go").bound(),
    exercised=0,
)
holds(
    "SIG-1",
    "the second wait still wants a signal of its own",
    story(GATES).call("a").signal("1").crash().call("b").status("waiting", on="go").bound(),
)
holds(
    "SIG-1",
    "a surplus signal is nobody's",
    story(GATE).call("a").status("waiting", on="go").signal("1").signal("2").crash().call("b").done().settled(),
)
breaks(
    "SIG-1",
    "acknowledged, killed, waiting for ever",
    story(GATE).call("a").status("waiting", on="go").signal("1").crash().status("waiting", on="go").bound(),
    "amnesia",
)
breaks(
    "SIG-1",
    "two acknowledged, one of them lost",
    story(GATES).call("a").signal("1").call("b").signal("2").crash().status("waiting", on="go").bound(),
    "amnesia",
)
breaks(
    "SIG-1",
    "lost, and the wait ends with the next one",
    story(GATE)
    .call("a")
    .status("waiting", on="go")
    .signal("1")
    .crash()
    .status("waiting", on="go")
    .signal("2")
    .call("b", carries={"w": "sig:2"}),
    "amnesia",
)

# --- SIG-2 ------------------------------------------------------------------------------------------------------------
holds(
    "SIG-2",
    "repeated with one id, it opens one gate",
    story(GATES)
    .call("a")
    .signal("1")
    .signal("1")
    .call("b")
    .status("waiting", on="go")
    .signal("2")
    .call("c")
    .done()
    .settled(),
)
holds(
    "SIG-2",
    "both signals sent ahead, each opens one gate",
    story(GATES).call("a").signal("1").signal("2").signal("1").call("b").call("c").done(),
)
holds(
    "SIG-2",
    "two gates side by side, opened in either order",
    story(plan(par("w wait go", "v wait go"), "c ledger w,v"))
    .signal("1")
    .signal("1")
    .signal("2")
    .call("c", carries={"w": "sig:2", "v": "sig:1"}),
)
breaks(
    "SIG-2",
    "a repeat opens the second gate, as the next call shows",
    story(GATES).call("a").signal("1").signal("1").call("b").call("c", carries={"v": "sig:1"}),
    "duplicate effect",
)
breaks(
    "SIG-2",
    "one wakes both, as the result shows",
    story(plan(par("w wait go", "v wait go"))).signal("1").done({"w": "sig:1", "v": "sig:1"}),
    "duplicate effect",
)
breaks(
    "SIG-2",
    "no nonce is shown, but there were not signals enough",
    story(GATES).call("a").signal("1").signal("1").call("b").call("c", carries={}),
    "duplicate effect",
)

# --- SCH-1 ------------------------------------------------------------------------------------------------------------
holds(
    "SCH-1", "killed while it runs, it ends in time", story(NAP).call("a").later(30).crash().later(80).call("b").done()
)
holds("SCH-1", "killed, it ends late", story(NAP).call("a").crash().later(5000).call("b").done())
holds(
    "SCH-1",
    "early by less than the clock's grain",
    story(NAP, timer_grain_ns=10_000_000).call("a").crash().later(90).call("b").done(),
)
holds("SCH-1", "nothing happened while it ran", story(NAP).call("a").later(120).call("b").done(), exercised=0)
holds(
    "SCH-1",
    "it is counted from the first answer, though the call was repeated since",
    story(NAP).call("a").crash().later(60).call("a", "saved").later(50).call("b").done(),
)
holds(
    "SCH-1",
    "after the timer a request is repeated for a reason",
    story(NAP).call("a").crash().later(120).call("b", "error").call("b").done(),
)
holds(
    "SCH-1",
    "one timer after the other, beside another branch",
    story(plan(par(seq("s sleep 50", "t sleep 50"), "x ledger"), "z ledger"))
    .call("x")
    .crash()
    .later(110)
    .call("z")
    .done(),
)
breaks(
    "SCH-1",
    "after the restart it counts as fired",
    story(NAP).call("a").later(30).crash().call("b").done(),
    "out of order",
)
breaks(
    "SCH-1",
    "two timers overlap",
    story(plan("s sleep 50", "t sleep 50", "z ledger")).later(60).call("z"),
    "out of order",
)
breaks(
    "SCH-1", "the run is done before its timer", story(plan("a ledger", "s sleep 100")).call("a").done(), "out of order"
)
breaks(
    "SCH-1",
    "counted from the start instead of the answer",
    story(NAP).later(90).call("a").later(20).call("b"),
    "out of order",
)
holds(
    "SCH-1",
    "what comes after it was sent again before anybody had seen the first time, as the machine stood still",
    story(NAP).call("a").later(120).stalled(1400).call("b").call("b", "saved").done().settled(),
    exercised=0,
)
breaks("SCH-1", "it fires twice", story(NAP).call("a").later(120).call("b").call("b", "saved"), "duplicate effect")

# --- SCH-3 ------------------------------------------------------------------------------------------------------------
holds(
    "SCH-3",
    "start and signal repeated, everything once",
    story(GATE).start().call("a").signal("1").signal("1").call("b").done(),
    exercised=2,
)
holds(
    "SCH-3",
    "repeated, and a request sent again after a kill",
    story(GATE).start().call("a").crash().call("a", "saved").signal("1").signal("1").call("b").done(),
    exercised=2,
)
holds(
    "SCH-3",
    "repeated after the end it is no longer a matter of work",
    story(READ).call("a").call("b").done().start().done(),
    exercised=0,
)
holds(
    "SCH-3",
    "the paused worker's late request is not the repeat's doing",
    story(GATE).start().pause().up().call("a").resume(1).call("a", "saved", by=1).signal("1").call("b").done(),
)
holds(
    "SCH-3",
    "while disks and network misbehave a request may be sent again",
    story(READ).fired(STORM).start().call("a").call("a"),
)
breaks(
    "SCH-3",
    "once they behave again it may not",
    story(READ).fired(STORM).quiet().start().call("a").call("a"),
    "duplicate effect",
)
breaks(
    "SCH-3",
    "the repeated start works the first call twice",
    story(READ).start().call("a").call("a"),
    "duplicate effect",
)
breaks(
    "SCH-3",
    "the repeated signal works what follows twice",
    story(GATE).call("a").signal("1").signal("1").call("b").call("b", "saved"),
    "duplicate effect",
)
breaks(
    "SCH-3",
    "the repeated signal is taken by two waits",
    story(GATES).call("a").signal("1").signal("1").call("b").call("c", carries={"v": "sig:1"}),
    "duplicate effect",
)

# --- SCH-4 ------------------------------------------------------------------------------------------------------------
REFUSES = {"early_signal": "refused"}
holds("SCH-4", "early, kept, used", story(GATE).signal("1").call("a").crash().call("b").done().settled())
holds(
    "SCH-4",
    "early, refused, sent again in time",
    story(GATE, **REFUSES)
    .signal("1", outcome="error")
    .call("a")
    .status("waiting", on="go")
    .signal("1")
    .call("b")
    .done()
    .settled(),
)
holds(
    "SCH-4",
    "refused with a definite error, and nothing came after it",
    story(GATE, **REFUSES).signal("1", outcome="error").call("a").status("waiting", on="go").bound(),
)
holds(
    "SCH-4",
    "it may have come after the wait began",
    story(GATE).request("a").applied().reply().signal("1").call("b").done().settled(),
    exercised=0,
)
holds(
    "SCH-4",
    "early and indefinite: it may be gone",
    story(GATE).signal("1", outcome="indefinite").call("a").status("waiting", on="go").bound(),
    exercised=0,
)
breaks(
    "SCH-4",
    "early, acknowledged, gone",
    story(GATE).signal("1").call("a").status("waiting", on="go").bound(),
    "amnesia",
)
breaks(
    "SCH-4",
    "early, acknowledged, gone in a crash",
    story(GATE).signal("1").crash().call("a").status("waiting", on="go").bound(),
    "amnesia",
)
breaks(
    "SCH-4",
    "said to refuse, it acknowledges and forgets",
    story(GATE, **REFUSES).signal("1").call("a").status("waiting", on="go").bound(),
    "amnesia",
)
breaks(
    "SCH-4",
    "refused, and used all the same",
    story(GATE, **REFUSES).signal("1", outcome="error").call("a").call("b", carries={"w": "sig:1"}),
    "false certainty",
)

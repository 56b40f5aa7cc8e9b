"""Examples for OWN-4 6 8 9 10."""

from __future__ import annotations

from typing import Any

from scenarios.history import OperationStatus, State, Status
from scenarios.plan import Call, Plan, Seq
from tests.scenarios.build import MS, Story, par, plan
from tests.scenarios.examples import breaks, holds

READ = plan("a reader")
ONE = plan("a ledger")
TWICE = Plan(Seq("main", (Call("a", "ledger", {}, tries=2), Call("b", "ledger"))))
LEASE = {"lease_ns": 10 * MS, "call_timeout_ns": 1000 * MS}
OPS = {"shows_operations": True}
GATE = plan("a ledger", "k approve m", "m mailer")


def story(of: Plan, **declared: object) -> Story:
    return Story(of, **declared).up().start()


def approved() -> Story:
    """What `m` is to send was approved, and somebody holds it."""
    return story(GATE).call("a").status("waiting", "k").decide("k")


def told(of: Story, state: State, tries: int, shown: Any = "unknown", **fields: Any) -> Story:
    """A status that says how often `a` was tried."""
    return of.ask("status").answer(
        "ok", Status(state, operations=(OperationStatus("a", shown, tries=tries),), **fields)
    )


# --- OWN-4 ------------------------------------------------------------------------------------------------------------
holds(
    "OWN-4", "another does what the dead one had in hand", story(READ).request("a").crash().call("a").done().settled()
)
holds(
    "OWN-4",
    "the answer had reached the dead one, and was recorded",
    story(READ).call("a").crash().done().settled(),
    exercised=0,
)
holds(
    "OWN-4",
    "another does what the stalled one has in hand, before that comes back",
    story(READ, **LEASE).request("a").pause().up().later(20).call("a").later(60).resume(1).done({"a": "a1"}).settled(),
)
holds(
    "OWN-4",
    "the stop was too short to be told from a slow machine",
    story(READ, **LEASE).request("a").pause().up().later(20).resume(1).applied().reply().done().settled(),
    exercised=0,
)
holds(
    "OWN-4",
    "what must not be repeated is left alone, visibly",
    story(plan("a mailer")).request("a").applied().crash().status("blocked", error="unresolved").settled(),
    exercised=0,
)
holds(
    "OWN-4",
    "the run ended otherwise",
    story(plan(par("a reader", "b ledger")))
    .call("b", "rejected")
    .request("a")
    .crash()
    .status("failed", reason="rejected: b")
    .settled(),
    exercised=0,
)
holds(
    "OWN-4",
    "another asks the desk in place of one that died over it",
    approved().request("k", lookup=True).crash().desk("k").call("m").done().settled(),
)
holds(
    "OWN-4",
    "whether anybody asks on behalf of who has lost authority is not judged",
    approved()
    .fired("revoke@waiting:k")
    .request("k", lookup=True)
    .crash()
    .decide("k", nth=2)
    .desk("k")
    .call("m")
    .done()
    .settled(),
    exercised=0,
)
breaks(
    "OWN-4",
    "what the dead one had not sent yet is nobody's",
    approved().request("k", lookup=True).crash().status("running").bound(),
    "stuck",
)
breaks(
    "OWN-4",
    "nobody takes over what the dead one had",
    story(READ).request("a").crash().status("running").bound(),
    "stuck",
)
breaks(
    "OWN-4",
    "only the stalled one itself goes on, once it is back",
    story(READ, **LEASE).request("a").pause().up().status("running").later(100).resume(1).applied().reply().done(),
    "stuck",
)
holds(
    "OWN-4",
    "whoever was to take it over is started, and not heard of before the stalled one is back",
    story(READ, **LEASE).request("a").pause().up().later(100).resume(1).applied().reply().done(),
    exercised=0,
)
holds(
    "OWN-4",
    "whoever was to take it over took its time to start",
    story(READ, **LEASE).request("a").pause().up().later(90).status("running").later(10).resume(1).applied().reply().done(),
    exercised=0,
)

# --- OWN-6 ------------------------------------------------------------------------------------------------------------
JUMP = "jump@a#1.received(engine)~3600000000000ns"

holds(
    "OWN-6",
    "the clock jumps, and the owner goes on waiting",
    story(READ, **LEASE).request("a").fired(JUMP).later(100).applied().reply().done(),
)
holds(
    "OWN-6",
    "the owner was stopped after the jump, and replaced",
    story(READ, **LEASE).fired(JUMP).request("a").pause().applied().reply().up().call("a").resume(1).done({"a": "a2"}),
)
holds(
    "OWN-6",
    "no clock has jumped",
    story(READ, **LEASE).request("a").later(100).applied().reply().done(),
    exercised=0,
)
holds(
    "OWN-6",
    "the caller had lost its patience",
    story(READ, **LEASE).request("a").fired(JUMP).later(900).call("a").done(),
    exercised=0,
)
breaks(
    "OWN-6",
    "an hour forward makes the living owner a twin",
    story(READ, **LEASE).request("a").fired(JUMP).later(30).request("a"),
    "duplicate effect",
)
breaks(
    "OWN-6",
    "an hour back makes the replaced owner the newer one",
    story(READ, **LEASE)
    .fired("jump@a#1.received~-3600000000000ns")
    .request("a")
    .pause()
    .applied()
    .reply()
    .up()
    .call("a")
    .resume(1)
    .done({"a": "a1"}),
    "stale acceptance",
)

# --- OWN-8 ------------------------------------------------------------------------------------------------------------
TWO_DEATHS = {"deaths_max": 2}


def deadly(times: int, **declared: object) -> Story:
    """So many workers are killed by `a`, and the next one is up."""
    made = story(ONE, **declared)
    for _ in range(times):
        made.request("a").crash()
    return made


def slowly_deadly(times: int, **declared: object) -> Story:
    """The same, and each of them takes a while to be gone."""
    made = story(ONE, **declared)
    for _ in range(times):
        made.request("a").fired("kill@a#0.received").later(400).crash()
    return made


holds("OWN-8", "after two deaths it is over", deadly(2, **TWO_DEATHS).status("blocked", reason="poison").settled())
holds(
    "OWN-8",
    "until the killed are gone for certain takes a while",
    slowly_deadly(2, **TWO_DEATHS).status("blocked", reason="poison").settled(),
)
breaks(
    "OWN-8",
    "a third worker is given it, though the first two took their time to die",
    slowly_deadly(2, **TWO_DEATHS).request("a"),
    "overspend",
)
holds(
    "OWN-8",
    "one death is not enough",
    deadly(1, **TWO_DEATHS).call("a").done().settled(),
    exercised=0,
)
holds(
    "OWN-8",
    "others died, and not of it",
    deadly(1, **TWO_DEATHS).crash().crash().call("a").done().settled(),
    exercised=0,
)
holds(
    "OWN-8",
    "the answer had been sent when the worker died",
    story(ONE, **TWO_DEATHS).call("a").crash().call("a", "saved").crash().call("a", "saved").crash().done(),
    exercised=0,
)
holds("OWN-8", "no limit was declared", deadly(9).call("a").done(), exercised=0)
breaks("OWN-8", "a third worker is given it", deadly(2, **TWO_DEATHS).request("a"), "overspend")
breaks("OWN-8", "for ever", deadly(12, **TWO_DEATHS).call("a").done(), "overspend")
breaks(
    "OWN-8",
    "it is left alone, and nobody is told",
    deadly(2, **TWO_DEATHS).status("running").bound(),
    "stuck",
)

# --- OWN-9 ------------------------------------------------------------------------------------------------------------
holds("OWN-9", "one death, and one more try", story(TWICE, **OPS).request("a").crash().call("a").call("b").done())
holds(
    "OWN-9",
    "two deaths use up two tries",
    story(TWICE, **OPS)
    .request("a")
    .crash()
    .request("a")
    .crash()
    .status("blocked", ops={"a": "unresolved"}, reason="retries-exhausted")
    .settled(),
    exercised=2,
)
holds(
    "OWN-9",
    "a death before the first byte left is a try as well",
    told(story(TWICE).request("a").crash().crash(), "running", 2),
)
holds(
    "OWN-9",
    "the next try is recorded, and not sent yet",
    told(story(TWICE).request("a").crash(), "running", 2),
)
holds("OWN-9", "nobody died over it", told(story(TWICE).call("a", delivery="dropped"), "running", 1), exercised=0)
breaks(
    "OWN-9",
    "one death is shown as three tries",
    told(story(TWICE).request("a").crash(), "running", 3),
    "overspend",
)
breaks(
    "OWN-9",
    "one death uses up both tries",
    story(TWICE, **OPS).request("a").crash().status("blocked", ops={"a": "unresolved"}, reason="retries-exhausted"),
    "overspend",
)

# --- OWN-10 -----------------------------------------------------------------------------------------------------------
holds(
    "OWN-10",
    "an answer that takes ten leases",
    story(READ, **LEASE).request("a").later(100).applied().reply().done(),
)
holds(
    "OWN-10",
    "another worker of the name comes up meanwhile",
    story(READ, **LEASE).request("a").fired("second@a#1.received").up().later(100).applied().reply().done(),
)
holds(
    "OWN-10",
    "the caller lost its patience, and asks again",
    story(READ, **LEASE).request("a").later(800).call("a").done(),
    exercised=0,
)
holds(
    "OWN-10",
    "the owner is dead",
    story(READ, **LEASE).request("a").crash().later(20).call("a").done(),
    exercised=0,
)
holds(
    "OWN-10",
    "the reply was lost",
    story(READ, **LEASE).call("a", delivery="reset").call("a").done({"a": "a2"}),
    exercised=0,
)
breaks(
    "OWN-10",
    "the slow owner gets a twin",
    story(READ, **LEASE).request("a").later(30).request("a"),
    "duplicate effect",
)
breaks(
    "OWN-10",
    "its namesake takes over as it comes up",
    story(READ, **LEASE).request("a").fired("second@a#1.received").up().request("a"),
    "duplicate effect",
)
SERVED = Plan(Seq("main", (Call("a", "reader"), Call("b", "ledger"))))
TERM = {"lease_ns": 300 * MS, "call_timeout_ns": 1000 * MS}


def restarted(**declared: Any) -> Story:
    """The server of a living owner was killed, and is up again."""
    return (
        Story(SERVED, **declared).up("engine").up().start().request("a").kill(unit="engine", incarnation=1).up("engine")
    )


holds(
    "OWN-10",
    "its server was restarted, and it stays at it",
    restarted(**TERM).applied().reply().call("b").done(),
    exercised=0,
)
holds(
    "OWN-10",
    "its server was away for longer than a lease",
    restarted(**TERM).later(300).call("a").call("b").done(),
    exercised=0,
)
holds("OWN-10", "nobody tells for how long it may be silent", restarted().call("a").call("b").done(), exercised=0)
breaks(
    "OWN-10",
    "its server was restarted, and gives away what it is at",
    restarted(**TERM).later(50).call("a").done(),
    "duplicate effect",
)

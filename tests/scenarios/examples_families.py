"""Examples for CHI-1 to CHI-3."""

from __future__ import annotations

from scenarios.history import ChildStatus
from scenarios.operation import Allowance
from scenarios.plan import Child, Op, Par, Plan, Seq
from tests.scenarios.build import MS, Story, leaf, par, plan, seq
from tests.scenarios.examples import breaks, holds

OPS = {"shows_operations": True}
KID = Child("kid", seq("k1 ledger", "k2 ledger k1"))
FAMILY = plan("a ledger", Par("both", (KID, leaf("d ledger a"))), "b ledger a")
LODGING = plan("a ledger", Child("lodger", seq("l1 ledger", "l2 ledger l1"), detached=True), "d ledger a")
PAIR = plan("a ledger", par(KID, Child("sis", seq("s1 ledger"))), "b ledger a")


def children(**states: str) -> tuple[ChildStatus, ...]:
    """What a status shows of the children: the lodger was let go."""
    return tuple(ChildStatus(f"r1/{name}", state, name == "lodger") for name, state in states.items())


# --- CHI-1 ------------------------------------------------------------------------------------------------------------
def fallen() -> Story:
    """The run is refused something as its child is under way."""
    return Story(FAMILY, **OPS).up().start().call("a").call("kid/k1").call("d", "rejected")


def lodging() -> Story:
    """The run is refused something, and has let a child go."""
    return Story(LODGING, **OPS).up().start().call("a").call("lodger/l1").call("d", "rejected")


holds(
    "CHI-1",
    "the child ends with its owner",
    fallen().status("running", children=children(kid="running")).status("failed", children=children(kid="cancelled")),
)
holds(
    "CHI-1",
    "the child's call was on its way as its owner ended",
    fallen().status("failed", children=children(kid="cancelled")).call("kid/k2").settled(),
)
holds(
    "CHI-1",
    "a dead worker's call arrives long after that",
    fallen().crash().status("failed", children=children(kid="cancelled")).later(400).call("kid/k2", by=1),
)
holds(
    "CHI-1",
    "the lodger lives on, and is known",
    lodging().status("failed", children=children(lodger="running")).later(400).call("lodger/l2").settled(),
)
holds(
    "CHI-1",
    "no child had begun",
    Story(FAMILY, **OPS).up().start().call("a", "rejected").status("failed").settled(),
    exercised=0,
)
holds(
    "CHI-1",
    "the run is held up over its code, and its child is too",
    fallen().fired("deploy@kid/k1#1.applied=3").status("blocked", children=children(kid="runnable")),
    exercised=0,
)
REOPENED = plan("m mailer", Child("kid", seq("k1 ledger")))


def reopened() -> Story:
    """The outcome of a letter is unknown, the run blocked over it, and then there is word of the letter."""
    lost = Story(REOPENED, **OPS).up().start().request("m").applied().reply(delivery="dropped")
    return lost.later(1200).status("blocked", ops={"m": "unresolved"})


holds(
    "CHI-1",
    "the run goes on with its child when there is word of what it was blocked over",
    reopened().notice("m").later(400).call("kid/k1").done().settled(),
    exercised=0,
)
breaks(
    "CHI-1",
    "the child of a run that is blocked begins without any word",
    reopened().later(400).call("kid/k1").settled(),
    "leak",
)
breaks("CHI-1", "the child runs on", fallen().status("failed", children=children(kid="running")), "leak")
breaks(
    "CHI-1",
    "the child works on where nobody looks",
    fallen().status("failed").later(400).call("kid/k2").settled(),
    "leak",
)
breaks(
    "CHI-1",
    "a restart has let the child go",
    Story(FAMILY, **OPS)
    .up()
    .start()
    .call("a")
    .call("kid/k1")
    .crash()
    .call("d", "rejected")
    .status("failed", children=(ChildStatus("r1/kid", "running", detached=True),)),
    "leak",
)
breaks(
    "CHI-1",
    "the lodger is in no list",
    Story(
        plan("a ledger", Child("lodger", seq("l1 ledger", "l2 ledger l1"), detached=True), par(KID, "d ledger a")),
        **OPS,
    )
    .up()
    .start()
    .call("a")
    .call("lodger/l1")
    .call("kid/k1")
    .call("d", "rejected")
    .status("failed", children=children(kid="cancelled")),
    "amnesia",
)


# --- CHI-2 ------------------------------------------------------------------------------------------------------------
def ended() -> Story:
    """Both have done all they were to do."""
    return Story(PAIR, **OPS).up().start().call("a").call("kid/k1").call("kid/k2").call("sis/s1")


def ends(*states: str) -> list[dict[str, object]]:
    """The journal's lines of what became of the one child."""
    begun = {"sequence": 1, "operation": "kid", "from": "planned", "to": "dispatched"}
    return [
        begun,
        *({"sequence": n, "operation": "kid", "from": "dispatched", "to": to} for n, to in enumerate(states, 2)),
    ]


BOTH = {"a": "succeeded a1", "kid": "succeeded", "sis": "succeeded", "b": "planned"}
holds("CHI-2", "killed in between, and joined", ended().crash().call("b").done().settled(), exercised=2)
holds(
    "CHI-2",
    "killed as one of them had ended, which is joined later",
    Story(PAIR, **OPS)
    .up()
    .start()
    .call("a")
    .call("kid/k1")
    .call("kid/k2")
    .crash()
    .call("sis/s1")
    .status("running", ops=BOTH, children=children(kid="succeeded", sis="succeeded"))
    .call("b")
    .done()
    .settled(),
)
holds(
    "CHI-2",
    "nobody had heard of its last answer before the crash",
    Story(PAIR, **OPS)
    .up()
    .start()
    .call("a")
    .call("sis/s1")
    .call("kid/k1")
    .call("kid/k2")
    .crash()
    .call("kid/k2", "saved")
    .call("b")
    .done()
    .journal(transitions=ends("succeeded"))
    .settled(),
)
holds("CHI-2", "nothing came in between", ended().call("b").done().settled(), exercised=0)
breaks(
    "CHI-2",
    "it is begun anew",
    ended().status("running", ops=BOTH).crash().call("kid/k1").call("kid/k2").call("b").done(),
    "duplicate effect",
)
breaks(
    "CHI-2",
    "its end is taken twice",
    ended().call("b").done().journal(transitions=ends("succeeded", "succeeded")),
    "duplicate effect",
)
breaks(
    "CHI-2",
    "it succeeds and fails",
    ended().call("b").done().journal(transitions=ends("failed", "succeeded")),
    "torn view",
)
breaks(
    "CHI-2",
    "it is waited for without end",
    ended()
    .crash()
    .status(
        "running",
        ops={"a": "succeeded a1", "kid": "dispatched", "sis": "succeeded", "b": "planned"},
        children=children(kid="succeeded", sis="succeeded"),
    )
    .bound(),
    "stuck",
)
breaks(
    "CHI-2",
    "nothing can move, as nobody takes its end",
    ended()
    .crash()
    .status(
        "blocked",
        ops={"a": "succeeded a1", "kid": "dispatched", "sis": "succeeded", "b": "planned"},
        children=children(kid="succeeded", sis="succeeded"),
    )
    .settled(),
    "stuck",
)


# --- CHI-3 ------------------------------------------------------------------------------------------------------------
def heirs(calls: int, *others: Op) -> Plan:
    """Two children with three calls each out of so many, and others."""
    two = (
        Child("ann", seq("a1 ledger", "a2 ledger a1"), share=Allowance(calls=3)),
        Child("ben", seq("b1 ledger", "b2 ledger b1"), share=Allowance(calls=3)),
    )
    return Plan(Seq("main", (Par("heirs", (*two, *others)),)), Allowance(calls=calls))


MINORS = Plan(
    Seq("main", (leaf("a ledger"), Child("kid", seq("k1 ledger")), leaf("b ledger a"))), deadline_ns=5_000 * MS
)
NESTED = Plan(
    Child(
        "ann",
        Seq("in", (leaf("a1 ledger"), Child("eve", seq("e1 ledger"), share=Allowance(calls=2)), leaf("a2 ledger a1"))),
        share=Allowance(calls=2),
    ),
    Allowance(calls=9),
)
holds(
    "CHI-3",
    "both fit",
    Story(heirs(6)).up().start().call("ann/a1").call("ben/b1").call("ann/a2").call("ben/b2").done().settled(),
    exercised=2,
)
holds(
    "CHI-3",
    "the second has what the first has left",
    Story(heirs(5)).up().start().call("ann/a1").call("ann/a2").call("ben/b1").call("ben/b2").done().settled(),
    exercised=2,
)
holds(
    "CHI-3",
    "told of what is left",
    Story(MINORS)
    .up()
    .start()
    .call("a", remaining_ns=4_990 * MS)
    .later(3_000)
    .call("kid/k1", remaining_ns=1_980 * MS)
    .call("b", remaining_ns=1_970 * MS)
    .done()
    .settled(),
)
holds(
    "CHI-3",
    "it was told as it was sent, and is late to arrive",
    Story(MINORS).up().start().call("a", remaining_ns=4_990 * MS).later(900).call("kid/k1", remaining_ns=4_980 * MS),
)
holds("CHI-3", "nothing is limited", Story(FAMILY).up().start().call("a").call("kid/k1"), exercised=0)
breaks(
    "CHI-3",
    "both together have more than there is",
    Story(heirs(5)).up().start().call("ann/a1").call("ben/b1").call("ann/a2").call("ben/b2").done(),
    "overspend",
)
breaks(
    "CHI-3",
    "a child gives more than it has",
    Story(NESTED).up().start().call("ann/a1").call("ann/eve/e1").call("ann/a2").done(),
    "overspend",
)
breaks(
    "CHI-3",
    "it has the whole time again",
    Story(MINORS).up().start().call("a", remaining_ns=4_990 * MS).later(3_000).call("kid/k1", remaining_ns=4_990 * MS),
    "replenished allowance",
)
breaks(
    "CHI-3",
    "it begins when the time of its owner is over",
    Story(MINORS).up().start().call("a", remaining_ns=4_990 * MS).later(7_000).call("kid/k1", remaining_ns=0),
    "replenished allowance",
)

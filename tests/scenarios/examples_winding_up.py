"""Examples for CAN-5 7, and of what other promises mean where there are children."""

from __future__ import annotations

from scenarios.history import Asked, ChildStatus, State, Status
from scenarios.plan import Child
from tests.scenarios.build import MS, Story, plan, seq
from tests.scenarios.examples import breaks, holds

OPS = {"shows_operations": True}
FAMILY = plan("a ledger", Child("kid", seq("k1 ledger", "k2 ledger k1")), "b ledger a")
LODGING = plan("a ledger", Child("lodger", seq("l1 ledger", "l2 ledger l1"), detached=True), "b ledger a")
TRIP = plan("a ledger", "b ledger a", "w wait go", "c ledger b", "ua undo a", "ub undo b")


def asked_of(story: Story, child: str, state: State) -> Story:
    """A status of a child, asked for by its own name."""
    story.asks += 1
    story.add(Asked(story.now_ns, story.asks, "status", f"r1/{child}", story.worker))
    return story.answer("ok", Status(state))


def kid(state: str) -> tuple[ChildStatus, ...]:
    return (ChildStatus("r1/kid", state),)


def family() -> Story:
    """Stopped as the child's first call is under way."""
    return Story(FAMILY).up().start().call("a").request("kid/k1").cancel()


def lodging() -> Story:
    return Story(LODGING, **OPS).up().start().call("a").call("lodger/l1").cancel().status("cancelled")


# --- CAN-5 ------------------------------------------------------------------------------------------------------------
holds(
    "CAN-5",
    "the child ends with its owner",
    family().applied().reply().status("cancelled", children=kid("cancelled")).settled(),
)
holds(
    "CAN-5",
    "the child is still at it when its owner is shown stopping",
    family().status("running", cancel="accepted", children=kid("running")).applied().reply().status("cancelled"),
)
holds(
    "CAN-5",
    "the lodger goes on",
    asked_of(asked_of(lodging(), "lodger", "running").call("lodger/l2"), "lodger", "done"),
)
holds(
    "CAN-5",
    "the lodger has been stopped by somebody",
    asked_of(
        lodging().add(Asked(0, 90, "cancel", "r1/lodger", 1, "x")).answer(ask=90, body={"disposition": "accepted"}),
        "lodger",
        "cancelled",
    ),
)
holds(
    "CAN-5",
    "the lodger had not moved in yet",
    asked_of(
        Story(LODGING).up().start().request("a").cancel().applied().reply().status("cancelled"), "lodger", "unknown"
    ),
    exercised=0,
)
breaks("CAN-5", "the child goes on", family().applied().reply().call("kid/k2").status("cancelled"), "resurrection")
breaks(
    "CAN-5",
    "the child goes on after a restart",
    family().applied().reply().crash().call("kid/k2").status("cancelled"),
    "resurrection",
)
breaks(
    "CAN-5",
    "the owner is gone, and its child runs",
    family().applied().reply().status("cancelled", children=kid("running")),
    "leak",
)
breaks("CAN-5", "the lodger is put out too", asked_of(lodging(), "lodger", "cancelled"), "leak")
breaks("CAN-5", "nobody knows the lodger", asked_of(lodging(), "lodger", "unknown"), "amnesia")


# --- CAN-6, of children -----------------------------------------------------------------------------------------------
GRACE = {"shows_operations": True, "grace_ns": 300 * MS, "call_timeout_ns": 1000 * MS}
#: Just over the grace, and as much again.
OVERSTAY_MS = 610


def deaf_child(times: int, ms: int = 700) -> Story:
    """Stopped as the child's first call is under way, and seen `times` times, `ms` after that and later."""
    story = Story(FAMILY, **GRACE).up().start().call("a").request("kid/k1").cancel().later(ms)
    for _ in range(times):
        story.status(
            "running", ops={"a": "succeeded a1", "kid": "dispatched", "b": "planned"}, cancel="delivered"
        ).later(10)
    return story


holds("CAN-6", "a child is a moment late to be given up", deaf_child(3, OVERSTAY_MS).status("cancelled"))
breaks("CAN-6", "a child is waited for without end", deaf_child(12), "stuck")


# --- CAN-7 ------------------------------------------------------------------------------------------------------------
def trip() -> Story:
    """Stopped with two effects to undo."""
    return Story(TRIP, **OPS).up().start().call("a").call("b").status("waiting", on="go").cancel()


UNDONE = {"a": "succeeded a1", "b": "succeeded b1", "ub": "succeeded ub1", "ua": "succeeded ua1"}
holds("CAN-7", "both are undone", trip().call("ub").call("ua").status("cancelled", ops=UNDONE).settled(), exercised=2)
holds(
    "CAN-7",
    "both are undone, over a crash",
    trip().request("ub").applied().crash().call("ub", "saved").call("ua").status("cancelled", ops=UNDONE).settled(),
    exercised=2,
)
holds(
    "CAN-7",
    "one cannot be undone, and the other waits for it",
    trip()
    .call("ub", "rejected")
    .status("cancelled", ops={"a": "succeeded a1", "b": "succeeded b1", "ub": "unresolved", "ua": "planned"})
    .settled(),
    exercised=0,
)
holds(
    "CAN-7",
    "nothing had been done yet",
    Story(TRIP).up().start().request("a").cancel().reply("rejected").status("cancelled").settled(),
    exercised=0,
)
holds("CAN-7", "it takes long", trip().call("ub").call("ua").status("cancelled", ops=UNDONE).slow(), exercised=2)
breaks(
    "CAN-7",
    "stopped and left as it was",
    trip()
    .status("cancelled", ops={"a": "succeeded a1", "b": "succeeded b1", "ub": "planned", "ua": "planned"})
    .settled(),
    "lost effect",
)
breaks(
    "CAN-7",
    "a crash ends the cleanup",
    trip()
    .call("ub")
    .crash()
    .status("cancelled", ops={"a": "succeeded a1", "b": "succeeded b1", "ub": "succeeded ub1", "ua": "skipped"})
    .settled(),
    "lost effect",
)
breaks(
    "CAN-7",
    "a crash leaves the cleanup where it was",
    trip().call("ub").crash().status("running", cancel="quiescent").bound(),
    "stuck",
)

# --- DUR-7, of children -----------------------------------------------------------------------------------------------
holds(
    "DUR-7",
    "the new worker has taken over the child, and not its owner",
    Story(FAMILY, shows_attempts=True)
    .up()
    .start()
    .call("a")
    .status("running", attempt="t", execution="e1")
    .crash()
    .call("kid/k1")
    .status("running", attempt="t", execution="e1"),
)

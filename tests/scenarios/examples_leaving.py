"""Examples of workers that leave as they are asked to: for OWN-8 and OWN-10."""

from __future__ import annotations

from scenarios.plan import Call, Plan, Seq
from tests.scenarios.build import MS, Story
from tests.scenarios.examples import breaks, holds

READ = Plan(Seq("main", (Call("a", "reader"), Call("b", "ledger"))))
LEASE = {"lease_ns": 20 * MS, "call_timeout_ns": 1000 * MS}
ASKED = "leave@a#1.received"
OTHER = "leave@a#1.received=other"


def owned() -> Story:
    """Two workers, the first of which waits for an answer."""
    return Story(READ, **LEASE).up().start().request("a").up()


def leaving(times: int) -> Story:
    """As many workers as that have left with a call unanswered that they gave up on."""
    story = Story(READ, lease_ns=20 * MS, deaths_max=2).up().start()
    for _ in range(times):
        story = story.request("a").fired(ASKED).later(10).kill("left").up()
    return story


# --- OWN-8 ------------------------------------------------------------------------------------------------------------
holds(
    "OWN-8", "three workers have left over it, and none was killed", leaving(3).call("a").call("b").done(), exercised=0
)
holds(
    "OWN-8",
    "one has left, one was killed, and a third carries it out",
    leaving(1).request("a").crash().call("a").call("b").done(),
    exercised=0,
)

# --- OWN-10 -----------------------------------------------------------------------------------------------------------
holds(
    "OWN-10",
    "the other one has left, and the owner stays at it",
    owned().fired(OTHER).kill("left", incarnation=2).later(100).applied().reply().call("b", by=1).done(),
)
holds(
    "OWN-10",
    "the owner was asked to leave, gave it up, and is about to be gone",
    owned().fired(ASKED).later(30).call("a").kill("left", incarnation=1).call("b").done(),
    exercised=0,
)
holds(
    "OWN-10",
    "both were asked to leave, and the owner is not gone yet",
    owned().up().fired(ASKED).fired(OTHER).kill("left", incarnation=2).later(30).call("a").call("b").done(),
    exercised=0,
)
holds(
    "OWN-10",
    "its server is restarted meanwhile",
    Story(READ, lease_ns=300 * MS, call_timeout_ns=1000 * MS)
    .up("engine")
    .up()
    .start()
    .fired("leave@ack:start")
    .request("a")
    .kill(unit="engine", incarnation=1)
    .up("engine")
    .up()
    .later(50)
    .call("a")
    .call("b")
    .done(),
    exercised=0,
)
holds(
    "OWN-10",
    "the owner had been asked to leave before its request was seen",
    Story(READ, **LEASE).up().start().up().fired("leave@ack:start").request("a", by=1).call("a").call("b").done(),
    exercised=0,
)
breaks(
    "OWN-10",
    "the other one leaves, and takes along what the owner is at",
    owned().fired(OTHER).kill("left", incarnation=2).up().later(30).request("a"),
    "duplicate effect",
)
breaks(
    "OWN-10",
    "the other one is about to leave, and hands back what the owner is at",
    owned().fired(OTHER).later(30).request("a").kill("left", incarnation=2),
    "duplicate effect",
)
breaks(
    "OWN-10",
    "the other one had left before",
    Story(READ, **LEASE)
    .up()
    .start()
    .up()
    .fired(OTHER)
    .kill("left", incarnation=2)
    .request("a", by=1)
    .up()
    .request("a"),
    "duplicate effect",
)

"""Examples of harnesses whose statuses tell of states and of no answers, and of a clock by which a grace is over at once."""

from __future__ import annotations

from scenarios.plan import Plan
from tests.scenarios.build import MS, Story, plan
from tests.scenarios.examples import holds

WAITING = plan("a ledger", "w wait go", "b ledger")
TIMED = plan("a ledger", "w wait go 500", "b ledger")
UNDONE = plan("a ledger", "u undo a", "c ledger")
USED = {"1": "released"}


def up(of: Plan, **declared: object) -> Story:
    return Story(of, shows_operations=True, **declared).up().start()


def released(of: Plan) -> Story:
    """The wait was on when its signal came, and both are shown as over; with which answer nobody says."""
    return (
        up(of)
        .call("a")
        .status("waiting", on="go", ops={"a": "succeeded", "w": "planned"})
        .signal("1", disposition="released")
        .status("running", ops={"a": "succeeded", "w": "succeeded", "b": "planned"}, signals=USED)
    )


ENDED = {"a": "succeeded", "w": "succeeded", "b": "failed"}
holds("SIG-4", "a signal is shown as used, and its wait as ended", released(WAITING), exercised=0)
holds(
    "SIG-5",
    "a signal is shown as used by a wait that has ended, and the run has failed",
    released(WAITING).call("b", "rejected").status("failed", ops=ENDED, signals=USED).settled(),
    exercised=0,
)
holds("SCH-12", "a wait that may time out has ended by its signal", released(TIMED).call("b").done().settled(), exercised=0)
holds(
    "CMP-4",
    "an effect and its undo are shown as accepted",
    up(UNDONE)
    .call("a")
    .call("c", "rejected")
    .call("u")
    .status("failed", ops={"a": "succeeded", "u": "succeeded", "c": "failed"})
    .settled(),
)
holds(
    "CAN-2",
    "the clock of the server is set an hour ahead, and the grace is over",
    up(plan("a ledger", "b ledger"), call_timeout_ns=1000 * MS, grace_ns=500 * MS)
    .request("a")
    .fired("jump@a#1.received(engine)~3600000000000ns")
    .cancel()
    .status("cancelled", cancel="quiescent"),
    exercised=0,
)

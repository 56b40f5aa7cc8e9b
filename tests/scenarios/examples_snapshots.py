"""Examples for DUR-4."""

from __future__ import annotations

from typing import Any

from scenarios.history import OperationStatus, Status
from scenarios.plan import Compensate, Fail
from tests.scenarios.build import Story, par, plan
from tests.scenarios.examples import breaks, holds

CHAIN = plan("a ledger", "b ledger a", "c ledger b")
JOIN = plan(par("a ledger", "b ledger"), "c ledger a,b")
WAIT = plan("a ledger", "w wait go", "b ledger a,w")
DECIDED = plan("a ledger", "k approve b", "b ledger a,k")
#: Accepted, released, and neither.
DONE, READY, HELD = ("succeeded", None), ("planned", True), ("planned", False)


def story(of: Any = CHAIN) -> Story:
    return Story(of, shows_operations=True).up().start()


def shows(made: Story, ops: dict[str, tuple[Any, bool | None]], state: Any = "running", **fields: Any) -> Story:
    """A status with these operations, each as its state and whether it is ready."""
    shown = tuple(
        OperationStatus(id_, one, f"{id_}1" if one == "succeeded" else None, ready) for id_, (one, ready) in ops.items()
    )
    return made.ask("status").answer("ok", Status(state, operations=shown, **fields))


holds(
    "DUR-4",
    "what a result releases is ready in the status that shows the result",
    shows(
        shows(shows(story(), {"a": READY, "b": HELD, "c": HELD}).call("a"), {"a": DONE, "b": READY, "c": HELD}).call(
            "b"
        ),
        {"a": DONE, "b": ("dispatched", True), "c": HELD},
    ),
    exercised=2,
)
holds(
    "DUR-4",
    "a join is released by the last of its branches",
    shows(story(JOIN).call("a"), {"a": DONE, "b": READY, "c": HELD}),
    exercised=0,
)
holds(
    "DUR-4",
    "a snapshot from before the acceptance is answered after it",
    shows(
        story()
        .ask("status")
        .call("a")
        .request("b")
        .answer("ok", Status("running", operations=(OperationStatus("a", "planned", ready=True),)), ask=2),
        {"a": DONE, "b": ("dispatched", True), "c": HELD},
    ),
)
holds(
    "DUR-4",
    "in a run that is being stopped nothing is released",
    shows(
        shows(story().call("a"), {"a": DONE, "b": HELD, "c": HELD}, cancel="accepted"),
        {"a": DONE, "b": HELD, "c": HELD},
        paused=True,
    ),
    exercised=0,
)
holds(
    "DUR-4",
    "nor in one that fails",
    shows(
        story(
            plan(par("a ledger", Fail("f", "enough")), "b ledger a", Compensate("u", "a", "ledger", {"undo": 1}))
        ).call("a"),
        {"a": DONE, "f": ("failed", None), "b": HELD, "u": HELD},
        phase="compensating",
    ),
    exercised=0,
)
holds(
    "DUR-4",
    "a decision may be taken back, and what it let go is held again",
    shows(story(DECIDED).call("a").decide("k"), {"a": DONE, "k": ("planned", True), "b": READY}, state="waiting"),
    exercised=1,
)
holds(
    "DUR-4",
    "a harness that says nothing of what is ready",
    story().call("a").status("running", ops={"a": "succeeded a1", "b": "planned", "c": "planned"}),
    exercised=0,
)
breaks(
    "DUR-4",
    "the result is there, and what it releases is not",
    shows(story().call("a"), {"a": DONE, "b": HELD, "c": HELD}),
    "torn view",
)
breaks(
    "DUR-4",
    "a wait that is not on, though all before it is done",
    shows(story(WAIT).call("a"), {"a": DONE, "w": HELD, "b": HELD}, state="waiting"),
    "torn view",
)
breaks(
    "DUR-4",
    "the released work is there, and the result is not",
    shows(story().call("a"), {"a": ("dispatched", True), "b": READY, "c": HELD}),
    "torn view",
)
breaks(
    "DUR-4",
    "dispatched, and what comes before it is planned",
    story().call("a").request("b").status("running", ops={"a": "planned", "b": "dispatched"}),
    "torn view",
)
breaks(
    "DUR-4",
    "an answer in the result of an operation that is shown as under way",
    story(plan("a ledger")).call("a").done(ops={"a": "dispatched"}),
    "torn view",
)
holds(
    "DUR-4",
    "what a stop keeps back is not ready, in a status that does not tell of the stop",
    shows(story().call("a").cancel(), {"a": DONE, "b": HELD, "c": HELD}),
    exercised=0,
)

"""Examples for STA-1 to STA-5."""

from __future__ import annotations

from typing import Any

from scenarios.history import OperationState, OperationStatus, State, Status
from tests.scenarios.build import Story, par, plan
from tests.scenarios.examples import breaks, holds

ONE = plan("a ledger")
TWO = plan("a ledger", "w wait go", "b ledger a")
BLIND = plan("m mailer")
OPS = {"shows_operations": True}


def begun(of: Any = TWO) -> Story:
    return Story(of, **OPS).up().start()


def told(
    of: Story, version: int | None, state: State = "running", a: OperationState = "planned", **fields: Any
) -> Story:
    """A status with a version, and how `a` stands."""
    shown = (OperationStatus("a", a, "a1" if a == "succeeded" else None),)
    return of.ask("status").answer("ok", Status(state, version=version, operations=shown, **fields))


def event(cursor: int, kind: str = "dispatched", operation: str | None = "a") -> dict[str, object]:
    return {"cursor": cursor, "kind": kind, "operation": operation}


# --- STA-1 ------------------------------------------------------------------------------------------------------------
holds("STA-1", "another worker is asked", begun().crash().status("running").status("running"), exercised=2)
holds("STA-1", "the same worker is asked", begun().status("running"), exercised=0)
holds(
    "STA-1",
    "the start was never acknowledged, so that nobody holds a handle",
    Story(TWO).up().ask("start").crash().status("unknown"),
    exercised=0,
)
holds("STA-1", "the other worker dies over the question", begun().crash().ask("status").crash(), exercised=0)
breaks("STA-1", "the next worker has never heard of it", begun().crash().status("unknown"), "amnesia")
breaks("STA-1", "nor the one that was started beside it", begun().pause().up().status("unknown"), "amnesia")

# --- STA-2 ------------------------------------------------------------------------------------------------------------
holds(
    "STA-2",
    "versions grow, and nothing changes under one",
    told(told(told(begun(), 1).call("a"), 3, a="succeeded"), 3, a="succeeded").crash(),
    exercised=2,
)
holds("STA-2", "no versions are shown", told(told(begun(), None).call("a"), None, a="succeeded"), exercised=0)
holds(
    "STA-2",
    "two questions were under way at a time, and may be answered in any order",
    begun()
    .ask("status")
    .ask("status")
    .answer("ok", Status("running", version=5), ask=3)
    .answer("ok", Status("running", version=4), ask=2),
    exercised=0,
)
breaks("STA-2", "counted anew by the next server", told(told(begun(), 7).crash(), 1), "torn view")
breaks(
    "STA-2",
    "another answer under the same version",
    told(told(begun(), 7, a="dispatched"), 7, a="succeeded"),
    "torn view",
)

holds(
    "STA-2",
    "what is done to a run makes a new version",
    told(told(told(begun(), 7), 8, paused=True), 9, cancel="accepted"),
    exercised=2,
)
breaks("STA-2", "a pause under the same version", told(told(begun(), 7, paused=False), 7, paused=True), "torn view")
breaks(
    "STA-2",
    "handed over under the same version",
    told(told(begun(), 7, "done", "succeeded", delivered=False), 7, "done", "succeeded", delivered=True),
    "torn view",
)

# --- STA-3 ------------------------------------------------------------------------------------------------------------
holds(
    "STA-3",
    "read on twice, and once more from an old cursor",
    begun()
    .page([event(1), event(2)], after=0, cursor=2)
    .crash()
    .page([event(3)], after=2, cursor=3)
    .page([event(2), event(3)], after=1, cursor=3),
    exercised=2,
)
holds(
    "STA-3",
    "numbers need not be dense",
    begun().page([event(10)], after=0, cursor=10).page([event(17)], after=10, cursor=17),
    exercised=1,
)
holds(
    "STA-3",
    "a page is cut short, and says where to go on",
    begun()
    .page([event(1)], after=0, cursor=1)
    .page([event(2), event(3)], after=1, cursor=3)
    .page([event(1), event(2)], after=0, cursor=2),
    exercised=1,
)
holds("STA-3", "read once from the beginning", begun().page([event(1)], after=0, cursor=1), exercised=0)
breaks(
    "STA-3",
    "a frame without an event moved the cursor",
    begun()
    .page([event(1)], after=0, cursor=2, control=[{"kind": "heartbeat"}])
    .page([event(3)], after=2, cursor=3)
    .page([event(1), event(2), event(3)], after=0, cursor=3),
    "amnesia",
)
breaks(
    "STA-3",
    "numbered anew after a restart",
    begun().page([event(1), event(2)], after=0, cursor=2).crash().page([event(2, "succeeded")], after=1, cursor=2),
    "torn view",
)
breaks(
    "STA-3",
    "an old cursor is answered from now",
    begun().page([event(1), event(2), event(3)], after=0, cursor=3).page([event(3)], after=1, cursor=3),
    "amnesia",
)

holds(
    "STA-3",
    "what two looks show is told in between",
    told(told(begun(), 1).request("a"), 3, a="unknown")
    .page([event(1) | {"version": 2}, event(2, "unknown") | {"version": 3}], after=0, cursor=2)
    .page([], after=2, cursor=2),
)
holds(
    "STA-3",
    "what two looks show is not told yet",
    told(told(begun(), 1).request("a").page([event(1) | {"version": 2}], after=0, cursor=1), 3, a="unknown"),
    exercised=0,
)
breaks(
    "STA-3",
    "that nobody knows what became of it is no event",
    told(told(told(begun(), 1).request("a"), 2, a="dispatched"), 3, a="unknown")
    .page([event(1) | {"version": 2}], after=0, cursor=1)
    .page([], after=1, cursor=1),
    "amnesia",
)

# --- STA-4 ------------------------------------------------------------------------------------------------------------
holds(
    "STA-4",
    "unknown is what it is",
    told(begun(ONE).request("a").applied().kill().up(), None, a="unknown"),
)
holds(
    "STA-4",
    "the worker is stopped, and its call told as under way",
    told(begun(ONE).request("a").pause().up(), None, a="dispatched"),
)
holds(
    "STA-4",
    "a blind call that nobody knows of ends unresolved",
    begun(BLIND).request("m").applied().crash().status("blocked", error="m unresolved"),
)
holds(
    "STA-4",
    "the receiver had refused it before",
    told(
        begun(plan(par("a ledger", "b ledger"))).request("b").call("a", "rejected").crash(),
        None,
        "failed",
        a="failed",
        error="rejected",
    ),
)
holds("STA-4", "nothing was in hand", told(begun(ONE).call("a").crash(), None, a="succeeded"), exercised=0)
breaks(
    "STA-4",
    "told as failed while its worker was stopped",
    told(begun(ONE).request("a").pause().up(), None, a="failed"),
    "false certainty",
)
breaks(
    "STA-4",
    "the run failed over a worker that died",
    begun(ONE).request("a").applied().crash().status("failed", error="worker lost"),
    "false certainty",
)

# --- STA-5 ------------------------------------------------------------------------------------------------------------
holds("STA-5", "failed, with its error", begun().status("failed", error="a failed: rejected"))
holds("STA-5", "cancelled, with a code", told(begun(), None, "cancelled", reason="cancelled: by r1"))
holds("STA-5", "done is its own reason", begun(ONE).call("a").done(), exercised=0)
holds("STA-5", "still running", begun().status("running"), exercised=0)
breaks("STA-5", "failed without a word", begun().status("failed", reason=None), "torn view")
breaks("STA-5", "stopped without a word", told(begun(), None, "cancelled"), "torn view")

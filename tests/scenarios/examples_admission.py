"""Examples for SCH-7 8 9."""

from __future__ import annotations

from typing import Any, Literal, Self

import attrs

from scenarios.history import Answered, Asked, Received, Status
from scenarios.plan import Plan, Race
from tests.scenarios.build import MS, Story, par, plan, seq
from tests.scenarios.examples import breaks, holds

CHAIN = plan("a ledger", "b ledger a")
WIDE = plan(par("a reader", "b reader", "c reader"))
SLOTS: dict[str, Any] = {"shows_operations": True, "slots": 2, "call_timeout_ns": 1000 * MS}
TIMED = Plan(par("a reader", "b reader", "c reader"), deadline_ns=500 * MS)
LOBBY = plan(Race("day", (seq("a ledger", "b ledger a"), par("u wait go", "v wait go", "w wait go"))))
#: What a request of a run with a deadline says.
LEFT: dict[str, Any] = {"remaining_ns": 1}
CROWD = dict.fromkeys("uvw", "planned")


class Beside(Story):
    """A story with other runs."""

    def other(
        self, run: str, verb: str, outcome: Literal["ok", "error", "indefinite"] = "ok", state: Any = None
    ) -> Self:
        self.asks += 1
        self.add(Asked(self.now_ns, self.asks, verb, run, self.worker, id=run if verb == "start" else None))
        shown = Status(state, reason="why" if state in {"failed", "blocked"} else None) if state else None
        return self.add(Answered(self.now_ns, self.asks, outcome, "", shown))

    def crowded(self, **ops: str) -> Self:
        """A status of the lobby, whose waits are all open."""
        self.status("running", ops={**CROWD, **ops})
        last = self.events[-1]
        assert isinstance(last, Answered)
        assert last.status is not None
        held = () if ops["a"].startswith("succeeded") else ("b",)
        operations = tuple(
            attrs.evolve(one, ready=one.state == "planned" and one.id not in held) for one in last.status.operations
        )
        self.events[-1] = attrs.evolve(last, status=attrs.evolve(last.status, operations=operations))
        return self


def story(of: Plan = CHAIN, **declared: Any) -> Beside:
    return Beside(of, **declared).up("engine").up().start()


def finished(made: Beside) -> Story:
    return made.call("a").call("b").done().settled()


# --- SCH-7 ------------------------------------------------------------------------------------------------------------
holds(
    "SCH-7",
    "one is served to its end, one is turned away",
    finished(
        story()
        .other("x", "start")
        .other("y", "start", "error")
        .other("x", "status", state="running")
        .other("x", "status", state="done")
        .other("y", "status", state="unknown")
    ),
    exercised=2,
)
holds(
    "SCH-7",
    "refused at first, and admitted when there was room again",
    finished(story().other("x", "start", "error").other("x", "start").other("x", "status", state="done")),
)
holds(
    "SCH-7",
    "nobody knows whether it was admitted",
    finished(story().other("x", "start", "indefinite").other("x", "status", state="unknown")),
    exercised=0,
)
holds("SCH-7", "both slots are taken, and no more", story(WIDE, **SLOTS).request("a").request("b").applied().reply())
holds(
    "SCH-7",
    "the third goes out when the second has its answer",
    story(WIDE, **SLOTS).request("a").request("b").applied().reply().request("c"),
)
holds(
    "SCH-7",
    "a worker that has given one up may take another",
    story(WIDE, **SLOTS).request("a").later(1200).request("b").request("c"),
)
holds(
    "SCH-7",
    "the dead have no slots",
    story(WIDE, **SLOTS).request("a").request("b").crash().request("a").request("b"),
)
breaks(
    "SCH-7",
    "acknowledged, and dropped",
    finished(story().other("x", "start").other("x", "status", state="unknown")),
    "amnesia",
)
breaks(
    "SCH-7",
    "one more in hand than it has slots",
    story(WIDE, **SLOTS).request("a").request("b").request("c"),
    "overspend",
)


def _worked_all_the_same() -> Beside:
    made = story().other("x", "start", "error").request("a")
    last = made.events[-1]
    assert isinstance(last, Received)
    made.events[-1] = attrs.evolve(last, run="x", op="alone")
    return made


breaks("SCH-7", "turned away, and worked all the same", _worked_all_the_same(), "phantom effect")

# --- SCH-8 ------------------------------------------------------------------------------------------------------------
holds(
    "SCH-8",
    "what is queued has no turn any more",
    story(TIMED)
    .call("a", **LEFT)
    .request("b", **LEFT)
    .later(500)
    .applied()
    .reply()
    .status("failed", reason="deadline")
    .settled(),
)
holds(
    "SCH-8",
    "it was on its way as the time ended",
    story(TIMED)
    .call("a", **LEFT)
    .call("b", **LEFT)
    .later(520)
    .call("c", **LEFT)
    .status("failed", reason="deadline")
    .settled(),
)
holds(
    "SCH-8",
    "it was handed out in time, and the machine stood still on its way",
    story(TIMED)
    .call("a", **LEFT)
    .call("b", **LEFT)
    .later(900)
    .stalled(800)
    .call("c", **LEFT)
    .status("failed", reason="deadline")
    .settled(),
)
breaks(
    "SCH-8",
    "the machine stood still for a while, and it was handed out long after that",
    story(TIMED).call("a", **LEFT).call("b", **LEFT).later(1500).stalled(300).later(800).call("c", **LEFT),
    "resurrection",
)
holds(
    "SCH-8",
    "sent again is not sent for the first time",
    story(TIMED).call("a", **LEFT).call("b", **LEFT).request("c", **LEFT).later(490).applied().reply().done().settled(),
    exercised=0,
)
breaks(
    "SCH-8",
    "handed out as the server comes back",
    story(TIMED)
    .call("a", **LEFT)
    .call("b", **LEFT)
    .kill(unit="engine", incarnation=1)
    .later(3000)
    .up("engine")
    .call("c", **LEFT),
    "resurrection",
)
breaks(
    "SCH-8",
    "handed out when there is a slot",
    story(TIMED).call("a", **LEFT).later(2000).call("b", **LEFT).call("c", **LEFT),
    "resurrection",
)

# --- SCH-9 ------------------------------------------------------------------------------------------------------------
LATER = {"a": "succeeded a1", "b": "dispatched"}
holds(
    "SCH-9",
    "two calls get on beside three waits",
    story(LOBBY, **SLOTS)
    .crowded(a="planned", b="planned")
    .call("a")
    .crowded(a="succeeded a1", b="planned")
    .call("b")
    .crowded(a="succeeded a1", b="succeeded b1"),
    exercised=2,
)
holds(
    "SCH-9",
    "given up as the call's own outcome was unknown",
    story(LOBBY, **SLOTS).crowded(a="planned", b="planned").request("a").crowded(a="unknown", b="planned").bound(),
    but=("DUR-6",),
)
holds("SCH-9", "fewer waits than slots", story(WIDE, **SLOTS).call("a").call("b").call("c").done(), exercised=0)
breaks(
    "SCH-9",
    "a call that may move never does",
    story(LOBBY, **SLOTS).crowded(a="planned", b="planned").crowded(a="planned", b="planned").bound(),
    "stuck",
)
breaks(
    "SCH-9",
    "the next one does not",
    story(LOBBY, **SLOTS).crowded(a="planned", b="planned").call("a").crowded(a="succeeded a1", b="planned").bound(),
    "stuck",
)

"""Examples for SCH-2 10 11."""

from __future__ import annotations

from typing import Any

from scenarios.plan import Call
from tests.scenarios.build import Story, par, plan
from tests.scenarios.examples import breaks, holds

CHAIN = plan("a ledger", "b ledger a")
TIMERS = plan(par("s sleep 5", "t sleep 5"), par("a mailer", "b ledger"))
MISFIT = plan(par(Call("x", "ledger", {"poison": True}, tolerate=True), "a ledger", "b reader"), "c ledger a")


def story(of: Any = CHAIN) -> Story:
    return Story(of, shows_operations=True).up("engine").up().start()


def fallen(made: Story) -> Story:
    """The engine dies and comes back."""
    return made.kill(unit="engine", incarnation=1).up("engine")


# --- SCH-2 ------------------------------------------------------------------------------------------------------------
holds("SCH-2", "the engine dies between the answer and what it releases", fallen(story().call("a")).call("b").done())
holds(
    "SCH-2",
    "the worker dies, its call is made again, and then what it releases",
    story().call("a").crash().call("a", "saved").call("b").done(),
)
holds("SCH-2", "it dies over the released work", fallen(story().call("a").request("b")).call("b").done(), exercised=0)
holds(
    "SCH-2",
    "given up while nobody had answered what comes before",
    fallen(story().request("a")).status("running", ops={"a": "unknown", "b": "planned"}).bound(),
    exercised=0,
    but=("DUR-6", "SCH-10"),
)
holds(
    "SCH-2",
    "given up while it was paused",
    fallen(story().call("a").halt()).status("running", ops={"a": "succeeded a1", "b": "planned"}, paused=True).bound(),
    exercised=0,
)
breaks(
    "SCH-2",
    "the result is there after the crash, and what it releases never moves",
    fallen(story().call("a")).status("running", ops={"a": "succeeded a1", "b": "planned"}).bound(),
    "stuck",
)
breaks(
    "SCH-2",
    "work from nowhere: dispatched after the crash, with no answer before it",
    fallen(story().request("a")).call("b"),
    "phantom effect",
)

# --- SCH-10 -----------------------------------------------------------------------------------------------------------
holds(
    "SCH-10",
    "both timers fire after the disk had room again",
    story(TIMERS)
    .fired("full@waiting:s(engine)")
    .kill("exited", unit="engine", incarnation=1)
    .up("engine")
    .later(9)
    .status("running", ops={"s": "succeeded", "t": "succeeded"})
    .call("a")
    .call("b")
    .done(),
)
holds(
    "SCH-10",
    "killed as they are due, and each letter is sent once",
    fallen(story(TIMERS).later(9).request("a").applied()).reply().call("b").done(),
)
holds(
    "SCH-10",
    "a letter that was refused before anything happened is sent again",
    fallen(story(TIMERS).later(9).call("a", "rejected")).call("a").call("b").done(),
)
holds("SCH-10", "nothing struck", story(TIMERS).later(9).call("a").call("b").done(), exercised=0)
holds(
    "SCH-10",
    "the journal has each accepted once, whatever it went through",
    fallen(story(TIMERS).later(9))
    .call("a")
    .call("b")
    .done()
    .journal(
        [
            {"sequence": 1, "operation": "b", "from": "planned", "to": "dispatched"},
            {"sequence": 2, "operation": "b", "from": "dispatched", "to": "unknown", "reason": "the lease ran out"},
            {
                "sequence": 3,
                "operation": "b",
                "from": "unknown",
                "to": "dispatched",
                "reason": "repeat: the lease ran out",
            },
            {"sequence": 4, "operation": "b", "from": "dispatched", "to": "succeeded"},
        ]
    ),
)
breaks(
    "SCH-10",
    "one of two timers is gone after the crash",
    fallen(story(TIMERS).later(9)).status("running", ops={"s": "succeeded", "t": "planned"}).bound(),
    "stuck",
)
breaks(
    "SCH-10",
    "the run is done, and one of its operations is not",
    fallen(story(TIMERS).later(9)).call("a").status("done", ops={"a": "succeeded a1", "b": "dispatched"}),
    "lost effect",
)
breaks(
    "SCH-10",
    "put back into the queue, and sent again",
    fallen(story(TIMERS).later(9).request("a").applied()).call("a").call("b").done(),
    "duplicate effect",
)
breaks(
    "SCH-10",
    "accepted twice, as the journal tells",
    fallen(story(TIMERS).later(9))
    .call("a")
    .call("b")
    .done()
    .journal(
        [
            {"sequence": 1, "operation": "b", "from": "dispatched", "to": "succeeded"},
            {"sequence": 2, "operation": "b", "from": "planned", "to": "succeeded"},
        ]
    ),
    "duplicate effect",
)

# --- SCH-11 -----------------------------------------------------------------------------------------------------------
SHOWN = {"x": "failed", "a": "succeeded a1"}
holds(
    "SCH-11",
    "the misfit fails, and its neighbours are served",
    story(MISFIT).call("a").call("b").status("running", ops=SHOWN).call("c").done(),
)
holds(
    "SCH-11",
    "they are served before it is looked at",
    story(MISFIT)
    .call("a")
    .call("b")
    .status("running", ops={"x": "planned", "a": "succeeded a1"})
    .status("running", ops=SHOWN),
)
holds(
    "SCH-11",
    "given up before anything was sent, in a run that is paused",
    story(MISFIT).halt().status("running", ops={"x": "planned"}, paused=True).bound(),
    exercised=0,
)
holds("SCH-11", "a plan in which everything fits", story().call("a").call("b").done(), exercised=0)
breaks(
    "SCH-11",
    "the neighbours wait for ever",
    story(MISFIT).status("running", ops={"x": "failed", "a": "planned", "b": "planned"}).bound(),
    "stuck",
)
breaks(
    "SCH-11",
    "it is tried for ever, and holds up its own run",
    story(MISFIT).call("a").call("b").status("running", ops={"x": "dispatched", "a": "succeeded a1"}).bound(),
    "stuck",
)
breaks(
    "SCH-11",
    "the run is done, and one of the neighbours was never sent",
    story(MISFIT).call("a").call("c").done({"b": "b1"}),
    "lost effect",
)

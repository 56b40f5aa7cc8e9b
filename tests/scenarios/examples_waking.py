"""Examples for SCH-5 6 12."""

from __future__ import annotations

from typing import Any

from scenarios.history import STORM
from scenarios.plan import Plan
from tests.scenarios.build import Story, plan
from tests.scenarios.examples import breaks, holds

BELL = plan("a ledger", "w wait go", "b ledger a,w")
MAIL = plan("a ledger", "m mailer a", "w wait go", "b ledger m,w")
TIMED = plan("a ledger", "w wait go 200", "b ledger a")
TWO = plan("a ledger", "v wait go 200", "b ledger a", "w wait go 5000", "c ledger b,w")
REFUSES: dict[str, Any] = {"late_signal": "refused", "unmatched_signal": "refused"}
OPEN = {"a": "succeeded a1", "w": "planned", "b": "planned"}
OUT = {"a": "succeeded a1", "w": "succeeded", "b": "planned"}


def story(of: Plan = BELL, **declared: Any) -> Story:
    return Story(of, shows_operations=True, **declared).up("engine").up().start()


def done(**declared: Any) -> Story:
    return story(**declared).call("a").signal("1", disposition="released").call("b").done()


def doubtful(disposition: str) -> Story:
    """A signal comes as a run is blocked by a lost receipt, and a late word lets that go on to the signal's wait."""
    lost = {"a": "succeeded a1", "m": "unresolved", "w": "planned", "b": "planned"}
    known = {"a": "succeeded a1", "m": "reconciled m1", "w": "succeeded sig:1", "b": "planned"}
    made = story(MAIL).call("a").request("m").applied().reply(delivery="reset").status("blocked", ops=lost)
    return made.signal("1", disposition=disposition).notice("m").status("running", ops=known).call("b").done()


def waiting(of: Plan = TIMED) -> Story:
    """The wait is on, as a status shows."""
    return story(of).call("a").status("waiting", on="go", ops=OPEN)


def missed() -> Story:
    """The first of two waits for one name has timed out, and the second is on."""
    on = {"a": "succeeded a1", "v": "planned", "b": "planned", "w": "planned", "c": "planned"}
    first = {"a": "succeeded a1", "v": "succeeded", "b": "succeeded b1", "w": "planned", "c": "planned"}
    return (
        story(TWO)
        .call("a")
        .status("waiting", on="go", ops=on)
        .later(200)
        .call("b")
        .status("waiting", on="go", ops=first)
    )


# --- SCH-5 ------------------------------------------------------------------------------------------------------------
holds("SCH-5", "one more at the end is late", done().signal("2", disposition="late").settled())
holds("SCH-5", "or refused, where that is declared", done(**REFUSES).signal("2", outcome="error").settled())
holds(
    "SCH-5",
    "a repeat is told what became of it meanwhile",
    story()
    .signal("1", disposition="buffered")
    .call("a")
    .signal("1", disposition="released")
    .call("b")
    .done()
    .signal("1", disposition="duplicate")
    .settled(),
    exercised=2,
)
holds(
    "SCH-5",
    "what nothing waits for is kept, and late when the run is over",
    story().signal("x", "nobody", disposition="buffered").call("a").signal("1").call("b").done().settled(),
)
holds(
    "SCH-5",
    "the end was not known yet when it was sent, and refused",
    story(**REFUSES).call("a").signal("1").call("b").signal("2", outcome="error").done().settled(),
    exercised=0,
)
holds(
    "SCH-5",
    "kept by a run that is blocked, and used as that goes on",
    doubtful("buffered").settled(),
    exercised=0,
)
holds(
    "SCH-5",
    "nobody knows whether it came",
    done().signal("2", outcome="indefinite").signal("3", disposition="late").settled(),
    exercised=1,
)
breaks(
    "SCH-5",
    "called late by a run that is blocked, and used as that goes on",
    doubtful("late").settled(),
    "torn view",
)
breaks(
    "SCH-5",
    "a signal after the end is kept for ever",
    done().signal("2", disposition="buffered").done().settled(),
    "false certainty",
)
breaks(
    "SCH-5", "acknowledged, where refusal is declared", done(**REFUSES).signal("2").done().settled(), "false certainty"
)
breaks(
    "SCH-5",
    "refused, though it is declared to be kept",
    story().signal("x", "nobody", "error").status("running"),
    "torn view",
)
breaks(
    "SCH-5",
    "released, by a name that nothing waits for",
    story().signal("x", "nobody", disposition="released"),
    "false certainty",
)
breaks(
    "SCH-5",
    "a repeat is refused",
    story().call("a").signal("1", disposition="released").signal("1", outcome="error").call("b").done(),
    "torn view",
)
breaks(
    "SCH-5",
    "a repeat of what was used is kept for another",
    story().call("a").signal("1", disposition="released").signal("1", disposition="buffered").call("b").done(),
    "torn view",
)

# --- SCH-6 ------------------------------------------------------------------------------------------------------------
holds("SCH-6", "nothing came, and it ended", waiting().later(200).status("running", ops=OUT).call("b").done().settled())
holds(
    "SCH-6",
    "its time was over while the server was down",
    waiting()
    .kill(unit="engine", incarnation=1)
    .later(3000)
    .up("engine")
    .status("waiting", on="go", ops=OPEN)
    .status("running", ops=OUT)
    .call("b")
    .done()
    .settled(),
    exercised=2,
)
holds(
    "SCH-6",
    "the run was held, and its waits with it",
    waiting().halt().later(3000).status("waiting", on="go", ops=OPEN, paused=True).go_on().status("running", ops=OUT),
)
holds(
    "SCH-6",
    "the world had misbehaved until just now",
    story(TIMED)
    .fired(STORM)
    .call("a")
    .status("waiting", on="go", ops=OPEN)
    .later(3000)
    .quiet()
    .status("waiting", on="go", ops=OPEN)
    .status("running", ops=OUT)
    .call("b")
    .done()
    .settled(),
)
breaks(
    "SCH-6",
    "the world has been quiet for long, and it waits on",
    story(TIMED)
    .fired(STORM)
    .call("a")
    .status("waiting", on="go", ops=OPEN)
    .quiet()
    .later(3000)
    .status("waiting", on="go", ops=OPEN),
    "stuck",
)
holds(
    "SCH-6",
    "a signal ended it before",
    waiting().signal("1").status("running", ops={**OUT, "w": "succeeded sig:1"}).call("b").done().settled(),
    exercised=0,
)
holds(
    "SCH-6",
    "the clock had jumped",
    waiting().fired("jump@ack:start~3600000000000ns").status("running", ops=OUT).call("b").done(),
    exercised=0,
)
breaks(
    "SCH-6",
    "it waits on, with nobody in the way",
    waiting().later(3000).status("waiting", on="go", ops=OPEN),
    "stuck",
)
breaks(
    "SCH-6",
    "a restart has forgotten its time",
    waiting().kill(unit="engine", incarnation=1).up("engine").later(3000).status("waiting", on="go", ops=OPEN),
    "stuck",
)
breaks(
    "SCH-6", "its time was cut short", waiting().later(90).status("running", ops=OUT).call("b").done(), "out of order"
)

# --- SCH-12 -----------------------------------------------------------------------------------------------------------
holds(
    "SCH-12",
    "who comes too late for the first is there for the second",
    missed()
    .signal("1", disposition="released")
    .call("c", carries={"b": "b1", "w": "sig:1"})
    .status("done", result={"a": "a1", "b": "b1", "w": "sig:1", "c": "c1"})
    .settled(),
)
holds(
    "SCH-12",
    "it came as its time was over, and was first",
    waiting().later(205).signal("1", disposition="released").status("running", ops={**OUT, "w": "succeeded sig:1"}),
)
holds(
    "SCH-12",
    "or was second, and stays unused",
    waiting().later(205).signal("1", disposition="buffered").status("running", ops=OUT),
)
holds(
    "SCH-12",
    "the second took a signal that was on its way, and the next one is too many",
    missed()
    .signal("1", disposition="released")
    .signal("2", disposition="buffered")
    .call("c", carries={"b": "b1", "w": "sig:1"})
    .status("done", result={"a": "a1", "b": "b1", "w": "sig:1", "c": "c1"})
    .settled(),
    exercised=2,
)
breaks(
    "SCH-12",
    "the wait that had timed out takes it",
    waiting().later(205).status("running", ops=OUT).signal("1", disposition="released"),
    "stale acceptance",
)
breaks(
    "SCH-12",
    "written over the timeout",
    waiting().later(205).status("running", ops=OUT).signal("1").status("running", ops={**OUT, "w": "succeeded sig:1"}),
    "torn view",
)
breaks(
    "SCH-12",
    "the second wait times out as well, beside an acknowledged signal",
    missed()
    .signal("1")
    .later(5000)
    .status(
        "running", ops={"a": "succeeded a1", "v": "succeeded", "b": "succeeded b1", "w": "succeeded", "c": "planned"}
    ),
    "amnesia",
)
breaks(
    "SCH-12",
    "the journal has both ends",
    waiting()
    .later(205)
    .status("running", ops=OUT)
    .journal(
        [
            {"sequence": 1, "operation": "w", "from": "planned", "to": "succeeded", "reason": "timeout"},
            {"sequence": 2, "operation": "w", "from": "planned", "to": "succeeded", "reason": "signalled"},
        ]
    ),
    "duplicate effect",
)

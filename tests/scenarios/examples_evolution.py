"""Examples for VER-1 to VER-5."""

from __future__ import annotations

from typing import Any

import attrs

from scenarios.plan import Op, Plan, Race
from tests.scenarios.build import Story, leaf, par, plan
from tests.scenarios.examples import breaks, holds

#: The second version goes on with the work of the first, the third with its own only; an engine of version 0 is too old.
CODES = (("0", ("0",)), ("1", ("1",)), ("2", ("1", "2")), ("3", ("3",)))
UNFIT = "code-incompatible: the work was written by code 1"


def of(code: str, *children: Op | str) -> Plan:
    return attrs.evolve(plan(*children), code=code)


LINE = of("1", "a ledger", "b ledger a", "c ledger b")


def begun(work: Plan = LINE, code: str = "1", **declared: Any) -> Story:
    """A run whose first call was answered, by a worker of the version that it was written for."""
    return Story(work, codes=CODES, **declared).up("engine").up(code=code).start().call("a")


def restored(code: str = "1") -> Story:
    """The same, met by code that does not fit, and then by code that does."""
    return begun().kill().up(code="3").status("blocked", reason=UNFIT).kill().up(code=code)


# --- VER-1 ------------------------------------------------------------------------------------------------------------
holds(
    "VER-1",
    "code that does not fit leaves the run alone, and says so",
    begun().kill().up(code="3").status("blocked", reason=UNFIT).settled(),
)
holds(
    "VER-1",
    "beside code that does not fit, code that does finishes the run",
    begun().up(code="3").call("b", by=2).call("c", by=2).status("running").done().settled(),
)
holds(
    "VER-1",
    "an engine of an older schema ends as soon as it sees the store",
    begun()
    .kill(unit="engine", incarnation=1)
    .up("engine", code="0")
    .kill("exited", unit="engine", incarnation=3)
    .up("engine")
    .call("b")
    .call("c")
    .done()
    .settled(),
)
holds(
    "VER-1",
    "what a dead worker had sent comes in when other code is up already",
    begun().kill().up(code="3").request("b", by=2).status("blocked", reason=UNFIT).settled(),
)
holds(
    "VER-1",
    "who declares nothing of its versions cannot be held to them",
    Story(LINE).up(code="1").start().call("a").kill().up(code="3").call("b").call("c").done().settled(),
    exercised=0,
)
breaks(
    "VER-1",
    "code that does not fit goes on",
    begun().kill().up(code="3").call("b").status("running").settled(),
    "silent divergence",
)
breaks(
    "VER-1",
    "a worker of other code beside the right one takes a share",
    begun().up(code="3").call("b", by=2).call("c", by=3).done().settled(),
    "silent divergence",
)
breaks(
    "VER-1",
    "an engine of an older schema serves what it finds",
    begun()
    .kill(unit="engine", incarnation=1)
    .up("engine", code="0")
    .status("running")
    .kill(unit="engine", incarnation=3)
    .up("engine")
    .call("b")
    .done()
    .settled(),
    "silent divergence",
)

# --- VER-2 ------------------------------------------------------------------------------------------------------------
holds(
    "VER-2", "newer code that fits finishes the run", begun().kill().up(code="2").call("b").call("c").done().settled()
)
holds(
    "VER-2",
    "a call whose outcome nobody can know keeps the run blocked, whatever the code",
    Story(of("1", "a ledger", "m mailer a"), codes=CODES)
    .up("engine")
    .up(code="1")
    .start()
    .call("a")
    .request("m")
    .applied()
    .kill()
    .up(code="2")
    .status("blocked", ops={"a": "succeeded a1", "m": "unresolved"}, reason="outcome-unknown: m unresolved")
    .settled(),
)
holds(
    "VER-2",
    "nobody can know the outcome of a call, and no status lists operations",
    Story(of("1", "a ledger", "m mailer a"), codes=CODES)
    .up("engine")
    .up(code="1")
    .start()
    .call("a")
    .request("m")
    .applied()
    .kill()
    .up(code="2")
    .status("blocked", reason="outcome-unknown")
    .settled(),
)
holds(
    "VER-2",
    "the same version again is no deployment",
    begun().kill().up(code="1").call("b").call("c").done().settled(),
    exercised=0,
)
breaks(
    "VER-2",
    "code that fits is up, and the run is still held to be blocked",
    begun().kill().up(code="2").status("blocked", ops={"a": "succeeded a1", "b": "planned"}, reason=UNFIT).settled(),
    "stuck",
)
breaks(
    "VER-2", "code that fits is up, and nothing happens", begun().kill().up(code="2").status("running").bound(), "stuck"
)

# --- VER-3 ------------------------------------------------------------------------------------------------------------
holds("VER-3", "rolled back, the run goes on from where it was", restored().call("b").call("c").done().settled())
holds(
    "VER-3",
    "newer code that fits restores it as well",
    restored("2").call("b").call("c").status("running", ops={"a": "succeeded a1"}).done().settled(),
)
holds(
    "VER-3",
    "a call that was open is repeated under its key",
    begun()
    .request("b")
    .applied()
    .kill()
    .up(code="3")
    .status("blocked", reason=UNFIT)
    .kill()
    .up(code="1")
    .request("b")
    .reply("saved")
    .call("c")
    .done()
    .settled(),
)
holds(
    "VER-3",
    "what the receiver refuses fails the run, and not the code",
    restored()
    .call("b", "rejected")
    .status("failed", ops={"a": "succeeded a1", "b": "failed"}, reason="rejected: b failed")
    .settled(),
)
breaks("VER-3", "the refusal fails the run", restored().status("failed", reason=UNFIT).settled(), "false certainty")
breaks(
    "VER-3",
    "what had been accepted is open again",
    begun()
    .status("running", ops={"a": "succeeded a1"})
    .kill()
    .up(code="3")
    .status("blocked", reason=UNFIT)
    .kill()
    .up(code="1")
    .status("running", ops={"a": "planned"})
    .settled(),
    "amnesia",
)
breaks(
    "VER-3",
    "what had been accepted is done again",
    begun()
    .status("running", ops={"a": "succeeded a1"})
    .kill()
    .up(code="3")
    .status("blocked", reason=UNFIT)
    .kill()
    .up(code="1")
    .call("a")
    .call("b")
    .call("c")
    .done()
    .settled(),
    "duplicate effect",
)
breaks("VER-3", "nobody remembers the run", restored().status("unknown").settled(), "amnesia")
breaks("VER-3", "nothing takes it up again", restored().status("running").bound(), "stuck")

# --- VER-4 ------------------------------------------------------------------------------------------------------------
holds(
    "VER-4",
    "an old worker beside new ones gets nothing of what the new have begun",
    begun(code="2").up(code="1").call("b", by=2).call("c", by=2).done().settled(),
)
holds(
    "VER-4",
    "an old worker finishes what it had in hand when the new code came",
    Story(of("1", "a ledger", par("b ledger", "c ledger")), codes=CODES)
    .up("engine")
    .up(code="1")
    .start()
    .call("a")
    .up(code="2")
    .call("b", by=3)
    .call("c", by=2)
    .done()
    .settled(),
    exercised=0,
)
holds(
    "VER-4",
    "rolled back too early, the run waits for the newer code",
    begun()
    .kill()
    .up(code="2")
    .call("b")
    .kill()
    .up(code="1")
    .status("blocked", reason=UNFIT)
    .kill()
    .up(code="2")
    .call("c")
    .done()
    .settled(),
)
breaks(
    "VER-4",
    "rolled back, the old code goes on with what the new has written",
    begun().kill().up(code="2").call("b").kill().up(code="1").call("c").done().settled(),
    "stale acceptance",
)
breaks(
    "VER-4",
    "an old worker sends what follows from the new one's answer",
    begun().up(code="2").call("b", by=3).call("c", by=2).done().settled(),
    "stale acceptance",
)
breaks(
    "VER-4",
    "work that was submitted for newer code is begun by the old",
    Story(of("2", "a ledger", "b ledger"), codes=CODES)
    .up("engine")
    .up(code="2")
    .start()
    .up(code="1")
    .call("a", by=3)
    .call("b", by=2)
    .done()
    .settled(),
    "stale acceptance",
)

# --- VER-5 ------------------------------------------------------------------------------------------------------------
RACE = plan("s ledger", Race("either", (leaf("a ledger s"), leaf("b ledger s"))), "end ledger s")
WON = {"s": "succeeded s1", "a": "skipped", "b": "succeeded b1", "either": "succeeded"}


def place(number: int, operation: str, kind: str = "call") -> dict[str, Any]:
    return {"number": number, "segment": 1, "branch": "", "sequence": number, "kind": kind, "operation": operation}


def won(**ops: str) -> Story:
    """A race that was decided, as everybody could see."""
    return Story(RACE, shows_operations=True).up().start().call("s").call("b").status("running", ops={**WON, **ops})


def told(story: Story, *rows: dict[str, Any]) -> Story:
    return story.ask("journal").answer("ok", body={"history": list(rows)})


holds(
    "VER-5",
    "whoever takes over comes to the same winner",
    won().crash().call("end").status("running", ops=WON),
)
holds(
    "VER-5",
    "a history grows, and what it says stays",
    told(told(won(), place(1, "s")).crash(), place(1, "s"), place(2, "end")).call("end").done().settled(),
)
holds(
    "VER-5",
    "code that differs may find that it does not fit",
    Story(LINE, codes=CODES)
    .up(code="1")
    .start()
    .call("a")
    .kill()
    .up(code="3")
    .status("blocked", reason="diverged: history has a, the code has x")
    .settled(),
    exercised=0,
)
holds(
    "VER-5",
    "a loser that was on its way still arrives",
    Story(RACE)
    .up()
    .start()
    .call("s")
    .request("a")
    .call("b")
    .status("running", ops=WON)
    .reply(call=2)
    .call("end")
    .done()
    .settled(),
    exercised=0,
)
breaks(
    "VER-5",
    "begun anew, the race goes to the other one",
    won().crash().call("a").call("end").settled(),
    "changed decision",
)
breaks(
    "VER-5",
    "what was left out is shown as carried out",
    won().crash().call("end").status("running", ops={**WON, "a": "succeeded a1"}).settled(),
    "changed decision",
)
breaks(
    "VER-5",
    "the same code says that it does not fit its own history",
    won().crash().status("blocked", reason="diverged: history has b, the code has a").settled(),
    "changed decision",
)
breaks(
    "VER-5",
    "a place of the history says something else by now",
    told(told(won(), place(1, "s"), place(2, "b")).crash(), place(1, "s"), place(2, "a")).call("end").settled(),
    "changed decision",
)

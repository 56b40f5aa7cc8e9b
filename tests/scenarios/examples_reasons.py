"""Examples of runs that may fail by their plan: over tries, time, means, decisions and verdicts that came, and over none."""

from __future__ import annotations

from scenarios.operation import Allowance, Check
from scenarios.plan import Approve, Artifact, Call, Fail, Model, Op, Plan, Seq, Sleep
from tests.scenarios.build import MS, Story
from tests.scenarios.examples import breaks, holds

SHOWN = {"shows_operations": True}


def up(*children: Op, deadline_ns: int | None = None, allowance: Allowance | None = None) -> Story:
    return Story(Plan(Seq("m", children), allowance, deadline_ns=deadline_ns), **SHOWN).up().start()


def failed(story: Story) -> Story:
    return story.status("failed").settled()


A, B = Call("a", "ledger"), Call("b", "ledger", {}, ("a",))
THRICE = Call("a", "ledger", tries=3)
BRIEFLY = Call("a", "ledger", elapsed_ns=100 * MS)
ASKED = (A, Approve("k", "b"), B)
BRIEF = (A, Approve("k", "b", validity_ns=200 * MS), B)
CHECKED = (Artifact("p", "report", 64, 1), Check("c", "p"), A)
ABOUT = "report@1#x"
ROOMY = Allowance(calls=9, tokens=900, elapsed_ns=5000 * MS)
THINK = Model("t", "how?", 50)

# --- tries and time of one call -----------------------------------------------------------------------------------------
holds(
    "DUR-6",
    "all its tries are used up",
    failed(up(THRICE, B).request("a").crash().request("a").crash().request("a").crash()),
)
holds("DUR-6", "a death may have taken a try that nobody saw", failed(up(THRICE, B).request("a").crash().crash()))
holds("DUR-6", "its time may be over before the next try", failed(up(BRIEFLY, B).request("a").crash()))
breaks("DUR-6", "one of three tries is enough to fail it", failed(up(THRICE, B).request("a").crash()), "stuck")
breaks(
    "DUR-6",
    "its time has not begun",
    failed(up(A, Call("z", "ledger", elapsed_ns=100 * MS)).request("a").crash()),
    "stuck",
)

# --- decisions ----------------------------------------------------------------------------------------------------------
holds("DUR-6", "somebody said no", failed(up(*ASKED).call("a").decide("k", "deny").crash()))
holds("DUR-6", "nobody said anything in time", failed(up(*BRIEF).call("a").later(300).crash()))
breaks("DUR-6", "a restart has forgotten whom to ask", failed(up(*ASKED).call("a").crash()), "stuck")
breaks("DUR-6", "somebody said yes", failed(up(*ASKED).call("a").decide("k").crash()), "stuck")
breaks("DUR-6", "there was time to decide", failed(up(*BRIEF).call("a").crash()), "stuck")

# --- steps that are to fail ---------------------------------------------------------------------------------------------
holds("DUR-6", "it has come to where it is to fail", failed(up(A, Fail("f", "enough")).call("a").crash()))
breaks(
    "DUR-6", "it has not come to where it is to fail", failed(up(A, Fail("f", "enough")).request("a").crash()), "stuck"
)

# --- means --------------------------------------------------------------------------------------------------------------
holds(
    "DUR-6",
    "a mishap may have cost what is missing now",
    failed(up(A, B, allowance=Allowance(calls=4)).call("a").crash()),
)
holds(
    "DUR-6",
    "tokens are used up",
    failed(up(THINK, Call("b", "ledger"), allowance=Allowance(tokens=60)).call("t", usage=40).crash()),
)
holds("DUR-6", "its time is up", failed(up(A, B, allowance=ROOMY).call("a").crash().later(5100)), but=("BUD-8",))
holds(
    "DUR-6",
    "it would sleep for longer than it may take",
    failed(up(A, Sleep("s", 6000 * MS), allowance=ROOMY).call("a").crash()),
)
breaks(
    "DUR-6",
    "there are means for all of it, many times",
    failed(up(A, B, THINK, allowance=ROOMY).call("a").crash()),
    "stuck",
)
breaks(
    "DUR-6",
    "how many go side by side is no matter",
    failed(up(A, B, allowance=Allowance(concurrency=1)).call("a").crash()),
    "stuck",
)

# --- the time of the run ------------------------------------------------------------------------------------------------
holds(
    "DUR-6",
    "its time has come",
    failed(up(A, B, deadline_ns=200 * MS).call("a", remaining_ns=199 * MS).crash().later(300)),
)
breaks(
    "DUR-6",
    "its time is far off",
    failed(up(A, B, deadline_ns=9000 * MS).call("a", remaining_ns=8999 * MS).crash()),
    "stuck",
)

# --- verdicts -----------------------------------------------------------------------------------------------------------
holds("DUR-6", "it did not pass", failed(up(*CHECKED).upload("p").check("c", "failed").crash()))
holds(
    "DUR-6",
    "nobody knows whether it has passed",
    failed(up(*CHECKED).upload("p").request("c", subject=ABOUT).applied().crash()),
)
breaks("DUR-6", "it has passed", failed(up(*CHECKED).upload("p").check("c").crash()), "stuck")
breaks("DUR-6", "nobody has asked the checker", failed(up(*CHECKED).upload("p").crash()), "stuck")

"""Examples for EFF-4 5 6 8."""

from __future__ import annotations

from scenarios.plan import Call
from tests.scenarios.build import Story, par, plan
from tests.scenarios.examples import breaks, holds

OPS = {"shows_operations": True}
REG = plan("a registry")
MAIL = plan("m mailer")
READ = plan("r reader", "b ledger r")
KEYED = plan("a ledger", "b ledger a")

# --- EFF-4 ------------------------------------------------------------------------------------------------------------
holds(
    "EFF-4",
    "killed after the effect: looked up, found, not repeated",
    Story(REG).up().start().request("a").applied().crash().look_up("a", "found").done(),
)
holds(
    "EFF-4",
    "killed before it: looked up, missing, repeated",
    Story(REG).up().start().request("a").crash().look_up("a").call("a").done(),
)
holds(
    "EFF-4",
    "a lookup that failed is made again before the repeat",
    Story(REG).up().start().call("a", "error").look_up("a", "error").look_up("a").call("a").done(),
)
holds(
    "EFF-4",
    "a definite refusal may be repeated as it is",
    Story(REG).up().start().call("a", "rejected").call("a").crash().done(),
    exercised=1,
    but=("RTY-3",),
)
holds(
    "EFF-4",
    "the paused worker's request arrives between the lookup and the repeat",
    Story(REG).up().start().pause().up().look_up("a").resume(1).call("a", by=1).call("a", by=2).done(),
    exercised=0,
)
holds(
    "EFF-4",
    "the killed worker's request was on its way, and arrives after the lookup",
    Story(REG).up().start().kill().up().look_up("a").request("a", by=1).call("a").done(),
)
breaks(
    "EFF-4",
    "repeated after a kill without looking",
    Story(REG).up().start().request("a").applied().crash().call("a").done(),
    "duplicate effect",
)
breaks(
    "EFF-4",
    "repeated after a 5xx by the same worker",
    Story(REG).up().start().call("a", "error").call("a").done(),
    "duplicate effect",
)
breaks(
    "EFF-4",
    "the lookup's failure is taken for nothing found",
    Story(REG).up().start().request("a").applied().crash().look_up("a", "error").call("a").done(),
    "duplicate effect",
)
breaks(
    "EFF-4",
    "found, and repeated all the same",
    Story(REG).up().start().request("a").applied().crash().look_up("a", "found").call("a").done(),
    "duplicate effect",
)
breaks(
    "EFF-4",
    "the answer had left, but the worker died before it can have been accepted",
    Story(REG).up().start().call("a").crash().call("a").done(),
    "duplicate effect",
)
holds(
    "EFF-4",
    "the world holds up a request until nothing was found and it was sent again",
    Story(REG).up().fired("storm").start().look_up("a").call("a").request("a").applied().reply().done(),
    exercised=0,
)
breaks(
    "EFF-4",
    "in a storm, another worker sends it again without a look",
    Story(REG).up().fired("storm").start().look_up("a").call("a").crash().call("a").done(),
    "duplicate effect",
)

# --- EFF-5 ------------------------------------------------------------------------------------------------------------
holds(
    "EFF-5",
    "killed after dispatch, unresolved and visible",
    Story(MAIL, **OPS).up().start().request("m").crash().status("blocked", ops={"m": "unresolved"}).settled(),
)
holds(
    "EFF-5",
    "a definite refusal may be repeated",
    Story(MAIL).up().start().call("m", "rejected").call("m").done(),
    exercised=0,
    but=("RTY-3",),
)
holds(
    "EFF-5",
    "the answer had left and was accepted before the kill",
    Story(MAIL, **OPS).up().start().call("m").crash().done(ops={"m": "succeeded m1"}),
)
holds(
    "EFF-5",
    "dispatched is what a run that is still going on may call it",
    Story(MAIL, **OPS).up().start().call("m", delivery="reset").status("running", ops={"m": "dispatched"}),
    exercised=0,  # so far it has only not been repeated yet
)
holds(
    "EFF-5",
    "a harness that shows no operations ends blocked",
    Story(MAIL).up().start().request("m").crash().status("blocked", error="m"),
)
breaks(
    "EFF-5",
    "sent again after a kill",
    Story(MAIL).up().start().request("m").applied().crash().call("m").done(),
    "duplicate effect",
)
breaks(
    "EFF-5",
    "sent again after a reset, though nothing had been applied",
    Story(MAIL).up().start().request("m").reply("error", delivery="reset").call("m").done(),
    "duplicate effect",
)
breaks(
    "EFF-5",
    "done, as if somebody had answered",
    Story(MAIL, **OPS).up().start().call("m", delivery="dropped").status("done", ops={"m": "succeeded"}),
    "false certainty",
)
breaks(
    "EFF-5",
    "the run is done and the operation is not shown",
    Story(plan(par("m mailer", "a ledger")), **OPS)
    .up()
    .start()
    .request("m")
    .crash()
    .call("a")
    .status("done", ops={"a": "succeeded a1"}),
    "false certainty",
)

# --- EFF-6 ------------------------------------------------------------------------------------------------------------
holds(
    "EFF-6",
    "read again after a kill",
    Story(READ).up().start().request("r").crash().call("r").call("b").done().settled(),
)
holds(
    "EFF-6",
    "read again after two lost replies",
    Story(READ).up().start().call("r", delivery="reset").call("r", "error").call("r").call("b").done().settled(),
)
holds(
    "EFF-6",
    "slowly, but read again",
    Story(READ).up().start().request("r").crash().later(9000).call("r").call("b").done().slow(),
)
holds(
    "EFF-6",
    "another operation blocked the run first",
    Story(plan(par("r reader", "m mailer")))
    .up()
    .start()
    .request("r")
    .request("m")
    .crash()
    .status("blocked", error="m")
    .settled(),
    exercised=0,
)
holds("EFF-6", "observation ended before quiet", Story(READ).up().start().request("r").crash(), exercised=0)
breaks("EFF-6", "never read again", Story(READ).up().start().request("r").crash().status("running").bound(), "stuck")
breaks(
    "EFF-6",
    "blocked, as if a read could do harm",
    Story(READ).up().start().call("r", delivery="dropped").crash().status("blocked", error="r").settled(),
    "stuck",
)

# --- EFF-8 ------------------------------------------------------------------------------------------------------------
holds(
    "EFF-8",
    "5xx, then unknown, then the saved answer",
    Story(KEYED, **OPS)
    .up()
    .start()
    .call("a", "error")
    .status("running", ops={"a": "unknown"})
    .call("a")
    .call("b")
    .done(),
)
holds(
    "EFF-8",
    "refused by the receiver in the end: failed is right",
    Story(plan("f flaky"), **OPS)
    .up()
    .start()
    .call("f", "error")
    .call("f", "rejected")
    .status("failed", ops={"f": "failed"}),
)
holds(
    "EFF-8",
    "a saved failure is a refusal",
    Story(KEYED, **OPS)
    .up()
    .start()
    .request("a")
    .crash()
    .request("a")
    .reply("mismatch")
    .status("failed", ops={"a": "failed"}),
)
holds(
    "EFF-8",
    "the run failed for what was refused, beside an unknown",
    Story(plan(par("f flaky", "a ledger")), **OPS)
    .up()
    .start()
    .request("a")
    .call("f", "rejected")
    .crash()
    .status("failed", ops={"f": "failed", "a": "unknown"}),
)
holds(
    "EFF-8",
    "given up as work that kills its workers",
    Story(KEYED).up().start().request("a").crash().request("a").crash().request("a").crash().status("failed"),
    exercised=3,
)
holds(
    "EFF-8",
    "the last try died with its worker before it left, and nothing had come of any",
    Story(plan(Call("a", "registry", {"of": "a"}, tries=2)), **OPS)
    .up()
    .start()
    .call("a", "error")
    .look_up("a")
    .crash()
    .look_up("a")
    .status("failed", ops={"a": "failed"}, error="tries used up"),
)
breaks(
    "EFF-8",
    "applied, then 503, then shown as failed",
    Story(KEYED, **OPS).up().start().request("a").applied().reply("error").status("running", ops={"a": "failed"}),
    "false certainty",
)
breaks(
    "EFF-8",
    "the run fails on a reset",
    Story(KEYED).up().start().call("a", delivery="reset").status("failed"),
    "false certainty",
)
breaks(
    "EFF-8",
    "killed, and written off as failed",
    Story(KEYED).up().start().request("a").crash().status("failed"),
    "false certainty",
)

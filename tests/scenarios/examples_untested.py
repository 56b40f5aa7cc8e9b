"""Examples of promises that nothing has put to the test: a judge that could have seen no fault counts nothing."""

from __future__ import annotations

from scenarios.plan import Plan
from tests.scenarios.build import MS, Story, plan
from tests.scenarios.examples import holds

CHAIN = plan("a ledger", "b ledger")
GATED = plan("z ledger", "k approve a", "a ledger")
OPS = {"a": "succeeded a1", "b": "succeeded b1"}


def up(of: Plan = CHAIN, **declared: object) -> Story:
    return Story(of, shows_operations=True, **declared).up().start()


holds(
    "CAN-2",
    "what is under way may be given up by force at once",
    up(call_timeout_ns=1000 * MS).request("a").cancel().status("cancelled", ops={"a": "unknown"}, cancel="quiescent"),
    exercised=0,
)
holds(
    "OWN-9",
    "nobody tells how often it was tried, and it may be tried for ever",
    up().request("a").crash().call("a").call("b").done(ops=OPS).settled(),
    exercised=0,
)
holds("DLN-3", "nobody has looked after the run since who asked for it has gone", up().call("a").kill(), exercised=0)
holds(
    "SIG-1",
    "nobody has looked after the run since the crash",
    up(plan("a ledger", "w wait go")).call("a").status("waiting", on="go").signal("1").kill(),
    exercised=0,
)
holds(
    "APR-6",
    "a stranger's decision that was never answered",
    up(GATED)
    .call("z")
    .status("waiting", on="k")
    .decide("k", actor="mallory", outcome="indefinite", disposition=None)
    .crash()
    .status("waiting", on="k"),
    exercised=0,
)
holds(
    "SCH-1",
    "killed long after the timer's end, and shown only then",
    up(plan("a ledger", "s sleep 5")).call("a").later(5000).crash().done().settled(),
    exercised=0,
)
holds(
    "ART-3",
    "the run has not ended, and may still own what it has stored",
    up(plan("p artifact report 64 1", "w wait go"))
    .request("p", part=1)
    .stored("l1", "staged")
    .reply(nonce=None)
    .crash()
    .request("p")
    .stored("l1")
    .applied()
    .reply()
    .status("waiting", on="go")
    .bound(),
    exercised=0,
)

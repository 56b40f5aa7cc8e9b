"""Examples for DUR-13."""

from __future__ import annotations

from tests.scenarios.build import Story, plan
from tests.scenarios.examples import breaks, holds

ONE = plan("a ledger")


def story() -> Story:
    return Story(ONE, shows_operations=True).up().start()


holds("DUR-13", "refused while it works, and it goes on", story().misuse().call("a").done())
holds("DUR-13", "refused at the end, and the result is the same", story().call("a").done().misuse().done())
holds(
    "DUR-13",
    "refused after a crash",
    story().call("a").kill().up().misuse().status("running", ops={"a": "succeeded a1"}).done(),
)
holds(
    "DUR-13",
    "the other plan was there first, as far as anybody can tell",
    Story(ONE).up().ask("start", id="r1").answer("indefinite").misuse("ok").start("error"),
    exercised=0,
)
holds("DUR-13", "the answer was lost", story().misuse("indefinite").call("a").done(), exercised=0)
breaks("DUR-13", "acknowledged as the same", story().misuse("ok").call("a").done(), "false certainty")
breaks("DUR-13", "answered with the old result", story().call("a").done().misuse("ok").done(), "false certainty")
breaks(
    "DUR-13",
    "refused, and the run begins anew",
    story().call("a").done().misuse().status("running", ops={"a": "planned"}),
    "amnesia",
)
breaks("DUR-13", "refused, and the run is gone", story().call("a").done().misuse().status("unknown"), "amnesia")

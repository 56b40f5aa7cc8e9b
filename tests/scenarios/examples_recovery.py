"""Examples for DUR-10 14."""

from __future__ import annotations

from scenarios.plan import Call
from tests.scenarios.build import Story, plan
from tests.scenarios.examples import breaks, holds

REG = plan("a registry", "b ledger a")
KEYED = plan("a ledger", "b ledger a")
SIZED = plan(Call("a", "ledger", {"answer_bytes": 5}), "b ledger a", "c ledger a")


def story(of: object = KEYED) -> Story:
    return Story(of, shows_operations=True).up().start()  # type: ignore[arg-type]


# --- DUR-10 -----------------------------------------------------------------------------------------------------------
holds(
    "DUR-10",
    "both recoveries look it up",
    story(REG).request("a").applied().crash().look_up("a", "error").crash().look_up("a", "found").call("b").done(),
)
holds(
    "DUR-10",
    "both repeat it under its key",
    story().request("a").applied().crash().request("a").crash().call("a", "saved").call("b").done(),
)
holds(
    "DUR-10",
    "the first recovery learns that nothing happened, and the second repeats",
    story(REG).request("a").crash().look_up("a", "missing").crash().call("a").call("b").done(),
    exercised=0,
)
holds(
    "DUR-10",
    "the first recovery sends what had never been sent, which leaves the second an unknown outcome",
    story(REG).kill().up().request("a").applied().crash().look_up("a", "found").call("b").done(),
    exercised=0,
)
holds(
    "DUR-10",
    "what the killed worker had sent arrives after its successor's look-up",
    story(REG)
    .request("a")
    .kill()
    .up()
    .look_up("a", "error")
    .kill()
    .up()
    .request("a", by=2)
    .look_up("a", "missing")
    .call("a")
    .call("b")
    .done(),
)
breaks(
    "DUR-10",
    "looked up once, repeated the next time",
    story(REG).request("a").applied().crash().look_up("a", "error").crash().call("a").call("b").done(),
    "torn view",
)
breaks(
    "DUR-10",
    "repeated once, looked up the next time",
    story(REG).request("a").crash().request("a").crash().look_up("a").call("a").done(),
    "torn view",
)
breaks(
    "DUR-10",
    "each recovery has a key of its own",
    story().request("a").crash().request("a", key="k2").crash().call("a", key="k3").done(),
    "key drift",
)
breaks(
    "DUR-10",
    "each recovery has parameters of its own",
    story().request("a").crash().request("a", params="x").crash().call("a", params="y").done(),
    "key drift",
)

# --- DUR-14 -----------------------------------------------------------------------------------------------------------
holds(
    "DUR-14",
    "handed on whole by a fresh worker",
    story(SIZED).call("a").call("b").crash().call("c").done(),
    exercised=1,
)
holds(
    "DUR-14",
    "handed on whole by the same worker, after the engine came back",
    Story(SIZED)
    .up("engine")
    .up()
    .start()
    .call("a")
    .call("b")
    .kill(unit="engine", incarnation=1)
    .up("engine")
    .call("c")
    .done(),
)
holds(
    "DUR-14",
    "the answer was lost and given again, and only the second one is used",
    story(SIZED).call("a", delivery="dropped").crash().call("a", "saved").call("b").call("c").done(),
    exercised=0,
)
holds("DUR-14", "results of no particular size", story().call("a").crash().call("b").done(), exercised=0)
breaks(
    "DUR-14",
    "cut short when it is read back",
    story(SIZED).call("a").call("b").crash().call("c", carries={"a": "a"}).done(),
    "forked lineage",
)
breaks(
    "DUR-14",
    "cut short when it is handed on to the first that needs it",
    story(SIZED).call("a").crash().call("b", carries={"a": ""}),
    "forked lineage",
)
breaks(
    "DUR-14",
    "shown otherwise after a restart",
    story(SIZED)
    .call("a")
    .status("running", ops={"a": "succeeded a1"})
    .crash()
    .status("running", ops={"a": "succeeded a"}),
    "torn view",
)

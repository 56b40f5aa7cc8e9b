"""Examples for DUR-11."""

from __future__ import annotations

from tests.scenarios.build import Story, plan
from tests.scenarios.examples import breaks, holds

CHAIN = plan("a ledger", "b ledger a")
WAIT = plan("w wait go", "a ledger w")


def story(of: object = CHAIN) -> Story:
    return Story(of, shows_operations=True).up("engine").up().start()  # type: ignore[arg-type]


def flipped(made: Story) -> Story:
    """The engine is killed, and a bit of what it stored turned over."""
    return made.kill(unit="engine", incarnation=1).fired("flip@end(engine)")


def full(made: Story) -> Story:
    return made.fired("full@ack:start(engine)")


holds(
    "DUR-11",
    "a bit turns over, and the target stops over it",
    flipped(story().call("a").status("running", ops={"a": "succeeded a1"})).stopped(),
)
holds(
    "DUR-11",
    "a bit turns over where nobody looks, and everything goes on",
    flipped(story().call("a").status("running", ops={"a": "succeeded a1"})).up("engine").call("b").done(),
)
holds(
    "DUR-11",
    "what could not be stored was not acknowledged, and is asked for again",
    full(story())
    .call("a")
    .kill("exited", unit="engine", incarnation=1)
    .up("engine")
    .call("a", "saved")
    .call("b")
    .done(),
)
holds(
    "DUR-11",
    "a start over a full disk is refused or never answered, and may be gone",
    Story(CHAIN)
    .up("engine")
    .up()
    .ask("start", id="r1")
    .fired("full@ack:start(engine)")
    .answer("indefinite")
    .status("unknown")
    .start()
    .status("running"),
    exercised=0,
)
holds(
    "DUR-11",
    "storage that did not fail",
    story().call("a").crash().status("running", ops={"a": "succeeded a1"}),
    exercised=0,
)
holds(
    "DUR-11",
    "errors are all that it answers",
    flipped(story().call("a")).up("engine").ask("status").answer("error").ask("status").answer("error").stopped(),
)
breaks("DUR-11", "acknowledged on a full disk, and gone", full(story()).status("unknown"), "amnesia")
breaks(
    "DUR-11",
    "the log is cut where a bit turned over, and what was accepted is planned again",
    flipped(story().call("a").status("running", ops={"a": "succeeded a1"}))
    .up("engine")
    .status("running", ops={"a": "planned"}),
    "amnesia",
)
breaks(
    "DUR-11",
    "the damaged page is served",
    flipped(story().call("a").status("running", ops={"a": "succeeded a1"}))
    .up("engine")
    .status("running", ops={"a": "succeeded q1"}),
    "torn view",
)
breaks(
    "DUR-11",
    "a sync fails, and an accepted result is worked out again",
    story()
    .call("a")
    .status("running", ops={"a": "succeeded a1"})
    .fired("eio@engine.boundary#9=fsync")
    .kill("exited", unit="engine", incarnation=1)
    .up("engine")
    .crash()
    .call("a"),
    "amnesia",
)
breaks(
    "DUR-11",
    "a signal is acknowledged on a full disk, and waited for ever after",
    full(story(WAIT).status("waiting", "go")).signal("s").quiet().later(99).status("waiting", "go").bound(),
    "amnesia",
)

"""Examples of work that is given up by right: it has killed its workers, or its harness has stopped over its storage."""

from __future__ import annotations

from scenarios.plan import Plan
from tests.scenarios.build import Story, plan
from tests.scenarios.examples import breaks, holds

READ = plan("a reader", "b ledger a")
CHAIN = plan("a ledger", "b ledger a")
CHECKED = plan("p artifact report 64 1", "q check p")
OPEN = {"a": "unknown", "b": "planned"}
LEFT = {"a": "unresolved", "b": "planned"}


def up(of: Plan, **declared: object) -> Story:
    return Story(of, shows_operations=True, **declared).up().start()


def deadly(of: Plan) -> Story:
    """Two workers have died of one call, as many as are allowed to it."""
    return up(of, deaths_max=2).request("a").crash().request("a").crash()


# --- it has killed its workers ------------------------------------------------------------------------------------------
holds("EFF-6", "a read that kills its workers is set aside", deadly(READ).status("blocked", ops=LEFT).settled(), exercised=0)
breaks(
    "EFF-6",
    "a read whose worker has died once is left",
    up(READ, deaths_max=2).request("a").crash().status("running", ops=OPEN).bound(),
    "stuck",
)
holds(
    "DUR-12",
    "the run has failed over work that kills its workers, with that unresolved",
    deadly(CHAIN).status("failed", reason="deadly", ops=LEFT).status("failed", reason="deadly", ops=LEFT).settled(),
)
holds(
    "STA-4",
    "the run has failed over work that has killed as many workers as are allowed",
    deadly(CHAIN).status("failed", reason="deadly", ops=LEFT).settled(),
)
holds(
    "CPL-2",
    "a check beside which two workers have died, as many as are allowed",
    up(CHECKED, deaths_max=2)
    .upload("p")
    .check("q", "unavailable")
    .crash()
    .crash()
    .status("blocked", ops={"p": "succeeded p1", "q": "failed"})
    .settled(),
)

# --- it has stopped over its storage ------------------------------------------------------------------------------------
holds(
    "EFF-6",
    "the harness has stopped over its storage, and reads nothing any more",
    up(READ).request("a").fired("flip@ack:start").kill().quiet().stopped(),
    exercised=0,
)
holds(
    "DUR-6",
    "the harness has stopped over its storage, which is no end of the run",
    up(CHAIN).call("a").fired("flip@ack:start").kill().quiet().stopped(),
    exercised=0,
)
holds(
    "EFF-9",
    "the harness has stopped over its storage after the notice",
    up(plan("a mailer", "b ledger a"))
    .request("a")
    .applied()
    .reply(delivery="dropped")
    .notice("a")
    .status("running", ops=OPEN)
    .fired("flip@ack:signal")
    .kill()
    .quiet()
    .stopped(),
)
WAITING = plan("a ledger", "w wait go", "b ledger w")
holds(
    "SCH-5",
    "with its disk full, it cannot take a signal that comes too late",
    up(WAITING).call("a").signal("1").call("b").done().fired("full@end").signal("2", outcome="error").done().settled(),
)
holds(
    "SCH-5",
    "with its disk full, it cannot look up the signal that comes again",
    up(WAITING)
    .call("a")
    .status("waiting", on="go")
    .signal("1", disposition="released")
    .fired("full@ack:signal:go")
    .signal("1", outcome="error")
    .call("b")
    .done()
    .settled(),
)

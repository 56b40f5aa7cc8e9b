"""Examples of what a harness says itself where nobody has answered, and of what it has learnt before it died."""

from __future__ import annotations

from scenarios.plan import Plan
from tests.scenarios.build import Story, plan
from tests.scenarios.examples import breaks, holds
from tests.scenarios.words import sha256_of

CHECKED = plan("p artifact report 64 1", "q check p")
PAIR = plan("a ledger", "b ledger")
SHIPMENT = plan("a registry", "b ledger a")
DIGEST = sha256_of(CHECKED.artifacts()[0])


def up(of: Plan = PAIR) -> Story:
    return Story(of, shows_operations=True).up().start()


# --- EFF-8: what was lost is no success either --------------------------------------------------------------------------
breaks(
    "EFF-8",
    "a reply that was lost is taken for a success",
    up().call("a").request("b").applied().reply(delivery="dropped").status("done", result={"a": "a1"}),
    "false certainty",
)
breaks(
    "EFF-8",
    "a 503 is shown as a success while the run goes on",
    up().request("a").applied().reply("error").status("running", ops={"a": "succeeded", "b": "planned"}),
    "false certainty",
)
holds(
    "EFF-8",
    "its reply was lost, and its receiver's word came in its place",
    up(SHIPMENT)
    .request("a")
    .applied()
    .reply(delivery="dropped")
    .notice("a")
    .status("running", ops={"a": "reconciled a1", "b": "planned"})
    .call("b")
    .done()
    .settled(),
)


# --- CPL-3: a verdict of its own ----------------------------------------------------------------------------------------
def verdict(generation: int, outcome: str) -> dict[str, object]:
    what = {"checker": "checker", "subject": "report", "version": 1, "digest": DIGEST}
    return {"operation": "q", "generation": generation, **what, "outcome": outcome}


def checked(story: Story, *verdicts: dict[str, object]) -> Story:
    shown = story.status("running", ops={"p": "succeeded p1", "q": "succeeded q1"})
    return shown.ask("journal").answer("ok", body={"verdicts": list(verdicts)})


holds(
    "CPL-3",
    "the first check was never answered, and its harness says that it took too long",
    checked(
        up(CHECKED)
        .upload("p")
        .request("q", subject=f"report@1#{DIGEST}")
        .reply(delivery="dropped", outcome="passed")
        .later(1000)
        .check("q"),
        verdict(1, "timeout"),
        verdict(2, "passed"),
    ),
    exercised=0,
)
breaks(
    "CPL-3",
    "every check was answered, and one of them is said to have taken too long",
    checked(up(CHECKED).upload("p").check("q"), verdict(1, "timeout"), verdict(2, "passed")),
    "torn view",
)

# --- DUR-10: what one recovery had learnt before ------------------------------------------------------------------------
holds(
    "DUR-10",
    "a look-up had found nothing before the first crash; what was sent after that is looked up again",
    up(SHIPMENT)
    .request("a")
    .reply("error")
    .look_up("a")
    .crash()
    .request("a")
    .crash()
    .look_up("a")
    .call("a")
    .call("b")
    .done()
    .settled(),
    exercised=0,
)

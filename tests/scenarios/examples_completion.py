"""Examples for CPL-1 to CPL-4."""

from __future__ import annotations

from typing import Any

from scenarios.plan import Check
from tests.scenarios.build import Story, par, plan
from tests.scenarios.examples import breaks, holds
from tests.scenarios.words import sha256_of

VERBS = ("start", "status", "signal", "resume", "cancel", "artifacts", "journal")
TELLS = {"shows_operations": True, "verbs": VERBS}
CHECKED = plan("p artifact report 64", "c check p")
REPLACED = plan("p artifact report 64", par("c check p", "q artifact report 30"))
OPTIONAL = plan("p artifact report 64", Check("c", "p", required=False))
NEW = sha256_of(REPLACED.artifacts()[1])
PASSED = {"p": "succeeded p1", "c": "succeeded c1"}


def begin(made: Any = CHECKED) -> Story:
    """The report is published, and it is about to be checked."""
    return Story(made, **TELLS).up().start().upload("p")


def listed(story: Story, *ops: str) -> Story:
    """These artifacts are listed as one version each of the report, the last as the current one."""
    leaves = {one.id: one for one in story.plan.artifacts()}
    return story.artifacts(
        [
            {
                "name": leaves[op].name,
                "version": n,
                "digest": sha256_of(leaves[op]),
                "size": leaves[op].size,
                "operation": op,
                "location": f"r1:{op}",
                "state": "accepted" if n == len(ops) else "superseded",
            }
            for n, op in enumerate(ops, 1)
        ]
    )


# --- CPL-1 ------------------------------------------------------------------------------------------------------------
holds(
    "CPL-1",
    "replaced, and checked again",
    listed(begin(REPLACED).check("c").upload("q").check("c", version=2, digest=NEW).done(), "p", "q").settled(),
)
holds(
    "CPL-1",
    "replaced before its check, which is about the new one",
    listed(begin(REPLACED).upload("q").check("c", version=2, digest=NEW).done(), "p", "q").settled(),
    exercised=0,
)
holds(
    "CPL-1",
    "the old version does not pass any more, and the new one does",
    listed(begin(REPLACED).check("c").upload("q").check("c", version=2, digest=NEW).done(), "p", "q"),
)
holds(
    "CPL-1",
    "nobody tells which version is current, and there is but one",
    begin().check("c", version=4).done().settled(),
    exercised=0,
)
holds("CPL-1", "nobody has to check it", begin(OPTIONAL).check("c", "failed").done().settled(), exercised=0)
breaks(
    "CPL-1",
    "the pass of the old version lets the new one through",
    listed(begin(REPLACED).check("c").upload("q").done(), "p", "q").settled(),
    "stale acceptance",
)
breaks("CPL-1", "done without a check", listed(begin().done(), "p").settled(), "false certainty")
breaks(
    "CPL-1",
    "something else passed",
    listed(begin().check("c", digest="0" * 64).done(), "p").settled(),
    "stale acceptance",
)


# --- CPL-2 ------------------------------------------------------------------------------------------------------------
def said(*outcomes: str, made: Any = CHECKED) -> Story:
    """What the checker says, one after the other."""
    story = begin(made)
    for outcome in outcomes:
        story.check("c", outcome)
    return story


def ended(story: Story, state: Any, shown: str, reason: str) -> Story:
    return story.status(state, ops={"p": "succeeded p1", "c": shown}, error=reason, reason=reason).settled()


holds("CPL-2", "failed is the end", ended(said("failed"), "failed", "failed", "check-failed: c"))
holds(
    "CPL-2",
    "nobody was there, whoever was asked",
    ended(said("unavailable", "unavailable"), "blocked", "unresolved", "check-unavailable: c"),
)
holds(
    "CPL-2",
    "left out: somebody has to look at it",
    ended(said("skipped"), "blocked", "unresolved", "check-skipped: c"),
)
holds(
    "CPL-2",
    "away, and too slow, and then there to pass it",
    listed(said("unavailable", "timeout", "passed").done(ops=PASSED), "p").settled(),
    exercised=2,
)
holds(
    "CPL-2",
    "the run was cancelled when the checker was away",
    said("unavailable").cancel().status("cancelled", ops={"c": "failed"}, error="cancelled").settled(),
)
holds(
    "CPL-2",
    "nobody has to pass a check that is not required",
    listed(said("failed", made=OPTIONAL).done(ops=PASSED), "p").settled(),
    exercised=0,
)
holds(
    "CPL-2",
    "away, and then the worker who had heard it was gone, too",
    ended(said("unavailable").crash(), "blocked", "unresolved", "check-timeout: c"),
)
breaks("CPL-2", "failed, and done", listed(said("failed").done(), "p").settled(), "false certainty")
breaks("CPL-2", "left out, and done", listed(said("skipped").done(), "p").settled(), "false certainty")
breaks(
    "CPL-2",
    "away, and shown as accepted",
    said("unavailable").status("running", ops=PASSED),
    "false certainty",
)
breaks("CPL-2", "too slow is no failure", ended(said("timeout"), "failed", "failed", "timeout"), "false certainty")
breaks(
    "CPL-2",
    "away, and told as too slow",
    ended(said("unavailable"), "blocked", "unresolved", "check-timeout: c"),
    "false certainty",
)


# --- CPL-3 ------------------------------------------------------------------------------------------------------------
def row(outcome: str = "passed", version: int | None = 1, generation: int = 2, **other: Any) -> dict[str, Any]:
    """A verdict as a journal has it."""
    about = {"subject": "report", "version": version, "digest": sha256_of(CHECKED.artifacts()[0])}
    told = {"operation": "c", "generation": generation, "checker": "checker", "outcome": outcome}
    return {**told, **about, **other}


def told(story: Story, *rows: dict[str, Any]) -> Story:
    """The journal is asked for, and has these verdicts; of nothing else does it tell."""
    return story.ask("journal").answer("ok", body={"verdicts": list(rows)})


def accepted() -> Story:
    """A check is accepted, and then everything dies and comes up again."""
    return begin().check("c").status("running", ops=PASSED).crash()


holds("CPL-3", "it is there after a crash, with all that it says", told(accepted(), row()).done(ops=PASSED).settled())
holds(
    "CPL-3",
    "nobody has asked the journal",
    accepted().done(ops=PASSED).settled(),
)
holds(
    "CPL-3",
    "the answer was lost in the crash: asked again, and that is the one that is kept",
    told(
        begin()
        .request("c", subject=f"report@1#{sha256_of(CHECKED.artifacts()[0])}")
        .applied()
        .reply(delivery="dropped"),
    )
    .crash()
    .check("c")
    .done(ops={"p": "succeeded p1", "c": "succeeded c2"})
    .settled(),
    exercised=0,
)
holds(
    "CPL-3",
    "replaced: both verdicts are there",
    told(
        begin(REPLACED).check("c").upload("q").check("c", version=2, digest=NEW).status("running", ops=PASSED).crash(),
        row(),
        row(version=2, generation=5, digest=NEW, operation="c~2"),
    ),
)
breaks("CPL-3", "the journal knows of no verdict", told(accepted()), "amnesia")
breaks("CPL-3", "of which version, it does not say", told(accepted(), row(version=None)), "torn view")
breaks("CPL-3", "by whom, it does not say", told(accepted(), row(checker="")), "torn view")
breaks("CPL-3", "asked about nothing", begin().request("c"), "torn view")
breaks("CPL-3", "made again after it was accepted", accepted().check("c"), "amnesia")
breaks(
    "CPL-3",
    "a verdict that was there is gone",
    told(told(begin().check("c", "failed"), row("failed")).crash()),
    "amnesia",
)


# --- CPL-4 ------------------------------------------------------------------------------------------------------------
def over(*delivered: bool) -> Story:
    """The run is done; statuses show it so, and whether its result was handed over."""
    story = begin().check("c")
    for one in delivered:
        story.done(delivered=one)
    return story


holds("CPL-4", "ready when it is first shown, handed over from then on", listed(over(False, True), "p").settled())
holds(
    "CPL-4",
    "the answer was lost: it may have come to somebody",
    listed(over().fired("lose-ack@end").ask("status").answer("indefinite").done(delivered=True), "p").settled(),
)
holds(
    "CPL-4",
    "the answer was lost before it was made",
    listed(over().ask("status").kill().answer("indefinite").up().done(delivered=False), "p").settled(),
)
holds("CPL-4", "shown once, as ready", listed(over(False), "p").settled(), exercised=0)
holds(
    "CPL-4",
    "the word of it is lost with a server that dies",
    listed(over(False).kill(unit="engine").up("engine").done(delivered=False), "p").settled(),
)
holds(
    "CPL-4",
    "blocked, and blocked by something else when somebody had looked after the first",
    begin()
    .check("c", "skipped")
    .status("blocked", ops={"c": "unresolved"}, reason="check-skipped", delivered=False)
    .status("blocked", ops={"c": "unresolved"}, reason="check-skipped", delivered=True)
    .status("blocked", ops={"c": "unresolved"}, reason="check-skipped", delivered=False)
    .settled(),
)
holds(
    "CPL-4",
    "on a bad link the question came twice, and the first answer got lost",
    listed(
        Story(CHECKED, **TELLS).fired("storm").up().start().upload("p").check("c").done(delivered=True), "p"
    ).settled(),
    exercised=0,
)
breaks("CPL-4", "handed over before anybody had it", over(True), "false certainty")
breaks("CPL-4", "handed over before there is one", begin().status("running", delivered=True), "false certainty")
breaks("CPL-4", "handed over, and forgotten", over(False, True, False), "amnesia")
breaks("CPL-4", "nobody has noted that it was handed over", over(False, False), "amnesia")
breaks("CPL-4", "to be had only once", over(False).status("done", delivered=True, result={}), "amnesia")

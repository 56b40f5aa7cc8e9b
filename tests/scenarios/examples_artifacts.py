"""Examples for ART-1 to ART-6."""

from __future__ import annotations

from typing import Any

from scenarios.plan import Artifact
from tests.scenarios.build import Story, par, plan
from tests.scenarios.examples import breaks, holds
from tests.scenarios.words import sha256_of

TELLS = {"shows_operations": True, "verbs": ("start", "status", "signal", "resume", "cancel", "artifacts")}
REPORT = plan("p artifact report 64 2", "a ledger")
TWO = plan("p artifact report 64 2", "q artifact report 30 1")
BESIDE = plan("m artifact minutes 20 1", par("p artifact report 64 2", "a ledger"))
MIXED = plan("p artifact report 64 2", "a ledger p")
HERE = "here"
WHOLE = {"p": "succeeded p1"}


def begin(made: Any = REPORT) -> Story:
    return Story(made, **TELLS).up().start()


def put(story: Story, op: str, *parts: int, at: str | None = None, by: int | None = None) -> Story:
    """These parts of an upload arrive at a location, by default one named after the operation."""
    for part in parts:
        story.request(op, part=part, by=by).stored(at or f"r1:{op}", "staged").reply("executed", nonce=None)
    return story


def commit(story: Story, op: str, *, at: str | None = None, delivery: Any = "sent", by: int | None = None) -> Story:
    return story.request(op, by=by).applied().stored(at or f"r1:{op}", "committed").reply(delivery=delivery)


def upload(story: Story, op: str, at: str | None = None) -> Story:
    """All parts, and the commit."""
    leaf = story.plan.leaf(op)
    assert isinstance(leaf, Artifact)
    return commit(put(story, op, *range(1, leaf.parts + 1), at=at), op, at=at)


def abort(story: Story, op: str, at: str | None = None) -> Story:
    """Somebody clears the staged parts away."""
    return story.request(op).stored(at or f"r1:{op}", "removed").reply("executed", nonce=None)


def entry(story: Story, op: str, version: int | None = 1, state: str = "accepted", **other: Any) -> dict[str, Any]:
    """The row of an operation's artifact in a listing."""
    leaf = story.plan.leaf(op)
    assert isinstance(leaf, Artifact)
    row = {"name": leaf.name, "version": version, "digest": sha256_of(leaf), "size": leaf.size, "operation": op}
    return {**row, "location": f"r1:{op}", "state": state, **other}


def listed(story: Story, *ops: str) -> Story:
    """The artifacts of these operations are listed, the last of each name as the current one."""
    names = [leaf.name for op in ops if isinstance(leaf := story.plan.leaf(op), Artifact)]
    rows = []
    for n, op in enumerate(ops):
        state = "superseded" if names[n] in names[n + 1 :] else "accepted"
        rows.append(entry(story, op, names[: n + 1].count(names[n]), state))
    return story.artifacts(rows)


# --- ART-1 ------------------------------------------------------------------------------------------------------------
def wiped() -> Story:
    """A report is published, and the worker's disk is emptied; the run goes on and ends."""
    story = upload(begin(), "p").status("running", ops=WHOLE)
    return listed(story.fired("wipe@a#1.received").crash().call("a").done(), "p")


holds("ART-1", "fetched when its worker and the worker's disk are gone", wiped().fetched("report").settled())
holds(
    "ART-1",
    "an upload that was cut short is nothing to be fetched",
    put(begin(), "p", 1)
    .fired("wipe@p#1.applied")
    .crash()
    .artifacts([{"name": "report", "version": None, "state": "partial", "operation": "p", "location": "r1:p"}])
    .fetched("report", 1, found=False),
    exercised=0,
)
holds(
    "ART-1",
    "fetched, with nothing having happened to anybody",
    listed(upload(begin(), "p").call("a").done(), "p").fetched("report").settled(),
    exercised=0,
)
holds(
    "ART-1",
    "the newer version is what is fetched as the newer version",
    listed(upload(upload(begin(TWO), "p"), "q").fired("wipe@q#2.applied").crash().done(), "p", "q")
    .fetched("report", 1)
    .fetched("report", 2, sha256_of(TWO.artifacts()[1]), 30)
    .settled(),
    exercised=2,
)
breaks("ART-1", "gone with its worker", wiped().fetched("report", found=False).settled(), "lost effect")
breaks("ART-1", "something else came", wiped().fetched("report", digest="0" * 64, size=64).settled(), "torn view")
breaks("ART-1", "only the beginning of it came", wiped().fetched("report", size=32).settled(), "torn view")


# --- ART-2 ------------------------------------------------------------------------------------------------------------
def cut() -> Story:
    """One of two parts has arrived when the worker dies."""
    return put(begin(), "p", 1).crash()


def partial(story: Story) -> Story:
    return story.artifacts([entry(story, "p", None, "partial")])


holds(
    "ART-2",
    "listed as partial, and accepted once it is whole",
    listed(upload(partial(cut().status("running", ops={"p": "unknown"})), "p").call("a").done(), "p").settled(),
)
holds(
    "ART-2",
    "the commit is under way when a status is asked for, and has been made when it is answered",
    put(begin(), "p", 1)
    .crash()
    .status("running", ops={"p": "unknown"})
    .request("p", part=2)
    .stored("r1:p", "staged")
    .reply("executed", nonce=None)
    .ask("status")
    .request("p")
    .applied()
    .reply()
    .shows("running", ops=WHOLE, ask=3),
)
holds("ART-2", "nothing was cut", listed(upload(begin(), "p").call("a").done(), "p").settled(), exercised=0)
holds(
    "ART-2",
    "committed, and the answer lost: it is whole all the same",
    commit(put(begin(), "p", 1, 2), "p", delivery="dropped")
    .crash()
    .look_up("p", "found")
    .status("running", ops={"p": "reconciled p1"})
    .call("a")
    .done(ops={"p": "reconciled p1", "a": "succeeded a1"}),
    exercised=0,
)
breaks("ART-2", "listed as accepted from its first part on", listed(cut(), "p"), "false certainty")
breaks("ART-2", "shown as accepted when parts are there", cut().status("running", ops=WHOLE), "false certainty")
breaks("ART-2", "what comes after it is sent", cut().call("a"), "false certainty")
breaks(
    "ART-2",
    "all parts are there, and nobody has made them whole",
    listed(put(begin(), "p", 1, 2), "p"),
    "false certainty",
)


# --- ART-3 ------------------------------------------------------------------------------------------------------------
def lost_commit() -> Story:
    """A report is committed, and the answer to that is lost with its worker."""
    return commit(put(begin(), "p", 1, 2), "p", delivery="dropped").crash()


def recalled(*parts: int) -> Story:
    """A run is cancelled when some of a report has been uploaded; its worker dies."""
    return put(begin(), "p", *parts).cancel().crash()


holds(
    "ART-3",
    "committed, the answer lost: found and registered",
    listed(lost_commit().look_up("p", "found").call("a").done(), "p").settled(),
)
holds(
    "ART-3",
    "cleared away before the run ends",
    abort(recalled(1), "p").status("cancelled", reason="cancelled").artifacts([]).settled(),
)
holds(
    "ART-3",
    "a part lands when somebody has cleared up",
    put(abort(recalled(1), "p"), "p", 2, by=1).status("cancelled", reason="cancelled").artifacts([]).settled(),
)
holds(
    "ART-3",
    "the store does not let it be cleared away, and that is told",
    recalled(1)
    .request("p")
    .reply("error", nonce=None)
    .request("p")
    .reply("error", nonce=None)
    .status("cancelled", reason="cancelled")
    .artifacts([entry(recalled(1), "p", None, "abandoned")])
    .settled(),
    exercised=0,
)
holds(
    "ART-3",
    "a run that waits for somebody to look still owns what it has",
    recalled(1).status("blocked", ops={"p": "unresolved"}, reason="blocked").artifacts([]).settled(),
    exercised=0,
)
breaks(
    "ART-3",
    "half a report lies there",
    recalled(1).status("cancelled", reason="cancelled").artifacts([]).settled(),
    "leak",
)
breaks(
    "ART-3",
    "the answer is lost as it is cleared away, and nobody asks again",
    recalled(1)
    .request("p")
    .reply("error", nonce=None, delivery="reset")
    .status("cancelled", reason="cancelled")
    .artifacts([entry(recalled(1), "p", None, "abandoned")])
    .settled(),
    "leak",
)
breaks(
    "ART-3",
    "called abandoned, and nobody has tried",
    recalled(1)
    .status("cancelled", reason="cancelled")
    .artifacts([entry(recalled(1), "p", None, "abandoned")])
    .settled(),
    "leak",
)
breaks(
    "ART-3",
    "committed, and the run ends without it",
    commit(put(begin(), "p", 1, 2), "p", delivery="dropped")
    .cancel()
    .crash()
    .status("cancelled", reason="cancelled")
    .artifacts([])
    .settled(),
    "leak",
)
breaks(
    "ART-3",
    "every try goes to a place of its own",
    listed(upload(put(begin(), "p", 1, at="elsewhere").crash(), "p").call("a").done(), "p").settled(),
    "leak",
)


# --- ART-4 ------------------------------------------------------------------------------------------------------------
def raced() -> Story:
    """A run begins to fail when a report is being uploaded."""
    return put(upload(begin(BESIDE), "m"), "p", 1, 2).request("a").reply("rejected")


holds(
    "ART-4",
    "what was under way is finished, and kept",
    listed(commit(raced(), "p").status("failed", error="a: rejected"), "m", "p").settled(),
)
holds(
    "ART-4",
    "what was given up is cleared away, and the rest stays",
    listed(
        abort(put(upload(begin(BESIDE), "m"), "p", 1).cancel().crash(), "p").status("cancelled", reason="cancelled"),
        "m",
    ).settled(),
)
holds(
    "ART-4",
    "somebody who was long away commits what was cleared away meanwhile",
    abort(put(begin(), "p", 1, 2).cancel().pause().up(), "p")
    .status("running", ops={"p": "unresolved"})
    .resume(1)
    .request("p", by=1)
    .reply("rejected")
    .status("cancelled", ops={"p": "unresolved"}, reason="cancelled")
    .artifacts([])
    .settled(),
    exercised=0,
)
holds(
    "ART-4",
    "who begins anew clears its own parts away first",
    listed(
        upload(abort(put(begin(), "p", 1), "p").status("running", ops={"p": "dispatched"}), "p").call("a").done(), "p"
    ),
)
breaks(
    "ART-4",
    "cleared away under the hands of who uploads it",
    abort(raced(), "p").status("running", ops={"p": "dispatched"}).request("p").reply("rejected"),
    "lost effect",
)
breaks(
    "ART-4",
    "what was published goes with what was not",
    listed(upload(begin(BESIDE), "m"), "m").crash().artifacts([]),
    "amnesia",
)

# --- ART-5 ------------------------------------------------------------------------------------------------------------
FIRST = entry(begin(TWO), "p")
SECOND = entry(begin(TWO), "q", 2)


def replaced() -> Story:
    """A report is published, listed, and replaced by another."""
    return upload(upload(begin(TWO), "p").crash().artifacts([FIRST]), "q").done()


holds(
    "ART-5",
    "the first becomes superseded, and stays what it was",
    replaced().artifacts([{**FIRST, "state": "superseded"}, SECOND]).settled(),
)
holds(
    "ART-5",
    "versions may be called by any number",
    upload(upload(begin(TWO), "p"), "q")
    .done()
    .artifacts([{**FIRST, "version": 7, "state": "superseded"}, {**SECOND, "version": 9}])
    .settled(),
)
holds(
    "ART-5",
    "both are whole, and the second is not accepted yet",
    upload(upload(begin(TWO), "p").artifacts([FIRST]), "q").crash().artifacts([FIRST, {**SECOND, "state": "partial"}]),
    exercised=0,
)
breaks(
    "ART-5",
    "the entry is changed in its place",
    replaced().artifacts([{**SECOND, "version": 1}]).settled(),
    "torn view",
)
breaks(
    "ART-5",
    "only the last one is kept",
    upload(upload(begin(TWO), "p"), "q").done().artifacts([{**SECOND, "version": 1}]).settled(),
    "amnesia",
)
breaks(
    "ART-5",
    "a repeat is entered once more",
    lost_commit().artifacts([entry(begin(), "p", 1), entry(begin(), "p", 2)]),
    "duplicate effect",
)


# --- ART-6 ------------------------------------------------------------------------------------------------------------
def refused() -> Story:
    """A report is published, and the next call is refused."""
    return (
        upload(begin(MIXED), "p")
        .request("a")
        .reply("rejected")
        .status("failed", ops={**WHOLE, "a": "failed"}, error="a: rejected")
    )


holds("ART-6", "the run has failed, and has its report", listed(refused(), "p").settled())
holds(
    "ART-6",
    "cancelled when the report was there",
    listed(
        upload(begin(MIXED), "p")
        .status("running", ops=WHOLE)
        .cancel()
        .status("cancelled", ops=WHOLE, reason="cancelled"),
        "p",
    ).settled(),
)
holds(
    "ART-6",
    "nothing was published before the run failed",
    Story(BESIDE, **TELLS).up().start().call("m", "rejected").status("failed", error="no room").artifacts([]).settled(),
    exercised=0,
)
breaks("ART-6", "the report is gone with the run", refused().artifacts([]).settled(), "amnesia")
breaks(
    "ART-6",
    "half an upload at most, it is said",
    refused().artifacts([entry(refused(), "p", None, "partial")]).settled(),
    "amnesia",
)

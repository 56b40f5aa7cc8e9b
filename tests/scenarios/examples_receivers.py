"""Examples for EFF-7 9 10."""

from __future__ import annotations

from scenarios.history import Replied
from scenarios.plan import Call
from tests.scenarios.build import Story, par, plan, seq
from tests.scenarios.examples import breaks, holds

OPS = {"shows_operations": True}
KEYED = plan("a ledger", "b ledger a")
LIVES = {**OPS, "key_lifetime_ns": 2_000_000_000}
POST = plan(par(seq("m mailer", "b ledger m"), "n mailer"))
REG = plan("a registry", "b ledger a")
TWICE = plan(Call("a", "registry", {"of": "a"}, tries=2))


def declined(story: Story, kind: str = "saved") -> Story:
    """The latest request is told that it failed: for the first time (`rejected`), or as the receiver has saved it."""
    return story.add(Replied(story.now_ns, story.calls, 400, kind))


def conflict() -> Story:
    """A call whose receiver takes longer than its caller waits, and which is asked again meanwhile."""
    return Story(KEYED, **OPS).up().start().request("a").later(1000).request("a").reply("busy")


def declined_twice() -> Story:
    """A refusal whose reply is lost, and which is told again."""
    lost = Story(KEYED, **OPS).up().start().request("a").reply("rejected", delivery="dropped").later(1000)
    return declined(lost.status("running", ops={"a": "unknown"}).request("a"))


def outage() -> Story:
    """A call of unknown outcome, and nobody there until its key is forgotten."""
    return Story(KEYED, **LIVES).up().start().request("a").applied().kill().later(5000).up()


# --- EFF-7 ------------------------------------------------------------------------------------------------------------
holds(
    "EFF-7",
    "still at it: asked again, and told the answer when there is one",
    conflict()
    .status("running", ops={"a": "unknown"})
    .applied(1)
    .reply(call=1)
    .request("a")
    .reply("saved")
    .call("b")
    .done(ops={"a": "succeeded a1", "b": "succeeded b1"}),
)
holds(
    "EFF-7",
    "still at it, and refused in the end",
    declined(declined(conflict(), "busy").request("a"))
    .status("failed", ops={"a": "failed"}, error="declined")
    .settled(),
    exercised=2,
)
holds(
    "EFF-7",
    "a failure that was saved is the end of it",
    declined_twice().status("failed", ops={"a": "failed"}, error="declined").settled(),
)
holds(
    "EFF-7",
    "a worker killed on the word of a failure has not passed it on: asked again, told again",
    declined(declined_twice().crash().request("a")).status("failed", ops={"a": "failed"}, error="declined").settled(),
    exercised=2,
)
holds(
    "EFF-7",
    "the key is forgotten: left as unknown",
    outage().status("blocked", ops={"a": "unresolved"}, error="a: key expired").settled(),
)
holds(
    "EFF-7",
    "the key lives still, from the first request on: asked again",
    Story(KEYED, **LIVES)
    .up()
    .start()
    .request("a")
    .applied()
    .crash()
    .later(1500)
    .request("a")
    .reply("saved")
    .call("b")
    .done(),
    exercised=0,
)
holds(
    "EFF-7",
    "the outage begins when the answer has been accepted",
    Story(KEYED, **LIVES)
    .up()
    .start()
    .call("a")
    .status("running", ops={"a": "succeeded a1"})
    .kill()
    .later(5000)
    .up()
    .call("b"),
    exercised=0,
)
holds(
    "EFF-7",
    "it is at it still, so that its key was not forgotten",
    Story(KEYED, **LIVES)
    .up()
    .start()
    .request("a")
    .later(1800)
    .request("a")
    .reply("busy")
    .applied(1)
    .reply(call=1, delivery="dropped")
    .later(1500)
    .call("a", "saved")
    .call("b")
    .done(),
)
breaks(
    "EFF-7",
    "each repeat came soon after the one before, and the last one when its key was forgotten",
    Story(KEYED, **LIVES)
    .up()
    .start()
    .request("a")
    .applied()
    .crash()
    .later(1800)
    .request("a")
    .crash()
    .later(1800)
    .call("a"),
    "duplicate effect",
)
breaks("EFF-7", "a conflict is taken for an answer", conflict().call("b"), "false certainty")
breaks(
    "EFF-7",
    "a conflict is taken for a refusal",
    conflict().status("failed", ops={"a": "failed"}, error="conflict"),
    "false certainty",
)
breaks("EFF-7", "a failure that was saved is tried again", declined_twice().request("a"), "overspend")
breaks(
    "EFF-7",
    "a failure that was saved counts as done",
    declined_twice().status("running", ops={"a": "succeeded"}),
    "false certainty",
)
breaks(
    "EFF-7",
    "a failure that was saved is left as unknown",
    declined_twice().status("blocked", ops={"a": "unresolved"}).settled(),
    "amnesia",
)
breaks("EFF-7", "asked again when the key is forgotten", outage().call("a"), "duplicate effect")


# --- EFF-9 ------------------------------------------------------------------------------------------------------------
def lost() -> Story:
    """Two mails of unknown outcome, and a run that has come to its end over them."""
    sent = Story(POST, **OPS).up().start()
    for mail in ("m", "n"):
        sent.call(mail, delivery="reset")
    return sent.status("blocked", ops={"m": "unresolved", "n": "unresolved"})


holds(
    "EFF-9",
    "one is told of, and goes on; the other stays as it was",
    lost()
    .notice("m", "m1")
    .status("running", ops={"m": "reconciled m1", "n": "unresolved"})
    .call("b")
    .status("blocked", ops={"m": "reconciled m1", "b": "succeeded b1", "n": "unresolved"})
    .settled(),
)
holds(
    "EFF-9",
    "told twice, and of something that nobody knows",
    lost()
    .notice("n", "n1")
    .notice("n", "n1")
    .notice("nobody", "x1", disposition="unmatched")
    .status("blocked", ops={"m": "unresolved", "n": "reconciled n1"})
    .settled(),
)
holds(
    "EFF-9",
    "told of what had been answered already",
    Story(POST, **OPS)
    .up()
    .start()
    .call("m")
    .call("n")
    .notice("m", "m1", disposition="unmatched")
    .call("b")
    .done(ops={"m": "succeeded m1", "n": "succeeded n1", "b": "succeeded b1"})
    .settled(),
    exercised=0,
)
holds(
    "EFF-9",
    "both are told of, one after the other",
    lost()
    .notice("n", "n1")
    .notice("m", "m1")
    .status("running", ops={"m": "reconciled m1", "n": "reconciled n1"})
    .call("b")
    .done(ops={"m": "reconciled m1", "n": "reconciled n1", "b": "succeeded b1"})
    .settled(),
    exercised=2,
)
breaks(
    "EFF-9",
    "taken, and nothing made of it",
    lost().notice("m", "m1").status("blocked", ops={"m": "unresolved", "n": "unresolved"}).settled(),
    "stuck",
)
breaks(
    "EFF-9",
    "one word settles everything",
    lost().notice("m", "m1").status("blocked", ops={"m": "reconciled m1", "n": "reconciled m1"}).settled(),
    "false certainty",
)
breaks(
    "EFF-9",
    "a word of something else settles what is unknown",
    lost().notice("nobody", "x1").status("blocked", ops={"m": "reconciled x1", "n": "unresolved"}).settled(),
    "false certainty",
)


# --- EFF-10 -----------------------------------------------------------------------------------------------------------
def search(failures: int, story: Story | None = None) -> Story:
    """A call whose reply was lost, and look-ups that fail."""
    asked = story or Story(REG, **OPS).up().start().call("a", delivery="reset")
    for _ in range(failures):
        asked.look_up("a", "error")
    return asked


holds(
    "EFF-10",
    "asked four times, and left unresolved for all to see",
    search(4).status("blocked", ops={"a": "unresolved"}, error="a").settled(),
)
holds(
    "EFF-10",
    "found when the receiver can be asked again",
    search(3).look_up("a", "found").call("b").done(ops={"a": "reconciled a1", "b": "succeeded b1"}).settled(),
)
holds(
    "EFF-10",
    "nothing was found: the second and last try, whatever had been asked before",
    search(5, Story(TWICE, **OPS).up().start().call("a", "error"))
    .look_up("a")
    .call("a")
    .done(ops={"a": "succeeded a1"})
    .settled(),
)
holds(
    "EFF-10",
    "nothing was found, but a worker died with the last try in its hands",
    Story(TWICE, **OPS)
    .up()
    .start()
    .call("a", "error")
    .look_up("a", "error")
    .look_up("a")
    .crash()
    .status("blocked", ops={"a": "unresolved"}, error="a")
    .settled(),
)
holds("EFF-10", "still searching when nobody looks any more", search(3).status("running", ops={"a": "unknown"}))
breaks(
    "EFF-10",
    "asked without end",
    search(30, Story(REG, **OPS).up().start().call("a", delivery="reset").quiet())
    .status("running", ops={"a": "unknown"})
    .bound(),
    "stuck",
)
holds(
    "EFF-10",
    "asked long before and after a crash, and found in the end",
    search(6, search(20).crash().quiet())
    .look_up("a", "found")
    .call("b")
    .done(ops={"a": "reconciled a1", "b": "succeeded b1"})
    .settled(),
)
breaks("EFF-10", "asked more often than anybody would", search(101), "overspend")
breaks(
    "EFF-10",
    "given up, and shown as failed",
    search(4).status("failed", ops={"a": "failed"}, error="a").settled(),
    "false certainty",
)
breaks(
    "EFF-10",
    "look-ups used up the tries",
    search(1, Story(TWICE, **OPS).up().start().call("a", "error"))
    .look_up("a")
    .status("failed", ops={"a": "failed"}, error="a")
    .settled(),
    "stuck",
)

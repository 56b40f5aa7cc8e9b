"""Examples for JRN-5 6 7."""

from __future__ import annotations

from scenarios.plan import Call
from tests.scenarios.build import Story, plan
from tests.scenarios.examples import breaks, holds

_NAME = "token"
ENTRUSTED = plan(Call("a", "ledger", {"of": "a"}, secret=_NAME), "b ledger a")

# --- JRN-5 ------------------------------------------------------------------------------------------------------------
holds(
    "JRN-5",
    "the secret went out and is found nowhere",
    Story(ENTRUSTED).up().start().call("a", secret=True).call("b").done().scanned().settled(),
    exercised=4,
)
holds(
    "JRN-5",
    "the answer got lost, and the repeat brings the secret again",
    Story(ENTRUSTED)
    .up()
    .start()
    .call("a", delivery="dropped", secret=True)
    .call("a", "saved", secret=True)
    .call("b")
    .done()
    .scanned(places=("store", "logs", "status", "journal"))
    .settled(),
    exercised=4,
)
holds(
    "JRN-5",
    "a search proves nothing where the secret was never used",
    Story(ENTRUSTED).up().start().crash().scanned(),
    exercised=0,
)
breaks(
    "JRN-5",
    "the store has it",
    Story(ENTRUSTED).up().start().call("a", secret=True).call("b").done().scanned("store:token").settled(),
    "leak",
)
breaks(
    "JRN-5",
    "two places have it, though no receiver was ever sent it",
    Story(ENTRUSTED).up().start().crash().scanned("logs:token", "status:token"),
    "leak",
)


def move(op: str, before: str, after: str, reason: str | None = None, sequence: int = 1) -> dict[str, object]:
    """One transition as a journal tells it."""
    return {
        "sequence": sequence,
        "operation": op,
        "from": before,
        "to": after,
        "move": "move",
        "reason": reason,
    }


LOST_AND_SENT = [
    move("a", "planned", "dispatched"),
    move("a", "dispatched", "unknown", "outcome-unknown: reset", 2),
    move("a", "unknown", "dispatched", "repeat: reset", 3),
    move("a", "dispatched", "succeeded", None, 4),
]
SAGA = plan("a ledger", "b ledger a", "u undo a", "f fail enough")

# --- JRN-6 ------------------------------------------------------------------------------------------------------------
holds(
    "JRN-6",
    "plain progress needs no reason, a repeat has one",
    Story(ENTRUSTED).up().start().call("a", delivery="reset").call("a", "saved").journal(transitions=LOST_AND_SENT),
)
holds(
    "JRN-6",
    "undone, decided and skipped, each for its reason",
    Story(plan("a ledger", "k approve b", "b ledger a", "u undo a", "f fail enough"))
    .up()
    .start()
    .call("a")
    .journal(
        transitions=[
            move("k", "planned", "failed", "denied: by alice"),
            move("b", "planned", "skipped", "denied", 2),
            move("u", "planned", "dispatched", "compensation: denied", 3),
        ]
    ),
    exercised=3,
)
holds(
    "JRN-6",
    "words that nobody knows mean nothing",
    Story(SAGA)
    .up()
    .start()
    .call("a")
    .journal(transitions=[move("a", "planned", "parked"), move("b", "parked", "skipped")]),
    exercised=0,
)
breaks(
    "JRN-6",
    "sent again, nobody knows why",
    Story(ENTRUSTED)
    .up()
    .start()
    .call("a", delivery="reset")
    .call("a", "saved")
    .journal(transitions=[one if one["to"] != "dispatched" else {**one, "reason": None} for one in LOST_AND_SENT]),
    "amnesia",
)
breaks(
    "JRN-6",
    "skipped with an empty reason",
    Story(SAGA).up().start().call("a").journal(transitions=[move("b", "planned", "skipped", " ")]),
    "amnesia",
)
breaks(
    "JRN-6",
    "undone for no reason at all",
    Story(SAGA).up().start().call("a").call("u").journal(transitions=[move("u", "planned", "dispatched")]),
    "amnesia",
)


# --- JRN-7 ------------------------------------------------------------------------------------------------------------
CHAIN = plan("a ledger", "s registry a", "m mailer s")


def forgotten(story: Story) -> Story:
    """The engine is killed, and comes up without its audit trail."""
    return story.fired("forget@waiting:w(engine)").kill(unit="engine", incarnation=1).up(unit="engine")


holds(
    "JRN-7",
    "the open call is repeated as it was, what was accepted is not",
    forgotten(Story(CHAIN).up(unit="engine").up().start().call("a").request("s").applied())
    .look_up("s", "found")
    .call("m")
    .done(),
    exercised=2,
)
holds(
    "JRN-7",
    "a keyed call that got lost is sent again with its key, by another worker",
    forgotten(Story(CHAIN).up(unit="engine").up().start().request("a").crash()).call("a").call("s").call("m").done(),
)
holds(
    "JRN-7",
    "a look-up finds nothing, and what was refused room was never sent",
    forgotten(Story(CHAIN).up(unit="engine").up().start().call("a").request("s").crash())
    .look_up("s")
    .call("s")
    .call("m", "limited")
    .call("m")
    .done(),
    exercised=2,
)
holds(
    "JRN-7",
    "without a loss of the trail there is nothing to see",
    Story(CHAIN).up(unit="engine").up().start().request("a").crash().call("a"),
    exercised=0,
)
breaks(
    "JRN-7",
    "the key is another one",
    forgotten(Story(CHAIN).up(unit="engine").up().start().request("a").crash()).call("a", key="key:other"),
    "key drift",
)
breaks(
    "JRN-7",
    "what was accepted is done once more",
    forgotten(Story(CHAIN).up(unit="engine").up().start().call("a").request("s")).call("a", "saved"),
    "duplicate effect",
)
breaks(
    "JRN-7",
    "nobody asks what became of it",
    forgotten(Story(CHAIN).up(unit="engine").up().start().call("a").request("s").applied().crash()).call("s"),
    "duplicate effect",
)
breaks(
    "JRN-7",
    "the mail goes out twice",
    forgotten(Story(CHAIN).up(unit="engine").up().start().call("a").call("s").request("m").crash()).call("m"),
    "duplicate effect",
)
breaks(
    "JRN-7",
    "an accepted answer is gone",
    forgotten(
        Story(CHAIN).up(unit="engine").up().start().call("a").status("running", ops={"a": "succeeded a1"})
    ).status("running", ops={"a": "planned"}),
    "amnesia",
)
breaks(
    "JRN-7",
    "the run is gone",
    forgotten(Story(CHAIN).up(unit="engine").up().start().call("a").status("running")).status("unknown"),
    "amnesia",
)

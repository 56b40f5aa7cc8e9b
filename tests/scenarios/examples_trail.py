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

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

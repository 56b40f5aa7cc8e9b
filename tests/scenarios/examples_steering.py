"""Examples for SIG-3 4 5 6."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from scenarios.plan import Child, Plan
from tests.scenarios.build import Story, plan, seq
from tests.scenarios.examples import breaks, holds

CHAIN = plan("a ledger", "b ledger a", "c ledger b")
TWICE = plan("a ledger", "v wait go", "b ledger a,v", "w wait go", "c ledger b,w")
KID = plan("a ledger", Child("kid", seq("k1 ledger", "k2 ledger k1")), "b ledger a")
LODGER = plan("a ledger", Child("lodger", seq("l1 ledger", "l2 ledger l1"), detached=True), "b ledger a")
HELM = plan("a ledger", "b ledger a")
OPEN = {"a": "succeeded a1", "v": "succeeded sig:1", "b": "planned", "w": "planned", "c": "planned"}
OVER = {"a": "succeeded a1", "v": "succeeded sig:1", "b": "succeeded b1", "w": "succeeded sig:2", "c": "succeeded c1"}
PORT, STARBOARD = {"amount": 101}, {"amount": 102}


def story(of: Plan = CHAIN) -> Story:
    return Story(of, shows_operations=True).up("engine").up().start()


def fallen(made: Story) -> Story:
    """The engine dies and comes back."""
    return made.kill(unit="engine", incarnation=1).up("engine")


# --- SIG-3 ------------------------------------------------------------------------------------------------------------
holds(
    "SIG-3",
    "what is at work ends, and the next waits",
    story().request("a").halt().applied().reply().later(300).go_on().call("b").call("c").done().settled(),
)
holds(
    "SIG-3",
    "also over a restart",
    fallen(story().request("a").halt().applied().reply()).later(300).go_on().call("b").call("c").done().settled(),
    exercised=2,
)
holds(
    "SIG-3",
    "who was restarted was back for a moment only before the run might go on: that tests no restart",
    fallen(story().request("a").halt().applied().reply()).later(50).go_on().call("b").call("c").done().settled(),
)
holds(
    "SIG-3",
    "a pause comes and goes while a slow harness has not yet looked for what is due: that tests nothing",
    story().request("a").halt().applied().reply().later(300).go_on().later(2000).call("b").call("c").done().settled(),
    exercised=0,
)
holds(
    "SIG-3",
    "the next was on its way as the pause was acknowledged",
    story().call("a").halt().call("b").go_on().call("c").done().settled(),
    exercised=0,
)
holds(
    "SIG-3",
    "nobody knows whether the pause has come",
    story().request("a").halt("indefinite").applied().reply().call("b").call("c").done().settled(),
    exercised=0,
)
holds(
    "SIG-3",
    "it went on as soon as that was asked",
    story()
    .request("a")
    .halt()
    .applied()
    .reply()
    .ask("unpause", id="r1:unpause:1")
    .call("b")
    .answer(ask=3)
    .call("c")
    .done(),
)
holds(
    "SIG-3",
    "it is cancelled while it is held, and cleaned up after",
    story(plan("p artifact report 64 2", "a ledger p"))
    .request("p", part=1)
    .stored("r1:p", "staged")
    .halt()
    .reply("error", nonce=None)
    .cancel()
    .request("p")
    .stored("r1:p", "removed")
    .reply("executed", nonce=None)
    .status("cancelled", reason="cancelled")
    .settled(),
    exercised=0,
)
breaks(
    "SIG-3",
    "the call that ends opens the next one",
    story().request("a").halt().applied().reply().call("b").go_on().call("c").done().settled(),
    "resurrection",
)
holds(
    "SIG-3",
    "the child waits with its owner, whatever it was at",
    story(KID).call("a").request("kid/k1").halt().applied().reply().later(300).go_on().call("kid/k2").call("b").done(),
)
holds(
    "SIG-3",
    "the lodger is nobody's, and goes on",
    story(LODGER).request("a").halt().applied().reply().later(300).go_on().call("lodger/l1").call("b").done(),
)
holds(
    "SIG-3",
    "a lodger that was there before goes on",
    story(LODGER).call("a").call("lodger/l1").halt().call("lodger/l2").go_on().call("b").done(),
    exercised=0,
)
breaks(
    "SIG-3",
    "the child of a run that is held goes on",
    story(KID).call("a").request("kid/k1").halt().applied().reply().call("kid/k2").go_on().call("b").done().settled(),
    "resurrection",
)
breaks(
    "SIG-3",
    "a restart has forgotten the pause",
    fallen(story().request("a").halt().applied().reply()).call("b").go_on().call("c").done().settled(),
    "resurrection",
)
breaks(
    "SIG-3",
    "let go on, and held for ever",
    story()
    .call("a")
    .halt()
    .go_on()
    .status("running", ops={"a": "succeeded a1", "b": "planned", "c": "planned"}, paused=True)
    .bound(),
    "stuck",
)
holds(
    "SIG-3",
    "let go on, and a pause that nobody has answered comes after that",
    story()
    .call("a")
    .halt("indefinite")
    .go_on()
    .status("running", ops={"a": "succeeded a1", "b": "planned", "c": "planned"}, paused=True)
    .bound(),
    exercised=0,
)
breaks(
    "SIG-3",
    "let go on, and its work is nowhere",
    story()
    .call("a")
    .halt()
    .go_on()
    .status("running", ops={"a": "succeeded a1", "b": "planned", "c": "planned"})
    .bound(),
    "stuck",
)

# --- SIG-4 ------------------------------------------------------------------------------------------------------------
holds(
    "SIG-4",
    "received before there was a wait, and used by it later",
    story(TWICE)
    .signal("1", disposition="buffered")
    .call("a")
    .status("running", ops=OPEN, signals={"1": "released"})
    .call("b"),
)
holds(
    "SIG-4",
    "received, and its wait has not begun",
    story(TWICE).signal("1", disposition="buffered").status("running", signals={"1": "buffered"}),
    exercised=0,
)
holds(
    "SIG-4",
    "it was early for one wait and in time for the other",
    story(TWICE).call("a").signal("1", disposition="released").status("running", ops=OPEN, signals={"1": "released"}),
    exercised=0,
)
breaks(
    "SIG-4",
    "used, when no wait can have begun",
    story(TWICE).signal("1", disposition="released").call("a").call("b"),
    "false certainty",
)
breaks(
    "SIG-4",
    "shown as used, and the wait is open",
    story(TWICE)
    .call("a")
    .signal("1", disposition="buffered")
    .status("running", ops={**OPEN, "v": "planned"}, signals={"1": "released"}),
    "false certainty",
)
breaks(
    "SIG-4",
    "the wait has ended with it, and it is shown as kept",
    story(TWICE).call("a").signal("1", disposition="buffered").status("running", ops=OPEN, signals={"1": "buffered"}),
    "torn view",
)

# --- SIG-5 ------------------------------------------------------------------------------------------------------------


def ended(**signals: str) -> Story:
    """Both waits have had their signal, and one more was taken in before the end."""
    return (
        story(TWICE)
        .call("a")
        .signal("1", disposition="released")
        .call("b")
        .signal("2", disposition="released")
        .signal("3", disposition="buffered")
        .call("c")
        .done(ops=OVER, signals={"1": "released", "2": "released", **signals})
        .settled()
    )


holds("SIG-5", "one too many is reported", ended(**{"3": "late"}))
holds("SIG-5", "it may still be called kept", ended(**{"3": "buffered"}))
holds(
    "SIG-5",
    "who does not tell of signals at all is not asked",
    story(TWICE)
    .signal("x", "nobody", disposition="buffered")
    .call("a")
    .signal("1")
    .call("b")
    .signal("2")
    .call("c")
    .done(),
    exercised=0,
)
holds(
    "SIG-5",
    "told at once that it is for nobody",
    story(TWICE)
    .signal("x", "nobody", disposition="unmatched")
    .call("a")
    .signal("1")
    .call("b")
    .signal("2")
    .call("c")
    .done(signals={"1": "released", "2": "released"}),
    exercised=0,
)
breaks("SIG-5", "it is gone", ended(), "amnesia")
breaks("SIG-5", "it counts as used", ended(**{"3": "released"}), "false certainty")

# --- SIG-6 ------------------------------------------------------------------------------------------------------------


def says(params: Mapping[str, Any]) -> str:
    """A request of `b` that asks for `params`, as receivers fingerprint it."""
    asked = json.dumps([dict(params), {"a": "a1"}], sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(asked.encode("ascii"), digest_size=16).hexdigest()


def steered(made: Story) -> Story:
    return made.steer("b", PORT, 1).steer("b", STARBOARD, 2)


holds(
    "SIG-6",
    "it is done as the second direction says",
    steered(story(HELM)).call("a").call("b", params=says(STARBOARD)).done().settled(),
)
holds(
    "SIG-6",
    "also over a restart",
    fallen(steered(story(HELM))).call("a").call("b", params=says(STARBOARD)).done().settled(),
    exercised=2,
)
holds(
    "SIG-6",
    "the second came too late, and was told so",
    story(HELM)
    .call("a")
    .steer("b", PORT, 1)
    .request("b", params=says(PORT))
    .steer("b", STARBOARD, 2, disposition="late")
    .applied()
    .reply()
    .done(),
    exercised=0,
)
holds(
    "SIG-6",
    "nobody knows whether the second had come",
    story(HELM)
    .steer("b", PORT, 1)
    .steer("b", STARBOARD, 2, outcome="indefinite")
    .call("a")
    .call("b", params=says(STARBOARD))
    .done(),
    exercised=0,
)


def crossing(made: Story) -> Story:
    """Neither direction was answered, and both are asked again: which of the two was taken first nobody can say."""
    made = made.steer("b", PORT, 1, outcome="indefinite").steer("b", STARBOARD, 2, outcome="indefinite")
    return made.steer("b", STARBOARD, 2).steer("b", PORT, 1)


holds(
    "SIG-6",
    "both had to be asked again, and came to be taken in either order",
    crossing(story(HELM)).call("a").call("b", params=says(PORT)).done(),
    exercised=0,
)
breaks(
    "SIG-6",
    "the first direction wins",
    steered(story(HELM)).call("a").call("b", params=says(PORT)).done(),
    "out of order",
)
breaks(
    "SIG-6",
    "a restart has forgotten both",
    fallen(steered(story(HELM))).call("a").call("b", params=says({"of": "b"})).done(),
    "amnesia",
)
breaks(
    "SIG-6",
    "taken for what had been accepted",
    story(HELM).call("a").call("b", params=says({"of": "b"})).done().steer("b", PORT, 1).done(),
    "false certainty",
)

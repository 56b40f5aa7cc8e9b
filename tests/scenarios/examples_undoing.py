"""Examples for CMP-1 to CMP-5."""

from __future__ import annotations

from collections.abc import Mapping

from scenarios.plan import Child, Par
from simkit.services import Request
from tests.scenarios.build import Story, leaf, par, plan, seq
from tests.scenarios.examples import breaks, holds

OPS = {"shows_operations": True}
TRIP = plan("a ledger", "b ledger a", "c ledger b", "d ledger c", "ua undo a", "ub undo b", "uc undo c")
SIDE = plan("a ledger", par("b ledger a", "c ledger a"), "d ledger b,c", "ub undo b", "uc undo c")
MAIL = plan("a ledger", par("m mailer a", "d ledger a"), "ua undo a", "um undo m")
PAID = plan("a ledger", "w wait go", "d ledger a,w", "ua undo a")
HALVES = plan(
    "a ledger",
    Par("halves", (Child("kid", seq("k1 ledger", "k2 ledger k1", "uk undo k1")), leaf("d ledger a"))),
)


def failed() -> Story:
    """Three effects, and the last call is refused."""
    return Story(TRIP, **OPS).up().start().call("a").call("b").call("c").call("d", "rejected")


def over(of: Story, state: str = "failed", **ops: str) -> Story:
    """The end, with these states of the undos beside those of the effects."""
    shown = {"a": "succeeded a1", "b": "succeeded b1", "c": "succeeded c1", "d": "failed"}
    if state == "blocked":
        return of.status("blocked", ops={**shown, **ops}, reason="compensation-unresolved: uc")
    return of.status("failed", ops={**shown, **ops}, reason="rejected: d")


UNDONE = {"uc": "succeeded uc1", "ub": "succeeded ub1", "ua": "succeeded ua1"}

# --- CMP-1 ------------------------------------------------------------------------------------------------------------
holds(
    "CMP-1",
    "the last one first",
    over(failed().call("uc").call("ub").call("ua"), **UNDONE).settled(),
    exercised=3,
)
holds(
    "CMP-1",
    "sent again after a crash that nobody had heard of it before",
    over(failed().request("uc").applied().crash().call("uc", "saved").call("ub").call("ua"), **UNDONE).settled(),
    exercised=3,
)
holds(
    "CMP-1",
    "side by side, and nobody knows which of them was accepted first",
    Story(SIDE, **OPS)
    .up()
    .start()
    .call("a")
    .call("b")
    .call("c")
    .call("d", "rejected")
    .call("ub")
    .call("uc")
    .status("failed")
    .settled(),
    exercised=2,
)
holds(
    "CMP-1",
    "word of an effect comes when all else is undone",
    Story(MAIL, **OPS)
    .up()
    .start()
    .call("a")
    .request("m")
    .applied()
    .reply(delivery="reset")
    .call("d", "rejected")
    .call("ua")
    .notice("m")
    .call("um")
    .status("failed"),
    exercised=2,
)
holds(
    "CMP-1",
    "nobody knows of the letter, and nobody takes it back",
    Story(MAIL, **OPS)
    .up()
    .start()
    .call("a")
    .request("m")
    .applied()
    .reply(delivery="reset")
    .call("d", "rejected")
    .call("ua")
    .status("failed", ops={"a": "succeeded a1", "m": "unresolved", "d": "failed", "ua": "succeeded ua1"})
    .settled(),
    exercised=2,
)
holds(
    "CMP-1",
    "the last one could not be undone, and the others are",
    over(failed().call("uc", "rejected").call("ub").call("ua"), "blocked", uc="failed").settled(),
    exercised=3,
)
breaks("CMP-1", "the first one first", over(failed().call("ua").call("ub").call("uc"), **UNDONE), "out of order")
breaks(
    "CMP-1",
    "all at once",
    over(
        failed()
        .request("uc")
        .request("ub")
        .request("ua")
        .applied(5)
        .reply(call=5)
        .call("uc", "saved")
        .applied(6)
        .reply(call=6),
    ),
    "out of order",
)
breaks(
    "CMP-1",
    "by the plan, not by their ends",
    Story(SIDE, **OPS)
    .up()
    .start()
    .call("a")
    .request("b")
    .call("c")
    .status("running", ops={"a": "succeeded a1", "b": "dispatched", "c": "succeeded c1"})
    .applied(2)
    .reply(call=2)
    .call("d", "rejected")
    .call("uc")
    .call("ub")
    .status("failed"),
    "out of order",
)
breaks(
    "CMP-1",
    "what nobody knows of",
    Story(MAIL, **OPS)
    .up()
    .start()
    .call("a")
    .request("m")
    .applied()
    .reply(delivery="reset")
    .call("d", "rejected")
    .call("um", carries={})
    .call("ua")
    .status("failed"),
    "false certainty",
)
breaks(
    "CMP-1",
    "what had been refused",
    Story(MAIL).up().start().call("a").call("m", "rejected").call("um", carries={}).status("failed"),
    "false certainty",
)
breaks(
    "CMP-1",
    "once more after a restart",
    failed().call("uc").call("ub").crash().call("uc", "saved").call("ua").status("failed"),
    "duplicate effect",
)
breaks(
    "CMP-1",
    "of a run that has come to its end",
    Story(PAID).up().start().call("a").status("waiting", on="go").signal("1").call("d").call("ua").done().settled(),
    "phantom effect",
)

# --- CMP-2 ------------------------------------------------------------------------------------------------------------
holds(
    "CMP-2",
    "killed in the middle, and taken up again",
    over(failed().call("uc").request("ub").crash().call("ub").call("ua"), **UNDONE).settled(),
)
holds(
    "CMP-2",
    "killed twice, and a reply lost",
    over(
        failed()
        .request("uc")
        .crash()
        .request("uc")
        .applied()
        .reply(delivery="reset")
        .call("uc", "saved")
        .crash()
        .call("ub")
        .call("ua"),
        **UNDONE,
    ).settled(),
    exercised=3,
)
holds(
    "CMP-2",
    "taken up late",
    over(failed().request("uc").crash().call("uc").call("ub").call("ua"), **UNDONE).slow(),
)
holds(
    "CMP-2",
    "the last one is left openly after the crash",
    over(failed().request("uc").crash().call("uc", "rejected"), "blocked", uc="failed", ub="planned").settled(),
    exercised=0,
)
holds(
    "CMP-2",
    "nothing came in between",
    over(failed().call("uc").call("ub").call("ua"), **UNDONE).crash().settled(),
    exercised=0,
)
breaks(
    "CMP-2",
    "a restart takes the run for one that is over",
    over(failed().request("uc").crash().call("uc"), uc="succeeded uc1", ub="skipped", ua="skipped").settled(),
    "lost effect",
)
holds(
    "CMP-2",
    "nothing that could be undone had been accepted",
    Story(TRIP, **OPS).up().start().call("a", "rejected").status("failed", ops={"a": "failed"}).settled(),
    exercised=0,
)
holds(
    "CMP-2",
    "its code has changed, and nobody may go on with it",
    over(failed().kill().up(code="3"), ua="planned", ub="planned", uc="planned").settled(),
    exercised=0,
)
holds(
    "CMP-2",
    "it has killed its workers, and is set aside as it is",
    Story(TRIP, **OPS, deaths_max=2)
    .up()
    .start()
    .call("a")
    .crash()
    .crash()
    .status("failed", ops={"a": "succeeded a1", "b": "planned", "ua": "planned"}, reason="deadly")
    .settled(),
    exercised=0,
)
holds(
    "CMP-2",
    "nobody knows of the mail, and its undo would have to come first",
    Story(MAIL, **OPS)
    .up()
    .start()
    .call("a")
    .request("m")
    .applied()
    .reply(delivery="reset")
    .call("d", "rejected")
    .status("failed", ops={"a": "succeeded a1", "m": "unresolved", "d": "failed", "ua": "planned", "um": "planned"})
    .settled(),
    exercised=0,
)
breaks(
    "CMP-2",
    "a run that has failed is over, whatever it owes",
    over(failed(), ua="planned", ub="planned", uc="planned").settled(),
    "lost effect",
)
breaks(
    "CMP-2",
    "the one under way is nobody's",
    failed().request("uc").crash().status("running", ops={"uc": "dispatched", "ub": "planned"}).bound(),
    "stuck",
)


# --- CMP-3 ------------------------------------------------------------------------------------------------------------
def down(times: int) -> Story:
    """The last effect cannot be undone: its receiver is down."""
    of = failed()
    for _ in range(times):
        of.call("uc", "error")
    return of


holds("CMP-3", "eight times, and then left", over(down(8), "blocked", uc="unresolved", ub="planned").settled())
holds("CMP-3", "refused, and left", over(failed().call("uc", "rejected"), "blocked", uc="failed").settled())
holds("CMP-3", "it answers at last", over(down(4).call("uc").call("ub").call("ua"), **UNDONE).settled(), exercised=0)
holds("CMP-3", "it is still tried", down(4).status("running", ops={"uc": "unknown"}), exercised=0)
holds(
    "CMP-3",
    "left, and then its receiver says that it was done",
    over(over(failed().call("uc", "rejected"), "blocked", uc="failed").notice("uc"), uc="reconciled").settled(),
    exercised=0,
)
breaks(
    "CMP-3",
    "left, and then settled by a word that has nothing to do with it",
    over(over(failed().call("uc", "rejected"), "blocked", uc="failed").signal("late", "hello"), uc="failed").settled(),
    "false certainty",
)
breaks("CMP-3", "passed over", over(down(3), uc="skipped", ub="skipped").settled(), "false certainty")
breaks(
    "CMP-3",
    "taken for done",
    over(down(3).call("ub"), uc="succeeded", ub="succeeded ub1").settled(),
    "false certainty",
)
breaks("CMP-3", "the run is done with it", down(2).done().settled(), "false certainty")
breaks("CMP-3", "tried without end", down(20).status("running", ops={"uc": "unknown"}).bound(), "stuck")


# --- CMP-4 ------------------------------------------------------------------------------------------------------------
def undone() -> Story:
    return over(failed().call("uc").call("ub").call("ua"), **UNDONE)


def rows(*names: str) -> list[dict[str, object]]:
    """The journal's lines of how these were accepted."""
    found: list[dict[str, object]] = []
    for name in names:
        found.append(
            {
                "sequence": 2 * len(found) + 1,
                "operation": name,
                "from": "planned",
                "to": "dispatched",
                "reason": "compensation",
            }
        )
        found.append({"sequence": 2 * len(found) + 2, "operation": name, "from": "dispatched", "to": "succeeded"})
    return found


holds("CMP-4", "both are shown", undone().settled(), exercised=3)
holds(
    "CMP-4",
    "both are in the journal too",
    undone().journal(transitions=rows("a", "b", "c", "uc", "ub", "ua")).settled(),
    exercised=6,
)
holds(
    "CMP-4",
    "the effect was found by asking, and undone",
    over(failed().call("uc"), "failed", uc="reconciled uc1", c="reconciled c1"),
)
holds("CMP-4", "nothing was undone", over(failed()), exercised=0)
breaks(
    "CMP-4",
    "the effect is gone",
    failed()
    .call("uc")
    .status("running", ops={"c": "succeeded c1", "uc": "succeeded uc1"})
    .status("running", ops={"c": "planned", "uc": "succeeded uc1"}),
    "amnesia",
)
breaks(
    "CMP-4",
    "the undo is written over the effect",
    failed().call("uc").status("running", ops={"c": "succeeded uc1", "uc": "succeeded uc1"}),
    "amnesia",
)
breaks(
    "CMP-4",
    "only the effect is shown",
    over(undone(), ua="succeeded ua1", ub="succeeded ub1"),
    "amnesia",
)
breaks("CMP-4", "the journal keeps the undos only", undone().journal(transitions=rows("uc", "ub", "ua")), "amnesia")


# --- CMP-5 ------------------------------------------------------------------------------------------------------------
def paid() -> Story:
    """An effect, and a while afterwards."""
    return (
        Story(PAID, **OPS).up().start().call("a").status("waiting", on="go", ops={"a": "succeeded a1", "ua": "planned"})
    )


def asking(params: Mapping[str, object], nonce: str) -> str:
    """The fingerprint of a request to undo."""
    return Request("ledger", "r1", "ua", params=params, carries={"a": nonce}).fingerprint()


OTHER = {"amount": 101}
ENOUGH = {"a": "succeeded a1", "ua": "succeeded ua1"}
holds(
    "CMP-5",
    "as it was recorded, by a worker that has never seen it",
    paid().crash().signal("1").call("d", "rejected").call("ua").status("failed", ops=ENOUGH).settled(),
)
holds(
    "CMP-5",
    "a direction came too late",
    paid()
    .steer("ua", OTHER, disposition="late")
    .signal("1")
    .call("d", "rejected")
    .call("ua", params=asking({"undo": "a"}, "a1"))
    .status("failed", ops=ENOUGH),
)
holds(
    "CMP-5",
    "a direction came before the effect",
    Story(PAID, **OPS)
    .up()
    .start()
    .steer("ua", OTHER)
    .call("a")
    .crash()
    .signal("1")
    .call("d", "rejected")
    .call("ua", params=asking(OTHER, "a1"))
    .status("failed", ops=ENOUGH),
)
holds(
    "CMP-5",
    "the owner has failed, and its child undoes what it did",
    Story(HALVES)
    .up()
    .start()
    .call("a")
    .call("kid/k1")
    .call("d", "rejected")
    .call("kid/uk", carries={"k1": "kid/k11"})
    .status("failed")
    .settled(),
)
holds(
    "CMP-5",
    "nothing had changed",
    paid().signal("1").call("d", "rejected").call("ua").status("failed", ops=ENOUGH),
    exercised=0,
)
breaks(
    "CMP-5",
    "without what the effect was answered with",
    paid().crash().signal("1").call("d", "rejected").call("ua", carries={}).status("failed"),
    "amnesia",
)
breaks(
    "CMP-5",
    "with what it is answered now",
    paid().crash().signal("1").call("d", "rejected").call("ua", carries={"a": "a2"}).status("failed"),
    "forked lineage",
)
breaks(
    "CMP-5",
    "as it was told in the meantime",
    paid().steer("ua", OTHER).signal("1").call("d", "rejected").call("ua", params=asking(OTHER, "a1")).status("failed"),
    "changed decision",
)

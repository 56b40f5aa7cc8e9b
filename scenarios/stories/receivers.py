"""Stories about what receivers say beside an answer: not yet, never, no longer, by the way, and nothing at all."""

from __future__ import annotations

from scenarios.interruption import Interruption, Site
from scenarios.plan import Call, Par, Seq
from scenarios.story import Story, in_order, ledger

#: Longer than a caller waits for an answer.
_LATE_NS = 1_300_000_000
#: Longer than a receiver's keys live, shortened for testing.
_OUTAGE_NS = 40_000_000_000
#: More questions than anybody asks.
_DOWN = ("down",) * 60

STORIES = (
    Story(
        "slowpoke",
        "A payment takes longer than its caller waits: asked again under the same key, the receiver is still at it.",
        in_order(ledger("pay", amount=9), ledger("ship", "pay")),
        extras=(
            Interruption("delay", Site("barrier", "pay", 1, "received"), ns=_LATE_NS),
            Interruption("delay", Site("barrier", "ship", 1, "received"), ns=_LATE_NS),
            Interruption(
                "delay",
                Site("barrier", "pay", 1, "received"),
                ns=_LATE_NS,
                then=Interruption("kill", Site("barrier", None, 1, "received")),
            ),
        ),
        generic=False,
    ),
    Story(
        "declined",
        "A charge that the receiver declines, which it has saved: asked again it says so again, and that is the end of it.",
        in_order(
            ledger("open"), Call("charge", "ledger", {"amount": 13}, ("open",), ("reject",)), ledger("close", "charge")
        ),
        extras=(
            Interruption("drop", Site("barrier", "charge", 1, "applied")),
            Interruption("reset", Site("barrier", "charge", 1, "applied")),
            Interruption("error-after", Site("barrier", "charge", 1, "applied")),
            Interruption("kill", Site("barrier", "charge", 1, "applied")),
            Interruption("kill", Site("barrier", "charge", 1, "applied", unit="engine")),
        ),
        generic=False,
    ),
    Story(
        "lapse",
        "Everything is down for longer than the receiver keeps the key of a payment that may have been made.",
        in_order(ledger("pay", amount=40), ledger("thank", "pay")),
        extras=(
            Interruption("power", Site("barrier", "pay", 1, "applied"), ns=_OUTAGE_NS),
            Interruption("power", Site("barrier", "pay", 1, "received"), ns=_OUTAGE_NS),
            Interruption("power", Site("barrier", "thank", 1, "applied"), ns=_OUTAGE_NS),
            Interruption("expire", Site("barrier", "pay", 1, "applied")),
        ),
        generic=False,
    ),
    Story(
        "postcards",
        "Two letters whose receipts are lost; later there is word of one of them, and its errand goes on.",
        in_order(
            Par(
                "post",
                (
                    Seq("one", (Call("letter", "mailer", {"to": 1}, (), ("reset-after",)), ledger("stamp", "letter"))),
                    Call("parcel", "mailer", {"to": 2}, (), ("reset-after",)),
                ),
            ),
        ),
        extras=(
            Interruption("notice", Site("end"), target="letter"),
            Interruption("notice", Site("end"), target="parcel"),
            Interruption("notice", Site("barrier", "letter", 1, "applied"), target="letter", ns=1_000_000),
            Interruption("notice", Site("barrier", "parcel", 1, "applied"), target="parcel", ns=200_000_000),
            Interruption(
                "notice",
                Site("end"),
                target="letter",
                then=Interruption("kill", Site("barrier", "stamp", 1, "applied", unit="engine")),
            ),
        ),
        generic=False,
    ),
    Story(
        "archive",
        "A shipment whose receipt is lost, at a registry that cannot be asked: for a while, or not at all.",
        in_order(
            Par(
                "boxes",
                (
                    Call(
                        "box", "registry", {"box": 1}, (), ("error-before",), tries=2, lookups=("down", "down", "down")
                    ),
                    Call("crate", "registry", {"box": 2}, (), ("reset-after",), lookups=_DOWN),
                ),
            ),
            ledger("bill", "box", "crate"),
        ),
        extras=(
            Interruption("unmatched", Site("ack", verb="start")),
            Interruption("kill", Site("barrier", "crate", 1, "received")),
        ),
        generic=False,
    ),
)

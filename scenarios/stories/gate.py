"""Stories about people who decide."""

from __future__ import annotations

import attrs

from scenarios.interruption import Interruption, Site
from scenarios.plan import Approve, Par, Race, Seq, Sleep
from scenarios.story import NAP_NS, Story, in_order, ledger

_ASKED = Site("waiting", "consent")
_VALIDITY_NS = 2_000_000_000
#: An approval that is asked for early, and used only when everybody has rested.
_BRIEF_NS, _REST_NS = 1_500_000_000, 200_000_000
#: Long enough for a brief approval to be over, also for what would be on its way.
_DOWN_NS = 2_000_000_000
#: The desk is asked whether whoever approved may do so: somebody holds what was approved, and has not sent it.
_AT_DESK = Site("barrier", "consent", 1, "received")


def _down(op: str, unit: str = "worker") -> Interruption:
    return Interruption("kill", Site("waiting", op, unit=unit), ns=_DOWN_NS)


STORIES = (
    Story(
        "gate",
        "Reserve, have the payment approved, pay, ship: no money moves without a decision that is good for this payment.",
        in_order(
            ledger("reserve"),
            Approve("consent", "pay", _VALIDITY_NS),
            ledger("pay", "reserve", "consent", amount=100),
            ledger("ship", "pay"),
        ),
        extras=(
            Interruption("deny", _ASKED),
            Interruption("forge", _ASKED),
            Interruption("revoke", _ASKED, ns=400_000_000),
            # Withdrawn, and the desk cannot be asked at first: no word is not a yes.
            Interruption("revoke", _ASKED, ns=400_000_000, then=Interruption("reset", _AT_DESK)),
            Interruption("cross", _ASKED),
            Interruption("late-decision", _ASKED),
            Interruption("stale-decision", _ASKED, target="pay"),
            Interruption("kill", Site("ack", "consent", verb="decide")),
            Interruption("repeat", Site("ack", "consent", verb="decide")),
            Interruption("steer", _AT_DESK, target="pay"),
            Interruption("kill", _AT_DESK),
        ),
    ),
    Story(
        "signatures",
        "Two people sign, each for something else and for a short while; what the first has signed for is sent only later.",
        attrs.evolve(
            in_order(
                ledger("draft"),
                Par(
                    "signing",
                    (
                        Approve("legal", "publish", _BRIEF_NS),
                        Seq("aside", (Approve("board", "announce", _BRIEF_NS), ledger("announce", "board"))),
                    ),
                ),
                Sleep("rest", _REST_NS),
                ledger("publish", "draft", "legal", "announce"),
            ),
            code="1",
        ),
        extras=(
            Interruption("late-decision", Site("waiting", "board")),
            Interruption("forge", Site("waiting", "board")),
            Interruption("cancel", Site("waiting", "board")),
            Interruption("revoke", Site("waiting", "board"), ns=_BRIEF_NS - 2 * _REST_NS),
            Interruption("steer", Site("waiting", "rest"), target="publish"),
            _down("rest"),
            _down("board", "engine"),
            Interruption(
                "deploy", Site("waiting", "legal"), arg="3", then=Interruption("deploy", Site("end"), arg="1")
            ),
        ),
        generic=False,
    ),
    Story(
        "counsel",
        "One person consents twice, and may do so no more the second time: what the desk said once is no answer to the next.",
        in_order(
            ledger("draft"),
            Approve("first", "sign"),
            ledger("sign", "draft", "first"),
            Approve("second", "seal"),
            ledger("seal", "sign", "second"),
        ),
        extras=(Interruption("revoke", Site("waiting", "second"), ns=400_000_000),),
        generic=False,
    ),
    Story(
        "waiver",
        "A fee is waived if somebody says so soon enough; otherwise nobody may say so any more, and it is paid.",
        in_order(
            ledger("bill"),
            Race(
                "soon",
                (
                    Seq("kindly", (Approve("mercy", "waive", 2 * NAP_NS), ledger("waive", "bill"))),
                    Seq("firmly", (Sleep("patience", NAP_NS), ledger("pay", "bill"))),
                ),
            ),
            ledger("close", "bill"),
        ),
        extras=(
            Interruption("late-decision", Site("waiting", "mercy")),
            Interruption("deny", Site("waiting", "mercy")),
            Interruption("forge", Site("waiting", "mercy")),
        ),
        generic=False,
    ),
)

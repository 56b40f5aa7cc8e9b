"""Stories about workers that are asked to leave: they end what they have begun, hand back the rest, and that costs nothing."""

from __future__ import annotations

from scenarios.interruption import Interruption, Site
from scenarios.operation import Allowance
from scenarios.plan import Call, Model, Par, Plan, Seq
from scenarios.story import Story, in_order, ledger

#: After a reply: about when the worker is given what its report has released, and before it can have begun with that.
_GIVEN_NS = 2_000_000
#: Longer than a real process takes to come up, shorter than a caller's patience.
_BOOT_NS = 700_000_000
_SLOW = ("slow",)


def _received(op: str) -> Site:
    return Site("barrier", op, 1, "received")


def _applied(op: str) -> Site:
    return Site("barrier", op, 1, "applied")


def _empty_handed(op: str, then: Interruption | None = None) -> Interruption:
    """The worker is to leave as it is given what follows on `op`: it has that in hand, and has sent nothing of it."""
    return Interruption("leave", Site("barrier", op, 1, "replied"), ns=_GIVEN_NS, then=then)


def _settling_in(then: Interruption) -> Interruption:
    """The answer to the first request takes so long that another worker is there for certain."""
    return Interruption("delay", _applied("ask"), ns=_BOOT_NS, then=then)


STORIES = (
    Story(
        "shift-change",
        "Whoever leaves ends the letter that is under way, which goes out once, and hands back what was not begun.",
        in_order(
            ledger("open"),
            Par(
                "jobs",
                (
                    Call("pay", "ledger", {"amount": 9}, ("open",), tries=5),
                    Call("letter", "mailer", {"to": 4}, ("open",), _SLOW),
                    Call("look", "reader", {"at": 4}, ("open",)),
                ),
            ),
            ledger("close", "pay", "letter", "look"),
        ),
        extras=(
            Interruption("leave", _received("letter")),
            Interruption("leave", _applied("letter"), then=Interruption("leave", _applied("close"))),
            _empty_handed("open"),
            _empty_handed("open", then=Interruption("kill", _applied("pay"))),
            _empty_handed("open", then=_empty_handed("letter")),
            Interruption("leave", Site("ack", verb="start")),
        ),
        generic=False,
    ),
    Story(
        "namesake",
        "Two workers of one name: while one is at a long search, the other leaves, and takes nothing along.",
        in_order(ledger("ask"), Call("search", "reader", {"all": 1}, ("ask",), _SLOW), ledger("order", "search")),
        extras=(
            Interruption(
                "second", _received("ask"), then=_settling_in(Interruption("leave", _received("search"), arg="other"))
            ),
            Interruption("second", _received("ask"), then=Interruption("leave", _received("search"))),
            _empty_handed("ask"),
        ),
        generic=False,
    ),
    Story(
        "unspent",
        "A thought that was handed back unsent has used nothing of what may be used.",
        Plan(
            Seq(
                "main",
                (
                    Model("hear", "what?", 40, uses=20),
                    Model("think", "how?", 50, (), ("hear",), uses=20),
                    ledger("close", "think"),
                ),
            ),
            Allowance(tokens=200),
        ),
        extras=(_empty_handed("hear"), Interruption("leave", _applied("think"))),
        generic=False,
    ),
)

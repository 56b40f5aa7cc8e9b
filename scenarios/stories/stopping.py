"""Stories about being told to stop: early, in the middle of something, too late, and by somebody who has others to stop."""

from __future__ import annotations

import attrs

from scenarios.interruption import Barrier, Interruption, Site
from scenarios.plan import Approve, Call, Child, Compensate, Par, Seq, Sleep, Wait
from scenarios.story import NAP_NS, Story, in_order, ledger

#: Long enough to be seen at work, short enough for no caller to give up.
_BUSY_NS = 100_000_000
#: Longer than any caller waits.
_DEAF_NS = 1_300_000_000
#: Longer than a lease shortened for testing: the answer comes when nobody counts on it any more.
_AWAY_NS = 800_000_000
#: More questions than anybody asks.
_DOWN = ("down",) * 60


def _cancel(op: str, barrier: Barrier = "received", then: Interruption | None = None) -> Interruption:
    """The run is cancelled as the first request of `op` comes to a barrier; the request is held until that is answered."""
    return Interruption("cancel", Site("barrier", op, 1, barrier), then=then)


def _cancel_waiting(op: str, then: Interruption | None = None) -> Interruption:
    return Interruption("cancel", Site("waiting", op), then=then)


def _kill(op: str, unit: str = "worker", barrier: Barrier = "applied") -> Interruption:
    return Interruption("kill", Site("barrier", op, 1, barrier, unit=unit))


def _late(op: str, action: str, ns: int) -> Interruption:
    """The answer to the first request of `op` comes late: the reply is delayed, or its worker is stopped."""
    late = Interruption("delay", Site("barrier", op, 1, "applied"), ns=ns)
    return late if action == "delay" else attrs.evolve(late, action="pause")


_SOON = Interruption("kill", Site("time", ns=NAP_NS // 2, unit="engine"))
_RESTART = Interruption("kill", Site("end", unit="engine"))
#: Three stops more, each well within the grace of the one before it.
_ONCE_MORE = Interruption("cancel", Site("time", ns=180_000_000))
_AGAIN = attrs.evolve(_ONCE_MORE, then=attrs.evolve(_ONCE_MORE, then=_ONCE_MORE))

STORIES = (
    Story(
        "recall",
        "An order is recalled: while it is reserved, approved, paid for, while it cools off, as the letter leaves, too late.",
        in_order(
            ledger("reserve"),
            Approve("consent", "pay"),
            ledger("pay", "reserve", "consent", amount=100),
            Sleep("cool", 2 * NAP_NS),
            Call("letter", "mailer", {"to": 1}, ("pay",)),
        ),
        extras=(
            Interruption("cancel", Site("ack", verb="start")),
            _cancel("reserve", then=_kill("reserve", "engine")),
            _cancel_waiting("consent"),
            Interruption("cancel", Site("ack", "consent", verb="decide")),
            _cancel("pay", "applied"),
            _cancel_waiting("cool", then=_RESTART),
            _cancel("letter", then=_late("letter", "delay", _BUSY_NS)),
            Interruption("cancel", Site("end")),
        ),
        generic=False,
    ),
    Story(
        "deaf",
        "A receiver that takes its time, whoever is told to stop: the run ends without it, and no late answer counts.",
        in_order(ledger("ask"), ledger("knock", "ask"), ledger("close", "knock")),
        extras=(
            _cancel("ask"),
            _cancel("ask", then=_late("ask", "delay", _DEAF_NS)),
            # The engine is away for a moment in the middle of the grace.
            _cancel("ask", then=attrs.evolve(_late("ask", "delay", _DEAF_NS), then=_SOON)),
            _cancel("knock", then=_late("knock", "delay", _DEAF_NS)),
            _cancel("knock", then=_late("knock", "pause", _AWAY_NS)),
            _cancel("close", then=_late("close", "pause", _AWAY_NS)),
            _cancel("close", then=_late("close", "delay", _BUSY_NS)),
            _cancel("close", "replied"),
            Interruption("cancel", Site("end"), then=_RESTART),
        ),
        generic=False,
    ),
    Story(
        "household",
        "A household is given up: its children go with it, and theirs; the lodger, who is on his own, stays.",
        in_order(
            ledger("rent"),
            Child("lodger", Seq("room", (ledger("bed"), Sleep("rest", NAP_NS), ledger("leave", "bed"))), detached=True),
            Child(
                "kid",
                Seq(
                    "day",
                    (
                        ledger("school"),
                        Child("friend", Seq("game", (ledger("toss"), ledger("catch", "toss")))),
                        ledger("home", "school"),
                    ),
                ),
            ),
            ledger("clean", "rent"),
        ),
        extras=(
            Interruption("cancel", Site("ack", verb="start")),
            _cancel("lodger/bed"),
            _cancel("lodger/bed", then=_kill("lodger/bed", "engine")),
            _cancel("kid/school", then=_late("kid/school", "delay", _BUSY_NS)),
            _cancel("kid/school", then=_kill("kid/school", "engine")),
            _cancel("kid/friend/toss", then=_late("kid/friend/toss", "delay", _DEAF_NS)),
            _cancel("kid/friend/catch", then=_kill("kid/friend/catch")),
            Interruption("cancel", Site("end")),
        ),
        generic=False,
    ),
    Story(
        "unwind",
        "A trip is called off before it is final: what was booked is cancelled again, the last booking first, whoever dies.",
        in_order(
            ledger("flight"),
            ledger("hotel", "flight"),
            Wait("final", "go"),
            ledger("ticket", "flight", "final"),
            Compensate("unflight", "flight", "ledger", {"undo": "flight"}),
            Compensate("unhotel", "hotel", "ledger", {"undo": "hotel"}),
        ),
        extras=(
            _cancel_waiting("final"),
            _cancel_waiting("final", then=_kill("unhotel", "engine", "received")),
            _cancel_waiting("final", then=_kill("unhotel")),
            _cancel_waiting("final", then=_kill("unflight", "engine")),
            _cancel("hotel"),
            _cancel("hotel", then=_kill("hotel", "engine")),
            _cancel("ticket", then=_kill("unhotel", barrier="received")),
        ),
        generic=False,
    ),
    Story(
        "astray",
        "Two receipts have gone astray when the order is called off: what nobody knows by then stays in plain sight.",
        in_order(
            ledger("order"),
            Par(
                "sent",
                (
                    Call("letter", "mailer", {"to": 1}, ("order",), ("reset-after",)),
                    Call("parcel", "registry", {"box": 1}, ("order",), ("reset-after",), lookups=_DOWN),
                    Wait("word", "go"),
                ),
            ),
            ledger("bill", "order"),
        ),
        extras=(
            _cancel_waiting("word"),
            _cancel_waiting("word", then=_RESTART),
            _cancel("order", then=Interruption("drop", Site("barrier", "order", 1, "applied"))),
            _cancel("letter"),
            _cancel("parcel", then=_kill("parcel", "engine")),
        ),
        generic=False,
    ),
    Story(
        "pester",
        "A stop is asked for again and again: what does not heed it is ended after its grace, and not later each time.",
        in_order(
            ledger("book"),
            ledger("knock", "book"),
            ledger("enter", "knock"),
            # Slow to be undone, so that there is still somebody to pester.
            Compensate("unbook", "book", "ledger", {"undo": "book"}, ("error-before",) * 4),
        ),
        extras=(_cancel("knock", then=attrs.evolve(_late("knock", "delay", _DEAF_NS), then=_AGAIN)),),
        generic=False,
    ),
)

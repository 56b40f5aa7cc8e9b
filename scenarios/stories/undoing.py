"""Stories about undoing: bookings that are cancelled again, whoever dies over it, is not known of, or cannot be undone."""

from __future__ import annotations

import attrs

from scenarios.interruption import Action, Barrier, Interruption, Site
from scenarios.plan import Call, Child, Compensate, Fail, Par, Seq, Sleep, Wait
from scenarios.story import NAP_NS, Story, in_order, ledger

#: A receiver that is down for longer than anybody may try.
_OUT = ("error-before",) * 60
#: Said when everything is over; it changes no end.
_LATE_WORD = Interruption("unmatched", Site("end"))


def _at(
    action: Action, op: str, barrier: Barrier, unit: str = "worker", nth: int = 1, then: Interruption | None = None
) -> Interruption:
    return Interruption(action, Site("barrier", op, nth, barrier, unit=unit), then=then)


def _undo(of: str, script: tuple[str, ...] = ()) -> Compensate:
    return Compensate(f"no-{of}", of, "ledger", {"undo": of}, script)


def _refused(name: str, *carries: str) -> Call:
    """What makes the run fail."""
    return Call(name, "ledger", {"for": name}, carries, ("reject",))


STORIES = (
    Story(
        "saga",
        "Three bookings, and then the trip is turned down: they are cancelled, the last one first, whoever dies over it.",
        in_order(
            ledger("flight"),
            ledger("hotel", "flight"),
            ledger("car", "hotel"),
            _refused("confirm", "flight", "car"),
            _undo("flight"),
            _undo("hotel"),
            _undo("car"),
        ),
        extras=(
            _at("kill", "no-car", "received", "engine"),
            _at("kill", "no-hotel", "applied"),
            _at("kill", "no-flight", "replied", "engine"),
            _at("drop", "no-hotel", "applied"),
            _at("kill", "no-hotel", "received", "engine", then=_at("kill", "no-flight", "applied")),
            _at("cancel", "car", "received"),
        ),
        generic=False,
    ),
    Story(
        "crossing",
        "Two bookings side by side, of which the one that was asked for first is confirmed last: it is the first to be undone.",
        in_order(
            Par("both", (Call("room", "ledger", {"beds": 2}, script=("slow",)), ledger("seat"))),
            ledger("pay", "room", "seat"),
            _refused("confirm", "pay"),
            _undo("room"),
            _undo("seat"),
            _undo("pay"),
        ),
        extras=(_at("kill", "no-room", "applied", "engine"), _at("kill", "no-seat", "applied")),
        generic=False,
    ),
    Story(
        "mislaid",
        "A receipt goes astray just before the order is refused: what nobody knows to have happened is not undone.",
        in_order(
            ledger("order"),
            Par(
                "sent",
                (
                    Call("letter", "mailer", {"to": 1}, ("order",), ("reset-after",)),
                    Call("invoice", "mailer", {"to": 2}, ("order",)),
                    Seq("later", (Sleep("pause", NAP_NS), _refused("credit", "order"))),
                ),
            ),
            _undo("order"),
            _undo("letter"),
            _undo("invoice"),
        ),
        extras=(
            _at("reset", "invoice", "applied"),
            _at("kill", "no-order", "received", "engine"),
            _at("cancel", "order", "received", then=_at("drop", "order", "applied")),
        ),
        generic=False,
    ),
    Story(
        "jammed",
        "The hotel cannot be reached to cancel the room: it is tried a number of times, and then left for somebody to see.",
        in_order(
            ledger("flight"),
            ledger("hotel", "flight"),
            _refused("confirm", "flight", "hotel"),
            _undo("flight"),
            _undo("hotel", _OUT),
        ),
        extras=(_at("kill", "no-hotel", "replied", "engine", nth=3), _LATE_WORD),
        generic=False,
    ),
    Story(
        "forfeit",
        "The hotel does not take the room back, and says so.",
        in_order(
            ledger("flight"),
            ledger("hotel", "flight"),
            _refused("confirm", "flight", "hotel"),
            _undo("flight"),
            _undo("hotel", ("reject",)),
        ),
        extras=(_at("kill", "no-hotel", "replied", "engine"), _at("cancel", "hotel", "received"), _LATE_WORD),
        generic=False,
    ),
    Story(
        "bequest",
        "A payment is given back as it was made, whatever has been said since then, and whatever code runs by then.",
        attrs.evolve(
            in_order(
                ledger("pay", amount=100),
                Wait("word", "go"),
                _refused("confirm", "pay", "word"),
                Compensate("refund", "pay", "ledger", {"amount": 100}),
            ),
            code="1",
        ),
        extras=(
            Interruption("steer", Site("waiting", "word"), target="refund"),
            Interruption("deploy", Site("waiting", "word"), arg="2"),
            Interruption("kill", Site("waiting", "word", unit="engine")),
            Interruption(
                "steer", Site("waiting", "word"), target="refund", then=_at("kill", "refund", "applied", "engine")
            ),
        ),
        generic=False,
    ),
    Story(
        "estate",
        "The order that a trip was part of falls through while that is still being booked: it cancels what it has booked.",
        in_order(
            ledger("open"),
            Par(
                "halves",
                (
                    Child(
                        "trip",
                        Seq(
                            "t",
                            (ledger("flight"), Sleep("rest", 3 * NAP_NS), ledger("hotel", "flight"), _undo("flight")),
                        ),
                    ),
                    Seq("later", (Sleep("pause", NAP_NS), _refused("credit", "open"))),
                ),
            ),
        ),
        extras=(
            _at("kill", "credit", "replied", "engine"),
            _at("kill", "trip/no-flight", "received", "engine"),
            _at("kill", "trip/no-flight", "applied"),
        ),
        generic=False,
    ),
    Story(
        "belated",
        "A lost receipt holds a trip up, and with word of the letter it falls through: only then is it cancelled again.",
        in_order(
            ledger("flight"),
            Call("letter", "mailer", {"to": 1}, ("flight",), ("reset-after",)),
            Fail("sold-out", "sold out"),
            Compensate("no-flight", "flight", "ledger", {"undo": "flight"}),
        ),
        extras=(Interruption("notice", Site("end"), target="letter"),),
        generic=False,
    ),
)

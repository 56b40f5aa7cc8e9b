"""Stories about who has work in hand: owners that die, stall, are slow, come back, or share a name."""

from __future__ import annotations

from scenarios.interruption import Interruption, Site
from scenarios.plan import Approve, Call, Par, Sleep
from scenarios.story import NAP_NS, Story, in_order, ledger

#: Long enough for another to take over, short enough for an answer in hand to be good still.
_PAUSE_NS = 800_000_000
#: Many leases.
_STALL_NS = 3_000_000_000
#: Longer than two leases shortened for testing, shorter than a caller's patience.
_SLOW_NS = 700_000_000
_HOUR_NS = 3_600_000_000_000


def _received(op: str, nth: int = 1, unit: str = "worker") -> Site:
    return Site("barrier", op, nth, "received", unit=unit)


def _applied(op: str, nth: int = 1, unit: str = "worker") -> Site:
    return Site("barrier", op, nth, "applied", unit=unit)


def _jump(site: Site, ns: int, then: Interruption | None = None) -> Interruption:
    return Interruption("jump", site, ns=ns, then=then)


def _long(op: str) -> Interruption:
    """The answer takes longer than a lease."""
    return Interruption("delay", _applied(op), ns=_SLOW_NS)


def _next_long(count: int) -> Interruption:
    """The next answers, so many, take longer than a lease, side by side: whichever is asked for first."""
    then = _next_long(count - 1) if count > 1 else None
    return Interruption("delay", Site("barrier", None, 1, "received"), ns=_SLOW_NS, then=then)


def _overtaken(op: str) -> Interruption:
    """The owner comes back with its answer while the next one still waits for another."""
    return Interruption("pause", _received(op), ns=_PAUSE_NS, then=Interruption("delay", _applied(op, 2), ns=_SLOW_NS))


STORIES = (
    Story(
        "succession",
        "A price that is never quoted twice alike, and an order by it: of two owners' quotes one counts, the newer owner's.",
        in_order(
            Call("quote", "reader", {"item": 7}), ledger("order", "quote"), Call("note", "reader", {}, ("order",))
        ),
        extras=(
            Interruption("pause", _applied("quote"), ns=_PAUSE_NS),
            _overtaken("quote"),
            _overtaken("note"),
            Interruption("pause", _applied("note"), ns=_STALL_NS),
        ),
        generic=False,
    ),
    Story(
        "direction",
        "A letter is approved, and changed twice while a worker holds it and asks for the approver's authority.",
        in_order(
            ledger("draft"),
            Approve("consent", "letter"),
            Call("letter", "mailer", {"amount": 100}, ("draft",)),
        ),
        extras=(
            Interruption("steer", _received("consent"), target="letter"),
            # It has died over something that it had not sent yet.
            Interruption("kill", _received("consent")),
            Interruption(
                "steer",
                _received("consent"),
                target="letter",
                then=Interruption("kill", Site("ack", "consent", verb="decide", unit="engine")),
            ),
        ),
        generic=False,
    ),
    Story(
        "fence",
        "Two writes to a receiver that turns away whoever has been replaced.",
        in_order(Call("lock", "fenced", {"door": 1}), Call("write", "fenced", {"page": 1}, ("lock",))),
        extras=(
            Interruption("pause", _applied("lock"), ns=_PAUSE_NS),
            Interruption("kill", _received("write"), then=Interruption("kill", _applied("write", 2))),
        ),
        generic=False,
    ),
    Story(
        "clocks",
        "A long look, a rest and another look, while the clocks of the machines are set.",
        in_order(
            Call("look", "reader", {"far": 1}), Sleep("rest", NAP_NS), Call("look-again", "reader", {}, ("look",))
        ),
        extras=(
            *(
                _jump(_received(op, unit="engine"), ns, _long(op))
                for op in ("look", "look-again")
                for ns in (_HOUR_NS, -_HOUR_NS)
            ),
            *(_jump(_received("look", unit=unit), _HOUR_NS, _overtaken("look-again")) for unit in ("engine", "worker")),
            _jump(_received("look"), -_HOUR_NS, _long("look")),
            *(_jump(Site("waiting", "rest", unit="engine"), ns) for ns in (_HOUR_NS, -_HOUR_NS)),
        ),
        generic=False,
    ),
    Story(
        "waiting-rooms",
        "One worker has three long looks under way at once, and is at all of them.",
        in_order(
            Par("looks", tuple(Call(name, "reader", {"at": name}) for name in ("left", "front", "right"))),
            ledger("leave", "left", "front", "right"),
        ),
        extras=(_next_long(3),),
        generic=False,
    ),
    Story(
        "poison",
        "A step that no worker survives, and one after it.",
        in_order(ledger("bomb"), ledger("after", "bomb")),
        extras=(
            Interruption("kill", _received("bomb", 0)),
            Interruption("kill", _received("bomb", 0), then=Interruption("kill", _received("bomb", 3, unit="engine"))),
        ),
        generic=False,
    ),
    Story(
        "two-tries",
        "A payment that may be tried twice: one death leaves it one try, however often it is noticed.",
        in_order(Call("pay", "ledger", {"amount": 9}, tries=2), ledger("ship", "pay")),
        extras=(
            Interruption("kill", _received("pay")),
            Interruption("kill", _applied("pay"), then=Interruption("kill", _received("ship", unit="engine"))),
            Interruption("drop", _applied("pay")),
        ),
        generic=False,
    ),
    Story(
        "patience",
        "Receivers that take longer than a lease lasts: a slow owner is no dead one, and its namesake takes nothing from it.",
        in_order(Call("search", "reader", {"all": 1}), ledger("order", "search")),
        extras=(
            _long("search"),
            Interruption("second", _received("search"), then=_long("search")),
            Interruption("second", _received("order"), then=_long("order")),
            _overtaken("search"),
            _jump(_received("search", unit="engine"), _HOUR_NS, _long("search")),
        ),
        generic=False,
    ),
)

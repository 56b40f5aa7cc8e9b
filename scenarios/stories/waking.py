"""Stories about being woken: by a signal, by one too many, by none at all, and by one that comes when time is up."""

from __future__ import annotations

from scenarios.interruption import Interruption, Site
from scenarios.plan import Wait
from scenarios.story import NAP_NS, Story, in_order, ledger

#: How long the silence lasts after a wait should have ended by itself: longer than anybody may be late.
_SILENCE_NS = 1_200_000_000
#: How long an answer is awaited: longer than any process needs to come up again.
_VIGIL_NS = 8 * NAP_NS
#: And so long that half of it is more than anybody may be late.
_WATCH_NS = 20 * NAP_NS
#: How long the server is away: until the time of a wait is over.
_AWAY_NS = NAP_NS + 50_000_000


def _silence(op: str) -> Interruption:
    """Nothing is heard until long after the time of the wait."""
    return Interruption("late-signal", Site("waiting", op), ns=_SILENCE_NS)


STORIES = (
    Story(
        "doorbell",
        "The bell rings twice, and each ring opens once; some ring again, ring elsewhere, too early, or when all have left.",
        in_order(
            ledger("fetch"),
            Wait("ring", "bell"),
            ledger("open", "fetch", "ring"),
            Wait("knock", "bell"),
            ledger("close", "open", "knock"),
        ),
        extras=(
            Interruption("unmatched", Site("ack", verb="start")),
            Interruption("unmatched", Site("end")),
            Interruption("late-signal", Site("end"), then=Interruption("kill", Site("end", unit="engine"))),
            Interruption("late-signal", Site("barrier", "open", 1, "received")),
            Interruption("repeat", Site("ack", "ring", verb="signal")),
            Interruption(
                "early",
                Site("ack", "knock", verb="start"),
                then=Interruption("kill", Site("barrier", "open", 1, "applied", unit="engine")),
            ),
            # Both rings come before anybody listens.
            Interruption(
                "early",
                Site("ack", "ring", verb="start"),
                then=Interruption("early", Site("ack", "knock", verb="start")),
            ),
            Interruption(
                "unmatched",
                Site("barrier", "close", 1, "received"),
                then=Interruption("kill", Site("barrier", "close", 1, "applied", unit="engine")),
            ),
        ),
        generic=False,
    ),
    Story(
        "vigil",
        "An answer is awaited for a moment only, and none comes: the run goes on without, whoever was away meanwhile.",
        in_order(ledger("ask"), Wait("reply", "answer", _VIGIL_NS), ledger("decide", "ask")),
        extras=(
            _silence("reply"),
            Interruption("kill", Site("waiting", "reply", unit="engine"), then=_silence("reply")),
            Interruption("kill", Site("waiting", "reply"), then=_silence("reply")),
        ),
        generic=False,
    ),
    Story(
        "watch",
        "An answer is awaited for so long that the server is away and back before that is over; none comes.",
        in_order(ledger("ask"), Wait("reply", "answer", _WATCH_NS), ledger("decide", "ask")),
        extras=(
            Interruption("kill", Site("waiting", "reply", unit="engine"), ns=_WATCH_NS // 2, then=_silence("reply")),
        ),
        generic=False,
    ),
    Story(
        "tryst",
        "The first rendezvous is missed by a moment; who comes too late for it is there for the second, and for that one only.",
        in_order(
            ledger("call"),
            Wait("first", "ring", NAP_NS),
            ledger("note", "call"),
            Wait("second", "ring", 20 * NAP_NS),
            ledger("meet", "note", "second"),
        ),
        extras=(
            Interruption("late-signal", Site("waiting", "first")),
            Interruption("kill", Site("waiting", "first", unit="engine"), ns=_AWAY_NS),
            Interruption(
                "late-signal",
                Site("waiting", "first"),
                then=Interruption("kill", Site("end", unit="engine")),
            ),
            Interruption("kill", Site("ack", "first", verb="signal", unit="engine"), ns=_AWAY_NS),
        ),
        generic=False,
    ),
)

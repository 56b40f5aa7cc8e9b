"""Stories about more than there is room for: tasks, calls at a time, waits, and work that is still queued when time is up."""

from __future__ import annotations

from scenarios.interruption import Interruption, Site
from scenarios.plan import Call, Par, Plan, Race, Seq, Wait
from scenarios.story import Story, in_order, ledger

_SLOW = ("slow",)
#: More than a worker has slots for.
_MANY = 20
#: How long the run below may take, which is not long enough for all of it; and how long its server is away.
_TERM_NS = 150_000_000
_AWAY_NS = 1_800_000_000


def _counter(name: str, *carries: str) -> Call:
    """A read that takes its time."""
    return Call(name, "reader", {"at": name}, carries, _SLOW)


def _waits(count: int) -> Par:
    return Par("queue", tuple(Wait(f"w{number}", "turn") for number in range(1, count + 1)))


STORIES = (
    Story(
        "crowded",
        "A shop that is nearly full: who comes in is served to the end, and who is turned away is told so.",
        in_order(ledger("enter"), Call("serve", "ledger", {"amount": 1}, ("enter",), _SLOW), ledger("leave", "serve")),
        extras=(
            Interruption("crowd", Site("ack", verb="start"), arg="8"),
            Interruption(
                "crowd",
                Site("barrier", "enter", 1, "received"),
                arg="8",
                then=Interruption("kill", Site("barrier", "serve", 1, "received", unit="engine")),
            ),
            Interruption(
                "crowd",
                Site("barrier", "enter", 1, "applied"),
                arg="8",
                then=Interruption("kill", Site("barrier", "serve", 1, "applied")),
            ),
            # One leaves in a hurry, and nobody else with him.
            Interruption(
                "crowd",
                Site("ack", verb="start"),
                arg="6",
                then=Interruption("cancel", Site("barrier", "serve", 1, "received")),
            ),
            Interruption(
                "crowd",
                Site("ack", verb="start"),
                arg="9",
                then=Interruption("repeat", Site("barrier", "serve", 1, "received", verb="start")),
            ),
        ),
        generic=False,
    ),
    Story(
        "counters",
        "More customers than counters: each has one to himself, and nobody gets one that is taken.",
        in_order(
            ledger("open"), Par("all", tuple(_counter(f"c{n}", "open") for n in range(1, _MANY + 1))), ledger("sum")
        ),
        extras=(Interruption("kill", Site("barrier", "c1", 1, "received")),),
        generic=False,
    ),
    Story(
        "closing",
        "The counters close before the queue is empty: who has not had his turn by then has none.",
        Plan(Par("all", tuple(_counter(f"c{n}") for n in range(1, _MANY + 1))), deadline_ns=_TERM_NS),
        extras=(
            Interruption("kill", Site("barrier", "c1", 1, "received", unit="engine"), ns=_AWAY_NS),
            Interruption("kill", Site("barrier", "c1", 1, "applied"), ns=_AWAY_NS),
        ),
        generic=False,
    ),
    Story(
        "lobby",
        "Forty people wait to be called, and hold up nobody who has something to do.",
        in_order(
            ledger("enter"),
            Race(
                "day",
                (
                    Seq("work", (_counter("sort"), _counter("file", "sort"), ledger("lock", "file"))),
                    Seq("rest", (_waits(2 * _MANY), ledger("sweep"))),
                ),
            ),
            ledger("close", "enter"),
        ),
        extras=(
            Interruption("kill", Site("barrier", "sort", 1, "received")),
            Interruption("kill", Site("barrier", "file", 1, "received", unit="engine")),
        ),
        generic=False,
    ),
)

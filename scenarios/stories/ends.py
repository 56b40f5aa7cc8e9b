"""Stories about decisions and pauses, and about limits that are large against what may be on its way."""

from __future__ import annotations

from scenarios.interruption import Barrier, Interruption, Site
from scenarios.plan import Branch, Call, Par, Plan, Race, Seq
from scenarios.story import Story, in_order, ledger

#: How long a run is held: longer than anybody waits between two tries.
_HELD_NS = 3_000_000_000
_OUT = ("error-before",) * 5
#: More than half the time for which receivers keep keys.
_AWAY_NS = 18_000_000_000
#: Limits against which what may be on its way is nothing much, and a time that is longer by a little.
_TERM_NS = 20_000_000_000
_OVER_NS = 22_500_000_000
#: More than a worker has slots.
_MANY = 12
#: A call that has not been answered yet.
_UNDER_WAY: tuple[Barrier, ...] = ("received", "applied")


def _slow(name: str, *carries: str) -> Call:
    return Call(name, "ledger", {"for": name}, carries, ("slow",))


STORIES = (
    Story(
        "signposts",
        "Four forks one after the other, each taken by the answer of the call before it: what lies on the other way is left.",
        in_order(
            *(
                step
                for number, last in enumerate(("start", "north", "east", "south"))
                for step in (
                    ledger(last),
                    Branch(f"fork{number}", last, (ledger(f"left{number}", last), ledger(f"right{number}", last))),
                )
            )
        ),
        extras=(Interruption("kill", Site("barrier", "north", 1, "applied", unit="engine")),),
        generic=False,
    ),
    Story(
        "heat",
        "A race of one quick call against a slow one that another would follow: it is won while the slow one is under way.",
        in_order(
            ledger("shot"),
            Race(
                "run", (ledger("hare", "shot"), Seq("slow", (_slow("tortoise", "shot"), ledger("lettuce", "tortoise"))))
            ),
            _slow("prize", "shot"),
            _slow("speech", "prize"),
        ),
        extras=(Interruption("kill", Site("barrier", "prize", 1, "received", unit="engine")),),
        generic=False,
    ),
    Story(
        "knocking",
        "A receiver that is out is asked again and again until the run is told to wait; nobody asks before it may go on.",
        in_order(ledger("call"), Call("knock", "flaky", {"door": 1}, ("call",), _OUT), ledger("enter", "knock")),
        extras=(
            Interruption("halt", Site("barrier", "knock", 1, "received"), ns=_HELD_NS),
            Interruption(
                "halt",
                Site("barrier", "knock", 2, "received"),
                ns=_HELD_NS,
                then=Interruption("kill", Site("barrier", "knock", 2, "replied")),
            ),
        ),
        generic=False,
    ),
    Story(
        "caretaker",
        "A slow call, and the server that had given it out is away for a moment: who is at it stays at it.",
        in_order(ledger("keys"), _slow("sweep", "keys"), ledger("lock", "sweep")),
        extras=tuple(
            Interruption("kill", Site("barrier", "sweep", 1, barrier, unit="engine")) for barrier in _UNDER_WAY
        ),
        generic=False,
    ),
    Story(
        "gazette",
        "A payment that may have been made, and everybody is away twice: each time for less than its key is kept, and for more "
        "than that in all.",
        in_order(ledger("fee", amount=12), ledger("print", "fee")),
        extras=tuple(
            Interruption(
                "kill",
                Site("barrier", "fee", 1, barrier),
                ns=_AWAY_NS,
                then=Interruption("kill", Site("barrier", "fee", 2, "received"), ns=_AWAY_NS),
            )
            for barrier in _UNDER_WAY
        ),
        generic=False,
    ),
    Story(
        "pilgrimage",
        "A call that may be tried for twenty seconds, and nobody there to try it until a little after that.",
        in_order(
            ledger("pack"),
            Call("gate", "flaky", {"n": 1}, ("pack",), _OUT, elapsed_ns=_TERM_NS),
            ledger("enter", "gate"),
        ),
        extras=(Interruption("kill", Site("barrier", "gate", 2, "received"), ns=_OVER_NS),),
        generic=False,
    ),
    Story(
        "last-orders",
        "More orders than anybody can take at once, to be taken within twenty seconds, and nobody there until after that.",
        Plan(Par("all", tuple(_slow(f"order{n}") for n in range(1, _MANY + 1))), deadline_ns=_TERM_NS),
        extras=(
            Interruption("kill", Site("barrier", "order1", 1, "received"), ns=_OVER_NS),
            Interruption("kill", Site("barrier", "order1", 1, "received", unit="engine"), ns=_OVER_NS),
        ),
        generic=False,
    ),
)

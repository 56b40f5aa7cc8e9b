"""Stories about trying again: how often, how long, how soon, and when no more."""

from __future__ import annotations

from scenarios.interruption import Interruption, Site
from scenarios.plan import Call, Fail, Loop, Model, Par
from scenarios.story import Story, in_order, ledger

#: A receiver that is down for good, as far as anybody will try.
_OUT = ("error-before",) * 12
#: How long a call may be tried, and how long who tries it is away: so long that what comes after is certainly too late.
_PATIENCE_NS = 400_000_000
_AWAY_NS = 1_600_000_000
#: When all of a herd have failed several times, and are waited with.
_ALL_WAIT_NS = 750_000_000
#: Longer than the longest wait between two tries.
_LONG_PATIENCE_NS = 2_500_000_000


def _both(site: Site, other: str) -> Interruption:
    """A kill, and as soon as that unit is back and has something answered, a kill of the other one."""
    return Interruption("kill", site, then=Interruption("kill", Site("barrier", None, 1, "replied", unit=other)))


STORIES = (
    Story(
        "stingy",
        "Two calls that may be tried three times: one is answered at the last, the other never.",
        in_order(
            ledger("ask"),
            Par(
                "both",
                (
                    Call("poll", "flaky", {"n": 1}, ("ask",), ("error-before", "error-before"), tries=3),
                    Call("nag", "flaky", {"n": 2}, ("ask",), _OUT, tries=3),
                ),
            ),
            ledger("note", "poll", "nag"),
        ),
        extras=(
            # Both die, one after the other: neither may have counted for itself.
            _both(Site("barrier", "nag", 1, "replied"), "engine"),
            _both(Site("barrier", "nag", 1, "replied", unit="engine"), "worker"),
            _both(Site("barrier", "poll", 1, "received"), "engine"),
        ),
        generic=False,
    ),
    Story(
        "hasty",
        "A call that is worth trying for a short time only, at a receiver that is out.",
        in_order(
            ledger("ask"),
            Call("hurry", "flaky", {"n": 1}, ("ask",), _OUT, elapsed_ns=_PATIENCE_NS),
            ledger("note", "hurry"),
        ),
        extras=(
            Interruption("kill", Site("barrier", "hurry", 2, "received"), ns=_AWAY_NS),
            Interruption("kill", Site("barrier", "hurry", 2, "replied", unit="engine"), ns=_AWAY_NS),
        ),
        generic=False,
    ),
    Story(
        "dogged",
        "The same with more patience than anybody waits between two tries: it ends all the same.",
        in_order(
            ledger("ask"),
            Call("hurry", "flaky", {"n": 1}, ("ask",), _OUT, elapsed_ns=_LONG_PATIENCE_NS),
            ledger("note", "hurry"),
        ),
        generic=False,
    ),
    Story(
        "invalid",
        "Orders that can never be taken: two may be refused, the third ends the run, and the caller learns why.",
        in_order(
            ledger("ask"),
            Par(
                "extras",
                (
                    Call("gift", "flaky", {"sku": 0}, ("ask",), ("reject",), tolerate=True),
                    Call("card", "mailer", {"to": 0}, ("ask",), ("reject",), tolerate=True),
                ),
            ),
            Call("order", "flaky", {"sku": -1}, ("ask",), ("reject",)),
            ledger("bill", "order"),
        ),
        extras=(
            Interruption("kill", Site("barrier", "order", 1, "received")),
            Interruption("kill", Site("barrier", "order", 1, "replied", unit="engine")),
            # The reason is still known to who asks after a restart.
            Interruption("kill", Site("end", unit="engine")),
        ),
        generic=False,
    ),
    Story(
        "herd",
        "A dozen clients of a receiver that is out for six tries of each.",
        in_order(
            ledger("ask"),
            Par(
                "crowd", tuple(Call(f"c{n}", "flaky", {"n": n}, ("ask",), ("error-before",) * 6) for n in range(1, 13))
            ),
        ),
        extras=(
            # Nothing that could disturb them: waits are compared where nobody is struck.
            Interruption("unmatched", Site("ack", verb="start")),
            Interruption("repeat", Site("ack", verb="start")),
            # The server is back long before most of them are to come back.
            Interruption("kill", Site("time", ns=_ALL_WAIT_NS, unit="engine")),
        ),
        generic=False,
    ),
    Story(
        "stubborn",
        "A model whose every proposal is refused, and which may try four times at most.",
        in_order(
            ledger("brief"),
            Loop(
                "again",
                (
                    Model("think", "what next?", 40),
                    Call("act", "flaky", {"amount": 99}, ("think",), ("reject",) * 12, tolerate=True),
                ),
                "think",
                4,
            ),
            Fail("enough", "nothing-it-proposed-was-accepted"),
        ),
        extras=(
            Interruption("kill", Site("barrier", "think@1", 1, "applied")),
            Interruption("kill", Site("barrier", "act@1", 1, "replied", unit="engine")),
            Interruption("kill", Site("barrier", "act@1", 1, "received")),
        ),
        generic=False,
    ),
)

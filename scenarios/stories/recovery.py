"""Stories about coming back: twice from one crash, and with results of every size."""

from __future__ import annotations

import attrs

from scenarios.interruption import Interruption, Site
from scenarios.plan import Call, Par, Seq, Wait
from scenarios.story import Story, in_order, ledger

#: The first request of anything after a recovery, before any answer: the second crash leaves the evidence as it was.
_AT_ONCE = Site("barrier", None, 1, "received")
#: A little later: what became of the parcel has been asked, in vain.
_SOON = Site("barrier", None, 2, "received")
#: The registry that knows of the parcel cannot be asked for a while.
_DOWN = ("down", "down", "down")


def _sized(answer_bytes: int) -> Call:
    return Call(f"n{answer_bytes}", "ledger", {"answer_bytes": answer_bytes})


def _again(op: str, again: Site, *, unit: str = "worker") -> Interruption:
    """A crash over the effect of `op`, and one of `unit` as it is being recovered from."""
    second = attrs.evolve(again, unit=unit)
    return Interruption("kill", Site("barrier", op, 1, "applied"), then=Interruption("kill", second))


#: Its first answer takes longer than a parcel, so that there is work left when that has arrived.
_FIRST = Call("note1", "ledger", {"amount": 1}, ("pay",), ("slow",))

STORIES = (
    Story(
        "relapse",
        "Recovery is struck down before it has learnt anything: the next one stands before the same journal and decides alike.",
        in_order(
            Call("rate", "reader", {"item": 3}),
            ledger("pay", "rate"),
            Par(
                "both",
                (
                    Call("parcel", "registry", {"box": 3}, ("pay",), lookups=_DOWN),
                    Seq("desk", (_FIRST, *(ledger(f"note{n}", "pay", amount=n) for n in range(2, 5)))),
                ),
            ),
        ),
        extras=(
            _again("rate", _AT_ONCE),
            _again("pay", _AT_ONCE),
            _again("parcel", _SOON),
            _again("parcel", _SOON, unit="engine"),
            Interruption(
                "kill",
                Site("barrier", "pay", 1, "applied"),
                then=Interruption("kill", _AT_ONCE, then=Interruption("kill", _AT_ONCE)),
            ),
            Interruption("power", Site("barrier", "parcel", 1, "applied"), then=Interruption("power", _SOON)),
        ),
        generic=False,
    ),
    Story(
        "sizes",
        "Results around every length that rows, pages and buffers usually have, handed on before and after a crash.",
        in_order(
            Par("small", tuple(map(_sized, (0, 1, 4095, 4096, 4097)))),
            ledger("sum", "n0", "n1", "n4095", "n4096", "n4097"),
            Par("large", tuple(map(_sized, (65_535, 65_536, 65_537)))),
            Wait("gate", "go"),
            ledger("all", "n1", "n4096", "n65535", "n65536", "n65537", "gate"),
        ),
        extras=(
            Interruption("kill", Site("barrier", "sum", 1, "received", unit="engine")),
            Interruption("kill", Site("waiting", "gate")),
            Interruption("kill", Site("waiting", "gate", unit="engine")),
            Interruption("kill", Site("barrier", "all", 1, "received")),
            Interruption("kill", Site("barrier", "all", 1, "applied", unit="engine")),
            Interruption("kill", Site("end", unit="engine")),
        ),
        generic=False,
    ),
)

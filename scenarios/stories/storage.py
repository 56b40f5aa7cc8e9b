"""Stories about storage that fails: full, refusing, or giving back what nobody wrote."""

from __future__ import annotations

from scenarios.interruption import Interruption, Site
from scenarios.plan import Call, Par, Wait
from scenarios.story import Story, in_order, ledger

#: Long enough for several restarts to fail.
_FULL_NS = 400_000_000


def _page(name: str) -> Call:
    return Call(name, "ledger", {"answer_bytes": 60_000})


STORIES = (
    Story(
        "vault",
        "Large receipts are kept while a decision is waited for; the disk they are kept on fills up, fails, and rots.",
        in_order(
            ledger("open"),
            Par("keep", (_page("first"), _page("second"), _page("third"))),
            Wait("nod", "go"),
            ledger("seal", "first", "second", "third", "nod"),
        ),
        extras=(
            Interruption("full", Site("ack", verb="start", unit="engine"), ns=_FULL_NS),
            Interruption("full", Site("waiting", "nod", unit="engine"), ns=_FULL_NS),
            Interruption("eio", Site("boundary", nth=67, unit="engine")),
            Interruption("eio", Site("boundary", nth=90, unit="engine")),
            Interruption("flip", Site("waiting", "nod", unit="engine")),
            Interruption("flip", Site("end", unit="engine")),
            Interruption(
                "kill",
                Site("waiting", "nod", unit="engine"),
                then=Interruption("flip", Site("end", unit="engine")),
            ),
        ),
        generic=False,
    ),
)

"""Stories about one name for two things."""

from __future__ import annotations

from scenarios.interruption import Interruption, Site
from scenarios.plan import Wait
from scenarios.story import Story, in_order, ledger

STORIES = (
    Story(
        "homonym",
        "Another order is submitted under the number of this one: while it is worked, while it waits, and when all is done.",
        in_order(ledger("pick"), Wait("nod", "go"), ledger("send", "pick", "nod"), ledger("file", "send")),
        extras=(
            Interruption("misuse", Site("ack", verb="start")),
            Interruption("misuse", Site("waiting", "nod")),
            Interruption("misuse", Site("end")),
            Interruption("kill", Site("waiting", "nod", unit="engine"), then=Interruption("misuse", Site("end"))),
            Interruption(
                "misuse",
                Site("waiting", "nod"),
                then=Interruption("kill", Site("barrier", "send", 1, "applied", unit="engine")),
            ),
        ),
        generic=False,
    ),
)

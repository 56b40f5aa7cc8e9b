"""Stories about work on its way from one place to another: from timer to queue, from queue to worker, from done to next."""

from __future__ import annotations

from scenarios.interruption import Interruption, Site
from scenarios.plan import Call, Par, Seq, Sleep, Wait
from scenarios.story import NAP_NS, Story, in_order, ledger

_FULL_NS = 300_000_000


def _reminder(number: int) -> Seq:
    """A timer, and a letter that is to be sent once."""
    return Seq(
        f"r{number}", (Sleep(f"nap{number}", NAP_NS), Call(f"letter{number}", "mailer", {"to": number}, ("book",)))
    )


STORIES = (
    Story(
        "alarms",
        "Four reminders are due at one moment; each sends one letter, whatever happens as they are taken out of the timers.",
        in_order(
            ledger("book"),
            Par("due", (*map(_reminder, range(1, 5)), Wait("reply", "answer", 20 * NAP_NS))),
            ledger("sum", "letter1", "letter4", "reply"),
        ),
        extras=(
            Interruption("kill", Site("waiting", "nap1", unit="engine")),
            Interruption("kill", Site("barrier", "letter1", 1, "received", unit="engine")),
            Interruption("full", Site("waiting", "nap1", unit="engine"), ns=_FULL_NS),
            Interruption("kill", Site("barrier", "letter1", 1, "applied")),
            Interruption(
                "eio",
                Site("boundary", nth=60, unit="engine"),
                arg="fsync",
                then=Interruption("power", Site("end", unit="engine")),
            ),
            Interruption("eio", Site("boundary", nth=90, unit="engine")),
            Interruption("power", Site("barrier", "letter1", 1, "received", unit="engine")),
        ),
        generic=False,
    ),
    Story(
        "baton",
        "What a step releases is released with it: the engine dies as each step is accepted and the next ones are to begin.",
        in_order(
            ledger("draft"),
            Par("readers", (ledger("legal", "draft"), ledger("press", "draft"))),
            ledger("merge", "legal", "press"),
            Wait("nod", "go"),
            ledger("print", "merge", "nod"),
        ),
        extras=(
            Interruption("kill", Site("barrier", "draft", 1, "replied", unit="engine")),
            Interruption("kill", Site("barrier", "press", 1, "replied", unit="engine")),
            Interruption("kill", Site("barrier", "merge", 1, "replied", unit="engine")),
            Interruption("kill", Site("ack", "nod", verb="signal", unit="engine")),
            Interruption("kill", Site("time", ns=NAP_NS // 2, unit="engine")),
            Interruption("power", Site("barrier", "merge", 1, "replied", unit="engine")),
            Interruption("kill", Site("barrier", "draft", 1, "replied")),
        ),
        generic=False,
    ),
    Story(
        "misfit",
        "Four letters go out in one batch, and one of them cannot even be put into words: the others are sent all the same.",
        in_order(
            Par(
                "batch",
                (
                    Call("blank", "ledger", {"poison": True}, tolerate=True),
                    Call("first", "ledger", {"to": 1}),
                    Call("second", "mailer", {"to": 2}),
                    Seq("third", (Call("ask", "reader", {"to": 3}), ledger("tell", "ask"))),
                ),
            ),
            ledger("close", "first", "second", "tell"),
        ),
        extras=(
            Interruption("kill", Site("barrier", "first", 1, "received")),
            Interruption("kill", Site("barrier", "first", 1, "received", unit="engine")),
            Interruption("kill", Site("ack", verb="start", unit="engine")),
        ),
        generic=False,
    ),
)

"""Stories about runs that are held for a while, and about those whose course is changed under way."""

from __future__ import annotations

from scenarios.interruption import Barrier, Interruption, Site
from scenarios.plan import Call, Child, Par, Seq, Wait
from scenarios.story import NAP_NS, Story, in_order, ledger

_HELD_NS = 2 * NAP_NS


def _halt(site: Site, then: Interruption | None = None) -> Interruption:
    return Interruption("halt", site, ns=_HELD_NS, then=then)


def _kill(op: str, barrier: Barrier = "applied", unit: str = "engine") -> Interruption:
    return Interruption("kill", Site("barrier", op, 1, barrier, unit=unit))


STORIES = (
    Story(
        "hold",
        "A run is told to wait a moment, at every stage of it: what is at work ends, and nothing begins until it may go on.",
        in_order(
            ledger("pack"),
            Par("both", (ledger("label", "pack"), Call("notify", "mailer", {"to": 1}, ("pack",)))),
            Wait("word", "go"),
            ledger("ship", "label", "word"),
        ),
        extras=(
            _halt(Site("ack", verb="start")),
            _halt(Site("barrier", "pack", 1, "received")),
            _halt(Site("barrier", "pack", 1, "received"), _kill("pack")),
            _halt(Site("barrier", "pack", 1, "applied"), _kill("pack", "replied", "worker")),
            _halt(Site("waiting", "word")),
            _halt(Site("barrier", "label", 1, "received"), _kill("label", "replied")),
        ),
        generic=False,
    ),
    Story(
        "halt-all",
        "A run and a child of it are told to wait a moment; the lodger, who is nobody's, goes on.",
        in_order(
            ledger("pack"),
            Child("lodger", Seq("l", (ledger("rent"), ledger("stay", "rent"))), detached=True),
            Par(
                "both",
                (
                    Child("kid", Seq("k", (ledger("shoes"), ledger("coat", "shoes"), ledger("cap", "coat")))),
                    ledger("label", "pack"),
                ),
            ),
            ledger("ship", "label"),
        ),
        extras=(
            _halt(Site("barrier", "pack", 1, "received")),
            _halt(Site("barrier", "kid/shoes", 1, "received")),
            _halt(Site("barrier", "kid/shoes", 1, "received"), _kill("kid/shoes")),
            _halt(Site("barrier", "kid/coat", 1, "received"), _kill("kid/coat", "replied", "worker")),
        ),
        generic=False,
    ),
    Story(
        "helm",
        "Two orders to the helm, one after the other, before the ship turns: it turns by the last one, whoever fell asleep.",
        in_order(
            ledger("chart"),
            Wait("ready", "go"),
            ledger("turn", "chart", "ready", amount=100),
            Call("log", "mailer", {"amount": 100}, ("turn",)),
        ),
        extras=(
            Interruption("steer", Site("waiting", "ready"), target="turn"),
            Interruption(
                "steer",
                Site("waiting", "ready"),
                target="turn",
                then=Interruption("kill", Site("ack", "ready", verb="signal", unit="engine")),
            ),
            Interruption("steer", Site("barrier", "chart", 1, "received"), target="log", then=_kill("chart")),
            Interruption(
                "steer", Site("barrier", "chart", 1, "applied"), target="turn", then=_kill("turn", unit="worker")
            ),
            Interruption("steer", Site("barrier", "turn", 1, "received"), target="log", then=_kill("turn", "replied")),
        ),
        generic=False,
    ),
)

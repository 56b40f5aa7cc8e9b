"""Stories about what a run may use: reserved, lost, shared out, kept back, and used up."""

from __future__ import annotations

from scenarios.interruption import Interruption, Site
from scenarios.operation import Allowance, Reserve
from scenarios.plan import Artifact, Call, Check, Child, Compensate, Model, Op, Par, Plan, Seq
from scenarios.story import Story, ledger

_SLOW = ("slow",)


def _allowed(allowance: Allowance, *children: Op) -> Plan:
    return Plan(Seq("main", children), allowance)


def _slow(name: str, *carries: str) -> Call:
    return Call(name, "ledger", {"for": name}, carries, _SLOW)


STORIES = (
    Story(
        "ration",
        "Two thoughts of 80 out of 150 tokens, side by side, of which each uses 20; what they leave is enough for a summary.",
        _allowed(
            Allowance(tokens=150),
            Par("thoughts", (Model("plan", "how?", 80, _SLOW, uses=20), Model("risk", "what if?", 80, _SLOW, uses=20))),
            Model("sum", "so?", 30, (), ("plan", "risk")),
            ledger("send", "sum"),
        ),
        extras=(
            Interruption("kill", Site("barrier", "plan", 1, "received", unit="engine")),
            Interruption("kill", Site("barrier", "sum", 1, "applied", unit="engine")),
            Interruption("kill", Site("barrier", "sum", 1, "applied")),
            Interruption("drop", Site("barrier", "sum", 1, "applied")),
            Interruption("reset", Site("barrier", "sum", 1, "applied")),
            Interruption("drop", Site("barrier", "plan", 1, "applied")),
            Interruption("steer", Site("barrier", "plan", 1, "received"), target="sum"),
        ),
        generic=False,
    ),
    Story(
        "overdraft",
        "Three drafts, each as dear as half of what is there: the third is not written, and the run says why.",
        _allowed(
            Allowance(tokens=100),
            Model("draft", "write", 50, uses=50),
            Model("edit", "improve", 50, (), ("draft",), uses=50),
            Model("polish", "shine", 50, (), ("edit",), uses=50),
        ),
        extras=(Interruption("kill", Site("barrier", "edit", 1, "replied", unit="engine")),),
        generic=False,
    ),
    Story(
        "misjudged",
        "A thought takes more than was set aside for it, and that counts: the next one is not thought any more.",
        _allowed(
            Allowance(tokens=150),
            Model("guess", "how much?", 50, uses=80),
            Model("plan", "how?", 100, (), ("guess",)),
        ),
        extras=(Interruption("kill", Site("barrier", "guess", 1, "replied", unit="engine")),),
        generic=False,
    ),
    Story(
        "unpriced",
        "A thought whose price nobody tells: all that was set aside for it stays so, and the next one is not thought any more.",
        _allowed(
            Allowance(tokens=150),
            Model("guess", "how much?", 80, ("unmetered",)),
            Model("plan", "how?", 80, (), ("guess",)),
        ),
        extras=(Interruption("kill", Site("barrier", "guess", 1, "replied", unit="engine")),),
        generic=False,
    ),
    Story(
        "single-file",
        "A bridge that bears two at a time, and four who want to cross.",
        _allowed(
            Allowance(concurrency=2),
            ledger("arrive"),
            Par("bridge", tuple(_slow(name, "arrive") for name in ("p", "q", "r", "s"))),
            ledger("go-on", "p", "q", "r", "s"),
        ),
        extras=(
            Interruption("kill", Site("barrier", "p", 1, "received")),
            Interruption("kill", Site("barrier", "p", 1, "received", unit="engine")),
        ),
        generic=False,
    ),
    Story(
        "fanout",
        "Two children with four calls each out of ten, and three calls beside them: the third waits for what a child leaves.",
        _allowed(
            Allowance(calls=10),
            Par(
                "all",
                (
                    Child("north", Seq("n", (_slow("n1"), _slow("n2", "n1"))), share=Allowance(calls=4)),
                    Child("south", Seq("s", (_slow("s1"), _slow("s2", "s1"))), share=Allowance(calls=4)),
                    *(_slow(name) for name in ("east", "west", "centre")),
                ),
            ),
            ledger("join", "east", "west", "centre"),
        ),
        extras=(Interruption("kill", Site("boundary", nth=61, unit="engine")),),  # several report at once there
        generic=False,
    ),
    Story(
        "glutton",
        "A child that may make two calls and wants three, out of plenty.",
        _allowed(
            Allowance(calls=12),
            ledger("feed"),
            Child("hungry", Seq("h", (ledger("h1"), ledger("h2", "h1"), ledger("h3", "h2"))), share=Allowance(calls=2)),
            ledger("bill", "feed"),
        ),
        extras=(Interruption("kill", Site("barrier", "hungry/h2", 1, "applied", unit="engine")),),
        generic=False,
    ),
    Story(
        "windup",
        "Two bookings and a bill use up what is not kept for undoing; the next call is one too many, and all is undone.",
        _allowed(
            Allowance(calls=7, reserve=Reserve(calls=4)),
            ledger("room"),
            ledger("car", "room"),
            ledger("bill", "car"),
            ledger("tip", "bill"),
            ledger("toast", "tip"),
            Compensate("no-room", "room", "ledger", {"undo": "room"}),
            Compensate("no-car", "car", "ledger", {"undo": "car"}),
        ),
        extras=(
            Interruption("kill", Site("barrier", "no-car", 1, "applied")),
            Interruption("kill", Site("barrier", "no-car", 1, "applied", unit="engine")),
        ),
        generic=False,
    ),
    Story(
        "proof",
        "A draft, a report and a note use up what is not kept for the check of the report, which still takes place.",
        _allowed(
            Allowance(calls=4, reserve=Reserve(calls=1)),
            ledger("draft"),
            Artifact("report", "report", 64),
            ledger("note", "draft"),
            Check("proofread", "report"),
        ),
        generic=False,
    ),
)

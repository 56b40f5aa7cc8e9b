"""Stories about code that changes under work that is under way, and about decisions that must come out the same again."""

from __future__ import annotations

import attrs

from scenarios.interruption import Interruption, Site
from scenarios.plan import Branch, Call, Par, Plan, Race, Seq, Wait
from scenarios.story import NAP_NS, Story, in_order, ledger

#: Long enough for an engine of an older version to have been started, and to have refused what it found.
_DOWNGRADE_NS = 200_000_000
#: The second crash comes when the loser of the race has had its answer too.
_LATER = Site("waiting", "gate")


def _written_by(code: str, plan: Plan) -> Plan:
    return attrs.evolve(plan, code=code)


def _at(op: str, barrier: str = "applied", *, unit: str = "worker") -> Site:
    match barrier:
        case "received":
            return Site("barrier", op, 1, "received", unit=unit)
        case "replied":
            return Site("barrier", op, 1, "replied", unit=unit)
    return Site("barrier", op, 1, "applied", unit=unit)


def _deploy(site: Site, code: str, then: Interruption | None = None) -> Interruption:
    return Interruption("deploy", site, then=then, arg=code)


def _beside(site: Site, code: str, then: Interruption | None = None) -> Interruption:
    return Interruption("second", site, then=then, arg=code)


#: The run is shown to have ended, or to be unable to go on.
_BACK = Site("end")

STORIES = (
    Story(
        "rollout",
        "Work begun by the first version of the code is met by the second, which fits, and by the third, which does not.",
        _written_by(
            "1",
            in_order(
                ledger("begin"),
                Par(
                    "ask",
                    (
                        Call("quote", "reader", {"item": 1}, ("begin",)),
                        Call("book", "registry", {"box": 4}, ("begin",)),
                    ),
                ),
                Wait("hold", "go"),
                ledger("pay", "quote", "hold"),
                Call("tell", "mailer", {"to": 4}, ("pay",)),
                ledger("close", "pay"),
            ),
        ),
        extras=(
            _deploy(_at("begin"), "2"),
            _deploy(Site("waiting", "hold"), "2"),
            _deploy(_at("pay"), "3", _deploy(_BACK, "1")),
            _deploy(Site("waiting", "hold"), "3", _deploy(_BACK, "1")),
            _deploy(Site("waiting", "hold"), "3", _deploy(_BACK, "2")),
            _beside(_at("begin", "received"), "3"),
            _deploy(_at("begin"), "4"),
            _deploy(Site("waiting", "hold"), "4"),
            _deploy(_at("pay"), "4"),
            _deploy(_at("begin"), "2", _deploy(_at("pay"), "4")),
            Interruption("deploy", _at("pay", unit="engine"), ns=_DOWNGRADE_NS, arg="0"),
            Interruption("deploy", Site("waiting", "hold", unit="engine"), ns=_DOWNGRADE_NS, arg="0"),
        ),
        generic=False,
    ),
    Story(
        "mixed-fleet",
        "Old workers beside new ones: what the new code has written is not for the old.",
        _written_by(
            "1",
            in_order(
                ledger("open"),
                Wait("hold", "go"),
                ledger("plan", "open", "hold"),
                Par("work", tuple(ledger(f"part{n}", "plan", amount=n) for n in range(1, 5))),
                Par("more", tuple(ledger(f"rest{n}", "part1", amount=n) for n in range(1, 5))),
                ledger("done", "part2", "rest3"),
            ),
        ),
        extras=(
            _deploy(_at("open"), "2", _beside(Site("waiting", "hold"), "1")),
            _deploy(Site("waiting", "hold"), "2", _beside(_at("plan", "received"), "1")),
            _deploy(_at("open"), "2", _deploy(_at("plan"), "1", _deploy(_BACK, "2"))),
            _deploy(Site("waiting", "hold"), "2", _deploy(_at("part1"), "1", _deploy(_BACK, "2"))),
            _beside(_at("open", "received"), "2"),
        ),
        generic=False,
    ),
    Story(
        "crossroads",
        "A race whose loser answers late, and a choice: whoever looks again later must come to the same decisions.",
        in_order(
            ledger("start"),
            Race(
                "either",
                (
                    Seq("long", (Call("slow", "flaky", {"n": 1}, ("start",), ("slow",)), ledger("after"))),
                    Seq("short", (Call("fast", "reader", {"n": 2}, ("start",)), ledger("won", "fast"))),
                ),
            ),
            Branch("turn", "start", (ledger("left", "start"), ledger("right", "start"))),
            Wait("gate", "go"),
            Par("last", (ledger("one", "start", amount=1), ledger("two", "start", amount=2))),
            ledger("end", "one", "two", "gate"),
        ),
        extras=(
            Interruption("kill", Site("waiting", "gate"), ns=NAP_NS),
            Interruption("kill", _at("one")),
            Interruption("kill", _at("one", unit="engine")),
            Interruption("kill", _LATER, ns=NAP_NS, then=Interruption("kill", _at("end"))),
            Interruption("kill", _at("won"), then=Interruption("kill", _LATER, ns=NAP_NS)),
        ),
        generic=False,
    ),
)

"""Stories about tasks that tasks begin: who lives on when one falls, whose end counts once, and what they may use together."""

from __future__ import annotations

from scenarios.interruption import Barrier, Interruption, Site
from scenarios.operation import Allowance
from scenarios.plan import Call, Child, Nondet, Par, Plan, Race, Seq, Sleep
from scenarios.story import NAP_NS, Story, in_order, ledger

#: What the whole of a family may take, and what it waits for a part of it.
_TERM_NS = 30_000_000_000
_REST_NS = 1_500_000_000
#: A receiver that is busy for as long as anybody tries, and how long it is worth trying.
_BUSY = ("429",) * 12
_PATIENCE_NS = 400_000_000
#: Longer than anybody waits for a run to end.
_FAR_NS = 60_000_000_000
#: When nothing that was sent before an end can be on its way any more.
_LATER_NS = 600_000_000


def _slow(name: str, *carries: str) -> Call:
    return Call(name, "ledger", {"for": name}, carries, ("slow",))


def _kill(op: str, barrier: Barrier = "applied", unit: str = "engine") -> Interruption:
    return Interruption("kill", Site("barrier", op, 1, barrier, unit=unit))


STORIES = (
    Story(
        "tree",
        "A tree falls in a storm: its boughs fall with it, and theirs; the seed that it has let go grows on by itself.",
        in_order(
            ledger("plant"),
            Child(
                "seed",
                Seq("s", (ledger("sprout"), Sleep("winter", 2 * NAP_NS), ledger("bloom", "sprout"))),
                detached=True,
            ),
            Par(
                "crown",
                (
                    Child(
                        "bough",
                        Seq(
                            "b",
                            (
                                ledger("bud"),
                                Child(
                                    "twig", Seq("t", (ledger("tip"), Sleep("rest", 4 * NAP_NS), ledger("end", "tip")))
                                ),
                                ledger("leaf", "bud"),
                            ),
                        ),
                    ),
                    Seq(
                        "weather", (Sleep("calm", NAP_NS), Call("storm", "ledger", {"of": 1}, ("plant",), ("reject",)))
                    ),
                ),
            ),
            ledger("fell", "plant"),
        ),
        extras=(
            _kill("bough/bud"),
            _kill("bough/twig/tip", "applied", "worker"),
            _kill("storm", "replied"),
            _kill("storm", "received", "worker"),
            Interruption("cancel", Site("barrier", "bough/twig/tip", 1, "received")),
            Interruption("kill", Site("end", unit="engine")),
        ),
        generic=False,
    ),
    Story(
        "harvest",
        "Two fields are mown, one quickly and one slowly, and brought in together: each once, whoever is away as it is done.",
        in_order(
            ledger("sow"),
            Par(
                "fields",
                (
                    Child("east", Seq("e", (ledger("e1"), ledger("e2", "e1")))),
                    Child("west", Seq("w", (ledger("w1"), _slow("w2", "w1")))),
                ),
            ),
            ledger("gather", "sow"),
            ledger("sell", "gather"),
        ),
        extras=(
            _kill("east/e2", "replied"),
            _kill("east/e2", "applied", "worker"),
            _kill("west/w2", "replied"),
            _kill("gather", "received"),
            Interruption("power", Site("barrier", "west/w2", 1, "replied", unit="engine")),
            _kill("sell", "applied", "worker"),
        ),
        generic=False,
    ),
    Story(
        "namesakes",
        "A run and two children of it each have something to pay, and call it by the same name.",
        in_order(
            ledger("pay"),
            Par("both", (Child("ann", Seq("a", (ledger("pay"),))), Child("ben", Seq("b", (ledger("pay"),))))),
            ledger("sum", "pay"),
        ),
        extras=(_kill("ann/pay", "applied", "worker"), _kill("ben/pay", "replied")),
        generic=False,
    ),
    Story(
        "errand",
        "A child is turned away, and its owner cannot go on as if it had not been.",
        in_order(
            ledger("send"),
            Child("kid", Seq("k", (Call("ask", "flaky", {"n": 1}, (), ("reject",)),))),
            ledger("thank", "send"),
        ),
        extras=(_kill("kid/ask", "replied"),),
        generic=False,
    ),
    Story(
        "messenger",
        "A child's letter is lost before it is there, and nobody knows: its owner does not go on as if it had arrived.",
        in_order(
            ledger("send"),
            Child("kid", Seq("k", (Call("letter", "mailer", {"to": 1}, (), ("reset-before",)),))),
            ledger("thank", "send"),
        ),
        extras=(_kill("kid/letter", "received"),),
        generic=False,
    ),
    Story(
        "dowry",
        "Of nine calls two children have got four and three, and the one gives two to a child of its own; a third asks for "
        "three as well, which are not there.",
        Plan(
            Seq(
                "main",
                (
                    ledger("settle"),
                    Par(
                        "heirs",
                        (
                            Child(
                                "ann",
                                Seq(
                                    "a",
                                    (
                                        _slow("a1"),
                                        Child("eve", Seq("e", (_slow("e1"),)), share=Allowance(calls=2)),
                                        ledger("a2", "a1"),
                                    ),
                                ),
                                share=Allowance(calls=4),
                            ),
                            Child(
                                "ben",
                                Seq("b", (_slow("b1"), _slow("b2", "b1"), ledger("b3", "b2"))),
                                share=Allowance(calls=3),
                            ),
                            Seq(
                                "late",
                                (Sleep("while", 2 * NAP_NS), Child("col", ledger("c1"), share=Allowance(calls=3))),
                            ),
                        ),
                    ),
                ),
            ),
            Allowance(calls=9),
        ),
        extras=(_kill("ben/b1", "received"), _kill("ann/a1", "applied", "worker")),
        generic=False,
    ),
    Story(
        "minors",
        "A family under way for a while sends a child out, which sends its own: each is told how much time all have left.",
        Plan(
            Seq(
                "main",
                (
                    ledger("leave"),
                    Sleep("walk", _REST_NS),
                    Child("kid", Seq("k", (ledger("k1"), Child("baby", ledger("b1")), ledger("k2", "k1")))),
                    ledger("back", "leave"),
                ),
            ),
            deadline_ns=_TERM_NS,
        ),
        extras=(_kill("kid/k1", "received"),),
        generic=False,
    ),
    Story(
        "scout",
        "A scout is sent far away, and the others find the way without him: he is called back, and nobody waits for him.",
        in_order(
            ledger("pack"),
            Race(
                "way",
                (
                    Child("scout", Seq("far", (ledger("look"), Sleep("ride", _FAR_NS), ledger("tell", "look")))),
                    Seq("near", (Sleep("rest", NAP_NS), ledger("ask", "pack"))),
                ),
            ),
            ledger("go", "pack"),
        ),
        extras=(_kill("ask", "replied"),),
        generic=False,
    ),
    Story(
        "nest",
        "A child has a child that is over as soon as it has begun: what comes after that is begun all the same.",
        in_order(
            ledger("lay"),
            Child("egg", Seq("e", (Child("chick", Nondet("chirp", "time")), Nondet("song", "random")))),
            ledger("fly", "lay"),
        ),
        generic=False,
    ),
    Story(
        "gossip",
        "A child's letter is in doubt, and its owner ends over that; word of it comes when the child is nobody's any more.",
        in_order(
            ledger("send"),
            Child(
                "kid", Seq("k", (Call("letter", "mailer", {"to": 1}, (), ("reset-after",)), ledger("tell", "letter")))
            ),
            ledger("thank", "send"),
        ),
        extras=(Interruption("notice", Site("end"), target="kid/letter", ns=_LATER_NS),),
        generic=False,
    ),
    Story(
        "rush",
        "A child nags beside its owner, whose patience is over as the engine is away: both are due when that is back, and end "
        "together.",
        in_order(
            ledger("ask"),
            Par(
                "both",
                (
                    Call("hurry", "flaky", {"n": 1}, ("ask",), _BUSY, elapsed_ns=_PATIENCE_NS),
                    Child("kid", Seq("k", (Call("nag", "mailer", {"to": 1}, (), _BUSY),))),
                ),
            ),
            ledger("thank", "hurry"),
        ),
        extras=(Interruption("kill", Site("time", ns=_PATIENCE_NS // 2, unit="engine"), ns=4 * _PATIENCE_NS),),
        generic=False,
    ),
)

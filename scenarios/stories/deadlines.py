"""Stories about time that runs out, whatever a run is at then, and about who is still there to see it."""

from __future__ import annotations

from scenarios.interruption import Interruption, Site
from scenarios.operation import Allowance
from scenarios.plan import Call, Model, Plan, Seq, Sleep, Wait
from scenarios.story import Story, ledger

#: How long the runs below may take, and how long who works on them is away: until shortly before that.
_TERM_NS = 2_000_000_000
_AWAY_NS = 1_800_000_000
#: Longer than any of them may take.
_NAP_NS = 9_000_000_000
#: A receiver that is down for longer than anybody may try.
_OUT = ("error-before",) * 14
#: Word of a letter whose receipt was lost, when the run has ended over it.
_HEARD = Interruption("notice", Site("end"), target="letter")

STORIES = (
    Story(
        "curfew",
        "An order at a receiver that is out, which has to be through in two seconds or not at all.",
        Plan(
            Seq("main", (ledger("ask"), Call("order", "flaky", {"sku": 1}, ("ask",), _OUT), ledger("pay", "order"))),
            deadline_ns=_TERM_NS,
        ),
        extras=(
            Interruption("kill", Site("barrier", "order", 2, "received"), ns=_AWAY_NS),
            Interruption("kill", Site("barrier", "order", 2, "replied", unit="engine"), ns=_AWAY_NS),
        ),
        generic=False,
    ),
    Story(
        "doze",
        "A run that may take two seconds and sleeps for nine: it ends with its time, and its server need not be there before.",
        Plan(Seq("main", (ledger("ask"), Sleep("nap", _NAP_NS), ledger("pay", "ask"))), deadline_ns=_TERM_NS),
        extras=(
            Interruption("kill", Site("barrier", "ask", 1, "replied", unit="engine"), ns=_AWAY_NS),
            Interruption("power", Site("barrier", "ask", 1, "replied", unit="engine"), ns=_AWAY_NS),
            Interruption("kill", Site("barrier", "ask", 1, "replied")),
        ),
        generic=False,
    ),
    Story(
        "siesta",
        "A run that may work for two seconds in all and sleeps for nine: it ends, and says that its time is used up.",
        Plan(
            Seq("main", (ledger("ask"), Sleep("nap", _NAP_NS), ledger("pay", "ask"))),
            Allowance(elapsed_ns=_TERM_NS),
        ),
        extras=(Interruption("kill", Site("barrier", "ask", 1, "replied", unit="engine"), ns=_AWAY_NS),),
        generic=False,
    ),
    Story(
        "relay",
        "Stages with rests between them: each is told how much is left of the time that there was at the beginning.",
        Plan(
            Seq(
                "main",
                (
                    ledger("first"),
                    Sleep("rest", _TERM_NS),
                    Call("second", "reader", {"leg": 2}, ("first",)),
                    Model("third", "on", 10, (), ("second",)),
                    Call("fourth", "flaky", {"leg": 4}, ("third",), ("error-before", "error-after")),
                ),
            ),
            deadline_ns=30 * _TERM_NS,
        ),
        extras=(
            Interruption("kill", Site("barrier", "second", 1, "received", unit="engine")),
            Interruption("kill", Site("barrier", "third", 1, "applied")),
        ),
        generic=False,
    ),
    Story(
        "hearsay",
        "A lost receipt holds a run up until there is word of the letter: it goes on with the signals that came meanwhile, and "
        "with no more time than it had.",
        Plan(
            Seq(
                "main",
                (
                    ledger("ask"),
                    Call("letter", "mailer", {"to": 1}, ("ask",), ("reset-after",)),
                    Wait("word", "go"),
                    Sleep("nap", _NAP_NS),
                    ledger("pay", "letter", "word"),
                ),
            ),
            deadline_ns=_TERM_NS,
        ),
        extras=(_HEARD, Interruption("late-signal", Site("end"), then=_HEARD)),
        generic=False,
    ),
)

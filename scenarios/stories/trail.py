"""Stories about what is written down: secrets that must not be, reasons that must, and a trail nothing may depend on."""

from __future__ import annotations

from scenarios.interruption import Action, Interruption, Site
from scenarios.plan import Artifact, Call, Compensate, Fail, Par, Race, Seq, Sleep, Wait
from scenarios.story import NAP_NS, Story, in_order, ledger

#: Names of what the worker is entrusted with.
_TOKEN, _PASSWORD = "token", "password"
#: While nobody has noticed yet that a worker is dead.
_SOON = Site("time", ns=100_000_000, unit="engine")
#: More events than a page has.
_MANY = 520
_CONTROL: tuple[Action, ...] = ("cancel", "halt")

STORIES = (
    Story(
        "courier",
        "Credentials go out with calls that are answered, lost, refused and impossible, and stay with their receivers.",
        in_order(
            Call("login", "ledger", {"amount": 1}, secret=_TOKEN),
            Par(
                "errands",
                (
                    Call("post", "flaky", {"n": 1}, ("login",), ("reset-after",), secret=_TOKEN),
                    Call("register", "registry", {"box": 1}, ("login",), secret=_PASSWORD),
                    Call("beg", "mailer", {"to": 0}, ("login",), ("reject",), secret=_PASSWORD, tolerate=True),
                    Call("stammer", "ledger", {"poison": True}, ("login",), secret=_TOKEN, tolerate=True),
                ),
            ),
            Artifact("receipt", "receipt", 64),
            ledger("logout", "post"),
        ),
        extras=(
            Interruption("drop", Site("barrier", "register", 1, "applied")),
            Interruption("kill", Site("barrier", "post", 1, "applied")),
        ),
        generic=False,
    ),
    Story(
        "detour",
        "Nothing goes straight on: a race is lost, a call is lost and repeated, another is looked up, and all is undone.",
        in_order(
            ledger("begin"),
            Race("either", (ledger("near"), Seq("far", (Sleep("ride", NAP_NS), ledger("arrive"))))),
            Call("ring", "flaky", {"n": 1}, ("begin",), ("reset-after",)),
            Call("parcel", "registry", {"box": 1}, ("ring",), ("reset-after",)),
            Compensate("retract", "begin", "ledger", {"undo": "begin"}),
            Fail("enough", "it-has-been-enough"),
        ),
        extras=(
            Interruption("kill", Site("barrier", "parcel", 1, "applied", unit="engine")),
            Interruption("cancel", Site("barrier", "ring", 1, "applied")),
        ),
        generic=False,
    ),
    Story(
        "calendar",
        "A day of so many appointments that nobody who asks what has happened is told all of it at once.",
        in_order(
            ledger("wake"), Par("day", tuple(Sleep(f"at{n}", 1) for n in range(1, _MANY + 1))), ledger("rest", "wake")
        ),
        extras=(Interruption("kill", Site("barrier", "rest", 1, "applied", unit="engine")),),
        generic=False,
    ),
    Story(
        "forgetful",
        "The audit trail is lost at the worst moments: with a call open that has a key, one to look up, one to leave alone.",
        in_order(
            ledger("open"),
            Call("parcel", "registry", {"box": 1}, ("open",)),
            Wait("word", "go"),
            ledger("close", "parcel", "word"),
            Call("letter", "mailer", {"to": 1}, ("close",)),
        ),
        extras=(
            Interruption("forget", Site("barrier", "open", 1, "applied", unit="engine")),
            Interruption("forget", Site("waiting", "word", unit="engine")),
            *(
                Interruption("kill", Site("barrier", op, 1, "applied"), then=Interruption("forget", _SOON))
                for op in ("parcel", "close", "letter")
            ),
        ),
        generic=False,
    ),
    Story(
        "interlude",
        "An order is stopped, or held for a while, with a call, a wait and a timer under way, and a receiver that has no room.",
        in_order(
            ledger("order"),
            Par("meanwhile", (ledger("pack", "order"), Wait("word", "go"), Sleep("rest", NAP_NS))),
            Call("haul", "flaky", {"n": 1}, ("pack", "word"), ("429", "429")),
            ledger("close", "haul"),
        ),
        extras=(
            *(
                Interruption(action, site, ns=2 * NAP_NS if action == "halt" else 0)
                for action in _CONTROL
                for site in (
                    Site("barrier", "pack", 1, "applied"),
                    Site("waiting", "word"),
                    Site("barrier", "haul", 1, "replied"),
                )
            ),
        ),
        generic=False,
    ),
)

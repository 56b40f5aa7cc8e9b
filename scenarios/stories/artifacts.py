"""Stories about what is published: cut short at every part, given up half-way, replaced, and left by a run that fails."""

from __future__ import annotations

from scenarios.interruption import Barrier, Interruption, Site
from scenarios.plan import Artifact, Call, Check, Par
from scenarios.story import Story, in_order, ledger

#: Longer than a lease shortened for testing, shorter than any caller waits.
_AWAY_NS = 800_000_000
#: Long enough to be seen at work.
_BUSY_NS = 100_000_000
#: When what is left of an upload has been found, and may still be on its way.
_SOON = Site("time", ns=700_000_000, unit="engine")
#: At once: another recall, and a receiver's word of the report.
_AGAIN = Interruption("cancel", Site("time", ns=1_000_000))
_HEARD = Interruption("notice", Site("time", ns=1_000_000), target="report")
#: Longer than any caller waits: it arrives when its sender has given it up.
_LOST_NS = 1_300_000_000


def _at(op: str, nth: int, barrier: Barrier = "applied", unit: str = "worker") -> Site:
    """Request number `nth` of `op`; a report of three parts is committed by its fourth."""
    return Site("barrier", op, nth, barrier, unit=unit)


def _recall(nth: int, then: Interruption) -> Interruption:
    """The run is cancelled as request number `nth` of the report arrives, and then something becomes of it."""
    return Interruption("cancel", _at("report", nth, "received"), then=then)


STORIES = (
    Story(
        "publish",
        "A report is published in three parts and announced; workers die over each of them, and lose their disks.",
        in_order(ledger("draft"), Artifact("report", "report", 150, 3, ("draft",)), ledger("announce", "report")),
        extras=(
            Interruption("kill", _at("report", 1)),
            Interruption("kill", _at("report", 2, unit="engine")),
            Interruption("kill", _at("report", 3)),
            Interruption("kill", _at("report", 4)),
            Interruption("reset", _at("report", 4)),
            Interruption("wipe", _at("report", 2)),
            Interruption("wipe", _at("announce", 1, "received")),
            Interruption("pause", _at("report", 3), ns=_AWAY_NS),
        ),
        generic=False,
    ),
    Story(
        "retract",
        "A report is called back while it is being uploaded: what is there of it is kept or cleared away, and nothing else.",
        in_order(
            Artifact("minutes", "minutes", 40), Artifact("report", "report", 150, 3), ledger("announce", "report")
        ),
        extras=(
            _recall(2, Interruption("kill", _at("report", 2))),
            _recall(2, Interruption("kill", _at("report", 2, unit="engine"))),
            # What is left is to be cleared away only later, and the engine dies before.
            _recall(3, Interruption("kill", _at("report", 3), then=Interruption("kill", _SOON))),
            _recall(4, Interruption("kill", _at("report", 4))),
            _recall(4, Interruption("reset", _at("report", 4))),
            _recall(2, Interruption("delay", _at("report", 3, "received"), ns=_LOST_NS)),
            _recall(3, Interruption("delay", _at("report", 4, "received"), ns=_BUSY_NS)),
            # Clearing away gets no answer, and the report is called back once more before that is tried again.
            _recall(
                2,
                Interruption(
                    "kill", _at("report", 2), then=Interruption("reset", _at("report", 3, "received"), then=_AGAIN)
                ),
            ),
            # Committed, and before anybody has looked, there is word of it.
            _recall(4, Interruption("kill", _at("report", 4), then=_HEARD)),
        ),
        generic=False,
    ),
    Story(
        "dispute",
        "Minutes are published and a report is on its way when the vote is refused: the run fails, and what it has is kept.",
        in_order(
            ledger("meet"),
            Artifact("minutes", "minutes", 40, 1, ("meet",)),
            Par("both", (Artifact("report", "report", 150, 3), Call("vote", "flaky", {"n": 1}, (), ("reject",)))),
            ledger("announce", "report"),
        ),
        extras=(
            Interruption("delay", _at("report", 2, "received"), ns=_BUSY_NS),
            Interruption("delay", _at("report", 4, "received"), ns=_BUSY_NS),
            Interruption("kill", _at("report", 3)),
            Interruption("kill", _at("minutes", 2, unit="engine")),
            Interruption("wipe", Site("end")),
        ),
        generic=False,
    ),
    Story(
        "replace",
        "A report is replaced by another while it is being checked: only the check of the new one counts.",
        in_order(
            ledger("draft"),
            Artifact("first", "report", 100, 2, ("draft",)),
            Par("both", (Check("proof", "first"), Artifact("second", "report", 130, 2))),
            ledger("announce", "second"),
        ),
        extras=(
            Interruption("delay", _at("proof", 1), ns=_BUSY_NS),
            Interruption("delay", _at("second", 3), ns=_BUSY_NS),
            Interruption("kill", _at("second", 3)),
            Interruption("kill", _at("second", 3, unit="engine")),
            Interruption("wipe", _at("proof", 2)),
            Interruption("kill", _at("proof", 2, unit="engine")),
        ),
        generic=False,
    ),
    Story(
        "heirloom",
        "Somebody dies over each of four parts, and over their commit: it is given up, found to be there, and announced.",
        in_order(ledger("draft"), Artifact("report", "report", 200, 4, ("draft",)), ledger("announce", "report")),
        extras=(Interruption("kill", _at("report", 0)),),
        generic=False,
    ),
)

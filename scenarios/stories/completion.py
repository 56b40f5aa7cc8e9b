"""Stories about how a run comes to be over: what a checker may say, and a result that is handed over."""

from __future__ import annotations

from scenarios.interruption import Barrier, Interruption, Site
from scenarios.plan import Artifact, Check, Plan
from scenarios.story import Story, in_order, ledger


def _kill(op: str, barrier: Barrier, unit: str = "worker") -> Interruption:
    return Interruption("kill", Site("barrier", op, 1, barrier, unit=unit))


def _checked(*script: str) -> Plan:
    """A paper is written, published, checked, and filed once it has passed."""
    paper = Artifact("paper", "paper", 60, 1, ("write",))
    return in_order(ledger("write"), paper, Check("proof", "paper", script), ledger("file", "paper"))


#: What is said of a check, more often than any harness asks, and the story of it.
_SAID = {
    "failed": ("faulty", "A paper does not pass its check: that is the end of it."),
    "unavailable": ("closed", "Nobody is there to check a paper: it has not failed, and it has not passed."),
    "timeout": ("endless", "The check of a paper does not come to an end: it has not failed, and it has not passed."),
    "skipped": ("waived", "The check of a paper is left out: it has not failed, and it has not passed."),
}

STORIES = (
    *(
        Story(
            name,
            story,
            _checked(*(outcome,) * 12),
            extras=(_kill("proof", "applied"), _kill("proof", "replied", "engine")),
            generic=False,
        )
        for outcome, (name, story) in _SAID.items()
    ),
    Story(
        "second-look",
        "The checker is away twice, and passes the paper when it is asked for the third time; then comes a corrected paper.",
        in_order(
            ledger("write"),
            Artifact("paper", "paper", 60, 1, ("write",)),
            Check("proof", "paper", ("unavailable", "timeout", "passed")),
            Artifact("clean", "paper", 70, 2),
            ledger("file", "clean"),
        ),
        extras=(
            _kill("proof", "replied"),
            _kill("proof", "replied", "engine"),
            _kill("clean", "applied"),
            _kill("clean", "applied", "engine"),
        ),
        generic=False,
    ),
    Story(
        "handover",
        "A paper has passed its check and is filed; its caller is told, and whoever dies, that is not forgotten.",
        _checked("passed"),
        extras=(
            _kill("proof", "replied", "engine"),
            Interruption("wipe", Site("barrier", "file", 1, "applied")),
            _kill("file", "applied", "engine"),
            Interruption("lose-ack", Site("end")),
            Interruption("lose-ack", Site("end"), then=Interruption("kill", Site("end", unit="engine"))),
            Interruption("kill", Site("end", unit="engine")),
            Interruption("cancel", Site("end")),
        ),
        generic=False,
    ),
)

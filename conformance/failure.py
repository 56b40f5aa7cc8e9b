"""From a judge's violation to the event a report shows: space-time table, reason, and the two whole replay lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from conformance import invocation
from conformance.events import ViolationFound, World
from conformance.reporters import spacetime

if TYPE_CHECKING:
    from scenarios.history import History
    from scenarios.verdict import Violation


@attrs.frozen
class Origin:
    """Which run it was, as someone would type it. `target` is what `-t` takes, version included."""

    target: str
    world: World
    scenario: str
    seed: int | None = None
    case_id: str | None = None
    configuration: str | None = None
    mutant: str | None = None
    boundaries: bool = False  # a crash at every storage boundary of the seed
    sweep: int | None = None  # a crash at every place of the seed, and so many pairs
    swarm: bool = True  # the world's own faults drawn as well


def describe(
    history: History, violation: Violation, obligation: str, name: str, origin: Origin, *, claimed: bool = True
) -> ViolationFound:
    """The event for one violation. `name` is the obligation's name in words."""
    return ViolationFound(
        obligation=obligation,
        anomaly=violation.anomaly,
        sentence=violation.sentence,
        scenario=origin.scenario,
        seed=origin.seed,
        case_id=origin.case_id,
        table=spacetime.rows(history, violation.evidence),
        replay_case=case_line(origin),
        replay_seed=replay_line(origin),
        name=name,
        why=spacetime.why(history, violation.evidence),
        claimed=claimed,
    )


def case_line(origin: Origin) -> str:
    """The shell line that does this run again from its case; nothing when it has none."""
    return invocation.line("replay", origin.case_id) if origin.case_id else ""


def replay_line(origin: Origin) -> str:
    """The shell line that does this run again without its case: by seed where it was drawn, else by scenario."""
    words = ["-t", origin.target]
    if origin.configuration:
        words += ["--config", origin.configuration]
    if origin.mutant:
        words += ["--mutant", origin.mutant]
    if origin.seed is not None:
        more = ["--boundaries"] if origin.boundaries else []
        if origin.sweep is not None:
            more += ["--sweep", "--sweep-budget", str(origin.sweep)]
        if not origin.swarm:
            more += ["--no-swarm"]
        return invocation.line("run", *words, "--seeds", str(origin.seed), *more)
    return invocation.line("replay", *words, "--scenario", origin.scenario)

"""Writes the pages of obligations, faults and reported faults beside this file, from the registries: `python docs/generate.py`.

Tests hold the files against the registries, so that the pages are there for who reads them as files.
"""

from __future__ import annotations

from pathlib import Path

from conformance.cli import relations
from scenarios import faults as reported
from scenarios.obligations import ANOMALIES, OBLIGATIONS, Obligation
from scenarios.obligations.catalogue import CATALOGUE, Promise
from simkit.faults import FAULTS, Fault

PAGE = Path(__file__).parent / "obligations.md"
FAULTS_PAGE = Path(__file__).parent / "faults.md"
REPORTED_PAGE = Path(__file__).parent / "reported-faults.md"
_HEAD = """\
<!-- Written by docs/generate.py from the registry in scenarios/obligations; change it there. -->

# Obligations

What a durable runtime owes its users, as promises that an observer outside it can check. Ids are stable for ever: a
certificate quotes them. A *safety* promise forbids an observation; a *liveness* promise is due once faults have stopped
and a worker is available. A promise not put to the test often enough is *inconclusive*, never passed.
"""


_FAULTS_HEAD = """\
<!-- Written by docs/generate.py from the registry in simkit/faults.py; change it there. -->

# Faults

What can go wrong in a simulated world. A fault is *struck* by a call, here and now, or *drawn* from the tape, as often as
an option says; either way it counts in `Outcome.fired` (disk and network) or stands in the trace. `World.calm()` and
`simkit.eventually` turn all of them off; `simkit.swarm.draw_faults(world)` draws a mix for one run. *Checked* means that
the same program plays on the real operating system and in simulation, and must make the same observations:
`pytest tests/fidelity`, as root on Linux; what a machine cannot provoke is skipped there with its reason.

What may be left after a power loss is listed by `Disk.crash_states(bound)`: every legal state when there are few, else a
sample with a bias to boundaries. `World.copies.declare(name, copies)` sets a budget: silent damage (rot, misdirected
writes, lying syncs) spares the last good copy.

A program has a say in it by named points. `simkit.maybe("name")` is true now and then, in half of the runs: put what is
legal and rare behind it. `simkit.always("name", condition)` and `simkit.unreachable("name")` fail the run, also when the
program swallows their error; `simkit.sometimes("name", condition)` and `simkit.reachable("name")` should be met at least
once in a campaign: `simkit.point_coverage.Coverage.of(outcomes).never(declared("src"))` names those that were not.
"""


def faults_page() -> str:
    """The whole page: faults by component."""
    components: dict[str, list[Fault]] = {}
    for fault in FAULTS:
        components.setdefault(fault.component, []).append(fault)
    return "\n".join([_FAULTS_HEAD, *map(_faults, components, components.values())])


def _faults(component: str, faults: list[Fault]) -> str:
    rows = "".join(
        f"| {fault.name} | {fault.what} | {fault.by_name or '–'} | {fault.drawn or '–'} "
        f"| {'yes' if fault.checked else 'no'} | {fault.how}{f' (`{fault.checked}`)' if fault.checked else ''} |\n"
        for fault in faults
    )
    head = "| fault | simulated as | struck by | drawn by | checked | against the real thing |\n|---|---|---|---|---|---|\n"
    return f"## {component.capitalize()}\n\n{head}{rows}"


_REPORTED_HEAD = """\
<!-- Written by docs/generate.py from the registry in scenarios/faults.py; change it there. -->

# Reported faults

What has really been reported of durable runtimes, queues and checkpointers, told by its kind: a harness that behaves so
breaks the obligations named beside it, whatever it is called. `simkit explain F17` tells of one. An id in italics has no
judge in this build yet. The stories are those of the catalogue that exercise an obligation of the row.

| number | about | what goes wrong | caught by | stories |
|---|---|---|---|---|
"""


def reported_page() -> str:
    """The whole page: one row for each kind of fault that was reported."""
    return _REPORTED_HEAD + "".join(map(_reported, reported.FAULTS.values()))


def _reported(one: reported.Reported) -> str:
    ids = ", ".join(id_ if id_ in OBLIGATIONS else f"*{id_}*" for id_ in one.obligations)
    stories = ", ".join(relations.stories_of_fault(one)) or "–"
    return f"| {one.number} | {one.area} | {one.kind} | {ids} | {stories} |\n"


def page() -> str:
    """The whole page: obligations by profile, then the anomalies."""
    profiles: dict[str, list[Promise]] = {}
    for promise in CATALOGUE.values():
        profiles.setdefault(promise.profile, []).append(promise)
    return "\n".join([_HEAD, *map(_profile, profiles, profiles.values()), _anomalies()])


def _profile(name: str, promises: list[Promise]) -> str:
    judged = [OBLIGATIONS[one.id] for one in promises if one.id in OBLIGATIONS]
    rows = "".join(f"| {one.id} | {one.level} | {one.promise} |\n" for one in promises if one.id not in OBLIGATIONS)
    table = f"### Without a judge yet\n\n| id | level | promise |\n|---|---|---|\n{rows}" if rows else ""
    return f"## {name}\n\n" + "\n".join([*map(_entry, judged), *([table] if table else [])])


def _entry(obligation: Obligation) -> str:
    promise = obligation.promise.strip().rstrip(".")
    causes = "".join(f"- {cause}\n" for cause in obligation.causes)
    times = "once" if obligation.minimum == 1 else f"{obligation.minimum} times"
    return (
        f"### {obligation.id} · {obligation.name}\n\n"
        f"{promise[:1].upper()}{promise[1:]}.\n\n"
        f"{obligation.level}, {obligation.kind}; tested by {obligation.tested_by}; to pass, exercised at least {times}.\n"
        f"Broken, it is called *{'* or *'.join(obligation.anomalies)}*.\n\n"
        f"What usually breaks it:\n\n{causes}"
    )


def _anomalies() -> str:
    rows = "".join(f"| *{name}* | {meaning} |\n" for name, meaning in ANOMALIES.items())
    return f"## Anomalies\n\n| a failed check is called | when |\n|---|---|\n{rows}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    FAULTS_PAGE.write_text(faults_page(), encoding="utf-8")
    REPORTED_PAGE.write_text(reported_page(), encoding="utf-8")

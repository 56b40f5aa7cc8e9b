"""Writes `obligations.md` beside this file from the registry that the judges run from: `python docs/generate.py`.

A test holds the file against the registry, so that the page is there for who reads it as a file.
"""

from __future__ import annotations

from pathlib import Path

from scenarios.obligations import ANOMALIES, OBLIGATIONS, Obligation

PAGE = Path(__file__).parent / "obligations.md"
_HEAD = """\
<!-- Written by docs/generate.py from the registry in scenarios/obligations; change it there. -->

# Obligations

What a durable runtime owes its users, as promises that an observer outside it can check. Ids are stable for ever: a
certificate quotes them. A *safety* promise forbids an observation; a *liveness* promise is due once faults have stopped
and a worker is available. A promise not put to the test often enough is *inconclusive*, never passed.
"""


def page() -> str:
    """The whole page: obligations by profile, then the anomalies."""
    profiles: dict[str, list[Obligation]] = {}
    for obligation in OBLIGATIONS.values():
        profiles.setdefault(obligation.profile, []).append(obligation)
    return "\n".join([_HEAD, *map(_profile, profiles, profiles.values()), _anomalies()])


def _profile(name: str, obligations: list[Obligation]) -> str:
    return f"## {name}\n\n" + "\n".join(map(_entry, obligations))


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

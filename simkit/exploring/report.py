"""What an exploration came to, as values: `Report`, with a `Stage` for each stage and a `Finding` for each kind of failure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from simkit.case import Case
from simkit.discovery import Point
from simkit.exploring.kinds import strikes_of
from simkit.point_coverage import DeclaredPoint

__all__ = ["Finding", "Report", "Sites", "Stage", "Unfinished"]

_NO_EVIDENCE = "neither passed nor failed, `passed` does not count them"


@attrs.frozen
class Stage:
    """What one stage did."""

    name: str
    runs: int
    steps: int
    #: How many runs there would be in all; None where there is no end.
    candidates: int | None
    #: Why it ended.
    stopped: str
    #: Runs that failed, and those of them whose failure no run before had shown.
    failing: int
    new: int
    #: Runs that met a bound: neither passed nor failed.
    inconclusive: int
    #: (runs, behaviours that differ, chance that the next one is new), at 1, 2, 4, … runs and the last.
    curve: tuple[Point, ...]

    @property
    def complete(self) -> bool:
        """Whether every run that there is was made."""
        return self.candidates is not None and self.runs >= self.candidates

    @property
    def behaviours(self) -> int:
        """How many behaviours it showed that differ, see `simkit.discovery`."""
        return self.curve[-1].distinct if self.curve else 0

    @property
    def chance_of_new(self) -> float:
        """The chance that another run of it would show a behaviour that it has not: Good and Turing's estimate."""
        return self.curve[-1].chance_of_new if self.curve else 1.0


@attrs.frozen
class Finding:
    """A kind of failure: all runs that failed with the same type of exception from the same line, see `simkit.blame`."""

    fingerprint: str
    #: The stage that showed it first.
    stage: str
    what: str  # raised, deadlock or liveness
    error: str
    #: How many runs failed so.
    runs: int
    #: What struck in the first of them: crashes and faults, each with where; ordinary choices are counted only.
    strikes: tuple[str, ...]
    case: Case = attrs.field(repr=False)
    #: The simplest run that was found to fail so; None when it was not looked for.
    shrunk: Case | None = attrs.field(default=None, repr=False)
    shrinking: str = ""
    explanation: str = ""

    @property
    def simplest(self) -> Case:
        """The case to look at."""
        return self.case if self.shrunk is None else self.shrunk


@attrs.frozen
class Unfinished:
    """The runs that met a bound of one kind, and the case of the first of them."""

    bound: str
    runs: int
    strikes: tuple[str, ...]
    case: Case = attrs.field(repr=False)


@attrs.frozen
class Sites:
    """The sites of one kind in the default run, and how many of them were struck in any run."""

    kind: str
    sites: int
    struck: int


@attrs.frozen
class Report:
    """What an exploration came to."""

    program: str
    seed: int
    runs: int
    steps: int
    boundaries: Mapping[str, int]  # of the default run, by host
    sites: tuple[Sites, ...]
    stages: tuple[Stage, ...]
    findings: tuple[Finding, ...]
    #: Runs that met a bound; `unfinished` has a case of each kind of bound.
    inconclusive: int
    #: Named points that no run has hit.
    never_hit: tuple[DeclaredPoint, ...] = ()
    notes: tuple[str, ...] = ()
    unfinished: tuple[Unfinished, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether there is evidence, and none of it is bad. It says nothing about inconclusive runs: they are no evidence."""
        return self.runs > 0 and not self.findings

    def stage(self, name: str) -> Stage:
        """The stage of that name; KeyError when it was not made."""
        for stage in self.stages:
            if stage.name == name:
                return stage
        raise KeyError(name)

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        data = attrs.asdict(self, filter=lambda field, _: field.name not in {"case", "shrunk"})
        for told, finding in zip(data["findings"], self.findings, strict=True):
            told["case"] = finding.case.to_json()
            told["shrunk"] = None if finding.shrunk is None else finding.shrunk.to_json()
        for told, one in zip(data["unfinished"], self.unfinished, strict=True):
            told["case"] = one.case.to_json()
        for told, stage in zip(data["stages"], self.stages, strict=True):
            told.update(complete=stage.complete, behaviours=stage.behaviours, chance_of_new=stage.chance_of_new)
        return {name: list(value) if isinstance(value, tuple) else value for name, value in data.items()}

    def __str__(self) -> str:
        """A short table."""
        words = f"{len(self.findings)} findings" if len(self.findings) != 1 else "1 finding"
        lines = [f"{self.program}: {self.runs} runs, {self.steps} steps, {words}, {self.inconclusive} inconclusive"]
        lines += _table(
            [
                ("stage", "runs", "of", "failing", "new", "behaviours", "chance of new", "stopped"),
                *map(_row, self.stages),
            ]
        )
        lines += [line for finding in self.findings for line in _told(finding)]
        for one in self.unfinished:
            struck = "; ".join(one.strikes) or "nothing but the schedule"
            lines.append(f"inconclusive, {one.runs} runs: they met their bound on {one.bound}; {_NO_EVIDENCE}")
            lines.append(f"  the first is case {one.case.id}: {struck}")
        missed = [
            f"{one.kind} ({one.sites - one.struck} of {one.sites})" for one in self.sites if one.struck < one.sites
        ]
        if missed:
            lines.append(f"never struck: {', '.join(missed)}")
        lines += [f"never hit: {point.name} ({point.kind}, {point.where})" for point in self.never_hit]
        return "\n".join([*lines, *self.notes])


def _row(stage: Stage) -> tuple[str, ...]:
    return (
        stage.name,
        str(stage.runs),
        "-" if stage.candidates is None else str(stage.candidates),
        str(stage.failing),
        str(stage.new),
        str(stage.behaviours),
        f"{stage.chance_of_new:.3f}" if stage.runs else "-",
        stage.stopped,
    )


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    last = len(widths) - 1
    return [
        "  ".join(
            cell if column in (0, last) and column == last else cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def _told(finding: Finding) -> list[str]:
    struck = "; ".join(finding.strikes) or "nothing but the schedule"
    lines = [
        f"{finding.what} in {finding.stage}, {finding.runs} runs: {finding.error}",
        f"  case {finding.case.id}: {struck}",
    ]
    if finding.shrunk == finding.case:
        lines.append(f"  which cannot be made simpler: {finding.shrinking}")
    elif finding.shrunk is not None:
        left = "; ".join(strikes_of(finding.shrunk.departures)) or "nothing but the schedule"
        lines.append(f"  shrunk to case {finding.shrunk.id}: {left}")
        lines.append(f"    {finding.shrinking}")
    elif finding.shrinking:
        lines.append(f"  {finding.shrinking}")
    if finding.explanation:
        lines.append(f"  {finding.explanation}")
    return lines

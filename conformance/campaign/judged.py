"""A judged run, as a value; and a failure made small."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import attrs

from scenarios.history import History
from scenarios.verdict import Finding
from simkit.case import Case
from simkit.errors import Problem
from simkit.points import PointCount


@attrs.frozen
class Judged:
    """One run with its findings. `case` comes along only where something was violated; `logs` from real processes."""

    scenario: str
    seed: int | None
    findings: Mapping[str, Finding]
    fired: tuple[str, ...] = ()
    unfired: tuple[str, ...] = ()
    history: History | None = None
    case: Case | None = None
    problem: Problem | None = None  # the run could not be judged
    unsettled: bool = False  # it had not ended when the kit stopped looking
    logs: Mapping[str, bytes] = attrs.field(factory=dict, repr=False)
    faults: Mapping[str, int] = attrs.field(factory=dict, repr=False)  # of the simulated world, that happened
    points: Mapping[str, PointCount] = attrs.field(factory=dict, repr=False)  # named points of the target
    swept: str = ""  # the kind of crash of a sweep that this run was made for
    sweep: Mapping[str, int] = attrs.field(factory=dict)  # how many of each kind there would be, said once

    @property
    def violated(self) -> bool:
        return any(finding.violations for finding in self.findings.values())

    @property
    def slow(self) -> bool:
        return any(finding.slow for finding in self.findings.values())

    @property
    def is_notable(self) -> bool:
        """Whether somebody will want to look at it."""
        return self.violated or self.slow or self.unsettled or self.problem is not None


@attrs.frozen
class Small:
    """A failure made small."""

    judged: Judged  # with a case of its own
    unshrunk: Case
    told: str  # how small, in how many runs
    decides: str  # what it fails with and not without; empty where nothing was found out
    drawn: Mapping[str, str] = attrs.field(factory=dict, repr=False)  # space-time tables, by file name


#: Makes a failure of a judged run, by its obligation and anomaly, small; None where it cannot.
Shrinks: TypeAlias = Callable[[Judged, str], Small | None]

"""What went wrong in the runs of a campaign, how often; and the named points of the target that none of them has hit."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from simkit.point_coverage import Coverage, DeclaredPoint, declared

if TYPE_CHECKING:
    from conformance.campaign.judged import Judged

_SHOWN_MAX = 12


@attrs.define
class Happenings:
    """Adds up."""

    interruptions: Counter[str] = attrs.field(factory=Counter)
    faults: Counter[str] = attrs.field(factory=Counter)
    points: Coverage = attrs.field(factory=Coverage)
    swept: Counter[str] = attrs.field(factory=Counter)
    sweep: Counter[str] = attrs.field(factory=Counter)

    def add(self, judged: Judged) -> None:
        """Take in one run."""
        links = [link.partition("@")[0] for label in judged.fired for link in label.split("+")[:1]]
        self.interruptions.update(links)
        self.faults.update(judged.faults)
        self.swept.update([judged.swept] if judged.swept else [])
        self.sweep.update(judged.sweep)
        self.points = self.points.merge(Coverage(1, judged.points))

    def told(self, folder: Path) -> list[str]:
        """Sentences for the end of a campaign; `folder` has the source of the target."""
        sentences = []
        if self.sweep:
            parts = (f"{self.swept[kind]} of {there} {kind}" for kind, there in self.sweep.items())
            sentences.append(f"swept: {', '.join(parts)}")
        if self.interruptions:
            sentences.append(f"interruptions that struck: {_counted(self.interruptions)}")
        if self.faults:
            sentences.append(f"faults that happened: {_counted(self.faults)}")
        if never := self.points.never(points_in(folder)):
            shown = ", ".join(f"{point.name} ({point.where})" for point in never[:_SHOWN_MAX])
            more = f" and {len(never) - _SHOWN_MAX} more" if len(never) > _SHOWN_MAX else ""
            sentences.append(f"named points never hit: {shown}{more}")
        return sentences


def points_in(folder: Path) -> list[DeclaredPoint]:
    """The named points in the source of a target; what is no Python of this version has none."""
    found: list[DeclaredPoint] = []
    for path in sorted(folder.rglob("*.py")):
        try:
            found += declared(path)
        except (SyntaxError, ValueError, OSError):
            continue
    return found


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{name} × {times}" for name, times in counts.most_common())

"""The words of a failure: what failed, which faults, why, and the two replay lines, whole and last."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

from simkit._pytest.inquest import Found, place_of
from simkit.tape import Site

_SHOWN = 12


def of_failure(found: Found, test: str, profile: str | None, here: Path) -> str:
    """The block of a failing seed. `test` is the test as one would type it in the folder `here`."""
    failed, shrunk = found.failed, found.shrunk
    lines = [f"seed {failed.seed} fails: {place_of(found.error)}"]
    drawn = len(failed.outcome.departures)
    if shrunk is None:
        lines += [f"faults and choices drawn: {drawn}", *_departures(failed.outcome.departures)]
    else:
        best = shrunk.best
        lines += [f"faults and choices: {drawn} drawn, {len(best.departures)} needed", *_departures(best.departures)]
        lines.append(f"schedule: {shrunk.first.preemptions} pre-emptions drawn, {best.preemptions} needed")
        bound = f", stopped by its bound on {shrunk.stopped}" if shrunk.stopped else ""
        lines.append(f"shrunk in {shrunk.runs} runs{bound}")
    if found.explanation is not None:
        lines += [f"why: {found.explanation}", *_stacks(found)]
    if found.trouble:
        lines.append(f"missing here: {found.trouble}")
    if found.path is not None:
        inside = found.path.is_relative_to(here)
        lines.append(f"saved as {found.path.relative_to(here) if inside else found.path}")
    return "\n".join([*lines, "", *_replay_lines(found, test, profile)])


def _replay_lines(found: Found, test: str, profile: str | None) -> list[str]:
    by_seed = ["pytest", test, "--simkit-seed", str(found.failed.seed)]
    if profile is not None:
        by_seed += ["--simkit-profile", profile]
    by_case = [shlex.join(["pytest", test, "--simkit-replay", found.case.id])] if found.case is not None else []
    return [*by_case, shlex.join(by_seed)]


def _departures(departures: Mapping[Site, int]) -> list[str]:
    rows = [f"  {label}/{key}#{nth} = {value}" for (label, key, nth), value in sorted(departures.items())]
    more = [f"  … and {len(rows) - _SHOWN} more"] if len(rows) > _SHOWN else []
    return rows[:_SHOWN] + more


def _stacks(found: Found) -> list[str]:
    """The two stacks of each deciding ordering that has more than one frame to show."""
    assert found.explanation is not None
    lines = []
    for ordering in found.explanation.orderings:
        for event in (ordering.first, ordering.second):
            if len(event.stack) > 1:
                lines += [f"  {event.name} #{event.task}, step {event.nth}:", *(f"    {at}" for at in event.stack)]
    return lines

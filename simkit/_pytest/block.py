"""The words of a failure: what failed, which faults, why, the space-time table, and the two replay lines, whole and last."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path

from simkit._pytest.inquest import Found, place_of
from simkit.explanation import Event
from simkit.spacetime import Table, as_text
from simkit.tape import Site
from simkit.trials import BLOCK, explores

_SHOWN = 12


def of_failure(found: Found, commands: list[str], here: Path, rows_max: int, page: Path | None = None) -> str:
    """The block of a failing seed.

    Args:
        found: the failure.
        commands: what `commands` gives.
        here: the folder where pytest was started; paths are told from there.
        rows_max: of the space-time table; 0 for none.
        page: the HTML file, if one was written.
    """
    lines = facts(found)
    table = found.table(rows_max) if rows_max else None
    if found.explanation is not None:
        lines.append(f"why: {found.explanation if table is None else found.explanation.sentence(lettered(table))}")
    if table is not None:
        lines += ["", *drawing(table), ""]
    if found.trouble:
        lines.append(f"missing here: {found.trouble}")
    if found.path is not None:
        lines.append(f"saved as {shown(found.path, here)}")
    if page is not None:
        lines.append(f"drawn in {shown(page, here)}")
    return "\n".join([*lines, "", *commands])


def facts(found: Found) -> list[str]:
    """What fails, and how much of what was drawn is needed for it."""
    failed, shrunk = found.failed, found.shrunk
    lines = [f"seed {failed.seed} fails: {place_of(found.error)}"]
    drawn = len(failed.outcome.departures)
    if shrunk is None:
        lines += [f"faults and choices drawn: {drawn}", *_departures(failed.outcome.departures)]
    else:
        best = shrunk.best
        if found.explanation is not None and found.explanation.by_default:
            return lines  # a mistake in the program, whatever is drawn: the explanation says so in a line
        lines += [f"faults and choices: {drawn} drawn, {len(best.departures)} needed", *_departures(best.departures)]
        lines.append(f"schedule: {shrunk.first.preemptions} pre-emptions drawn, {best.preemptions} needed")
        bound = f", stopped by its bound on {shrunk.stopped}" if shrunk.stopped else ""
        lines.append(f"shrunk in {shrunk.runs} runs{bound}")
    if explores(found.strategy):
        lines.append(f"strategy: {found.strategy}; {_prefix(found)}")
    return lines


def drawing(table: Table, *, with_events: bool = False) -> list[str]:
    """The space-time table, and where tasks stood before what decides."""
    return [as_text(table, with_orders=False, with_events=with_events), *_stacks(table)]


def lettered(table: Table) -> Callable[[Event], str]:
    """Calls events as the table does."""

    def name(event: Event) -> str:
        tag = table.tag_of(event.task, event.nth)
        return str(event) if tag is None else f"({tag})"

    return name


def _prefix(found: Found) -> str:
    """What a seed of an exploration stands for."""
    seed = found.failed.seed
    first = 0 if found.failed.world_seed != seed else seed // BLOCK * BLOCK
    if seed == first:
        return f"seed {seed} is the first run of an exploration"
    before = f"run {first}" if seed == first + 1 else f"runs {first} to {seed - 1}"
    return f"seed {seed} is a run that learnt from {before}; --simkit-seed makes that again first"


def commands(found: Found, test: str, profile: str | None) -> list[str]:
    """The lines that replay it, by case and by seed. `test` is the test as one would type it."""
    by_seed = ["pytest", test, "--simkit-seed", str(found.failed.seed)]
    if profile is not None:
        by_seed += ["--simkit-profile", profile]
    by_case = [shlex.join(["pytest", test, "--simkit-replay", found.case.id])] if found.case is not None else []
    return [*by_case, shlex.join(by_seed)]


def shown(path: Path, here: Path) -> str:
    """A path as one would type it."""
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _departures(departures: Mapping[Site, int]) -> list[str]:
    rows = [f"  {label}/{key}#{nth} = {value}" for (label, key, nth), value in sorted(departures.items())]
    more = [f"  … and {len(rows) - _SHOWN} more"] if len(rows) > _SHOWN else []
    return rows[:_SHOWN] + more


def _stacks(table: Table) -> list[str]:
    """The stack of each deciding event that has more than the one frame which its row shows."""
    lines = []
    for stack in table.stacks:
        if len(stack.frames) > 1:
            lines += [f"  before ({stack.tag}), {stack.title}:", *(f"    {frame}" for frame in stack.frames)]
    return lines

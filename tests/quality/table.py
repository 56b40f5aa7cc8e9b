"""Runs to the first failure, per strategy, beside the published figures: `python -m tests.quality.table [options] [program …]`.

A cell is "median / mean" over the seeds that found the fault, with how many did when not all ("(a/20)"), and "–" when none
did. A strategy that found nothing under its first seeds is not tried further, and says under how many: "– (0/3)".
"""

from __future__ import annotations

import argparse
import concurrent.futures
import multiprocessing
import statistics
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from simkit import DeadlockError, Found, search
from tests.quality.machine import FaultError
from tests.quality.yardstick import EXTRA, PROGRAMS, STRATEGIES, Program

#: A strategy gives up on a program after so many seeds under which it found nothing, or so many steps.
_GIVE_UP_AFTER = 3
_STEPS_IN_VAIN_MAX = 400_000
COLUMNS = ("portfolio", "random", "trio", "pct3", "pct10", "pos", "surw", "reads-from")
ALL = {**PROGRAMS, **EXTRA}
#: Found by SURW alone, by the hundred thousand: see `safe_stack`.
TOO_HARD = "SafeStack"


@attrs.frozen
class Cell:
    """What one strategy made of one program: runs to the failure by seed, None where it was not found."""

    runs: tuple[int | None, ...]
    steps: float  # of a run, on average

    @property
    def found(self) -> list[int]:
        """Runs of the seeds that found it."""
        return [runs for runs in self.runs if runs is not None]

    def __str__(self) -> str:
        if not self.found:
            return f"– (0/{len(self.runs)})"
        misses = "" if len(self.found) == len(self.runs) else f" ({len(self.found)}/{len(self.runs)})"
        return f"{statistics.median(self.found):,.0f} / {statistics.mean(self.found):,.0f}{misses}"

    def to_json(self) -> dict[str, Any]:
        return {"runs": list(self.runs), "steps": self.steps}

    @classmethod
    def of_json(cls, found: Mapping[str, Any]) -> Cell:
        return cls(tuple(found["runs"]), found["steps"])


#: By program, by strategy.
Cells = dict[str, dict[str, Cell]]


def is_fault(error: BaseException) -> bool:
    """Whether it is what the program is there to show; anything else is a mistake in the program, and raised."""
    leaves = error.exceptions if isinstance(error, BaseExceptionGroup) else (error,)
    if any(isinstance(leaf, FaultError | DeadlockError) for leaf in leaves):
        return True
    raise error


def measured(program: Program, strategy: str, seeds: Sequence[int], runs_max: int) -> Cell:
    """Search with each seed."""
    runs: list[int | None] = []
    total = steps = 0
    for seed in seeds:
        found = search(program, strategy, runs_max=runs_max, seed=seed, guard=program.needs_world)
        runs.append(found.counts.runs if isinstance(found, Found) and is_fault(found.error) else None)
        total += found.counts.runs
        steps += found.counts.steps
        if not any(runs) and (len(runs) == _GIVE_UP_AFTER or steps > _STEPS_IN_VAIN_MAX):
            break
    return Cell(tuple(runs), steps / max(1, total))


def portfolio_told(cells: Cells) -> str:
    """One sentence on the portfolio."""
    runs = [runs for row in cells.values() if "portfolio" in row for runs in row["portfolio"].runs]
    found = [one for one in runs if one is not None]
    if not found:
        return "portfolio: not measured"
    return (
        f"portfolio: {len(found)} of {len(runs)} searches found the fault, "
        f"median {statistics.median(found):g}, mean {statistics.mean(found):.1f}, most {max(found):,} schedules"
    )


# ------------------------------------------------------------------------------------------------------------- as text
def _rows(cells: Cells, columns: Sequence[str]) -> Iterator[list[str]]:
    yield ["program", "steps", *columns, *(f"[{name}]" for name in STRATEGIES)]
    for name, program in ALL.items():
        row = cells.get(name)
        if row:
            steps = next(iter(row.values())).steps
            yield [name, f"{steps:.0f}", *(str(row.get(column, "")) for column in columns), *program.published]


def as_text(cells: Cells, columns: Sequence[str] = COLUMNS) -> str:
    """For a terminal."""
    rows = list(_rows(cells, columns))
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def as_markdown(cells: Cells, columns: Sequence[str] = COLUMNS) -> str:
    """For documents."""
    title, *rows = _rows(cells, columns)
    lines = [title, ["---"] * len(title), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def page(cells: Cells, seeds: int, runs_max: int) -> str:
    """docs/yardstick.md."""
    listed = {name: row for name, row in cells.items() if name in PROGRAMS}
    others = {name: row for name, row in cells.items() if name in EXTRA}
    return f"""# Yardstick: schedules to the first failure

Written by `make yardstick`. Ports of programs of SCTBench, ConVul and RADBench, and of others that no strategy was tuned on
(from `account` on), under {seeds} seeds, at most {runs_max:,} schedules each. A cell is median / mean over the seeds that
found the fault; "(a/{seeds})" tells how many did when not all, "–" that none did under the seeds tried: a strategy gives up
on a program after {_GIVE_UP_AFTER} seeds, or {_STEPS_IN_VAIN_MAX:,} steps, in vain. "steps" is the length of a run. In
brackets the means of the published artefacts (SURW's and RFF's, 20 trials, cap 10,000), whose steps are memory accesses of
the original programs: compare strategies on the same port, not columns of two tables.

On the programs of the yardstick: {portfolio_told(listed)}.
On the others: {portfolio_told(others)}.

SafeStack is left out: `make nightly` searches for it with SURW, a million schedules long.

{as_markdown(cells)}
"""


# ---------------------------------------------------------------------------------------------------------- on the side
def _one(name: str, column: str, seeds: int, runs_max: int) -> tuple[str, str, Cell]:
    return name, column, measured(ALL[name], column, range(seeds), runs_max)


def every_cell(
    names: Sequence[str], columns: Sequence[str], seeds: int, runs_max: int, jobs: int
) -> Iterator[tuple[str, str, Cell]]:
    """Cells as they are ready, measured in `jobs` processes."""
    tasks: Iterable[tuple[str, str]] = [(name, column) for column in columns for name in names]
    if jobs == 1:
        yield from (_one(name, column, seeds, runs_max) for name, column in tasks)
        return
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(jobs, mp_context=context) as pool:
        waiting = [pool.submit(_one, name, column, seeds, runs_max) for name, column in tasks]
        for done in concurrent.futures.as_completed(waiting):
            yield done.result()


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.quality.table", description="runs to the first failure")
    parser.add_argument("programs", nargs="*", help="default: all but SafeStack, which only SURW finds, by the million")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--runs-max", type=int, default=10_000)
    parser.add_argument("--strategies", default=",".join(COLUMNS))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--write", type=Path, help="a page of documentation, written anew after every cell")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.programs if name not in ALL]
    if unknown:
        parser.error(f"unknown programs {', '.join(unknown)}; there are {', '.join(ALL)}")
    if min(options.seeds, options.runs_max, options.jobs) < 1:
        parser.error("--seeds, --runs-max and --jobs are at least 1")
    return options


def main(arguments: Sequence[str]) -> None:
    """Measure, and print or write the table."""
    options = _options(arguments)
    names = options.programs or [name for name in ALL if name != TOO_HARD]
    columns = options.strategies.split(",")
    cells: Cells = {name: {} for name in names}
    for name, column, cell in every_cell(names, columns, options.seeds, options.runs_max, options.jobs):
        cells[name][column] = cell
        print(f"{name}, {column}: {cell}", file=sys.stderr, flush=True)
        if options.write:
            options.write.write_text(page(cells, options.seeds, options.runs_max), encoding="utf-8")
    print(
        f"{options.seeds} seeds, at most {options.runs_max:,} runs each; median / mean; published means in brackets\n"
    )
    print(as_text(cells, columns))
    print(f"\n{portfolio_told(cells)}")


if __name__ == "__main__":
    main(sys.argv[1:])

"""Runs to the first failure, per strategy, beside the published figures: `python -m tests.quality.table [options] [program …]`.

A cell is the mean over the seeds that found the fault, with how many did when not all ("(a/20)"), and "–" when none did. A
strategy that found nothing under the first three seeds is not tried further, and says so: "– (0/3)".
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator, Sequence

import attrs

from simkit import DeadlockError, Found, search
from tests.quality.machine import FaultError
from tests.quality.yardstick import EXTRA, PROGRAMS, STRATEGIES, Program

_GIVE_UP_AFTER = 3
COLUMNS = ("portfolio", "random", "trio", "pct3", "pct10", "pos", "surw", "reads-from")


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
        return f"{statistics.mean(self.found):,.0f}{misses}"


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
        found = search(program, strategy, runs_max=runs_max, seed=seed, guard=False)
        runs.append(found.counts.runs if isinstance(found, Found) and is_fault(found.error) else None)
        total += found.counts.runs
        steps += found.counts.steps
        if len(runs) == _GIVE_UP_AFTER and not any(runs):
            break
    return Cell(tuple(runs), steps / max(1, total))


def rows(
    programs: Sequence[Program], columns: Sequence[str], seeds: Sequence[int], runs_max: int
) -> Iterator[tuple[Program, dict[str, Cell]]]:
    """The table, row by row as it comes."""
    for program in programs:
        yield program, {column: measured(program, column, seeds, runs_max) for column in columns}


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def main(arguments: Sequence[str]) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.quality.table", description="runs to the first failure")
    parser.add_argument("programs", nargs="*", help="default: all but SafeStack, which only SURW finds, by the million")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--runs-max", type=int, default=10_000)
    parser.add_argument("--strategies", default=",".join(COLUMNS))
    options = parser.parse_args(arguments)
    known = {**PROGRAMS, **EXTRA}
    unknown = [name for name in options.programs if name not in known]
    if unknown:
        parser.error(f"unknown programs {', '.join(unknown)}; there are {', '.join(known)}")
    programs = [known[name] for name in options.programs or known if name != "SafeStack" or options.programs]
    columns = options.strategies.split(",")
    titles = ["program", "steps", *columns, *(f"[{name}]" for name in STRATEGIES)]
    widths = [34, 5, *(max(14, len(column)) for column in columns), *(15 for _ in STRATEGIES)]
    print(f"{options.seeds} seeds, at most {options.runs_max:,} runs each; published figures in brackets\n")
    print(_line(titles, widths))
    medians: list[int] = []
    for program, cells in rows(programs, columns, range(options.seeds), options.runs_max):
        steps = f"{cells[columns[0]].steps:.0f}"
        print(_line([program.name, steps, *(str(cells[name]) for name in columns), *program.published], widths))
        sys.stdout.flush()
        medians += cells[columns[0]].found
    if medians:
        print(f"\n{columns[0]}: median {statistics.median(medians):.0f}, most {max(medians):,} runs over all seeds")


if __name__ == "__main__":
    main(sys.argv[1:])

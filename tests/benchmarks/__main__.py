"""`python -m tests.benchmarks`: every contest, told on the screen and kept in `.simkit/bench.json`.

Nothing is asserted about speed: rates depend on the machine, and a target is told as met or not met.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import warnings
from pathlib import Path

import apsw
import trio

from tests.benchmarks import kernel, runtime, storage
from tests.benchmarks.contest import REPEATS, Contest, Result, hold

PARTS = {"kernel": kernel.contests, "storage": storage.contests, "runtime": runtime.contests}


def main(argv: list[str] | None = None) -> int:
    """Hold the contests asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description="Rates and ratios of simkit.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"which ones: {', '.join(PARTS)}; all by default")
    parser.add_argument("--scale", type=int, default=100, help="per cent of the usual work (default 100)")
    parser.add_argument("--repeats", type=int, default=REPEATS, help=f"turns of each contestant (default {REPEATS})")
    parser.add_argument("--output", type=Path, default=Path(".simkit/bench.json"), help="where the figures are kept")
    options = parser.parse_args(argv)
    if unknown := [part for part in options.parts if part not in PARTS]:
        parser.error(f"no part {unknown[0]!r}; there are {', '.join(PARTS)}")
    if options.scale < 1 or options.repeats < 1:
        parser.error("--scale and --repeats are at least 1")
    warnings.simplefilter("ignore")
    print(_versions())
    contests = [one for part in options.parts or PARTS for one in PARTS[part](options.scale)]
    results = [_held(contest, options.repeats) for contest in contests]
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(as_json(results), encoding="utf-8")
    print(f"\n× is our rate as a multiple of the peer's, medians of {options.repeats}; kept in {options.output}")
    return 0


def _held(contest: Contest, repeats: int) -> Result:
    result = hold(contest, repeats)
    print("\n" + "\n".join(result.lines()), flush=True)
    return result


def _versions() -> str:
    return f"Python {platform.python_version()}, trio {trio.__version__}, SQLite {apsw.sqlite_lib_version()}"


def as_json(results: list[Result]) -> str:
    """The figures, for keeping and comparing."""
    found = {"schema": "simkit/bench/1", "versions": _versions(), "contests": [one.to_json() for one in results]}
    return json.dumps(found, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.exit(main())

"""`python -m tests.benchmarks`: every row, told on the screen, in one table at the end, and kept in `.simkit/bench.json`.

Everything runs in an environment that has the peers, made at first use. Where there are later Pythons, the kernel's part
runs on each of them as well. Nothing is asserted about speed: rates depend on the machine, and a target is told as met
or not met.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import apsw
import trio

from conformance import pythons
from simkit.errors import SimkitError
from tests.benchmarks import aio, checking, composite, cores, growth, kernel, runtime, searching, storage
from tests.benchmarks.contest import REPEATS, Contest, Gauge, Line, hold, read

Row = Contest | Gauge
PARTS: dict[str, Callable[[int], Iterable[Row]]] = {
    "kernel": kernel.contests,
    "asyncio": aio.contests,
    "storage": storage.contests,
    "composite": composite.contests,
    "growth": growth.contests,
    "runtime": runtime.contests,
    "cores": cores.contests,
    "searching": searching.contests,
    "checking": checking.contests,
}
#: What other Pythons are asked for.
ELSEWHERE = ("kernel", "asyncio")
PEERS = ("simpy", "looptime", "simloom; python_version >= '3.12'")
_SCHEMA = "simkit/bench/2"
_REPOSITORY = Path(__file__).resolve().parent.parent.parent


def main(argv: list[str] | None = None) -> int:
    """Hold the contests asked for."""
    options = _options(argv)
    if options.here:
        found = [_hold_here(options.parts, options.scale, options.repeats)]
    else:
        found = _hold_everywhere(options)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    document = {"schema": _SCHEMA, "pythons": found}
    options.output.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    if not options.here:
        print("\n".join(_tables(found)))
        print(f"\n× is our rate as a multiple of the peer's, medians of {options.repeats}; kept in {options.output}")
    return 0


def _options(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description="Rates and ratios of simkit.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"which ones: {', '.join(PARTS)}; all by default")
    parser.add_argument("--scale", type=int, default=100, help="per cent of the usual work (default 100)")
    parser.add_argument("--repeats", type=int, default=REPEATS, help=f"turns of each contestant (default {REPEATS})")
    parser.add_argument("--output", type=Path, default=Path(".simkit/bench.json"), help="where the figures are kept")
    parser.add_argument("--here", action="store_true", help="in this very process, with such peers as are installed")
    parser.add_argument("--this-python", action="store_true", help="leave other Pythons out")
    options = parser.parse_args(argv)
    if unknown := [part for part in options.parts if part not in PARTS]:
        parser.error(f"no part {unknown[0]!r}; there are {', '.join(PARTS)}")
    if options.scale < 1 or options.repeats < 1:
        parser.error("--scale and --repeats are at least 1")
    options.parts = options.parts or list(PARTS)
    return options


# ---- in this process


def _hold_here(parts: Sequence[str], scale: int, repeats: int) -> dict[str, Any]:
    warnings.simplefilter("ignore")
    print(f"\n==== {_versions()}", flush=True)
    rows = [_held(row, repeats) for part in parts for row in PARTS[part](scale)]
    return {"versions": _versions(), "contests": rows}


def _held(row: Row, repeats: int) -> dict[str, Any]:
    result = hold(row, repeats) if isinstance(row, Contest) else read(row)
    print("\n" + "\n".join(result.lines()), flush=True)
    return result.to_json()


def _versions() -> str:
    return f"Python {platform.python_version()}, trio {trio.__version__}, SQLite {apsw.sqlite_lib_version()}"


# ---- in environments that have the peers


def _hold_everywhere(options: argparse.Namespace) -> list[dict[str, Any]]:
    found = []
    for python in pythons.found():
        parts = options.parts if python.is_this_one else [part for part in options.parts if part in ELSEWHERE]
        if not parts or (options.this_python and not python.is_this_one) or not _wanted(python):
            continue
        try:
            path = pythons.environment(python, PEERS, progress=_progress)
        except SimkitError as error:
            print(f"NOT MEASURED with the peers of {python.name}: {error}", file=sys.stderr, flush=True)
            if python.is_this_one:
                found.append(_hold_here(parts, options.scale, options.repeats))
            continue
        found.append(_hold_there(path, parts, options))
    return found


def _wanted(python: pythons.Python) -> bool:
    """This one, and of every later minor version the last."""
    if python.is_this_one:
        return True
    same = [one for one in pythons.found() if one.version[:2] == python.version[:2]]
    return python.version[:2] != sys.version_info[:2] and python == same[-1]


def _progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _hold_there(python: Path, parts: Sequence[str], options: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "bench.json"
        command = [str(python), "-m", "tests.benchmarks", *parts, "--here", "--output", str(output)]
        command += ["--scale", str(options.scale), "--repeats", str(options.repeats)]
        subprocess.run(command, check=True, cwd=_REPOSITORY)  # ourselves
        answer: dict[str, Any] = json.loads(output.read_text(encoding="utf-8"))["pythons"][0]
        return answer


# ---- the table


def _tables(found: Sequence[dict[str, Any]]) -> list[str]:
    """For people: one table for each Python, of every line that has a target."""
    told = []
    for one in found:
        lines = [Line(**row) for contest in one["contests"] for row in contest["table"]]
        aimed = [line for line in lines if line.target is not None]
        told += ["", f"==== {one['versions']}: {sum(line.met is True for line in aimed)} of {len(aimed)} targets met"]
        told += [f"{'work':<54}{'simkit':>14} {'measured':>10} {'target':>10}       peer"]
        told += [_told(line) for line in aimed]
    return told


def _told(line: Line) -> str:
    times = " ×" if line.peer else "  "
    bound = f"{'≤' if line.at_most else '≥'} {line.target:g}"
    return (
        f"{line.work[:53]:<54}{line.ours:>14,.1f} {line.value:>8.3f}{times} {bound:>10} {'met' if line.met else 'NOT':>4}"
        f"  {line.peer or line.unit}"
    )


if __name__ == "__main__":
    sys.exit(main())

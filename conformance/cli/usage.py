"""What people may type: seeds, targets and names, checked before anything starts, with the nearest match when it is off."""

from __future__ import annotations

import difflib
import re
import shlex
import tomllib
from importlib import resources
from typing import TYPE_CHECKING, NoReturn

import attrs

from simkit.errors import Problem, SimkitError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

#: One command runs no more seeds than this.
SEEDS_MAX = 10_000_000
JOBS_MAX = 256
SHRINK_RUNS_MAX = 1_000_000
SWEEP_MAX = 1_000_000
#: Runs that one command shows whole.
SHOWN_MAX = 10
#: Seeds are 64-bit.
_SEED_END = 1 << 64


def seeds(text: str, *, show: bool = False) -> Sequence[int]:
    """Read `7`, `0-999`, `1,5,9` or a mixture: seeds in ascending order, none twice; few when shown. Raises SimkitError."""
    ranges = sorted((_seed_range(part.strip(), text) for part in text.split(",")), key=lambda one: one.start)
    count = sum(map(len, ranges))
    if count > SEEDS_MAX:
        _refuse_seeds(text, f"{count:,} seeds are more than one command runs ({SEEDS_MAX:,})")
    if show and count > SHOWN_MAX:
        _refuse_seeds(text, f"{count:,} runs are more than anybody reads whole; --show takes up to {SHOWN_MAX} seeds")
    if len(ranges) == 1:
        return ranges[0]
    return sorted({seed for one in ranges for seed in one})


def _seed_range(part: str, text: str) -> range:
    match = re.fullmatch(r"(\d{1,20})(?:-(\d{1,20}))?", part)
    if not match:
        _refuse_seeds(text, f"{part!r} is neither a seed nor a range of seeds")
    first, last = int(match[1]), int(match[2] or match[1])
    if last < first or last >= _SEED_END:
        _refuse_seeds(text, f"{part!r} is no ascending range below 2^64")
    return range(first, last + 1)


def _refuse_seeds(text: str, what: str) -> NoReturn:
    raise SimkitError(Problem("seeds-malformed", what, f"--seeds {text}", "7, 0-999 or 1,5,9", "e.g. --seeds 0-99"))


def nearest(word: str, known: Iterable[str]) -> str:
    """The hint `did you mean …?` for `word`, or nothing."""
    by_lower = {name.lower(): name for name in known}
    near = difflib.get_close_matches(word.lower(), by_lower, n=2, cutoff=0.6)
    return f"did you mean {' or '.join(by_lower[name] for name in near)}?" if near else ""


@attrs.frozen
class Adapter:
    """A shipped adapter as its manifest introduces it."""

    name: str
    version: str = ""
    configurations: tuple[str, ...] = ()
    storage: str = ""


def adapters() -> dict[str, Adapter]:
    """The adapters shipped with the kit, by name. One with a broken manifest is named all the same."""
    folder = resources.files("conformance") / "adapters"
    found = {}
    for one in sorted(folder.iterdir(), key=lambda entry: entry.name) if folder.is_dir() else ():
        manifest = one / "adapter.toml"
        if manifest.is_file():
            found[one.name] = _adapter(one.name, manifest.read_text(encoding="utf-8"))
    return found


def _adapter(name: str, text: str) -> Adapter:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return Adapter(name, version="(manifest malformed)")
    harness = data.get("harness", {})
    default = str(harness.get("configuration", ""))
    configurations = dict.fromkeys([default, *data.get("configurations", {})])
    version, storage = str(harness.get("version", "")), str(harness.get("storage", ""))
    return Adapter(name, version, tuple(one for one in configurations if one), storage)


def target(argument: str | None, option: str | None) -> str:
    """The one target of a command, given as its argument or by `-t`. Raises SimkitError."""
    known = ", ".join(adapters())
    if argument and option and argument != option:
        what = f"two targets: {argument} as argument and {option} by -t"
        raise SimkitError(Problem("target-twice", what, "command line", "one target", "leave one of them out"))
    if not (given := argument or option):
        raise SimkitError(
            Problem(
                "target-missing",
                "no target was named",
                "command line",
                f"an adapter ({known}), one with a version (dbos==3.4.0), or a path to an adapter.toml",
                "e.g. -t reference; `simkit list adapters` tells more about each",
            )
        )
    return given


def jobs(given: int | None) -> int | None:
    """Check a number of jobs. Raises SimkitError."""
    if given is not None and not 1 <= given <= JOBS_MAX:
        hint = "leave it out to run as many as fit"
        raise SimkitError(Problem("jobs-range", f"{given} jobs", f"--jobs {given}", f"1 to {JOBS_MAX}", hint))
    return given


def mutant_seeds(given: int) -> None:
    """Check how many drawn seeds a mutant is given. Raises SimkitError."""
    if not 0 <= given <= SEEDS_MAX:
        what, expected = f"{given} seeds for each mutant", f"0 to {SEEDS_MAX}"
        hint = "0 tries no drawn scenario, only the one that a mutant names"
        raise SimkitError(Problem("mutant-seeds-range", what, f"--seeds {given}", expected, hint))


def requirements(name: str | None) -> None:
    """Check the name of a requirement set; None is the current one. Raises SimkitError."""
    from scenarios.requirements import DRAFTS, REQUIREMENT_SETS

    if name is None or name in REQUIREMENT_SETS or name in DRAFTS:
        return
    sets = [*REQUIREMENT_SETS, *(f"{draft} (a draft)" for draft in DRAFTS)]
    hint = nearest(name, (*REQUIREMENT_SETS, *DRAFTS)) or "leave it out for the current one"
    what = f"there is no requirement set {name!r}"
    raise SimkitError(Problem("requirements-unknown", what, f"--requirements {name}", ", ".join(sets), hint))


def case_or_scenario(case: str | None, scenario: str | None, mutant: str | None) -> None:
    """A replay takes one of the two, and a case knows its mutant. Raises SimkitError."""
    if (case is None) == (scenario is None):
        what = "replay takes a case or --scenario" + (", not both" if case else "")
        hint = "`simkit cases` lists cases, `simkit list scenarios` scenarios"
        raise SimkitError(Problem("replay-what", what, "command line", "a case, or -t and --scenario", hint))
    if case is not None and mutant is not None:
        what, hint = "a case is replayed with the mutant it was found with, or without one", "leave --mutant away"
        raise SimkitError(Problem("mutant-target", what, f"--mutant {mutant}", "a case alone", hint))


def certificates(paths: Sequence[Path]) -> None:
    """Something has to be verified. Raises SimkitError."""
    if not paths:
        hint = "certificates are kept in .simkit/certificates unless --out says otherwise"
        what, expected = "no certificate was named", "one or more files of certificates"
        raise SimkitError(Problem("certificate-missing", what, "command line", expected, hint))


def shrink(runs: int, seconds: float) -> None:
    """Check the bounds of a shrink. Raises SimkitError."""
    if not 0 <= runs <= SHRINK_RUNS_MAX or not 0 <= seconds < float("inf"):
        what, expected = f"{runs} runs and {seconds:g} seconds", f"0 to {SHRINK_RUNS_MAX} runs, and seconds from 0"
        where = f"--shrink-runs {runs} --shrink-seconds {seconds:g}"
        raise SimkitError(Problem("shrink-range", what, where, expected, "--shrink-runs 0 shrinks nothing"))


def sweep_budget(runs: int) -> None:
    """Check the budget of a sweep. Raises SimkitError."""
    if not 0 <= runs <= SWEEP_MAX:
        what, expected = f"{runs} runs", f"0 to {SWEEP_MAX}"
        raise SimkitError(Problem("sweep-range", what, f"--sweep-budget {runs}", expected, "0 tries no pairs"))


def until_or_break(until: int | None, at: int | None) -> None:
    """A replay stops at one place. Raises SimkitError."""
    if until is not None and at is not None:
        what, hint = "both --until and --break were given", "leave one of them out; both stop before an event"
        raise SimkitError(Problem("replay-what", what, f"--until {until} --break {at}", "one of them", hint))


def program(argv: Sequence[str]) -> str:
    """The command line as it was typed, for an error to name."""
    return shlex.join(["simkit", *argv])

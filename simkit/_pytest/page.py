"""`--simkit-html`: a file for each failing seed, with all that is known of it, and an index when there are several.

Each file is written by the process that ran the test, under a name that is the failure's own; the index by the one that
hears of all reports. So it makes no difference how many processes run tests.
"""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Sequence
from html import escape
from pathlib import Path

import attrs

from simkit._pytest import block
from simkit._pytest.inquest import Found, place_of
from simkit.case import kit_version
from simkit.errors import ExitCode, Problem, SimkitError
from simkit.spacetime.drawing import diagram
from simkit.spacetime.page import page, why

#: The name of the folder in the store, unless the command line names another.
FOLDER = "html"
_NAME_MAX = 80
#: So that a folder is known as one of ours.
_INDEX = "index.html"


@attrs.frozen
class Written:
    """A file that was written."""

    path: str  # absolute
    test: str
    title: str


def folder(name: str, root: Path, store: Path) -> Path:
    """The folder that `--simkit-html=name` means, from `root`; SimkitError for one that holds something else."""
    if not name:
        return store / FOLDER
    path = root / name
    inside = list(path.iterdir()) if path.is_dir() else []
    if path.is_file() or any(one.suffix != ".html" or one.is_dir() for one in inside):
        raise SimkitError(
            Problem(
                "html-folder",
                f"--simkit-html cannot write to {name!r}: other files are there",
                str(path),
                "an empty or a new folder, or one that holds such pages",
                "as the next argument was taken for the folder, write `--simkit-html=FOLDER`, or put the option last",
                ExitCode.USAGE,
            )
        )
    return path


def write(found: Found, test: str, commands: Sequence[str], failure: str, folder: Path) -> Written:
    """Write the page of a failure. `failure` is what pytest shows of it."""
    title = f"seed {found.failed.seed} fails: {place_of(found.error)}"
    name = re.sub(r"[^\w.]+", "-", test.rpartition("::")[2] or test).strip("-")[:_NAME_MAX]
    own = found.case.id if found.case is not None else found.failed.outcome.digest[:12]
    path = folder / f"{name}-seed-{found.failed.seed}-{own}.html"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(page(f"{test}: {title}", _parts(found, test, title, commands, failure)), encoding="utf-8")
    return Written(str(path), test, title)


def write_index(pages: Sequence[Written], folder: Path) -> Path:
    """Write the page that links to the others, in the order of the tests' names."""
    rows = "\n".join(
        f'<tr><td><a href="{escape(Path(one.path).name, quote=True)}">{escape(one.test)}</a></td>'
        f"<td>{escape(one.title)}</td></tr>"
        for one in sorted(pages, key=lambda one: (one.test, one.path))
    )
    head = '<thead><tr><th scope="col">test</th><th scope="col">failure</th></tr></thead>'
    table = f'<table class="list">{head}\n<tbody>{rows}</tbody></table>'
    path = folder / _INDEX
    text = page(f"{len(pages)} failures", [f"<h1>{len(pages)} simulated tests fail</h1>", table, _versions()])
    path.write_text(text, encoding="utf-8")
    return path


def _parts(found: Found, test: str, title: str, commands: Sequence[str], failure: str) -> list[str]:
    table = found.table(400)
    explained = "" if found.explanation is None else found.explanation.sentence(block.lettered(table))
    lines = "\n".join(map(escape, commands))
    return [
        f'<h1>{escape(test)}</h1><p class="bad"><b>{escape(title)}</b></p>',
        f"<h2>Replay</h2><pre>{lines}</pre>",
        "<h2>Why</h2>" if explained else "",
        *(why(table, explained) if explained else []),
        "<h2>Space and time</h2>",
        diagram(table),
        f"<h2>Faults, choices and schedule</h2><pre>{escape(chr(10).join(block.facts(found)[1:]))}</pre>",
        f"<h2>Failure</h2><pre>{escape(failure)}</pre>",
        f"<h2>What the run printed</h2><pre>{escape(found.output)}</pre>" if found.output else "",
        f"<h2>Run</h2>{_identity(found)}",
        _versions(),
    ]


def _identity(found: Found) -> str:
    case = found.case
    facts = {
        "seed": str(found.failed.seed),
        "strategy": found.strategy or "the test's own",
        "case": case.id if case is not None else f"none ({found.trouble})",
        "digest": found.outcome.digest,
        "steps": str(found.outcome.steps),
    }
    return _facts(facts)


def _versions() -> str:
    """What the run depended on."""
    facts = {"simkit": kit_version(), "Python": platform.python_version()}
    for name in ("trio", "pytest", "hypothesis"):
        module = sys.modules.get(name)
        if module is not None:
            facts[name] = str(module.__version__)
    return _facts({**facts, "platform": f"{platform.system()} {platform.machine()}"})


def _facts(facts: dict[str, str]) -> str:
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts.items())
    return f"<dl>{rows}</dl>"

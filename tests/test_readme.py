"""The README shows what its commands print."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from conformance import targets
from conformance.campaign.docket import claimed_ids
from conformance.campaign.real import scenarios
from scenarios.faults import FAULTS
from scenarios.obligations import OBLIGATIONS

ROOT = Path(__file__).parent.parent
_SHOWN = re.compile(
    r"^```console\n\$ \.venv/bin/(simkit run [^\n]*)\n```\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL
)

pytestmark = pytest.mark.repository


def shown() -> list[tuple[str, list[str]]]:
    """Commands of the README and the lines it shows of what they print; what is left out is marked by dots."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return [
        (command, [line for line in lines.splitlines() if line.strip("… ")]) for command, lines in _SHOWN.findall(text)
    ]


@pytest.mark.parametrize(("command", "lines"), shown(), ids=lambda one: one if isinstance(one, str) else "")
def test_the_readme_shows_what_is_printed(command: str, lines: list[str], tmp_path: Path) -> None:
    """Line by line and in this order; whoever changes what a seed means brings the README up to date. Ids of cases change with
    every change of the runtime: `CASE` stands for them, always the same one.
    """
    simkit = str(Path(sys.executable).with_name("simkit"))
    words = [
        simkit,
        *shlex.split(command, comments=True)[1:],
        "--format",
        "plain",
        "--store",
        str(tmp_path / ".simkit"),
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
    cases = set(re.findall(r"simkit replay ([0-9a-f]{12})$", done.stdout, re.MULTILINE))
    assert len(cases) == 1
    named = done.stdout.replace(cases.pop(), "CASE")
    printed = iter(re.sub(r"\S*\.simkit/", ".simkit/", line).rstrip() for line in named.splitlines())
    missing = [line for line in lines if line.rstrip() not in printed]
    assert not missing, (
        f"{missing[0]!r} is not what is printed there; it begins with\n{done.stdout[:4000]}{done.stderr}"
    )


def test_the_readme_shows_something() -> None:
    """There is a run to compare with."""
    assert shown()


def test_the_readme_counts_what_there_is() -> None:
    """Promises, kinds of faults, and what the adapter of the product that it certifies claims."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    dbos = targets.parse("dbos")
    claimed = len(claimed_ids(dbos))
    for told, count in {
        r"Each of the (\d+) promises": len(OBLIGATIONS),
        r"which of (\d+) kinds of faults": len(FAULTS),
        r"at tier smoke in the process world, (\d+) runs": len(scenarios(dbos, "smoke")),
        r"all (\d+) claimed obligations judged": claimed,
        r"obligations judged, (\d+) held": claimed,
    }.items():
        assert re.findall(told, text) == [str(count)], told


def test_the_readme_sets_up_before_it_uses_what_is_set_up() -> None:
    """In a fresh clone there is no `.venv` yet, nor any command of it."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    before, found, _ = text.partition(".venv/bin/")
    assert found
    assert "`make setup` comes first" in before


def test_the_help_of_make_names_every_target() -> None:
    """It is the comment at the head of the Makefile."""
    head, _, rest = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\n\n")
    (targets,) = re.findall(r"^\.PHONY: help (.*)$", rest, re.MULTILINE)
    assert set(targets.split()) == set(re.findall(r"\bmake ([a-z]+) ", head))

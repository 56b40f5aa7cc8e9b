"""docs/tutorial.md, done by a machine: the fault is found, shrunk, explained and fixed as the page says; and docs/pytest.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tests.plugin.rig  # noqa: F401  # loads what the inner runs would forget

pytest_plugins = ["pytester"]
pytestmark = [pytest.mark.slow, pytest.mark.repository]

PAGE = Path(__file__).parent.parent.parent / "docs/tutorial.md"


def blocks(language: str, page: Path = PAGE) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


def without_ids(text: str) -> str:
    """Without the ids of cases, which change with the version of the kit; all else is what a reader gets."""
    return re.sub(r"\b[0-9a-f]{12}\b", "ID", text)


def test_the_tutorial_works_as_told(pytester: pytest.Pytester) -> None:
    """Every file, command and output of the page, case ids aside; the mended store passes ten times the seeds."""
    store, test, fix = blocks("python")
    block, answer = blocks("text")
    for source in (store, test):
        name = source.split("\n")[0].removeprefix("# ")
        (pytester.path / name).write_text(source, encoding="utf-8")
    pytester.syspathinsert()
    found = pytester.runpytest_inprocess("-p", "no:xdist")
    found.assert_outcomes(failed=1)
    shown = without_ids(found.stdout.str())
    assert without_ids(block) in shown, shown
    (case,) = (pytester.path / ".simkit/cases").iterdir()
    line = fix.split("\n")[0] + "\n"
    assert line in store
    (pytester.path / "store.py").write_text(store.replace(line, fix), encoding="utf-8")
    replayed = pytester.runpytest_inprocess("-p", "no:xdist", "--simkit-replay", case.stem)
    replayed.assert_outcomes(passed=1)
    assert without_ids(answer).strip() in without_ids(replayed.stdout.str()).splitlines()
    pytester.runpytest_inprocess("-p", "no:xdist", "--simkit-seeds", "500").assert_outcomes(passed=1)


COUNTER = """import simkit
import trio


@simkit.test(seeds=20)
async def test_counter(world):
    value = 0

    async def increment():
        nonlocal value
        seen = value
        await trio.lowlevel.checkpoint()
        value = seen + 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(increment)
        nursery.start_soon(increment)
    assert value == 2
"""


def test_the_blocks_of_the_page_on_pytest_are_what_one_gets(pytester: pytest.Pytester) -> None:
    """Of a failing seed, and of the replay of its case."""
    failure, replay = [block for block in blocks("text", PAGE.with_name("pytest.md")) if "test_counter.py:" in block]
    pytester.makepyfile(test_counter=COUNTER)
    found = pytester.runpytest_inprocess("-p", "no:xdist").stdout.str()
    assert without_ids(failure) in without_ids(found), found
    (case,) = (pytester.path / ".simkit/cases").iterdir()
    replayed = pytester.runpytest_inprocess("-p", "no:xdist", "--simkit-replay", case.stem).stdout.str()
    assert without_ids(replay) in replayed, replayed


def test_the_program_of_the_readme_is_a_test_as_well(pytester: pytest.Pytester) -> None:
    """It is told why it fails, drawn, and saved, as the text says."""
    (program,) = [block for block in blocks("python", PAGE.parent.parent / "README.md") if "async def shop" in block]
    pytester.makepyfile(test_shop=program)
    found = pytester.runpytest_inprocess("-p", "no:xdist")
    found.assert_outcomes(failed=1)
    found.stdout.fnmatch_lines(
        ["why: It fails *", "*time  outside  shop     ann      bob", "saved as .simkit/cases/*.json"]
    )

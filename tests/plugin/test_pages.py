"""`--simkit-html`: a page for each failing seed, and an index of several."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.plugin.rig import cases, run

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.slow

SUITE = """
import pytest
import simkit
import trio

async def race():
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

@pytest.mark.parametrize("word", ["<b>&amp;", "plain"])
@simkit.test(seeds=5)
async def test_race(world, word):
    print("saying", word)
    await race()

@simkit.test(seeds=5)
async def test_quiet(world):
    pass
"""


def pages(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.iterdir())}


def test_a_page_tells_all_that_is_known(pytester: pytest.Pytester) -> None:
    """Failure, replay lines, faults and schedule, why, the drawing, output and versions; its path stands in the block."""
    pytester.makepyfile(test_words=SUITE)
    result = run(pytester, "-k", "plain", "--simkit-html")
    ((name, text),) = pages(pytester.path / ".simkit/html").items()
    (case,) = cases(pytester)
    assert re.fullmatch(rf"test_race-plain-seed-\d-{case.stem}\.html", name)
    result.stdout.fnmatch_lines([f"drawn in .simkit/html/{name}"])
    for told in (
        f"pytest &#x27;test_words.py::test_race[plain]&#x27; --simkit-replay {case.stem}",
        "1 needed",
        'comes before <a href="#event-b">(b)</a>',
        "<svg",
        "assert value == 2",
        "saying plain",
        "<dt>simkit</dt>",
        "<dt>trio</dt>",
        f"<dd>{case.stem}</dd>",
    ):
        assert told in text, told


def test_several_pages_have_an_index_and_names_are_escaped(pytester: pytest.Pytester) -> None:
    """Every page is in it, once, by a link that leads there; a passing test has none."""
    pytester.makepyfile(test_words=SUITE)
    result = run(pytester, "--simkit-html=out")
    found = pages(pytester.path / "out")
    index = found.pop("index.html")
    result.stdout.fnmatch_lines(["simkit: pages of 2 failures: out/index.html"])
    assert sorted(re.findall(r'<a href="([^"]+)"', index)) == sorted(found)
    assert len(found) == 2
    assert "<b>&amp;" not in index.replace("<b>seed", "")
    assert all(re.fullmatch(r"[\w.-]+", name) for name in found)


def test_nothing_is_written_without_the_option_or_a_failure(pytester: pytest.Pytester) -> None:
    """No folder appears."""
    pytester.makepyfile(test_words=SUITE)
    run(pytester, "-k", "plain")
    run(pytester, "-k", "quiet", "--simkit-html")
    assert not (pytester.path / ".simkit/html").exists()


def test_a_folder_that_holds_something_else_is_refused(pytester: pytest.Pytester) -> None:
    """Most often it is an argument that was meant for pytest; the message says so."""
    pytester.makepyfile(**{"suite/test_words": SUITE})
    result = run(pytester, "--simkit-html", "suite")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*--simkit-html cannot write to 'suite': other files are there*", "*--simkit-html=FOLDER*"]
    )


def test_the_table_has_as_many_rows_as_the_settings_say(pytester: pytest.Pytester) -> None:
    """And is left out for none; the sentence then tells places itself."""
    pytester.makepyfile(test_words=SUITE)
    block = run(pytester, "-k", "plain").stdout
    block.fnmatch_lines(
        ["why: It fails only while (a) comes before (b)*", "", "  time  increment #2  increment #3  main #1"]
    )
    pytester.makepyprojecttoml("[tool.simkit]\ntable_rows = 0\n")
    block = run(pytester, "-k", "plain").stdout
    block.fnmatch_lines(["why: It fails only while step 1 of increment #2 (test_words.py:*"])
    block.no_fnmatch_line("  time  increment*")

"""Mistakes of a test's own: what it cannot be run with, and what fails whatever is drawn; in words, with no line of the kit."""

from __future__ import annotations

import re

import pytest

from tests.plugin.rig import cases, run

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.slow

PASSES = """
@simkit.test(seeds=3)
async def test_sleeps(world):
    await trio.sleep(3600)
"""
MISTAKE = """
import simkit

@simkit.test(seeds=5)
async def test_mistake(world):
    assert {wrong}
"""


def test_a_sync_function_fails_alone(pytester: pytest.Pytester) -> None:
    """The other tests of its file are run; the message has its file and line."""
    pytester.makepyfile("import simkit, trio\n" + PASSES + "\n@simkit.test\ndef test_sync(world):\n    pass\n")
    result = run(pytester)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*not an async function*", "*test_a_sync_function_fails_alone.py:* in test_sync*"])


def test_frames_of_the_kit_are_hidden_behind_what_it_raises(pytester: pytest.Pytester) -> None:
    """A file that is not on the simulated disk, and a subprocess: told at the line that asked."""
    pytester.makepyfile(
        """
        import subprocess
        import simkit

        @simkit.test(seeds=1)
        async def test_file(world):
            def work():
                open("/nowhere/to/be/found")
            work()

        @simkit.test(seeds=1)
        async def test_refused(world):
            subprocess.run(["true"])
        """
    )
    result = run(pytester)
    result.assert_outcomes(failed=2)
    text = result.stdout.str()
    assert "RefusedError" in text
    assert not re.search(r"simkit/(_guard|disk|_storage|host)\S*\.py:\d+: ", text), text


def test_misuse_and_deadlocks_are_told_without_lines_of_the_kit(pytester: pytest.Pytester) -> None:
    """What happens in no line of the program has words enough of its own."""
    pytester.makepyfile(
        """
        import simkit
        import trio

        @simkit.test
        def test_sync(world):
            pass

        @simkit.test(strategy="nope")
        async def test_strategy(world):
            pass

        @simkit.test(strategy=5)
        async def test_no_strategy(world):
            pass

        @simkit.test(strategy=lambda stream: 5)
        async def test_strange_strategy(world):
            pass

        @simkit.test(seeds=0)
        async def test_no_seeds(world):
            pass

        @simkit.test(seeds=[3, -1])
        async def test_bad_seeds(world):
            pass

        @simkit.test(seeds=1.5)
        async def test_strange_seeds(world):
            pass

        @simkit.test(seeds=2)
        async def test_deadlock(world):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(trio.Event().wait)
        """
    )
    result = run(pytester)
    result.assert_outcomes(failed=8)
    text = result.stdout.str()
    assert text.count("error[test-misused]") >= 6
    assert "error[deadlock]" in text
    assert "Error at test_misuse_and_deadlocks_are_told_without_lines_of_the_kit.py:" in text
    assert not re.search(r"simkit/\S+\.py:\d+: ", text), text
    assert "def " not in text, text


@pytest.mark.parametrize("settings", ["", "[tool.simkit]\nshrink_runs = 0\n"])
def test_a_deadlock_is_told_in_words_whether_it_was_shrunk_or_not(pytester: pytest.Pytester, settings: str) -> None:
    """And what a strategy raises with the strategy's own lines."""
    pytester.makepyprojecttoml(settings)
    pytester.makepyfile(
        test_words="""
        import simkit
        import trio

        class Broken:
            def pick(self, runnable, step):
                raise KeyError("mine")

        @simkit.test(seeds=2)
        async def test_deadlock(world):
            await trio.Event().wait()

        @simkit.test(seeds=2, strategy=lambda stream: Broken())
        async def test_strategy(world):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(trio.sleep, 1)
                nursery.start_soon(trio.sleep, 1)
        """
    )
    result = run(pytester)
    result.assert_outcomes(failed=2)
    text = result.stdout.str()
    assert not re.search(r"simkit/\S+\.py:\d+: ", text), text
    result.stdout.fnmatch_lines(
        [
            "error[[]deadlock]: *",
            "error[[]strategy-failed]: the strategy Broken raised KeyError: 'mine'",
            "*/test_words.py:6 in Broken.pick",
            "KeyError: 'mine'",
        ]
    )


def test_a_mistake_that_fails_by_default_is_told_in_a_line_and_kept_once(pytester: pytest.Pytester) -> None:
    """Nothing was drawn for it, so nothing is said of what was; each next attempt replaces the case of the one before."""
    for wrong in ("1 == 2", "[] == [1]", "3 < 2"):
        pytester.makepyfile(test_mistake=MISTAKE.format(wrong=wrong))
        result = run(pytester)
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines(["*It fails by default*"])
        assert "shrunk in" not in result.stdout.str()
        assert "pre-emptions drawn" not in result.stdout.str()
        assert len(cases(pytester)) == 1

"""Looking at the replay of a test: what stands where before an event, the debugger there, and the trace as a file."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys

import pytest

from tests.plugin.rig import cases, run

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.slow

SUITE = """
import pathlib
import simkit
import trio

async def lookout(secret):
    twice = secret * 2
    await trio.sleep(5)

@simkit.test(seeds=1)
async def test_fails(world):
    world.host("tower").start(lookout, "owl")
    await trio.sleep(1)
    assert False
"""
HOOK = """
import sys
from pathlib import Path

def hook(*args, **kwargs):
    frame = sys._getframe()
    while "task" not in frame.f_locals:
        frame = frame.f_back
    Path(__file__).with_name("stopped.txt").write_text(frame.f_locals["task"].name)
"""


@pytest.fixture
def case(pytester: pytest.Pytester) -> str:
    pytester.makepyfile(test_tower=SUITE)
    run(pytester)
    (path,) = cases(pytester)
    return path.stem


def test_until_tells_what_stands_where(pytester: pytest.Pytester, case: str) -> None:
    """Tasks with their lines, hosts with their processes; the test is skipped, as nothing is known of it."""
    result = run(pytester, "--simkit-replay", case, "--simkit-until", "4")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["simkit: before event *", "*tasks*", "*test_tower.py:* in *", "*tower*"])


def test_a_trace_has_every_event(pytester: pytest.Pytester, case: str) -> None:
    """One JSON object a line, numbered as the answers number them."""
    run(pytester, "--simkit-replay", case, "--simkit-trace", "events.jsonl").assert_outcomes(failed=1)
    events = [json.loads(line) for line in (pytester.path / "events.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [event["index"] for event in events] == list(range(len(events)))
    assert {"step", "clock", "start"} <= {event["kind"] for event in events}


def test_break_opens_the_debugger_before_the_step(
    pytester: pytest.Pytester, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever debugger PYTHONBREAKPOINT names; without a terminal or another debugger it is told that nobody could type."""
    told = run(pytester, "--simkit-replay", case, "--simkit-break", "6")
    assert told.ret == pytest.ExitCode.USAGE_ERROR
    told.stderr.fnmatch_lines(["*nobody could type into the debugger*", "*--simkit-until*--simkit-trace*"])
    pytester.makepyfile(noting=HOOK)
    pytester.syspathinsert()
    monkeypatch.setenv("PYTHONBREAKPOINT", "noting.hook")
    result = run(pytester, "--simkit-replay", case, "--simkit-break", "6")
    result.stdout.fnmatch_lines([f"simkit: case {case}: reproduced, *"])
    assert (pytester.path / "stopped.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--simkit-until", "3"], "there is nothing to look at"),
        (["--simkit-trace", "x"], "there is nothing to look at"),
        (["--simkit-replay", "CASE", "--simkit-until", "3", "--simkit-break", "3"], "both say where to stop"),
        (["--simkit-seed", "3", "--simkit-seeds", "5"], "both say which seeds to run"),
    ],
)
def test_looks_that_make_no_sense_are_told(pytester: pytest.Pytester, case: str, options: list[str], told: str) -> None:
    """At what is no replay, and at two places."""
    result = run(pytester, *[option.replace("CASE", case) for option in options])
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{told}*"])


def test_a_trace_that_cannot_be_written_is_told(pytester: pytest.Pytester, case: str) -> None:
    """It is no failure of the test."""
    result = run(pytester, "--simkit-replay", case, "--simkit-trace", str(pytester.path / "nowhere/trace.jsonl"))
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.fnmatch_lines(["*--simkit-trace: *No such file or directory*nowhere/trace.jsonl*"])
    assert "FAILED" not in result.stdout.str()


def test_an_event_that_is_not_there_is_told(
    pytester: pytest.Pytester, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With how many there are; it is no failure of the test, and nothing that `--lf` would run."""
    before = last_failed(pytester)
    monkeypatch.setenv("PYTHONBREAKPOINT", "never.called")  # so that nobody misses a terminal
    for look in ("--simkit-until", "--simkit-break"):
        result = run(pytester, "--simkit-replay", case, look, "99999")
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stdout.fnmatch_lines(
            ["*there is no event 99999: the replay has * events; expected a number from 0 to *"]
        )
        assert "Traceback" not in result.stdout.str()
        assert "FAILED" not in result.stdout.str()
    assert last_failed(pytester) == before


def last_failed(pytester: pytest.Pytester) -> list[str]:
    found = json.loads((pytester.path / ".pytest_cache/v/cache/lastfailed").read_text(encoding="utf-8"))
    return sorted(found)


@pytest.mark.parametrize("breakpoint_", ["", "pdb.set_trace"])
def test_break_gives_the_terminal_to_the_debugger(pytester: pytest.Pytester, case: str, breakpoint_: str) -> None:
    """Also for what is typed after the first step, whatever pytest captures."""
    ours, theirs = pty.openpty()
    os.write(ours, b"p secret\nnext\np twice\ncontinue\n")
    arguments = [sys.executable, "-m", "pytest", "-p", "no:xdist", "--simkit-replay", case, "--simkit-break", "3"]
    environ = {**os.environ, "PYTHONBREAKPOINT": breakpoint_}
    with subprocess.Popen(
        arguments,
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=pytester.path,
        env=environ,
        text=True,
    ) as process:
        os.close(theirs)
        told, _ = process.communicate()
    os.close(ours)
    assert "(Pdb) 'owl'" in told, told
    assert "(Pdb) 'owlowl'" in told, told
    assert f"case {case}: reproduced" in told

"""A released harness runs unchanged in a simulation, threads, pools and sqlite3 included, and is crashed at every boundary."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from conformance import pythons
from simkit._sqlite import stdlib


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.parametrize("most", [12, pytest.param(None, marks=pytest.mark.nightly)])
@pytest.mark.skipif(stdlib._library() is None, reason="NOT TESTED: this Python's sqlite3 does not show its functions")
def test_langgraph_resumes_after_a_power_loss_at_every_boundary(most: int | None) -> None:
    """Its graph, its threads, its SQLite saver: whatever the boundary, the second process ends what the first began. By day at
    so many of them, evenly spread.
    """
    this = next(python for python in pythons.found() if python.is_this_one)
    python = pythons.environment(this, ("langgraph", "langgraph-checkpoint-sqlite"))
    repository = Path(__file__).parent.parent.parent
    done = subprocess.run(
        [str(python), "-m", "tests.simkit.langgraph_in_simulation", *([] if most is None else [str(most)])],
        cwd=repository,
        env={**os.environ, "PYTHONPATH": str(repository)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    undisturbed, boundaries, *crashes = done.stdout.splitlines()
    assert undisturbed == "undisturbed: exited, then ['draft', 'publish', 'review']"
    number = int(boundaries.removeprefix("boundaries: "))
    assert number > 100
    ended = [re.fullmatch(r"(\d+) crashes: \w+, then \['draft', 'publish', 'review'\]", line) for line in crashes]
    assert all(ended), crashes
    assert sum(int(match[1]) for match in ended if match) == (number if most is None else most)

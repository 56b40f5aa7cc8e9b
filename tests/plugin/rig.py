"""What tests of the plugin share: running pytest on a small suite, as its users do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

# Loaded before the inner runs, which forget whatever they load: every run uses the same modules.
import simkit._pytest.block
import simkit._pytest.inquest
import simkit._pytest.looking
import simkit._pytest.never
import simkit._pytest.nodes
import simkit._pytest.page
import simkit._pytest.redrawing
import simkit._pytest.replay
import simkit._pytest.session
import simkit._pytest.splitting
import simkit._pytest.telling
import simkit.stateful  # noqa: F401


def run(pytester: pytest.Pytester, *args: str) -> pytest.RunResult:
    return pytester.runpytest_inprocess("-p", "no:xdist", *args)


def cases(pytester: pytest.Pytester) -> list[Path]:
    return sorted((pytester.path / ".simkit/cases").glob("*.json"))


def told(case: Path, result: pytest.RunResult, answer: str) -> None:
    """The last lines say what became of the case."""
    result.stdout.fnmatch_lines([f"simkit: case {case.stem}: {answer}"])


def failing(result: pytest.RunResult, test: str) -> list[int]:
    """The seeds of `test` that are reported as failed, in order."""
    return [
        int(seed) for seed in re.findall(rf"^FAILED {re.escape(test)}\[seed=(\d+)\]", result.stdout.str(), re.MULTILINE)
    ]

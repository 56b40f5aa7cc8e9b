"""What the fidelity tests need of the machine; what is missing is told at the end of the run, not only with `-rs`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def root() -> None:
    """The user may mount file systems and make network namespaces."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        pytest.skip("cannot be provoked here: it takes root on Linux")


def tool(name: str) -> str:
    """Where a program of the system is; the test is skipped without it."""
    found = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if found is None:
        pytest.skip(f"cannot be provoked here: there is no {name}")
    return found


def mounted(source: Path | str, target: Path, *options: str) -> Iterator[Path]:
    """Mount in this block."""
    target.mkdir(exist_ok=True)
    done = subprocess.run(
        [tool("mount"), *options, str(source), str(target)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"cannot be provoked here: mount says {done.stderr.strip()}")
    try:
        yield target
    finally:
        left = subprocess.run([tool("umount"), str(target)], capture_output=True, text=True, check=False)
        if left.returncode:
            subprocess.run([tool("umount"), "--lazy", str(target)], check=True)
            raise AssertionError(f"something is still open below {target}: {left.stderr}")


@pytest.fixture
def tiny(root: None, tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    yield from mounted("none", tmp_path / "tiny", "-t", "tmpfs", "-o", "size=64k")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say aloud what was not checked against the real system."""
    skipped = [report for report in terminalreporter.getreports("skipped") if "tests/fidelity" in report.nodeid]
    if skipped:
        terminalreporter.section("fidelity: not checked against the real system here")
        for report in skipped:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            terminalreporter.line(f"{report.nodeid}: {reason.removeprefix('Skipped: ')}")

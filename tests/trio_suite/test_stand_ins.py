"""The stand-ins that simkit leaves in trio are equivalents: trio's own tests pass on trio's own loop with them, guests too."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import trio

ROOT = Path(__file__).parent.parent.parent
TRIO = Path(trio.__file__).parent
MODULES = (
    "_core/_tests",
    "_tests/test_channel.py",
    "_tests/test_sync.py",
    "_tests/test_timeouts.py",
    "_tests/test_threads.py",
)
PASSED_MIN = 380


@pytest.mark.slow
def test_trio_passes_its_own_tests_with_the_stand_ins(tmp_path: Path) -> None:
    """Nothing of trio behaves differently on its own loop while they are in place."""
    ran = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "--tb=short", "-c", os.devnull, "--rootdir", str(tmp_path)),
            *("-p", "no:cacheprovider", "-p", "no:simkit", "-p", "no:anyio"),
            *("-p", "trio._tests.pytest_plugin", "-p", "tests.trio_suite.stand_ins"),
            *(str(TRIO / module) for module in MODULES),
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-6000:] + ran.stderr[-2000:]
    passed = re.search(r"(\d+) passed", ran.stdout)
    assert passed is not None
    assert int(passed.group(1)) >= PASSED_MIN

"""trio's own published tests, from the installed package, on simkit's two loops."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from tests.trio_suite.skipped import FAILING, MODULES, NOT_RUN, UNSAFE, modules_table, table

ROOT = Path(__file__).parent.parent.parent
TRIO = Path(trio.__file__).parent
PASSED_MIN = 520


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["fast", pytest.param("fallback", marks=pytest.mark.nightly)])
def test_the_kernel_passes_trios_own_tests(kernel: str, tmp_path: Path) -> None:
    """Every test of the chosen modules passes, but for those listed, which fail as the list says."""
    ran = subprocess.run(
        [
            # No ranges: the tracebacks of real threads that tests leave behind would be parsed while pytest parses its own,
            # which Python 3.11 takes for a fault of the parser.
            *(sys.executable, "-X", "no_debug_ranges", "-m", "pytest"),
            *("-q", "--tb=short", "-c", os.devnull, "--rootdir", str(tmp_path)),
            *("-p", "no:cacheprovider", "-p", "no:simkit", "-p", "no:anyio"),
            *("-p", "trio._tests.pytest_plugin", "-p", "tests.trio_suite.plugin"),
            *(str(TRIO / module) for module in MODULES),
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "SIMKIT_TRIO_KERNEL": kernel},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-6000:] + ran.stderr[-2000:]
    passed = re.search(r"(\d+) passed", ran.stdout)
    assert passed is not None
    assert int(passed.group(1)) >= PASSED_MIN
    assert "xpassed" not in ran.stdout


@pytest.mark.repository
def test_the_documentation_lists_what_is_not_passed() -> None:
    """docs/trio.md holds the list of tests that the kernel does not pass, as it is, and their number."""
    text = (ROOT / "docs" / "trio.md").read_text(encoding="utf-8")
    assert table() in text, "put the text of tests.trio_suite.skipped.table() there"
    assert f"{len(FAILING) + len(UNSAFE)} tests" in text
    assert f"{len(MODULES)} modules" in text
    assert modules_table() in text, "put the text of tests.trio_suite.skipped.modules_table() there"


def test_every_module_of_trios_tests_is_run_or_has_a_reason() -> None:
    """Of the installed trio: a module that a later version adds, or drops, is noticed."""
    shipped = {str(path.relative_to(TRIO)) for path in TRIO.rglob("test_*.py")}
    assert shipped == {*MODULES, *NOT_RUN}
    assert not set(MODULES) & set(NOT_RUN)

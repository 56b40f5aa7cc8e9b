"""What one process of a pytest session does with reports, whichever process ran the tests. Loads nothing heavy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from simkit._pytest import nodes

if TYPE_CHECKING:
    from simkit.point_coverage import Coverage


class Session:
    """A plugin of its own, registered once a process."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._answers: list[str] = []
        self._pages: list[dict[str, str]] = []
        self._points: dict[str, Coverage] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Rename the report of a failing seed before anybody else sees it; forget seeds that no longer fail.

        Not in a worker of xdist, which knows an item by one id only: there the report is renamed where it arrives.
        """
        if hasattr(self._config, "workerinput"):
            return
        self._forget_passed(report)
        seed = getattr(report, "simkit_seed", None)
        if seed is not None:
            report.nodeid = nodes.with_seed(report.nodeid, seed)
        points = getattr(report, "simkit_points", None)
        if points is not None:
            self._count_points(report.nodeid, points)
        answer = getattr(report, "simkit_answer", None)
        if answer is not None:
            self._answers.append(answer)
        page = getattr(report, "simkit_page", None)
        if page is not None:
            self._pages.append(page)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """What became of a replay, also when its test passes now; points never hit; where the pages are, if several."""
        lines = [f"simkit: {answer}" for answer in self._answers]
        if self._points:
            from simkit._pytest import never

            lines += never.lines(self._points)
        if len(self._pages) > 1:
            from simkit._pytest import block, page

            folder = Path(self._pages[0]["path"]).parent
            index = page.write_index([page.Written(**one) for one in self._pages], folder)
            told = block.shown(index, self._config.invocation_params.dir)
            lines.append(f"simkit: pages of {len(self._pages)} failures: {told}")
        for line in lines:
            terminalreporter.write_line(line)

    def _count_points(self, nodeid: str, points: Sequence[Any]) -> None:
        from simkit._pytest import never

        base = nodes.parsed(nodeid).base
        found = never.unpacked(points)
        self._points[base] = self._points[base].merge(found) if base in self._points else found

    def _forget_passed(self, report: pytest.TestReport) -> None:
        passed = getattr(report, "simkit_passed", [])
        plugin = self._config.pluginmanager.get_plugin("lfplugin")
        failed_before = getattr(plugin, "lastfailed", None)
        if passed and isinstance(failed_before, dict):
            base = nodes.parsed(report.nodeid).base
            gone = {nodes.with_seed(base, seed) for seed in passed}
            for key in [key for key in failed_before if str(key) in gone]:  # text, or from pytest 9.2 on an object
                del failed_before[key]

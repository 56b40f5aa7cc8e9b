"""What the quality tests measured is shown as a table."""

from __future__ import annotations

import json
from typing import Any

import pytest

#: What a test hands over to the table: {program: {strategy: cell}}.
PROPERTY = "yardstick"


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """The table of what was measured in this run, wherever it ran."""
    from tests.quality.table import as_text, portfolio_told

    cells = _cells(terminalreporter)
    if cells:
        terminalreporter.section("yardstick: schedules to the first failure, median / mean")
        terminalreporter.write_line(as_text(cells))
        terminalreporter.write_line(f"\n{portfolio_told(cells)}")
        terminalreporter.write_line(
            "portfolio: 20 seeds, at most 1,000 schedules; the others: 3 seeds, at most 100 (all at full length: "
            "docs/yardstick.md, `make yardstick`); in brackets the published means, cap 10,000"
        )


def _cells(terminalreporter: Any) -> Any:
    from tests.quality.table import ALL, Cell, Cells

    found: Cells = {name: {} for name in ALL}
    reports = [report for each in ("passed", "failed") for report in terminalreporter.stats.get(each, [])]
    for report in reports:
        for name, value in getattr(report, "user_properties", []):
            if name == PROPERTY:
                for program, row in json.loads(value).items():
                    found[program].update({column: Cell.of_json(cell) for column, cell in row.items()})
    return found if any(found.values()) else {}

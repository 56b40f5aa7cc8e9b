"""The table tells what was measured: medians and means, misses, what was given up; beside what was published."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.quality.safe_stack import hunt
from tests.quality.table import Cell, as_text, main, measured, page, portfolio_told
from tests.quality.yardstick import PROGRAMS


def test_a_cell_tells_median_mean_and_misses() -> None:
    """Found by all, by some, by none."""
    assert str(Cell((1, 2, 9), 5.0)) == "2 / 4"
    assert str(Cell((1, None, 2000), 5.0)) == "1,000 / 1,000 (2/3)"
    assert str(Cell((None, None, None), 5.0)) == "– (0/3)"
    assert Cell.of_json(Cell((1, None), 2.5).to_json()) == Cell((1, None), 2.5)


def test_a_strategy_that_finds_nothing_gives_up() -> None:
    """After three seeds, however many were asked for; one that found something goes on."""
    assert measured(PROGRAMS["reorder_20"], "random", range(9), 5).runs == (None, None, None)
    assert len(measured(PROGRAMS["queue"], "random", range(9), 50).runs) == 9


def test_published_figures_stand_beside_ours() -> None:
    """A row has the length of a run, ours, and the published ones; columns that were not measured are empty."""
    cells = {"twostage_20": {"portfolio": Cell((3, 5), 327.0)}}
    title, row = as_text(cells).splitlines()
    assert title.split()[:3] == ["program", "steps", "portfolio"]
    assert row.split() == ["twostage_20", "327", "4", "/", "4", "–", "159", "101", "156", "6", "22"]
    assert portfolio_told(cells) == "portfolio: 2 of 2 searches found the fault, median 4, mean 4.0, most 5 schedules"
    assert "| twostage_20 | 327 | 4 / 4 |" in page(cells, 2, 10)


def test_the_command_writes_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What `make yardstick` does, for one program and two seeds; a name that is not there is told with those that are."""
    written = tmp_path / "page.md"
    main(["queue", "--seeds", "2", "--runs-max", "20", "--strategies", "portfolio", "--write", str(written)])
    assert "| queue |" in written.read_text(encoding="utf-8")
    with pytest.raises(SystemExit):
        main(["quueue"])
    assert "unknown programs quueue; there are reorder_3" in capsys.readouterr().err


@pytest.mark.slow
def test_safe_stack_is_hunted_in_other_processes() -> None:
    """Forty schedules do not find it; every one is counted, and the line tells how fast it went."""
    hunted = hunt(40, jobs=1)
    assert (hunted.found, hunted.runs) == (False, 40)
    assert str(hunted).startswith("SafeStack: not found in 40 schedules")

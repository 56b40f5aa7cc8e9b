"""The benchmarks run, and tell what they found; how fast anything is, is asserted nowhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.benchmarks.__main__ import PARTS, main
from tests.benchmarks.contest import Contest, Gauge, Goal, hold, read


@pytest.mark.slow
@pytest.mark.parametrize(
    "part", [pytest.param(part, marks=pytest.mark.nightly if part == "growth" else ()) for part in PARTS]
)
def test_every_contest_is_held_and_kept(part: str, tmp_path: Path) -> None:
    """Each part runs at a hundredth of its work, and every contestant gets a rate."""
    output = tmp_path / "deeper" / "bench.json"
    assert main([part, "--here", "--scale", "1", "--repeats", "1", "--output", str(output)]) == 0
    found = json.loads(output.read_text(encoding="utf-8"))
    assert found["schema"] == "simkit/bench/2"
    (here,) = found["pythons"]
    assert here["contests"]
    assert all(line["ours"] > 0 for row in here["contests"] for line in row["table"])


def test_a_row_tells_ratio_and_target() -> None:
    """Our rate is told as a multiple of the peer's, with what it shall be."""
    moments = iter([0.0, 1.0, 1.0, 3.0])
    contest = Contest(
        "work", "units", {"ours": lambda: 10, "peer": lambda: 10}, {"peer": 3}, clock=lambda: next(moments)
    )
    result = hold(contest, repeats=1)
    assert result.ratios() == {"peer": 2.0}
    assert "2.000 ×   target 3   not met" in result.lines()[-1]


def test_a_goal_is_scaled_by_what_the_peer_does_here() -> None:
    """Where the peer is half as fast as the goal supposes, half the goal is enough."""
    moments = iter([0.0, 1.0, 1.0, 2.0])
    contest = Contest(
        "seeds",
        "seeds",
        {"ours": lambda: 300, "bare": lambda: 1_250_000},
        goals={"bare": Goal(500, 2_500_000)},
        clock=lambda: next(moments),
    )
    result = hold(contest, repeats=1)
    assert result.ratios() == {"bare": 300 / 250}
    assert result.table()[0].met
    assert "250 here, 500 where bare does 2.5 M" in "\n".join(result.lines())


def test_two_of_ours_are_held_to_the_same_targets() -> None:
    """Another contestant of ours is no peer: it has lines of its own, beside the same peers."""
    moments = iter([0.0, 1.0, 1.0, 3.0, 3.0, 7.0])
    turns = {"plans": lambda: 12, "replay": lambda: 12, "peer": lambda: 12}
    contest = Contest("steps", "steps", turns, {"peer": 3}, lambda: next(moments), also_ours=("replay",))
    result = hold(contest, repeats=1)
    assert [(line.work, line.value, line.met) for line in result.table()] == [
        ("steps: plans", 4.0, True),
        ("steps: replay", 2.0, False),
    ]
    assert "4.000 ×   target 3   met     2.000 ×   target 3   not met" in result.lines()[-1]


def test_a_gauge_has_a_bound() -> None:
    """More than the bound is told as not met."""
    reading = read(Gauge("memory", "MB", lambda: 301.0, at_most=300))
    assert reading.table()[0].met is False
    assert "target at most 300   not met" in reading.lines()[-1]


def test_an_unknown_part_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """A misspelt part ends with the list of parts."""
    with pytest.raises(SystemExit):
        main(["kernle"])
    assert f"there are {', '.join(PARTS)}" in capsys.readouterr().err

"""How many seeds would have been enough, by the rates of a campaign."""

from __future__ import annotations

from pathlib import Path

from conformance import campaign
from conformance.campaign.sufficiency import advice
from conformance.store import Store
from scenarios.verdict import Verdict
from simkit.errors import ExitCode


def verdict(id_: str, exercised: int, minimum: int) -> Verdict:
    return Verdict(id_, "inconclusive", exercised, minimum)


def test_the_rarest_one_decides_rounded_up() -> None:
    """What is slow, not rare, needs no more seeds; what was never seen is told apart, for it has no rate."""
    assert advice([verdict("A-1", 2, 3), verdict("A-2", 1, 3), verdict("A-3", 9, 3)], 100) == (
        "at this rate about 500 seeds would do for them (--seeds 0-499)"
    )
    assert advice([verdict("A-1", 2, 3), verdict("B-1", 0, 3)], 100) == (
        "at this rate about 200 seeds would do for what was put to the test at all (--seeds 0-199); "
        "of B-1 nothing is known from 100 seeds: try ten times as many"
    )
    assert advice([verdict("A-3", 9, 3)], 100) == advice([], 100) == ""


def test_a_campaign_that_is_too_small_says_how_many_seeds_would_do(tmp_path: Path) -> None:
    """By what it exercised itself; more seeds leave less to be put to the test."""

    def run(count: int) -> tuple[ExitCode, list[str], str]:
        summary = campaign.run(
            "reference",
            config=None,
            mutant=None,
            seeds=range(count),
            boundaries=False,
            kernel="fast",
            jobs=1,
            store=Store(tmp_path),
            emit=lambda _: None,
            stopping=lambda: False,
        )
        listed, _, told = summary.reason.partition("runs: ")[2].partition("; ")
        return summary.exit_code, listed.split(", "), told

    code, few, told = run(4)
    assert code is ExitCode.INCONCLUSIVE
    assert "seeds would do for what was put to the test at all (--seeds 0-" in told
    assert "nothing is known from 4 seeds" in told
    assert len(run(12)[1]) < len(few)

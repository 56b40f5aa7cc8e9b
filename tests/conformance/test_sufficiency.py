"""How many seeds would have been enough, by the rates of a campaign."""

from __future__ import annotations

from pathlib import Path

from conformance import campaign
from conformance import events as e
from conformance.campaign.sufficiency import advice
from conformance.order import Order
from conformance.reporters import wording
from conformance.reporters.wording import promises
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


def test_of_a_sweep_it_is_said_what_it_can_come_to() -> None:
    """It crashes one run everywhere: what is not in that run is met by no crash, however many there are."""
    short = [verdict("A-1", 2, 3), verdict("B-1", 0, 3)]
    assert advice(short, 1, swept=True) == (
        "a sweep tests what the run of its seed comes to; the rest takes other seeds, or many without --sweep"
    )
    assert advice([verdict("A-3", 9, 3)], 1, swept=True) == ""


def test_a_sweep_is_counted_by_its_runs() -> None:
    """Of one seed there are hundreds, and one seed in a minute is no rate."""
    ended = e.CampaignEnded({"runs": 490, "seeds": 1, "runs_pass": 490}, 49.0, 0.0, ExitCode.PASSED)
    assert wording.ended(ended)[0] == "490 runs (490 pass) in 49.0 s, 10.0 runs/s"
    plain = e.CampaignEnded({"runs": 490, "seeds": 490, "runs_pass": 490}, 49.0, 10.0, ExitCode.PASSED)
    assert wording.ended(plain)[0] == "490 runs (490 pass) in 49.0 s, 10.0 seeds/s"


def test_more_than_ten_are_told_by_their_number() -> None:
    """Nobody reads a hundred ids; of one seed it is said that it was one."""
    ids = [f"A-{n}" for n in range(11)]
    assert advice([verdict(id_, 0, 3) for id_ in ids], 1) == (
        "of 11 obligations nothing is known from 1 seed: try ten times as many"
    )
    assert f"of {', '.join(ids[:10])} nothing is known" in advice([verdict(id_, 0, 3) for id_ in ids[:10]], 1)
    assert promises(ids[:10], " (there)") == ", ".join(ids[:10])
    assert promises(ids, " (there)") == "11 obligations (there)"


def test_a_campaign_that_is_too_small_says_how_many_seeds_would_do(tmp_path: Path) -> None:
    """By what it exercised itself; more seeds leave less to be put to the test."""

    def run(count: int) -> tuple[ExitCode, list[str], str]:
        told: list[e.Event] = []
        summary = campaign.run(
            Order("reference"), range(count), jobs=1, store=Store(tmp_path), emit=told.append, stopping=lambda: False
        )
        reached = [one.verdict for one in told if isinstance(one, e.VerdictReached)]
        unsure = [one.obligation for one in reached if one.outcome == "inconclusive"]
        listed, _, advised = summary.reason.partition(f"by {count} run{'s' * (count > 1)}: ")[2].partition("; ")
        assert listed == f"{len(unsure)} obligations (--format json names each)"
        return summary.exit_code, unsure, advised

    assert len(run(1)[1]) > 10

    code, few, told = run(4)
    assert code is ExitCode.INCONCLUSIVE
    assert "seeds would do for what was put to the test at all (--seeds 0-" in told
    assert "nothing is known from 4 seeds" in told
    assert len(run(12)[1]) < len(few)

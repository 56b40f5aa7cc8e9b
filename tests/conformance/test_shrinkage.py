"""Failing seeds made small: the same failure, the same case every time, told and kept beside what it was made of."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from conformance import campaign, cli, targets
from conformance import events as e
from conformance.campaign.judged import Judged, Small
from conformance.campaign.judging import judge_simulated
from conformance.campaign.shrinkage import sentence, shrink_failure
from conformance.order import NOT_SHRUNK, Bounds, Order
from conformance.simulate import scenario_from_json, simulate
from conformance.store import Store
from simkit.case import Case
from simkit.explanation import Cause, Event, Explanation, Ordering

REFERENCE = targets.parse("reference")
pytestmark = pytest.mark.usefixtures("one_promise")
MUTANT, SEED, KIND = "ack-before-commit", 9, "DUR-1 amnesia"
ENOUGH = Bounds(200)


def found(mutant: str = MUTANT, seed: int = SEED) -> Judged:
    return judge_simulated(REFERENCE, seed, simulate(REFERENCE, seed, mutant=mutant, swarm=True), mutant)


def made_small(judged: Judged, bounds: Bounds, kind: str = KIND, **more: Any) -> Small | None:
    return shrink_failure(REFERENCE, judged, kind, bounds, more.get("tell", bool), more.get("stopping", lambda: False))


@pytest.fixture(scope="module")
def small(one_promise: None) -> Small:
    result = made_small(found(), ENOUGH)
    assert result is not None
    return result


def test_what_a_failure_does_not_need_is_left_out(small: Small) -> None:
    """One operation, one interruption, no fault, and the schedule that needs no choice."""
    case = small.judged.case
    assert case is not None
    scenario = scenario_from_json(case.scenario)
    assert [one.label for one in scenario.interruptions] == ["kill@ack:start"]
    assert len(scenario.plan.leaves()) == 1
    assert case.departures == {}
    assert small.decides == "it fails only with kill@ack:start"
    assert " to 1 and 0, in " in small.told


def test_the_small_case_keeps_the_failure_and_knows_its_origin(small: Small) -> None:
    """Obligation and anomaly are the ones that were asked for; the seed is that of the whole run."""
    case = small.judged.case
    assert case is not None
    assert case.expect is not None
    assert (case.expect["obligation"], case.expect["anomaly"]) == tuple(KIND.split())
    assert case.options == {
        "swarm": True,
        "unshrunk": small.unshrunk.id,
        "shrunk": small.told,
        "decides": small.decides,
    }
    assert (case.seed, case.target["mutant"]) == (SEED, MUTANT)
    assert len(case.schedule) < len(small.unshrunk.schedule)


def test_the_same_failure_gives_the_same_case(small: Small) -> None:
    """By runs alone, nothing depends on how fast they are."""
    assert made_small(found(), ENOUGH) == small


def test_what_strikes_by_number_and_time_is_made_small_too() -> None:
    """Interruptions go before the schedule: one that hangs on the timing of all the others would keep them."""
    judged = found("repeat-without-lookup", 206)
    result = made_small(judged, Bounds(60), "EFF-4 duplicate effect")
    assert result is not None
    assert "stopped" not in result.told
    assert result.judged.case is not None
    assert len(result.judged.case.scenario["interruptions"]) == 1


def test_another_failure_is_not_taken_for_it() -> None:
    """A kind that the run does not show cannot be made small, nor can one when nobody has time."""
    judged = found()
    assert made_small(judged, Bounds(50), "EFF-1 duplicate effect") is None
    assert made_small(judged, Bounds(50), stopping=lambda: True) is None


def test_a_bound_on_runs_ends_it_with_what_there_is() -> None:
    """Told as stopped; the failure is the same all the same."""
    told: list[Any] = []
    result = made_small(found(), Bounds(3), tell=told.append)
    assert result is not None
    assert "stopped by its bound on runs" in result.told
    assert [one.runs for one in told] == [2, 3]
    assert KIND in (f"{id_} {one.anomaly}" for id_, find in result.judged.findings.items() for one in find.violations)


def run(store: Store, *seeds: int, shrink: Bounds = ENOUGH, mutant: str = MUTANT) -> list[e.Event]:
    told: list[e.Event] = []
    campaign.run(
        Order("reference", mutant=mutant),
        seeds,
        shrink=shrink,
        jobs=1,
        store=store,
        emit=told.append,
        stopping=lambda: False,
    )
    return told


def test_a_bound_on_time_leaves_at_least_the_run_itself() -> None:
    """However short it is."""
    result = made_small(found(), Bounds(200, 1e-9))
    assert result is not None
    assert re.match(r"(\d+) choices and (\d+) pre-emptions to \1 and \2, in", result.told)
    assert "stopped by its bound on time" in result.told


def test_a_campaign_shows_and_keeps_the_small_run(tmp_path: Path, small: Small) -> None:
    """The block names the small case and the seed, and the unshrunk case lies in its folder; both replay."""
    store = Store(tmp_path)
    told = run(store, SEED)
    assert small.judged.case is not None
    (shown,) = [one for one in told if isinstance(one, e.ViolationFound)]
    assert (shown.case_id, shown.decides, shown.shrunk) == (small.judged.case.id, small.decides, small.told)
    assert shown.replay_case.endswith(f"replay {shown.case_id}")
    assert shown.replay_seed.endswith(f"run -t reference --mutant {MUTANT} --seeds {SEED}")
    assert [path.stem for path in store.cases.glob("*.json")] == [shown.case_id]
    assert (Path(shown.kept) / "spacetime.txt").read_text().partition("\n\n")[0].endswith(KIND)
    assert "<svg" in (Path(shown.kept) / "spacetime.html").read_text()
    unshrunk = Case.from_json(json.loads((Path(shown.kept) / "unshrunk.json").read_text()))
    assert unshrunk == small.unshrunk
    for case in (store.load_case(str(shown.case_id)), unshrunk):
        answer = campaign.replay(case, store=store, emit=lambda _: None, stopping=lambda: False)
        assert (answer.answer, answer.digest) == ("reproduced", case.digest)
    assert any(isinstance(one, e.Progress) and f"to shrink DUR-1 amnesia of seed {SEED}" in one.note for one in told)


def test_only_the_small_run_of_a_kind_is_kept(tmp_path: Path, capsys: Any) -> None:
    """However many seeds fail alike: one case, which says how small it was made and of which seed; no original beside it."""
    store = Store(tmp_path)
    told = run(store, *range(SEED, SEED + 12), shrink=Bounds(60))
    failed = [one for one in told if isinstance(one, e.RunFinished) and one.outcome == "fail"]
    assert len(failed) > 1
    cases = [case for _, case in store.list_cases() if isinstance(case, Case)]
    kinds = [kind for case in cases for kind in (case.expect or {})["all"]]
    assert len(cases) <= len(set(kinds))
    assert all(case.options["shrunk"] and case.seed is not None for case in cases)
    assert cli.main(["cases", "--store", str(tmp_path), "--format", "plain"]) == 0
    assert capsys.readouterr().out.count("shrunk ") == len(cases)


def test_a_case_is_explained_by_what_was_found_out(tmp_path: Path, capsys: Any) -> None:
    """`simkit explain CASE`: what it shows, what decides, and the table of the run; by an id or its beginning."""
    store = Store(tmp_path)
    run(store, SEED)
    (path,) = store.cases.glob("*.json")
    assert cli.main(["explain", path.stem[:6], "--store", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    for words in (
        f"{path.stem} · {KIND}",
        "it fails only with kill@ack:start",
        "connects to engine",
        f"replay {path.stem}",
    ):
        assert words in out
    path.write_text(path.read_text()[:200])
    assert cli.main(["explain", path.stem, "--store", str(tmp_path)]) == 2
    assert "error[case-malformed]" in capsys.readouterr().err


def test_only_the_first_of_a_kind_is_made_small(tmp_path: Path) -> None:
    """Those after it are counted, and the small one is the case that is kept; none is made when nobody wants it."""
    store = Store(tmp_path / "a")
    told = [one for one in run(store, SEED, SEED) if isinstance(one, e.ViolationFound)]
    assert [bool(one.shrunk) for one in told] == [True, False]
    assert len(list(store.cases.glob("*.json"))) == 1
    (shown,) = [one for one in run(Store(tmp_path / "b"), SEED, shrink=NOT_SHRUNK) if isinstance(one, e.ViolationFound)]
    assert (shown.shrunk, shown.decides) == ("", "")


def test_every_claimed_kind_of_a_run_is_shown_small(tmp_path: Path) -> None:
    """By one small run where that shows them all, else by one each; each block's case expects what the block tells."""
    store = Store(tmp_path)
    told = [one for one in run(store, 19, mutant="no-key") if isinstance(one, e.ViolationFound) and one.claimed]
    kinds = list(dict.fromkeys((one.obligation, one.anomaly) for one in told))
    assert kinds
    for obligation, anomaly in kinds:
        first = next(one for one in told if (one.obligation, one.anomaly) == (obligation, anomaly))
        assert first.shrunk
        expect = store.load_case(str(first.case_id)).expect
        assert expect is not None
        assert f"{obligation} {anomaly}" in expect["all"]


def test_what_decides_is_told_in_the_words_of_scenarios() -> None:
    """Interruptions by their label, then faults, then orderings; operations last among what the run is made of."""
    causes = (
        Cause(("operation", "buy", 0), 1),
        Cause(("detail", "kid/nap.ns", 0), 1),
        Cause(("group", "both", 0), 1),
        Cause(("interruption", "kill@buy#1.applied", 0), 1),
        Cause(("swarm", "storm", 0), 2),
        Cause(("swarm", "network.stalls", 0), 1),
        Cause(("network", "stall:a>b", 3), 1),
    )
    ordering = Ordering(Event(1, 2, "reader"), Event(3, 4, "writer"))
    why = Explanation("x", causes, (ordering,), (), 9, complete=False)
    assert sentence(why) == (
        "it fails only with kill@buy#1.applied, storm, network.stalls drawn, network/stall:a>b#3 = 1, ns of kid/nap, "
        "group both and 1 more and while step 2 of reader #1 comes before step 4 of writer #3, as far as 9 runs tell"
    )
    assert sentence(Explanation("x", (), (), (), 9, complete=True)) == ""

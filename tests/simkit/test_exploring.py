"""The explorer: each stage finds the fault that was planted for it, and no earlier stage does; the same report every time."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import simkit
from simkit.case import Case
from simkit.coverage import Features
from simkit.disk import Boundary
from simkit.errors import SimkitError
from simkit.exploring import STAGES, Budget, Report
from simkit.exploring.kinds import Without
from simkit.exploring.plan import singles
from simkit.point_coverage import DeclaredPoint
from simkit.shrinking import Retrial, shrink
from simkit.striking import KINDS
from simkit.tape import Journal, Tape
from simkit.world import Limits, World, run
from tests.simkit import explore_programs as programs


def explored(program: Callable[[World], Any], stages: Sequence[str], runs: int, **more: Any) -> Report:
    """A short exploration."""
    return simkit.explore(program, stages=stages, budget=Budget(runs=runs, shrink=100), **more)


def names(report: Report) -> list[str]:
    """Which stage found what."""
    return [finding.stage for finding in report.findings]


# ---- each stage its fault


@pytest.mark.parametrize(
    ("program", "stage", "runs", "before"),
    [
        (programs.careless, "singles", 150, ["delays"]),
        (programs.recovers_once, "pairs", 700, ["singles", "delays"]),
        (programs.asks_twice, "pairs", 600, ["singles", "delays"]),
        (programs.late, "delays", 60, ["singles", "pairs"]),
        (programs.coins, "portfolio", 80, ["singles", "pairs", "delays"]),
        (programs.lock, "mutations", 700, ["singles", "pairs", "portfolio"]),
        (programs.gives_up, "liveness", 80, ["singles", "pairs"]),
    ],
)
def test_each_stage_finds_what_was_planted_for_it(
    program: Callable[[World], Any], stage: str, runs: int, before: list[str]
) -> None:
    """Not found by the stages before, found by this one; and the case replays, shrunk or not."""
    assert explored(program, before, 200, limits=Limits(steps=1000)).passed
    needed = ["singles", "pairs"] if stage == "pairs" else [stage]
    report = explored(program, needed, runs, seed=1 if stage == "liveness" else 0)
    assert names(report) == [stage]
    finding = report.findings[0]
    assert report.stage(stage).new == 1
    assert report.stage(stage).failing == finding.runs
    assert finding.shrunk is not None
    assert len(finding.shrunk.departures) <= len(finding.case.departures)
    for case in (finding.case, finding.shrunk):
        replayed = simkit.replay(case, program)
        assert (replayed.answer, replayed.digest) == ("reproduced", case.digest)


def test_pairs_in_the_cone_of_a_named_point() -> None:
    """Without any single strike before: both messages are lost before the point, which says that they were sent."""
    report = explored(programs.asks_twice, ["pairs"], 300)
    assert names(report) == ["pairs"]
    assert [strike.partition(" ")[0] for strike in report.findings[0].strikes].count("network.datagram-loss") == 2
    assert any("no single strikes were made" in note for note in report.notes)
    told = explored(programs.recovers_once, ["pairs"], 50)
    assert told.stage("pairs").candidates == 0
    assert any("no named point held" in note for note in told.notes)


def test_a_sound_program_passes_every_single_strike() -> None:
    """All of them are made; and each was one that could be made."""
    report = explored(programs.sound, ["singles"], 400)
    assert report.passed
    assert report.stage("singles").complete
    assert [one for one in report.sites if one.struck < one.sites] == []


def test_what_fails_without_any_fault_is_the_finding() -> None:
    """Nothing else is tried then."""
    report = explored(programs.fails, tuple(STAGES), 100)
    assert names(report) == ["default"]
    assert [stage.name for stage in report.stages] == ["default"]
    assert report.runs == 2


# ---- single strikes are complete


def test_every_single_crash_is_made() -> None:
    """Counted independently: by the hook of a disk, which sees every boundary, and what is unsynced there."""
    seen: list[tuple[str, int]] = []

    async def counted(world: World) -> None:
        host = world.host("a")
        hook = host.disk.on_boundary

        def count(boundary: Boundary) -> Any:
            size = boundary.size if boundary.kind == "write" else 0
            states = host.disk.crash_states(100).states
            power = 0 if len(states) == 1 else 2
            seen.append((boundary.kind, 1 + (size > 1) + power))
            return None if hook is None else hook(boundary)

        host.disk.on_boundary = count
        await programs.sound(world)

    run(counted, tape=Tape.from_departures({})).unwrap()
    report = explored(programs.sound, ["singles"], 400)
    kinds = {kind for kind in KINDS.values() if kind != "kill-after"}
    assert report.boundaries == {"a": len(seen)}
    made = _crashes_made(programs.sound)
    assert sum(number for kind, number in made.items() if kind in kinds) == sum(number for _, number in seen)
    assert made["kill"] == len(seen)


def _crashes_made(program: Callable[[World], Any]) -> dict[str, int]:
    """How many crashes of each kind the explorer makes, by what their runs tell (each has one, at a boundary of its own)."""
    journal = Journal()
    probe = run(program, tape=Tape.opened(journal=journal))
    steps = [at for at, entry in enumerate(probe.trace.entries()) if isinstance(entry, int) and entry >= 0]
    found: dict[str, int] = {}
    for strike in singles(journal.sites, steps, Without()):
        if strike.kind.startswith("crash."):
            trace = run(program, tape=Tape.from_departures({strike.site: strike.value})).trace
            crashes = [event for event in trace.events() if event.kind == "crash"]
            assert len(crashes) == 1
            found[strike.kind.removeprefix("crash.")] = found.get(strike.kind.removeprefix("crash."), 0) + 1
    return found


def test_a_crash_after_a_boundary_that_is_left_out_is_the_crash_before_the_next() -> None:
    """The two runs are the same but for the word that tells the crash."""
    journal = Journal()
    probe = run(programs.sound, tape=Tape.opened(journal=journal))
    steps = [at for at, entry in enumerate(probe.trace.entries()) if isinstance(entry, int) and entry >= 0]
    kept = {(one.site, one.value) for one in singles(journal.sites, steps, Without())}
    crashes = [visit.site for visit in journal.sites if visit.site[0] == "crash/a"]
    left_out = [at for at, site in enumerate(crashes[:-1]) if (site, 2) not in kept]
    assert len(left_out) > 5
    for at in left_out:
        after, before = (
            [
                str(event).partition(":")[2]
                for event in run(programs.sound, tape=tape).trace.events()
                if event.kind != "crash"
            ]
            for tape in (Tape.from_departures({crashes[at]: 2}), Tape.from_departures({crashes[at + 1]: 1}))
        )
        assert [word for word in after if "boundary" not in word] == [word for word in before if "boundary" not in word]


# ---- the same every time


@pytest.mark.parametrize("program", [programs.asks_twice, programs.served])
def test_the_same_arguments_give_the_same_report(program: Callable[[World], Any], tmp_path: Path) -> None:
    """Serial or shared between processes, with whatever number of workers; also as JSON."""
    first = explored(program, tuple(STAGES), 150, seed=5)
    again = explored(program, tuple(STAGES), 150, seed=5)
    assert again == first
    for workers in (1, 2):
        with ProcessPoolExecutor(workers) as executor:
            assert explored(program, tuple(STAGES), 150, seed=5, executor=executor) == first
    assert json.loads(json.dumps(again.to_json())) == json.loads(json.dumps(first.to_json()))


@pytest.mark.parametrize("program", [programs.asks_twice, programs.served])
def test_both_kernels_explore_the_same(program: Callable[[World], Any]) -> None:
    """Sites, strikes and traces are those of the other loop."""
    assert explored(program, tuple(STAGES), 80, kernel="fallback") == explored(program, tuple(STAGES), 80)


def test_another_seed_draws_other_runs() -> None:
    """The stages that draw nothing are the same all the same."""
    one, other = (explored(programs.coins, ["singles", "portfolio"], 60, seed=seed) for seed in (1, 2))
    assert one.stage("singles") == other.stage("singles")
    assert one.stage("portfolio").curve != other.stage("portfolio").curve or one.findings != other.findings


# ---- the budget


def test_the_budget_is_kept_and_told() -> None:
    """No more runs than that; a stage that could not make all says how many, and that they are spread."""
    report = explored(programs.recovers_once, ["singles", "pairs"], 60)
    assert report.runs == 60
    stage = report.stage("singles")
    assert stage.candidates is not None
    assert stage.runs < stage.candidates
    assert "evenly spread" in stage.stopped
    assert sum(one.runs for one in report.stages) == report.runs


def test_second_runs_of_healed_ones_are_within_the_budget() -> None:
    """Each that met its bound was made twice; all count."""
    report = explored(programs.gives_up, ["liveness"], 60, seed=1)
    failing = report.stage("liveness").failing
    assert failing > 0
    assert report.stage("liveness").runs == 29 + failing
    assert report.runs <= 60


def test_a_budget_of_time_stops_between_runs() -> None:
    """Whatever was made by then is in the report."""
    report = simkit.explore(programs.sound, budget=Budget(runs=100_000, seconds=1e-9))
    assert report.runs == 2
    assert {stage.stopped for stage in report.stages[1:]} == {"time is up"}


def test_runs_that_meet_a_bound_are_inconclusive() -> None:
    """They neither pass nor fail."""
    report = explored(programs.gives_up, ["singles"], 60, limits=Limits(steps=200))
    assert report.findings == ()
    assert report.inconclusive == report.stage("singles").inconclusive > 0


@pytest.mark.parametrize("arguments", [{"runs": 1}, {"seconds": 0}, {"shrink": -1}, {"explain": -2}])
def test_an_impossible_budget_is_refused(arguments: dict[str, Any]) -> None:
    """Two runs are the least: the default one, twice."""
    with pytest.raises(ValueError, match=r"budget|2 runs"):
        Budget(**arguments)


# ---- what is told


def test_a_report_is_a_short_table() -> None:
    """Stages, findings with what struck and what decides, what was never struck, points never hit."""
    missing = DeclaredPoint("unheard of", "reachable", "x.py:1")
    report = simkit.explore(programs.careless, stages=["singles"], budget=Budget(runs=60, explain=30), points=[missing])
    text = str(report)
    assert "careless: 60 runs" in text
    assert "singles" in text.splitlines()[3]
    assert "crash.power-state a" in text
    assert "It fails only with crash/a/" in text
    assert "never hit: unheard of (reachable, x.py:1)" in text
    assert report.findings[0].explanation in text


def test_points_that_are_hit_are_not_missed() -> None:
    """Over all runs of all stages."""
    report = explored(programs.served, ["singles"], 150)
    assert report.passed
    assert [point.name for point in report.never_hit] == []  # `maybe("hurry")` was struck
    assert "hurry" in [point.name for point in explored(programs.served, ["delays"], 20).never_hit]


def test_kinds_can_be_left_out() -> None:
    """Neither listed nor struck, in any stage."""
    report = explored(programs.careless, tuple(STAGES), 200, without=["crash.power*"])
    assert report.passed
    assert not any("power" in strike for finding in report.findings for strike in finding.strikes)


def test_a_program_without_any_site_is_told() -> None:
    """And its schedules are explored all the same."""
    report = explored(programs.bare, ["singles", "delays"], 20)
    assert any("nothing can be struck" in note for note in report.notes)
    assert report.stage("delays").complete


def test_cases_are_saved(tmp_path: Path) -> None:
    """The first and the shrunk one, which are shrunk and explained like any other."""
    report = explored(programs.recovers_once, ["singles", "pairs"], 600, save=tmp_path)
    finding = report.findings[0]
    assert {path.stem for path in tmp_path.iterdir()} == {finding.case.id, finding.simplest.id}
    case = Case.load(tmp_path / f"{finding.case.id}.json")
    assert case.options["open"] is True
    shrunk = shrink(Retrial(programs.recovers_once), case.departures, case.schedule)
    assert len(shrunk.best.departures) == 2


def test_a_corpus_goes_on_where_it_ended(tmp_path: Path) -> None:
    """What one exploration learnt, the next begins with."""
    explored(programs.lock, ["mutations"], 300, corpus=tmp_path)
    entries = list(tmp_path.glob("*.json"))
    assert len(entries) > 2
    again = explored(programs.lock, ["mutations"], 2 + 1 + len(entries), corpus=tmp_path)
    assert again.stage("mutations").behaviours > 2


def test_that_the_code_which_ran_is_not_seen_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else traces, say: mutations go by everything else, and nobody is warned once more."""
    monkeypatch.setattr(Features, "blind", property(lambda _: "for some reason"))
    report = explored(programs.coins, ["mutations"], 20)
    assert "mutations do not see which code ran: for some reason" in report.notes


# ---- bad input


@pytest.mark.parametrize(
    ("program", "arguments", "code"),
    [
        (programs.bare, {"stages": ["singles", "tripels"]}, "unknown-stage"),
        (programs.bare, {"stages": "singles"}, "unknown-stage"),
        (simkit.test(programs.bare), {}, "explore-misused"),
        (programs.forgetful, {}, "program-changed"),
        (programs.endless, {"limits": Limits(steps=500)}, "explore-endless"),
    ],
)
def test_what_cannot_be_explored_is_told(program: Callable[[World], Any], arguments: dict[str, Any], code: str) -> None:
    """With what is expected instead."""
    with pytest.raises(SimkitError) as error:
        simkit.explore(program, **arguments)
    assert error.value.problem.code == code


def test_a_program_that_does_not_repeat_itself_is_told_by_its_first_differing_event() -> None:
    """Both sides of it."""
    with pytest.raises(SimkitError, match=r"event \d+.*\|.*event \d+"):
        simkit.explore(programs.forgetful)

"""Replays: lines that lead back to the original, cases that move, runs shown whole, and what is kept of a run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from conformance import campaign
from conformance import events as e
from conformance.store import Store
from conformance.targets import ADAPTERS
from scenarios.history import History
from simkit.case import Case
from simkit.errors import SimkitError

MUTANT, SEED = "ack-before-commit", 17


def never() -> bool:
    return False


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / ".simkit")


@pytest.fixture
def found(store: Store) -> tuple[Case, list[e.Event]]:
    """A case of the simulated world, and what was told when it was found."""
    told: list[e.Event] = []
    campaign.run(
        "reference",
        config=None,
        mutant=MUTANT,
        seeds=[SEED],
        boundaries=False,
        kernel="fast",
        jobs=1,
        store=store,
        emit=told.append,
        stopping=never,
    )
    ((_, case),) = store.list_cases()
    assert isinstance(case, Case)
    return case, told


def violations(told: list[e.Event]) -> list[e.ViolationFound]:
    return [event for event in told if isinstance(event, e.ViolationFound)]


def test_a_replay_prints_the_lines_of_the_original(store: Store, found: tuple[Case, list[e.Event]]) -> None:
    """The mutant is in them, a configuration taken anyway is not, and no second case is made."""
    case, told = found
    again: list[e.Event] = []
    answer = campaign.replay(case, store=store, emit=again.append, stopping=never)
    assert answer.answer == "reproduced"
    lines = [(one.replay_case, one.replay_seed) for one in violations(told)]
    assert [(one.replay_case, one.replay_seed) for one in violations(again)] == lines
    assert lines[0] == (f"simkit replay {case.id}", f"simkit run -t reference --mutant {MUTANT} --seeds {SEED}")
    assert [path.name for path in store.cases.glob("*.json")] == [f"{case.id}.json"]


def test_a_run_is_kept_beside_its_case(store: Store, found: tuple[Case, list[e.Event]]) -> None:
    """The folder named in the failure has the whole history, and the table to read it by."""
    case, told = found
    folder = store.cases / f"{case.id}.run"
    assert violations(told)[0].kept == str(folder)
    history = History.from_json(json.loads((folder / "history.json").read_text()))
    assert history.events
    assert "fault: power@ack:start" in (folder / "table.txt").read_text()


@pytest.mark.parametrize("seed", [SEED, 0])
def test_show_tells_the_run_whole(store: Store, seed: int) -> None:
    """Asked for, every event of a run is told, whether it violates anything or not."""
    told: list[e.Event] = []
    campaign.run(
        "reference",
        config=None,
        mutant=None,
        seeds=[seed],
        boundaries=False,
        kernel="fast",
        jobs=1,
        show=True,
        store=store,
        emit=told.append,
        stopping=never,
    )
    (shown,) = [event for event in told if isinstance(event, e.RunShown)]
    assert shown.seed == seed
    assert shown.table[-1].text == "settled"


@pytest.mark.slow
def test_a_case_is_found_from_another_folder(tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """An adapter named by a relative path is found from anywhere while it is there, and by -t when it has moved."""
    (tmp_path / "here").mkdir()
    shutil.copytree(ADAPTERS / "naive", tmp_path / "here" / "naive")
    monkeypatch.chdir(tmp_path / "here")
    told: list[e.Event] = []
    name = "tour/kill@first#1.received"
    first = campaign.replay_scenario(
        "naive/adapter.toml",
        config=None,
        mutant=None,
        scenario=name,
        store=store,
        emit=told.append,
        stopping=never,
    )
    assert first.answer == "reproduced"
    case = store.load_case(str(violations(told)[0].case_id))

    monkeypatch.chdir(tmp_path)
    again: list[e.Event] = []
    assert campaign.replay(case, store=store, emit=again.append, stopping=never).answer == "reproduced"
    manifest = tmp_path / "here" / "naive" / "adapter.toml"
    assert violations(again)[0].replay_seed == f"simkit replay -t {manifest} --scenario '{name}'"

    (tmp_path / "here").rename(tmp_path / "there")
    with pytest.raises(SimkitError, match=f"replay {case.id} -t PATH"):
        campaign.replay(case, store=store, emit=again.append, stopping=never)
    moved = "there/naive/adapter.toml"
    assert campaign.replay(case, target=moved, store=store, emit=again.append, stopping=never).answer == "reproduced"


@pytest.mark.slow
def test_a_good_scenario_has_nothing_violated(store: Store) -> None:
    """A scenario of which nobody expected a violation is not called fixed."""
    told: list[e.Event] = []
    answer = campaign.replay_scenario(
        "naive",
        config=None,
        mutant=None,
        scenario="tour/undisturbed",
        show=True,
        store=store,
        emit=told.append,
        stopping=never,
    )
    assert answer.answer == "clean"
    shown = [event for event in told if isinstance(event, e.RunShown)]
    assert len(shown) == answer.of
    assert any(row.text.startswith("signal answered ok") for row in shown[0].table)


@pytest.mark.slow
def test_the_logs_of_a_run_that_could_not_be_judged_are_kept(tmp_path: Path, store: Store) -> None:
    """The path in the hint holds what the worker printed, and how to start it by hand."""
    shutil.copytree(ADAPTERS / "naive", tmp_path / "bad")
    (tmp_path / "bad" / "adapter.py").write_text("raise SystemExit('no such engine')")
    with pytest.raises(SimkitError) as caught:
        campaign.replay_scenario(
            str(tmp_path / "bad"),
            config=None,
            mutant=None,
            scenario="tour/undisturbed",
            store=store,
            emit=lambda _event: None,
            stopping=never,
        )
    hint = caught.value.problem.hint
    assert "SIMKIT_SERVICES=http://127.0.0.1:" in hint
    folder = Path(hint.rpartition("logs: ")[2])
    assert folder.parent == store.runs
    assert "no such engine" in (folder / "worker-1.log").read_text()
    assert "SIMKIT_STATE=$(mktemp -d)" in (folder / "by-hand.txt").read_text()

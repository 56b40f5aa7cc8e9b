"""Replays that are looked at on the way: stopped, traced, debugged; and those where that cannot be."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from conformance import campaign, cli, targets, tracefile
from conformance import events as e
from conformance.campaign.judging import judge_simulated
from conformance.look import Look
from conformance.simulate import simulate
from conformance.store import Store
from scenarios import catalogue
from simkit.case import Case
from simkit.errors import SimkitError

MUTANT = "ack-before-commit"
SHOWN_BY = "tour/kill@ack:start(engine)"


@pytest.fixture(scope="module")
def case() -> Case:
    reference = targets.parse("reference")
    shown = simulate(reference, 0, scenario=catalogue.by_name(SHOWN_BY), mutant=MUTANT)
    found = judge_simulated(reference, 0, shown, MUTANT).case
    assert found is not None
    return found


@pytest.fixture
def store(tmp_path: Path, case: Case) -> Store:
    store = Store(tmp_path / ".simkit")
    store.save_case(case)
    return store


def replay(case: Case, store: Store, look: Look, told: list[e.Event] | None = None) -> e.Replayed:
    emit: Callable[[e.Event], None] = (lambda _: None) if told is None else told.append
    return campaign.replay(case, look=look, store=store, emit=emit, stopping=lambda: False)


def test_a_standstill_shows_tasks_time_disk_and_network(case: Case, store: Store) -> None:
    """In the middle of the run: the driver, the engine and the worker with their stacks, the store's file, connections."""
    told: list[e.Event] = []
    answer = replay(case, store, Look(until=700), told)
    assert answer.answer == "stopped"
    assert answer.at_event is not None
    (shown,) = [one for one in told if isinstance(one, e.Explained)]
    assert shown.title.startswith(f"before event {answer.at_event}, step ")
    assert "reference_runtime/server.py" in shown.sections["tasks"]
    assert "/state/runtime.db" in shown.sections["hosts"]
    assert "engine:7000" in shown.sections["connections"]
    assert not [one for one in told if isinstance(one, e.ViolationFound)]


def test_the_trace_has_every_event(case: Case, store: Store, tmp_path: Path) -> None:
    """Numbered from 0; with --until those before the stop."""
    for until in (None, 300):
        path = tmp_path / f"{until}.jsonl"
        with tracefile.tracing(str(path)) as sink:
            answer = replay(case, store, Look(until=until, trace=sink))
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        assert [line["index"] for line in lines] == list(range(len(lines)))
        assert case.ladder is not None
        assert len(lines) == (case.ladder.events if until is None else answer.at_event)


def test_a_replay_that_parts_names_the_event(case: Case, store: Store) -> None:
    """Another digest of the trace, a write of another size in it: the window says where, and what the replay has there."""
    scenario = json.loads(re.sub(r'"amount": (\d+)', r'"amount": \g<1>222', json.dumps(case.scenario)))
    assert scenario != case.scenario
    answer = replay(attrs.evolve(case, scenario=scenario), store, Look())
    assert answer.answer == "diverged"
    assert answer.at_event is not None
    assert answer.since_event is None or answer.since_event < answer.at_event
    assert answer.replayed
    assert answer.got is not None
    assert answer.got.startswith("DUR-1 amnesia")  # followed as far as it fits


def test_the_debugger_is_the_one_that_was_named(case: Case, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, before the step; then the replay goes on to its answer."""
    seen: list[str] = []
    monkeypatch.setenv("PYTHONBREAKPOINT", "some.where")
    monkeypatch.setattr(sys, "breakpointhook", lambda: seen.append("here"))
    assert replay(case, store, Look(debug_at=300)).answer == "reproduced"
    assert seen == ["here"]


def typed(capsys: Any, store: Store, *words: str) -> tuple[int, str, str]:
    code = cli.main(["replay", *words, "--store", str(store.root)])
    out, err = capsys.readouterr()
    return code, out, err


def test_what_cannot_be_is_told_with_what_to_do(case: Case, store: Store, tmp_path: Path, capsys: Any) -> None:
    """An event too far, two stops, no terminal, no folder for the trace; nothing is run for the last three."""
    assert case.ladder is not None
    count = case.ladder.events
    for words, code in (
        ((case.id, "--until", str(count)), "event-unknown"),
        ((case.id, "--until=-1"), "event-unknown"),
        ((case.id, "--until", "1", "--break", "1"), "replay-what"),
        ((case.id, "--break", "1"), "no-terminal"),
        ((case.id, "--trace", str(tmp_path / "no" / "trace")), "file-unusable"),
        ((case.id, "--untill", "1"), "usage"),
        ((case.id, "--until", "soon"), "usage"),
        ((case.id, "--trace", "/dev/full"), "trace-lost"),
    ):
        exit_code, _, err = typed(capsys, store, *words)
        assert f"error[{code}]" in err
        assert exit_code == 2 or code == "trace-lost"
        assert "hint:" in err
    assert f"the replay has {count} events" in typed(capsys, store, case.id, "--until", str(count))[2]


def test_a_trace_on_standard_output_has_it_to_itself(case: Case, store: Store, capsys: Any) -> None:
    """The report goes to standard error then."""
    code, out, err = typed(capsys, store, case.id, "--trace", "-", "--until", "50")
    assert code == 0
    assert [json.loads(line)["index"] for line in out.splitlines()] == list(range(len(out.splitlines())))
    assert "stopped" in err


@pytest.mark.parametrize("look", [Look(until=1), Look(debug_at=1), Look(trace=sys.stdout)])
def test_real_processes_have_no_events(store: Store, look: Look) -> None:
    """Neither a case of them, nor a scenario; the option is named."""
    real = Case("process", {"target": "naive"}, {"name": "tour/undisturbed"})
    with pytest.raises(SimkitError, match=f"{look.asks} is for simulated runs") as caught:
        replay(real, store, look)
    assert caught.value.problem.code == "replay-not-simulated"
    with pytest.raises(SimkitError, match="have no events to count"):
        campaign.replay_scenario(
            "naive",
            config=None,
            mutant=None,
            scenario="tour/undisturbed",
            look=look,
            store=store,
            emit=lambda _: None,
            stopping=lambda: False,
        )

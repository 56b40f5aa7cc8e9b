"""Replays: the four answers, lines that lead back to the original, cases that move, and what is shown and kept of a run."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from conformance import campaign
from conformance import events as e
from conformance.campaign import docket, judging, real
from conformance.campaign.judged import Judged
from conformance.campaign.vitality import doubt
from conformance.cli import explain
from conformance.order import Order
from conformance.reporters import wording
from conformance.simulate import scenario_from_json, scenario_to_json
from conformance.store import Store
from conformance.targets import ADAPTERS, parse
from scenarios import catalogue
from scenarios.history import History
from scenarios.interruption import Scenario
from scenarios.verdict import Finding, Violation
from simkit.case import Case
from simkit.errors import Problem, SimkitError

pytestmark = pytest.mark.usefixtures("one_promise")
MUTANT, SEED = "ack-before-commit", 9


def never() -> bool:
    return False


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / ".simkit")


@pytest.fixture
def found(store: Store) -> tuple[Case, list[e.Event]]:
    """A case of the simulated world, and what was told when it was found."""
    told: list[e.Event] = []
    campaign.run(Order("reference", mutant=MUTANT), [SEED], jobs=1, store=store, emit=told.append, stopping=never)
    ((_, case),) = store.list_cases()
    assert isinstance(case, Case)
    return case, told


def test_the_case_of_a_test_names_the_line_that_replays_it(store: Store) -> None:
    """The pytest plugin saves its cases in the same folder."""
    case = Case("simulated", {"name": "pytest", "test": "t.py::test_x[a b]"}, {})
    with pytest.raises(SimkitError) as told:
        campaign.replay(case, store=store, emit=lambda event: None, stopping=never)
    assert told.value.problem.hint == f"pytest 't.py::test_x[a b]' --simkit-replay {case.id}"


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
    assert "fault: kill@ack:start" in (folder / "table.txt").read_text()


@pytest.mark.parametrize("seed", [SEED, 0])
def test_show_tells_the_run_whole(store: Store, seed: int) -> None:
    """Asked for, every event of a run is told, whether it violates anything or not."""
    told: list[e.Event] = []
    campaign.run(Order("reference", show=True), [seed], jobs=1, store=store, emit=told.append, stopping=never)
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
    assert "by hand: cd " in hint
    folder = Path(hint.rpartition("logs: ")[2])
    assert folder.parent == store.runs
    assert "no such engine" in (folder / "worker-1.log").read_text()
    assert "SIMKIT_STATE=$(mktemp -d)" in (folder / "by-hand.txt").read_text()


# ---- answers


@pytest.fixture
def verdict(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let the judges find these violations and no others."""

    def put(**violated: str) -> None:
        findings = {
            id_.replace("_", "-"): Finding(1, (Violation(anomaly, "So it was.", (1,)),))
            for id_, anomaly in violated.items()
        }
        monkeypatch.setattr(judging, "judge_all", lambda _history: findings)

    return put


def test_the_same_run_without_its_violation_is_fixed(
    store: Store, found: tuple[Case, list[e.Event]], verdict: Callable[..., None]
) -> None:
    """The digest is the case's: what changed is not the run but what it shows."""
    verdict()
    answer = campaign.replay(found[0], store=store, emit=lambda _: None, stopping=never)
    assert (answer.answer, answer.digest, answer.got, answer.times) == ("fixed", found[0].digest, "", 0)
    assert answer.expected == "DUR-1 amnesia"


def test_the_same_run_with_another_violation_is_different(
    store: Store, found: tuple[Case, list[e.Event]], verdict: Callable[..., None]
) -> None:
    """Also where only the anomaly is another."""
    for violated in ({"EFF_1": "duplicate effect"}, {"DUR_1": "torn view"}):
        verdict(**violated)
        answer = campaign.replay(found[0], store=store, emit=lambda _: None, stopping=never)
        ((id_, anomaly),) = violated.items()
        assert (answer.answer, answer.got) == ("different", f"{id_.replace('_', '-')} {anomaly}")


def test_what_nobody_claims_keeps_no_case_from_being_fixed(
    store: Store, found: tuple[Case, list[e.Event]], verdict: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The target never promised it, and the run has shown it all along: it is told beside the answer, and is no failure."""
    monkeypatch.setattr(docket, "claimed_ids", lambda _target: frozenset({"DUR-1", "DUR-3"}))
    verdict(EFF_4="duplicate effect", EFF_5="duplicate effect")
    answer = campaign.replay(found[0], store=store, emit=lambda _: None, stopping=never)
    beside = "EFF-4 duplicate effect, EFF-5 duplicate effect"
    assert (answer.answer, answer.got, answer.beside) == ("fixed", "", beside)
    assert wording.replayed(answer)[0] == ("fixed", "nothing that is claimed was violated any more")
    assert ("not claimed", beside) in wording.replayed(answer)

    verdict(EFF_4="duplicate effect", DUR_3="amnesia")
    answer = campaign.replay(found[0], store=store, emit=lambda _: None, stopping=never)
    assert (answer.answer, answer.got, answer.beside) == ("different", "DUR-3 amnesia", "EFF-4 duplicate effect")


def test_a_case_of_what_nobody_claims_is_reproduced(
    store: Store, found: tuple[Case, list[e.Event]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a case promises to show counts, whether it is claimed or not."""
    monkeypatch.setattr(docket, "claimed_ids", lambda _target: frozenset({"EFF-1"}))
    answer = campaign.replay(found[0], store=store, emit=lambda _: None, stopping=never)
    assert (answer.answer, answer.got, answer.beside) == ("reproduced", "DUR-1 amnesia", "")


def test_a_run_that_takes_another_way_has_diverged(store: Store, found: tuple[Case, list[e.Event]]) -> None:
    """Recorded and replayed stand side by side, with the number of the event where they part."""
    first, *rest = found[0].schedule
    case = attrs.evolve(found[0], schedule=((first[0] + 1_000, first[1]), *rest))
    answer = campaign.replay(case, store=store, emit=lambda _: None, stopping=never)
    assert answer.answer == "diverged"
    assert answer.at_event is not None
    assert answer.recorded != answer.replayed


def test_a_run_with_another_digest_has_diverged(store: Store, found: tuple[Case, list[e.Event]]) -> None:
    """However alike it ended: the same case gives the same digest, or it is not the same."""
    case = attrs.evolve(found[0], digest="0" * 32)
    answer = campaign.replay(case, store=store, emit=lambda _: None, stopping=never)
    assert (answer.answer, answer.recorded_digest, answer.digest) == ("diverged", "0" * 32, found[0].digest)


def changed(store: Store, case: Case, **fields: object) -> Case:
    """A case whose file was edited by hand, read again."""
    path = store.save_case(case)
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))
    return store.load_case(case.id)


def test_a_case_that_was_edited_is_replayed_and_says_so(store: Store, found: tuple[Case, list[e.Event]]) -> None:
    """It may be wanted; what is reproduced is not the case that simkit wrote."""
    case = changed(store, found[0], kit="99.9", ladder=None)
    answer = campaign.replay(case, store=store, emit=lambda _: None, stopping=never)
    assert answer.answer == "reproduced"
    assert answer.altered == f"edited by hand: it was written as case {found[0].id}, and is now {case.id}"
    assert wording.answer(answer) == "reproduced, of a case that was edited by hand"
    assert ("case", answer.altered) in wording.replayed(answer)


def test_a_case_as_it_was_written_is_called_nothing_else(store: Store, found: tuple[Case, list[e.Event]]) -> None:
    """From its file, too."""
    answer = campaign.replay(store.load_case(found[0].id), store=store, emit=lambda _: None, stopping=never)
    assert (answer.answer, answer.altered, wording.answer(answer)) == ("reproduced", "", "reproduced")


def test_a_mutant_is_not_dropped_for_real_processes(store: Store) -> None:
    """Without it the unbroken runtime would be run, and the case called fixed."""
    case = attrs.evolve(real_case("reference"), target={"target": "reference", "mutant": MUTANT})
    with pytest.raises(SimkitError, match="it has the mutant ack-before-commit and is of real processes"):
        campaign.replay(case, store=store, emit=lambda _: None, stopping=never)


def real_case(target: str, obligation: str = "DUR-3", anomaly: str = "amnesia") -> Case:
    scenario = catalogue.by_name("chain/kill@bill#1.replied")
    assert scenario is not None
    expect = {"obligation": obligation, "anomaly": anomaly}
    return Case("process", {"target": target}, scenario_to_json(scenario), expect=expect)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "answer"),
    [
        (real_case("naive"), ("reproduced", 3)),
        (real_case("naive", "DUR-9", "torn view"), ("different", 0)),
        (real_case("reference"), ("fixed", 0)),
    ],
    ids=["reproduced", "different", "fixed"],
)
def test_a_case_of_real_processes_is_repeated(store: Store, case: Case, answer: tuple[str, int]) -> None:
    """Three times; it says how often the obligation was violated by that anomaly, and what else was seen."""
    replayed = campaign.replay(case, store=store, emit=lambda _: None, stopping=never)
    assert (replayed.answer, replayed.times, replayed.of) == (*answer, 3)
    assert ("DUR-3 amnesia" in replayed.got) == (case.target["target"] == "naive")
    assert list(store.cases.glob("*.json")) == []


def test_a_drawn_scenario_is_replayed_by_its_name(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The full tier draws it the same way; on real processes no simulated fault is in it."""
    asked: list[Scenario] = []

    def run_all(_target: object, _python: str, scenarios: list[tuple[int | None, Scenario]], *_: object) -> None:
        asked.extend(scenario for _, scenario in scenarios)

    monkeypatch.setattr(real, "run_all", run_all)
    campaign.replay_scenario(
        "naive",
        config=None,
        mutant=None,
        scenario="seed/3",
        store=store,
        emit=lambda _: None,
        stopping=never,
    )
    assert asked == [real.drawn(parse("naive"), 3)] * 3


@pytest.mark.parametrize(
    ("scenario", "mutant", "code"),
    [("chain/kil@buy#1.applied", None, "scenario-unknown"), ("chain/undisturbed", "no-key", "mutant-target")],
)
def test_a_scenario_that_is_not_to_be_had_is_told(store: Store, scenario: str, mutant: str | None, code: str) -> None:
    """Before anything is installed or run."""
    with pytest.raises(SimkitError) as caught:
        campaign.replay_scenario(
            "naive",
            config=None,
            mutant=mutant,
            scenario=scenario,
            store=store,
            emit=lambda _: None,
            stopping=never,
        )
    assert caught.value.problem.code == code


def test_a_mutant_is_shown_by_the_line_that_explains_it(store: Store) -> None:
    """`explain MUTANT` names its scenario; replayed in simulation it is blamed by its own obligation, with a case to keep."""
    (told,) = explain.explain("no-key")
    words = shlex.split(told.sections["try it"])
    assert words[:-1] == ["simkit", "replay", "-t", "reference", "--mutant", "no-key", "--scenario"]
    events: list[e.Event] = []
    answer = campaign.replay_scenario(
        "reference",
        config=None,
        mutant="no-key",
        scenario=words[-1],
        store=store,
        emit=events.append,
        stopping=never,
    )
    assert answer.answer == "reproduced"
    assert told.sections["must be caught by"] in answer.got
    found = [one for one in events if isinstance(one, e.ViolationFound)]
    assert {one.replay_seed for one in found} == {told.sections["try it"]}
    assert answer.case_id is not None
    assert store.load_case(answer.case_id).target["mutant"] == "no-key"


def test_a_mutant_in_a_scenario_that_does_not_show_it_is_clean(store: Store) -> None:
    """Nothing violated is an answer too."""
    answer = campaign.replay_scenario(
        "reference",
        config=None,
        mutant="no-key",
        scenario="chain/undisturbed",
        store=store,
        emit=lambda _: None,
        stopping=never,
    )
    assert (answer.answer, answer.times) == ("clean", 0)


@pytest.mark.parametrize(
    ("run", "told"),
    [
        ({"unfired": ("kill@bill#1.replied",)}, "kill@bill#1.replied never struck"),
        ({"unsettled": True}, "it never settled"),
        ({"findings": {"DUR-6": Finding(1, slow=True)}}, "it was kept only within four times the bound"),
        ({"problem": Problem("kill-missed", "it ended by itself", "worker")}, "it could not be judged"),
    ],
    ids=["unstruck", "unsettled", "slow", "unjudged"],
)
@pytest.mark.parametrize("whole", [0, 1])
def test_runs_that_say_nothing_call_no_case_fixed(
    store: Store, monkeypatch: pytest.MonkeyPatch, run: dict[str, Any], told: str, whole: int
) -> None:
    """A run that was not struck, did not settle or was not judged shows nothing: without another one, nothing is known."""
    case = real_case("naive")
    scenario = scenario_from_json(case.scenario)
    runs = [Judged(scenario.name, None, {}) for _ in range(whole)]
    runs += [Judged(**{"scenario": scenario.name, "seed": None, "findings": {}, **run}) for _ in range(3 - whole)]

    def run_all(_target: object, _python: str, _runs: object, take: Callable[[Judged], object], *_: object) -> None:
        for one in runs:
            take(one)

    monkeypatch.setattr(real, "run_all", run_all)
    answer = campaign.replay(case, store=store, emit=lambda _: None, stopping=never)
    if whole:
        assert (answer.answer, answer.times, answer.of, answer.reason) == ("fixed", 0, whole, "")
    else:
        assert (answer.answer, answer.times, answer.reason) == ("inconclusive", 0, told)
        assert ("why", told) in wording.replayed(answer)


def test_a_case_of_real_processes_is_fixed_though_what_nobody_claims_is_still_seen(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in simulation; and only what is claimed is in doubt then."""
    case = real_case("naive")
    seen = {"EFF-4": Finding(1, (Violation("duplicate effect", "So it was.", (1,)),)), "EFF-6": Finding(1, slow=True)}
    runs = [Judged(scenario_from_json(case.scenario).name, None, seen)] * 3

    def run_all(_target: object, _python: str, _runs: object, take: Callable[[Judged], object], *_: object) -> None:
        for one in runs:
            take(one)

    monkeypatch.setattr(real, "run_all", run_all)
    answer = campaign.replay(case, store=store, emit=lambda _: None, stopping=never)
    assert (answer.answer, answer.got, answer.beside) == ("fixed", "", "EFF-4 duplicate effect")
    assert (answer.times, answer.of) == (0, 3)


def test_only_what_is_claimed_is_in_doubt() -> None:
    """A scenario is replayed for what the target promises: that it was slow in something else says nothing against it."""
    judged = Judged("chain/undisturbed", None, {"DUR-6": Finding(1, slow=True), "EFF-1": Finding(1)})
    assert doubt(judged)
    assert doubt(judged, {"DUR-6"})
    assert not doubt(judged, {"EFF-1"})

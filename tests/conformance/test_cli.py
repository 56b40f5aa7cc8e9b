"""The command line: what each command asks the engine, exit codes, lists and explanations, and what stays unloaded."""

from __future__ import annotations

import importlib
import json
import os
import re
import shlex
import subprocess
import sys
import types
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import attrs
import jsonschema
import pytest

from conformance import cli
from conformance import events as e
from conformance.cli import listing, relations, usage
from conformance.order import Bounds, Order
from conformance.store import Store
from scenarios.catalogue import STORIES
from scenarios.faults import FAULTS
from scenarios.obligations import OBLIGATIONS
from scenarios.obligations.catalogue import CATALOGUE
from simkit.case import Case
from simkit.errors import ExitCode, Problem
from tests.report_samples import FakeEngine, certified, kept_events, ran, saved_case, violation

pytestmark = pytest.mark.usefixtures("own_folder")
HEAVY = ("trio", "hypothesis", "networkx")

# ---- what the engine is asked, and what comes of it


def test_run_hands_over_everything_typed(engine: Callable[..., FakeEngine]) -> None:
    """Each option of `run` reaches the engine under its name."""
    fake = engine(ran())
    words = "run -t reference --mutant timer-in-memory --seeds 5,1-3 --boundaries --kernel fallback --jobs 2 --no-swarm"
    words += " --sweep --sweep-budget 7 --shrink-runs 9 --shrink-seconds 1.5"
    assert cli.main(words.split()) == 0
    ((name, asked),) = fake.calls
    order = Order("reference", None, "timer-in-memory", "fallback", boundaries=True, swarm=False, sweep=7)
    assert name == "run"
    assert asked["args"] == (order, [1, 2, 3, 5])
    assert (asked["shrink"], asked["jobs"]) == (Bounds(9, 1.5), 2)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("--shrink-runs=-1", "shrink-range"),
        ("--shrink-seconds nan", "shrink-range"),
        ("--sweep --sweep-budget=-1", "sweep-range"),
        ("--swarms", "usage"),
    ],
)
def test_bounds_out_of_range_are_told(engine: Callable[..., FakeEngine], words: str, code: str, capsys: Any) -> None:
    """Before anything runs."""
    fake = engine(ran())
    assert cli.main(["run", "-t", "reference", *words.split()]) == 2
    assert f"error[{code}]" in capsys.readouterr().err
    assert fake.calls == []


def test_run_ends_with_counts_rate_and_exit_code(engine: Callable[..., FakeEngine], capsys: Any) -> None:
    """The last line of the JSON stream has runs, seeds per second and the exit code."""
    engine(ran())
    assert cli.main(["run", "-t", "reference", "--format", "json"]) == 0
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (last["event"], last["exit_code"]) == ("CampaignEnded", 0)
    assert last["counts"] == {"runs": 1, "runs_pass": 1, "seeds": 1, "violations": 0, "observations": 0}
    assert last["seeds_per_second"] > 0


def test_a_violation_is_exit_1_named_and_kept(engine: Callable[..., FakeEngine], capsys: Any) -> None:
    """The obligation is named in the exit reason, and the journal has the violation."""
    engine(ran(ExitCode.VIOLATION, violation()))
    assert cli.main(["run", "-t", "reference"]) == 1
    assert capsys.readouterr().out.endswith("exit 1: violated: DUR-3 recomputed\n")
    assert violation() in kept_events()


@pytest.mark.parametrize("words", ["certify toy", "certify -t toy", "certify toy -t toy"])
def test_certify_takes_its_target_either_way(engine: Callable[..., FakeEngine], words: str) -> None:
    """The target is an argument or an option, and the tier is smoke when none is named."""
    fake = engine(certified)
    assert cli.main(words.split()) == 0
    assert fake.calls[0][1]["args"] == ("toy",)
    assert fake.calls[0][1]["tier"] == "smoke"


def test_certify_writes_the_certificate_and_says_where(engine: Callable[..., FakeEngine], capsys: Any) -> None:
    """The certificate is in the store, its path and the granted profile on the screen."""
    engine(certified)
    assert cli.main(["certify", "toy"]) == 0
    (path,) = Path(".simkit/certificates").iterdir()
    out = capsys.readouterr().out
    assert f"certificate  {path}\n" in out
    assert "granted      Durable" in out
    assert "exit 0: all 9 claimed obligations judged, 9 held" in out


def test_certify_out_is_taken_as_it_is(engine: Callable[..., FakeEngine], tmp_path: Path) -> None:
    """`--out FILE` is where the certificate goes."""
    engine(certified)
    assert cli.main(["certify", "toy", "--out", "c/mine.json", "--store", "kept"]) == 0
    assert (tmp_path / "c" / "mine.json").is_file()
    assert (tmp_path / "kept" / "runs").is_dir()
    assert not (tmp_path / ".simkit").exists()


def test_certify_by_a_draft_names_it_to_the_engine(engine: Callable[..., FakeEngine], capsys: Any) -> None:
    """A set that there is not is told before anything runs."""
    fake = engine(certified)
    assert cli.main(["certify", "toy", "--requirements", "2026.3"]) == 0
    assert fake.calls[0][1]["requirements"] == "2026.3"
    assert cli.main(["certify", "toy", "--requirements", "2026.4"]) == 2
    assert len(fake.calls) == 1
    err = capsys.readouterr().err
    assert "error[requirements-unknown]" in err
    assert "2026.1, 2026.2, 2026.3 (a draft)" in err


def test_mutants_hands_over_what_was_chosen(engine: Callable[..., FakeEngine], capsys: Any) -> None:
    """Several words may follow one --only; the matrix is on the screen, and survivors are exit 1."""

    def script(emit: e.Emit, _stopping: Callable[[], bool]) -> e.Summary:
        emit(e.CampaignBegan("reference", "mutants", "simulated", options={"mutants": 2}))
        emit(e.MutantJudged("no-key", "EFF-1", "caught", "tour/kill@end", 0, 1, 0.25))
        emit(e.MutantJudged("new-key", "EFF-2", "survived", runs=510, seconds=9.5))
        return e.Summary(ExitCode.VIOLATION, "1 of 2 mutants caught")

    fake = engine(script)
    words = "mutants -t reference --only EFF-1 new-key --only SCH --seeds 50 --jobs 2"
    assert cli.main(words.split()) == 1
    ((name, asked),) = fake.calls
    assert (name, asked["args"], asked["only"]) == ("mutants", ("reference",), ("EFF-1", "new-key", "SCH"))
    assert (asked["seeds"], asked["jobs"], asked["config"]) == (50, 2, None)
    out = capsys.readouterr().out
    assert "no-key                            EFF-1   caught             tour/kill@end, seed 0; 1 run, 0.2 s\n" in out
    assert "511 runs in" in out
    assert out.endswith("exit 1: 1 of 2 mutants caught\n")
    last = kept_events()[-1]
    assert isinstance(last, e.CampaignEnded)
    assert (last.counts["mutants"], last.counts["mutants_caught"]) == (2, 1)


def test_a_number_of_seeds_that_is_none_is_told(engine: Callable[..., FakeEngine], capsys: Any) -> None:
    """Before anything runs."""
    fake = engine(ran())
    assert cli.main(["mutants", "-t", "reference", "--seeds=-1"]) == 2
    assert "error[mutant-seeds-range]" in capsys.readouterr().err
    assert fake.calls == []


@pytest.mark.parametrize(
    ("answer", "code"), [("reproduced", 1), ("different", 1), ("fixed", 0), ("diverged", 6), ("inconclusive", 3)]
)
def test_each_answer_of_a_replay_has_its_code(
    engine: Callable[..., FakeEngine], monkeypatch: pytest.MonkeyPatch, capsys: Any, answer: Any, code: int
) -> None:
    """Reproduced and different are violations, fixed passes, diverged has its own code, what says nothing is inconclusive."""
    monkeypatch.setattr(Store, "load_case", lambda _self, wanted: {"id": wanted})
    fake = engine(lambda _emit, _stopping: e.Replayed(answer, "seed/7", "0123"))
    assert cli.main(["replay", "0123"]) == code
    assert fake.calls[0][0] == "replay"
    assert answer in capsys.readouterr().out


def test_replay_of_a_scenario_names_target_and_scenario(engine: Callable[..., FakeEngine]) -> None:
    """A process-world run is replayed by its scenario, as its replay line says."""
    fake = engine(lambda _emit, _stopping: e.Replayed("reproduced", "chain/kill@b#1.applied"))
    assert cli.main(["replay", "-t", "naive", "--scenario", "chain/kill@b#1.applied"]) == 1
    ((name, asked),) = fake.calls
    assert (name, asked["args"], asked["scenario"]) == ("replay_scenario", ("naive",), "chain/kill@b#1.applied")


def test_doctor_fails_with_the_worst_of_its_checks(engine: Callable[..., FakeEngine], capsys: Any) -> None:
    """A check that fails decides by its own exit code."""
    bad = e.Checked("two hash seeds", ok=False, exit_code=ExitCode.DIVERGED)
    engine(lambda _emit, _stopping: e.DoctorResult((e.Checked("kernel", ok=True), bad)))
    assert cli.main(["doctor", "-t", "reference"]) == 6
    assert "exit 6: not well: two hash seeds" in capsys.readouterr().out


def test_doctor_looks_at_the_configuration_that_is_named(engine: Callable[..., FakeEngine], capsys: Any) -> None:
    """An adapter of one's own has its configurations by --config only; one of no target is refused."""
    fake = engine(lambda _emit, _stopping: e.DoctorResult((e.Checked("kernel", ok=True),)))
    assert cli.main(["doctor", "-t", "my/adapter.toml", "--config", "exit"]) == 0
    ((name, asked),) = fake.calls
    assert (name, asked["args"], asked["config"]) == ("doctor", ("my/adapter.toml",), "exit")
    assert cli.main(["doctor", "--config", "exit"]) == 2
    assert "no target was named" in capsys.readouterr().err


# ---- lists and explanations


@pytest.mark.parametrize(
    "words", ["DUR-1", "dur-1", "JRN-5", "Durable", "F02", "f02", "ack-before-commit", "disk-full", "130"]
)
def test_explain_tells_in_words(registries: None, words: str, capsys: Any, snapshot: Any) -> None:
    """An obligation with and without a judge, a profile, a fault, a mutant, an error and an exit code each have their page."""
    assert cli.main(["explain", words]) == 0
    assert capsys.readouterr().out == snapshot


@pytest.mark.parametrize(
    ("wanted", "near"), [("DUR-11", "DUR-1"), ("disk-ful", "disk-full"), ("ack-befor", "ack-before-commit")]
)
def test_explain_names_the_nearest(registries: None, wanted: str, near: str, capsys: Any) -> None:
    """A slip of the keyboard gets the id that was meant."""
    assert cli.main(["explain", wanted]) == 2
    assert f"did you mean {near}" in capsys.readouterr().err


def test_explain_alone_lists_what_can_be_explained(registries: None, capsys: Any) -> None:
    """Obligations, error codes and exit codes are all there."""
    assert cli.main(["explain"]) == 0
    out = capsys.readouterr().out
    assert all(heading in out for heading in ("obligations\n", "error codes\n", "exit codes\n"))


@pytest.mark.parametrize("words", ["--obligations --mutants", "obligations mutants", "mutants --obligations"])
def test_list_takes_the_kinds_asked_for(registries: None, words: str, capsys: Any) -> None:
    """Kinds named, as words or as options, are listed and no other."""
    assert cli.main(["list", *words.split()]) == 0
    out = capsys.readouterr().out
    assert "DUR-1   MUST    safety    Durable    3         1        An acknowledged task" in out
    assert "ack-before-commit  Answers before the commit. · must break DUR-1" in out
    assert "scenarios" not in out


def test_list_obligations_hides_no_promise(capsys: Any) -> None:
    """Every id of the whole catalogue is a line in the shipped schema: with its judge and all that proves it, or with none."""
    assert cli.main(["list", "--obligations", "--format", "json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    schema = json.loads((resources.files("conformance") / "schemas" / "event.schema.json").read_text())
    validator = jsonschema.Draft202012Validator(schema)
    for line in lines:
        validator.validate(line)
        assert line["event"] == "ObligationListed"
        judged = OBLIGATIONS.get(line["id"])
        assert (line["judge"], line["minimum"]) == (None, None) if judged is None else line["judge"] is not None
        if judged is not None:
            module, _, function = line["judge"].partition(":")
            assert getattr(importlib.import_module(module), function) is judged.judge
            assert line["mutants"]
            assert set(line["scenarios"]) <= set(STORIES)
            assert line["scenarios"]
    assert [line["id"] for line in lines] == list(CATALOGUE)


def test_an_obligation_that_names_its_stories_is_exercised_by_them(
    registries: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it is those that its mutants are shown by."""
    assert relations.stories_of("DUR-1") == ("tour",)
    named = attrs.evolve(listing.registry()["DUR-1"], scenarios=("chain", "twice"))
    monkeypatch.setattr(listing, "registry", lambda: {"DUR-1": named})
    assert relations.stories_of("DUR-1") == ("chain", "twice")
    assert relations.stories_of("JRN-5") == ()


@pytest.mark.parametrize("word", [*CATALOGUE, *FAULTS])
def test_every_id_and_every_fault_is_explained(word: str, capsys: Any) -> None:
    """Whether it has a judge or not."""
    assert cli.main(["explain", word]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{word} · ")
    assert ("no judge yet" in out) == (word in CATALOGUE and word not in OBLIGATIONS) or word in FAULTS


def test_list_alone_shows_the_groups_and_their_sizes(registries: None, capsys: Any) -> None:
    """Hundreds of lines come only to who asks for them."""
    assert cli.main(["list"]) == 0
    out = capsys.readouterr().out
    assert "  obligations  2: the promises" in out
    assert "  adapters  2: " in out
    assert len(out.splitlines()) == 5


def test_list_names_the_nearest_group(registries: None, capsys: Any) -> None:
    """A group that there is not is wrong usage, with the one that was meant."""
    assert cli.main(["list", "mutant"]) == 2
    assert "did you mean mutants?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "first", "others"),
    [
        ("scenarios tour", "tour/*", "chain/"),
        ("scenarios tour/kill*", "tour/kill@", "tour/undisturbed"),
        ("mutants EFF-1", "no-key", "must break DUR-1"),
        ("obligations dur", "DUR-1", "EFF-1 "),
        ("obligations DUR", "DUR-1", "JRN-"),
        ("obligations own-1", "OWN-1 ", "OWN-10"),
        ("obligations durable", "JRN-1", "EFF-1 "),
        ("mutants DUR-1", "must break DUR-1", "must break DUR-10"),
        ("scenarios tour/*", "tour/undisturbed", "chain/"),
    ],
)
def test_list_takes_parts_of_names(words: str, first: str, others: str, capsys: Any) -> None:
    """Or globs; of what it belongs to as well. What is called just so, or belongs to it, is all there is then."""
    assert cli.main(["list", *words.split(), "--format", "plain"]) == 0
    out = capsys.readouterr().out
    assert first in out
    assert others not in out


def test_list_says_when_nothing_is_called_so(capsys: Any) -> None:
    """A group that was mistyped behind another is named."""
    assert cli.main(["list", "scenarios", "mutant"]) == 2
    err = capsys.readouterr().err
    assert "nothing among scenarios matches 'mutant'" in err
    assert "did you mean mutants?" in err
    assert cli.main(["list", "scenarios", "zzz"]) == 2
    assert "error[list-unknown]: nothing among scenarios matches 'zzz'" in capsys.readouterr().err


def test_list_takes_one_word_in_several_groups(capsys: Any) -> None:
    """It is an id in one of them, and what something belongs to in the other."""
    assert cli.main(["list", "obligations", "mutants", "DUR-1", "--format", "json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["id"] for line in lines if line["event"] == "ObligationListed"] == ["DUR-1"]
    assert {line["fields"]["must break"] for line in lines if line["event"] == "Listed"} == {"DUR-1"}


def test_list_scenarios_has_stories_and_names(capsys: Any) -> None:
    """A scenario's name, as replay lines quote it, is found in the list."""
    assert cli.main(["list", "--scenarios", "--format", "json"]) == 0
    ids = [json.loads(line)["id"] for line in capsys.readouterr().out.splitlines()]
    assert {"chain/*", "chain/undisturbed"} <= set(ids)


def test_a_saved_case_is_listed_and_handed_to_the_engine(engine: Callable[..., FakeEngine], capsys: Any) -> None:
    """The case that `replay` hands over is the one saved, found by the beginning of its id."""
    path = saved_case()
    assert cli.main(["cases"]) == 0
    assert f"  {path.stem}  SCH-1 out of order · target reference timer-in-memory" in capsys.readouterr().out
    fake = engine(lambda _emit, _stopping: e.Replayed("fixed", "seed/7", path.stem))
    assert cli.main(["replay", path.stem[:6]]) == 0
    assert fake.calls[0][1]["args"] == (Case.load(path),)


def test_cases_lists_every_finding_newest_last(capsys: Any) -> None:
    """A case is known by all that was found in its run, and the one found last is last."""
    ids = []
    for age, seed in enumerate((3, 2, 1)):
        every = ["DUR-1 amnesia", "EFF-11 lost effect"]
        expect = {"obligation": "DUR-1", "anomaly": "amnesia", "all": every}
        path = Case("simulated", {"target": "reference"}, {"name": f"seed/{seed}"}, seed, expect=expect).save(
            Path(".simkit/cases")
        )
        os.utime(path, (age, age))
        ids.append(path.stem)
    assert cli.main(["cases"]) == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    assert [line.split()[0] for line in lines] == ids
    assert all("DUR-1 amnesia, EFF-11 lost effect · " in line for line in lines)


def test_no_cases_are_told(capsys: Any) -> None:
    """An empty store says so, and where it looked."""
    assert cli.main(["cases"]) == 0
    assert capsys.readouterr().out == "no cases are saved in .simkit/cases\n"


def test_cases_lists_the_readable_and_tells_the_rest(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """A spoilt case does not hide the others, and it is exit 2 in the end."""
    case = types.SimpleNamespace(
        expect={"obligation": "DUR-3", "anomaly": "recomputed"},
        target={"target": "reference", "mutant": "timer-in-memory"},
        world="simulated",
        seed=7,
        options={},
        scenario={"name": "seed/7"},
    )
    told = [(Path("a.json"), Problem("case-truncated", "breaks off", "a.json")), (Path("0123.json"), case)]
    monkeypatch.setattr(Store, "list_cases", lambda _self: iter(told))
    assert cli.main(["cases"]) == 2
    out, err = capsys.readouterr()
    line = "  0123  DUR-3 recomputed · target reference timer-in-memory · world simulated · seed 7 · scenario seed/7\n"
    assert out == "cases\n" + line
    assert "error[case-truncated]" in err


# ---- the program itself


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["run", "--help"],
        ["explain"],
        ["explain", "DUR-1"],
        ["explain", "F17"],
        ["explain", "disk-full"],
        ["list", "--obligations"],
    ],
)
def test_help_and_explain_load_nothing_heavy(words: list[str]) -> None:
    """Help is there at once: neither trio nor hypothesis nor networkx is imported for it."""
    program = (
        "import sys; from conformance.cli import main; main(sys.argv[1:]);"
        f"print('LOADED', [name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.endswith("LOADED []\n")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pretty", "plain", "json"])
def test_a_reader_that_goes_away_is_no_error(kind: str) -> None:
    """`simkit list | head -1` ends quietly in every format."""
    program = "from conformance.cli import main; import sys; sys.exit(main(sys.argv[1:]))"
    line = f'{shlex.quote(sys.executable)} -c "{program}" list --scenarios --format {kind} | head -1'
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr, done.stdout.count("\n")) == (0, "", 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7", [7]),
        ("0-3", [0, 1, 2, 3]),
        ("1,5,9", [1, 5, 9]),
        ("4-5, 1,5", [1, 4, 5]),
        ("18446744073709551615", [2**64 - 1]),
    ],
)
def test_seeds_are_read(text: str, expected: list[int]) -> None:
    """A seed, a range, a list and mixtures give ascending seeds, none twice."""
    assert list(usage.seeds(text)) == expected


def test_every_code_that_is_raised_is_explained() -> None:
    """`simkit explain CODE` knows each code of this package, and lists them so that one finds them."""
    from conformance.cli.codes import CODES, EXITS

    texts = [path.read_text() for path in Path(cli.__file__).parent.parent.rglob("*.py")]
    raised = {code for text in texts for code in re.findall(r'Problem\(\s*(?:code=)?"([a-z-]+)"', text)}
    assert {"bug", "jump-missed", "machine-short"} <= raised  # or it looks for them in the wrong way
    assert raised <= set(CODES)
    assert list(CODES) == sorted(CODES)
    assert set(EXITS) == set(ExitCode)

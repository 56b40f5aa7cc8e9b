"""The command line: what each command asks the engine, exit codes, bad input, interruption, and what is kept."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance import cli, store
from conformance import events as e
from conformance.cli import engine as door
from conformance.cli import listing, usage
from conformance.mutants import Mutant
from conformance.store import Store, read_journal
from scenarios.obligations import Obligation
from scenarios.verdict import Finding
from simkit.case import Case
from simkit.errors import ExitCode, Problem, SimkitError
from tests.report_samples import PROBLEM, FakeEngine, certificate, verdicts, violation

OWN = ("certificate.py", "files.py", "store.py")
HEAVY = ("trio", "hypothesis", "networkx")


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR", "CI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "100")


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Callable[..., FakeEngine]:
    """Put an engine that follows a script behind the door."""

    def put(script: Callable[..., Any]) -> FakeEngine:
        fake = FakeEngine(script)
        monkeypatch.setattr(door, "load", lambda: fake)
        return fake

    return put


def ran(code: ExitCode = ExitCode.PASSED, *said: e.Event) -> Callable[..., Any]:
    """The script of a `run` that says these events."""

    def script(emit: e.Emit, _stopping: Callable[[], bool]) -> e.Summary:
        emit(e.CampaignBegan("reference", "run", "simulated", total=2))
        for event in (e.RunFinished("seed/0", "pass", 0), *said):
            emit(event)
        return e.Summary(code)

    return script


def journal() -> list[e.Event]:
    """What the one journal of this folder kept."""
    (path,) = Path(".simkit/runs").iterdir()
    return read_journal(path)


@pytest.fixture
def registries(monkeypatch: pytest.MonkeyPatch) -> None:
    """An obligation, a mutant and two adapters, whatever the kit ships."""

    def acknowledged_task_survives(_history: object) -> Finding:
        return Finding()

    obligation = Obligation(
        id="DUR-1",
        level="MUST",
        kind="safety",
        profile="Durable",
        promise="An acknowledged task is still there after any crash.",
        tested_by="a kill right after the acknowledgement",
        anomalies=("amnesia",),
        minimum=3,
        causes=("acknowledges before it writes", "keeps tasks in memory"),
        learnt_from=("F-12",),
        judge=acknowledged_task_survives,
    )
    mutant = Mutant("ack-before-commit", "DUR-1", "Answers before the commit.", lambda _patch: None)
    monkeypatch.setattr(listing, "registry", lambda: {"DUR-1": obligation})
    monkeypatch.setattr(usage, "adapters", lambda: {"naive": usage.Adapter("naive"), "toy": usage.Adapter("toy")})
    monkeypatch.setattr(listing, "mutant_registry", lambda: {"ack-before-commit": mutant})


# ---- what the engine is asked, and what comes of it


def test_run_hands_over_everything_typed(engine: Callable[..., FakeEngine]) -> None:
    """Each option of `run` reaches the engine under its name."""
    fake = engine(ran())
    words = "run -t reference --mutant timer-in-memory --seeds 5,1-3 --boundaries --kernel fallback --jobs 2"
    assert cli.main(words.split()) == 0
    ((name, asked),) = fake.calls
    expected = {"mutant": "timer-in-memory", "seeds": [1, 2, 3, 5], "boundaries": True, "kernel": "fallback", "jobs": 2}
    assert name == "run"
    assert asked["args"] == ("reference",)
    assert {key: asked[key] for key in expected} == expected


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
    assert violation() in journal()


def certified(emit: e.Emit, _stopping: Callable[[], bool]) -> Any:
    """The script of a `certify`."""
    emit(e.CampaignBegan("toy", "certify", "process", "smoke"))
    for event in verdicts()[:1]:
        emit(event)
    return certificate()


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
    assert "exit 0: all 1 claimed obligations judged, 1 held" in out


def test_certify_out_is_taken_as_it_is(engine: Callable[..., FakeEngine], tmp_path: Path) -> None:
    """`--out FILE` is where the certificate goes."""
    engine(certified)
    assert cli.main(["certify", "toy", "--out", "c/mine.json", "--store", "kept"]) == 0
    assert (tmp_path / "c" / "mine.json").is_file()
    assert (tmp_path / "kept" / "runs").is_dir()
    assert not (tmp_path / ".simkit").exists()


@pytest.mark.parametrize(("answer", "code"), [("reproduced", 1), ("different", 1), ("fixed", 0), ("diverged", 6)])
def test_each_answer_of_a_replay_has_its_code(
    engine: Callable[..., FakeEngine], monkeypatch: pytest.MonkeyPatch, capsys: Any, answer: Any, code: int
) -> None:
    """Reproduced and different are violations, fixed passes, diverged is its own code."""
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


# ---- bad input


@pytest.mark.parametrize(
    "words",
    [
        "run",
        "certify",
        "certify naive -t dbos",
        "run -t reference --seeds 9-1",
        "run -t reference --seeds x",
        "run -t reference --seeds 0-99999999999",
        "run -t reference --seeds 99999999999999999999",
        "run -t reference --jobs 0",
        "run -t reference --jobs many",
        "run -t reference --kernal fast",
        "run -t reference --kernel quick",
        "certify naive --tier smok",
        "certfy naive",
        "certify naive extra",
        "replay",
        "replay abc --scenario x",
        "replay --scenario x",
        "replay abc",
        "replay ./nowhere.json",
        "explain DRU-3",
        "list --mutant",
        "cases --format xml",
    ],
)
def test_usage_errors_say_what_to_type(
    registries: None, words: str, capsys: Any, snapshot: Any, tmp_path: Path
) -> None:
    """Each is exit 2 with what, where and a hint, on standard error, and leaves nothing behind."""
    assert cli.main(words.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.replace(str(tmp_path), "<tmp>") == snapshot
    assert not list(tmp_path.iterdir())


def test_a_usage_error_is_an_event_in_json(capsys: Any) -> None:
    """Programs that read the stream learn of a usage error there."""
    for words in ("run --format json", "run --form --format json"):
        assert cli.main(words.split()) == 2
        assert json.loads(capsys.readouterr().out)["event"] == "Trouble"


def test_trouble_with_the_target_has_its_code(engine: Callable[..., FakeEngine], capsys: Any) -> None:
    """An adapter that does not answer is exit 4 with the hint, and what was judged before stays."""

    def script(emit: e.Emit, _stopping: Callable[[], bool]) -> None:
        emit(e.CampaignBegan("toy", "certify", "process"))
        emit(e.RunFinished("chain/undisturbed", "pass"))
        raise SimkitError(PROBLEM)

    engine(script)
    assert cli.main(["certify", "toy"]) == 4
    out, err = capsys.readouterr()
    assert str(PROBLEM) in err
    assert out.endswith("exit 4: adapter-silent\n")
    assert e.RunFinished("chain/undisturbed", "pass") in journal()


def test_a_violation_before_the_trouble_still_counts(engine: Callable[..., FakeEngine], capsys: Any) -> None:
    """A violation found before the adapter broke is not hidden by it."""

    def script(emit: e.Emit, _stopping: Callable[[], bool]) -> None:
        emit(e.CampaignBegan("toy", "certify", "process"))
        emit(violation())
        raise ExceptionGroup("nursery", [ExceptionGroup("inner", [SimkitError(PROBLEM)])])

    engine(script)
    assert cli.main(["certify", "toy"]) == 1
    assert "exit 1: adapter-silent; violated: DUR-3 recomputed" in capsys.readouterr().out


def test_a_bug_is_exit_70_with_its_traceback_in_a_file(engine: Callable[..., FakeEngine], capsys: Any) -> None:
    """An exception nobody foresaw is told as a bug of the kit and never as one of the target."""

    def script(_emit: e.Emit, _stopping: Callable[[], bool]) -> None:
        raise ZeroDivisionError("oops")

    engine(script)
    assert cli.main(["run", "-t", "reference"]) == 70
    err = capsys.readouterr().err
    assert "error[bug]: a bug in simkit: ZeroDivisionError: oops" in err
    assert "Traceback" not in err
    (path,) = Path(".simkit/bugs").iterdir()
    assert "ZeroDivisionError: oops" in path.read_text()
    assert str(path.resolve()) in err


def test_a_bug_without_a_store_shows_its_traceback(engine: Callable[..., FakeEngine], capsys: Any) -> None:
    """When no file is to be had the traceback is on the screen."""

    def script(_emit: e.Emit, _stopping: Callable[[], bool]) -> None:
        raise ZeroDivisionError("oops")

    Path("taken").write_text("")
    engine(script)
    assert cli.main(["run", "-t", "reference", "--store", "taken"]) == 70
    assert "Traceback" in capsys.readouterr().err


# ---- disks and interruptions


def test_a_store_that_cannot_be_written_loses_nothing_judged(engine: Callable[..., FakeEngine], capsys: Any) -> None:
    """The problem is told before the first run, the results are printed, the exit code says that the store failed."""
    Path("taken").write_text("")
    engine(ran(ExitCode.PASSED))
    assert cli.main(["run", "-t", "reference", "--store", "taken"]) == 2
    out, err = capsys.readouterr()
    assert "error[path-in-the-way]" in err
    assert "1 run (1 pass)" in out


def test_a_disk_that_fills_up_loses_nothing_judged(
    engine: Callable[..., FakeEngine], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """A journal that finds no room is told once; later events are still shown, the campaign goes on."""

    def append(_self: store.Journal, event: e.Event) -> None:
        raise SimkitError(Problem("disk-full", "no space left", "journal"))

    monkeypatch.setattr(store.Journal, "append", append)
    engine(ran(ExitCode.VIOLATION, violation(), e.RunFinished("seed/1", "pass", 1)))
    assert cli.main(["run", "-t", "reference"]) == 2
    out, err = capsys.readouterr()
    assert err.count("error[disk-full]") == 1
    assert "FAIL DUR-3" in out
    assert "2 runs" in out


def test_a_certificate_that_cannot_be_written_is_shown_all_the_same(
    engine: Callable[..., FakeEngine], capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table and the profiles are printed, the file is told as not written."""

    def full(*_args: object, **_kwargs: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def script(emit: e.Emit, stopping: Callable[[], bool]) -> Any:
        made = certified(emit, stopping)
        monkeypatch.setattr(os, "fsync", full)
        return made

    engine(script)
    assert cli.main(["certify", "toy"]) == 2
    out, err = capsys.readouterr()
    assert "certificate  not written" in out
    assert "error[disk-full]" in err


def test_the_first_interrupt_finishes_the_running_seed(engine: Callable[..., FakeEngine], capfd: Any) -> None:
    """Ctrl-C asks; the engine finishes, saves and summarises; the exit code is 130."""

    def script(emit: e.Emit, stopping: Callable[[], bool]) -> e.Summary:
        emit(e.CampaignBegan("reference", "run", "simulated"))
        for seed in range(1000):
            if seed == 3:
                os.kill(os.getpid(), signal.SIGINT)
            emit(e.RunFinished(f"seed/{seed}", "pass", seed))
            if stopping():
                break
        return e.Summary(ExitCode.PASSED)

    engine(script)
    before = signal.getsignal(signal.SIGINT)
    assert cli.main(["run", "-t", "reference"]) == 130
    out, err = capfd.readouterr()
    assert "4 runs (4 pass)" in out
    assert out.endswith("exit 130: interrupted\n")
    assert "the running seed is finished and saved first" in err
    assert sum(isinstance(event, e.RunFinished) for event in journal()) == 4
    assert signal.getsignal(signal.SIGINT) == before


def test_the_second_interrupt_ends_at_once(engine: Callable[..., FakeEngine], capfd: Any) -> None:
    """A run that does not end can be left; what was judged is in the journal and summarised."""

    def script(emit: e.Emit, _stopping: Callable[[], bool]) -> None:
        emit(e.CampaignBegan("reference", "run", "simulated"))
        emit(violation())
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
        raise AssertionError("never reached")

    engine(script)
    assert cli.main(["run", "-t", "reference"]) == 130
    assert "exit 130: interrupted; violated: DUR-3 recomputed" in capfd.readouterr().out
    assert violation() in journal()


def test_an_interrupted_certificate_is_kept_and_never_passes(engine: Callable[..., FakeEngine]) -> None:
    """What was judged until Ctrl-C is a certificate that says it is not complete."""

    def script(emit: e.Emit, _stopping: Callable[[], bool]) -> Any:
        emit(e.CampaignBegan("toy", "certify", "process"))
        os.kill(os.getpid(), signal.SIGINT)
        return certificate(complete=False)

    engine(script)
    assert cli.main(["certify", "toy"]) == 130
    (path,) = Path(".simkit/certificates").iterdir()
    assert json.loads(path.read_text())["complete"] is False


# ---- lists and explanations


@pytest.mark.parametrize("words", ["DUR-1", "dur-1", "ack-before-commit", "disk-full", "130"])
def test_explain_tells_in_words(registries: None, words: str, capsys: Any, snapshot: Any) -> None:
    """An obligation, a mutant, an error code and an exit code each have their page."""
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


def test_list_takes_the_kinds_asked_for(registries: None, capsys: Any) -> None:
    """A kind named is listed alone."""
    assert cli.main(["list", "--obligations", "--mutants"]) == 0
    out = capsys.readouterr().out
    assert "DUR-1  An acknowledged task" in out
    assert "ack-before-commit  Answers before the commit. · must break DUR-1" in out
    assert "scenarios" not in out


def test_list_scenarios_has_stories_and_names(capsys: Any) -> None:
    """A scenario's name, as replay lines quote it, is found in the list."""
    assert cli.main(["list", "--scenarios", "--format", "json"]) == 0
    ids = [json.loads(line)["id"] for line in capsys.readouterr().out.splitlines()]
    assert {"chain/*", "chain/undisturbed"} <= set(ids)


def saved_case() -> Path:
    """A real case in the store of this folder."""
    case = Case(
        world="simulated",
        target={"target": "reference", "mutant": "timer-in-memory"},
        scenario={"name": "seed/7"},
        seed=7,
        expect={"obligation": "SCH-1", "anomaly": "out of order"},
    )
    return case.save(Path(".simkit/cases"))


def test_a_saved_case_is_listed_and_handed_to_the_engine(engine: Callable[..., FakeEngine], capsys: Any) -> None:
    """The case that `replay` hands over is the one saved, found by the beginning of its id."""
    path = saved_case()
    assert cli.main(["cases"]) == 0
    assert f"  {path.stem}  SCH-1 out of order · target reference timer-in-memory" in capsys.readouterr().out
    fake = engine(lambda _emit, _stopping: e.Replayed("fixed", "seed/7", path.stem))
    assert cli.main(["replay", path.stem[:6]]) == 0
    assert fake.calls[0][1]["args"] == (Case.load(path),)


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("", None, "case-malformed"),
        ('"simkit/case/1"', '"simkit/case/9"', "case-version"),
        ('"seed": 7', '"seed": "x"', "case-malformed"),
    ],
    ids=["truncated", "other-version", "wrong-type"],
)
def test_a_spoilt_case_is_exit_2_with_a_hint(old: str, new: str | None, code: str, capsys: Any) -> None:
    """A case cut short, of another version or with a wrong field is refused before anything runs."""
    path = saved_case()
    text = path.read_text()
    path.write_text(text[: len(text) // 2] if new is None else text.replace(old, new))
    assert cli.main(["replay", path.stem]) == 2
    err = capsys.readouterr().err
    assert f"error[{code}]" in err
    assert "hint:" in err


def test_cases_lists_the_readable_and_tells_the_rest(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """A spoilt case does not hide the others, and it is exit 2 in the end."""
    case = types.SimpleNamespace(
        expect={"obligation": "DUR-3", "anomaly": "recomputed"},
        target={"target": "reference", "mutant": "timer-in-memory"},
        world="simulated",
        seed=7,
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
    "words", [["--help"], ["run", "--help"], ["explain"], ["explain", "DUR-1"], ["explain", "disk-full"]]
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
    line = f'{sys.executable} -c "{program}" list --scenarios --format {kind} | head -1'
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


def test_every_code_raised_by_these_modules_is_explained() -> None:
    """`simkit explain CODE` knows each code the command line, the store and certificates can raise."""
    from conformance.cli.codes import CODES, EXITS

    root = Path(cli.__file__).parent.parent
    texts = [path.read_text() for path in (*map(root.joinpath, OWN), *root.glob("cli/*.py"))]
    raised = {code for text in texts for code in re.findall(r'Problem\(\s*"([a-z-]+)"', text)}
    assert raised <= set(CODES)
    assert set(EXITS) == set(ExitCode)

"""The command line in trouble: bad input, targets that fail, bugs, full disks and Ctrl-C; what was judged is never lost."""

from __future__ import annotations

import errno
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance import cli, store
from conformance import events as e
from simkit.errors import ExitCode, Problem, SimkitError
from tests.report_samples import PROBLEM, FakeEngine, certificate, certified, kept_events, ran, saved_case, violation

pytestmark = pytest.mark.usefixtures("own_folder")


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


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("run --scenario tour", "there is `simkit replay --scenario`"),
        ("certify naive --mutant no-key", "there is `simkit run --mutant`, `simkit replay --mutant`"),
        ("replay abc --until soon", "expected: --until and a whole number"),
        ("run -t reference --shrink-seconds long", "expected: --shrink-seconds and a number"),
        ("explain F99", "reported faults are F01 to F"),
        ("explain f099", "reported faults are F01 to F"),
    ],
)
def test_what_is_mistyped_is_told_with_what_there_is(words: str, told: str, capsys: Any) -> None:
    """Which command has the option, what a value should be, and between which numbers."""
    assert cli.main(words.split()) == 2
    assert told in capsys.readouterr().err


def test_no_number_of_a_fault_is_near_another(capsys: Any) -> None:
    """Two that look alike have nothing to do with each other."""
    cli.main(["explain", "F99"])
    assert "did you mean" not in capsys.readouterr().err


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
    assert e.RunFinished("chain/undisturbed", "pass") in kept_events()


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
    """A journal that finds no room is told once; later events are still shown, and what was found decides the exit code."""

    def append(_self: store.Journal, event: e.Event) -> None:
        raise SimkitError(Problem("disk-full", "no space left", "journal"))

    monkeypatch.setattr(store.Journal, "append", append)
    engine(ran(ExitCode.VIOLATION, violation(), e.RunFinished("seed/1", "pass", 1)))
    assert cli.main(["run", "-t", "reference"]) == 1
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
    assert sum(isinstance(event, e.RunFinished) for event in kept_events()) == 4
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
    assert violation() in kept_events()


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


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("", None, "case-malformed"),
        ('"simkit/case/2"', '"simkit/case/9"', "case-version"),
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

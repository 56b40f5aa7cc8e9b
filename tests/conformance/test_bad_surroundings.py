"""Full disks, closed streams, strange folders, spoilt cases and certificates: what was judged is told, kept, and decides."""

from __future__ import annotations

import contextlib
import json
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from conformance import certificate_file
from simkit.errors import ExitCode, SimkitError, worst
from tests.bad_input_rig import DEADLINE_S, LIAR, MARKS, Bench, command_line, surroundings
from tests.report_samples import certificate

pytestmark = MARKS


# ---- the store, the output, the surroundings


def test_a_full_disk_hides_no_violation(bench: Bench, tmp_path: Path) -> None:
    """No room for journal, case or certificate: told once, the failure is shown whole, exit 1."""
    ran = bench.simkit("run", "-t", bench.adapter(LIAR), "--seeds", "0-1", shell="ulimit -f 4")
    assert ran.code == 1
    ran.tells("disk-full", "--store")
    assert "FAIL EFF-11" in ran.out
    assert "status: done" in ran.out
    assert "2 runs (2 fail)" in ran.out
    assert not list(tmp_path.glob(".simkit/*/*.tmp"))
    assert not list(tmp_path.glob(".simkit/*/*.draft"))


@pytest.mark.parametrize("store", ["taken", "/proc/nowhere"])
def test_an_unwritable_store_loses_nothing_judged(bench: Bench, tmp_path: Path, store: str) -> None:
    """The problem is told and counts for less than what was found."""
    (tmp_path / "taken").write_text("")
    ran = bench.simkit("run", "-t", bench.adapter(LIAR), "--seeds", 0, "--store", store)
    assert ran.code == 1
    assert ran.err.count("error[") == 1
    assert "choose another place with --store DIR" in ran.err
    assert "FAIL EFF-11" in ran.out


def test_only_a_pass_is_turned_into_usage() -> None:
    """A store that failed makes a pass unusable; every other outcome outranks it."""
    assert worst([ExitCode.USAGE, ExitCode.PASSED]) is ExitCode.USAGE
    for found in (ExitCode.VIOLATION, ExitCode.TARGET, ExitCode.INCONCLUSIVE, ExitCode.DIVERGED, ExitCode.INTERRUPTED):
        assert worst([ExitCode.USAGE, found]) is found


def test_two_at_once_share_a_store(bench: Bench, tmp_path: Path) -> None:
    """Two campaigns that save the same cases into one store do not disturb one another."""
    words = command_line(("run", "-t", bench.adapter(LIAR), "--seeds", "0-3"))
    with contextlib.ExitStack() as stack:
        both = [
            stack.enter_context(
                subprocess.Popen(
                    words,
                    cwd=tmp_path,
                    env=surroundings(tmp_path, {}),
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )
            for _ in range(2)
        ]
        errors = [one.communicate(timeout=DEADLINE_S)[1] for one in both]
    assert [one.returncode for one in both] == [1, 1]
    assert "error[" not in "".join(errors)
    assert len(list(tmp_path.glob(".simkit/runs/*.jsonl"))) == 2
    assert list(tmp_path.glob(".simkit/cases/*.json"))
    assert not list(tmp_path.glob(".simkit/cases/*.draft"))


@pytest.mark.parametrize("words", ["list", "run -t target --seeds 0 --format json"])
def test_a_full_standard_output_is_no_bug(bench: Bench, words: str) -> None:
    """Output that goes to a full disk is told on standard error."""
    bench.adapter(LIAR)
    ran = bench.simkit(*words.split(), shell="exec > /dev/full")
    assert ran.code == (2 if words == "list" else 1)
    ran.tells("output-lost")


def test_a_reader_who_leaves_is_no_trouble(bench: Bench, tmp_path: Path) -> None:
    """`simkit run … | head -1` finishes and keeps what it found."""
    ran = bench.simkit(
        "--version", shell=f"{shlex.join(command_line(('run', '-t', bench.adapter(LIAR), '--seeds', '0-1')))} | head -1"
    )
    assert ran.err.count("error[") == 0
    assert len(list(tmp_path.glob(".simkit/runs/*.jsonl"))) == 1
    assert '"CampaignEnded"' in next(tmp_path.glob(".simkit/runs/*.jsonl")).read_text()


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_trouble(bench: Bench, tmp_path: Path, closed: str) -> None:
    """Standard streams that are not there take nothing, and no file is opened in their place."""
    ran = bench.simkit("run", "-t", bench.adapter(LIAR), "--seeds", 0, shell=f"exec {closed}")
    assert ran.code == 1
    assert "Traceback" not in ran.err
    assert '"CampaignEnded"' in next(tmp_path.glob(".simkit/runs/*.jsonl")).read_text()


def test_an_ascii_terminal_is_no_trouble(bench: Bench) -> None:
    """What the terminal cannot show is written escaped."""
    ran = bench.simkit("run", "-t", bench.adapter(LIAR), "--seeds", 0, PYTHONIOENCODING="ascii")
    assert ran.code == 1
    assert "FAIL EFF-11" in ran.out
    told = bench.simkit("run", "-t", "target", "--seeds", 0, "--format", "json", PYTHONIOENCODING="ascii")
    assert [json.loads(line)["event"] for line in told.out.splitlines()][-1] == "CampaignEnded"


def test_a_removed_folder_is_usage(bench: Bench) -> None:
    """A command in a folder that is gone says so."""
    ran = bench.simkit("list", shell="mkdir gone; cd gone; rmdir ../gone")
    assert ran.code == 2
    ran.tells("folder-gone")


def test_strange_folders_and_surroundings_are_no_trouble(bench: Bench, tmp_path: Path) -> None:
    """A path with spaces and other letters, another current folder, a hash seed, a home that cannot be written."""
    folder = bench.adapter(LIAR, name="mein Geschirr – ünï 日本")
    elsewhere = tmp_path / "else where"
    elsewhere.mkdir()
    ran = bench.simkit("run", "-t", folder, "--seeds", 0, cwd=elsewhere, HOME="/proc/nowhere", PYTHONHASHSEED="7")
    assert ran.code == 1
    assert ran.err.count("error[") == 0
    again = shlex.split(next(line for line in ran.out.splitlines() if " run -t " in line))
    assert bench.simkit(*again[1:], cwd=elsewhere).code == 1
    assert not (tmp_path / ".simkit").exists()


# ---- cases and certificates


@pytest.fixture
def case(bench: Bench, tmp_path: Path) -> Path:
    """A case found on real processes."""
    bench.simkit("run", "-t", bench.adapter(LIAR), "--seeds", 0)
    return next(tmp_path.glob(".simkit/cases/*.json"))


def test_a_case_reproduces_as_itself(bench: Bench, case: Path) -> None:
    """A replay names the case it was given, and no copy of it, on its replay line."""
    ran = bench.simkit("replay", case.stem[:6])
    assert ran.code == 1
    assert "reproduced" in ran.out
    assert f" replay {case.stem}\n" in ran.out
    assert [one.stem for one in case.parent.glob("*.json")] == [case.stem]


@pytest.mark.parametrize(
    ("old", "new", "code", "told"),
    [
        (None, "", "case-malformed", "cut short"),
        ('"simkit/case/2"', '"simkit/case/9"', "case-version", "simkit/case/9"),
        ('"world": "process"', '"world": "dream"', "case-malformed", "'dream'"),
        ('"mutant": null', '"mutant": 3', "case-malformed", "target.mutant"),
        ('"anomaly"', '"anomali"', "case-malformed", "expect"),
        ('"interruptions"', '"interuptions"', "scenario-malformed", "'interruptions'"),
        ("/target", "/tarket", "adapter-not-found", "tarket"),
    ],
    ids=["truncated", "version", "world", "mutant", "expect", "scenario", "target"],
)
def test_a_spoilt_case_is_usage(bench: Bench, case: Path, old: str | None, new: str, code: str, told: str) -> None:
    """Each is refused with what is wrong in it, before anything runs."""
    text = case.read_text()
    assert old is None or old in text
    case.write_text(text[: len(text) // 2] if old is None else text.replace(old, new))
    ran = bench.simkit("replay", case)
    assert ran.code == 2
    ran.tells(code, told)


def test_ids_are_found_by_their_beginning(bench: Bench, tmp_path: Path) -> None:
    """A beginning that several ids share is refused with all of them; one that is off with the nearest."""
    cases = tmp_path / ".simkit/cases"
    cases.mkdir(parents=True)
    for name in ("abc0", "abc1"):
        (cases / f"{name}.json").write_text("{")
    bench.simkit("replay", "abc").tells("case-ambiguous", "abc0, abc1")
    bench.simkit("replay", "abd0").tells("case-unknown", "abc0")
    ran = bench.simkit("cases")
    assert ran.code == 2
    assert ran.err.count("error[case-malformed]") == 2


def test_code_that_has_changed_is_exit_6(bench: Bench, tmp_path: Path) -> None:
    """A simulated case whose program is another one by now has diverged, which proves nothing."""
    bench.simkit("run", "-t", "reference", "--mutant", "new-key-on-retry", "--seeds", "0-19", "--jobs", 1)
    path = next(tmp_path.glob(".simkit/cases/*.json"))
    path.write_text(path.read_text().replace('"new-key-on-retry"', "null"))
    ran = bench.simkit("replay", path)
    assert ran.code == 6
    assert "diverged" in ran.out
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda text: text[: len(text) // 2], "certificate-truncated"),
        (lambda text: text.replace('"runs": ', '"runs": 1'), "certificate-altered"),
        (lambda text: text.replace('"name": "', '"name": "other ', 1), "certificate-altered"),
        (lambda text: text.replace("certificate/1", "certificate/2"), "certificate-schema"),
        (lambda _text: "[]", "certificate-schema"),
    ],
)
def test_a_spoilt_certificate_is_refused(tmp_path: Path, spoil: Callable[[str], str], code: str) -> None:
    """A certificate that is cut short or was touched is never taken for one."""
    path = tmp_path / "certificate.json"
    certificate_file.write(certificate(), path)
    certificate_file.load(path)
    path.write_text(spoil(path.read_text()))
    with pytest.raises(SimkitError) as caught:
        certificate_file.load(path)
    assert caught.value.problem.code == code
    assert caught.value.problem.hint

"""`doctor`: simulations that are the same everywhere, and the first event of those that are not; and `doctor -t` of targets
that run as real processes: one undisturbed run, with what is wrong told where it is.
"""

from __future__ import annotations

import itertools
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import attrs
import pytest
import trio

from conformance import campaign, cli, pythons, specimens
from conformance import events as e
from conformance.campaign import sameness
from conformance.store import Store
from conformance.targets import ADAPTERS
from simkit.errors import ExitCode, Problem, SimkitError
from simkit.world import World

pytestmark = pytest.mark.slow
THIS = pythons.Python(Path(sys.executable).resolve(), (3, 11, 7), sys.version)
NEWER = pythons.Python(Path("/x/python3.99"), (3, 99, 0), "3.99.0")


def checked(target: Path, store: Path) -> tuple[e.CampaignBegan, dict[str, e.Checked]]:
    told: list[e.Event] = []
    result = campaign.doctor(str(target), store=Store(store), emit=told.append, stopping=lambda: False)
    assert isinstance(told[0], e.CampaignBegan)
    return told[0], {check.name: check for check in result.checks}


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    """A copy of an adapter whose undisturbed runs are faultless."""
    return Path(shutil.copytree(ADAPTERS / "naive", tmp_path / "mine"))


def test_a_good_adapter_is_well(adapter: Path, tmp_path: Path) -> None:
    """Its units start, say hello and carry out a run, and the world is the one that was really tried."""
    began, checks = checked(adapter, tmp_path / "store")
    assert began.world == "process"
    assert checks["units"].detail == "worker started and said hello, as real processes"
    assert checks["answers"].ok
    assert "two runs" not in checks  # determinism is a question to the simulated world


def test_the_configuration_that_is_named_is_the_one_that_runs(adapter: Path, tmp_path: Path) -> None:
    """Its environment is what the unit is started with, and its name is in the line that shows the run."""
    manifest = (adapter / "adapter.toml").read_text()
    (adapter / "adapter.toml").write_text(
        manifest + '[configurations.default]\n[configurations.odd]\nenv = { MODE = "odd" }\n'
    )
    program = (adapter / "adapter.py").read_text()
    odd = "import os\nif os.environ.get('MODE') == 'odd':\n    raise SystemExit('how odd')\n"
    (adapter / "adapter.py").write_text(program.replace("import json\n", f"import json\n{odd}"))
    store = Store(tmp_path / "store")
    for config, is_well in ((None, True), ("odd", False)):
        result = campaign.doctor(
            str(adapter), config=config, store=store, emit=lambda _event: None, stopping=lambda: False
        )
        assert all(check.ok for check in result.checks) is is_well
    assert "how odd" in result.checks[-1].detail
    assert " MODE=odd " in result.checks[-1].hint  # the line that starts it by hand has what the configuration sets


def test_an_adapter_that_cannot_start_is_told(adapter: Path, tmp_path: Path) -> None:
    """What it printed, how to start it by hand, and its exit code."""
    (adapter / "adapter.py").write_text("raise SystemExit('no such engine')")
    check = checked(adapter, tmp_path / "store")[1]["units"]
    assert (check.ok, check.exit_code) == (False, ExitCode.TARGET)
    assert "no such engine" in check.detail
    assert "by hand: cd " in check.hint
    assert "SIMKIT_SERVICES" not in check.hint


def test_an_adapter_that_answers_nonsense_is_told(adapter: Path, tmp_path: Path) -> None:
    """Units that start may still answer what is no status: the allowed states are named."""
    code = (adapter / "adapter.py").read_text()
    wrong = "    def status(self, run):\n        return {'state': 'finished'}\n\n    def _status("
    (adapter / "adapter.py").write_text(code.replace("    def status(", wrong, 1))
    check = checked(adapter, tmp_path / "store")[1]["answers"]
    assert (check.ok, check.exit_code) == (False, ExitCode.TARGET)
    assert "none of unknown, running, waiting, done" in check.detail


# ---- the same everywhere


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Callable[[pythons.Survey], None]:
    """Say which Pythons there are besides this one."""

    def has(survey: pythons.Survey) -> None:
        monkeypatch.setattr(pythons, "survey", lambda: survey)

    has(pythons.Survey((), ()))
    return has


@pytest.fixture
def rows(tmp_path: Path) -> Callable[[], dict[str, e.Checked]]:
    def check() -> dict[str, e.Checked]:
        store = Store(tmp_path / "store")
        result = campaign.doctor(None, store=store, emit=lambda _event: None, stopping=lambda: False)
        return {check.name: check for check in result.checks}

    return check


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[World], object]], None]:
    """Let one program be all that is compared."""

    def compare(program: Callable[[World], object]) -> None:
        monkeypatch.setattr(specimens, "SPECIMENS", {"mine": program})
        monkeypatch.setattr(sameness, "SEEDS", ())

    return compare


def test_every_way_gives_the_same_digests(
    machine: Callable[[pythons.Survey], None], rows: Callable[[], dict[str, e.Checked]]
) -> None:
    """Both loops, three hash seeds, another zone of the machine; that there is no other Python is said aloud."""
    checks = rows()
    assert [name for name, check in checks.items() if not check.ok] == []
    assert list(checks)[4:] == [
        *("programs", "two runs", "kernel and fallback", "PYTHONHASHSEED=1", "PYTHONHASHSEED=2"),
        *("TZ=Asia/Tokyo LC_ALL=C", "other Pythons"),
    ]
    assert set(checks["programs"].detail.partition(":")[0].split(", ")) == {*specimens.SPECIMENS, "reference"}
    assert checks["other Pythons"].skipped
    assert "not compared" in checks["other Pythons"].detail


async def steady(world: World) -> None:
    specimens.tell(world, world.now_ns)


@pytest.mark.network
def test_the_other_pythons_of_this_machine_give_the_same(
    rows: Callable[[], dict[str, e.Checked]], capsys: pytest.CaptureFixture[str]
) -> None:
    """Each has a row of its own, and what it ran is what ran here."""
    others = [python.name for python in pythons.found() if not python.is_this_one]
    checks = rows()
    told = {name: checks[name].detail for name in others}
    assert [name for name in others if not checks[name].ok or checks[name].skipped] == [], told
    assert {detail.partition(",")[0] for detail in told.values()} <= {checks["two runs"].detail.partition(",")[0]}


def test_what_differs_from_run_to_run_is_told_with_its_first_event(
    machine: Callable[[pythons.Survey], None],
    rows: Callable[[], dict[str, e.Checked]],
    only: Callable[[Callable[[World], object]], None],
) -> None:
    """A program that counts its runs: the events before are equal, and the two that are not are shown."""
    runs = itertools.count()

    async def drifting(world: World) -> None:
        await trio.sleep(1)
        specimens.tell(world, "same")
        specimens.tell(world, next(runs))

    only(drifting)
    check = rows()["two runs"]
    assert (check.ok, check.exit_code) == (False, ExitCode.DIVERGED)
    left, right = check.detail.split(" | ")
    assert left.startswith("mine, seed 0: event ")
    assert left.rpartition(" at ")[0].removeprefix("mine, seed 0: ") == right.rpartition(" at ")[0]
    assert "saw 6" in left
    assert "saw 7" in right


def test_a_program_that_fails_here_is_told(
    machine: Callable[[pythons.Survey], None],
    rows: Callable[[], dict[str, e.Checked]],
    only: Callable[[Callable[[World], object]], None],
) -> None:
    """Then nothing is compared, and the fault is simkit's own."""

    async def failing(world: World) -> None:
        raise LookupError("nothing there")

    only(failing)
    checks = rows()
    assert list(checks)[-1] == "programs"
    assert checks["programs"].detail == "LookupError: nothing there"
    assert checks["programs"].exit_code is ExitCode.INTERNAL


def test_pythons_that_cannot_be_compared_are_told_and_fail_nothing(
    machine: Callable[[pythons.Survey], None],
    only: Callable[[Callable[[World], object]], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    """No network for its packages, or an executable that does not run: loud rows, the last line names them, exit 0."""
    only(steady)
    machine(pythons.Survey((THIS, NEWER), (pythons.Broken(Path("/x/python3.12"), "left with 1: dyld"),)))

    def unreachable(python: pythons.Python, progress: object) -> Path:
        raise SimkitError(Problem("install-no-network", "no package registry answers\n    | tail", "", "", "connect"))

    monkeypatch.setattr(pythons, "environment", unreachable)
    # Elsewhere the real specimens run, and must not be compared with the one above.
    monkeypatch.setattr(sameness.Elsewhere, "digests", lambda self: sameness.Here(None).digests())
    assert cli.main(["doctor", "--store", str(tmp_path / "store"), "--format", "plain"]) == 0
    out = capsys.readouterr().out
    assert "skip  Python 3.99.0: not compared: no package registry answers (/x/python3.99)" in out
    assert "      hint: connect" in out
    assert "skip  /x/python3.12: not compared: it left with 1: dyld" in out
    assert "exit 0: all is well; not compared: Python 3.99.0, /x/python3.12" in out


def test_a_python_on_which_simkit_breaks_is_a_failure(
    machine: Callable[[pythons.Survey], None],
    rows: Callable[[], dict[str, e.Checked]],
    only: Callable[[Callable[[World], object]], None],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """It has its packages and leaves with an error: its last words are told, and the exit code is that of a bug."""
    only(steady)
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho 'ImportError: no trio' >&2\nexit 1\n")
    broken.chmod(0o755)
    machine(pythons.Survey((NEWER,), ()))
    monkeypatch.setattr(pythons, "environment", lambda python, progress: broken)
    check = rows()["Python 3.99.0"]
    assert (check.ok, check.exit_code) == (False, ExitCode.INTERNAL)
    assert "it left with 1: ImportError: no trio" in check.detail


def test_a_target_that_needs_more_than_is_there_is_not_compared(
    machine: Callable[[pythons.Survey], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An adapter of one's own that imports what only this environment has: told, and no failure."""
    folder = Path(shutil.copytree(ADAPTERS / "reference", tmp_path / "mine"))
    adapter = folder / "adapter.py"
    needs = "import sys\nif sys.flags.safe_path: import no_such_package\n"
    adapter.write_text(adapter.read_text().replace("import os\n", f"{needs}import os\n", 1))
    machine(pythons.Survey((NEWER,), ()))
    monkeypatch.setattr(pythons, "environment", lambda python, progress: Path(sys.executable))
    monkeypatch.setattr("conformance.campaign.checkup._SURROUNDINGS", ())
    check = checked(folder, tmp_path / "store")[1]["Python 3.99.0"]
    assert (check.ok, check.skipped) == (True, True)
    assert "no_such_package" in check.detail


@attrs.frozen
class Recorded:
    """A way whose traces are given."""

    traces: Mapping[str, Sequence[str]]

    def digests(self) -> dict[str, str]:
        return {name: "".join(events) for name, events in self.traces.items()}

    def events(self, program: str) -> list[tuple[str, str]]:
        return [(event, f"shown {event}") for event in self.traces[program]]


@pytest.mark.parametrize(
    ("left", "right", "told"),
    [
        ({"a": "xy", "b": "xy"}, {"a": "xy", "b": "xy"}, ""),
        ({"a": "xy", "b": "xyz"}, {"a": "xy", "b": "xqz"}, "b: shown y | shown q"),
        ({"a": "xy"}, {"a": "xyz"}, "a: the end | shown z"),
        ({"a": "xyz"}, {"a": "x"}, "a: shown y | the end"),
        ({"a": "x", "b": "y"}, {"a": "x"}, "b: not run"),
    ],
)
def test_the_first_difference_is_found(left: dict[str, str], right: dict[str, str], told: str) -> None:
    """By program, then by event; also where one trace is the beginning of the other, and where a program is missing."""
    one, other = Recorded(left), Recorded(right)
    assert sameness.difference(one, other, one.digests(), other.digests()) == told

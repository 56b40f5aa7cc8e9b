"""A machine that is short of room: what runs then is not judged, and nobody is blamed for it."""

from __future__ import annotations

import functools
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from conformance import machine
from conformance.campaign import real
from conformance.campaign.judged import Judged
from conformance.driver import Observation
from conformance.evidence import BY_HAND
from conformance.targets import parse
from conformance.worlds.process import ProcessWorld
from scenarios import catalogue
from scenarios.history import Declared, History
from simkit.errors import ExitCode, Problem, SimkitError

SCENARIO = catalogue.by_name("chain/undisturbed")


def judged() -> Judged:
    assert SCENARIO is not None
    return trio.run(functools.partial(real.judged, parse("naive"), sys.executable, None, SCENARIO))


def put(monkeypatch: pytest.MonkeyPatch, problem: Problem | None) -> None:
    """Let every run end with this problem, or with an empty history."""

    async def observe_real(*_: object) -> Observation:
        if problem is not None:
            raise SimkitError(problem)
        assert SCENARIO is not None
        return Observation(History(real.RUN, SCENARIO.plan, Declared(), ()), (), ())

    monkeypatch.setattr(real, "observe_real", observe_real)


@pytest.mark.parametrize("problem", [None, Problem("worker-keeps-dying", "it died", "w", exit_code=ExitCode.TARGET)])
def test_a_run_without_room_is_not_judged(monkeypatch: pytest.MonkeyPatch, problem: Problem | None) -> None:
    """Nor is a harness that could not go on for want of it called broken."""
    put(monkeypatch, problem)
    assert judged().problem == problem
    for of, left in (("free_files", "3 files can still be made"), ("free_bytes", "3 bytes are left")):
        monkeypatch.setattr(machine, of, lambda _folder: 3)
        found = judged()
        assert found.problem is not None
        assert (found.problem.code, found.problem.exit_code) == ("machine-short", ExitCode.INTERNAL)
        assert found.problem.what.startswith(left)
        assert not found.findings


def test_what_does_not_say_how_much_room_it_has_is_not_full(tmp_path: Path) -> None:
    """A file system without a limit says 0 of everything, and so does `/proc`; of a folder that is gone nothing is known."""
    for folder in (Path("/proc"), tmp_path / "gone"):
        assert machine.no_room(folder) is None
    assert machine.free_bytes(tmp_path)
    assert machine.free_files(tmp_path) != 0


@pytest.mark.parametrize("broken", [False, True])
@pytest.mark.parametrize("code", ["clock-stepped", "too-many-connections"])
def test_what_spoilt_a_run_is_told_whatever_came_of_it(
    monkeypatch: pytest.MonkeyPatch, code: str, *, broken: bool
) -> None:
    """A harness that broke over it is not blamed, and what was seen of the run is kept."""
    assert SCENARIO is not None
    history = History(real.RUN, SCENARIO.plan, Declared(), ())

    async def observe(world: ProcessWorld, *_: object, witness: Callable[[History], object]) -> Observation:
        if code == "clock-stepped":
            world.pulse.stepped_ns = 7_000_000
        else:
            world.problems.append(Problem(code, "one was refused", "w", exit_code=ExitCode.INCONCLUSIVE))
        if broken:
            witness(history)
            raise SimkitError(Problem("worker-keeps-dying", "it died", "w", exit_code=ExitCode.TARGET))
        return Observation(history, (), ())

    monkeypatch.setattr(real, "observe", observe)
    found = judged()
    assert found.problem is not None
    assert found.problem.code == code
    assert found.history is not None


def test_a_folder_that_is_not_to_be_had_is_no_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told as a run that cannot be judged, and what was judged before stands."""

    def refused(*_: object, **__: object) -> str:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "mkdtemp", refused)
    found = judged()
    assert found.problem is not None
    assert found.problem.code == "machine-short"
    assert "No usable temporary directory" in found.problem.what


def test_a_full_disk_while_a_unit_is_started_is_no_bug(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The kit's own notes of the run find no room."""
    (tmp_path / BY_HAND).symlink_to("/dev/full")

    class Made(tempfile.TemporaryDirectory[str]):
        def __enter__(self) -> str:
            return str(tmp_path)

    monkeypatch.setattr(tempfile, "TemporaryDirectory", Made)
    found = judged()
    assert found.problem is not None
    assert found.problem.code == "machine-short"
    assert "No space left on device" in found.problem.what

"""The word to call simkit by, as a reader of its output can paste it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from conformance import invocation


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program called simkit in `.venv/bin` of the current folder, and none on PATH."""
    path = tmp_path / ".venv" / "bin" / "simkit"
    path.parent.mkdir(parents=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    return path


@pytest.mark.parametrize("called", [".venv/bin/simkit", "{whole}"])
def test_a_program_called_by_its_path_is_printed_so(
    installed: Path, called: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outside an activated environment a printed line works where it was printed."""
    monkeypatch.setattr(sys, "argv", [called.format(whole=installed), "run"])
    assert invocation.line("replay", "a b") == ".venv/bin/simkit replay 'a b'"


def test_a_program_elsewhere_is_printed_whole(
    installed: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From another folder the path is the whole one."""
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    monkeypatch.setattr(sys, "argv", [str(installed)])
    assert invocation.program() == str(installed)


def test_a_program_found_by_the_shell_is_printed_plain(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the shell finds it by its name, the name is enough."""
    monkeypatch.setenv("PATH", str(installed.parent))
    monkeypatch.setattr(sys, "argv", [str(installed)])
    assert invocation.program() == "simkit"


def test_inside_another_program_the_name_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody called it by a path, so there is none to repeat."""
    monkeypatch.setattr(sys, "argv", ["-c"])
    assert invocation.program() == "simkit"

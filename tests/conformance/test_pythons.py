"""Pythons of the machine: each found once, broken ones told, and an environment that has simkit as it is here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from conformance import install, pythons
from simkit.errors import ExitCode, SimkitError

THIS = next(one for one in pythons.found() if one.is_this_one)


def script(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def looked(tmp_path: Path, *folders: Path) -> pythons.Survey:
    """What is found below these folders and the home folder `tmp_path` only, apart from the system's own."""
    survey = pythons.survey({"HOME": str(tmp_path), "PATH": ":".join(map(str, folders))})
    system = tuple(one for one in pythons.survey({"HOME": str(tmp_path / "none")}).pythons if one.path != THIS.path)
    return pythons.Survey(tuple(one for one in survey.pythons if one not in system), survey.broken)


def test_this_python_is_found_once(tmp_path: Path) -> None:
    """By its own name, by links and from inside an environment it is still one, and it knows itself."""
    for name in ("python3", "python3.11", "python3.99"):
        (tmp_path / name).symlink_to(sys.executable)
    assert looked(tmp_path, tmp_path).pythons == (THIS,)
    assert THIS.version == sys.version_info[:3]
    assert str(sys.version_info[1]) in THIS.name


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("echo 'no such version' >&2; exit 127", "left with 127: no such version"),
        ("echo hello", "answered 'hello\\n'"),
        ("exit 3", "left with 3: no word"),
    ],
)
def test_what_does_not_answer_is_told(tmp_path: Path, text: str, why: str) -> None:
    """A file of the right name that cannot say who it is, is broken, with its last words."""
    script(tmp_path / "python3.13", text)
    survey = looked(tmp_path, tmp_path)
    assert survey.broken == (pythons.Broken(tmp_path / "python3.13", why),)
    assert survey.pythons == (THIS,)


def test_one_that_says_nothing_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound on the time of an answer; the rest is found all the same."""

    def silent(*_args: object, **kwargs: object) -> None:
        raise subprocess.TimeoutExpired("python", 20)

    monkeypatch.setattr(subprocess, "run", silent)
    survey = pythons.survey({"HOME": str(tmp_path)})
    assert survey.pythons == ()
    assert {one.why for one in survey.broken} == {"said nothing within 20 s"}


def test_others_are_passed_over(tmp_path: Path) -> None:
    """Too old by name or by answer, or no CPython; what is called otherwise, or is a version manager's shim, is not asked."""
    for name, answer in (
        ("python3", '["cpython", [3, 9, 1], "3.9.1", "/x/python3.9"]'),
        ("python3.12", '["pypy", [3, 12, 1], "3.12.1", "/x/pypy"]'),
    ):
        script(tmp_path / name, f"echo '{answer}'")
    for name in ("python3.10", "python3.12-config", "ipython3", "shims/python3.13"):
        script(tmp_path / name, "exit 1")
    assert looked(tmp_path, tmp_path, tmp_path / "shims") == pythons.Survey((THIS,), ())


def test_version_managers_are_looked_into(tmp_path: Path) -> None:
    """The folders of pyenv and uv below the home folder, and one of a variable's; oldest first."""
    for minor, folder in ((14, ".pyenv/versions/a/bin"), (13, ".local/share/uv/python/b/bin"), (12, "own/c/bin")):
        answer = json.dumps(["cpython", [3, minor, 0], "text", str(tmp_path / f"real3.{minor}")])
        script(tmp_path / folder / "python3", f"echo '{answer}'")
    assert [one.version[1] for one in looked(tmp_path).pythons if one != THIS] == [13, 14]
    survey = pythons.survey({"HOME": str(tmp_path), "UV_PYTHON_INSTALL_DIR": str(tmp_path / "own")})
    assert [one.version[1] for one in survey.pythons if one.text == "text"] == [12, 14]


#: Stands for `python -m venv` and `pip install`: an interpreter that tells where its packages lie.
MAKES = """
import pathlib, sys
folder = pathlib.Path(sys.argv[1])
(folder / "bin").mkdir(parents=True)
(folder / "site").mkdir()
(folder / "bin" / "python").write_text(f"#!/bin/sh\\necho {folder}/site\\n")
(folder / "bin" / "python").chmod(0o755)
"""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[str], str]]:
    """Replace the installer; gives what it was asked for: base interpreter, words, and the pins as they were then."""
    told: list[tuple[str, list[str], str]] = []

    def commands(folder: Path, _python: str, wanted: list[str], base: str) -> tuple[tuple[str, ...], ...]:
        told.append((base, wanted[2:], Path(wanted[1]).read_text()))
        return ((sys.executable, "-c", MAKES, str(folder)),)

    monkeypatch.setattr(install, "_commands", commands)
    monkeypatch.setattr("shutil.which", lambda name: None)
    return told


def test_an_environment_has_what_simkit_has_here(asked: list[tuple[str, list[str], str]], tmp_path: Path) -> None:
    """Made from that Python, with the pins of here, our packages by links; made once; extras make another."""
    other = pythons.Python(Path("/x/python3.12"), (3, 12, 1), "3.12.1")
    python = pythons.environment(other, cache=tmp_path)
    base, wanted, pins = asked[0]
    assert base == "/x/python3.12"
    assert any(line.startswith("trio") for line in wanted)
    assert {line.partition("==")[0] for line in pins.split()} >= {"trio", "attrs", "sortedcontainers"}
    assert not any(line.startswith(("simkit==", "pytest==")) for line in pins.split())
    site = python.parent.parent / "site"
    assert (site / "simkit" / "world.py").samefile(Path(pythons.__file__).parent.parent / "simkit" / "world.py")
    assert {one.name for one in site.iterdir()} >= {"simkit", "conformance", "scenarios", "reference_runtime"}
    assert any(one.name.endswith(".dist-info") for one in site.iterdir())
    assert not list(tmp_path.rglob("*.pins.txt"))

    assert pythons.environment(other, cache=tmp_path) == python
    assert len(asked) == 1
    assert pythons.environment(other, ("simpy",), cache=tmp_path) != python
    assert asked[1][1][-1] == "simpy"
    newer = pythons.Python(Path("/x/python3.12"), (3, 12, 2), "3.12.2")  # the system's Python was updated
    assert pythons.environment(newer, cache=tmp_path) != python


def test_without_a_simkit_that_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it needs is known from its metadata only: without, that is said."""
    monkeypatch.setattr("importlib.metadata.distributions", list)
    with pytest.raises(SimkitError) as caught:
        pythons.environment(THIS, cache=tmp_path)
    assert (caught.value.problem.code, caught.value.problem.exit_code) == ("pythons-not-installed", ExitCode.USAGE)


@pytest.mark.slow
@pytest.mark.network
def test_a_real_environment_runs_simkit(tmp_path: Path) -> None:
    """From another folder, on its own Python, with the code that runs here."""
    python = pythons.environment(THIS, cache=tmp_path)
    code = "import simkit, conformance.cli, importlib.metadata as m, sys; print(m.version('simkit'), sys.prefix)"
    done = subprocess.run([python, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split()[1] == str(python.parent.parent)

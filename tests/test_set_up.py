"""`.ci/setup` with stand-in tools on PATH: which Python it takes, when it does nothing, what it says when it cannot.

The stand-in `python3` and `uv` are shell scripts that write each call into a log and make just enough of a virtual
environment; nothing is installed and nothing is fetched.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import attrs
import pytest

pytestmark = pytest.mark.repository

ROOT = Path(__file__).parent.parent
TOOLS = ("sh", "cat", "cksum", "cut", "dirname", "env", "rm", "mkdir", "cp", "sleep")
PYTHON = """#!/bin/sh
echo "$(basename "$0") $*" >> "{log}"
case "$*" in
    *"import platform"*) echo {version} ;;
    *"import sys"*) exit {too_old} ;;
    *"import ensurepip"*) exit {bare} ;;
    *"pip install"*) exit {offline} ;;
    "-m venv "*) mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
    --version) echo "Python {version}" ;;
esac
"""
UV = """#!/bin/sh
echo "uv $*" >> "{log}"
case "$1" in
    --version) echo "uv 0.99.0 (stand-in)" ;;
    venv) mkdir -p .venv/bin && cp "$4" .venv/bin/python ;;
    pip) exit {offline} ;;
esac
"""


@attrs.frozen
class Machine:
    """A folder with a clone (its name has a space) and a PATH of its own."""

    folder: Path

    @property
    def clone(self) -> Path:
        return self.folder / "a clone"

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def add(self, name: str, script: str, **facts: object) -> None:
        """Put a stand-in on PATH."""
        known = {"version": "3.12.1", "too_old": 0, "bare": 0, "offline": 0, "log": self.log}
        path = self.folder / "bin" / name
        path.write_text(script.format(**{**known, **facts}), encoding="utf-8")
        path.chmod(0o755)

    def set_up(self, **environment: str) -> subprocess.CompletedProcess[str]:
        command = [str(self.clone / ".ci/setup")]
        env = {"PATH": str(self.folder / "bin"), **environment}
        return subprocess.run(command, env=env, capture_output=True, text=True, check=False)

    def calls(self, words: str) -> list[str]:
        return [line for line in self.log.read_text(encoding="utf-8").splitlines() if words in line]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path)
    (tmp_path / "bin").mkdir()
    for tool in (*TOOLS, "basename"):
        found = shutil.which(tool)
        assert found, f"this test needs {tool}"
        (tmp_path / "bin" / tool).symlink_to(found)
    (machine.clone / ".ci").mkdir(parents=True)
    for name in (".ci/setup", "pyproject.toml", "requirements.lock"):
        shutil.copy(ROOT / name, machine.clone / name)
    machine.log.touch()
    return machine


def test_plain_python_is_enough(machine: Machine) -> None:
    """With Python alone the lock is installed by digest, and the repository without its dependencies."""
    machine.add("python3", PYTHON)
    done = machine.set_up()
    assert done.returncode == 0, done.stderr
    assert len(machine.calls("pip install --quiet --require-hashes")) == 1
    assert len(machine.calls("--no-deps --no-build-isolation -e")) == 1
    assert done.stdout == ""


def test_uv_is_used_when_there(machine: Machine) -> None:
    """With uv on PATH, uv makes and fills the environment."""
    machine.add("python3", PYTHON, bare=1)
    machine.add("uv", UV)
    done = machine.set_up()
    assert done.returncode == 0, done.stderr
    assert machine.calls("uv pip install")
    assert not machine.calls("-m pip install")


def test_pip_takes_over_from_a_uv_that_reaches_nothing(machine: Machine) -> None:
    """Where uv has no way to an index but pip has one, pip does it."""
    machine.add("python3", PYTHON)
    machine.add("uv", UV, offline=1)
    assert machine.set_up().returncode == 0
    assert machine.calls("-m pip install")


def test_nothing_is_done_twice(machine: Machine) -> None:
    """A second set-up asks one question and installs nothing, until lock or project change."""
    machine.add("python3", PYTHON)
    machine.set_up()
    machine.log.write_text("", encoding="utf-8")
    assert machine.set_up().stderr == ""
    assert not machine.calls("install")
    with (machine.clone / "requirements.lock").open("a", encoding="utf-8") as lock:
        lock.write("# changed\n")
    machine.set_up()
    assert machine.calls("install")
    assert not machine.calls("venv .venv")


def test_too_old_python_is_passed_over(machine: Machine) -> None:
    """A python3 before 3.11 does not stand in the way of a newer one beside it."""
    machine.add("python3", PYTHON, version="3.10.13", too_old=1)
    machine.add("python3.13", PYTHON, version="3.13.0")
    done = machine.set_up()
    assert done.returncode == 0, done.stderr
    assert machine.calls("python3.13 -m venv")


def test_no_python_is_told(machine: Machine) -> None:
    """Without a usable Python the message says what was found, what was expected and what to do."""
    machine.add("python3", PYTHON, version="3.10.13", too_old=1)
    machine.add("python3.12", PYTHON, version="3.12.1", bare=1)
    done = machine.set_up()
    assert done.returncode == 2
    assert "found:    python3 (3.10.13), python3.12 (3.12.1, without venv and pip)\n" in done.stderr
    assert "hint:" in done.stderr


def test_asked_for_python_is_the_only_one_tried(machine: Machine) -> None:
    """PYTHON=… is not silently replaced by another."""
    machine.add("python3", PYTHON)
    done = machine.set_up(PYTHON="python9")
    assert done.returncode == 2
    assert "python9 (no such command)" in done.stderr


def test_no_network_is_told_and_not_remembered(machine: Machine) -> None:
    """An installation that fails leaves no stamp: the next set-up tries again and can succeed."""
    machine.add("python3", PYTHON, offline=1)
    done = machine.set_up()
    assert done.returncode == 2
    assert "package index" in done.stderr
    machine.add("python3", PYTHON)
    shutil.copy(machine.folder / "bin/python3", machine.clone / ".venv/bin/python")
    assert machine.set_up().returncode == 0


def test_tools_are_heard_only_when_they_fail(machine: Machine) -> None:
    """What pip chatters is kept back while it works, and shown when it does not."""
    chatty = PYTHON.replace('    *"pip install"*) ', '    *"pip install"*) echo "a notice of pip"; ')
    machine.add("python3", chatty)
    assert "a notice" not in (done := machine.set_up()).stderr + done.stdout
    assert done.returncode == 0


def test_a_failing_tool_is_heard(machine: Machine) -> None:
    """The reason for a failure stands above the words of the set-up."""
    machine.add(
        "python3", PYTHON.replace('    *"pip install"*) ', '    *"pip install"*) echo "no such index"; '), offline=1
    )
    done = machine.set_up()
    assert done.returncode == 2
    assert done.stderr.index("no such index") < done.stderr.index("could not be installed")

"""Environments: made once, used again, mended, and every way that making one can fail."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from conformance import install
from conformance.install import MARKER, cache_folder, ensure
from conformance.targets import Target, parse
from simkit.errors import ExitCode, SimkitError

MANIFEST = """
protocol = 1
[harness]
name = "tiny"
version = "1.0"
storage = "none"
[install]
pip = ["tiny=={version}"]
[units.worker]
command = ["{python}", "-c", ""]
control = true
"""

#: Stands for `python -m venv` and `pip install`: makes an interpreter that can freeze.
MAKES = """
import pathlib, sys
folder = pathlib.Path(sys.argv[1])
(folder / "bin").mkdir(parents=True)
(folder / "bin" / "python").write_text("#!/bin/sh\\necho tiny==1.0\\necho '# a comment'\\necho zebra==2\\n")
(folder / "bin" / "python").chmod(0o755)
print("Collecting tiny==1.0 (from -r file)")
"""


@pytest.fixture
def target(tmp_path: Path) -> Target:
    folder = tmp_path / "adapter"
    folder.mkdir()
    (folder / "adapter.toml").write_text(MANIFEST, encoding="utf-8")
    return parse(str(folder))


@pytest.fixture
def installer(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[Path]]:
    """Replace the installer by a program; returns the list of folders it was run for."""

    def replace(program: str) -> list[Path]:
        made: list[Path] = []

        def commands(folder: Path, *_rest: object) -> tuple[tuple[str, ...], ...]:
            made.append(folder)
            return ((sys.executable, "-c", program, str(folder)),)

        monkeypatch.setattr(install, "_commands", commands)
        monkeypatch.setattr("shutil.which", lambda name: None)
        return made

    return replace


def fail(target: Target, cache: Path) -> SimkitError:
    with pytest.raises(SimkitError) as caught:
        ensure(target, cache=cache)
    assert not list((cache / "environments").glob("tiny*/")) if cache.is_dir() else True
    return caught.value


def test_made_once_then_used_again(target: Target, installer: Callable[[str], list[Path]], tmp_path: Path) -> None:
    """The first use makes the environment and records what is in it; the second needs no installer at all."""
    made, told = installer(MAKES), list[str]()
    first = ensure(target, told.append, cache=tmp_path / "cache")
    assert first.fresh
    assert first.packages == ("tiny==1.0", "zebra==2")
    assert told[0].startswith("installing tiny==1.0 into ")
    assert told[1:] == ["Collecting tiny==1.0", "installed tiny 1.0: 2 packages"]
    second = ensure(target, cache=tmp_path / "cache")
    assert (second.python, second.packages, second.fresh) == (first.python, first.packages, False)
    assert len(made) == 1


def test_whatever_decides_the_content_decides_the_folder(
    target: Target, installer: Callable[[str], list[Path]], tmp_path: Path
) -> None:
    """Another version, or pins that change, get an environment of their own."""
    made = installer(MAKES)
    ensure(target, cache=tmp_path)
    ensure(parse(str(target.folder)), cache=tmp_path)
    (target.folder / "requirements-1.0.txt").write_text("tiny==1.0\n", encoding="utf-8")
    ensure(target, cache=tmp_path)
    (target.folder / "requirements-1.0.txt").write_text("tiny==1.0\nzebra==2\n", encoding="utf-8")
    ensure(target, cache=tmp_path)
    assert len(set(made)) == len(made) == 3


@pytest.mark.parametrize("damage", ["no marker", "torn marker", "no interpreter"])
def test_a_broken_environment_is_made_anew(
    target: Target, installer: Callable[[str], list[Path]], tmp_path: Path, damage: str
) -> None:
    """One that was cut short, has a torn marker, or lost the Python it came from, is thrown away and made again."""
    made, told = installer(MAKES), list[str]()
    folder = ensure(target, cache=tmp_path).folder
    assert folder is not None
    if damage == "no interpreter":
        (folder / "bin" / "python").unlink()
        (folder / "bin" / "python").symlink_to(tmp_path / "gone")
    else:
        (folder / MARKER).write_text('{"packages": [')
        if damage == "no marker":
            (folder / MARKER).unlink()
    (folder / "leftover").touch()
    assert ensure(target, told.append, cache=tmp_path).fresh
    assert not (folder / "leftover").exists()
    assert "left half made" in told[0]
    assert len(made) == 2


def test_two_at_once_make_one(target: Target, installer: Callable[[str], list[Path]], tmp_path: Path) -> None:
    """While one makes the environment the other waits for it, says so, and uses it."""
    made, told = installer(MAKES), list[str]()
    folder = ensure(target, cache=tmp_path).folder
    assert folder is not None
    marker = (folder / MARKER).read_text()
    (folder / MARKER).unlink()
    waiting = threading.Event()

    def tell(text: str) -> None:
        told.append(text)
        waiting.set()

    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        other = threading.Thread(target=ensure, args=(target, tell), kwargs={"cache": tmp_path})
        other.start()
        assert waiting.wait(10)
        (folder / MARKER).write_text(marker)
    other.join(10)
    assert told == ["another simkit is making this environment; waiting for it"]
    assert len(made) == 1


FAILURES = [
    ("urllib3: Failed to establish a new connection: [Errno 111] Connection refused", "install-no-network", 4),
    ("error: error sending request for url (https://registry.example/simple)", "install-no-network", 4),
    ("Temporary failure in name resolution\nNo matching distribution found for tiny==1.0", "install-no-network", 4),
    ("ERROR: No matching distribution found for tiny==1.0", "install-no-version", 2),
    ("Because there is no version of tiny==1.0", "install-no-version", 2),
    ("OSError: [Errno 28] No space left on device", "cache-full", 4),
    ("The virtual environment was not created because ensurepip is not available", "install-failed", 4),
    ("error: metadata-generation-failed", "install-failed", 4),
]


@pytest.mark.parametrize(("output", "code", "exit_code"), FAILURES, ids=[output[:24] for output, _, _ in FAILURES])
def test_failures_are_told_apart(
    target: Target,
    installer: Callable[[str], list[Path]],
    tmp_path: Path,
    output: str,
    code: str,
    exit_code: int,
) -> None:
    """No network, no such version, a full disk and the rest: each says what, where and what to do; nothing is left."""
    installer(f"import os, sys; os.makedirs(sys.argv[1]); print({output!r}, file=sys.stderr); sys.exit(1)")
    problem = fail(target, tmp_path / "cache").problem
    assert (problem.code, problem.exit_code) == (code, ExitCode(exit_code))
    assert "tiny==1.0" in problem.what
    assert problem.where
    assert problem.expected
    assert problem.hint or code == "install-no-version"
    if code == "install-failed":
        assert output in problem.what


def test_the_last_ten_versions_are_named(
    target: Target, installer: Callable[[str], list[Path]], tmp_path: Path
) -> None:
    """Of a registry's hundreds of releases the newest are shown, and the rest is left out."""
    versions = ", ".join(f"0.{number}" for number in range(300))
    output = (
        f"ERROR: Could not find tiny==1.0 (from versions: {versions})\nERROR: No matching distribution found for tiny"
    )
    installer(f"import os, sys; os.makedirs(sys.argv[1]); print({output!r}, file=sys.stderr); sys.exit(1)")
    problem = fail(target, tmp_path / "cache").problem
    assert "(from versions: …, 0.290, 0.291, 0.292, 0.293, 0.294, 0.295, 0.296, 0.297, 0.298, 0.299)" in problem.what


def test_a_full_disk_under_the_cache(
    target: Target, installer: Callable[[str], list[Path]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No space for the marker is told as that, and the half-made environment is gone."""
    installer(MAKES)

    def full(path: Path, *_args: object, **_kwargs: object) -> int:
        raise OSError(28, os.strerror(28), str(path))

    monkeypatch.setattr(Path, "write_text", full)
    assert fail(target, tmp_path / "cache").problem.code == "cache-full"


def test_a_cache_that_cannot_be(target: Target, tmp_path: Path) -> None:
    """A file where the cache folder should be is named."""
    (tmp_path / "cache").write_text("in the way")
    problem = fail(target, tmp_path / "cache").problem
    assert (problem.code, problem.exit_code) == ("cache-unusable", ExitCode.TARGET)
    assert "SIMKIT_CACHE" in problem.hint


def test_an_interrupted_installation_leaves_nothing(
    target: Target, installer: Callable[[str], list[Path]], tmp_path: Path
) -> None:
    """Ctrl-C while installing ends the installer and removes what it began."""
    installer("import os, sys, time; os.makedirs(sys.argv[1]); print('Collecting tiny', flush=True); time.sleep(60)")

    def interrupt(text: str) -> None:
        if text.startswith("Collecting"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ensure(target, interrupt, cache=tmp_path)
    assert not list((tmp_path / "environments").glob("tiny*/"))


def test_where_the_cache_is() -> None:
    """SIMKIT_CACHE wins, then XDG_CACHE_HOME, then the home folder."""
    assert cache_folder({"SIMKIT_CACHE": "/a", "XDG_CACHE_HOME": "/b"}) == Path("/a")
    assert cache_folder({"XDG_CACHE_HOME": "/b"}) == Path("/b/simkit")
    assert cache_folder({}) == Path.home() / ".cache" / "simkit"


def test_nothing_to_install() -> None:
    """A control runs on the kit's own interpreter."""
    assert ensure(parse("naive")) == install.Installed(sys.executable, (), None, fresh=False)


def test_uv_is_used_when_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With uv on PATH the commands are uv's, without it they are venv's and pip's."""
    monkeypatch.setattr("shutil.which", lambda name: "/bin/uv")
    assert {command[0] for command in install._commands(tmp_path, "python", ["x"])} == {"/bin/uv"}
    monkeypatch.setattr("shutil.which", lambda name: None)
    venv, pip = install._commands(tmp_path, "python", ["x"])
    assert venv[:3] == (sys.executable, "-m", "venv")
    assert pip[:3] == ("python", "-m", "pip")


def wheel(folder: Path) -> None:
    """A distribution `tiny` 1.0, as small as can be."""
    info = "tiny-1.0.dist-info"
    with zipfile.ZipFile(folder / "tiny-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr("tiny.py", "ANSWER = 42\n")
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", f"tiny.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")


@pytest.fixture
def own_registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Cut off from every package registry, with a folder of distributions instead."""
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    folder = tmp_path / "wheels"
    folder.mkdir()
    return folder


@pytest.mark.slow
def test_a_real_installation(
    target: Target, own_registry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real environment from a folder of wheels: it can import what was asked for, and a missing version is told."""
    wheel(own_registry)
    for tool in ("PIP", "UV"):
        monkeypatch.setenv(f"{tool}_NO_INDEX", "1")
        monkeypatch.setenv(f"{tool}_FIND_LINKS", str(own_registry))
    made = ensure(target, cache=tmp_path / "cache")
    assert "tiny==1.0" in made.packages
    assert made.folder is not None
    assert json.loads((made.folder / MARKER).read_text())["requirements"] == ["tiny==1.0"]
    done = subprocess.run(
        [made.python, "-c", "import tiny; print(tiny.ANSWER)"], capture_output=True, text=True, check=True
    )
    assert done.stdout == "42\n"
    with pytest.raises(SimkitError) as caught:
        ensure(Target("tiny==9", target.folder, target.manifest, "9", "default"), cache=tmp_path / "cache")
    assert caught.value.problem.code == "install-no-version"


@pytest.mark.slow
def test_a_real_installation_without_network(
    target: Target, own_registry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A registry that does not answer, met for real: code, exit code and the way out."""
    for name in ("PIP_INDEX_URL", "UV_INDEX_URL"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/simple")  # the discard port, where nobody listens
    problem = fail(target, tmp_path / "cache").problem
    assert (problem.code, problem.exit_code) == ("install-no-network", ExitCode.TARGET)
    assert "run the same command again" in problem.hint


def test_asides_of_an_installer_are_not_repeated(
    target: Target, installer: Callable[[str], list[Path]], tmp_path: Path
) -> None:
    """Warnings and addresses of package registries say nothing of why it failed."""
    lines = (
        "Looking in indexes: https://user:word@registry.example/simple",
        "WARNING: The index https://registry.example/simple is odd",
        "ERROR: No matching distribution found for tiny==1.0",
    )
    text = "\n".join(lines)
    installer(f"import os, sys; os.makedirs(sys.argv[1]); print({text!r}, file=sys.stderr); sys.exit(1)")
    problem = fail(target, tmp_path / "cache").problem
    assert "No matching distribution" in problem.what
    assert "registry.example" not in problem.what

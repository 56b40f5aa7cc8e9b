"""What is shipped: one wheel with four packages and their data files, no more, and ranges that the lock keeps."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("simkit", "reference_runtime", "scenarios", "conformance")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    (built,) = folder.glob("*.whl")
    return built


def shipped(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if not name.split("/")[0].endswith(".dist-info")}


@pytest.mark.slow
@pytest.mark.repository
def test_wheel_holds_the_four_packages_whole(wheel: Path) -> None:
    """Every file of the four packages is in the wheel, data files too, and nothing else is."""
    wanted = {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and not any(part.startswith((".", "__pycache__")) for part in path.relative_to(ROOT).parts)
    }
    assert shipped(wheel) == wanted


@pytest.mark.slow
@pytest.mark.repository
def test_wheel_names_licence_and_command(wheel: Path) -> None:
    """The wheel carries the licence text and the `simkit` command."""
    with zipfile.ZipFile(wheel) as archive:
        meta = {name.split("/", 1)[1]: name for name in archive.namelist() if ".dist-info/" in name}
        assert "licenses/LICENSE" in meta
        assert "simkit = conformance.cli:main" in archive.read(meta["entry_points.txt"]).decode()


def test_installed_versions_satisfy_the_ranges() -> None:
    """What the lock installed lies in the ranges that the project declares."""
    from packaging.requirements import Requirement

    for line in importlib.metadata.requires("simkit") or []:
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate():
            version = importlib.metadata.version(requirement.name)
            assert requirement.specifier.contains(version, prereleases=True), f"{requirement} has {version}"


@pytest.mark.repository
def test_lock_pins_every_dependency_by_digest() -> None:
    """Each package of the lock has one exact version and at least one digest, so that the set-up fetches nothing else."""
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    entries = re.split(r"\n(?=[a-z0-9])", text[text.index("\n", text.index("make lock")) + 1 :])
    assert len(entries) > 10
    assert not [entry.splitlines()[0] for entry in entries if "==" not in entry or "--hash=sha256:" not in entry]
    for line in importlib.metadata.requires("simkit") or []:
        name = re.split(r"[^A-Za-z0-9-]", line)[0].lower()
        assert f"\n{name}==" in text, f"{name} is not in the lock: make lock"


@pytest.mark.skipif(not os.environ.get("SIMKIT_TESTED_WHEEL"), reason="only when a built wheel is tested")
@pytest.mark.parametrize("package", PACKAGES)
def test_packages_come_from_the_wheel(package: str) -> None:
    """When a wheel is tested, no package comes from a source tree instead."""
    module = __import__(package)
    assert "site-packages" in Path(str(module.__file__)).parts


@pytest.mark.slow
def test_the_command_answers_from_anywhere(tmp_path: Path) -> None:
    """`simkit --help` works in an empty folder and writes nothing to stderr."""
    command = [str(Path(sys.executable).with_name("simkit")), "--help"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "certify" in done.stdout

"""The Pythons of this machine, and an environment with simkit in it for each of them.

`survey()` looks wherever interpreters usually lie, asks each who it is, and tells of those that do not answer; `found()`
is the good ones, oldest first. `environment(python, extras)` is an interpreter that can import simkit and `extras`. It has
the versions of the packages that simkit runs with here, so that two environments differ in the Python alone, and the very
code that runs here, by links: a source checkout's or a wheel's.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from conformance import install
from simkit.errors import ExitCode, Problem, SimkitError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

__all__ = ["Broken", "Python", "Survey", "environment", "found", "survey"]

OLDEST = (3, 11)
_PACKAGES = ("simkit", "conformance", "scenarios", "reference_runtime")
_NAME = re.compile(r"python3(\.\d+)?t?")
_PROBE = (
    "import json, sys; v = sys.version_info; print(json.dumps([sys.implementation.name, list(v[:3]), sys.version, "
    "getattr(sys, '_base_executable', None) or sys.executable]))"
)
_PROBE_S = 20
#: Where the usual tools keep interpreters, below a folder that a variable names or the home folder has.
_MANAGED = (
    ("PYENV_ROOT", ".pyenv", "versions/*/bin"),
    ("UV_PYTHON_INSTALL_DIR", ".local/share/uv/python", "*/bin"),
    ("ASDF_DATA_DIR", ".asdf", "installs/python/*/bin"),
    ("MISE_DATA_DIR", ".local/share/mise", "installs/python/*/bin"),
    ("RYE_HOME", ".rye", "py/*/bin"),
)
_SYSTEM = (
    "/usr/bin",
    "/usr/local/bin",
    "/opt/homebrew/bin",
    "/opt/python*/bin",
    "/Library/Frameworks/Python.framework/Versions/*/bin",
)


@attrs.frozen
class Python:
    """An interpreter that runs."""

    path: Path  # the executable itself, no link and no environment's
    version: tuple[int, int, int]
    text: str = attrs.field(repr=False)  # its `sys.version`

    @property
    def name(self) -> str:
        """For people: `Python 3.12.1`; free-threaded builds say so."""
        kind = " free-threaded" if "free-threading" in self.text else ""
        return f"Python {'.'.join(map(str, self.version))}{kind}"

    @property
    def is_this_one(self) -> bool:
        """Whether it is the one that runs this code."""
        return self.path == _real(getattr(sys, "_base_executable", None) or sys.executable)


@attrs.frozen
class Broken:
    """What is called like a Python of the right age and cannot be used."""

    path: Path
    why: str


@attrs.frozen
class Survey:
    """What there is on this machine."""

    pythons: tuple[Python, ...]  # CPython 3.11 and later, each executable once, oldest first
    broken: tuple[Broken, ...]


def found() -> list[Python]:
    """Every CPython from 3.11 on that was found and runs, this one among them, oldest first."""
    return list(survey().pythons)


def survey(environ: Mapping[str, str] = os.environ) -> Survey:
    """Look for interpreters: on PATH, where the system and the usual version managers keep them, and this one."""
    pythons: dict[Path, Python] = {}
    broken: dict[Path, Broken] = {}
    asked: set[Path] = set()
    for candidate in _candidates(environ):
        real = _real(candidate)
        if real in asked:
            continue
        asked.add(real)
        answer = _ask(real)
        if isinstance(answer, Broken):
            broken[real] = answer
        elif answer is not None:
            pythons.setdefault(answer.path, answer)
    return Survey(
        tuple(sorted(pythons.values(), key=lambda one: (one.version, str(one.path)))),
        tuple(broken[path] for path in sorted(broken)),
    )


def environment(
    python: Python,
    extras: Sequence[str] = (),
    *,
    progress: Callable[[str], None] | None = None,
    cache: Path | None = None,
) -> Path:
    """The interpreter of an environment of `python` that has simkit, what it needs, and `extras` (names for pip).

    Made at first use, which takes a network and some seconds, and kept in the user's cache folder; two at a time make one.
    It follows the code that runs here: what is edited here is edited there. Raises `SimkitError` as `install.provide`
    does, and `pythons-not-installed` when simkit itself was never installed.
    """
    here = _installed_here()
    ours = here["simkit"]
    recipe = install.Recipe(
        name=f"simkit-python{'.'.join(map(str, python.version))}",
        version=ours,
        title=f"simkit on {python.name}",
        asked=f"{python.name} at {python.path}",
        expected=f"packages that are released for {python.name}",
        requirements=(*_requirements(), *extras),
        python=str(python.path),
        identity=f"{'.'.join(map(str, python.version))} {python.path} {python.text}",
        pins=tuple(f"{name}=={here[name]}" for name in _needed(("simkit", *extras), here) if name != "simkit"),
        links=_links(),
    )
    return Path(install.provide(recipe, progress, cache=cache).python)


# ---- looking


def _real(path: Path | str) -> Path:
    return Path(os.path.realpath(path))


def _candidates(environ: Mapping[str, str]) -> Iterator[Path]:
    yield Path(sys.executable)
    home = Path(environ.get("HOME") or Path.home())
    folders = [Path(one) for one in environ.get("PATH", "").split(os.pathsep) if one]
    for variable, default, pattern in _MANAGED:
        root = Path(environ.get(variable) or home / default)
        folders += sorted(root.glob(pattern)) if root.is_dir() else []
    for pattern in _SYSTEM:
        folders += sorted(Path("/").glob(pattern[1:]))
    for folder in folders:
        if folder.name == "shims":  # of a version manager: small scripts that lead to what is looked for anyway
            continue
        try:
            names = sorted(os.listdir(folder))  # noqa: PTH208  # names, of a folder that may not be there
        except OSError:
            continue
        yield from (folder / name for name in names if _NAME.fullmatch(name) and os.access(folder / name, os.X_OK))


def _ask(path: Path) -> Python | Broken | None:
    """Who it is; None when it is no CPython of the right age."""
    name = re.search(r"3\.(\d+)", path.name)
    if name is not None and (3, int(name[1])) < OLDEST:
        return None
    try:
        done = subprocess.run(  # noqa: S603  # a file called python3, asked for its version
            [str(path), "-I", "-S", "-c", _PROBE],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PROBE_S,
            check=False,
            errors="replace",
        )
    except subprocess.TimeoutExpired:
        return Broken(path, f"said nothing within {_PROBE_S} s")
    except OSError as error:
        return Broken(path, str(error.strerror or error))
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no word"])[-1]
        return Broken(path, f"left with {done.returncode}: {last}")
    try:
        implementation, version, text, base = json.loads(done.stdout)
        major, minor, micro = version
    except ValueError:
        return Broken(path, f"answered {done.stdout[:60]!r}")
    if implementation != "cpython" or (major, minor) < OLDEST:
        return None
    return Python(_real(base or path), (major, minor, micro), text)


# ---- what goes in


def _requirements() -> tuple[str, ...]:
    """What simkit needs, as its own metadata says."""
    lines = importlib.metadata.requires("simkit") or []
    return tuple(line for line in lines if "extra ==" not in line)


def _installed_here() -> dict[str, str]:
    """Every distribution of this environment and its version."""
    here = {_canonical(one.metadata["Name"]): one.version for one in importlib.metadata.distributions()}
    if "simkit" not in here:
        raise SimkitError(
            Problem(
                "pythons-not-installed",
                "simkit is not installed in this environment, so what it needs is not known",
                sys.executable,
                "an environment with simkit in it, by `make setup` or `pip install simkit`",
                "",
                ExitCode.USAGE,
            )
        )
    return here


def _needed(names: Sequence[str], here: Mapping[str, str]) -> list[str]:
    """Of the distributions that are here, those that `names` lead to, on whatever Python."""
    todo, needed = [_canonical(name) for name in names], set[str]()
    while todo:
        name = todo.pop()
        if name in here and name not in needed:
            needed.add(name)
            todo += [_canonical(line) for line in importlib.metadata.requires(name) or [] if "extra ==" not in line]
    return sorted(needed)


def _canonical(requirement: str) -> str:
    """The name in a requirement, as the package registry would compare it (PEP 503)."""
    name = re.match(r"[A-Za-z0-9._-]*", requirement.strip())
    assert name is not None
    return re.sub(r"[-_.]+", "-", name[0]).lower()


def _links() -> tuple[Path, ...]:
    """Our packages where they are, and our metadata."""
    folders = [_real(Path(__file__).parent.parent / name) for name in _PACKAGES]
    distribution = importlib.metadata.distribution("simkit")
    info = next((_real(str(one.locate())).parent for one in distribution.files or () if one.name == "METADATA"), None)
    return (*folders, *(() if info is None else (info,)))

"""Environments of targets: one virtual environment per adapter, version and requirements, made on first use and kept.

`ensure(target, progress)` returns the interpreter to run the adapter with; `provide(recipe, progress)` does the same for
whatever else needs an environment (see `pythons`). Environments lie in the user's cache folder
(`SIMKIT_CACHE`, else `XDG_CACHE_HOME/simkit`, else `~/.cache/simkit`) and are used again without any network. A folder
counts as an environment once its marker is there, which is written last; one without it was cut short and is made anew.
A lock file keeps two of us from making the same one. The marker records every version that was resolved.

Made with uv when it is on PATH, else with `venv` and pip.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from simkit.errors import ExitCode, Problem, SimkitError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from conformance.targets import Target

MARKER = "simkit-environment.json"
INSTALL_S_MAX = 20 * 60
LOCK_POLL_S = 0.2
_TAIL_LINES = 12
_PROGRESS_MAX = 100
_VERSIONS = re.compile(r"\(from versions: ([^)]*)\)")
_VERSIONS_SHOWN = 10
_NETWORK = (
    "temporary failure in name resolution",
    "failed to establish a new connection",
    "newconnectionerror",
    "failed to resolve",
    "network is unreachable",
    "connection refused",
    "connecttimeout",
    "read timed out",
    "proxyerror",
    "error sending request",
    "dns error",
    "max retries exceeded",
)
_NO_VERSION = ("no matching distribution found", "no version of", "not found in the package registry")
_FULL = ("no space left on device", "disk quota exceeded")


@attrs.frozen
class Recipe:
    """What an environment is made of, and how to speak of it."""

    name: str
    version: str
    title: str  # for people: "dbos 3.4.0 (default)"
    asked: str  # what the user typed to get it
    expected: str  # what could be installed instead, when there is no such release
    requirements: tuple[str, ...]
    lock: Path | None = None  # every version pinned: installed instead of `requirements`
    python: str = sys.executable  # the interpreter it is made from
    identity: str = sys.version  # what tells that interpreter from others
    pins: tuple[str, ...] = ()  # `name==version`: used for whatever `requirements` need
    links: tuple[Path, ...] = ()  # packages, and their metadata, that are linked into it as they are


@attrs.frozen
class Installed:
    """An environment that is ready."""

    python: str
    packages: tuple[str, ...]  # `name==version`, every one of them; empty when nothing was installed
    folder: Path | None  # None: the kit's own interpreter
    fresh: bool  # made just now


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where environments are kept."""
    if own := environ.get("SIMKIT_CACHE"):
        return Path(own)
    return Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "simkit"


def ensure(target: Target, progress: Callable[[str], None] | None = None, *, cache: Path | None = None) -> Installed:
    """The environment of `target`, made now if need be; blocks meanwhile, and tells `progress` what it is doing.

    Raises `SimkitError`: `install-no-network`, `install-no-version`, `install-failed`, `cache-full`, `cache-unusable`.
    """
    if not target.requirements:
        return Installed(sys.executable, (), None, fresh=False)
    harness = target.manifest.harness
    recipe = Recipe(
        name=target.name,
        version=target.version,
        title=target.title,
        asked=f"-t {target.text}",
        expected=f"a released version, e.g. {harness.name}=={harness.version}",
        requirements=target.requirements,
        lock=target.lock,
    )
    return provide(recipe, progress, cache=cache)


def provide(recipe: Recipe, progress: Callable[[str], None] | None = None, *, cache: Path | None = None) -> Installed:
    """The environment of `recipe`, as `ensure` makes them, with the same errors."""
    progress = progress or _silent
    folder = (cache or cache_folder()) / "environments" / _folder_name(recipe)
    if (ready := _ready(folder)) is not None:
        return ready
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _locked(folder.with_name(f"{folder.name}.lock"), progress):
            return _ready(folder) or _make(recipe, folder, progress)
    except OSError as error:
        raise _cache_problem(error, folder) from error


def _silent(text: str) -> None:
    """Tell nobody."""


def _folder_name(recipe: Recipe) -> str:
    """Distinct for everything that decides what gets installed."""
    parts = [recipe.identity, sysconfig.get_platform(), *recipe.requirements]
    if recipe.lock is not None:
        parts.append(recipe.lock.read_text(encoding="utf-8"))
    parts += [*recipe.pins, *map(str, recipe.links)]
    digest = hashlib.blake2b("\n".join(parts).encode(), digest_size=6).hexdigest()
    name = re.sub(r"[^A-Za-z0-9._-]+|^\.+", "_", recipe.name)  # a name is for people, and may hold anything
    return f"{name}-{recipe.version}-{digest}"


def _ready(folder: Path) -> Installed | None:
    """What is there already, if it is whole: marker present, interpreter not gone with the Python it came from."""
    python = folder / "bin" / "python"
    try:
        packages = json.loads((folder / MARKER).read_text(encoding="utf-8"))["packages"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return Installed(str(python), tuple(packages), folder, fresh=False) if python.exists() else None


@contextlib.contextmanager
def _locked(path: Path, progress: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock file; the system lets go of it however this process ends."""
    with path.open("w") as file:
        told, end = False, time.monotonic() + INSTALL_S_MAX
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise
            if not told:
                progress("another simkit is making this environment; waiting for it")
                told = True
            time.sleep(LOCK_POLL_S)
        yield


def _make(recipe: Recipe, folder: Path, progress: Callable[[str], None]) -> Installed:
    if folder.exists():
        progress(f"an environment in {folder} was left half made; making it anew")
        shutil.rmtree(folder)
    progress(f"installing {' '.join(recipe.requirements)} into {folder}")
    python = str(folder / "bin" / "python")
    pins = folder.with_name(f"{folder.name}.pins.txt")
    try:
        for command in _commands(folder, python, _wanted(recipe, pins), recipe.python):
            _run(command, recipe, progress)
        packages = _freeze(python, recipe)
        _link(python, recipe)
        marker = {"packages": packages, "requirements": recipe.requirements, "python": recipe.identity.split()[0]}
        (folder / MARKER).write_text(json.dumps(marker, indent=1) + "\n", encoding="utf-8")
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    finally:
        pins.unlink(missing_ok=True)
    progress(f"installed {recipe.name} {recipe.version}: {len(packages)} packages")
    return Installed(python, packages, folder, fresh=True)


def _wanted(recipe: Recipe, pins: Path) -> list[str]:
    """What the installer is asked for."""
    if recipe.lock is not None:
        return ["--requirement", str(recipe.lock)]
    if not recipe.pins:
        return list(recipe.requirements)
    pins.write_text("\n".join(recipe.pins) + "\n", encoding="utf-8")
    return ["--constraint", str(pins), *recipe.requirements]


def _link(python: str, recipe: Recipe) -> None:
    if not recipe.links:
        return
    told = _run((python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"), recipe, _silent)
    for path in recipe.links:
        (Path(told[-1]) / path.name).symlink_to(path)


def _commands(
    folder: Path, python: str, wanted: Sequence[str], base: str = sys.executable
) -> tuple[tuple[str, ...], ...]:
    if uv := shutil.which("uv"):
        return (
            (uv, "venv", "--quiet", "--python", base, str(folder)),
            (uv, "pip", "install", "--compile-bytecode", "--python", python, *wanted),
        )
    pip = (python, "-m", "pip", "--disable-pip-version-check", "--no-input")
    return (
        (base, "-m", "venv", str(folder)),
        (*pip, "install", "--retries", "2", "--progress-bar", "off", *wanted),
    )


def _freeze(python: str, recipe: Recipe) -> tuple[str, ...]:
    uv = shutil.which("uv")
    command = (uv, "pip", "freeze", "--python", python) if uv else (python, "-m", "pip", "freeze")
    lines = _run(command, recipe, _silent)
    return tuple(sorted(line for line in lines if "==" in line and not line.startswith(("#", "WARNING"))))


def _run(command: Sequence[str], recipe: Recipe, progress: Callable[[str], None]) -> list[str]:
    """Run one command to its end, line by line; its output, or a `SimkitError` that says what went wrong."""
    environ = {
        name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}
    }
    lines: list[str] = []
    # In a session of its own: Ctrl-C is for us, who then end all of it, and no installer is taken to have failed by it.
    process = subprocess.Popen(  # noqa: S603 - every word of it is ours or the manifest's
        command,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    watchdog = threading.Timer(INSTALL_S_MAX, _end, (process,))
    watchdog.daemon = True
    watchdog.start()
    try:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line.rstrip())
            if line.startswith(("Collecting", "Downloading", "Installing", "Resolved", "Prepared", " Downloading")):
                progress(line.partition(" (from ")[0].strip()[:_PROGRESS_MAX])
        process.wait()
    finally:
        watchdog.cancel()
        if process.poll() is None:
            _end(process)
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
    if process.returncode != 0:
        raise SimkitError(_diagnose(command, lines, recipe))
    return lines


def _end(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


# -- what can go wrong ------------------------------------------------------------------------------------------------


def _diagnose(command: Sequence[str], lines: Sequence[str], recipe: Recipe) -> Problem:
    """What an installer's last words mean."""
    text = "\n".join(lines).lower()
    wanted = " ".join(recipe.requirements)
    tail = "\n".join(f"    | {line}" for line in _telling(lines)[-_TAIL_LINES:])
    if any(sign in text for sign in _FULL):
        return _full(f"installing {wanted}")
    if any(sign in text for sign in _NETWORK):
        return Problem(
            "install-no-network",
            f"cannot install {wanted}: no package registry answers\n{tail}",
            f"first use of {recipe.title}",
            "a network connection, once; afterwards the environment is used again without one",
            "connect and run the same command again, or point pip at a registry you can reach (PIP_INDEX_URL, UV_INDEX_URL)",
            ExitCode.TARGET,
        )
    if any(sign in text for sign in _NO_VERSION):
        return Problem(
            "install-no-version",
            f"cannot install {wanted}: the package registry has no such release\n{_VERSIONS.sub(_last_versions, tail)}",
            recipe.asked,
            recipe.expected,
            "",
            ExitCode.USAGE,
        )
    hint = "run the command by hand to see all of its output"
    if "ensurepip" in text:
        hint = "this Python comes without venv: install the system's python3-venv package, or uv"
    what = f"cannot install {wanted}: {Path(command[0]).name} failed\n{tail}"
    return Problem("install-failed", what, " ".join(command), "an exit code of 0", hint, ExitCode.TARGET)


#: How an installer begins lines that say nothing of why it failed, and name registries that are nobody's business here.
_ASIDES = ("WARNING:", "warning:", "Looking in indexes:", "Looking in links:", "[notice]")


def _telling(lines: Sequence[str]) -> list[str]:
    return [line for line in lines if not line.strip().startswith(_ASIDES)]


def _last_versions(found: re.Match[str]) -> str:
    """The end of what may be a list of hundreds."""
    versions = found[1].split(", ")
    left_out = "…, " if len(versions) > _VERSIONS_SHOWN else ""
    return f"(from versions: {left_out}{', '.join(versions[-_VERSIONS_SHOWN:])})"


def _full(doing: str) -> Problem:
    return Problem(
        "cache-full",
        f"no space left while {doing}",
        str(cache_folder()),
        "room for a virtual environment, up to a few hundred megabytes",
        "free some space, or choose another place with SIMKIT_CACHE=DIR; what was half made is gone again",
        ExitCode.TARGET,
    )


def _cache_problem(error: OSError, folder: Path) -> SimkitError:
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return SimkitError(_full(f"making {folder}"))
    return SimkitError(
        Problem(
            "cache-unusable",
            f"cannot make an environment: {error.strerror or error}",
            str(error.filename or folder),
            "a folder this user may create files in",
            "change its permissions, or choose another place with SIMKIT_CACHE=DIR",
            ExitCode.TARGET,
        )
    )

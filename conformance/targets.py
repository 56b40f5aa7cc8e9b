"""Targets: what `-t` may name, made into a checked value.

    reference                     an adapter that comes with simkit, at the version its manifest names
    dbos==3.4.0                   the same at another released version
    reference:replay              one of its configurations, as --config names it; also dbos==3.4.0:exit
    path/to/adapter.toml          an adapter of your own, or the folder that holds its manifest

`parse` reads one and chooses the configuration; `Target` says how its processes are started and what is claimed of it.
"""

from __future__ import annotations

import difflib
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from conformance.manifest import FILE, Manifest, load
from conformance.manifest_checks import nearest
from simkit.errors import ExitCode, Problem, SimkitError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.manifest import Claim

ADAPTERS = Path(__file__).parent / "adapters"
HELPER = Path(__file__).parent / "helper"
_PARTS = re.compile(r"(?P<name>[A-Za-z0-9_.-]+?)(==(?P<version>[A-Za-z0-9_.+!-]+))?")


@attrs.frozen
class Target:
    """One configuration of one version of a harness, and the adapter that leads to it."""

    text: str  # as the user named it
    folder: Path
    manifest: Manifest
    version: str
    configuration: str
    path: Path | None = None  # the manifest, absolute, where it was named by a path: a case finds it from any folder

    @property
    def name(self) -> str:
        return self.manifest.harness.name

    @property
    def title(self) -> str:
        """For people: `dbos 3.4.0 (default)`."""
        return f"{self.name} {self.version} ({self.configuration})"

    @property
    def claims(self) -> Mapping[str, Claim]:
        return self.manifest.claims_of(self.configuration)

    @property
    def requirements(self) -> tuple[str, ...]:
        """What pip is asked for; empty when the adapter needs nothing beyond the kit's own interpreter."""
        return tuple(one.replace("{version}", self.version) for one in self.manifest.install.pip)

    @property
    def lock(self) -> Path | None:
        """Every version pinned, if the adapter has such a file for this version: `requirements-<version>.txt`."""
        path = self.folder / f"requirements-{self.version}.txt"
        return path if path.is_file() else None

    def command(self, unit: str, python: str = sys.executable) -> tuple[str, ...]:
        """The command of a unit, to be run in `folder`."""
        return tuple(word.replace("{python}", python) for word in self.manifest.units[unit].command)

    def environment(self, unit: str) -> Mapping[str, str]:
        """What a unit finds in its environment beside what the world adds (state folder, services)."""
        return {
            **self.manifest.configurations[self.configuration].env,
            **self.manifest.units[unit].env,
            "PYTHONPATH": str(HELPER),
            "SIMKIT_CONFIGURATION": self.configuration,
            "SIMKIT_CALL_TIMEOUT_MS": str(self.manifest.limits.call_timeout_ms),
        }

    def describe(self) -> Mapping[str, Any]:
        """The target as a case and a certificate record it."""
        harness, limits = self.manifest.harness, attrs.asdict(self.manifest.limits)
        return {
            "target": self.text,
            **({} if self.path is None else {"path": str(self.path)}),
            "name": harness.name,
            "version": self.version,
            "configuration": self.configuration,
            "storage": harness.storage,
            "recovery": harness.recovery,
            "early_signal": harness.early_signal,
            "limits": limits,
            "settings": dict(self.manifest.settings),
        }


def shipped(adapters: Path = ADAPTERS) -> tuple[str, ...]:
    """The adapters that come with simkit, by name."""
    return tuple(sorted(path.parent.name for path in adapters.glob(f"*/{FILE}")))


def parse(text: str, configuration: str | None = None, *, adapters: Path = ADAPTERS) -> Target:
    """Read a target. Raises `SimkitError` when there is no such adapter, or its manifest, version or configuration is off."""
    whole, text = text, _without_configuration(text, adapters)
    if whole != text:
        configuration = _one_configuration(whole, whole.removeprefix(f"{text}:"), configuration)
    if ":" in text and not Path(text).exists():
        raise _unsupported(text)
    found = _shipped(text, adapters)
    if found is None and not _looks_like_path(text):
        raise _not_found(text, text.partition("==")[0], adapters)
    folder, version = found or (_folder(Path(text), text, adapters), None)
    path = Path(text) if found is None and Path(text).is_file() else folder / FILE
    manifest = load(path)
    if version is not None and not any("{version}" in one for one in manifest.install.pip):
        expected = f"-t {text.partition('==')[0]}"
        what = f"{folder.name} has no released versions to choose from"
        raise _usage("target-version", what, f"-t {text}", expected, "leave the version out")
    chosen = _configuration(manifest, configuration, path)
    typed = path.absolute() if found is None else None
    return Target(text, folder, manifest, version or manifest.harness.version, chosen, typed)


def _without_configuration(text: str, adapters: Path) -> str:
    """`text` up to the colon, where what stands there is a shipped adapter; else all of it."""
    before = text.rpartition(":")[0]
    return before if before and _shipped(before, adapters) is not None else text


def _one_configuration(text: str, named: str, option: str | None) -> str:
    """The configuration named behind the colon. Raises SimkitError when there is none, or `option` names another."""
    if not named:
        expected, hint = f"{text}NAME", "leave the colon out for the configuration that [harness] names"
        raise _usage("configuration-unknown", "no configuration stands behind the colon", f"-t {text}", expected, hint)
    if option and named != option:
        what = f"two configurations: {named} behind the colon and {option} by --config"
        raise _usage(
            "configuration-twice", what, f"-t {text} --config {option}", "one of them", "leave one of them out"
        )
    return named


def _shipped(text: str, adapters: Path) -> tuple[Path, str | None] | None:
    parts = _PARTS.fullmatch(text)
    if parts is None or not (adapters / parts["name"] / FILE).is_file():
        return None
    return adapters / parts["name"], parts["version"]


def _looks_like_path(text: str) -> bool:
    return "/" in text or text.endswith(".toml") or (Path(text) / FILE).is_file()


def _folder(path: Path, text: str, adapters: Path) -> Path:
    """The folder of the adapter at `path`, which names its manifest or the folder itself."""
    if path.is_file():
        return path.parent.resolve()
    if (path / FILE).is_file():
        return path.resolve()
    raise _not_found(text, path.stem, adapters)


def _configuration(manifest: Manifest, wanted: str | None, path: Path) -> str:
    chosen = wanted or manifest.harness.configuration
    if chosen in manifest.configurations:
        return chosen
    known = ", ".join(manifest.configurations)
    what = f"{manifest.harness.name} has no configuration {chosen!r}{nearest(chosen, manifest.configurations)}"
    hint = "the manifest lists them; without --config it is the one that [harness] names"
    raise _usage("configuration-unknown", what, f"{path}: [configurations]", f"one of {known}", hint)


def _not_found(text: str, name: str, adapters: Path) -> SimkitError:
    path = Path(text)
    where = path.absolute() if _looks_like_path(text) else f"-t {text}"
    near = _near(path) if _looks_like_path(text) else []
    hint = f"did you mean {' or '.join(near)}?" if near else "`simkit list adapters` shows those that come with it"
    what = f"there is no adapter {text!r}{nearest(name, shipped(adapters))}"
    if _looks_like_path(text):
        what = f"there is no {FILE} in {text!r}" if path.is_dir() else f"there is no such file: {text}"
    return _usage("adapter-not-found", what, str(where), "the name of an adapter, or the path of an adapter.toml", hint)


def _near(path: Path) -> list[str]:
    """Manifests that somebody who typed `path` may have meant: in its folder, or in one with nearly that name."""
    if (path.parent / FILE).is_file():
        return [str(path.parent / FILE)]
    folder = path.parent if path.suffix == ".toml" else path
    if not folder.parent.is_dir() or not folder.name:
        return []
    names = [one.name for one in folder.parent.iterdir() if (one / FILE).is_file()]
    return [str(folder.parent / name / FILE) for name in difflib.get_close_matches(folder.name, sorted(names), n=2)]


def _unsupported(text: str) -> SimkitError:
    kind = text.partition(":")[0]
    if kind == "py":
        what = "an adapter inside simkit's own process (py:…) cannot be killed, so nothing could be found out about it"
        hint = (
            "put it into a program of its own with `simkit_adapter.serve(Adapter())` and a manifest: docs/adapters.md"
        )
    else:
        what = f"{kind} is no adapter that comes with simkit, and only those take a configuration behind a colon"
        hint = "`simkit list adapters` shows those that come with it; for others there is --config"
    return _usage("target-unsupported", what, f"-t {text}", "name, name==version, name:configuration, or a path", hint)


def _usage(code: str, what: str, where: str, expected: str, hint: str = "") -> SimkitError:
    return SimkitError(Problem(code, what, where, expected, hint, ExitCode.USAGE))

"""The proof of the judges: every mutant of the reference runtime, run in simulation until its own obligation catches it.

A certificate states how many mutants this build caught; an obligation with a surviving mutant is an unproven check. The
proof costs seconds to minutes and depends only on the files of the four packages and what they run on, so it is kept in the
user's cache folder under the digest of these.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

import conformance
import reference_runtime
import scenarios
import simkit
from conformance import install
from conformance.campaign import matrix
from conformance.files import write_atomic
from conformance.mutants import all_mutants
from scenarios.obligations import OBLIGATIONS
from simkit.errors import SimkitError

if TYPE_CHECKING:
    from types import ModuleType

_PACKAGES: tuple[ModuleType, ...] = (simkit, reference_runtime, scenarios, conformance)


@attrs.frozen
class Proof:
    """For each mutant the first run in which its own obligation caught it, or None. Not `whole`: cut short."""

    caught: Mapping[str, str | None]
    whole: bool = True

    @property
    def total(self) -> int:
        return len(self.caught)

    @property
    def count(self) -> int:
        return sum(run is not None for run in self.caught.values())

    def uncaught(self) -> dict[str, tuple[str, ...]]:
        """Surviving mutants by obligation; an obligation without any mutant is unproven too."""
        survivors: dict[str, list[str]] = {}
        for name, one in all_mutants().items():
            if self.caught.get(name) is None:
                survivors.setdefault(one.obligation, []).append(name)
        proven = {one.obligation for one in all_mutants().values()}
        missing = {id_: ("no mutant",) for id_ in OBLIGATIONS if id_ not in proven}
        return {**missing, **{id_: tuple(names) for id_, names in survivors.items()}}


def prove(
    progress: Callable[[str], None],
    stopping: Callable[[], bool],
    *,
    jobs: int | None = None,
    cache: Path | None = None,
) -> Proof:
    """The proof of this build: read from the cache, or made now. One cut short catches no more, and is not kept."""
    path = (cache or install.cache_folder()) / "proofs" / f"{build_digest()}.json"
    if (kept := _read(path)) is not None:
        return kept
    names = tuple(all_mutants())
    caught: dict[str, str | None] = {}
    progress(f"proving the judges by {len(names)} mutants")
    for one in matrix.examine_all(names, matrix.Runs(), jobs, stopping):
        caught[one.mutant] = f"{one.scenario} with seed {one.seed}" if one.outcome == "caught" else None
        progress(f"proving the judges: mutant {len(caught)} of {len(names)}, {one.mutant}")
    if len(caught) < len(names):
        return Proof({**dict.fromkeys(names), **caught}, whole=False)
    proof = Proof(caught)
    try:
        write_atomic(path, json.dumps(caught, indent=1) + "\n")
    except SimkitError:
        progress("the proof could not be kept; it will be made again next time")
    return proof


def build_digest() -> str:
    """The digest of all that the proof hangs on: every file of the four packages, manifests among them, this Python, and
    what they are built on.
    """
    digest = hashlib.blake2b("\n".join((sys.version, *_dependencies())).encode(), digest_size=12)
    for package in _PACKAGES:
        assert package.__file__ is not None
        root = Path(package.__file__).parent
        for path in sorted(path for path in root.rglob("*") if path.is_file() and "__pycache__" not in path.parts):
            digest.update(str(path.relative_to(root.parent)).encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _dependencies() -> list[str]:
    """What the kit is built on, with the versions that are installed."""
    wanted = (re.match(r"[\w.-]+", one) for one in metadata.requires("simkit") or () if "extra ==" not in one)
    return sorted(f"{one[0]}=={metadata.version(one[0])}" for one in wanted if one is not None)


def _read(path: Path) -> Proof | None:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return Proof({str(name): None if run is None else str(run) for name, run in data.items()})
    except (OSError, ValueError, AttributeError, TypeError):
        return None

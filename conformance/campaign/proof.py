"""The proof of the judges: every mutant of the reference runtime, run in simulation until its own obligation catches it.

A certificate states how many mutants this build caught; an obligation with a surviving mutant is an unproven check. The
proof costs some seconds and depends only on the code of the four packages, so it is kept in the user's cache folder
under their digest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

import conformance
import reference_runtime
import scenarios
import simkit
from conformance import install, targets
from conformance.files import write_atomic
from conformance.mutants import all_mutants
from conformance.simulate import simulate
from scenarios.obligations import OBLIGATIONS
from simkit.errors import SimkitError

if TYPE_CHECKING:
    from types import ModuleType

#: A mutant that survives this many seeds is not caught.
SEEDS_MAX = 500
_PACKAGES: tuple[ModuleType, ...] = (simkit, reference_runtime, scenarios, conformance)


@attrs.frozen
class Proof:
    """For each mutant the first seed in which its own obligation caught it, or None. Not `whole`: cut short."""

    caught: Mapping[str, int | None]
    whole: bool = True

    @property
    def total(self) -> int:
        return len(self.caught)

    @property
    def count(self) -> int:
        return sum(seed is not None for seed in self.caught.values())

    def uncaught(self) -> dict[str, tuple[str, ...]]:
        """Surviving mutants by obligation; an obligation without any mutant is unproven too."""
        survivors: dict[str, list[str]] = {}
        for name, one in all_mutants().items():
            if self.caught.get(name) is None:
                survivors.setdefault(one.obligation, []).append(name)
        proven = {one.obligation for one in all_mutants().values()}
        missing = {id_: ("no mutant",) for id_ in OBLIGATIONS if id_ not in proven}
        return {**missing, **{id_: tuple(names) for id_, names in survivors.items()}}


def prove(progress: Callable[[str], None], stopping: Callable[[], bool], *, cache: Path | None = None) -> Proof:
    """The proof of this build: read from the cache, or made now. One cut short catches no more, and is not kept."""
    path = (cache or install.cache_folder()) / "proofs" / f"{build_digest()}.json"
    if (kept := _read(path)) is not None:
        return kept
    caught: dict[str, int | None] = {}
    for number, name in enumerate(all_mutants(), 1):
        if stopping():
            return Proof({**dict.fromkeys(all_mutants()), **caught}, whole=False)
        progress(f"proving the judges: mutant {number} of {len(all_mutants())}, {name}")
        caught[name] = first_caught(name)
    proof = Proof(caught)
    try:
        write_atomic(path, json.dumps(caught, indent=1) + "\n")
    except SimkitError:
        progress("the proof could not be kept; it will be made again next time")
    return proof


def first_caught(name: str, seeds_max: int = SEEDS_MAX) -> int | None:
    """The first seed in which the mutant's own obligation is violated, or None."""
    mutant = all_mutants()[name]
    judge = OBLIGATIONS[mutant.obligation].judge
    target = targets.parse("reference")
    for seed in range(seeds_max):
        try:
            seen = simulate(target, seed, mutant=name).observation
        except SimkitError:
            continue  # what could not be judged caught nothing
        if judge(seen.history).violations:
            return seed
    return None


def build_digest() -> str:
    """The digest of every module of the four packages."""
    digest = hashlib.blake2b(digest_size=12)
    for package in _PACKAGES:
        assert package.__file__ is not None
        root = Path(package.__file__).parent
        for path in sorted(root.rglob("*.py")):
            digest.update(str(path.relative_to(root.parent)).encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _read(path: Path) -> Proof | None:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return Proof({str(name): None if seed is None else int(seed) for name, seed in data.items()})
    except (OSError, ValueError, AttributeError, TypeError):
        return None

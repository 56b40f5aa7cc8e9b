"""The proof of the judges: every mutant of the reference runtime, run in simulation until its own obligation catches it.

A certificate states how many mutants this build caught; an obligation with a surviving mutant is an unproven check. The
proof costs some seconds and depends only on the code of the four packages, so it is kept in the user's cache folder
under their digest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
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
from scenarios import catalogue
from scenarios.obligations import OBLIGATIONS
from simkit.errors import SimkitError

if TYPE_CHECKING:
    from types import ModuleType

    from conformance.mutants import Mutant
    from conformance.targets import Target
    from scenarios.interruption import Scenario
    from scenarios.obligations.registry import Judge

#: Schedules tried of the scenario that a mutant is shown by.
SCHEDULES_MAX = 10
#: A mutant that survives this many drawn seeds too is not caught.
SEEDS_MAX = 500
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


def prove(progress: Callable[[str], None], stopping: Callable[[], bool], *, cache: Path | None = None) -> Proof:
    """The proof of this build: read from the cache, or made now. One cut short catches no more, and is not kept."""
    path = (cache or install.cache_folder()) / "proofs" / f"{build_digest()}.json"
    if (kept := _read(path)) is not None:
        return kept
    caught: dict[str, str | None] = {}
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


def first_caught(name: str, seeds_max: int = SEEDS_MAX) -> str | None:
    """The first run in which the mutant's own obligation is violated, and is not by the runtime as it is; None without one.

    First the scenario the mutant says it is shown by, under a few schedules, then `seeds_max` drawn scenarios.
    """
    mutant = all_mutants()[name]
    judge = OBLIGATIONS[mutant.obligation].judge
    target = targets.parse("reference")
    for scenario, seed in _attempts(mutant, seeds_max):
        if _blames(judge, target, seed, scenario, name) and not _blames(judge, target, seed, scenario, None):
            return f"seed {seed}" if scenario is None else f"{scenario.name} with seed {seed}"
    return None


def _attempts(mutant: Mutant, seeds_max: int) -> Iterator[tuple[Scenario | None, int]]:
    shown_by = catalogue.by_name(mutant.shown_by)
    if shown_by is not None:
        yield from ((shown_by, seed) for seed in range(SCHEDULES_MAX))
    yield from ((None, seed) for seed in range(seeds_max))


def _blames(judge: Judge, target: Target, seed: int, scenario: Scenario | None, mutant: str | None) -> bool:
    try:
        seen = simulate(target, seed, scenario=scenario, mutant=mutant).observation
    except SimkitError:
        return False  # what could not be judged catches nothing
    return bool(judge(seen.history).violations)


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
        return Proof({str(name): None if run is None else str(run) for name, run in data.items()})
    except (OSError, ValueError, AttributeError, TypeError):
        return None

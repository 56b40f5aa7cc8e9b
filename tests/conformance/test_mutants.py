"""Mutants and the proof they make: each is caught by its own obligation, the runtime itself never is, nothing stays broken."""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs
import pytest

import reference_runtime
from conformance import mutants, targets
from conformance.campaign import matrix, proof
from conformance.campaign.matrix import Runs, examine, examine_one
from conformance.campaign.proof import Proof, prove
from conformance.events import MutantJudged
from conformance.mutants import Mutant, Patch, all_mutants, applied, find
from reference_runtime import schema
from reference_runtime.store import Store
from scenarios import catalogue
from scenarios.obligations import OBLIGATIONS
from simkit.errors import SimkitError

NAMES = tuple(all_mutants())
#: What the issue promises: a mutant shows itself in so many seeds.
SEEDS = 500
#: Mutants of promises that any drawn plan may meet; what breaks others shows in stories, of which seeds draw one in hundreds.
BASIC = tuple(name for name, one in all_mutants().items() if one.apply.__module__ == "conformance.mutants.catalogue")
#: The first of each group of promises; the others are left to the night.
FIRST = frozenset({all_mutants()[name].obligation.partition("-")[0]: name for name in reversed(BASIC)}.values())


# ---- caught


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_mutant_is_caught_in_the_scenario_it_names(name: str) -> None:
    """By its own obligation, which does not blame the unbroken runtime in the same run."""
    found = examine(name, Runs(seeds_max=0))
    assert found is not None
    assert (found.outcome, found.scenario) == ("caught", all_mutants()[name].shown_by)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=() if one in FIRST else pytest.mark.nightly) for one in BASIC]
)
def test_a_mutant_is_caught_by_drawn_seeds(name: str) -> None:
    """Nobody tells the seeds where to look."""
    untold = attrs.evolve(all_mutants()[name], shown_by="")
    found = examine_one(untold, Runs(seeds_max=SEEDS), lambda: False)
    assert found is not None
    assert (found.outcome, found.scenario) == ("caught", f"seed/{found.seed}")


def test_every_obligation_has_a_mutant_of_its_own() -> None:
    """A judge without one would be an unproven check."""
    assert {one.obligation for one in all_mutants().values()} == set(OBLIGATIONS)


@pytest.mark.parametrize("name", NAMES)
def test_a_mutant_says_what_it_breaks_and_where_that_shows(name: str) -> None:
    """In one sentence, and by a scenario the reference runtime can be put through."""
    mutant = all_mutants()[name]
    assert mutant.change.endswith(".")
    shown_by = catalogue.by_name(mutant.shown_by)
    assert shown_by is not None
    assert shown_by.plan.needs() <= set(targets.parse("reference").manifest.operations.supported)


# ---- patches


def _everything() -> dict[tuple[str, str], object]:
    """Every attribute of every module and class of the runtime."""
    modules: list[ModuleType] = [
        importlib.import_module(f"reference_runtime.{one.name}")
        for one in pkgutil.iter_modules(reference_runtime.__path__)
        if one.name != "__main__"
    ]
    owners: dict[str, Any] = {module.__name__: module for module in modules}
    for module in modules:
        owners |= {f"{module.__name__}.{name}": one for name, one in vars(module).items() if isinstance(one, type)}
    return {(owner, name): value for owner, one in owners.items() for name, value in vars(one).items()}


@pytest.mark.parametrize("name", NAMES)
def test_a_mutant_changes_something_and_leaves_nothing_behind(name: str) -> None:
    """After the block every attribute of the runtime is the very object it was."""
    before = _everything()
    with applied(name):
        assert any(value is not before.get(key) for key, value in _everything().items())
    after = _everything()
    assert after.keys() == before.keys()
    assert all(after[key] is value for key, value in before.items())


def test_no_mutant_changes_nothing() -> None:
    """The block without a mutant is the runtime as it is."""
    before = _everything()
    with applied(None):
        assert all(value is before[key] for key, value in _everything().items())


def test_an_error_inside_the_block_leaves_nothing_behind() -> None:
    """A run that fails does not leave the runtime broken for the next."""
    before = schema.PRAGMAS
    with pytest.raises(ValueError, match="oops"), applied("synchronous-off"):
        raise ValueError("oops")
    assert schema.PRAGMAS is before


def test_a_mutant_whose_target_is_gone_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would break nothing and survive for ever; what it had replaced before is put back."""
    before = schema.PRAGMAS

    def broken(patch: Patch) -> None:
        patch.replace(schema, "PRAGMAS", None)
        patch.replace(schema, "renamed_long_ago", None)

    monkeypatch.setitem(mutants._REGISTRY, "broken", Mutant("broken", "DUR-6", "Breaks.", broken))
    with pytest.raises(AttributeError, match="renamed_long_ago"), applied("broken"):
        pass
    assert schema.PRAGMAS is before


def test_what_is_inherited_is_broken_where_it_is_defined() -> None:
    """Otherwise putting it back would leave a copy in the heir."""
    with pytest.raises(AttributeError, match="of its own"):
        Patch().replace(type("Heir", (Store,), {}), "reclaim", None)


def test_replacements_are_undone_last_first() -> None:
    """Two of one attribute give back the first original."""

    class Thing:
        part = "whole"

    patch = Patch()
    patch.replace(Thing, "part", "cracked")
    patch.replace(Thing, "part", "broken")
    assert Thing.part == "broken"
    patch.undo()
    assert Thing.part == "whole"


def test_an_unknown_mutant_is_told_with_the_nearest() -> None:
    """As a mistake in usage."""
    with pytest.raises(SimkitError) as caught:
        find("no-keys")
    assert caught.value.problem.code == "mutant-unknown"
    assert "did you mean no-key?" in caught.value.problem.hint


# ---- the proof


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Two mutants, one of which survives; lists the attempts."""
    found = {name: all_mutants()[name] for name in ("no-key", "never-reassign")}
    asked: list[str] = []

    def examined(names: Sequence[str], *_: object) -> Iterator[MutantJudged]:
        for name in names:
            asked.append(name)
            outcome: Any = "caught" if name == "no-key" else "survived"
            yield MutantJudged(name, found[name].obligation, outcome, "seed/1", 1)

    monkeypatch.setattr(proof, "all_mutants", lambda: found)
    monkeypatch.setattr(matrix, "examine_all", examined)
    return asked


def test_a_proof_counts_and_names_the_survivors(two: list[str], tmp_path: Path) -> None:
    """An obligation is unproven when a mutant of it survives, and when it has none."""
    told: list[str] = []
    made = prove(told.append, lambda: False, cache=tmp_path)
    assert (made.count, made.total, made.whole) == (1, 2, True)
    uncaught = made.uncaught()
    assert uncaught["DUR-6"] == ("never-reassign",)
    assert uncaught["DUR-1"] == ("no mutant",)
    assert "EFF-1" not in uncaught
    assert told == [
        "proving the judges by 2 mutants",
        "proving the judges: mutant 1 of 2, no-key",
        "proving the judges: mutant 2 of 2, never-reassign",
    ]


def test_a_proof_is_made_once_for_each_build(two: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read from the cache while not a byte of the code has changed."""
    made = prove(lambda _: None, lambda: False, cache=tmp_path)
    assert prove(lambda _: None, lambda: False, cache=tmp_path) == made
    assert len(two) == 2
    monkeypatch.setattr(proof, "build_digest", lambda: "another")
    prove(lambda _: None, lambda: False, cache=tmp_path)
    assert len(two) == 4


@pytest.mark.parametrize("text", ["", "[1]", '{"no-key": ', "null"])
def test_a_broken_cache_is_made_anew(two: list[str], tmp_path: Path, text: str) -> None:
    """Whatever stands in it."""
    prove(lambda _: None, lambda: False, cache=tmp_path)
    (file,) = (tmp_path / "proofs").iterdir()
    file.write_text(text, encoding="utf-8")
    prove(lambda _: None, lambda: False, cache=tmp_path)
    assert len(two) == 4
    assert json.loads(file.read_text(encoding="utf-8")) == {"no-key": "seed/1 with seed 1", "never-reassign": None}


def test_a_cache_that_cannot_be_written_is_told(two: list[str], tmp_path: Path) -> None:
    """The proof holds all the same."""
    (tmp_path / "proofs").write_text("a file where a folder should be", encoding="utf-8")
    told: list[str] = []
    assert prove(told.append, lambda: False, cache=tmp_path).count == 1
    assert told[-1] == "the proof could not be kept; it will be made again next time"


def test_a_proof_cut_short_counts_what_it_has_and_is_not_kept(
    two: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest is not caught, and the next campaign begins anew."""
    one = MutantJudged("no-key", "EFF-1", "caught", "seed/1", 1)
    monkeypatch.setattr(matrix, "examine_all", lambda *_: iter([one]))
    made = prove(lambda _: None, lambda: True, cache=tmp_path)
    assert made == Proof({"no-key": "seed/1 with seed 1", "never-reassign": None}, whole=False)
    assert not (tmp_path / "proofs").exists()


def test_the_build_digest_changes_with_every_module(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A changed, a renamed and a new module are each another build."""
    package = tmp_path / "toy"
    package.mkdir()
    (package / "__init__.py").write_text("")
    toy = ModuleType("toy")
    toy.__file__ = str(package / "__init__.py")
    monkeypatch.setattr(proof, "_PACKAGES", (toy,))
    seen = [proof.build_digest()]
    (package / "one.py").write_text("1")
    seen.append(proof.build_digest())
    (package / "one.py").write_text("2")
    seen.append(proof.build_digest())
    (package / "one.py").rename(package / "two.py")
    seen.append(proof.build_digest())
    assert len(set(seen)) == 4

"""What the world of real processes covers of a target, and what a certificate says of the rest."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from conformance import targets
from conformance.campaign import cover, real
from conformance.campaign.cover import uncovered
from conformance.campaign.docket import Docket, origin_of
from conformance.store import Store
from scenarios.interruption import SIMULATED_ACTIONS
from scenarios.obligations import OBLIGATIONS

REFERENCE = targets.parse("reference")


def without_clocks() -> targets.Target:
    """The reference runtime, as if none of its units followed a clock that can be set."""
    units = {name: attrs.evolve(unit, clock=False) for name, unit in REFERENCE.manifest.units.items()}
    return attrs.evolve(REFERENCE, manifest=attrs.evolve(REFERENCE.manifest, units=units))


def test_everything_of_the_reference_runtime_is_covered() -> None:
    """Its clock can be set, and its store damaged: there is a scenario in tier core for each."""
    assert uncovered(REFERENCE) == {}
    core = {
        link.action for one in real.scenarios(REFERENCE, "core") for top in one.interruptions for link in top.chain()
    }
    assert "jump" in core
    assert "flip" in core


def test_what_no_scenario_can_do_is_told_with_what_is_missing() -> None:
    """A clock that cannot be set; a store that is the worker's own."""
    assert list(uncovered(without_clocks())) == ["OWN-6"]
    assert "clock = true" in uncovered(without_clocks())["OWN-6"]
    assert list(uncovered(targets.parse("naive"))) == ["OWN-6", "DUR-11"]


def test_a_disk_that_cannot_be_filled_leaves_its_promise_covered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bit can be turned over on any machine."""
    monkeypatch.setattr("conformance.possible.CAN_BE_TAKEN", False)
    assert uncovered(REFERENCE) == {}


def test_only_what_a_real_world_may_lack_is_ever_uncovered() -> None:
    """An obligation that ordinary interruptions put to the test is inconclusive where they did not."""
    for id_, needed in cover.NEEDED.items():
        assert id_ in OBLIGATIONS
        assert set(needed) & SIMULATED_ACTIONS


def test_the_verdict_of_what_is_not_covered(tmp_path: Path) -> None:
    """Told as such, and never granted; what the target does not claim stays not-claimed."""
    target, store = without_clocks(), Store(tmp_path)
    docket = Docket(target, origin_of(target, "process"), store, lambda _: None)
    verdicts = docket.verdicts(uncovered=uncovered(target))
    assert verdicts["OWN-6"].outcome == "not-covered"
    assert verdicts["OWN-4"].outcome == "inconclusive"
    naive = targets.parse("naive")
    unclaimed = Docket(naive, origin_of(naive, "process"), store, lambda _: None).verdicts(uncovered=uncovered(naive))
    assert (unclaimed["OWN-6"].outcome, unclaimed["DUR-11"].outcome) == ("not-claimed", "not-covered")

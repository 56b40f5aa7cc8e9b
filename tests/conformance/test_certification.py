"""What `certify` makes of runs can be read back: whatever came of them, nothing in it contradicts the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

from conformance import certificate as c
from conformance.campaign import certification, proof, real
from conformance.campaign.docket import Judged
from conformance.install import Installed
from conformance.mutants import all_mutants
from conformance.store import Store
from scenarios.interruption import Scenario
from scenarios.obligations import OBLIGATIONS
from scenarios.requirements import DRAFTS, REQUIREMENT_SETS
from scenarios.verdict import Finding, Violation
from simkit.errors import Problem

HELD, NOTHING, SLOW = Finding(9), Finding(), Finding(9, slow=True)
BROKEN = Finding(2, (Violation("stuck", "it was stuck", ()),) * 2)
BLAMED_ONLY = Finding(0, (Violation("torn view", "it was torn", ()),))

#: What each obligation shows in a run, by its place in the catalogue.
OUTCOMES: Mapping[str, Callable[[int], Finding]] = {
    "held": lambda _place: HELD,
    "nothing": lambda _place: NOTHING,
    "mixed": lambda place: (HELD, NOTHING, BROKEN, SLOW, BLAMED_ONLY)[place % 5],
    "mixed otherwise": lambda place: (BROKEN, HELD, HELD)[place % 3],
}


@pytest.fixture
def certified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., c.Certificate]:
    """Certifies the reference runtime by runs that show this."""

    def certify(
        shown: Callable[[int], Finding], *, uncaught: Sequence[str] = (), set_: str | None = None, **odd: Any
    ) -> Any:
        findings = {id_: shown(place) for place, id_ in enumerate(OBLIGATIONS)}

        def run_all(
            _target: object,
            _python: str,
            scenarios: Sequence[tuple[int | None, Scenario]],
            take: Callable[[Judged], object],
            *_: object,
        ) -> None:
            for seed, scenario in scenarios[: odd.pop("runs", 2)]:
                take(attrs.evolve(Judged(scenario.name, seed, findings), **odd))

        caught = {name: None if name in uncaught else "seed 1" for name in all_mutants()}
        monkeypatch.setattr(real, "run_all", run_all)
        monkeypatch.setattr(real, "environment_of", lambda *_: Installed("python", ("toy==1.0",), None, fresh=False))
        monkeypatch.setattr(proof, "prove", lambda *_, **__: proof.Proof(caught))
        return certification.certify(
            "reference",
            config=None,
            tier="smoke",
            requirements=set_,
            jobs=1,
            store=Store(tmp_path / ".simkit"),
            emit=lambda _event: None,
            stopping=lambda: False,
        )

    return certify


def read_back(certificate: c.Certificate) -> None:
    assert c.parse(c.dump(certificate), "made") == certificate


@pytest.mark.parametrize("set_", [*REQUIREMENT_SETS, *DRAFTS])
@pytest.mark.parametrize("outcome", OUTCOMES)
def test_what_is_certified_is_read_back(certified: Callable[..., c.Certificate], outcome: str, set_: str) -> None:
    """By every requirement set, drafts too."""
    read_back(certified(OUTCOMES[outcome], set_=set_))


def test_surviving_mutants_are_told_by_their_obligation(certified: Callable[..., c.Certificate]) -> None:
    """A certificate says whose they are, and that obligation is not passed."""
    made = certified(OUTCOMES["held"], uncaught=["ack-before-commit"])
    read_back(made)
    assert made.mutants.unproven == ("DUR-1",)
    assert {row.id for row in made.obligations if row.verdict != "pass"} == {"DUR-1"}


@pytest.mark.parametrize(
    "odd",
    [
        {"unsettled": True},
        {"problem": Problem("adapter-silent", "no answer", "adapter.py")},
        {"runs": 0},
    ],
    ids=lambda odd: next(iter(odd)),
)
def test_odd_campaigns_are_read_back_too(certified: Callable[..., c.Certificate], odd: Mapping[str, Any]) -> None:
    """Runs that never ended, that could not be judged, or that were not made at all."""
    shown = OUTCOMES["nothing" if "runs" in odd else "held"]
    made = certified(shown, **odd)
    read_back(made)
    assert all(row.verdict != "pass" for row in made.obligations)

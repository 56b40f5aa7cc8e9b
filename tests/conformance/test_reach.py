"""What a manifest rules out is told by the verdicts it makes inconclusive."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from conformance import events as e
from conformance.campaign.docket import Docket, origin_of
from conformance.manifest import Manifest, Operations, Shows
from conformance.reach import ruled_out
from conformance.store import Store
from conformance.targets import parse
from scenarios.obligations import OBLIGATIONS


def manifest(*, operations: bool = False, supported: tuple[str, ...] = ("seq", "call")) -> Manifest:
    """A manifest that shows and supports little."""
    found = parse("naive").manifest
    return attrs.evolve(found, shows=Shows(operations), operations=Operations(supported))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("obligation", "found", "why"),
    [
        ("DUR-12", manifest(), "[shows] operations is off"),
        ("DUR-12", manifest(operations=True), ""),
        ("DUR-7", manifest(), "[shows] operations and attempts are off"),
        ("SIG-1", manifest(), "[operations] supported has no 'wait'"),
        ("SCH-1", manifest(supported=("call", "sleep")), ""),
        ("DUR-1", manifest(), ""),
    ],
)
def test_what_is_missing_is_named(obligation: str, found: Manifest, why: str) -> None:
    """The line of the manifest that rules a promise out is quoted, and no other."""
    assert ruled_out(obligation, found) == why


def test_an_unexercised_verdict_says_what_rules_it_out(tmp_path: Path) -> None:
    """A claim that cannot be put to the test says why; one that could be points to a higher tier."""
    claims = {name: parse("naive").manifest.claims["Durable"] for name in ("DUR-1", "DUR-12")}
    target = attrs.evolve(parse("naive"), manifest=attrs.evolve(manifest(), claims=claims))
    told: list[e.Event] = []
    docket = Docket(target, origin_of(target, "process"), Store(tmp_path), told.append, tier="smoke")
    reached = docket.verdicts()
    assert reached["DUR-12"].reason.endswith("; not with this adapter.toml: [shows] operations is off")
    assert reached["DUR-1"].reason.endswith("; a higher tier tries more")
    assert len(told) == len(OBLIGATIONS)

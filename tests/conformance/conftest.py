"""What tests of the command line share: an empty folder, an engine that follows a script, registries of a known content."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.campaign import judging
from conformance.cli import engine as door
from conformance.cli import listing, usage
from conformance.mutants.outline import Outline
from scenarios.faults import Reported
from scenarios.obligations import Obligation
from scenarios.obligations.catalogue import Promise
from scenarios.rules import judge_all
from scenarios.verdict import Finding
from tests.bad_input_rig import Bench
from tests.report_samples import FakeEngine


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in an empty folder, with nothing in the environment that colours output."""
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR", "CI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "100")


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Callable[..., FakeEngine]:
    """Put an engine that follows a script behind the door."""

    def put(script: Callable[..., Any]) -> FakeEngine:
        fake = FakeEngine(script)
        monkeypatch.setattr(door, "load", lambda: fake)
        return fake

    return put


@pytest.fixture
def registries(monkeypatch: pytest.MonkeyPatch) -> None:
    """An obligation, a promise without a judge, a fault, a mutant and two adapters, whatever the kit ships."""

    def acknowledged_task_survives(_history: object) -> Finding:
        return Finding()

    obligation = Obligation(
        id="DUR-1",
        level="MUST",
        kind="safety",
        profile="Durable",
        promise="An acknowledged task is still there after any crash.",
        tested_by="a kill right after the acknowledgement",
        anomalies=("amnesia",),
        minimum=3,
        causes=("acknowledges before it writes", "keeps tasks in memory"),
        learnt_from=("F02",),
        judge=acknowledged_task_survives,
    )
    mutant = Outline("ack-before-commit", "DUR-1", "Answers before the commit.", "tour/kill@ack:start(engine)")
    promises = {
        "DUR-1": Promise("DUR-1", "MUST", "safety", "A task that was acknowledged is known after any crash."),
        "JRN-5": Promise("JRN-5", "MUST", "safety", "A secret is found nowhere."),
    }
    fault = Reported("F02", "storage", "The store forgets.", ("DUR-1", "JRN-5"))
    monkeypatch.setattr(listing, "catalogue", lambda: promises)
    monkeypatch.setattr(listing, "faults", lambda: {"F02": fault})
    monkeypatch.setattr(listing, "registry", lambda: {"DUR-1": obligation})
    monkeypatch.setattr(usage, "adapters", lambda: {"naive": usage.Adapter("naive"), "toy": usage.Adapter("toy")})
    monkeypatch.setattr(listing, "mutant_registry", lambda: {"ack-before-commit": mutant})


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A folder with adapters in it, and `simkit` run there for real."""
    return Bench(tmp_path)


@pytest.fixture(scope="module")
def one_promise() -> Iterator[None]:
    """Of the promises that a forgotten task breaks, the one that is named for it: a failure of one kind."""
    silent = {id_: Finding() for id_ in ("DLN-3", "STA-1")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judging, "judge_all", lambda history: {**judge_all(history), **silent})
        yield

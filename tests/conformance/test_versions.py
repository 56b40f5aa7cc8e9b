"""Versions of code in the kit: who is started with which, what a manifest declares of them, and where a mutant is run."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.campaign import matrix
from conformance.campaign.matrix import Runs, examine
from conformance.manifest import load
from conformance.mutants import all_mutants
from scenarios.history import Declared, Died, History, Started
from scenarios.interruption import Interruption
from scenarios.plan import Plan
from simkit.errors import SimkitError
from tests.conformance.driver_rig import BOUNDS, CHAIN, MS
from tests.conformance.seen_rig import at, closed, events
from tests.conformance.verbs_rig import watch

LEAST = """
protocol = 1
[harness]
name = "mine"
version = "1"
storage = "file"
[units.worker]
command = ["x"]
control = true
"""


def test_a_second_worker_may_run_other_code() -> None:
    """Those that are started later run what has been deployed, as before."""
    second = Interruption("second", at("a", "applied"), arg="7")
    seen = watch(Plan(CHAIN.root, code="1"), second, Interruption("kill", at("b", "received")))
    assert [one.code for one in events(seen.observation, Started)] == ["1", "7", "1"]


def test_an_engine_is_given_its_own_version_back() -> None:
    """For a while it runs another one; nothing is held against a unit that ends over that."""
    old = Interruption("deploy", at("a", "applied", unit="engine"), ns=50 * MS, arg="0")
    seen = watch(CHAIN, old, units=("engine", "worker"))
    started = [one for one in events(seen.observation, Started) if one.unit == "engine"]
    assert [one.code for one in started] == ["", "0", ""]
    assert len([one for one in events(seen.observation, Died) if one.unit == "engine"]) == 2
    assert (seen.observation.unfired, closed(seen.observation)) == ((), "settled")


def test_newly_deployed_code_has_time_to_be_found_fit() -> None:
    """A run that ends meanwhile is watched for that time."""
    seen = watch(CHAIN, Interruption("deploy", at("b", "applied"), arg="2"))
    (_, newer) = events(seen.observation, Started)
    assert seen.observation.history.events[-1].at_ns - newer.at_ns >= BOUNDS.grace_ns


def test_a_manifest_declares_versions(tmp_path: Path) -> None:
    """In the order of the file, the oldest first; judges are told, and a history keeps it."""
    path = tmp_path / "adapter.toml"
    path.write_text(LEAST + '[codes]\n"1.9" = ["1.9"]\n"1.10" = ["1.9", "1.10"]\n')
    declared = load(path).declared()
    assert declared.codes == (("1.9", ("1.9",)), ("1.10", ("1.9", "1.10")))
    history = History("r", CHAIN, declared, ())
    assert History.from_json(history.to_json()) == history
    path.write_text(LEAST)
    assert load(path).declared().codes == Declared().codes == ()


def test_a_version_that_is_not_declared_cannot_be_gone_on_with(tmp_path: Path) -> None:
    """A misspelt version is told with its place."""
    path = tmp_path / "adapter.toml"
    path.write_text(LEAST + '[codes]\nnew = ["ned", "new"]\nold = ["old"]\n')
    with pytest.raises(SimkitError, match=r"codes\.new: 'ned' is no version under \[codes\]"):
        load(path)


def test_a_mutant_is_run_in_the_configuration_it_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever was asked for; all others are run in that one."""
    seen: list[tuple[str, str | None]] = []

    def history(runs: Runs, *_: object, **__: object) -> None:
        seen.append((runs.target, runs.configuration))

    monkeypatch.setattr(matrix, "_history", history)
    monkeypatch.setattr(matrix, "SCHEDULES_MAX", 1)
    assert all_mutants()["places-not-compared"].config == "replay"
    for name in ("places-not-compared", "code-not-asked"):
        examine(name, Runs("reference:default", None, 0), lambda: False)
    assert seen == [("reference", "replay"), ("reference:default", None)]

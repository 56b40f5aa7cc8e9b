"""`doctor`: what it checks, what a failed check says, and that the reference runtime's simulation is deterministic."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from conformance import events as e
from conformance.campaign import checkup
from conformance.campaign.checkup import doctor
from conformance.store import Store
from simkit.errors import ExitCode

SURROUNDINGS = ["python", "kernel", "store", "cache"]


def checked(store: Store, target: str | None = None) -> dict[str, e.Checked]:
    told: list[e.Event] = []
    result = doctor(target, store=store, emit=told.append, stopping=lambda: False)
    assert tuple(one for one in told if isinstance(one, e.Checked)) == result.checks
    return {one.name: one for one in result.checks}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def steady(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every seed has the same digest everywhere, and no simulation is run."""
    digests = [str(seed) for seed in checkup.SEEDS]
    monkeypatch.setattr(checkup, "digests", lambda *_: digests)
    monkeypatch.setattr(checkup, "_elsewhere", lambda *_: digests)


@pytest.mark.slow
def test_the_reference_runtime_is_deterministic(store: Store) -> None:
    """Two runs, both kernels, and two processes with hash seeds of their own give the same digests."""
    checks = checked(store, "reference")
    same = ["two runs", "kernel and fallback", "PYTHONHASHSEED=1", "PYTHONHASHSEED=2"]
    assert list(checks) == [*SURROUNDINGS, *same]
    assert {name: one.ok for name, one in checks.items()} == dict.fromkeys(checks, True)
    assert len({checks[name].detail for name in same}) == 1


@pytest.mark.usefixtures("steady")
def test_without_a_target_the_reference_runtime_stands_in(store: Store) -> None:
    """One that can only run for real has its environment checked instead of its determinism."""
    assert "two runs" in checked(store)
    assert list(checked(store, "naive")) == SURROUNDINGS


@pytest.mark.parametrize(
    ("attribute", "name"), [("digests", "kernel and fallback"), ("_elsewhere", "PYTHONHASHSEED=2")]
)
@pytest.mark.usefixtures("steady")
def test_a_digest_that_differs_names_its_seed(
    store: Store, monkeypatch: pytest.MonkeyPatch, attribute: str, name: str
) -> None:
    """By the kernel or by the process that was another."""

    def digests(_target: object, how: str) -> list[str]:
        return [("x" if seed == 3 and how in {"fallback", "2"} else str(seed)) for seed in checkup.SEEDS]

    monkeypatch.setattr(checkup, attribute, digests)
    failed = {key: one for key, one in checked(store).items() if not one.ok}
    assert list(failed) == [name]
    assert failed[name].detail == "seed 3 gives two digests"
    assert failed[name].exit_code is ExitCode.DIVERGED


@pytest.mark.usefixtures("steady")
def test_a_process_that_tells_nothing_is_no_difference(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the kit that could not check."""
    monkeypatch.setattr(checkup, "_elsewhere", lambda *_: [])
    failed = checked(store)["PYTHONHASHSEED=1"]
    assert (failed.ok, failed.detail, failed.exit_code) == (False, "no digests came back", ExitCode.INTERNAL)


@pytest.mark.parametrize(("code", "seconds"), [("raise SystemExit(3)", 30), ("print('{')", 30), ("input()", 0)])
def test_a_process_that_fails_hangs_or_babbles_tells_nothing(
    monkeypatch: pytest.MonkeyPatch, code: str, seconds: int
) -> None:
    """Whatever becomes of it, the check goes on."""
    from conformance import targets

    monkeypatch.setattr(checkup, "_CHILD", code)
    monkeypatch.setattr(checkup, "_CHILD_S", seconds)
    assert checkup._elsewhere(targets.parse("reference"), "1") == []


@pytest.mark.usefixtures("steady")
def test_a_store_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """As a mistake in usage, with what to do."""
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    failed = checked(Store(tmp_path / "file" / "store"))["store"]
    assert (failed.ok, failed.exit_code) == (False, ExitCode.USAGE)
    assert failed.hint


@pytest.mark.usefixtures("steady")
def test_the_python_in_use_is_named(store: Store) -> None:
    """It is what the digests belong to."""
    assert sys.version.split()[0] in checked(store)["python"].detail


def test_it_stops_between_two_checks(store: Store) -> None:
    """What was checked is kept."""
    result = doctor(None, store=store, emit=lambda _: None, stopping=lambda: True)
    assert [one.name for one in result.checks] == ["python"]
